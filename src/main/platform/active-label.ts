/** The label by which a Service of Kubernetes finds the active one of several servers. */
import type { Config } from '../../config/config.ts'
import { clusterAccess } from '../../drivers/kubernetes/access.ts'
import { type KubernetesApi, kubernetesError, type PodObject } from '../../drivers/kubernetes/api.ts'
import { HttpsApi } from '../../drivers/kubernetes/https-api.ts'
import { type Clock, pause } from '../../ports/clock.ts'
import { systemClock } from '../../system/clock.ts'
import type { Log } from '../../system/observing/log.ts'

/** The label. The chart in `deploy/helm/runyard` selects by it. */
export const ROLE_LABEL = 'runyard.dev/role'
/** The cost of a pod to its deployment: of several, it ends the one that costs least. */
const DELETION_COST = 'controller.kubernetes.io/pod-deletion-cost'
const COSTS: Readonly<Record<Role, string>> = { active: '100', standby: '0' }
/** The labels that a pod has in common with the others of its deployment. */
const SHARED_LABELS = ['app.kubernetes.io/name', 'app.kubernetes.io/instance', 'app.kubernetes.io/component']
/** Pause after a call that failed. */
const RETRY_MS = 1_000

/** The role of a server among those on its database. */
export type Role = 'active' | 'standby'

/** A pod, by its name. */
interface PodName {
  readonly namespace: string
  readonly name: string
}

/** Dependencies of {@link createActiveLabel}. */
interface ActiveLabelOptions {
  readonly api: KubernetesApi
  /** The pod of this server. */
  readonly pod: PodName
  readonly clock: Clock
  /**
   * Called once for each role that could not be shown at once; it is tried again until it is, or until the role has
   * changed.
   */
  readonly onTrouble: (role: Role, problem: string) => void
}

/** The role of this server on its pod. */
export interface ActiveLabel {
  /**
   * Shows a role from now on. Never throws.
   * @returns resolves when it is shown, was replaced by another role, or the label is closed
   */
  show(role: Role): Promise<void>
  /** Ends attempts that go on. What is shown stays. */
  close(): void
}

/** Maximum wait of a change of the role for its label. */
const WAIT_MS = 2_000

/**
 * Shows a role before others may rely on it: resolves when the label has it, and after 2 seconds in any case, because
 * the role does not depend on the label. Never throws.
 * @param label null outside of a cluster
 */
export async function showRole(label: ActiveLabel | null, role: Role): Promise<void> {
  if (label === null) return
  await Promise.race([label.show(role), new Promise<void>(resolve => setTimeout(resolve, WAIT_MS).unref())])
}

/** The label of the pod of a server with these settings; null outside of a cluster. */
export function configuredActiveLabel({ kubernetes: { where, context } }: Config, log: Log): ActiveLabel | null {
  const pod = ownPod(process.env)
  if (where !== 'in-cluster' || pod === null) return null
  const access = clusterAccess({ where, context, env: process.env, clock: systemClock })
  return createActiveLabel({
    api: new HttpsApi(access, systemClock),
    pod,
    clock: systemClock,
    onTrouble: (role, problem) => log.warn({ role, problem }, 'role.not_shown'),
  })
}

/** The pod of this server, by the variables that the chart sets; null when it is in none. */
export function ownPod(env: Readonly<Record<string, string | undefined>>): PodName | null {
  const { POD_NAME: name = '', POD_NAMESPACE: namespace = '' } = env
  return name === '' || namespace === '' ? null : { namespace, name }
}

/**
 * Makes the label follow the role. A server that becomes active takes the label from the others first: one that was
 * killed with its node, or that is frozen, does not do so itself, and half of all calls would go there.
 */
export function createActiveLabel({ api, pod, clock, onTrouble }: ActiveLabelOptions): ActiveLabel {
  const folder = `/api/v1/namespaces/${pod.namespace}/pods`
  /** The role that is not shown yet. */
  let wanted: { readonly role: Role; isTold: boolean } | null = null
  let isClosed = false
  let working: Promise<void> = Promise.resolve()

  const patch = (name: string, role: Role) =>
    api.call({
      method: 'PATCH',
      path: `${folder}/${name}`,
      body: { metadata: { labels: { [ROLE_LABEL]: role }, annotations: { [DELETION_COST]: COSTS[role] } } },
    })
  const takeFromOthers = async () => {
    const { metadata } = await api.call<PodObject>({ method: 'GET', path: `${folder}/${pod.name}` })
    const shared = SHARED_LABELS.map(name => `${name}=${metadata.labels?.[name] ?? ''}`)
    const labelSelector = [...shared, `${ROLE_LABEL}=active`].join(',')
    const list = await api.call<{ items?: readonly PodObject[] }>({
      method: 'GET',
      path: folder,
      query: { labelSelector },
    })
    const otherPods = (list.items ?? []).map(({ metadata: { name } }) => name).filter(name => name !== pod.name)
    await Promise.all(otherPods.map(name => patch(name, 'standby').catch(ignoreMissing)))
  }
  const work = async () => {
    while (wanted !== null && !isClosed) {
      const mine = wanted
      try {
        if (mine.role === 'active') await takeFromOthers()
        // The role may have changed in the meantime.
        if (wanted === mine) await patch(pod.name, mine.role)
        if (wanted === mine) wanted = null
      } catch (thrown) {
        if (!mine.isTold) onTrouble(mine.role, kubernetesError(thrown).message)
        mine.isTold = true
        await pause(clock, RETRY_MS)
      }
    }
  }
  return {
    show(role) {
      const isIdle = wanted === null
      wanted = { role, isTold: false }
      if (isIdle) working = work()
      return working
    },
    close() {
      isClosed = true
    },
  }
}

/** A pod that is gone needs no label. */
function ignoreMissing(thrown: unknown): void {
  if (kubernetesError(thrown).status !== 404) throw thrown
}
