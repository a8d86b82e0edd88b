/**
 * Reads the tokens that a worker reports in an answer of OpenAI's form, while its bytes pass. It keeps the beginning
 * and the end of the answer alone: the usage stands at the end, the model at the beginning or at the end.
 */
import { isJsonObject } from '../json/json-text.ts'
import { operationOf } from './operation.ts'

/** Tokens of one request, as its worker reports them. */
export interface TokenCounts {
  /** Tokens of the prompt, with those from a cache. */
  readonly promptTokens: number
  readonly completionTokens: number
  /** The part of the prompt that came from a cache. */
  readonly cachedTokens: number
}

/** Tokens of one request, and the model that its answer names; null without a name. */
export interface TokenUsage extends TokenCounts {
  readonly model: string | null
}

/** The form of an answer that has usage: one document, or server-sent events. */
export type AnswerForm = 'json' | 'events'

/** Limit of kept bytes at both ends of an answer, and of a usage object in characters. */
export const TOKEN_BYTES = { head: 2_048, tail: 16_384, usage: 4_096 } as const
/** Limit of characters of a model's name; longer names are cut. */
export const MAX_MODEL_NAME = 191
/** Limit of tokens of one request; a larger number is no count. */
const MAX_TOKENS = 1_000_000_000
/** Limit of places that may be usage, of one document and of all events. */
const MAX_PLACES = { document: 8, events: 64 } as const
const MAX_DEPTH = 8

/** Operations of OpenAI's API, and of servers of its form, whose answers report tokens. */
const OPERATIONS = new Set([
  ...['chat/completions', 'completions', 'embeddings', 'responses', 'messages', 'rerank', 'score', 'pooling'],
  ...['images/generations', 'images/edits', 'images/variations'],
  ...['audio/transcriptions', 'audio/translations', 'audio/speech'],
])

/**
 * True for a request whose answer may report tokens.
 * @param path with or without its query
 */
export function reportsTokens(method: string, path: string): boolean {
  return method === 'POST' && OPERATIONS.has(operationOf(path))
}

/** The form of an answer by its content type; null for one without usage. */
export function answerForm(contentType: string): AnswerForm | null {
  const end = contentType.indexOf(';')
  const type = (end < 0 ? contentType : contentType.slice(0, end)).trim().toLowerCase()
  return type === 'application/json' ? 'json' : type === 'text/event-stream' ? 'events' : null
}

/** Takes the bytes of one answer. It keeps at most 34 KiB of them, whatever comes. */
export class TokenReader {
  readonly #form
  #head = new Uint8Array(0)
  #tail = new Uint8Array(0)
  /** Bytes of the tail that are in use. */
  #used = 0
  #isCut = false

  constructor(form: AnswerForm) {
    this.#form = form
  }

  /** Number of bytes that it keeps. */
  get keptBytes(): number {
    return this.#head.length + this.#tail.length
  }

