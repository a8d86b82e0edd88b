/** The claims of workers to the memory of cards. */
import { gpuKey } from '../hardware/inventory.ts'
import type { OwnerId } from '../ids.ts'
import type { CardRooms } from './card-room.ts'
import type { Occupant } from './placement-input.ts'

/** A claim to all of the memory of a card. */
export const WHOLE_CARD = Number.POSITIVE_INFINITY

/**
 * True if no worker of the account can get the GPUs of this worker. Those of a suspended worker are free for
 * everybody (ADR 109), those of a sleeping one for others of its account (ADR 54).
 */
export function bindsGpus({ sleep, suspends, owner }: Pick<Occupant, 'sleep' | 'suspends' | 'owner'>, asker: OwnerId) {
  return sleep !== 'asleep' || (!suspends && owner !== asker)
}

/**
 * The claims to each GPU, by key, for a worker of this account; null if one of the workers may use any GPU.
 */
export function claimedMb(others: readonly Occupant[], asker: OwnerId): ReadonlyMap<string, number> | null {
  const claims = new Map<string, number>()
  for (const worker of others) {
    if (worker.placement === null) return null
    if (!bindsGpus(worker, asker)) continue
    for (const gpu of worker.placement.gpus) claims.set(gpuKey(gpu), WHOLE_CARD)
  }
  return claims
}

/** The measured cards as they will be after the end of workers on some of them. */
export function afterEnds(rooms: CardRooms, ended: Iterable<Occupant>): CardRooms {
  const after = new Map(rooms)
  for (const { placement } of ended) {
    for (const gpu of placement?.gpus ?? []) {
      const room = after.get(gpuKey(gpu))
      if (room !== undefined) after.set(gpuKey(gpu), { ...room, freeMb: Math.max(0, room.totalMb - room.foreignMb) })
    }
  }
  return after
}
