/** Plan for the memory of the machine that suspended workers have: it is counted before one is suspended. */
import type { MachineMemory } from '../hardware/machine-use.ts'
import type { EndpointId, WorkerId } from '../ids.ts'
import type { Worker } from '../workers/worker.ts'
import { suspensionOf } from '../workers/worker-suspension.ts'
import type { FreezeRules } from './frozen-plan.ts'

/** The settings that a plan needs. */
export type SuspendRules = Pick<FreezeRules, 'suspendedBytes' | 'minMemoryPercent'>

/** The part of the memory that the copy of a worker may take. */
export interface SuspendRoomInput {
  /** The memory of the machine now; null if unknown. */
  readonly memory: MachineMemory | null
  /** All workers that have not ended. */
  readonly workers: readonly Worker[]
  /** The worker that is about to be suspended; null for a further one. */
  readonly own: WorkerId | null
  readonly rules: SuspendRules
}

/**
 * Bytes of the machine's memory that a worker may take when it is suspended. All suspended workers together have the
 * limit of the setting, or half of what is free without them; and as much must stay free as frozen workers leave.
 * Infinite if the memory is unknown and there is no limit.
 */
export function suspendRoom({ memory, workers, own, rules }: SuspendRoomInput): number {
  const taken = workers
    .filter(({ id }) => id !== own)
    .reduce((sum, worker) => sum + (suspensionOf(worker)?.bytes ?? 0), 0)
  if (memory === null) return Math.max(0, (rules.suspendedBytes ?? Number.POSITIVE_INFINITY) - taken)
  const { availableBytes, totalBytes } = memory
  const limit = rules.suspendedBytes ?? (availableBytes + taken) / 2
  const free = availableBytes - (totalBytes * rules.minMemoryPercent) / 100
  return Math.max(0, Math.floor(Math.min(limit - taken, free)))
}

/** Time after its copy for which no worker ends so that another one can be copied. */
export const FRESH_COPY_MS = 60_000

/**
 * The suspended workers that end so that another one can be suspended: those suspended longest first, those of
 * PRIORITY_FLASHBOOT last, no more than are needed, and none that was copied just now. Null if that is not enough;
 * empty if nothing has to end.
 * @param neededBytes needed memory of the other worker
 */
export function endsForSuspend(
  input: SuspendRoomInput,
  neededBytes: number,
  hasPriority: (endpointId: EndpointId) => boolean,
  nowMs: number,
): Worker[] | null {
  const isEnough = (ends: readonly Worker[]) => suspendRoom(without(input, ends)) >= neededBytes
  const candidates = input.workers
    .filter(worker => worker.id !== input.own && worker.state === 'FROZEN' && worker.asleepAtMs !== null)
    .filter(({ suspension, pause }) => suspension !== null && pause === null)
    .filter(({ asleepAtMs }) => nowMs - (asleepAtMs ?? nowMs) >= FRESH_COPY_MS)
    .sort(
      (a, b) =>
        Number(hasPriority(a.endpointId)) - Number(hasPriority(b.endpointId)) ||
        (a.asleepAtMs ?? 0) - (b.asleepAtMs ?? 0) ||
        (a.id < b.id ? -1 : 1),
    )
  const enough = [null, ...candidates].findIndex((_, count) => isEnough(candidates.slice(0, count)))
  if (enough < 0) return null
  let ends = candidates.slice(0, enough)
  // The last ones were copied last, so they stay if that is possible.
  for (const worker of [...ends].reverse()) {
    const fewer = ends.filter(other => other !== worker)
    if (isEnough(fewer)) ends = fewer
  }
  return ends
}

/** The input as it is once some workers have ended. */
function without({ memory, workers, ...rest }: SuspendRoomInput, ends: readonly Worker[]): SuspendRoomInput {
  const freed = ends.reduce((sum, { suspension }) => sum + (suspension?.bytes ?? 0), 0)
  return {
    ...rest,
    workers: workers.filter(worker => !ends.includes(worker)),
    memory: memory === null ? null : { ...memory, availableBytes: memory.availableBytes + freed },
  }
}
