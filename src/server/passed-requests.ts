/**
 * Requests that the threads which read HTTP pass on to the deciding thread: all that are not for a load-balancing
 * endpoint, and every request while the server stands by.
 */
import { Agent, type ClientRequest, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { AppError } from '../core/errors.ts'
import { REQUEST_ID } from '../core/request-head.ts'
import { isSameSecret } from '../crypto/same-secret.ts'
import { shortSocketPath } from '../disk/socket-file.ts'
import { refuseUpgrade, respondError } from '../gateway/entrance/error-response.ts'
import { peerAddress, setPeerAddress } from '../gateway/entrance/forwarded.ts'
import { hasBody } from './connections.ts'
import { join, keptFields, responseHead } from './passing.ts'
import { requestIdFromHeaders } from './request-ids.ts'
import type { StandIn } from './stand-in.ts'

/** Has the secret of this run, and the address of the client. */
const PASSED_BY = 'x-runyard-thread'
/** Limit of idle connections of a thread to the deciding one, and the time after which this side ends one first. */
const MAX_IDLE = 64
const IDLE_MS = 30_000

/** The deciding thread's view of requests that come from its threads alone. */
export class PassedRequests {
  readonly #secret
  readonly #accepted = new WeakSet<IncomingMessage>()

  /** @param secret of this run, which its threads have */
  constructor(secret: string) {
    this.#secret = secret
  }

  /** Accepts a request that came as a message of a thread. @param address of its client, if known */
  trust(incoming: IncomingMessage, address: string | undefined): void {
    if (address !== undefined) setPeerAddress(incoming, address)
    this.#accepted.add(incoming)
  }

  /** True if a thread of this server passed a request on, whose client then has its address. */
  accepts(incoming: IncomingMessage): boolean {
    if (this.#accepted.has(incoming)) return true
    const { headers, rawHeaders } = incoming
    const value = headers[PASSED_BY]
    if (typeof value !== 'string') return false
    const [secret = '', address = ''] = value.split(' ')
    if (!isSameSecret(secret, this.#secret)) return false
    delete headers[PASSED_BY]
    // The thread puts it first.
    rawHeaders.splice(0, 2)
    setPeerAddress(incoming, address)
    this.#accepted.add(incoming)
    return true
  }
}

/** Passes requests on to the deciding thread. */
export class RequestPasser implements StandIn {
  readonly isCounting = true
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: MAX_IDLE, timeout: IDLE_MS })
  readonly #socketPath
  readonly #secret

  /** @param file the socket of the deciding thread in the file system */
  constructor(file: string, secret: string) {
    this.#socketPath = shortSocketPath(file)
    this.#secret = secret
  }

  /** The deciding thread checks hosts. */
  passesOn(): boolean {
    return true
  }

  handle(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const sent = this.#send(incoming, [])
    let answered = false
    let complete = false
    sent.on('response', answer => {
      answered = true
      // From then on the connection is another request's.
      answer.on('end', () => {
        complete = true
      })
      const isLast = /\bclose\b/i.test(answer.headers.connection ?? '')
      const fields = keptFields(answer.rawHeaders, answer.headers.connection)
      outgoing.writeHead(answer.statusCode ?? 502, answer.statusMessage ?? '', [
        ...fields,
        ...(isLast ? ['Connection', 'close'] : []),
      ])
      // A slow response begins with its head.
      outgoing.flushHeaders()
      answer.on('error', () => outgoing.destroy()).pipe(outgoing)
    })
    sent.on('error', cause => {
      // After a response that needed no body, the rest of the body is the listener's.
      if (!answered) respondError(incoming, outgoing, lostError(cause), requestIdFromHeaders(incoming))
      else if (!outgoing.writableEnded) outgoing.destroy()
    })
    const { socket } = incoming
    // Handlers learn when the client has shut its side.
    const shut = () => {
      if (!complete) sent.socket?.end()
    }
    socket.once('end', shut)
    outgoing.on('close', () => {
      socket.off('end', shut)
      if (!outgoing.writableFinished || !incoming.complete) sent.destroy()
    })
    incoming.on('error', () => sent.destroy()).pipe(sent)
    // The deciding thread judges a request whose body does not come as well.
    if (hasBody(incoming)) setImmediate(() => sent.flushHeaders())
  }

  upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void {
    const sent = this.#send(incoming, ['Connection', 'Upgrade', 'Upgrade', incoming.headers.upgrade ?? ''])
    sent.on('upgrade', (answer, other, first) => {
      socket.write(responseHead(answer, answer.rawHeaders))
      socket.write(first)
      other.write(head)
      join(socket, other)
      join(other, socket)
    })
    sent.on('response', answer => {
      const fields = keptFields(answer.rawHeaders, answer.headers.connection)
      socket.write(responseHead(answer, [...fields, 'Connection', 'close']))
      answer.on('error', () => socket.destroy()).pipe(socket)
    })
    sent.on('error', cause => refuseUpgrade(socket, lostError(cause), requestIdFromHeaders(incoming)))
    socket.on('close', () => sent.destroy())
    sent.end()
  }

  /** Ends the connections that no request uses. */
  close(): void {
    this.#agent.destroy()
  }

  #send(incoming: IncomingMessage, more: readonly string[]): ClientRequest {
    const { rawHeaders, method = 'GET', url = '/' } = incoming
    const hasChunks = incoming.headers['transfer-encoding'] !== undefined
    const headers = [
      ...[PASSED_BY, `${this.#secret} ${peerAddress(incoming) ?? ''}`],
      ...keptFields(rawHeaders, incoming.headers.connection, [REQUEST_ID, PASSED_BY]),
      ...(hasChunks ? ['Transfer-Encoding', 'chunked'] : []),
      ...[REQUEST_ID, requestIdFromHeaders(incoming), ...more],
    ]
    const agent = more.length > 0 ? false : this.#agent
    return request({ socketPath: this.#socketPath, method, path: url, headers, agent })
  }
}

function lostError(cause: unknown): AppError {
  return new AppError('unavailable', 'the server is stopping', { retryAfterSeconds: 2, cause })
}
