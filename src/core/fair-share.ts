/** Fair shares: how much of a bounded room one holder may have, such as an account, a worker or a load-balancing endpoint. */

/**
 * The most that one holder may have of a room: all but the part that it leaves to others. It is rounded up, so that the first holder of a room of one
 * finds room, and each later holder finds some while any is free.
 * @param room bytes or number of places: the whole room where a holder can be made to yield or its share is fixed; else what other holders have not taken
 * @param left the part that it leaves, between 0 and 1
 */
export function fairShare(room: number, left: number): number {
  return room - Math.floor(room * left)
}

/** Places that only holders with few of them get. */
export interface LastPlaces {
  /** Number of these places. */
  readonly kept: number
  /** A holder with fewer places than this has few. */
  readonly few: number
}

/**
 * True when a holder may have one more of the free places: the last ones are for holders with few, so that nobody waits for one busy holder.
 * @param held places that the holder has
 */
export function mayHavePlace(free: number, held: number, { kept, few }: LastPlaces): boolean {
  return free > (held < few ? 0 : kept)
}

/** Amounts by holder. A holder without any has no entry, so that memory is bounded by what is held. */
export class Holdings<Holder> {
  readonly #amounts = new Map<Holder, number>()

  /** What a holder has; 0 for none. */
  of(holder: Holder): number {
    return this.#amounts.get(holder) ?? 0
  }

  /** Adds to what a holder has, or takes from it. @param amount below 0 to take. @returns what it has then */
  add(holder: Holder, amount: number): number {
    const held = this.of(holder) + amount
    if (held > 0) this.#amounts.set(holder, held)
    else this.#amounts.delete(holder)
    return held
  }

  /** The holders with what they have, in no particular order. */
  [Symbol.iterator](): Iterator<[Holder, number]> {
    return this.#amounts.entries()
  }
}
