/**
 * Collects the keys loaded in the same tick and reads them together. It caches nothing: a later load sees
 * later changes.
 */
export class OperationBatch<Key, Value> {
  readonly #read: (keys: readonly Key[]) => Promise<ReadonlyMap<Key, Value>>
  #open: { readonly keys: Set<Key>; readonly values: Promise<ReadonlyMap<Key, Value>> } | null = null

  constructor(read: (keys: readonly Key[]) => Promise<ReadonlyMap<Key, Value>>) {
    this.#read = read
  }

  /** Loads one key. Null: the read did not find it. */
  async load(key: Key): Promise<Value | null> {
    this.#open ??= this.#begin()
    const { keys, values } = this.#open
    keys.add(key)
    return (await values).get(key) ?? null
  }

  #begin() {
    const keys = new Set<Key>()
    // Resolvers of one list run in the same tick, so this read has the keys of all of them.
    const values = Promise.resolve().then(() => {
      this.#open = null
      return this.#read([...keys])
    })
    return { keys, values }
  }
}
