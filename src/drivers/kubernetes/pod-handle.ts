/** What is recorded of the pod of a worker. Its name is known without that; the rest is for people. */
import type { Limit } from '../../core/workers/isolation.ts'
import type { WorkerSpec } from '../../ports/driver.ts'
import type { WorkerPod } from './worker-pod.ts'

/** A handle. */
export interface PodHandle {
  readonly pod: string
  readonly uid: string
  readonly limits: readonly Limit[]
}

/** The handle of a pod, as text. */
export function podHandle(pod: WorkerPod, { wish, diskGb }: WorkerSpec): string {
  const limits: [limit: Limit, isHeld: boolean][] = [
    ['memory', wish.cpus.length > 0],
    ['cpu', wish.cpus.length > 0],
    ['disk', diskGb !== null],
  ]
  const handle: PodHandle = {
    pod: pod.name,
    uid: pod.uid ?? '',
    limits: limits.flatMap(([limit, isHeld]) => (isHeld ? [limit] : [])),
  }
  return JSON.stringify(handle)
}

/** Reads a handle; null for any other text. */
export function parseHandle(text: string): PodHandle | null {
  try {
    const { pod, uid, limits = [] } = JSON.parse(text) as PodHandle
    return typeof pod === 'string' && typeof uid === 'string' && pod !== '' ? { pod, uid, limits } : null
  } catch {
    return null
  }
}
