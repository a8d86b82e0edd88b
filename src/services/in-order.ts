/** Keeps the order of what comes in where some of it takes longer to read: of each key, what came later is done later. */
export class InOrder<Key> {
  readonly #latest = new Map<Key, Promise<void>>()

  /**
   * Does something once all that came before it for the same key is done; at once where nothing is under way.
   * @param isSlow whether what comes after it has to wait for it
   */
  run<Value>(key: Key, isSlow: boolean, work: () => Promise<Value>): Promise<Value> {
    const before = this.#latest.get(key)
    if (before === undefined && !isSlow) return work()
    const result = before === undefined ? work() : before.then(work)
    const over = () => {
      if (this.#latest.get(key) === end) this.#latest.delete(key)
    }
    const end: Promise<void> = result.then(over, over)
    this.#latest.set(key, end)
    return result
  }
}
