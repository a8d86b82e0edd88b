import { answerForm, TokenReader, type TokenUsage } from '../../core/openai/token-usage.ts'
import type { ResponseHead } from '../http1/response-head.ts'

/** Reads the tokens of a worker's answer while it passes, and changes nothing of it. */
export class AnswerTokens {
  readonly #report
  #reader: TokenReader | null = null
  #isCounted = false

  /** @param report called at the end with the tokens of a successful answer, null if it reports none */
  constructor(report: (usage: TokenUsage | null) => void) {
    this.#report = report
  }

  /** The head of the answer. A compressed body is passed on unread, so its request counts without tokens. */
  begin({ status, headers }: ResponseHead): void {
    if (status < 200 || status > 299) return
    const form = answerForm(fieldOf(headers, 'content-type'))
    if (form === null) return
    this.#isCounted = true
    const encoding = fieldOf(headers, 'content-encoding').toLowerCase()
    if (encoding === '' || encoding === 'identity') this.#reader = new TokenReader(form)
  }

  /** A piece of the body; the caller may overwrite it afterwards. */
  take(piece: Uint8Array): void {
    this.#reader?.take(piece)
  }

  /** The answer is out, or was cut. */
  end(): void {
    if (this.#isCounted) this.#report(this.#reader?.end() ?? null)
  }
}

/** True for a stream of events that can be read as it passes. */
export function isEventStream({ status, headers }: Pick<ResponseHead, 'status' | 'headers'>): boolean {
  const encoding = fieldOf(headers, 'content-encoding').toLowerCase()
  const isPlain = encoding === '' || encoding === 'identity'
  return status === 200 && isPlain && answerForm(fieldOf(headers, 'content-type')) === 'events'
}

function fieldOf(headers: readonly string[], name: string): string {
  for (let at = 0; at + 1 < headers.length; at += 2) if (headers[at]!.toLowerCase() === name) return headers[at + 1]!
  return ''
}
