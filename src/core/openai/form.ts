/** Multipart forms (RFC 7578), as OpenAI's clients send files: their parts, read in place. */
import { AppError } from '../errors.ts'

/** One part of a form. */
export interface FormPart {
  readonly name: string
  /** Null for a field without a file. */
  readonly filename: string | null
  readonly contentType: string
  /** Place of its content in the bytes of the form. */
  readonly start: number
  readonly end: number
}

/** Limits of a form. */
const MAX_PARTS = 200
const MAX_HEAD_BYTES = 8_192
const [CR, LF, DASH] = [0x0d, 0x0a, 0x2d]

/** The boundary in the content type of a form; null for another type. */
export function readBoundary(contentType: string): string | null {
  if (!/^multipart\/form-data\s*;/i.test(contentType)) return null
  const value = parameter(contentType, 'boundary')
  return value !== null && value !== '' && value.length <= 70 && !/[\r\n]/.test(value) ? value : null
}

/**
 * The parts of a form, in their order. It costs the length of the form.
 * @param boundary of its content type
 * @throws AppError `invalid` for bytes that are no such form, or one with too many parts
 */
export function readForm(bytes: Uint8Array, boundary: string): readonly FormPart[] {
  const delimiter = new TextEncoder().encode(`\r\n--${boundary}`)
  // The first one may be without the line before it.
  let at = startsWith(bytes, 0, delimiter.subarray(2)) ? delimiter.length - 2 : after(bytes, delimiter, 0)
  const parts: FormPart[] = []
  for (;;) {
    if (at < 0) throw broken('it ends before its last boundary')
    if (bytes[at] === DASH && bytes[at + 1] === DASH) return parts
    if (parts.length === MAX_PARTS) throw broken(`it has more than ${MAX_PARTS} parts`)
    const line = lineEnd(bytes, at)
    const head = line < 0 ? null : readHead(bytes, line)
    if (head === null) throw broken('a part has no head')
    const next = after(bytes, delimiter, head.start)
    if (next < 0) throw broken('it ends before its last boundary')
    parts.push({ ...head, end: next - delimiter.length })
    at = next
  }
}

/** The end of a line that has only blanks, behind its line break; -1 for another line. */
function lineEnd(bytes: Uint8Array, from: number): number {
  let at = from
  while (bytes[at] === 0x20 || bytes[at] === 0x09) at += 1
  return bytes[at] === CR && bytes[at + 1] === LF ? at + 2 : -1
}

function readHead(bytes: Uint8Array, from: number): Omit<FormPart, 'end'> | null {
  const limit = Math.min(bytes.length, from + MAX_HEAD_BYTES)
  let lines: string[] = []
  let at = from
  for (;;) {
    const end = bytes.indexOf(CR, at)
    if (end < 0 || end + 1 >= limit || bytes[end + 1] !== LF) return null
    if (end === at) break
    lines = [...lines, new TextDecoder().decode(bytes.subarray(at, end))]
    at = end + 2
  }
  const field = (name: string) => lines.find(line => line.toLowerCase().startsWith(`${name}:`))?.slice(name.length + 1)
  const disposition = field('content-disposition') ?? ''
  const name = parameter(disposition, 'name')
  if (name === null) return null
  const contentType = (field('content-type') ?? 'text/plain').trim()
  return { name, filename: parameter(disposition, 'filename'), contentType, start: at + 2 }
}

/** A parameter of a header, quoted or not; null without it. */
function parameter(text: string, name: string): string | null {
  const at = placeOf(text.toLowerCase(), `${name}=`)
  if (at < 0) return null
  const value = text.slice(at + name.length + 1)
  if (!value.startsWith('"')) return value.split(';', 1)[0]!.trim()
  let read = ''
  for (let place = 1; place < value.length; place += 1) {
    const character = value[place]!
    if (character === '"') return read.replaceAll('%22', '"')
    if (character === '\\' && place + 1 < value.length) place += 1
    read += value[place]!
  }
  return null
}

/** The place of a parameter behind a semicolon and blanks; -1 without one. */
function placeOf(lower: string, start: string): number {
  for (let at = lower.indexOf(start); at >= 0; at = lower.indexOf(start, at + 1)) {
    let before = at - 1
    while (lower[before] === ' ' || lower[before] === '\t') before -= 1
    if (lower[before] === ';') return at
  }
  return -1
}

/** The place behind the next delimiter; -1 without one. */
function after(bytes: Uint8Array, delimiter: Uint8Array, from: number): number {
  for (let at = bytes.indexOf(CR, from); at >= 0; at = bytes.indexOf(CR, at + 1))
    if (startsWith(bytes, at, delimiter)) return at + delimiter.length
  return -1
}

function startsWith(bytes: Uint8Array, at: number, other: Uint8Array): boolean {
  return other.every((byte, index) => bytes[at + index] === byte)
}

function broken(problem: string): AppError {
  return new AppError('invalid', `the body is not a form: ${problem}`)
}

/**
 * The input of a handler for a form: texts by their names, files as `{"filename", "content_type", "base64"}`. A name
 * that comes several times, or ends with `[]`, is a list. `stream` is a boolean, as in JSON.
 * @param model in place of that of the form
 */
export function formInput(bytes: Uint8Array, parts: readonly FormPart[], model: string | null): string {
  const values = new Map<string, unknown[]>()
  const lists = new Set<string>()
  for (const { name, filename, contentType, start, end } of parts) {
    const content = bytes.subarray(start, end)
    const isList = name.endsWith('[]')
    const key = isList ? name.slice(0, -2) : name
    if (isList) lists.add(key)
    const value = filename === null ? fieldValue(key, content) : fileValue(filename, contentType, content)
    values.set(key, [...(values.get(key) ?? []), key === 'model' && model !== null ? model : value])
  }
  const members = [...values].map(([key, all]) => [key, all.length > 1 || lists.has(key) ? all : all[0]])
  return JSON.stringify(Object.fromEntries(members))
}

function fieldValue(name: string, content: Uint8Array): unknown {
  const text = new TextDecoder().decode(content)
  return name === 'stream' && (text === 'true' || text === 'false') ? text === 'true' : text
}

function fileValue(filename: string, contentType: string, content: Uint8Array) {
  return { filename, content_type: contentType, base64: content.toBase64() }
}
