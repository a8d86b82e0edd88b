import { textBefore } from '../text-parts.ts'
import { isTooDeep, stringEnd, TOO_DEEP } from './json-depth.ts'

/** The outcome of reading a JSON text: its value, the text to keep, and the number of repairs. */
export type JsonReading =
  | { readonly ok: true; readonly value: unknown; readonly text: string; readonly replaced: number }
  | { readonly ok: false; readonly problem: string; readonly tooDeep?: true }

/**
 * Parses JSON once and keeps the text as it was received, so that integers beyond 2^53 survive. Text that nests too
 * deeply is refused before it is parsed (json-depth.ts).
 * @param lenient also takes the bare tokens `NaN`, `Infinity` and `-Infinity` that Python writes; each becomes `null`
 * in `text` and is counted in `replaced` (docs/internals/worker-protocol.md, Results)
 */
export function readJson(text: string, lenient = false): JsonReading {
  if (isTooDeep(text)) return { ok: false, problem: TOO_DEEP, tooDeep: true }
  try {
    return { ok: true, value: JSON.parse(text), text, replaced: 0 }
  } catch (error) {
    if (!lenient) return { ok: false, problem: jsonProblem(error) }
  }
  const repaired = replaceNonFinite(text)
  try {
    return { ok: true, value: JSON.parse(repaired.text), ...repaired }
  } catch (error) {
    return { ok: false, problem: (error as Error).message }
  }
}

/** The message of the parser without its quote of the text, which may contain a secret. */
function jsonProblem(error: unknown): string {
  const { message } = error as Error
  return message.endsWith(' is not valid JSON') ? textBefore(message, ', "', ', ..."') : message
}

/**
 * The text of each top-level member of a JSON object, character for character.
 * @param text a valid JSON text whose value is an object, without text around it
 * @returns name to text; a repeated name keeps its last value, as JSON.parse does
 */
export function memberTexts(text: string): Map<string, string> {
  const members = new Map<string, string>()
  let at = skipBlank(text, text.indexOf('{') + 1)
  while (text[at] === '"') {
    const nameEnd = skipValue(text, at)
    const name = JSON.parse(text.slice(at, nameEnd)) as string
    const start = skipBlank(text, skipBlank(text, nameEnd) + 1)
    const end = skipValue(text, start)
    members.set(name, text.slice(start, end))
    at = skipBlank(text, end)
    if (text[at] === ',') at = skipBlank(text, at + 1)
  }
  return members
}

/**
 * The text of each element of a JSON array, character for character.
 * @param text a valid JSON text whose value is an array, without text around it
 */
export function elementTexts(text: string): string[] {
  const elements: string[] = []
  let at = skipBlank(text, text.indexOf('[') + 1)
  while (at < text.length && text[at] !== ']') {
    const end = skipValue(text, at)
    elements.push(text.slice(at, end))
    at = skipBlank(text, end)
    if (text[at] === ',') at = skipBlank(text, at + 1)
  }
  return elements
}

/** True if a parsed JSON value is an object (neither null nor an array). */
export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function replaceNonFinite(text: string): { text: string; replaced: number } {
  const token = /"|-?\bInfinity\b|\bNaN\b/g
  const pieces: string[] = []
  let from = 0
  for (let match = token.exec(text); match !== null; match = token.exec(text)) {
    if (match[0] === '"') token.lastIndex = stringEnd(text, token.lastIndex)
    else {
      pieces.push(text.slice(from, match.index), 'null')
      from = token.lastIndex
    }
  }
  return { text: pieces.join('') + text.slice(from), replaced: pieces.length / 2 }
}

/** The end of the blanks that begin at `from`. */
export function skipBlank(text: string, from: number): number {
  let at = from
  while (text[at] === ' ' || text[at] === '\n' || text[at] === '\r' || text[at] === '\t') at += 1
  return at
}

const PLAIN = /[^,:\]}\s]+/y

function plainEnd(text: string, from: number): number {
  PLAIN.lastIndex = from
  return PLAIN.test(text) ? PLAIN.lastIndex : text.length
}

/** The end of the value that starts at `from`; the text must be valid JSON. */
export function skipValue(text: string, from: number): number {
  let at = from
  let depth = 0
  do {
    const character = text[at]
    if (character === '"') at = stringEnd(text, at + 1)
    else if (character === '{' || character === '[') {
      depth += 1
      at += 1
    } else if (character === '}' || character === ']') {
      depth -= 1
      at += 1
    } else if (character === ',' || character === ':') at += 1
    else at = plainEnd(text, at)
    if (depth > 0) at = skipBlank(text, at)
  } while (depth > 0)
  return at
}
