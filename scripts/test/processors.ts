/** The processor time that other programs leave. */
import { availableParallelism, cpus } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'

/** Number of processors that is enough for one more file with a server. */
const ENOUGH = 0.75
/** Time over which they are measured, in milliseconds: less than one start of a server would say nothing. */
const MEASURED_MS = 3_000
const LOOK_MS = 100

/**
 * Resolves once most of a processor was free for some seconds. Programs of low priority count as free, since they
 * give way.
 * @param isOver true when nobody needs a processor any more, which resolves it, too
 */
export async function untilFreeProcessor(isOver: () => boolean): Promise<void> {
  for (let free = 0; free < ENOUGH && !isOver(); ) {
    const [beganMs, freeMs] = [performance.now(), freeTimeMs()]
    while (performance.now() - beganMs < MEASURED_MS && !isOver()) await sleep(LOOK_MS)
    free = (freeTimeMs() - freeMs) / (performance.now() - beganMs)
  }
}

/** Time that all processors were free since the machine started, in milliseconds. */
function freeTimeMs(): number {
  return cpus().reduce((sum, { times }) => sum + times.idle + times.nice, 0)
}

/** Begins to measure, and returns a function that gives the share of their time in which processors had work. */
export function measureBusyShare(): () => number {
  const [beganMs, idleMs] = [performance.now(), idleTimeMs()]
  return () => 1 - (idleTimeMs() - idleMs) / ((performance.now() - beganMs) * availableParallelism())
}

function idleTimeMs(): number {
  return cpus().reduce((sum, { times }) => sum + times.idle, 0)
}
