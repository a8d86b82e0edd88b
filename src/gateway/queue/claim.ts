import type { WorkerId } from '../../core/ids.ts'
import type { ServedAt } from '../../core/workers/socket-address.ts'
import type { RequestOutcome, Reservation } from './reservation.ts'
import type { TrackedTarget } from './tracked-target.ts'

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
