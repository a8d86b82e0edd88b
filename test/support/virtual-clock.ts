import type { Clock } from '../../src/ports/clock.ts'

interface Timer {
  readonly dueMs: number
  readonly order: number
  readonly callback: () => void
}

/** Turns of the event loop after which everything that can go on without time has gone on. */
const TURNS = 3

/** A clock that stands still until a test moves it. Hours pass in milliseconds, and every run passes them alike. */
export class VirtualClock implements Clock {
  readonly startMs: number
  /** How many things go on that take real time; virtual time stands still meanwhile. */
  busy = 0
  #nowMs: number
  #setByMs = 0
  #order = 0
  readonly #timers = new Set<Timer>()

  constructor(startMs = 1_800_000_000_000) {
    this.startMs = startMs
    this.#nowMs = startMs
  }

  /** Milliseconds since the clock was made. */
  get elapsedMs(): number {
    return this.#nowMs - this.startMs
  }

  now(): number {
    return this.#nowMs + this.#setByMs
  }

  /** Sets what the clock on the wall shows, forwards or backwards; timers do not care. */
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

  /** Lets everything happen that needs no time. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < TURNS; turn += 1) {
      await new Promise<void>(resolve => setImmediate(resolve))
      if (this.busy > 0) turn = -1
    }
  }

  /** Lets time pass: each timer fires at its own instant, and what it sets off happens before the next. */
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

  /** Lets time pass at once, as on a machine that slept: timers that are due meanwhile fire late, at the end. */
  async leap(ms: number): Promise<void> {
    await this.settle()
    this.#nowMs += ms
    await this.advance(0)
  }

  /** Lets time pass until something is true; false when it was not within `maxMs`. */
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
