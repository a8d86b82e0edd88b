/** Keeps the order of work with the same key where parts of it take different times. */
export class InOrder<Key> {
  readonly #latest = new Map<Key, Promise<void>>()

  /**
   * Does the work once all earlier work with the same key is done; at once when no such work runs.
   * @param isSlow true when later work has to wait for it
   */
  run<Value>(key: Key, isSlow: boolean, work: () => Promise<Value>): Promise<Value> {
    const previous = this.#latest.get(key)
    if (previous === undefined && !isSlow) return work()
    const result = previous === undefined ? work() : previous.then(work)
    const over = () => {
      if (this.#latest.get(key) === end) this.#latest.delete(key)
    }
    const end: Promise<void> = result.then(over, over)
    this.#latest.set(key, end)
    return result
  }
}
