import { CLOCK_STEP_MS } from '../core/server-time.ts'
import type { Clock, ClockMark, ClockReading, ClockStep, ServerTime } from '../ports/clock.ts'

/** The clocks of a machine. */
export interface MachineClocks {
  /** Epoch milliseconds; may be set at any moment. */
  wall(): number
  /** Milliseconds; may stand still while the machine sleeps. */
  monotonic(): number
  /** Milliseconds since the system started, sleep included; null if unknown. */
  sinceBoot(): number | null
  /** Names this start of the system; empty where it has no name. */
  readonly boot: string
}

/** A change of the difference above this one may be a sleep of the machine. */
const SLEEP_MS = 100
/** Part of the passed time that may correct a difference; a clock that chrony slews moves by a twelfth. */
const FOLLOWING = 0.1

/**
 * The server's time. It runs by the monotonic clock and follows the machine's clock only for small differences. Each
 * reading compares both, so that no poll is needed. A sleep of the machine is no step: the time since its start shows
 * it.
 */
export class ServerClock implements Clock, ServerTime {
  readonly after: Clock['after']
  readonly #machine
  #nowMs: number
  #monotonicMs: number
  /** Machine's clock minus the server's time at the last comparison. */
  #apartMs = 0
  /** Sleep of the machine since its start; null for an unknown one. */
  #sleptMs: number | null
  #stepSinceMs: number | null = null

  /** @param after the timers, which no clock moves */
  constructor(machine: MachineClocks, after: Clock['after']) {
    this.#machine = machine
    this.after = after
    this.#nowMs = machine.wall()
    this.#monotonicMs = machine.monotonic()
    this.#sleptMs = this.#slept()
  }

  now(): number {
    this.#advance()
    return Math.floor(this.#nowMs)
  }

  monotonic(): number {
    return this.#machine.monotonic()
  }

  read(): ClockReading {
    const nowMs = this.now()
    return { nowMs, machineMs: Math.round(nowMs + this.#apartMs), step: this.#step() }
  }

  mark(): ClockMark {
    const nowMs = this.now()
    const sinceBootMs = this.#machine.sinceBoot()
    const boot = sinceBootMs === null ? '' : this.#machine.boot
    return { boot, sinceBootMs: Math.round(sinceBootMs ?? 0), nowMs, step: this.#step() }
  }

  resume(nowMs: number, since: number | null): void {
    this.#advance()
    this.#apartMs += this.#nowMs - nowMs
    this.#nowMs = nowMs
    this.#stepSinceMs = Math.abs(this.#apartMs) > CLOCK_STEP_MS ? (since ?? nowMs) : null
  }

  #step(): ClockStep | null {
    return this.#stepSinceMs === null ? null : { byMs: Math.round(this.#apartMs), sinceMs: this.#stepSinceMs }
  }

  #advance(): void {
    const monotonicMs = this.#machine.monotonic()
    const wallMs = this.#machine.wall()
    const passedMs = Math.max(0, monotonicMs - this.#monotonicMs)
    this.#monotonicMs = monotonicMs
    this.#nowMs += passedMs
    if (Math.abs(wallMs - this.#nowMs - this.#apartMs) > SLEEP_MS) this.#addSleep()
    const apartMs = wallMs - this.#nowMs
    const most = Math.abs(apartMs) > CLOCK_STEP_MS ? 0 : passedMs * FOLLOWING
    const followedMs = Math.min(most, Math.max(-most, apartMs))
    this.#nowMs += followedMs
    const isAnother = Math.abs(apartMs - this.#apartMs) > CLOCK_STEP_MS
    this.#apartMs = apartMs - followedMs
    if (Math.abs(this.#apartMs) <= CLOCK_STEP_MS) this.#stepSinceMs = null
    else if (isAnother || this.#stepSinceMs === null) this.#stepSinceMs = Math.floor(this.#nowMs)
  }

  /** The monotonic clock stood still while the machine slept. */
  #addSleep(): void {
    const sleptMs = this.#slept()
    if (sleptMs !== null && this.#sleptMs !== null) this.#nowMs += Math.max(0, sleptMs - this.#sleptMs)
    this.#sleptMs = sleptMs
  }

  #slept(): number | null {
    const sinceBootMs = this.#machine.sinceBoot()
    return sinceBootMs === null ? null : sinceBootMs - this.#machine.monotonic()
  }
}
