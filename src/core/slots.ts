/** Number of the slot of an item in {@link Slots}. */
export type Slot = number

/**
 * A set of items that come and go with each request. A `Set` or `Map` makes a new table each time its table is full
 * of deleted items, and the old table keeps the new one in memory, with all items. Once one table is in V8's old
 * space, every item that was ever in the tables is copied, until the next full collection. Slots are reused and hold
 * nothing else.
 */
export class Slots<Item extends object> {
  readonly #items: (Item | null)[] = []
  readonly #free: Slot[] = []

  /** Number of items. */
  get size(): number {
    return this.#items.length - this.#free.length
  }

  /** Adds an item that is not in the set. @returns its slot, for {@link remove} */
  add(item: Item): Slot {
    const slot = this.#free.pop() ?? this.#items.length
    this.#items[slot] = item
    return slot
  }

  /** Removes an item. False, without effect, if its slot no longer holds it. */
  remove(slot: Slot, item: Item): boolean {
    // Reading below the first item is slow.
    if (slot < 0 || this.#items[slot] !== item) return false
    this.#items[slot] = null
    this.#free.push(slot)
    return true
  }

  /** The items, in no particular order. Items that are added during the iteration can be left out. */
  *[Symbol.iterator](): Generator<Item> {
    for (const item of this.#items) if (item !== null) yield item
  }
}
