import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { WorkerId } from '../../core/ids.ts'
import { readableBy } from '../entrance/cors.ts'
import { passedTrailers, WORKER_ID } from '../http1/fields.ts'
import type { Framing, ResponseHead } from '../http1/response-head.ts'

/** So much of an answer may wait for its client. */
const MOST_UNSENT_BYTES = 65_536

const OWN_FIELDS = ['Content-Type', 'application/json', 'Cache-Control', 'no-store']

/** A body that is worth copying for that. */
const SHORT_BYTES = 8_192

/** The answer to a client: the worker's as it comes, or one of our own. */
export class ResponseWriter {
  readonly #incoming: IncomingMessage
  readonly #outgoing: ServerResponse
  /** Whether the client speaks HTTP/1.0, which has no chunks, no trailers and no interim answers. */
  readonly #isOld: boolean
  #framing: Framing = 0
  #unflushed = false
  #held: Socket | null = null
  /** 0 while there is none. */
  status = 0
  /** Of the worker's body. */
  bytes = 0
  /** Whether it is the worker's. */
  begun = false
  /** Whether it has lain unread for a while: what its worker does then says nothing about the worker. */
  hasLain = false

  constructor(incoming: IncomingMessage, outgoing: ServerResponse) {
    this.#incoming = incoming
    this.#outgoing = outgoing
    this.#isOld = incoming.httpVersion === '1.0'
  }

  /** Whether everything was handed to the system. */
  get finished(): boolean {
    return this.#outgoing.writableFinished
  }

  /** Asks the client for the body of its request. */
  askForBody(): void {
    this.#outgoing.writeContinue()
  }

  /** Interim answers are passed on (RFC 9110, 15.2), but for 100, which was given here. */
  inform({ status, headers }: ResponseHead): void {
    if (status !== 100 && !this.#isOld) this.#outgoing.writeInformation(status, headers)
  }

  /** The head of the worker's answer. */
  head({ status, reason, headers, framing }: ResponseHead, workerId: WorkerId): void {
    this.begun = true
    this.status = status
    this.#framing = framing
    this.#unflushed = true
    headers.push(WORKER_ID, workerId)
    this.#outgoing.writeHead(status, reason, this.#isOld ? withoutTrailer(headers) : headers)
  }

  /**
   * Some of its body, which the caller may overwrite afterwards.
   * @param from where more comes from, which rests while the client does not read
   */
  body(piece: Buffer, last: boolean, from: Socket): void {
    const outgoing = this.#outgoing
    const isWhole = last && this.#unflushed
    this.#unflushed = false
    this.bytes += piece.length
    // As text it goes out in one piece with the head.
    if (isWhole && piece.length <= SHORT_BYTES) outgoing.end(piece.toString('latin1'), 'latin1')
    else if (last) outgoing.end(Buffer.from(piece))
    else if (!outgoing.write(Buffer.from(piece)) && outgoing.writableLength >= MOST_UNSENT_BYTES) this.#hold(from)
  }

  /** Sends what there is: a head may come long before its body. */
  flush(): void {
    if (!this.#unflushed) return
    this.#unflushed = false
    this.#outgoing.flushHeaders()
  }

  /** The worker's answer is whole. */
  end(trailers: readonly string[]): void {
    const outgoing = this.#outgoing
    this.#held = null
    if (outgoing.writableEnded) return
    if (trailers.length > 0 && outgoing.chunkedEncoding) outgoing.addTrailers(pairs(passedTrailers(trailers)))
    outgoing.end()
  }

  /**
   * An answer of our own.
   * @param more further fields, names and values in turn
   */
  own(status: number, body: string, more: readonly string[]): void {
    this.status = status
    const bytes = Buffer.from(body)
    this.#outgoing.writeHead(status, [...more, 'Content-Length', String(bytes.length)])
    this.#outgoing.end(bytes)
  }

  /** An error of our own. @param more as of {@link own} */
  refuse(status: number, error: string, more: readonly string[]): void {
    this.own(status, JSON.stringify({ error }), [...OWN_FIELDS, ...readableBy(this.#incoming.headers.origin), ...more])
  }

  /** To be asked while nothing moves: whether it is the client that has not taken what there is. */
  isUnread(): boolean {
    this.hasLain ||= this.#outgoing.writableLength > 0
    return this.hasLain
  }

  /** Breaks it off so that nobody takes it for whole. */
  cut(): void {
    const outgoing = this.#outgoing
    const { socket } = outgoing
    this.#held = null
    if (outgoing.writableEnded) return
    if (socket === null) outgoing.destroy()
    else if (this.#isOld && typeof this.#framing !== 'number') socket.resetAndDestroy()
    else if (this.hasLain) socket.destroy()
    // Node loses what is still corked in this turn.
    else process.nextTick(() => socket.destroySoon())
  }

  #hold(from: Socket): void {
    if (this.#held !== null) return
    this.#held = from
    from.pause()
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
 * The head of a 101 as the client gets it.
 * @param subprotocol what it names where the worker names none
 */
export function switchingText(
  { reason, headers, upgrade }: ResponseHead,
  workerId: WorkerId,
  subprotocol: string | undefined,
): string {
  let text = `HTTP/1.1 101 ${reason}\r\n`
  let named = subprotocol === undefined
  for (let at = 0; at + 1 < headers.length; at += 2) {
    text += `${headers[at]}: ${headers[at + 1]}\r\n`
    named ||= headers[at]!.toLowerCase() === 'sec-websocket-protocol'
  }
  if (!named) text += `Sec-WebSocket-Protocol: ${subprotocol}\r\n`
  return `${text}Connection: Upgrade\r\nUpgrade: ${upgrade}\r\n${WORKER_ID}: ${workerId}\r\n\r\n`
}
