import { MAX_COPIES } from '../core/workers/relay-headers.ts'

/** Limit of streams whose last chunk is remembered. */
const MAX_STREAMS = 10_000

/**
 * Counts of the last chunk of each stream, stored in a row. Chunks have no numbers, and language models repeat texts;
 * so only the count shows if a repeated chunk was stored.
 */
export class ChunkDedup {
  readonly #last = new Map<string, { digest: string; count: number }>()

  /** Counts a stored chunk of a stream. */
  countStored(stream: string, digest: string): void {
    const last = this.#last.get(stream)
    const count = last?.digest === digest ? Math.min(last.count + 1, MAX_COPIES - 1) : 1
    this.#last.delete(stream)
    this.#last.set(stream, { digest, count })
    const [oldest] = this.#last.keys()
    if (this.#last.size > MAX_STREAMS) this.#last.delete(oldest!)
  }

  /** The number of copies in a row if this chunk was stored by a call whose response was lost. */
  copiesIfStored(stream: string, digest: string): number {
    const last = this.#last.get(stream)
    return 1 + (last?.digest === digest ? last.count : 0)
  }
}
