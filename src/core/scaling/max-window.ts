/** Maximum number of recently needed workers of an endpoint: requests come and go faster than workers. */

/** Minimum time for which fewer workers must have been enough before one in use ends, in ms. */
export const MAX_WINDOW_MS = 60_000
/** Samples within this time count as one. */
const BUCKET_MS = 5_000

interface Bucket {
  readonly atMs: number
  most: number
}

/** Needed workers of one endpoint over time, in a bounded number of buckets. */
export class MaxWindow {
  readonly #buckets: Bucket[] = []
  #sinceMs: number | null = null

  /**
   * Adds the number that is needed now.
   * @param windowMs length of the window, at least {@link MAX_WINDOW_MS}
   * @returns the maximum in the window; null while the endpoint was not observed for that long
   */
  note(wanted: number, windowMs: number, nowMs: number): number | null {
    const spanMs = Math.max(MAX_WINDOW_MS, windowMs)
    const last = this.#buckets.at(-1)
    // A clock that was set back starts the window again.
    if (last !== undefined && nowMs < last.atMs) this.#buckets.length = 0
    if (this.#sinceMs === null || nowMs < this.#sinceMs || this.#buckets.length === 0) this.#sinceMs = nowMs
    const bucket = this.#buckets.at(-1)
    if (bucket !== undefined && nowMs - bucket.atMs < BUCKET_MS) bucket.most = Math.max(bucket.most, wanted)
    else this.#buckets.push({ atMs: nowMs, most: wanted })
    while (nowMs - this.#buckets[0]!.atMs > spanMs + BUCKET_MS) this.#buckets.shift()
    if (nowMs - this.#sinceMs < spanMs) return null
    return Math.max(...this.#buckets.map(({ most }) => most))
  }
}
