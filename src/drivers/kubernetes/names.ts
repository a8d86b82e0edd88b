/** Names and labels of the objects of an installation. */
import type { WorkerId } from '../../core/ids.ts'
import type { KubernetesObject } from './api.ts'

/** Names of the labels and annotations of our objects. */
export const NAMES = {
  manager: 'app.kubernetes.io/managed-by',
  installation: 'runyard.dev/installation',
  worker: 'runyard.dev/worker',
  endpoint: 'runyard.dev/endpoint',
  owner: 'runyard.dev/owner',
  /** Its ports for requests and for health checks, as `80,8080`. */
  serves: 'runyard.dev/serves',
  /** The types of GPUs that it wished, as a JSON list, and their number. */
  gpuTypes: 'runyard.dev/gpu-types',
  gpuCount: 'runyard.dev/gpu-count',
} as const

/** The container of a worker in its pod. */
export const CONTAINER = 'worker'
const MANAGER = 'runyard'

/** The name of the pod of a worker, and of the secret with its environment. */
export function podName(worker: WorkerId): string {
  return `runyard-${worker}`
}

/** The worker that a pod is named after; one that does not exist for a pod of others. */
export function workerFromPodName(name: string): WorkerId {
  return (name.startsWith('runyard-') ? name.slice('runyard-'.length) : '') as WorkerId
}

/** The name of the secret with which the image of a worker is downloaded. */
export function pullSecretName(worker: WorkerId): string {
  return `runyard-${worker}-pull`
}

/** True for a worker with an id that can name a pod: names of pods are names of hosts. */
export function isPodId(worker: WorkerId): boolean {
  return /^[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?$/.test(worker)
}

/** A label, unless its value can be none. */
export function optionalLabel(name: string, value: string | undefined): Record<string, string> {
  return value !== undefined && /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/.test(value) ? { [name]: value } : {}
}

/** The labels by which all objects of an installation are found. */
export function ownLabels(installation: string): Record<string, string> {
  return { [NAMES.manager]: MANAGER, [NAMES.installation]: installation }
}

/** The same as a selector. */
export function ownSelector(installation: string): string {
  return Object.entries(ownLabels(installation))
    .map(([name, value]) => `${name}=${value}`)
    .join(',')
}

/** The worker of an object; null when it is not of this installation. */
export function workerFromObject({ metadata }: KubernetesObject, installation: string): WorkerId | null {
  const labels = metadata.labels ?? {}
  const isOurs = Object.entries(ownLabels(installation)).every(([name, value]) => labels[name] === value)
  const worker = labels[NAMES.worker]
  return isOurs && worker !== undefined && worker !== '' ? (worker as WorkerId) : null
}
