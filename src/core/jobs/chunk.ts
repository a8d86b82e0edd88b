import { stringEnd } from '../json/json-depth.ts'
import { isJsonObject, memberTexts, readJson, skipBlank, skipValue } from '../json/json-text.ts'

/** Largest chunk that one item of a stream carries, in bytes of its JSON text. */
export const MAX_CHUNK_BYTES = 1_048_576
/** Room for the text around a piece: names, numbers, braces. */
const OVERHEAD_BYTES = 256
/** Larger metrics are omitted: each piece repeats the metrics of its chunk. */
const MAX_METRICS_BYTES = MAX_CHUNK_BYTES / 2
/** Minimum room of a piece, at any depth of lists. */
const LEAST_ROOM_BYTES = MAX_CHUNK_BYTES / 4

/** The items of a chunk, or the reason why it has none. */
export type ChunkReading = { readonly items: readonly string[] } | { readonly problem: string }

/**
 * Stream items of a worker's chunk, each a JSON object with `output`. A large one is split: a string at character
 * boundaries, a list into shorter lists, any other value into pieces of its JSON text, each `{"part": n, "parts":
 * m, "json": "..."}`. A body that is not JSON is a string. The time is proportional to the size of the body, for
 * any content: texts are cut in place and never serialized again.
 */
export function readChunk(body: string): ChunkReading {
  const reading = readJson(body, true)
  if (!reading.ok && reading.tooDeep) return { problem: reading.problem }
  if (!reading.ok) return { items: split(JSON.stringify(body), null) }
  const members = isJsonObject(reading.value) ? memberTexts(reading.text) : new Map<string, string>()
  const output = members.get('output')
  if (output === undefined) return { items: split(reading.text.trim(), null) }
  return { items: split(output, members.get('metrics') ?? null) }
}

/** The problem of a chunk whose bytes are not UTF-8. */
export function unreadableChunk(): ChunkReading {
  return { problem: 'it is not UTF-8' }
}

function split(text: string, allMetrics: string | null): string[] {
  const metrics = allMetrics !== null && Buffer.byteLength(allMetrics) <= MAX_METRICS_BYTES ? allMetrics : null
  const room = MAX_CHUNK_BYTES - OVERHEAD_BYTES - Buffer.byteLength(metrics ?? '')
  const pieces = Buffer.byteLength(text) <= room ? [text] : new Splitter(text, room).pieces()
  return pieces.map(piece => (metrics === null ? `{"output":${piece}}` : `{"output":${piece},"metrics":${metrics}}`))
}

/** A value that may have to be split: its place in the text, and its bytes there. */
interface Span {
  readonly start: number
  readonly end: number
  readonly bytes: number
}

/** Splits one JSON text that is too large. */
class Splitter {
  readonly #text: string
  readonly #room: number
  /**
   * Lists and objects that may be too large, by their start: found once, so that no level is walked through twice.
   */
  readonly #large: ReadonlyMap<number, Span>
  readonly #pieces: string[] = []

  constructor(text: string, room: number) {
    this.#text = text
    this.#room = room
    this.#large = largeSpans(text, LEAST_ROOM_BYTES / 2)
  }

  pieces(): readonly string[] {
    this.#split(this.#spanAt(0), 0)
    return this.#pieces
  }

  #split({ start, end }: Span, depth: number): void {
    const first = this.#text[start]
    if (first === '[') {
      this.#splitList(start, depth)
      return
    }
    const room = this.#roomAt(depth)
    const text = this.#text.slice(start, end)
    if (first === '"') {
      for (const piece of splitString(JSON.parse(text) as string, room)) this.#push(JSON.stringify(piece), depth)
      return
    }
    const parts = splitString(text, room)
    for (const [index, json] of parts.entries()) {
      this.#push(JSON.stringify({ part: index + 1, parts: parts.length, json }), depth)
    }
  }

  #splitList(start: number, depth: number): void {
    const text = this.#text
    const room = this.#roomAt(depth)
    let list: string[] = []
    let bytes = 2
    const flush = () => {
      if (list.length > 0) this.#push(list.join(','), depth + 1)
      list = []
      bytes = 2
    }
    for (let at = skipBlank(text, start + 1); text[at] !== ']'; ) {
      const item = this.#spanAt(at)
      const size = item.bytes + 1
      if (bytes + size > room) flush()
      if (size + 2 > room) this.#split(item, depth + 1)
      else {
        list.push(text.slice(item.start, item.end))
        bytes += size
      }
      at = skipBlank(text, item.end)
      if (text[at] === ',') at = skipBlank(text, at + 1)
    }
    flush()
  }

  #spanAt(start: number): Span {
    const span = this.#large.get(start)
    if (span !== undefined) return span
    const end = skipValue(this.#text, start)
    return { start, end, bytes: Buffer.byteLength(this.#text.slice(start, end)) }
  }

  /** The lists around a piece use some of its room. */
  #roomAt(depth: number): number {
    return Math.max(this.#room - 2 * depth, LEAST_ROOM_BYTES)
  }

  #push(text: string, depth: number): void {
    this.#pieces.push(`${'['.repeat(depth)}${text}${']'.repeat(depth)}`)
  }
}

/** Lists and objects of a valid JSON text that have at least this many bytes, by their start. */
function largeSpans(text: string, leastBytes: number): Map<number, Span> {
  const spans = new Map<number, Span>()
  const open: { start: number; bytesBefore: number }[] = []
  let bytes = 0
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    bytes += 1
    if (code === 0x22) {
      const end = stringEnd(text, at + 1)
      bytes += Buffer.byteLength(text.slice(at + 1, end))
      at = end - 1
      continue
    }
    // With this bit set, [ and { are 0x7b, ] and } are 0x7d.
    const bracket = code | 0x20
    if (bracket === 0x7b) open.push({ start: at, bytesBefore: bytes - 1 })
    if (bracket !== 0x7d) continue
    const { start, bytesBefore } = open.pop()!
    if (bytes - bytesBefore >= leastBytes) spans.set(start, { start, end: at + 1, bytes: bytes - bytesBefore })
  }
  return spans
}

/** Pieces whose JSON texts fit, cut between characters (code points). */
function splitString(text: string, room: number): string[] {
  const pieces: string[] = []
  let start = 0
  let bytes = 2
  for (let at = 0; at < text.length; ) {
    const code = text.codePointAt(at)!
    const size = bytesInJson(code)
    if (bytes + size > room) {
      pieces.push(text.slice(start, at))
      start = at
      bytes = 2
    }
    bytes += size
    at += code > 0xffff ? 2 : 1
  }
  if (start < text.length) pieces.push(text.slice(start))
  return pieces
}

/** Bytes of a character in a JSON string as JSON.stringify writes it. */
function bytesInJson(code: number): number {
  if (code === 0x22 || code === 0x5c) return 2
  if (code < 0x20) return code === 0x0b || code < 0x08 || code > 0x0d ? 6 : 2
  if (code < 0x80) return 1
  if (code < 0x800) return 2
  if (code > 0xffff) return 4
  return code >= 0xd800 && code <= 0xdfff ? 6 : 3
}
