import type { Clock } from '../../src/ports/clock.ts'

interface Timer {
  readonly dueMs: number
  readonly order: number
  readonly callback: () => void
}

/** Number of turns of the event loop after which all work is done that does not wait for time. */
const TURNS = 3

/** A clock that a test advances. Hours pass in milliseconds, and each run is the same. */
export class VirtualClock implements Clock {
  readonly startMs: number
  /** Number of operations that take real time; virtual time stops until they end. */
  busy = 0
  #nowMs: number
  #setByMs = 0
  #order = 0
  readonly #timers = new Set<Timer>()

  constructor(startMs = 1_800_000_000_000) {
    this.startMs = startMs
    this.#nowMs = startMs
  }

  /** Milliseconds since the clock was created. */
  get elapsedMs(): number {
    return this.#nowMs - this.startMs
  }

  now(): number {
    return this.#nowMs + this.#setByMs
  }

  /** Sets the wall clock forwards or backwards; timers ignore that. */
  set(byMs: number): void {
    this.#setByMs += byMs
  }

  monotonic(): number {
    return this.#nowMs - this.startMs
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { dueMs: this.#nowMs + Math.max(0, ms), order: this.#order++, callback }
    this.#timers.add(timer)
    return () => this.#timers.delete(timer)
  }

  /** Waits until all work is done that needs no time. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < TURNS; turn += 1) {
      await new Promise<void>(resolve => setImmediate(resolve))
      if (this.busy > 0) turn = -1
    }
  }

  /** Fires the timers of this instant, as a turn of the event loop does. */
  fireDue(): void {
    for (let timer = this.#next(this.#nowMs); timer !== undefined; timer = this.#next(this.#nowMs)) {
      this.#timers.delete(timer)
      timer.callback()
    }
  }

  /** Advances the time: each timer fires at its own instant, and its work is done before the next one. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms
    await this.settle()
    for (let timer = this.#next(endMs); timer !== undefined; timer = this.#next(endMs)) {
      this.#nowMs = Math.max(this.#nowMs, timer.dueMs)
      this.#timers.delete(timer)
      timer.callback()
      await this.settle()
    }
    this.#nowMs = endMs
  }

  /**
   * Advances the time at once, like a machine that slept: timers that become due during the
   * jump fire late, at its end.
   */
  async leap(ms: number): Promise<void> {
    await this.settle()
    this.#nowMs += ms
    await this.advance(0)
  }

  /** Advances the time until a condition is true; false when it is not within `maxMs`. */
  async until(happened: () => boolean | Promise<boolean>, maxMs: number): Promise<boolean> {
    const endMs = this.#nowMs + maxMs
    await this.settle()
    while (!(await happened())) {
      const timer = this.#next(endMs)
      if (timer === undefined) return false
      this.#nowMs = Math.max(this.#nowMs, timer.dueMs)
      this.#timers.delete(timer)
      timer.callback()
      await this.settle()
    }
    return true
  }

  #next(endMs: number): Timer | undefined {
    let first: Timer | undefined
    for (const timer of this.#timers) {
      if (timer.dueMs > endMs) continue
      if (
        first === undefined ||
        timer.dueMs < first.dueMs ||
        (timer.dueMs === first.dueMs && timer.order < first.order)
      )
        first = timer
    }
    return first
  }
}
