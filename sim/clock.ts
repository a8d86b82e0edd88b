import { CLOCK_STEP_MS } from '../src/core/server-time.ts'
import type { Clock } from '../src/ports/clock.ts'

/** Epoch milliseconds at which every simulation begins. */
export const EPOCH_MS = 1_767_225_600_000

interface Timer {
  readonly atMs: number
  readonly order: number
  callback: (() => void) | null
}

/**
 * Time that advances only on request: a heap of timers, of which the earliest fires next. The wall clock of the
 * machine can be set, as on a real one; the time of the world, by which the checkers go, and the timers ignore that.
 */
export class VirtualClock implements Clock {
  #sinceStartMs = 0
  /** Lead of the wall clock over the time of the world. */
  #setByMs = 0
  /** By how much the time of the world has moved, because a server has taken that of the wall clock. */
  #takenMs = 0
  #slackMs = 0
  #order = 0
  #fired = 0
  readonly #heap: Timer[] = []

  /** Number of timers that have fired. */
  get fired(): number {
    return this.#fired
  }

  /** Number of timers that were ever set. */
  get timers(): number {
    return this.#order
  }

  /** Epoch milliseconds of the simulated world, as a server has them whose clock was never wrong. */
  now(): number {
    return EPOCH_MS + this.#sinceStartMs + this.#takenMs
  }

  /** Epoch milliseconds as the machine shows them. */
  wall(): number {
    return this.now() + this.#setByMs
  }

  /** The latest time that a server may have. */
  latest(): number {
    return this.now() + this.#slackMs
  }

  /** A difference of clocks that a server may follow. */
  disagree(byMs: number): void {
    this.#slackMs += byMs
  }

  /** Sets the wall clock forwards or backwards. */
  set(byMs: number): void {
    this.#setByMs += byMs
    if (Math.abs(byMs) <= CLOCK_STEP_MS) this.disagree(Math.abs(byMs))
  }

  /** Sets the wall clock to the time of the world and some more. */
  show(byMs: number): void {
    this.set(byMs - this.#setByMs)
  }

  /** A server has taken the time of the wall clock. */
  take(byMs: number): void {
    this.#takenMs += byMs
    this.#setByMs -= byMs
  }

  /** By how much the time of a server may differ from that of the world. */
  get slackMs(): number {
    return this.#slackMs
  }

  /** Milliseconds since the simulation began. */
  monotonic(): number {
    return this.#sinceStartMs
  }

  /** Timers of the same instant fire in the order in which they were set. */
  after(ms: number, callback: () => void): () => void {
    const wait = Number.isFinite(ms) ? Math.max(0, Math.ceil(ms)) : 0
    const timer: Timer = { atMs: this.#sinceStartMs + wait, order: this.#order, callback }
    this.#order += 1
    this.#push(timer)
    return () => {
      timer.callback = null
    }
  }

  /** Advances to the next timer and fires it, unless it is due after `limitMs`. Returns false if no timer was due. */
  advance(limitMs: number): boolean {
    for (;;) {
      const next = this.#heap[0]
      if (next === undefined || next.atMs > limitMs) {
        this.#sinceStartMs = Math.max(this.#sinceStartMs, limitMs)
        return false
      }
      this.#pop()
      const { callback } = next
      if (callback === null) continue
      this.#sinceStartMs = Math.max(this.#sinceStartMs, next.atMs)
      this.#fired += 1
      callback()
      return true
    }
  }

  #push(timer: Timer): void {
    const heap = this.#heap
    let at = heap.length
    heap.push(timer)
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!isBefore(timer, heap[parent]!)) break
      heap[at] = heap[parent]!
      at = parent
    }
    heap[at] = timer
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop()!
    if (heap.length === 0) return
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child += 1
      if (!isBefore(heap[child]!, last)) break
      heap[at] = heap[child]!
      at = child
    }
    heap[at] = last
  }
}

function isBefore(a: Timer, b: Timer): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)
}
