import type { GivenLimits } from '../src/core/accounts/quotas.ts'
import type { World } from './world.ts'

/**
 * Draws the limits of the account of all clients: no limits, or limits that they reach but can
 * still finish all jobs under.
 */
export function drawLimits(world: World): GivenLimits {
  const random = world.random('limits of the account')
  if (!random.chance(0.4)) return {}
  return { workers: random.int(4, 5), gpus: 2, queuedJobs: random.int(4, 10) }
}
