/**
 * Usage of tokens in streams: the change of a request whose stream shall report it, and the removal of the event that
 * its client did not ask for.
 */
import { AppError } from '../errors.ts'
import { isJsonObject, readJson } from '../json/json-text.ts'
import { MAX_MEMBER_BYTES, type MemberPlace, memberValue, replaced } from './member-scan.ts'
import { operationOf } from './operation.ts'

/** The members of a request that decide whether its stream reports usage. */
export const STREAM_MEMBERS = ['stream', 'stream_options'] as const

/** The places of {@link STREAM_MEMBERS} in a body, of members with one name the last: that is what workers read. */
export type StreamPlaces = Readonly<Partial<Record<(typeof STREAM_MEMBERS)[number], MemberPlace>>>

/** Operations whose streams report usage only when they are asked to. */
const OPERATIONS = new Set(['chat/completions', 'completions'])
const BRACE = 0x7b
const BLANKS: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d])

/** True for an operation whose streams report usage only when they are asked to. @param path from `/v1` on */
export function leavesUsageOut(method: string, path: string): boolean {
  return method === 'POST' && OPERATIONS.has(operationOf(path))
}

/** A request whose stream reports usage. */
export interface UsageRequest {
  readonly pieces: readonly Uint8Array[]
  /** True if its client did not ask for the event of usage. */
  readonly hidesUsage: boolean
}

/**
 * A request whose stream, if it asks for one, has `"stream_options": {"include_usage": true}`. A `stream` that is no
 * boolean becomes the one that servers make of it: some stream then, and others do not.
 * @throws AppError `invalid` for a body that is no JSON object in UTF-8, and for a `stream` of several meanings
 */
export function withUsage(pieces: readonly Uint8Array[], places: StreamPlaces): UsageRequest {
  if (!isObject(pieces)) throw new AppError('invalid', 'the body must be a JSON object in UTF-8')
  const { stream, stream_options: place } = places
  if (stream === undefined) return { pieces, hidesUsage: false }
  const given = memberValue(pieces, stream)
  const isStream = given === null ? false : readBoolean(given)
  if (isStream === null) throw new AppError('invalid', 'the member stream of the body must be true or false')
  const edits: Edit[] = []
  if (given !== null && given !== isStream) edits.push({ ...stream, json: String(isStream) })
  if (!isStream) return { pieces: edited(pieces, edits), hidesUsage: false }
  // Options that are too long to be read are mostly white space: no server has so many.
  const isLong = place !== undefined && place.end - place.start > MAX_MEMBER_BYTES
  const value = place === undefined || isLong ? null : memberValue(pieces, place)
  const options = isJsonObject(value) ? value : {}
  if (options.include_usage !== true) {
    const json = JSON.stringify({ ...options, include_usage: true })
    const start = firstBrace(pieces) + 1
    edits.push(place === undefined ? { start, end: start, json: `"stream_options":${json},` } : { ...place, json })
  }
  return { pieces: edited(pieces, edits), hidesUsage: readBoolean(options.include_usage) !== true }
}

/** True for bytes that begin an object. Servers in Python also read UTF-16 and UTF-32, whose second byte is zero. */
function isObject(pieces: readonly Uint8Array[]): boolean {
  let isOpen = false
  for (const piece of pieces) {
    for (const byte of piece) {
      if (isOpen) return byte !== 0
      if (byte === BRACE) isOpen = true
      else if (!BLANKS.has(byte)) return false
    }
  }
  return isOpen
}

/** A place in a body, and the JSON that it gets. */
interface Edit extends MemberPlace {
  readonly json: string
}

function edited(pieces: readonly Uint8Array[], edits: readonly Edit[]): readonly Uint8Array[] {
  const encoder = new TextEncoder()
  // The last one first: it moves no other.
  const ordered = edits.toSorted((a, b) => b.start - a.start)
  return ordered.reduce((body, { json, ...place }) => replaced(body, place, encoder.encode(json)), pieces)
}

