import { AppError } from '../../src/core/errors.ts'
import type { LeaseHolder, LeaseServer, LeaseTable } from '../../src/system/coordination/lease-term.ts'
import type { Life } from '../life.ts'
import type { StoreLink } from './store-link.ts'

/** Duration of a lease, in milliseconds of the store's clock. */
export const LEASE_MS = 6_000
/** Limit of one call about the lease. */
const ANSWER_MS = 3_000

/** Holder of the lease, as in the store. */
export interface LeaseState {
  /** Grows with each take; 0 before the first. */
  readonly epoch: number
  readonly holder: string
  readonly server: LeaseServer | null
  readonly takenAtMs: number
  /** On the clock of the store. */
  readonly untilMs: number
  readonly released: boolean
}

/**
 * The row of the lease in the store. All its instants are those of the store's clock, and
 * each call is one transaction.
 */
export class LeaseRow {
  readonly #nowMs: () => number
  readonly #taken: (previous: LeaseState, now: LeaseState) => void
  readonly #checksExpiry: boolean
  #state: LeaseState = { epoch: 0, holder: '', server: null, takenAtMs: 0, untilMs: 0, released: true }

  /**
   * @param nowMs the clock of the store
   * @param taken called at the instant at which a server takes it
   * @param checksExpiry true if an unexpired lease stays with its server; false to test the checkers
   */
  constructor(nowMs: () => number, onTaken: (previous: LeaseState, now: LeaseState) => void, checksExpiry = true) {
    this.#nowMs = nowMs
    this.#taken = onTaken
    this.#checksExpiry = checksExpiry
  }

  /** Content of the row. */
  get state(): LeaseState {
    return this.#state
  }

  /** The row as one process reaches it, through the connection of its machine. */
  over(link: StoreLink, life: Life): LeaseTable {
    const ask = <Value>(run: () => Value) =>
      within(
        life,
        link.ask(life, async () => run()),
      )
    return {
      read: () => ask(() => ({ ...this.#state, leftMs: this.#checksExpiry ? this.#state.untilMs - this.#nowMs() : 0 })),
      take: (holder, server, leaseMs) => ask(() => this.#take(holder, server, leaseMs)),
      renew: (holder, _server, leaseMs) => ask(() => this.#renew(holder, leaseMs)),
      // A transaction takes no time here: no transaction of an older epoch is under way in the store.
      passWriters: () => ask(() => true),
      release: holder =>
        ask(() => {
          if (this.#isHeldBy(holder)) this.#state = { ...this.#state, untilMs: this.#nowMs(), released: true }
        }),
    }
  }

  #take(holder: string, server: LeaseServer, leaseMs: number): number | null {
    const previous = this.#state
    const nowMs = this.#nowMs()
    const isFree = previous.released || previous.untilMs < nowMs || previous.server?.instance === server.instance
    if (this.#checksExpiry && !isFree) return null
    const epoch = previous.epoch + 1
    this.#state = { epoch, holder, server, takenAtMs: nowMs, untilMs: nowMs + leaseMs, released: false }
    this.#taken(previous, this.#state)
    return epoch
  }

  /** Lets the lease last longer, also one that has run out and that nobody took. */
  #renew(holder: LeaseHolder, leaseMs: number): boolean {
    if (!this.#isHeldBy(holder) || this.#state.released) return false
    this.#state = { ...this.#state, untilMs: this.#nowMs() + leaseMs }
    return true
  }

  #isHeldBy({ epoch, holder }: LeaseHolder): boolean {
    return this.#state.epoch === epoch && this.#state.holder === holder
  }
}

/** One call about the lease; fails when it takes too long. */
function within<Value>(life: Life, call: Promise<Value>): Promise<Value> {
  let cancel = () => {}
  const late = new Promise<never>((_, reject) => {
    cancel = life.after(ANSWER_MS, () => reject(new AppError('unavailable', 'the store does not answer')))
  })
  return Promise.race([call, late]).finally(cancel)
}
