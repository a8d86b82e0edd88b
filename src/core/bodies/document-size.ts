import { readJson } from '../json/json-text.ts'

/** Limit of members and elements in a large body of a management API. Legitimate large bodies have long texts. */
export const MAX_DOCUMENT_VALUES = 20_000

/** The value of a body, or its problem as the end of a sentence. */
export type DocumentReading =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly problem: string }

/** Reads a large body of a management API, which has at most {@link MAX_DOCUMENT_VALUES}. */
export function readDocument(text: string): DocumentReading {
  const reading = readJson(text)
  if (!reading.ok) return reading
  const { value } = reading
  if (hasManyValues(value)) return { ok: false, problem: `it has more than ${MAX_DOCUMENT_VALUES} values` }
  return { ok: true, value }
}

function hasManyValues(whole: unknown): boolean {
  const open = [whole]
  let values = 0
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (typeof value !== 'object' || value === null) continue
    const members = Object.values(value)
    values += members.length
    if (values > MAX_DOCUMENT_VALUES) return true
    for (const member of members) open.push(member)
  }
  return false
}
