import type { GivenLimits } from '../src/core/accounts/quotas.ts'
import type { World } from './world.ts'

/** What the account of all clients may have: in some worlds less than they want, and never less than comes to rest. */
export function drawLimits(world: World): GivenLimits {
  const random = world.random('limits of the account')
  if (!random.chance(0.4)) return {}
  return { workers: random.int(4, 5), gpus: 2, queuedJobs: random.int(4, 10) }
}
