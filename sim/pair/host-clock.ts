import type { VirtualClock } from '../clock.ts'

/** The clocks of one machine. Its wall clock can be set or stand still, and so can its monotonic clock; timers go on. */
export class HostClock {
  readonly #world: VirtualClock
  #setByMs = 0
  #lostMs = 0
  #wallStoodAtMs: number | null = null
  #monotonicStoodAtMs: number | null = null

  constructor(world: VirtualClock) {
    this.#world = world
  }

  /** Whether the wall clock shows the time of the world. */
  get isRight(): boolean {
    return this.#setByMs === 0 && this.#wallStoodAtMs === null
  }

  /** Epoch milliseconds as this machine has them. */
  now(): number {
    const nowMs = this.#wallStoodAtMs ?? this.#world.now() + this.#setByMs
    this.#world.shown(nowMs)
    return nowMs
  }

  /** Milliseconds of its monotonic clock. */
  monotonic(): number {
    return this.#monotonicStoodAtMs ?? this.#world.monotonic() - this.#lostMs
  }

  /** Sets the wall clock forwards or backwards. */
  jump(byMs: number): void {
    this.#setByMs += byMs
    this.#world.disagree(Math.abs(byMs))
  }

  /** The wall clock stands still. */
  stopWall(): void {
    this.#wallStoodAtMs ??= this.now()
  }

  /** The monotonic clock stands still, as it does while a machine sleeps. */
  stopMonotonic(): void {
    this.#monotonicStoodAtMs ??= this.monotonic()
  }

  /** All clocks go on. The wall clock is right then; the monotonic one has lost the time. */
  go(): void {
    if (this.#monotonicStoodAtMs !== null) this.#lostMs = this.#world.monotonic() - this.#monotonicStoodAtMs
    if (this.#wallStoodAtMs !== null) this.#world.disagree(Math.abs(this.#world.now() - this.#wallStoodAtMs))
    this.#monotonicStoodAtMs = null
    this.#wallStoodAtMs = null
  }

  /** The wall clock shows the time of the world again. */
  correct(): void {
    this.go()
    this.#setByMs = 0
  }
}
