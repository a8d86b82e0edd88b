/**
 * Use of a GPU at one time, in whole percent. Null if the vendor's tool does not report it, as for parts of a card.
 */
export interface GpuUse {
  /** Time in which it computed, over the interval of the vendor's tool (at most a second). */
  readonly busy: number | null
  /** Allocated part of its memory. */
  readonly memory: number | null
}
