/** Workers that use more of a GPU than their share. */
import { marginMb } from './card-room.ts'

/** The measured use of a worker with a share of a GPU, in MiB. */
export interface ShareUse {
  readonly shareMb: number
  readonly usedMb: number
  /** All of the memory of the GPU. */
  readonly totalMb: number
}

/**
 * Memory that a worker uses beyond its share, in MiB; 0 for one that keeps to it. The margin of a GPU does not count:
 * a context is not part of what programs limit.
 */
export function excessMb({ shareMb, usedMb, totalMb }: ShareUse): number {
  return usedMb > shareMb + marginMb(totalMb) ? usedMb - shareMb : 0
}

/** The worker with the most memory beyond its share; null if all keep to theirs. */
export function findGreediest<Worker extends ShareUse>(workers: readonly Worker[]): Worker | null {
  const beyond = workers.filter(worker => excessMb(worker) > 0)
  return beyond.reduce<Worker | null>(
    (most, worker) => (most === null || excessMb(worker) > excessMb(most) ? worker : most),
    null,
  )
}
