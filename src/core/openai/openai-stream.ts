/** Makes the server-sent events of an OpenAI stream from the chunks of a job. */

import { CHUNK_BYTES } from '../jobs/result.ts'
import { isJsonObject, memberTexts, readJson } from '../json/json-text.ts'

/** One thing that a worker yielded: text that goes out as it is, or the JSON text of a value. */
export type Piece = { readonly kind: 'text'; readonly text: string } | { readonly kind: 'json'; readonly json: string }

/** What a chunk or an output has: pieces, and parts of a value that was split because of its size (`core/chunk.ts`). */
export type StreamItem =
  | Piece
  | {
      readonly kind: 'part'
      readonly number: number
      readonly parts: number
      readonly part: string
      readonly json: string
    }

/** A list with more items comes as one. */
const MAX_ITEMS = 10_000

/** What chunks, JSON objects with `output`, bring. */
export function itemsOfChunks(chunks: readonly string[]): StreamItem[] {
  return chunks.flatMap(chunk => {
    const output = memberTexts(chunk).get('output')
    return output === undefined ? [] : itemsOfOutput(output)
  })
}

/** What an output, a JSON text, brings. The items of lists come one by one, but for lists of a great many. */
export function itemsOfOutput(output: string): StreamItem[] {
  const reading = readJson(output)
  if (!reading.ok || reading.value === null) return []
  const { value } = reading
  if (!Array.isArray(value)) return itemOf(value, output)
  if (value.length > MAX_ITEMS) {
    const isText = value.every(item => typeof item === 'string')
    return isText ? itemOf(value.join(''), output) : [{ kind: 'json', json: output }]
  }
  return value.flatMap(item => itemOf(item, JSON.stringify(item)))
}

function itemOf(value: unknown, json: string): StreamItem[] {
  if (typeof value === 'string') return value === '' ? [] : [{ kind: 'text', text: value }]
  return [partOf(value, json) ?? { kind: 'json', json }]
}

/** Whether a text is JSON that is not too deep. */
export function isJson(text: string): boolean {
  return readJson(text).ok
}

/** Takes what the chunks of a stream have, one by one, and joins the values that were split. */
export class PieceReader {
  #joining: { readonly parts: number; readonly texts: string[]; characters: number } | null = null

  /** What an item brings: a piece, nothing while a value is incomplete, or the text of a whole one, of which it is not known that it is JSON. */
  take(item: StreamItem): Piece | { readonly kind: 'joined'; readonly json: string } | null {
    const joining = this.#joining
    const expected = (joining?.texts.length ?? 0) + 1
    if (item.kind === 'text') return item
    if (item.kind === 'json' || item.number !== expected || (joining !== null && item.parts !== joining.parts)) {
      this.#joining = null
      return { kind: 'json', json: item.json }
    }
    const { parts, texts, characters } = joining ?? { parts: item.parts, texts: [], characters: 0 }
    texts.push(item.part)
    this.#joining = { parts, texts, characters: characters + item.part.length }
    // No chunk was larger than this before it was split.
    if (this.#joining.characters > CHUNK_BYTES.one) this.#joining = null
    if (texts.length < parts || this.#joining === null) return null
    this.#joining = null
    return { kind: 'joined', json: texts.join('') }
  }
}

/** Number of characters at the end of a stream that are searched for its last line. */
const TAIL = 256
const DONE_LINE = /[\r\n]data: ?\[DONE\][ \t]*(?:[\r\n]|$)/

/** Frames pieces as server-sent events: text as the worker made it, everything else one event each. */
export class EventWriter {
  #tail = '\n\n'

  /** The text to send for a piece. */
  write(piece: Piece): string {
    return piece.kind === 'text' ? this.#sent(piece.text) : this.#event(piece.json)
  }

  /** Whether the stream has sent its last event: clients leave then, without waiting for the end of the response. */
  get isDone(): boolean {
    return DONE_LINE.test(this.#tail)
  }

  /** The text that ends a complete stream: `[DONE]`, unless the worker has sent it. */
  done(): string {
    return this.isDone ? '' : this.#event('[DONE]')
  }

  /** The text that ends a failed stream. */
  failed(error: unknown): string {
    return this.#event(JSON.stringify({ error }))
  }

  /** An event of ours begins on a line of its own, even when the worker's text stopped in the middle of one. */
  #event(data: string): string {
    const begun = /(?:\r\n|\n|\r){2}$/.test(this.#tail) ? '' : '\n\n'
    const line = data.includes('\n') || data.includes('\r') ? data.replaceAll(/[\r\n]+/g, ' ') : data
    return this.#sent(`${begun}data: ${line}\n\n`)
  }

  #sent(text: string): string {
    this.#tail = (text.length >= TAIL ? text : this.#tail + text).slice(-TAIL)
    return text
  }
}

function partOf(value: unknown, json: string): StreamItem | null {
  if (!isJsonObject(value) || Object.keys(value).length !== 3) return null
  const { part: number, parts, json: part } = value
  const isPart = typeof number === 'number' && typeof parts === 'number' && parts > 1 && typeof part === 'string'
  return isPart ? { kind: 'part', number, parts, part, json } : null
}
