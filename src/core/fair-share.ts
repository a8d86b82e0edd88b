/** Fair shares: limits of one holder of a bounded room, such as an account, a worker or a load-balancing endpoint. */

/**
 * Largest part of a room that one holder may have. It leaves a part for others. It is rounded up, so that the first
 * holder of a room of one fits, and each later holder fits while any room is free.
 * @param room bytes or number of places: the whole room if a holder can be made to yield or its share is fixed; else
 * the part that other holders left free
 * @param left part that the holder leaves for others, between 0 and 1
 */
export function fairShare(room: number, left: number): number {
  return room - Math.floor(room * left)
}

/** Places that only holders with few places get. */
export interface LastPlaces {
  /** Number of these places. */
  readonly kept: number
  /** A holder with fewer places than this is one with few. */
  readonly few: number
}

/**
 * True if a holder may have one more of the free places. The last ones are for holders with few, so that a busy
 * holder does not keep others waiting.
 * @param held number of places that the holder has
 */
export function mayHavePlace(free: number, held: number, { kept, few }: LastPlaces): boolean {
  return free > (held < few ? 0 : kept)
}

/** Amounts by holder. A holder with zero has no entry, so that memory is bounded by the holders in use. */
export class Holdings<Holder> {
  readonly #amounts = new Map<Holder, number>()

  /** Amount of a holder; 0 by default. */
  of(holder: Holder): number {
    return this.#amounts.get(holder) ?? 0
  }

  /**
   * Changes the amount of a holder.
   * @param amount added amount; negative to subtract
   * @returns the new amount
   */
  add(holder: Holder, amount: number): number {
    const held = this.of(holder) + amount
    if (held > 0) this.#amounts.set(holder, held)
    else this.#amounts.delete(holder)
    return held
  }

  /** The holders with their amounts, in no particular order. */
  [Symbol.iterator](): Iterator<[Holder, number]> {
    return this.#amounts.entries()
  }
}
