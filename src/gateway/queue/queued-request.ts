import type { Reservation, WorkerRequest } from './reservation.ts'

/** A request in a request queue. */
export class QueuedRequest {
  readonly request: WorkerRequest
  /** Grows in the order of arrival, over all endpoints. */
  readonly order: number
  /** Start of its wait: monotonic, and as wall-clock time. */
  readonly sinceMs: number
  readonly sinceWallMs: number
  readonly promise: Promise<Reservation>
  resolve!: (reservation: Reservation) => void
  reject!: (reason: unknown) => void
  /** Removes its timer and its abort listener. */
  close: () => void = () => {}
  queue: RequestList | null = null
  before: QueuedRequest | null = null
  after: QueuedRequest | null = null

  constructor(request: WorkerRequest, place: number, clock: { monotonic(): number; now(): number }) {
    this.request = request
    this.order = place
    this.sinceMs = clock.monotonic()
    this.sinceWallMs = clock.now()
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
    })
  }

  /** True if it avoids some workers, so that requests behind it may be dispatched before it. */
  get isPicky(): boolean {
    return this.request.avoid.length > 0
  }
}

/** Requests in the order of arrival: a linked list, so that any of them is removed in constant time. */
export class RequestList {
  first: QueuedRequest | null = null
  size = 0
  /** Number of requests that avoid some workers. */
  picky = 0
  #last: QueuedRequest | null = null

  push(queued: QueuedRequest): void {
    queued.queue = this
    queued.before = this.#last
    if (this.#last === null) this.first = queued
    else this.#last.after = queued
    this.#last = queued
    this.#count(queued, 1)
  }

  remove(queued: QueuedRequest): void {
    const { before, after } = queued
    if (before === null) this.first = after
    else before.after = after
    if (after === null) this.#last = before
    else after.before = before
    queued.before = null
    queued.after = null
    queued.queue = null
    this.#count(queued, -1)
  }

  /** A copy, for callers that remove some on the way. */
  all(): QueuedRequest[] {
    const all: QueuedRequest[] = []
    for (let queued = this.first; queued !== null; queued = queued.after) all.push(queued)
    return all
  }

  #count(queued: QueuedRequest, by: 1 | -1): void {
    this.size += by
    if (queued.isPicky) this.picky += by
  }
}
