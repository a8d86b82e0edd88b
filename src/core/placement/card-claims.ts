/** The claims of workers to the memory of cards. */
import { gpuKey, type MachineGpu } from '../hardware/inventory.ts'
import type { OwnerId } from '../ids.ts'
import { type CardRoom, type CardRooms, isFree, marginMb } from './card-room.ts'
import type { Occupant } from './placement-input.ts'

/** A claim to all of the memory of a card, in MiB. */
export const WHOLE_CARD = Number.POSITIVE_INFINITY

/**
 * True if no worker of the account can get the GPUs of this worker. Those of a suspended worker are free for
 * everybody (ADR 109), those of a sleeping one for others of its account (ADR 54).
 */
export function bindsGpus({ sleep, suspends, owner }: Pick<Occupant, 'sleep' | 'suspends' | 'owner'>, asker: OwnerId) {
  return sleep !== 'asleep' || (!suspends && owner !== asker)
}

/**
 * The claims to the memory of each GPU, in MiB by key, for a worker of this account; null if one of the workers may
 * use any GPU.
 */
export function claimedMb(others: readonly Occupant[], asker: OwnerId): ReadonlyMap<string, number> | null {
  const claims = new Map<string, number>()
  for (const worker of others) {
    if (worker.placement === null) return null
    if (!bindsGpus(worker, asker)) continue
    for (const gpu of worker.placement.gpus) {
      const key = gpuKey(gpu)
      claims.set(key, (claims.get(key) ?? 0) + (gpu.shareMb ?? WHOLE_CARD))
    }
  }
  return claims
}

/** Memory of a card that a further share may have at most, in MiB; negative on a card that is more than full. */
export function shareableMb(
  { memoryGb }: Pick<MachineGpu, 'memoryGb'>,
  claimMb: number,
  room: CardRoom | undefined,
): number {
  const totalMb = room?.totalMb ?? memoryGb * 1024
  return totalMb - marginMb(totalMb) - claimMb - (room?.foreignMb ?? 0)
}

/**
 * True if a card has room for a share: beside all claims and other programs, and now.
 * @param neededMb memory that the worker takes at once, in MiB
 */
export function hasShare(
  gpu: Pick<MachineGpu, 'memoryGb'>,
  claimMb: number,
  {
    room,
    shareMb,
    neededMb,
  }: { readonly room: CardRoom | undefined; readonly shareMb: number; readonly neededMb: number },
): boolean {
  return shareMb <= shareableMb(gpu, claimMb, room) && isFree(room, neededMb)
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