/** Values that servers read as a boolean which convert them, as pydantic does. */
const BOOLEANS = {
  true: new Set<unknown>([true, 1, '1', 'true', 't', 'yes', 'y', 'on']),
  false: new Set<unknown>([false, 0, '0', 'false', 'f', 'no', 'n', 'off']),
} as const

/** The boolean that a value stands for; null for another value. */
function readBoolean(value: unknown): boolean | null {
  const plain = typeof value === 'string' ? value.trim().toLowerCase() : value
  return BOOLEANS.true.has(plain) ? true : BOOLEANS.false.has(plain) ? false : null
}

function firstBrace(pieces: readonly Uint8Array[]): number {
  let offset = 0
  for (const piece of pieces) {
    const at = piece.indexOf(BRACE)
    if (at >= 0) return offset + at
    offset += piece.length
  }
  return offset
}

const [LF, CR] = [0x0a, 0x0d]
/** Largest event that can be one of usage alone, in bytes. */
const MAX_EVENT_BYTES = 8_192

/**
 * Removes the event of usage alone from a stream: one with `usage`, and without choices. Everything else passes byte
 * for byte, once its event is complete or longer than such an event is.
 */
export class UsageEventFilter {
  /** The beginning of an event that is not complete. */
  #held: Uint8Array = new Uint8Array(0)
  /** True inside of an event that passes. */
  #passes = false
  /** True if the line that is read has no byte until now. */
  #isLineEmpty = true

  /** The bytes that go out after this piece. They may share its memory. */
  push(piece: Uint8Array): Uint8Array[] {
    const out: Uint8Array[] = []
    let from = 0
    for (let at = 0; at < piece.length; ) {
      const end = piece.indexOf(LF, at)
      const rest = end < 0 ? piece.length : end
      const isEmpty = this.#isLineEmpty && (rest === at || (rest === at + 1 && piece[at] === CR))
      this.#isLineEmpty = end < 0 ? isEmpty : true
      at = rest + 1
      if (end < 0 || !isEmpty) continue
      this.#complete(piece.subarray(from, at), out)
      from = at
    }
    if (from < piece.length) this.#hold(piece.subarray(from), out)
    return out
  }

  /** The rest after the last piece: an event that was cut. */
  end(): Uint8Array {
    const held = this.#held
    this.#held = new Uint8Array(0)
    return held
  }

  #complete(part: Uint8Array, out: Uint8Array[]): void {
    const event = this.#passes || this.#held.length === 0 ? part : joined(this.#held, part)
    this.#held = new Uint8Array(0)
    if (this.#passes || !isUsageAlone(event)) out.push(event)
    this.#passes = false
  }

  #hold(part: Uint8Array, out: Uint8Array[]): void {
    const isLong = this.#held.length + part.length > MAX_EVENT_BYTES
    if (!this.#passes && !isLong) {
      // The caller may overwrite the piece.
      this.#held = joined(this.#held, part)
      return
    }
    if (this.#held.length > 0) out.push(this.#held)
    this.#held = new Uint8Array(0)
    this.#passes = true
    out.push(part)
  }
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array {
  const both = new Uint8Array(one.length + other.length)
  both.set(one)
  both.set(other, one.length)
  return both
}

function isUsageAlone(event: Uint8Array): boolean {
  if (event.length > MAX_EVENT_BYTES) return false
  const text = new TextDecoder().decode(event)
  if (!text.includes('"usage"')) return false
  const lines = text.split(/\r?\n/).filter(line => line.startsWith('data:'))
  const reading = readJson(lines.map(line => line.slice(5)).join('\n'))
  if (!reading.ok || !isJsonObject(reading.value)) return false
  const { choices, usage } = reading.value
  return Array.isArray(choices) && choices.length === 0 && isJsonObject(usage)
}
