import type { Reservation, WorkerRequest } from './reservation.ts'

/** A request in a line. */
export class QueuedRequest {
  readonly wanted: WorkerRequest
  /** Grows in the order of arrival, over all lines. */
  readonly place: number
  /** Since when it waits: on the clock that only grows, and on the wall. */
  readonly sinceMs: number
  readonly sinceWallMs: number
  readonly promise: Promise<Reservation>
  resolve!: (reservation: Reservation) => void
  reject!: (reason: unknown) => void
  /** Takes its timer and its listener back. */
  close: () => void = () => {}
  queue: WaitQueue | null = null
  before: QueuedRequest | null = null
  after: QueuedRequest | null = null

  constructor(wanted: WorkerRequest, place: number, clock: { monotonic(): number; now(): number }) {
    this.wanted = wanted
    this.place = place
    this.sinceMs = clock.monotonic()
    this.sinceWallMs = clock.now()
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
    })
  }

  /** Whether it does not want some workers, so that others behind it may be served before it. */
  get isPicky(): boolean {
    return this.wanted.avoid.length > 0
  }
}

/** Requests in the order of their arrival. Whoever leaves, from wherever, does so at no cost. */
export class WaitQueue {
  first: QueuedRequest | null = null
  size = 0
  /** How many of them are picky. */
  picky = 0
  #last: QueuedRequest | null = null

  push(waiter: QueuedRequest): void {
    waiter.queue = this
    waiter.before = this.#last
    if (this.#last === null) this.first = waiter
    else this.#last.after = waiter
    this.#last = waiter
    this.#count(waiter, 1)
  }

  remove(waiter: QueuedRequest): void {
    const { before, after } = waiter
    if (before === null) this.first = after
    else before.after = after
    if (after === null) this.#last = before
    else after.before = before
    waiter.before = null
    waiter.after = null
    waiter.queue = null
    this.#count(waiter, -1)
  }

  /** All of them, for when many may leave. */
  all(): QueuedRequest[] {
    const all: QueuedRequest[] = []
    for (let waiter = this.first; waiter !== null; waiter = waiter.after) all.push(waiter)
    return all
  }

  #count(waiter: QueuedRequest, by: 1 | -1): void {
    this.size += by
    if (waiter.isPicky) this.picky += by
  }
}
