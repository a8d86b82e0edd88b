import type { Candidate } from '../../core/balancing/balance.ts'
import { type Ejection, NOT_EJECTED } from '../../core/balancing/outlier-ejection.ts'
import type { WorkerId } from '../../core/ids.ts'
import type { ServedAt, Target, TargetState } from '../../core/workers/socket-address.ts'
import type { Clock } from '../../ports/clock.ts'
import type { WorkerSlot, WorkerSlots } from '../threads/worker-slots.ts'
import type { RequestOutcome, Reservation } from './reservation.ts'

/** A worker in the table of requests in flight. With a slot in shared memory, other threads count there as well. */
export class TrackedTarget implements Candidate {
  readonly workerId: WorkerId
  version = 0
  state: TargetState = 'starting'
  servedAt: ServedAt | null = null
  ejection: Ejection = NOT_EJECTED
  /** True if it has ended; its requests in flight are finishing. */
  ended = false
  /** Its slot in shared memory; null where no other thread counts its requests. */
  readonly slot: WorkerSlot | null
  readonly #slots
  readonly #clock
  #inFlight = 0
  #usedAt = 0
  #idleSinceMs: number
  #limit: number | null = null
  /** Start of its busy time, monotonic; null while it is idle. */
  #busySinceMs: number | null = null
  /** Busy time before that, in ms. */
  #busyMs = 0
  /** Cancels the timer that ends an ejection or a trial. */
  cancelTimer: () => void = () => {}

  /** @param slots shared memory with slots for workers; null where one thread has all requests */
  constructor(workerId: WorkerId, clock: Pick<Clock, 'now' | 'monotonic'>, slots: WorkerSlots | null) {
    this.workerId = workerId
    this.#clock = clock
    this.#slots = slots
    this.slot = slots?.take(clock.monotonic()) ?? null
    this.#idleSinceMs = clock.now()
  }

  get inFlight(): number {
    return this.slot === null ? this.#inFlight : this.#slots!.inFlight(this.slot)
  }

  /** Grows with each use, over all workers; 0 before the first one. */
  get usedAt(): number {
    return this.slot === null ? this.#usedAt : this.#slots!.usedAt(this.slot)
  }

  /**
   * End of its last request, as wall-clock time; before its first one, the time at which it became ready or, before
   * that, was added.
   */
  get idleSinceMs(): number {
    if (this.slot === null) return this.#idleSinceMs
    return this.#clock.now() - (this.#clock.monotonic() - this.#slots!.idleSince(this.slot))
  }

  /**
   * Counts one more request in flight.
   * @param use a number that grows with each use
   * @returns false without effect if another thread took the last place
   */
  begin(use: number): boolean {
    const nowMs = this.#clock.monotonic()
    if (this.slot !== null) return this.#slots!.begin(this.slot, nowMs, false)
    this.#inFlight += 1
    this.#usedAt = use
    this.#busySinceMs ??= nowMs
    return true
  }

  /** Counts one request less. */
  end(): void {
    const nowMs = this.#clock.monotonic()
    if (this.slot !== null) {
      this.#slots!.end(this.slot, nowMs)
      return
    }
    this.#inFlight -= 1
    if (this.#inFlight > 0) return
    this.#busyMs = this.busyMs()
    this.#busySinceMs = null
    this.#idleSinceMs = this.#clock.now()
  }

  /** Total busy time, in ms. */
  busyMs(): number {
    const nowMs = this.#clock.monotonic()
    if (this.slot !== null) return this.#slots!.busyMs(this.slot, nowMs)
    return this.#busyMs + (this.#busySinceMs === null ? 0 : nowMs - this.#busySinceMs)
  }

  /** Shows other threads whether it takes requests, and how many. @param limit maximum in flight; null for no limit */
  rule(limit: number | null = this.#limit): void {
    this.#limit = limit
    if (this.slot === null) return
    const isOpen = !this.ended && this.state === 'ready' && this.servedAt !== null
    const isWatched = this.ended || this.state === 'draining' || this.ejection !== NOT_EJECTED
    this.#slots!.rule(this.slot, { isOpen, limit, isWatched, ejection: this.ejection })
  }

  /** Gives its slot back. It has ended and has no requests. */
  close(): void {
    if (this.slot !== null) this.#slots!.giveBack(this.slot)
  }

  /**
   * Takes over the state that the control loops report. A worker that had ended is a new process, so its ejection is
   * over.
   */
  update({ version, state, servedAt }: Target): void {
    if (this.ended) {
      this.ended = false
      this.state = 'starting'
      this.ejection = NOT_EJECTED
      this.#usedAt = 0
      this.#busyMs = 0
      if (this.slot !== null) this.#slots!.restart(this.slot, this.#clock.monotonic())
      this.#idleSinceMs = this.#clock.now()
    }
    if (state === 'ready' && this.state === 'starting' && this.usedAt === 0) {
      this.#idleSinceMs = this.#clock.now()
      if (this.slot !== null) this.#slots!.becameIdle(this.slot, this.#clock.monotonic())
    }
    this.version = version
    this.state = state
    this.servedAt = servedAt
  }
}

/** A claim of one request on a worker; it counts as in flight there until it is released. */
export class TargetClaim implements Reservation {
  readonly workerId: WorkerId
  readonly servedAt: ServedAt
  readonly waitedMs: number
  readonly slot: WorkerSlot | null
  readonly #target
  readonly #released
  #isOver = false

  /** @param released called once, when the request is over */
  constructor(
    target: TrackedTarget,
    waitedMs: number,
    released: (target: TrackedTarget, outcome: RequestOutcome) => void,
  ) {
    this.workerId = target.workerId
    this.servedAt = target.servedAt!
    this.waitedMs = waitedMs
    this.slot = target.slot
    this.#target = target
    this.#released = released
  }

  release(outcome: RequestOutcome): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#released(this.#target, outcome)
  }
}
