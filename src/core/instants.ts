const RFC_3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)$/

/** Epoch milliseconds of an RFC 3339 date and time; null for any other text. */
export function parseInstant(text: string): number | null {
  if (!RFC_3339.test(text)) return null
  const ms = Date.parse(text.toUpperCase())
  return Number.isNaN(ms) ? null : ms
}
