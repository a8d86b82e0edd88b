/** Makes the server-sent events of an OpenAI stream from the chunks of a job. */

import { CHUNK_BYTES } from '../jobs/result.ts'
import { isJsonObject, memberTexts, readJson } from '../json/json-text.ts'
import type { ErrorForm } from './error-form.ts'

/** One value that a worker yielded: text that is sent unchanged, or the JSON text of a value. */
export type Piece = { readonly kind: 'text'; readonly text: string } | { readonly kind: 'json'; readonly json: string }

/**
 * An item of a chunk or an output: a piece, or a part of a value that was split because of its size
 * (core/jobs/chunk.ts).
 */
export type StreamItem =
  | Piece
  | {
      readonly kind: 'part'
      readonly number: number
      readonly parts: number
      readonly part: string
      readonly json: string
    }

/** A list with more items becomes one piece. */
const MAX_ITEMS = 10_000

/** Items of chunks, which are JSON objects with `output`. */
export function itemsFromChunks(chunks: readonly string[]): StreamItem[] {
  return chunks.flatMap(chunk => {
    const output = memberTexts(chunk).get('output')
    return output === undefined ? [] : itemsFromOutput(output)
  })
}

/**
 * Items of an output, a JSON text. The items of a list become one item each, unless it has more than {@link
 * MAX_ITEMS}.
 */
export function itemsFromOutput(output: string): StreamItem[] {
  const reading = readJson(output)
  if (!reading.ok || reading.value === null) return []
  const { value } = reading
  if (!Array.isArray(value)) return itemsFromValue(value, output)
  if (value.length > MAX_ITEMS) {
    const isText = value.every(item => typeof item === 'string')
    return isText ? itemsFromValue(value.join(''), output) : [{ kind: 'json', json: output }]
  }
  return value.flatMap(item => itemsFromValue(item, JSON.stringify(item)))
}

function itemsFromValue(value: unknown, json: string): StreamItem[] {
  if (typeof value === 'string') return value === '' ? [] : [{ kind: 'text', text: value }]
  return [partFromValue(value, json) ?? { kind: 'json', json }]
}

/** True if a text is JSON that is not too deep. */
export function isJson(text: string): boolean {
  return readJson(text).ok
}

/** Takes the items of a stream one by one, and joins the values that were split. */
export class PieceReader {
  #joining: { readonly parts: number; readonly texts: string[]; characters: number } | null = null

  /**
   * The result of an item: a piece, null while a value is incomplete, or the text of a joined value, which may not be
   * JSON.
   */
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
const LAST_LINES: Readonly<Record<ErrorForm, RegExp>> = {
  openai: /[\r\n]data: ?\[DONE\][ \t]*(?:[\r\n]|$)/,
  anthropic: /[\r\n]event: ?message_stop[\r\n]/,
}

/**
 * Frames pieces as server-sent events: text as the worker made it, every other piece as one event. Clients of
 * Anthropic's API read only events that have a name, which is the member `type` of each.
 */
export class EventWriter {
  readonly #form
  #tail = '\n\n'

  /** @param form that its client reads */
  constructor(form: ErrorForm = 'openai') {
    this.#form = form
  }

  /** The text to send for a piece. */
  write(piece: Piece): string {
    if (piece.kind === 'text') return this.#sent(piece.text)
    return this.#event(piece.json, this.#form === 'openai' ? null : eventName(piece.json))
  }

  /** True if the stream sent its last event: clients leave then, without waiting for the end of the response. */
  get isDone(): boolean {
    return LAST_LINES[this.#form].test(this.#tail)
  }

  /** The text that ends a complete stream: `[DONE]`, unless the worker has sent it, or the form has none. */
  done(): string {
    return this.isDone || this.#form === 'anthropic' ? '' : this.#event('[DONE]')
  }

  /** The text that ends a failed stream. @param json the error, in the form of the client */
  failed(json: string): string {
    return this.#event(json, this.#form === 'openai' ? null : 'error')
  }

  /** An event of the server begins on its own line, even if the worker's text stopped in the middle of one. */
  #event(data: string, name: string | null = null): string {
    const begun = /(?:\r\n|\n|\r){2}$/.test(this.#tail) ? '' : '\n\n'
    const line = data.includes('\n') || data.includes('\r') ? data.replaceAll(/[\r\n]+/g, ' ') : data
    return this.#sent(`${begun}${name === null ? '' : `event: ${name}\n`}data: ${line}\n\n`)
  }

  #sent(text: string): string {
    this.#tail = (text.length >= TAIL ? text : this.#tail + text).slice(-TAIL)
    return text
  }
}

/** The name of an event by the member `type` of its data; null without one. */
function eventName(json: string): string | null {
  const text = json.trimStart().startsWith('{') ? memberTexts(json).get('type') : undefined
  const [, name = null] = /^"([a-z_]{1,64})"$/.exec(text ?? '') ?? []
  return name
}

function partFromValue(value: unknown, json: string): StreamItem | null {
  if (!isJsonObject(value) || Object.keys(value).length !== 3) return null
  const { part: number, parts, json: part } = value
  const isPart = typeof number === 'number' && typeof parts === 'number' && parts > 1 && typeof part === 'string'
  return isPart ? { kind: 'part', number, parts, part, json } : null
}
