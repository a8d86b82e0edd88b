import type { Candidate } from '../../core/balancing/balance.ts'
import { type Ejection, NOT_EJECTED } from '../../core/balancing/outlier-ejection.ts'
import type { WorkerId } from '../../core/ids.ts'
import type { ServedAt, Target, TargetState } from '../../core/workers/socket-address.ts'
import type { RequestOutcome, Reservation } from './reservation.ts'

/**
 * A worker in the table of requests in flight. `nowMs` is monotonic except for the idle times, which are wall-clock
 * times.
 */
export class TrackedTarget implements Candidate {
  readonly workerId: WorkerId
  version = 0
  state: TargetState = 'starting'
  servedAt: ServedAt | null = null
  inFlight = 0
  usedAt = 0
  ejection: Ejection = NOT_EJECTED
  /** End of its last request; before its first one, the time at which it became ready or, before that, was added. */
  idleSinceMs: number
  /** True if it has ended; its requests in flight are finishing. */
  ended = false
  /** Start of its busy time, monotonic; null while it is idle. */
  #busySinceMs: number | null = null
  /** Busy time before that, in ms. */
  #busyMs = 0
  /** Cancels the timer that ends an ejection or a trial. */
  cancelTimer: () => void = () => {}

  constructor(workerId: WorkerId, nowMs: number) {
    this.workerId = workerId
    this.idleSinceMs = nowMs
  }

  /** Counts one more request in flight. */
  begin(nowMs: number): void {
    this.inFlight += 1
    this.#busySinceMs ??= nowMs
  }

  /** Counts one request less. */
  end(nowMs: number): void {
    this.inFlight -= 1
    if (this.inFlight > 0) return
    this.#busyMs = this.busyMs(nowMs)
    this.#busySinceMs = null
  }

  /** Total busy time, in ms. */
  busyMs(nowMs: number): number {
    return this.#busyMs + (this.#busySinceMs === null ? 0 : nowMs - this.#busySinceMs)
  }

  /**
   * Takes over the state that the control loops report. A worker that had ended is a new process, so its ejection is
   * over.
   */
  update({ version, state, servedAt }: Target, nowMs: number): void {
    if (this.ended) {
      this.ended = false
      this.state = 'starting'
      this.ejection = NOT_EJECTED
      this.usedAt = 0
      this.#busyMs = 0
      this.idleSinceMs = nowMs
    }
    if (state === 'ready' && this.state === 'starting' && this.usedAt === 0) this.idleSinceMs = nowMs
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
    this.#target = target
    this.#released = released
  }

  release(outcome: RequestOutcome): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#released(this.#target, outcome)
  }
}
