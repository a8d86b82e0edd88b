import { readFileSync } from 'node:fs'
import { readOptional } from '../disk/optional-files.ts'
import type { Clock, ServerTime } from '../ports/clock.ts'
import { type MachineClocks, ServerClock } from './server-clock.ts'

/** The longest time for a timer of Node; a longer one would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** The machine's monotonic clock at the start of this process, in ms. */
const STARTED_MS = Number(process.hrtime.bigint()) / 1e6 - performance.now()

/**
 * The clocks of this machine. The time since its start is that of Linux; on macOS the monotonic
 * clock goes on while it sleeps.
 */
export const machineClocks: MachineClocks = {
  wall: () => Date.now(),
  monotonic: machineMonotonic,
  sinceBoot: readUptime,
  boot: readOptional('/proc/sys/kernel/random/boot_id').trim(),
}

/** The server's time in this process. */
export const systemTime: ServerTime & Clock = new ServerClock(machineClocks, startTimer)

/** The time of this process. A timer that waits keeps the process alive. */
export const systemClock: Clock = {
  now: () => systemTime.now(),
  monotonic: machineMonotonic,
  after: startTimer,
}

/**
 * A clock that continues no other server's time: for comparisons of two times of this process, before
 * and after it becomes active.
 */
export function separateClock(): Clock {
  return new ServerClock(machineClocks, startTimer)
}

/** All processes of a machine read the same clock, so that a time of one is a time of another (see the relay). */
function machineMonotonic(): number {
  return STARTED_MS + performance.now()
}

/** Converts hundredths of a second, the unit of the kernel. */
function readUptime(): number | null {
  try {
    const seconds = Number.parseFloat(readFileSync('/proc/uptime', 'latin1'))
    return Number.isFinite(seconds) ? seconds * 1_000 : null
  } catch {
    return null
  }
}

function startTimer(ms: number, callback: () => void): () => void {
  // The shortest timer of Node takes more than a millisecond.
  if (ms <= 0) {
    const immediate = setImmediate(callback)
    return () => clearImmediate(immediate)
  }
  let remaining = ms
  let timer: NodeJS.Timeout
  const arm = () => {
    const step = Math.min(remaining, LONGEST_TIMER_MS)
    remaining -= step
    timer = setTimeout(remaining > 0 ? arm : callback, step)
  }
  arm()
  return () => clearTimeout(timer)
}
