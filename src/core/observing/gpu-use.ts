/** How much of a GPU was in use at one instant, in whole percent. Null where the vendor's tool does not report it, as for parts of a card. */
export interface GpuUse {
  /** The time in which it computed, over the interval of the vendor's tool (at most a second). */
  readonly busy: number | null
  /** The part of its memory that is allocated. */
  readonly memory: number | null
}
