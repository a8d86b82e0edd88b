import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { WorkerId } from '../../core/ids.ts'
import { type ErrorForm, errorText, openAiType } from '../../core/openai/error-form.ts'
import { corsHeaders } from '../entrance/cors.ts'
import { allowedTrailers, REQUEST_ID_FIELD, WORKER_ID } from '../http1/fields.ts'
import type { Framing, ResponseHead } from '../http1/response-head.ts'
import { EarlyStream } from './early-stream.ts'
import type { ProxyRequest } from './proxy-request.ts'
import type { TurnWrites } from './turn-writes.ts'

/** Limit of bytes of a response that wait for the client. */
const MAX_UNREAD_BYTES = 65_536

const OWN_FIELDS = ['Content-Type', 'application/json', 'Cache-Control', 'no-store']

/** Largest body that is copied to go out in one write with its head. */
const SHORT_BYTES = 8_192

/** The response to a client: the worker's as it arrives, or one of the gateway. */
export class ResponseWriter {
  readonly #incoming
  readonly #outgoing
  readonly #requestId
  readonly #form
  readonly #writes
  /** True if the client speaks HTTP/1.0, which has no chunks, no trailers and no informational responses. */
  readonly #isOld: boolean
  #framing: Framing = 0
  #unflushed = false
  /** The body of a response that goes out whole at the end of this turn. */
  #whole: string | null = null
  #held: Socket | null = null
  /** A stream that begins before its worker is known; null for any other response. */
  #early: EarlyStream | null = null
  /** 0 before the response. */
  status = 0
  /** Number of bytes of the worker's body. */
  bytes = 0
  /** True if the client left it unread for a while, so that a lost worker is not the worker's fault. */
  isLeftUnread = false

  /** @param form of errors of the gateway; null for its own */
  constructor(
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    requestId: string,
    form: ErrorForm | null,
    writes: TurnWrites,
  ) {
    this.#writes = writes
    this.#requestId = requestId
    this.#form = form
    this.#incoming = incoming
    this.#outgoing = outgoing
    this.#isOld = incoming.httpVersion === '1.0'
  }

  /** True if all of it was given to the system. */
  get finished(): boolean {
    return this.#outgoing.writableFinished
  }