  /** Takes a piece; the caller may overwrite it afterwards. */
  take(piece: Uint8Array): void {
    const { head, tail } = TOKEN_BYTES
    if (this.#head.length < head) this.#head = joined(this.#head, piece.subarray(0, head - this.#head.length))
    if (piece.length >= tail) {
      this.#isCut ||= this.#used > 0 || piece.length > tail
      this.#tail = piece.slice(piece.length - tail)
      this.#used = tail
      return
    }
    if (this.#used + piece.length > this.#tail.length) this.#makeRoom(piece.length)
    this.#tail.set(piece, this.#used)
    this.#used += piece.length
  }

  /** The usage of the answer until now; null if it reports none. */
  end(): TokenUsage | null {
    const text = textOf(this.#tail.subarray(0, this.#used))
    const counts = this.#form === 'json' ? countsAtEnd(text, 1, MAX_PLACES.document) : this.#ofEvents(text)
    if (counts === null) return null
    const model = firstModel(textOf(this.#head)) ?? lastModel(text)
    return { model, ...counts }
  }

  /** Room for a piece: twice as much, up to two tails; then the older half goes. */
  #makeRoom(bytes: number): void {
    const { tail } = TOKEN_BYTES
    const kept = Math.min(this.#used, tail)
    const old = this.#tail.subarray(this.#used - kept, this.#used)
    this.#isCut ||= kept < this.#used
    const size = Math.min(2 * tail, Math.max(2 * this.#tail.length, kept + bytes, 1_024))
    if (size > this.#tail.length) {
      const larger = new Uint8Array(size)
      larger.set(old)
      this.#tail = larger
    } else this.#tail.copyWithin(0, this.#used - kept, this.#used)
    this.#used = kept
  }

  /** The last events decide; what they leave out comes from earlier ones, and at last from the first ones. */
  #ofEvents(text: string): TokenCounts | null {
    const found = new PartialCounts()
    const lines = eventLines(text)
    if (this.#isCut) lines.unshift(...eventLines(textOf(this.#head)))
    let places = 0
    for (let at = lines.length - 1; at >= 0 && places < MAX_PLACES.events && !found.isFull; at -= 1) {
      if (!lines[at]!.includes(USAGE)) continue
      places += 1
      found.add(usageAtEnd(lines[at]!, 2, MAX_PLACES.document))
    }
    return found.counts()
  }
}

/** The usage of a whole document; null if it reports none. */
export function tokensOfText(json: string): TokenUsage | null {
  const { head, tail } = TOKEN_BYTES
  const reader = new TokenReader('json')
  const encoder = new TextEncoder()
  const isLong = json.length > head + tail
  reader.take(encoder.encode(isLong ? json.slice(0, head) : json))
  if (isLong) reader.take(encoder.encode(json.slice(-tail)))
  return reader.end()
}

const USAGE = '"usage"'
const MODEL = '"model"'

/** Counts of one usage object; null for those that it leaves out. */
type Given = { readonly [Name in keyof TokenCounts]: number | null }

/** Counts that come in parts, the last one first. */
class PartialCounts {
  #given: Given = { promptTokens: null, completionTokens: null, cachedTokens: null }

  get isFull(): boolean {
    return this.#given.promptTokens !== null && this.#given.completionTokens !== null
  }

  add(more: Given | null): void {
    if (more === null) return
    const { promptTokens, completionTokens, cachedTokens } = this.#given
    this.#given = {
      promptTokens: promptTokens ?? more.promptTokens,
      completionTokens: completionTokens ?? more.completionTokens,
      cachedTokens: cachedTokens ?? more.cachedTokens,
    }
  }

  counts(): TokenCounts | null {
    const { promptTokens, completionTokens, cachedTokens } = this.#given
    if (promptTokens === null && completionTokens === null) return null
    const prompt = promptTokens ?? 0
    return {
      promptTokens: prompt,
      completionTokens: completionTokens ?? 0,
      cachedTokens: Math.min(cachedTokens ?? 0, prompt),
    }
  }
}

function countsAtEnd(text: string, deepest: number, places: number): TokenCounts | null {
  const found = new PartialCounts()
  found.add(usageAtEnd(text, deepest, places))
  return found.counts()
}

/**
 * The usage of a document whose beginning may be missing: the last member of that name, at most `deepest` objects
 * below the end of the document. A text of the model cannot be one, since its quotes are escaped.
 */
function usageAtEnd(text: string, deepest: number, places: number): Given | null {
  let left = places
  for (let at = text.lastIndexOf(USAGE); at >= 0 && left > 0; left -= 1) {
    const end = isEscaped(text, at) ? null : objectEnd(text, at + USAGE.length)
    if (end !== null) {
      const depth = depthAt(text, end)
      const given = depth === null || depth > deepest ? null : givenCounts(text.slice(text.indexOf('{', at), end))
      if (given !== null) return given
    }
    at = at === 0 ? -1 : text.lastIndexOf(USAGE, at - 1)
  }
  return null
}

/** The end of the object that is the value of a member, whose name ends at `from`; null for any other value. */
function objectEnd(text: string, from: number): number | null {
  const start = valueStart(text, from)
  if (start === null || text[start] !== '{') return null
  let depth = 0
  const limit = Math.min(text.length, start + TOKEN_BYTES.usage)
  for (let at = start; at < limit; at += 1) {
    const character = text[at]
    if (character === '"') {
      const end = stringEnd(text, at, limit)
      if (end === null) return null
      at = end
    } else if (character === '{' || character === '[') {
      depth += 1
      if (depth > MAX_DEPTH) return null
    } else if (character === '}' || character === ']') {
      depth -= 1
      if (depth === 0) return at + 1
    }
  }
  return null
}

/** Number of objects that end between a place outside of texts and the end of the document; null if it is cut. */
function depthAt(text: string, from: number): number | null {
  let depth = 0
  let lowest = 0
  for (let at = from; at < text.length; at += 1) {
    const character = text[at]
    if (character === '"') {
      const end = stringEnd(text, at, text.length)
      if (end === null) return null
      at = end
    } else if (character === '{' || character === '[') depth += 1
    else if (character === '}' || character === ']') {
      depth -= 1
      lowest = Math.min(lowest, depth)
    }
  }
  return depth === lowest && depth < 0 ? -depth : null
}

/** The place of the quote that ends a text; null if it does not end before `limit`. */
function stringEnd(text: string, start: number, limit: number): number | null {
  for (let at = start + 1; at < limit; at += 1) {
    if (text[at] === '\\') at += 1
    else if (text[at] === '"') return at
  }
  return null
}

/** The beginning of the value of a member, whose name ends at `from`; null if no colon follows. */
function valueStart(text: string, from: number): number | null {
  const colon = afterSpace(text, from)
  return text[colon] === ':' ? afterSpace(text, colon + 1) : null
}

function afterSpace(text: string, from: number): number {
  let at = from
  while (text[at] === ' ' || text[at] === '\n' || text[at] === '\r' || text[at] === '\t') at += 1
  return at
}

/** True if the quote at a place belongs to a text: an odd number of backslashes is before it. */
function isEscaped(text: string, at: number): boolean {
  let count = 0
  while (text[at - 1 - count] === '\\') count += 1
  return count % 2 === 1
}

/** The counts of a usage object of OpenAI's forms, or of that of Anthropic's; null without any. */
function givenCounts(json: string): Given | null {
  const usage = readObject(json)
  if (usage === null) return null
  const total = count(usage.total_tokens)
  const read = count(usage.cache_read_input_tokens)
  const written = count(usage.cache_creation_input_tokens)
  const input = count(usage.input_tokens)
  // The input of Anthropic's form leaves out what was read from a cache, or written to one.
  const whole = input === null ? null : input + (read ?? 0) + (written ?? 0)
  const completionTokens = count(usage.completion_tokens) ?? count(usage.output_tokens)
  const rest = total === null ? null : Math.max(0, total - (completionTokens ?? 0))
  const promptTokens = count(usage.prompt_tokens) ?? whole ?? rest
  if (promptTokens === null && completionTokens === null) return null
  return { promptTokens, completionTokens, cachedTokens: cachedIn(usage) ?? read }
}

function cachedIn(usage: Record<string, unknown>): number | null {
  for (const details of [usage.prompt_tokens_details, usage.input_tokens_details]) {
    const cached = isJsonObject(details) ? count(details.cached_tokens) : null
    if (cached !== null) return cached
  }
  return null
}

function readObject(json: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(json)
    return isJsonObject(value) ? value : null
  } catch {
    return null
  }
}

function count(value: unknown): number | null {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_TOKENS ? value : null
}

function firstModel(text: string): string | null {
  for (let at = text.indexOf(MODEL), left = MAX_PLACES.document; at >= 0 && left > 0; left -= 1) {
    const name = modelAt(text, at)
    if (name !== null) return name
    at = text.indexOf(MODEL, at + 1)
  }
  return null
}

function lastModel(text: string): string | null {
  for (let at = text.lastIndexOf(MODEL), left = MAX_PLACES.document; at >= 0 && left > 0; left -= 1) {
    const name = modelAt(text, at)
    if (name !== null) return name
    at = at === 0 ? -1 : text.lastIndexOf(MODEL, at - 1)
  }
  return null
}

function modelAt(text: string, at: number): string | null {
  const start = isEscaped(text, at) ? null : valueStart(text, at + MODEL.length)
  if (start === null || text[start] !== '"') return null
  const end = stringEnd(text, start, Math.min(text.length, start + TOKEN_BYTES.usage))
  if (end === null) return null
  try {
    return modelName(JSON.parse(text.slice(start, end + 1)))
  } catch {
    return null
  }
}

/** The name of a model for sums: without characters that no name has, and not too long; null without a name. */
export function modelName(given: unknown): string | null {
  if (typeof given !== 'string') return null
  const name = given.replaceAll(/\p{C}/gu, '').trim().slice(0, MAX_MODEL_NAME).toWellFormed()
  return name === '' ? null : name
}

function eventLines(text: string): string[] {
  return text.split(/[\r\n]/)
}

function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes)
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(first.length + second.length)
  bytes.set(first)
  bytes.set(second, first.length)
  return bytes
}
