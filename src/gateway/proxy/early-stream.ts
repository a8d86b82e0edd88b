import type { ServerResponse } from 'node:http'
import { answerEvents, failureEvent } from '../../core/openai/early-answer.ts'
import type { ErrorForm } from '../../core/openai/error-form.ts'
import { answerForm } from '../../core/openai/token-usage.ts'
import type { ResponseHead } from '../http1/response-head.ts'

/** A line that clients of event streams ignore, and the time between two of them: proxies cut silent responses. */
const COMMENT = ': waiting for a worker\n\n'
const COMMENT_MS = 10_000
/** Limit of bytes of an answer of which an event is made. */
const MAX_ANSWER_BYTES = 1_048_576

/**
 * A stream whose head the client gets while its request waits for a worker, with comments until the worker answers.
 * The events of the worker follow; of any other answer an event is made.
 */
export class EarlyStream {
  readonly #outgoing
  readonly #form
  #commentedMs = 0
  #isAnswered = false
  /** The answer of the worker, where it is no stream. */
  #answer: {
    readonly head: Pick<ResponseHead, 'status' | 'headers'>
    readonly pieces: Buffer[]
    bytes: number
  } | null = null

  /**
   * Sends the head.
   * @param fields of it, names and values in turn
   * @param form of its errors
   */
  constructor(
    outgoing: ServerResponse,
    nowMs: number,
    {
      waitsFor,
      fields,
      form,
    }: { readonly waitsFor: string; readonly fields: readonly string[]; readonly form: ErrorForm },
  ) {
    this.#outgoing = outgoing
    this.#form = form
    const own = ['Content-Type', 'text/event-stream; charset=utf-8', 'Cache-Control', 'no-cache']
    outgoing.writeHead(200, [...own, 'X-Accel-Buffering', 'no', 'X-Runyard-Wait', waitsFor, ...fields])
    this.#comment(nowMs)
  }

  /** True while the answer is read, because it is no stream. */
  get gathers(): boolean {
    return this.#answer !== null
  }

  /** Sends a comment if it is time for one. */
  tick(nowMs: number): void {
    const waits = !this.#isAnswered || this.gathers
    if (waits && !this.#outgoing.writableEnded && nowMs - this.#commentedMs >= COMMENT_MS) this.#comment(nowMs)
  }

  /** The worker has begun to answer: its body is passed on if it is a stream, and else read. */
  answered(head: Pick<ResponseHead, 'status' | 'headers'>): void {
    this.#isAnswered = true
    const isSuccess = head.status >= 200 && head.status < 300
    if (!isSuccess || answerForm(contentType(head)) !== 'events') this.#answer = { head, pieces: [], bytes: 0 }
  }

  /** A piece of an answer that is read; the caller may overwrite it afterwards. */
  gather(piece: Uint8Array): void {
    if (this.#answer === null) return
    this.#answer.bytes += piece.length
    if (this.#answer.bytes <= MAX_ANSWER_BYTES) this.#answer.pieces.push(Buffer.from(piece))
    else this.#answer.pieces.length = 0
  }

  /** Ends it with the event of the answer that was read. */
  end(): void {
    const { head, pieces, bytes } = this.#answer!
    this.#answer = null
    const text = bytes > MAX_ANSWER_BYTES ? null : Buffer.concat(pieces).toString()
    this.#outgoing.end(answerEvents(this.#form, { status: head.status, contentType: contentType(head), text }))
  }

  /** Ends it with an error. */
  fail(status: number, message: string): void {
    this.#isAnswered = true
    this.#answer = null
    this.#outgoing.end(failureEvent(this.#form, status, message))
  }

  #comment(nowMs: number): void {
    this.#commentedMs = nowMs
    this.#outgoing.write(COMMENT)
  }
}

function contentType({ headers }: Pick<ResponseHead, 'headers'>): string {
  const at = headers.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === 'content-type')
  return at < 0 ? '' : headers[at + 1]!
}