  /**
   * Sends the head of a stream before its worker is known, unless something was sent.
   * @param waitsFor cause for which it waits
   * @param more further fields, names and values in turn
   */
  early(nowMs: number, waitsFor: string, more: readonly string[]): void {
    if (this.#outgoing.headersSent) return
    const cors = corsHeaders(this.#incoming.headers.origin)
    const fields = [...cors, ...more, REQUEST_ID_FIELD, this.#requestId]
    this.#early = new EarlyStream(this.#outgoing, nowMs, { waitsFor, fields, form: this.#form ?? 'openai' })
  }

  /** Sends what is due while the client waits. */
  tick(nowMs: number): void {
    this.#early?.tick(nowMs)
  }

  /** Asks the client for the body of its request. */
  askForBody(): void {
    this.#outgoing.writeContinue()
  }

  /** Forwards an informational response (RFC 9110, 15.2), except 100, which the gateway sends itself. */
  inform({ status, headers }: ResponseHead): void {
    if (status !== 100 && !this.#isOld && this.#early === null) this.#outgoing.writeInformation(status, headers)
  }

  /** The head of the worker's response. */
  head({ status, reason, headers, framing }: ResponseHead, workerId: WorkerId): void {
    this.status = status
    this.#framing = framing
    if (this.#early !== null) {
      this.#early.answered({ status, headers })
      return
    }
    this.#unflushed = true
    headers.push(WORKER_ID, workerId, REQUEST_ID_FIELD, this.#requestId)
    this.#outgoing.writeHead(status, reason, this.#isOld ? withoutTrailer(headers) : headers)
  }

  /**
   * A piece of its body; the caller may overwrite the buffer afterwards.
   * @param worker the connection to the worker, which is paused while the client does not read
   */
  body(piece: Uint8Array, last: boolean, worker: Socket): void {
    const outgoing = this.#outgoing
    const isWhole = last && this.#unflushed
    this.#unflushed = false
    this.bytes += piece.length
    if (this.#early?.gathers === true) {
      this.#early.gather(piece)
      return
    }
    // Text goes out in one write with the head.
    if (isWhole && piece.length <= SHORT_BYTES) {
      this.#whole = latin1(piece)
      this.#writes.add(this)
    } else if (last) outgoing.end(Buffer.from(piece))
    else if (!outgoing.write(Buffer.from(piece)) && outgoing.writableLength >= MAX_UNREAD_BYTES) this.#hold(worker)
  }

  /** Sends a whole response. */
  writeNow(): void {
    const whole = this.#whole
    if (whole === null) return
    this.#whole = null
    this.#outgoing.end(whole, 'latin1')
  }

  /** Sends the head if it still waits: its body may arrive much later. */
  flush(): void {
    if (!this.#unflushed) return
    this.#unflushed = false
    this.#outgoing.flushHeaders()
  }

  /** Ends the worker's response, which is complete. */
  end(trailers: readonly string[]): void {
    const outgoing = this.#outgoing
    this.#held = null
    if (outgoing.writableEnded || this.#whole !== null) return
    if (this.#early !== null) {
      if (this.#early.gathers) this.#early.end()
      else outgoing.end()
      return
    }
    if (trailers.length > 0 && outgoing.chunkedEncoding) outgoing.addTrailers(pairs(allowedTrailers(trailers)))
    outgoing.end()
  }

  /**
   * Sends a response of the gateway.
   * @param more further fields, names and values in turn
   */
  own(status: number, body: string, more: readonly string[]): void {
    this.status = status
    const bytes = Buffer.from(body)
    this.#outgoing.writeHead(status, [
      ...more,
      REQUEST_ID_FIELD,
      this.#requestId,
      'Content-Length',
      String(bytes.length),
    ])
    this.#outgoing.end(bytes)
  }

  /**
   * Sends an error of the gateway.
   * @param code of the error, for clients that read one
   * @param more as of {@link own}
   */
  refuse(status: number, message: string, code: string, more: readonly string[]): void {
    if (this.#early !== null) {
      this.status = status
      this.#early.fail(status, message)
      return
    }
    const error = { message, type: openAiType(status), code }
    const body = this.#form === null ? JSON.stringify({ error: message }) : errorText(this.#form, status, error)
    this.own(status, body, [...OWN_FIELDS, ...corsHeaders(this.#incoming.headers.origin), ...more])
  }

  /** True if the client has not read the sent bytes. Call it while nothing moves. */
  checkUnread(): boolean {
    this.isLeftUnread ||= this.#outgoing.writableLength > 0
    return this.isLeftUnread
  }

  /** Cuts it, so that the client does not take it for complete. */
  cut(): void {
    const outgoing = this.#outgoing
    const { socket } = outgoing
    this.#held = null
    if (outgoing.writableEnded) return
    if (this.#early?.gathers === true) this.refuse(502, 'the answer of the worker broke off', 'worker_error', [])
    else if (socket === null) outgoing.destroy()
    else if (this.#isOld && typeof this.#framing !== 'number') socket.resetAndDestroy()
    else if (this.isLeftUnread) socket.destroy()
    // Node drops bytes that are still corked in this turn of the loop.
    else process.nextTick(() => socket.destroySoon())
  }

  #hold(worker: Socket): void {
    if (this.#held !== null) return
    this.#held = worker
    worker.pause()
    this.#outgoing.once('drain', () => {
      this.#held?.resume()
      this.#held = null
    })
  }
}

function pairs(raw: readonly string[]): [string, string][] {
  return Array.from({ length: raw.length / 2 }, (_, at) => [raw[at * 2]!, raw[at * 2 + 1]!])
}

function withoutTrailer(headers: readonly string[]): string[] {
  return headers.filter((_, at) => headers[at - (at % 2)]!.toLowerCase() !== 'trailer')
}

/**
 * The head of a 101 for the client.
 * @param request the request, whose subprotocol is named if the worker names none
 */
export function switchingText(
  { reason, headers, upgrade }: ResponseHead,
  workerId: WorkerId,
  { subprotocol, requestId }: Pick<ProxyRequest, 'subprotocol' | 'requestId'>,
): string {
  let text = `HTTP/1.1 101 ${reason}\r\n`
  let isNamed = subprotocol === undefined
  for (let at = 0; at + 1 < headers.length; at += 2) {
    text += `${headers[at]}: ${headers[at + 1]}\r\n`
    isNamed ||= headers[at]!.toLowerCase() === 'sec-websocket-protocol'
  }
  if (!isNamed) text += `Sec-WebSocket-Protocol: ${subprotocol}\r\n`
  return `${text}Connection: Upgrade\r\nUpgrade: ${upgrade}\r\n${WORKER_ID}: ${workerId}\r\n${REQUEST_ID_FIELD}: ${requestId}\r\n\r\n`
}

function latin1({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, length).toString('latin1')
}
