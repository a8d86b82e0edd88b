/** An item of {@link Slots} with the number of its slot. */
export type Slot = number

/**
 * A set of items that come and go with each request. A `Set` or `Map` makes a new table each time its table is full of items that were deleted, and
 * the old table keeps the new one in memory, with all that it holds. Once one of them is in V8's old space, everything is copied that was ever in them,
 * until the next full collection. Slots are used again and hold nothing else.
 */
export class Slots<Item extends object> {
  readonly #items: (Item | null)[] = []
  readonly #free: Slot[] = []

  /** Number of items. */
  get size(): number {
    return this.#items.length - this.#free.length
  }

  /** Adds an item that is not there. @returns its slot, for {@link remove} */
  add(item: Item): Slot {
    const slot = this.#free.pop() ?? this.#items.length
    this.#items[slot] = item
    return slot
  }

  /** Removes an item. False, without effect, when it is not in this slot any more. */
  remove(slot: Slot, item: Item): boolean {
    if (this.#items[slot] !== item) return false
    this.#items[slot] = null
    this.#free.push(slot)
    return true
  }

  /** The items, in no particular order. Those that are added meanwhile may be left out. */
  *[Symbol.iterator](): Generator<Item> {
    for (const item of this.#items) if (item !== null) yield item
  }
}
