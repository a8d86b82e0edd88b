/** From the chunks of a job to the server-sent events of an OpenAI stream. */
import { isJsonObject, memberTexts, readJson } from './json-text.ts'
import { CHUNK_BYTES } from './result.ts'

/** One thing that a worker yielded: text that goes out as it is, or the JSON text of a value. */
export type Piece = { readonly kind: 'text'; readonly text: string } | { readonly kind: 'json'; readonly json: string }

/**
 * Takes the chunks of a stream one by one, and joins the values that were split because of their size
 * (`core/chunk.ts`). The items of lists come one by one.
 */
export class PieceReader {
  #joining: { readonly parts: number; readonly texts: string[]; characters: number } | null = null

  /** What the next chunk, a JSON object with `output`, brings; nothing while a value is incomplete. */
  push(chunk: string): Piece[] {
    const output = memberTexts(chunk).get('output')
    return output === undefined ? [] : this.pushOutput(output)
  }

  /** As {@link push}, for the JSON text of the output itself. */
  pushOutput(output: string): Piece[] {
    const reading = readJson(output)
    if (!reading.ok || reading.value === null) return []
    const { value } = reading
    if (!Array.isArray(value)) return this.#one(value, output)
    return value.flatMap(item => this.#one(item, JSON.stringify(item)))
  }

  #one(value: unknown, json: string): Piece[] {
    if (typeof value === 'string') return value === '' ? [] : [{ kind: 'text', text: value }]
    const part = partOf(value)
    const joining = this.#joining
    const expected = (joining?.texts.length ?? 0) + 1
    if (part === null || part.number !== expected || (joining !== null && part.parts !== joining.parts)) {
      this.#joining = null
      return [{ kind: 'json', json }]
    }
    const { parts, texts, characters } = joining ?? { parts: part.parts, texts: [], characters: 0 }
    texts.push(part.json)
    this.#joining = { parts, texts, characters: characters + part.json.length }
    // No chunk was larger than this before it was split.
    if (this.#joining.characters > CHUNK_BYTES.one) this.#joining = null
    if (texts.length < parts || this.#joining === null) return []
    this.#joining = null
    return this.#whole(texts.join(''))
  }

  #whole(json: string): Piece[] {
    const reading = readJson(json)
    return reading.ok ? [{ kind: 'json', json }] : []
  }
}

/** Characters of the end of a stream in which its last line is looked for. */
const TAIL = 256
const DONE_LINE = /[\r\n]data: ?\[DONE\][ \t]*(?:[\r\n]|$)/

/** Frames pieces as server-sent events: text as the worker made it, everything else one event each. */
export class EventWriter {
  #tail = '\n\n'

  /** The text to send for these pieces. */
  write(pieces: readonly Piece[]): string {
    return pieces.map(piece => (piece.kind === 'text' ? this.#sent(piece.text) : this.#event(piece.json))).join('')
  }

  /** Whether the stream has said its last: clients leave then, without waiting for the end of the answer. */
  get isDone(): boolean {
    return DONE_LINE.test(this.#tail)
  }

  /** The text that ends a stream well: `[DONE]`, unless the worker has said so itself. */
  done(): string {
    return this.isDone ? '' : this.#event('[DONE]')
  }

  /** The text that ends a stream badly. */
  failed(error: unknown): string {
    return this.#event(JSON.stringify({ error }))
  }

  /** An event of ours begins on a line of its own, even when the worker's text stopped in the middle of one. */
  #event(data: string): string {
    const begun = /(?:\r\n|\n|\r){2}$/.test(this.#tail) ? '' : '\n\n'
    return this.#sent(`${begun}data: ${data.replaceAll(/[\r\n]+/g, ' ')}\n\n`)
  }

  #sent(text: string): string {
    this.#tail = (this.#tail + text).slice(-TAIL)
    return text
  }
}

function partOf(value: unknown): { number: number; parts: number; json: string } | null {
  if (!isJsonObject(value) || Object.keys(value).length !== 3) return null
  const { part: number, parts, json } = value
  const isPart = typeof number === 'number' && typeof parts === 'number' && parts > 1 && typeof json === 'string'
  return isPart ? { number, parts, json } : null
}
