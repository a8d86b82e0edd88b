/** Whether idle workers end too soon for their starts. */
import { hasIdleTimeout, idleTimeoutMs } from '../endpoints/endpoint.ts'
import type { Worker } from '../workers/worker.ts'
import type { EndpointSnapshot } from './scale.ts'
import { measuredStartMs } from './start-time.ts'

/** Ends of idle workers from which something is concluded: one may be the end of all work. */
const IDLE_ENDS = 2

/**
 * How long workers of the present release start and are kept idle, in milliseconds, where idle ones have ended sooner than the next one
 * could start; null elsewhere, and where idle workers are frozen.
 */
export function startsAfterIdleEnds({
  endpoint,
  workers,
  exits,
}: Pick<EndpointSnapshot, 'endpoint' | 'workers' | 'exits'>): {
  readonly startMs: number
  readonly idleMs: number
} | null {
  if (!hasIdleTimeout(endpoint) || endpoint.flashboot !== 'OFF') return null
  const isPresent = ({ version }: Worker) => version === endpoint.version
  const ended = exits.filter(isPresent)
  const startMs = measuredStartMs(workers.filter(isPresent), ended)
  const idleMs = idleTimeoutMs(endpoint)
  if (startMs === null || startMs <= idleMs) return null
  return ended.filter(({ stopReason }) => stopReason === 'idle').length < IDLE_ENDS ? null : { startMs, idleMs }
}
