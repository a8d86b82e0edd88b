/** Bodies of the API, and values in them. */

/** A body of the API. */
export type Body = Readonly<Record<string, unknown>>

/** Items of a text with commas or blanks between them. */
export function splitWords(text: string): readonly string[] {
  return text.split(/[\s,]+/).filter(word => word !== '')
}

/**
 * The number in a text; null for an empty text. Another text stays as it is, so that the server reports the problem.
 */
export function readNumber(text: string): number | string | null {
  if (text.trim() === '') return null
  const number = Number(text)
  return Number.isFinite(number) ? number : text
}

/** True for equal values of JSON, in any order of members. */
export function isSame(a: unknown, b: unknown): boolean {
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, at) => isSame(item, b[at]))
  if (!isObject(a) || !isObject(b)) return a === b
  const names = Object.keys(a)
  return names.length === Object.keys(b).length && names.every(name => name in b && isSame(a[name], b[name]))
}

/** True for an object of JSON. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** An object of JSON, empty in place of anything else. */
export function asObject(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : {}
}

/** A value as a text, empty for nothing. */
export function asText(value: unknown): string {
  return value === undefined || value === null ? '' : String(value)
}

/** A list as texts, empty in place of anything else. */
export function asTexts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : []
}
