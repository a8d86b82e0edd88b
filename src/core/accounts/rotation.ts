/** Decisions of the rotation of a key. */

/** Limit of characters of a name. */
const MAX_NAME = 191
const REPLACED = ' (replaced)'

/** The longest time for which a rotated key goes on, in ms. */
export const MAX_OVERLAP_MS = 30 * 86_400_000

/** The name of an old key beside its successor; one that says so already stays. */
export function replacedName(name: string): string {
  if (name.endsWith(REPLACED)) return name
  return `${name.slice(0, MAX_NAME - REPLACED.length)}${REPLACED}`
}

/** The end of an old key, never later than the one that it has; in ms since 1970. */
export function rotationEndMs(expiresAtMs: number | null, endMs: number): number {
  return expiresAtMs === null ? endMs : Math.min(endMs, expiresAtMs)
}
