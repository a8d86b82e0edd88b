/** The processor time that other programs leave. */
import { availableParallelism, cpus } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'

/** Number of processors that is enough for one more file with a server. */
const ENOUGH = 0.75
/** Time over which they are measured, in milliseconds: less than one start of a server would say nothing. */
const MEASURED_MS = 3_000
const LOOK_MS = 100

/** The processors of a machine, and its time, in milliseconds. */
export interface Processors {
  now(): number
  /** Time that they were free since the machine started, all together. */
  freeTime(): number
  sleep(ms: number): Promise<void>
}

const THIS_MACHINE: Processors = {
  now: () => performance.now(),
  freeTime: () => cpus().reduce((sum, { times }) => sum + times.idle + times.nice, 0),
  sleep: ms => sleep(ms),
}

/**
 * Resolves once most of a processor was free for some seconds. Programs of low priority count as free, since they
 * give way.
 * @param isOver true when nobody needs a processor any more, which resolves it, too
 */
export async function untilFreeProcessor(isOver: () => boolean, machine: Processors = THIS_MACHINE): Promise<void> {
  for (let free = 0; free < ENOUGH && !isOver(); ) {
    const [beganMs, freeMs] = [machine.now(), machine.freeTime()]
    while (machine.now() - beganMs < MEASURED_MS && !isOver()) await machine.sleep(LOOK_MS)
    free = (machine.freeTime() - freeMs) / (machine.now() - beganMs)
  }
}

/** Begins to measure, and returns a function that gives the share of their time in which processors had work. */
export function measureBusyShare(): () => number {
  const [beganMs, idleMs] = [performance.now(), idleTimeMs()]
  return () => 1 - (idleTimeMs() - idleMs) / ((performance.now() - beganMs) * availableParallelism())
}

function idleTimeMs(): number {
  return cpus().reduce((sum, { times }) => sum + times.idle, 0)
}
