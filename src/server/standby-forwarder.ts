/** Passes requests on to another server, byte for byte, in both directions at once. */
import {
  Agent,
  type ClientRequest,
  type IncomingMessage,
  type RequestOptions,
  request,
  type ServerResponse,
} from 'node:http'
import { request as requestSecurely } from 'node:https'
import type { Duplex } from 'node:stream'
import { AppError } from '../core/errors.ts'
import { REQUEST_ID } from '../core/request-head.ts'
import { refuseUpgrade, respondError } from '../gateway/entrance/error-response.ts'
import { isSecure, peerAddress, readSender } from '../gateway/entrance/forwarded.ts'
import { join, keptFields, responseHead } from './passing.ts'
import { requestIdFromHeaders } from './request-ids.ts'
import { isDistrusted, type PeerAgents, peerAgents } from './standby-trust.ts'
import type { ListenerTls } from './tls.ts'

/** Marks a request that a standby server passed on, so that another one does not do it again. */
export const PASSED_ON = 'x-runyard-passed-on'
/** Time for the other server to accept a connection, in milliseconds. */
const CONNECT_MS = 3_000
const RETRY_AFTER_S = 2

/** Connections to the server that gets the requests. */
export class StandbyForwarder {
  readonly #agent = new Agent({ keepAlive: true })
  readonly #secure: PeerAgents
  readonly #trusts

  /**
   * @param trusts returns true if a peer is a trusted proxy, whose fields about the client are passed on
   * @param tls the own certificate, which the other server may have, too; null without one
   */
  constructor(trusts: (address: string) => boolean, tls: ListenerTls | null) {
    this.#trusts = trusts
    this.#secure = peerAgents(tls)
  }

  /**
   * Passes a request on, and its response back.
   * @param isNamed true if the caller may see the address of the other server
   */
  forward(incoming: IncomingMessage, outgoing: ServerResponse, { to, isNamed }: { to: URL; isNamed: boolean }): void {
    const sent = this.#send(incoming, to, [])
    sent.on('response', answer => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.statusMessage ?? '', answerFields(answer))
      // A slow response begins with its head.
      outgoing.flushHeaders()
      answer.on('error', () => outgoing.destroy()).pipe(outgoing)
    })
    sent.on('error', cause =>
      respondError(incoming, outgoing, unreachableError(isNamed ? to : null, cause), requestIdFromHeaders(incoming)),
    )
    outgoing.on('close', () => {
      if (!outgoing.writableFinished) sent.destroy()
    })
    incoming.on('error', () => sent.destroy()).pipe(sent)
  }

  /** Passes an upgrade on, and then the bytes of both sides. */
  upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer, to: URL): void {
    const sent = this.#send(incoming, to, ['Connection', 'Upgrade', 'Upgrade', incoming.headers.upgrade ?? ''])
    sent.on('upgrade', (answer, other, first) => {
      socket.write(responseHead(answer, answer.rawHeaders))
      socket.write(first)
      other.write(head)
      join(socket, other)
      join(other, socket)
    })
    sent.on('response', answer => {
      socket.write(responseHead(answer, [...answerFields(answer), 'Connection', 'close']))
      answer.on('error', () => socket.destroy()).pipe(socket)
    })
    sent.on('error', cause => refuseUpgrade(socket, unreachableError(to, cause), requestIdFromHeaders(incoming)))
    socket.on('close', () => sent.destroy())
    sent.end()
  }

  /** Ends the connections that no request uses. */
  close(): void {
    this.#agent.destroy()
    this.#secure.close()
  }

  #send(incoming: IncomingMessage, to: URL, more: readonly string[]): ClientRequest {
    const { socket, rawHeaders, method = 'GET', url = '/' } = incoming
    const peer = peerAddress(incoming) ?? ''
    const named = { peer, isSecure: isSecure(socket), host: incoming.headers.host ?? '', rawHeaders }
    const sender = readSender(named, this.#trusts)
    const hasChunks = incoming.headers['transfer-encoding'] !== undefined
    const fields = [
      ...keptFields(sender.rawHeaders, incoming.headers.connection, [REQUEST_ID, PASSED_ON]),
      ...['X-Forwarded-For', sender.client, 'X-Forwarded-Proto', sender.protocol, 'X-Forwarded-Host', sender.host],
      ...(sender.prefix === '' ? [] : ['X-Forwarded-Prefix', sender.prefix]),
      ...(hasChunks ? ['Transfer-Encoding', 'chunked'] : []),
      ...[REQUEST_ID, requestIdFromHeaders(incoming), PASSED_ON, '1', ...more],
    ]
    const { hostname, port } = to
    const host = hostname.replace(/^\[|\]$/g, '')
    const options = { host, port, method, path: url, headers: fields }
    const sent = to.protocol === 'https:' ? this.#securely(options, more.length > 0) : this.#plainly(options, more)
    const late = setTimeout(() => sent.destroy(new Error('it does not accept connections')), CONNECT_MS)
    sent.on('socket', connection => {
      if (connection.connecting) connection.once(readyEvent(to), () => clearTimeout(late))
      else clearTimeout(late)
    })
    sent.on('close', () => clearTimeout(late))
    return sent
  }

  #plainly(options: RequestOptions, more: readonly string[]): ClientRequest {
    return request({ ...options, agent: more.length > 0 ? false : this.#agent })
  }

  /** @param alone true for a connection of its own, before and after */
  #securely(options: RequestOptions, alone: boolean): ClientRequest {
    return requestSecurely({ ...options, agent: alone ? this.#secure.once : this.#secure.kept })
  }
}

/** Name of the event at which a connection can be used. */
function readyEvent({ protocol }: URL): 'connect' | 'secureConnect' {
  return protocol === 'https:' ? 'secureConnect' : 'connect'
}

function answerFields({ rawHeaders, headers }: IncomingMessage): string[] {
  return keptFields(rawHeaders, headers.connection, [PASSED_ON])
}

/** @param to null for a caller that may not learn its address */
function unreachableError(to: URL | null, cause: unknown): AppError {
  const active = to === null ? 'the active server' : `the active server at ${to.origin}`
  const message = isDistrusted(cause)
    ? `this server stands by, and does not believe the certificate of ${active}`
    : `this server stands by, and ${active} does not answer`
  return new AppError('unavailable', message, { retryAfterSeconds: RETRY_AFTER_S, cause })
}
