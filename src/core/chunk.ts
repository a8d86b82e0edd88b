import { isJsonObject, memberTexts, readJson } from './json-text.ts'

/** Largest chunk that one item of a stream carries, in bytes of its JSON text. */
export const MAX_CHUNK_BYTES = 1_048_576
/** Room for what stands around a piece: names, numbers, braces. */
const OVERHEAD_BYTES = 256

/**
 * The stream items that a worker's chunk makes, each a JSON object with `output`. One that is too large is split: a string
 * at character boundaries, a list into shorter lists, any other value into pieces of its JSON text, each
 * `{"part": n, "parts": m, "json": "..."}`. A body that is no JSON is a string.
 */
export function chunkItems(body: string): string[] {
  const reading = readJson(body, true)
  if (!reading.ok) return split(body, JSON.stringify(body), null)
  const members = isJsonObject(reading.value) ? memberTexts(reading.text) : new Map<string, string>()
  const output = members.get('output')
  if (output === undefined || !isJsonObject(reading.value)) return split(reading.value, reading.text.trim(), null)
  return split(reading.value.output, output, members.get('metrics') ?? null)
}

function split(value: unknown, text: string, metrics: string | null): string[] {
  const room = MAX_CHUNK_BYTES - OVERHEAD_BYTES - Buffer.byteLength(metrics ?? '')
  const pieces = Buffer.byteLength(text) <= room ? [text] : splitText(value, text, Math.max(room, OVERHEAD_BYTES))
  return pieces.map(piece => (metrics === null ? `{"output":${piece}}` : `{"output":${piece},"metrics":${metrics}}`))
}

function splitText(value: unknown, text: string, room: number): string[] {
  if (typeof value === 'string') return splitString(value, room).map(piece => JSON.stringify(piece))
  if (Array.isArray(value)) return splitList(value, room)
  const pieces = splitString(text, room)
  return pieces.map((json, index) => JSON.stringify({ part: index + 1, parts: pieces.length, json }))
}

/** Pieces whose JSON texts fit, cut between characters (code points). */
function splitString(text: string, room: number): string[] {
  const pieces: string[] = []
  let start = 0
  while (start < text.length) {
    let end = Math.min(text.length, start + room)
    while (end > start + 1 && Buffer.byteLength(JSON.stringify(text.slice(start, end))) > room) {
      end = start + Math.ceil((end - start) / 2)
    }
    if (end < text.length && isLowSurrogate(text.charCodeAt(end)) && end > start + 1) end -= 1
    pieces.push(text.slice(start, end))
    start = end
  }
  return pieces
}

function splitList(items: readonly unknown[], room: number): string[] {
  const lists: string[] = []
  let list: string[] = []
  let bytes = 2
  const flush = () => {
    if (list.length > 0) lists.push(`[${list.join(',')}]`)
    list = []
    bytes = 2
  }
  for (const item of items) {
    const text = JSON.stringify(item)
    const size = Buffer.byteLength(text) + 1
    if (bytes + size > room) flush()
    if (size + 2 > room) lists.push(...splitText(item, text, room - 2).map(piece => `[${piece}]`))
    else {
      list.push(text)
      bytes += size
    }
  }
  flush()
  return lists
}

function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff
}
