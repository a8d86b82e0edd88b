/** JSON texts that keep every character except blanks: numbers, names and their order do not change. */
import { stringEnd } from './json-depth.ts'
import { memberTexts } from './json-text.ts'

/** A JSON value with its original text, for {@link jsonText}. */
export class JsonText {
  /** Valid JSON. */
  readonly text: string

  /** @param text a valid JSON text */
  constructor(text: string) {
    this.text = text
  }

  /** The parsed value, for decisions; do not send or show it. */
  value(): unknown {
    return JSON.parse(this.text)
  }

  /** The members of an object, each in its text; null for any other value. A repeated name keeps its last value. */
  members(): Map<string, JsonText> | null {
    const value = this.value()
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
    return new Map([...memberTexts(this.text)].map(([name, text]) => [name, new JsonText(text)]))
  }
}

/**
 * As JSON.stringify, for a value of plain objects and lists that contains {@link JsonText}. Members that are
 * undefined are left out.
 */
export function jsonText(value: unknown): string {
  if (value instanceof JsonText) return value.text
  if (Array.isArray(value)) return `[${value.map(item => jsonText(item ?? null)).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${jsonText(member)}`).join(',')}}`
}

/** A JSON text without blanks between its parts. @param text valid JSON */
export function compactJson(text: string): string {
  return [...jsonParts(text)].join('')
}

/**
 * A JSON text with a line for each member and item, indented by two spaces a level, as JSON.stringify makes it.
 * @param text valid JSON
 */
export function indentedJson(text: string): string {
  const pieces: string[] = []
  let depth = 0
  let previous = ''
  const newLine = () => `\n${'  '.repeat(depth)}`
  for (const part of jsonParts(text)) {
    const opens = part === '{' || part === '['
    const closes = part === '}' || part === ']'
    if (closes) depth -= 1
    const isEmpty = closes && (previous === '{' || previous === '[')
    if ((closes && !isEmpty) || (!closes && ['{', '[', ','].includes(previous))) pieces.push(newLine())
    pieces.push(part === ':' ? ': ' : part)
    if (opens) depth += 1
    previous = part
  }
  return pieces.join('')
}

const PUNCTUATION = '{}[],:'
const BLANKS = ' \n\r\t'

/** The parts of a JSON text: punctuation, strings, and plain values such as numbers. */
function* jsonParts(text: string): Generator<string, void> {
  let at = 0
  while (at < text.length) {
    const character = text[at]!
    if (BLANKS.includes(character)) at += 1
    else {
      const end = partEnd(text, at)
      yield text.slice(at, end)
      at = end
    }
  }
}

function partEnd(text: string, from: number): number {
  if (PUNCTUATION.includes(text[from]!)) return from + 1
  if (text[from] === '"') return stringEnd(text, from + 1)
  let end = from + 1
  while (end < text.length && !PUNCTUATION.includes(text[end]!) && !BLANKS.includes(text[end]!)) end += 1
  return end
}
