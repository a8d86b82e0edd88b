import type { Clock } from '../ports/clock.ts'

/** How long a row is used without a read, in ms. A change whose response was lost may happen after its failure was reported. */
const FRESH_MS = 5_000
const MAX_ROWS = 10_000

/**
 * Rows of the store in memory, for calls that would read the same row each time. What changes them goes through {@link changing}; then a call
 * that begins after a change has returned never gets the row of before: one server acts on a database.
 */
export class KnownRows<Key, Row> {
  readonly #read: (key: Key) => Promise<Row | null>
  readonly #clock: Clock
  readonly #known = new Map<Key, { readonly row: Row; readonly readMs: number }>()
  #changes = 0

  /** @param read reads a row from the store; null for one that is not there, which is read again each time */
  constructor(read: (key: Key) => Promise<Row | null>, clock: Clock) {
    this.#read = read
    this.#clock = clock
  }

  /** The row, from memory where it is known. @throws what reading throws */
  async find(key: Key): Promise<Row | null> {
    const readMs = this.#clock.monotonic()
    const known = this.#known.get(key)
    if (known !== undefined && readMs - known.readMs < FRESH_MS) return known.row
    const changes = this.#changes
    const row = await this.#read(key)
    if (row === null || changes !== this.#changes) return row
    if (this.#known.size >= MAX_ROWS) this.#known.clear()
    this.#known.set(key, { row, readMs })
    return row
  }

  /** A method that changes rows. It is under way from before it begins until its result is known: what is read meanwhile is not kept. */
  changing<Args extends readonly unknown[], Value>(
    run: (...args: Args) => Promise<Value>,
  ): (...args: Args) => Promise<Value> {
    const forget = () => {
      this.#changes += 1
      this.#known.clear()
    }
    return async (...args) => {
      forget()
      try {
        return await run(...args)
      } finally {
        forget()
      }
    }
  }
}

/** An object with some methods of its own, and otherwise those of another one. */
export function inheriting<Methods extends object>(methods: Methods, own: Partial<Methods>): Methods {
  return Object.assign(Object.create(methods) as Methods, own)
}
