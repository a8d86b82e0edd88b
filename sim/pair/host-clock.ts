import { CLOCK_STEP_MS } from '../../src/core/server-time.ts'
import type { MachineClocks } from '../../src/system/server-clock.ts'
import type { VirtualClock } from '../clock.ts'

/** Uptime of a machine at the beginning of the world. */
const UP_MS = 1_000_000
/** By how much a server may follow a wall clock that stands still, before the difference is a step. */
const FOLLOWED_MS = 500

/**
 * The clocks of one machine. Its wall clock can be set or stand still, and so can its monotonic clock; timers go on.
 */
export class HostClock implements MachineClocks {
  readonly #world: VirtualClock
  #setByMs = 0
  #lostMs = 0
  #wallStoodAtMs: number | null = null
  #monotonicStoodAtMs: number | null = null

  constructor(world: VirtualClock, name: string) {
    this.#world = world
    this.boot = name
  }

  /** True if the wall clock shows the time of the world. */
  get isRight(): boolean {
    return this.#setByMs === 0 && this.#wallStoodAtMs === null
  }

  /** Names the run of its system. */
  readonly boot: string

  /** Epoch milliseconds as this machine has them. */
  wall(): number {
    return this.#wallStoodAtMs ?? this.#world.wall() + this.#setByMs
  }

  /** Milliseconds since its system started, which go on while it sleeps. */
  sinceBoot(): number {
    return this.#world.monotonic() + UP_MS
  }

  /** Milliseconds of its monotonic clock. */
  monotonic(): number {
    return this.#monotonicStoodAtMs ?? this.#world.monotonic() - this.#lostMs
  }

  /** Sets the wall clock forwards or backwards. */
  jump(byMs: number): void {
    this.#setByMs += byMs
    if (Math.abs(byMs) <= CLOCK_STEP_MS) this.#world.disagree(Math.abs(byMs))
  }

  /** The wall clock stands still. */
  stopWall(): void {
    this.#wallStoodAtMs ??= this.wall()
    this.#world.disagree(FOLLOWED_MS)
  }

  /** The monotonic clock stands still, as it does while a machine sleeps. */
  stopMonotonic(): void {
    this.#monotonicStoodAtMs ??= this.monotonic()
  }

  /** All clocks go on. The wall clock is right then; the monotonic one has lost the time. */
  go(): void {
    if (this.#monotonicStoodAtMs !== null) this.#lostMs = this.#world.monotonic() - this.#monotonicStoodAtMs
    this.#monotonicStoodAtMs = null
    this.#wallStoodAtMs = null
  }

  /** The wall clock shows the time of the world again. */
  correct(): void {
    this.go()
    this.#setByMs = 0
  }
}
