/** Whether idle workers end too soon for their starts. */
import { hasIdleTimeout, idleTimeoutMs } from '../endpoints/endpoint.ts'
import type { EndpointSnapshot } from './scale.ts'
import { presentStartMs } from './start-time.ts'

/** Ends of idle workers from which something is concluded: one may be the end of all work. */
const IDLE_ENDS = 2

/**
 * How long workers of the present release start and are kept idle, in milliseconds, where idle ones have ended sooner than the next one
 * could start; null elsewhere, and where idle workers are frozen.
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
