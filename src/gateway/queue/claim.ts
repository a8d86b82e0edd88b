import type { WorkerId } from '../../core/ids.ts'
import type { ServedAt } from '../../core/workers/socket-address.ts'
import type { Outcome, Reservation } from './reservation.ts'
import type { Slot } from './tracked-target.ts'

/** A place at a worker that one request has. */
export class Claim implements Reservation {
  readonly workerId: WorkerId
  readonly servedAt: ServedAt
  readonly waitedMs: number
  readonly #slot: Slot
  readonly #released: (slot: Slot, outcome: Outcome) => void
  #isOver = false

  /** @param released is told once, when the request is over */
  constructor(slot: Slot, waitedMs: number, released: (slot: Slot, outcome: Outcome) => void) {
    this.workerId = slot.workerId
    this.servedAt = slot.servedAt!
    this.waitedMs = waitedMs
    this.#slot = slot
    this.#released = released
  }

  release(outcome: Outcome): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#released(this.#slot, outcome)
  }
}
