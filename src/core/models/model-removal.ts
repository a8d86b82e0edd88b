/** Choice of the models that leave a cache to make room. */

/** One revision of a model in a cache. */
export interface CachedRevision {
  /** `owner/name`. */
  readonly model: string
  readonly commit: string
  /** Size of its files, including files that it shares with other revisions. */
  readonly bytes: number
  readonly usedAtMs: number
  /** True if a worker that has not ended has it, or a worker is about to get it. */
  readonly isInUse: boolean
}

/** The least recently used revision that may be removed; null if all are in use. */
export function firstToRemove(revisions: readonly CachedRevision[]): CachedRevision | null {
  const free = revisions.filter(({ isInUse }) => !isInUse)
  return free.reduce<CachedRevision | null>(
    (oldest, one) => (oldest === null || one.usedAtMs < oldest.usedAtMs ? one : oldest),
    null,
  )
}
