/** Choice of the frozen worker that ends when the memory of the machine gets short. */
import { availableShare, type MachineMemory } from '../hardware/machine-memory.ts'
import type { EndpointId } from '../ids.ts'
import { isFrozen, type Worker } from '../workers/worker.ts'

/** True if less memory is available than frozen workers must leave free. @param leastShare from 0 to 1 */
export function isMemoryShort(memory: MachineMemory | null, leastShare: number): boolean {
  return memory !== null && availableShare(memory) < leastShare
}

/**
 * The worker that was frozen longest, those of PRIORITY_FLASHBOOT last; null if no worker is frozen, and while
 * another one ends for this reason, since its memory is not free yet.
 */
export function frozenLongest(
  workers: readonly Worker[],
  hasPriority: (endpointId: EndpointId) => boolean,
): Worker | null {
  if (workers.some(({ state, stopReason }) => stopReason === 'memory_short' && state !== 'EXITED')) return null
  const rank = ({ endpointId }: Worker) => Number(hasPriority(endpointId))
  return workers
    .filter(isFrozen)
    .reduce<Worker | null>(
      (first, worker) =>
        first === null || rank(worker) - rank(first) < 0 || (rank(worker) === rank(first) && isLonger(worker, first))
          ? worker
          : first,
      null,
    )
}

function isLonger(a: Worker, b: Worker): boolean {
  return (a.frozenAtMs ?? 0) < (b.frozenAtMs ?? 0)
}
