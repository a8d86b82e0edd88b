/** Detects idle workers that end too soon for the duration of their starts. */
import { hasIdleTimeout, idleTimeoutMs } from '../endpoints/endpoint.ts'
import type { EndpointSnapshot } from './scale.ts'
import { presentStartMs } from './start-time.ts'

/** Minimum number of idle ends for a conclusion: a single one may be the end of all work. */
const IDLE_ENDS = 2

/**
 * Start time and idle timeout of workers of the present release, in milliseconds, if idle workers ended sooner
 * than the next one could start; null otherwise, and if idle workers are frozen.
 */
export function startsAfterIdleEnds(
  snapshot: Pick<EndpointSnapshot, 'endpoint' | 'workers' | 'exits'>,
): { readonly startMs: number; readonly idleMs: number } | null {
  const { endpoint, exits } = snapshot
  if (!hasIdleTimeout(endpoint) || endpoint.flashboot !== 'OFF') return null
  const startMs = presentStartMs(snapshot)
  const idleMs = idleTimeoutMs(endpoint)
  if (startMs === null || startMs <= idleMs) return null
  const idleEnds = exits.filter(({ version, stopReason }) => version === endpoint.version && stopReason === 'idle')
  return idleEnds.length < IDLE_ENDS ? null : { startMs, idleMs }
}
