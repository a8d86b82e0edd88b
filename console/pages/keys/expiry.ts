/** The expiry of a key, as the text of a field for date and time. */

/** The instant of a local time; null for an empty text, which means never. */
export function readInstant(local: string): string | null {
  if (local === '') return null
  const date = new Date(local)
  // An invalid time stays as it is, so that the server reports the problem.
  return Number.isNaN(date.getTime()) ? local : date.toISOString()
}

/** The local time of an instant, to the minute; an empty text for never. */
export function localTime(instant: string | null): string {
  if (instant === null) return ''
  const date = new Date(instant)
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}
