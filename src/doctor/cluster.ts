/** The checks of `runyard doctor` on a cluster that runs the workers. */
import type { Config } from '../config/config.ts'
import { toAppError } from '../core/errors.ts'
import type { ClusterState } from '../core/observing/diagnosis.ts'
import { clusterAccess } from '../drivers/kubernetes/access.ts'
import type { KubernetesApi } from '../drivers/kubernetes/api.ts'
import { HttpsApi } from '../drivers/kubernetes/https-api.ts'
import { systemClock } from '../system/clock.ts'

interface Right {
  readonly verb: string
  /** As `pods`, `pods/log` or `networkpolicies.networking.k8s.io`. */
  readonly resource: string
}

const rights = (resource: string, verbs: string): Right[] => verbs.split(' ').map(verb => ({ verb, resource }))

/** Calls of the driver for pods. */
const NEEDED = [
  ...rights('pods', 'get list watch create delete'),
  ...rights('pods/log', 'get'),
  ...rights('secrets', 'get list create update patch delete'),
]
/** Without events, downloads and mounts are not reported; without nodes, the type of a GPU is assumed. */
const WANTED = [...rights('events', 'list watch'), ...rights('nodes', 'get')]
const POLICIES = rights('networkpolicies.networking.k8s.io', 'get create update')

/** Looks at the cluster of the settings. Changes nothing there. */
export async function inspectCluster(
  { where, context, namespace, networkPolicy }: Config['kubernetes'],
  env: Readonly<Record<string, string | undefined>>,
): Promise<ClusterState> {
  const found = { address: '', version: '', namespace: namespace ?? '', missing: [], lacking: [] }
  try {
    const access = clusterAccess({ where, context, env, clock: systemClock })
    const api = new HttpsApi(access, systemClock)
    const named = { ...found, address: access.server, namespace: namespace ?? access.namespace }
    try {
      const { gitVersion = '' } = await api.call<{ gitVersion?: string }>({ method: 'GET', path: '/version' })
      const rights = networkPolicy === 'off' ? WANTED : [...WANTED, ...POLICIES]
      const missing = await denied(api, named.namespace, NEEDED)
      return {
        ...named,
        problem: null,
        version: gitVersion,
        missing,
        lacking: await denied(api, named.namespace, rights),
      }
    } catch (thrown) {
      return { ...named, problem: (thrown as Error).message }
    } finally {
      api.close()
    }
  } catch (thrown) {
    return { ...found, problem: toAppError(thrown).message }
  }
}

/** Those of some rights that this server does not have. */
async function denied(api: KubernetesApi, namespace: string, rights: readonly Right[]): Promise<string[]> {
  const answers = await Promise.all(rights.map(right => isAllowed(api, namespace, right)))
  return rights.flatMap(({ verb, resource }, at) => (answers[at] === true ? [] : [`${verb} ${resource.split('.')[0]}`]))
}

async function isAllowed(api: KubernetesApi, namespace: string, { verb, resource }: Right): Promise<boolean> {
  const [named = '', ...group] = resource.split('.')
  const [kind, subresource] = named.split('/')
  const review = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: {
      resourceAttributes: {
        verb,
        resource: kind,
        group: group.join('.'),
        ...(subresource === undefined ? {} : { subresource }),
        ...(kind === 'nodes' ? {} : { namespace }),
      },
    },
  }
  const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
  const answer = await api.call<{ status?: { allowed?: boolean } }>({ method: 'POST', path, body: review })
  return answer.status?.allowed === true
}
