/**
 * Collects what is asked for in one moment and reads it at once. It keeps nothing: who asks later sees what has changed
 * meanwhile.
 */
export class OperationBatch<Key, Value> {
  readonly #read: (keys: readonly Key[]) => Promise<ReadonlyMap<Key, Value>>
  #open: { readonly keys: Set<Key>; readonly values: Promise<ReadonlyMap<Key, Value>> } | null = null

  constructor(read: (keys: readonly Key[]) => Promise<ReadonlyMap<Key, Value>>) {
    this.#read = read
  }

  /** Null for a key that the reading did not find. */
  async load(key: Key): Promise<Value | null> {
    this.#open ??= this.#begin()
    const { keys, values } = this.#open
    keys.add(key)
    return (await values).get(key) ?? null
  }

  #begin() {
    const keys = new Set<Key>()
    // Resolvers of one list run one after the other without a pause, so all of them have asked by then.
    const values = Promise.resolve().then(() => {
      this.#open = null
      return this.#read([...keys])
    })
    return { keys, values }
  }
}
