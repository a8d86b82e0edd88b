/** The differences between two releases of an endpoint. */

/** A change of one field. */
export interface ReleaseFieldChange {
  readonly field: string
  readonly old: unknown
  readonly new: unknown
}

/** A release with its changes from the previous one. */
export interface ReleaseWithChanges {
  readonly version: number
  readonly diff: readonly ReleaseFieldChange[]
}

/**
 * The fields in which two releases differ, in the order in which they changed first.
 * @param releases with all from the one after `from` up to `to`
 */
export function releaseDiff(releases: readonly ReleaseWithChanges[], from: number, to: number): ReleaseFieldChange[] {
  const changes = new Map<string, ReleaseFieldChange>()
  const changedBack = new Set<string>()
  const between = releases.filter(({ version }) => version > from && version <= to)
  for (const { field, old, new: now } of between.sort((a, b) => a.version - b.version).flatMap(({ diff }) => diff)) {
    const first = changes.get(field)
    // Of one change both values may be hidden, and so look the same.
    if (first !== undefined && JSON.stringify(first.old) === JSON.stringify(now)) changedBack.add(field)
    else changedBack.delete(field)
    changes.set(field, { field, old: first === undefined ? old : first.old, new: now })
  }
  return [...changes.values()].filter(({ field }) => !changedBack.has(field))
}
