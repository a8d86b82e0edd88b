import type { NextTurn } from './upload.ts'

/** Something that writes once. */
export interface TurnWrite {
  /** Writes the data that still waits. */
  writeNow(): void
}

/** Number of exchanges from which writes wait for others. Below it a further turn costs more than it saves. */
const LEAST_EXCHANGES = 8
/** Limit of writes that wait. */
const MAX_WAITING = 16

/**
 * Gathers short writes of many exchanges, and makes them one after another at the end of the turn of the event loop.
 * A write wakes the process that reads it. Several in a row wake it once, since it is still busy with the first when
 * the others come.
 */
export class TurnWrites {
  readonly #nextTurn
  readonly #exchanges
  #waiting: TurnWrite[] = []

  /** @param exchanges those that have not ended */
  constructor(nextTurn: NextTurn, exchanges: { readonly size: number }) {
    this.#nextTurn = nextTurn
    this.#exchanges = exchanges
  }

  /** Writes at the end of this turn, in the order of these calls; at once while there are few exchanges. */
  add(write: TurnWrite): void {
    if (this.#exchanges.size < LEAST_EXCHANGES) {
      write.writeNow()
      return
    }
    this.#waiting.push(write)
    if (this.#waiting.length === 1) this.#nextTurn(this.#flush)
    else if (this.#waiting.length >= MAX_WAITING) this.#flush()
  }

  readonly #flush = (): void => {
    const waiting = this.#waiting
    this.#waiting = []
    for (const write of waiting) write.writeNow()
  }
}
