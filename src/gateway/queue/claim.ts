import type { WorkerId } from '../../core/ids.ts'
import type { ServedAt } from '../../core/workers/socket-address.ts'
import type { RequestOutcome, Reservation } from './reservation.ts'
import type { TrackedTarget } from './tracked-target.ts'

/** A place at a worker that one request has. */
export class TargetClaim implements Reservation {
  readonly workerId: WorkerId
  readonly servedAt: ServedAt
  readonly waitedMs: number
  readonly #slot: TrackedTarget
  readonly #released: (slot: TrackedTarget, outcome: RequestOutcome) => void
  #isOver = false

  /** @param released is told once, when the request is over */
  constructor(slot: TrackedTarget, waitedMs: number, released: (slot: TrackedTarget, outcome: RequestOutcome) => void) {
    this.workerId = slot.workerId
    this.servedAt = slot.servedAt!
    this.waitedMs = waitedMs
    this.#slot = slot
    this.#released = released
  }

  release(outcome: RequestOutcome): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#released(this.#slot, outcome)
  }
}
