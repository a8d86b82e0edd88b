/** Which models leave a cache to make room. */

/** One revision of a model in a cache. */
export interface CachedRevision {
  /** `owner/name`. */
  readonly model: string
  readonly commit: string
  /** What its files take, those included that it shares with other revisions. */
  readonly bytes: number
  readonly usedAtMs: number
  /** Whether a worker that has not ended has it, or a worker is about to get it. */
  readonly isInUse: boolean
}

/** The revision that goes first: the one that was used longest ago. Null when none may go. */
export function firstToRemove(revisions: readonly CachedRevision[]): CachedRevision | null {
  const free = revisions.filter(({ isInUse }) => !isInUse)
  return free.reduce<CachedRevision | null>(
    (oldest, one) => (oldest === null || one.usedAtMs < oldest.usedAtMs ? one : oldest),
    null,
  )
}
