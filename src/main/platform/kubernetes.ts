/**
 * Workers that are pods of a cluster: their driver by the settings, and the address at which pods call this server.
 */
import { createHash } from 'node:crypto'
import type { Config } from '../../config/config.ts'
import { MAX_WORKERS } from '../../config/workers.ts'
import { KILL_GRACE_MS } from '../../control/reaper.ts'
import { AppError } from '../../core/errors.ts'
import { clusterAccess } from '../../drivers/kubernetes/access.ts'
import { kubernetesError } from '../../drivers/kubernetes/api.ts'
import { fencedApi } from '../../drivers/kubernetes/fenced-api.ts'
import { HttpsApi } from '../../drivers/kubernetes/https-api.ts'
import { KubernetesDriver } from '../../drivers/kubernetes/kubernetes.ts'
import { applyPolicy } from '../../drivers/kubernetes/network-policy.ts'
import { createPodOutputs } from '../../drivers/kubernetes/pod-output.ts'
import type { PodSettings, Toleration } from '../../drivers/kubernetes/pod-spec.ts'
import type { Leader } from '../../ports/leader.ts'
import type { Notifier } from '../../ports/notifier.ts'
import type { WorkerLogs } from '../../ports/worker-logs.ts'
import type { ContainerUrls } from '../../services/workers/worker-addresses.ts'
import { systemClock } from '../../system/clock.ts'
import { ensureInstallation } from '../../system/coordination/identities.ts'
import type { Log } from '../../system/observing/log.ts'

/** True when workers are pods of a cluster. */
export function usesKubernetes({ kubernetes }: Config): boolean {
  return kubernetes.where !== 'off'
}

/**
 * The driver for pods.
 * @param stateDir an existing folder for notes
 * @throws AppError when the cluster is not configured
 */
export function kubernetesDriver(
  config: Config,
  stateDir: string,
  parts: {
    readonly notifier: Notifier
    readonly logs: WorkerLogs
    readonly log: Log
    /** The role of this server. */
    readonly leader: Leader
  },
): KubernetesDriver {
  const { kubernetes } = config
  refuseGaps(config)
  const { where, context, networkPolicy: egress, workerPort } = kubernetes
  const access = clusterAccess({ where, context, env: process.env, clock: systemClock })
  const plain = new HttpsApi(access, systemClock)
  const api = fencedApi(plain, parts.leader)
  const { isInside } = access
  const namespace = kubernetes.namespace ?? access.namespace
  const installation = kubernetes.installation ?? installationFor(config)
  const workerUrl = kubernetes.workerUrl ?? ''
  const { notifier, logs, log } = parts
  const protect = async () => {
    if (egress === 'off') return
    try {
      await applyPolicy(api, { installation, namespace, egress, workerUrl, workerPort, isInside })
    } catch (thrown) {
      const { message: problem } = kubernetesError(thrown)
      log.warn({ problem, consequence: UNPROTECTED }, 'cluster.policy_refused')
    }
  }
  const driver = new KubernetesDriver({
    api,
    namespace,
    installation,
    notifier,
    clock: systemClock,
    outputs: createPodOutputs({ api, namespace, clock: systemClock, logs, stateDir }),
    settings: podSettings(config),
    maxWorkers: config.maxWorkers ?? MAX_WORKERS,
    reachesPods: isInside || kubernetes.podsReachable,
    note: (event, fields) =>
      log[event === 'cluster.away' ? 'warn' : 'info']({ server: access.server, ...fields }, event),
    onUp: () => void protect(),
  })
  return Object.assign(driver, {
    close: closing(driver.close.bind(driver), () => plain.close()),
  })
}

/** @throws AppError if settings are missing */
function refuseGaps({ kubernetes, container }: Config): void {
  const { workerUrl, modelFolder, volumeClaim } = kubernetes
  if (workerUrl === null) {
    throw new AppError(
      'invalid',
      '--kubernetes needs --kubernetes-worker-url: the address at which pods reach the --kubernetes-worker-port of this server',
    )
  }
  if (container) {
    throw new AppError(
      'invalid',
      '--container builds an image for the engine of this machine, which the nodes of a cluster do not see: push it to a registry, and name it in a template',
    )
  }
  if (modelFolder !== null && volumeClaim === null) {
    throw new AppError('invalid', '--kubernetes-model-folder needs --kubernetes-volume-claim')
  }
}

const UNPROTECTED =
  'workers reach everything that the cluster permits; allow this server to create network policies, or give --kubernetes-network-policy off'

function closing(close: () => Promise<void>, after: () => void): () => Promise<void> {
  return async () => {
    await close()
    after()
  }
}

function podSettings({ kubernetes, drainTimeoutMs }: Config): PodSettings {
  const { gpuResource, gpuProducts, nodeLostMs, volumeClaim, modelFolder } = kubernetes
  const { priorityClass, runtimeClass, nodeSelector, tolerations } = kubernetes
  return {
    gpus: { resource: gpuResource, products: new Map(gpuProducts.map(splitPair)) },
    graceS: Math.ceil(Math.max(drainTimeoutMs, KILL_GRACE_MS) / 1000),
    stopS: Math.ceil(KILL_GRACE_MS / 1000),
    nodeLostS: Math.ceil(nodeLostMs / 1000),
    volumeClaim,
    modelFolder,
    priorityClass,
    runtimeClass,
    nodeSelector: Object.fromEntries(nodeSelector.map(splitPair)),
    tolerations: tolerations.map(parseToleration),
  }
}

function splitPair(text: string): [string, string] {
  const at = text.indexOf('=')
  return [text.slice(0, at), text.slice(at + 1)]
}

/** Reads `key`, `key=value` or `key=value:effect`. */
function parseToleration(text: string): Toleration {
  const [rest = '', effect] = text.split(':')
  const [key = '', value] = rest.split('=')
  return {
    key,
    operator: value === undefined ? 'Exists' : 'Equal',
    ...(value === undefined ? {} : { value }),
    ...(effect === undefined ? {} : { effect }),
  }
}

/** Servers of one database are one installation, wherever their data directories are. */
function installationFor({ databaseUrl, dataDir }: Config): string {
  if (databaseUrl === null) return ensureInstallation(dataDir)
  const { hostname, port, pathname } = new URL(databaseUrl)
  return createHash('sha256').update(`${hostname}:${port}${pathname}`).digest('hex').slice(0, 12)
}

/** The address at which pods call the active server, with the worker surface alone; null where no worker is a pod. */
export function podUrls({ kubernetes: { where, workerUrl } }: Config): ContainerUrls | null {
  const url = workerUrl ?? ''
  return where === 'off' ? null : { currentUrl: url, url: async () => url }
}
