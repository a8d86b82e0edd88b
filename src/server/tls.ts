/**
 * TLS in front of a listener for HTTP/1.1. A connection is counted before its handshake and has to finish that in
 * time, and gets the certificate that is in use when it comes; see docs/adr/0063-tls-by-itself.md.
 */
import { constants } from 'node:crypto'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import {
  createSecureContext,
  createServer,
  type SecureContext,
  type TLSSocket,
  type Server as TlsServer,
} from 'node:tls'
import { REQUEST_ID } from '../core/request-head.ts'
import type { Connections } from './connections.ts'
import { newRequestId } from './request-ids.ts'

/** A certificate with its chain and its private key, in PEM. */
export interface KeyAndCertificate {
  readonly cert: string
  readonly key: string
}

/** The certificate of a listener. */
export interface ListenerTls {
  /** The pair for new connections. */
  readonly current: KeyAndCertificate
  /** Calls back with each pair that replaces it. @returns ends the calls */
  watch(changed: (pair: KeyAndCertificate) => void): () => void
  /**
   * The pair for clients that ask for a name; null for {@link current}, which all names have by default.
   * @param name in lower case
   */
  pairFor?(name: string): Promise<KeyAndCertificate | null>
  /** True to answer plain HTTP at the same port, too; by default it gets an error with the address in HTTPS. */
  readonly answersPlain?: boolean
}

/**
 * Longest handshake from the first byte of the connection, and longest silence of a client before it, in milliseconds.
 */
const HANDSHAKE_MS = 10_000
/** Time for a client of plain HTTP to read its refusal, in milliseconds. */
const REFUSAL_MS = 1_000

/**
 * TLS 1.2 at least. A client that asks for another handshake in the middle gets none: that costs it
 * little and the server much.
 */
const TLS_RULES = {
  minVersion: 'TLSv1.2',
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION | constants.SSL_OP_CIPHER_SERVER_PREFERENCE,
} as const

/**
 * Lets a server of HTTP answer decrypted connections alone. For a call before it listens.
 * @param url the address of the listener, for those who speak plain HTTP
 * @param handshakeMs in place of {@link HANDSHAKE_MS}
 * @returns stops following the certificate
 */
export function overTls(
  server: Server,
  connections: Connections,
  tls: ListenerTls,
  url: () => string,
  handshakeMs = HANDSHAKE_MS,
): () => void {
  // The HTTP server's handler of connections now handles the decrypted ones.
  const listeners = server.listeners('connection') as ((socket: Socket) => void)[]
  server.removeAllListeners('connection')
  const named = tls.pairFor === undefined ? {} : { SNICallback: contexts(name => tls.pairFor!(name)) }
  const handshakes = createServer({ ...TLS_RULES, ...tls.current, ...named, ALPNProtocols: ['http/1.1'] })
  const unfinished = new Handshakes(connections, handshakes, handshakeMs)
  const answerPlain = (socket: Socket, first: Buffer) => {
    socket.pause()
    for (const listener of listeners) listener.call(server, socket)
    socket.unshift(first)
    socket.resume()
  }
  const refuse = (socket: Socket, first: Buffer) => refusePlain(socket, first, url())
  server.on('connection', (socket: Socket) => {
    if (connections.arrives(socket)) unfinished.begin(socket, tls.answersPlain === true ? answerPlain : refuse)
  })
  handshakes.on('secureConnection', socket => {
    if (!unfinished.end(socket)) return
    for (const listener of listeners) listener.call(server, socket)
  })
  return tls.watch(pair => handshakes.setSecureContext({ ...TLS_RULES, ...pair }))
}

/** Limit of certificates that are kept ready for handshakes, besides the one for all names. */
const MAX_CONTEXTS = 200

type ForName = (name: string, done: (error: Error | null, context?: SecureContext) => void) => void

/** Selects the certificate of a name: after an error, the one for all names. */
function contexts(pairFor: (name: string) => Promise<KeyAndCertificate | null>): ForName {
  const ready = new Map<string, { readonly cert: string; readonly context: SecureContext }>()
  const findContext = ({ cert, key }: KeyAndCertificate, name: string): SecureContext => {
    const cached = ready.get(name)
    if (cached?.cert === cert) return cached.context
    const context = createSecureContext({ ...TLS_RULES, cert, key })
    if (ready.size >= MAX_CONTEXTS) ready.clear()
    ready.set(name, { cert, context })
    return context
  }
  return (asked, done) => {
    const name = asked.toLowerCase()
    pairFor(name)
      .then(pair => (pair === null ? undefined : findContext(pair, name)))
      .catch(() => undefined)
      .then(context => done(null, context))
  }
}

/** Connections whose handshake is not finished, by both of their ends. */
class Handshakes {
  readonly #connections
  readonly #server
  readonly #ms
  readonly #unfinished = new Map<string, { readonly socket: Socket; readonly late: NodeJS.Timeout }>()

  constructor(connections: Connections, server: TlsServer, ms: number) {
    this.#connections = connections
    this.#server = server
    this.#ms = ms
  }

  /** @param plain called with the first bytes of a client that does not speak TLS */
  begin(socket: Socket, plain: (socket: Socket, first: Buffer) => void): void {
    const ends = connectionKey(socket)
    // It has closed already.
    if (ends === null) return void socket.destroy()
    const late = setTimeout(() => socket.destroy(), this.#ms).unref()
    this.#unfinished.set(ends, { socket, late })
    socket.on('error', () => {})
    socket.once('close', () => {
      clearTimeout(late)
      if (this.#unfinished.get(ends)?.socket === socket) this.#unfinished.delete(ends)
    })
    const destroy = () => void socket.destroy()
    socket.once('end', destroy)
    socket.once('data', (first: Buffer) => {
      socket.off('end', destroy)
      if (isPlain(first)) {
        clearTimeout(late)
        this.#unfinished.delete(ends)
        return plain(socket, first)
      }
      socket.pause()
      socket.unshift(first)
      // A client that ends its side before the handshake is over has gone. After it the HTTP
      // server handles that itself.
      socket.allowHalfOpen = false
      this.#server.emit('connection', socket)
    })
  }

  /** Gives the place of a connection to its decrypted socket. False if the connection is closed. */
  end(secure: TLSSocket): boolean {
    const ends = connectionKey(secure)
    const begun = ends === null ? undefined : this.#unfinished.get(ends)
    if (ends === null || begun === undefined) {
      secure.destroy()
      return false
    }
    clearTimeout(begun.late)
    this.#unfinished.delete(ends)
    secure.allowHalfOpen = true
    this.#connections.secured(begun.socket, secure)
    return true
  }
}

/** Key of a connection, from its two ends; null for a closed one. */
function connectionKey({ remoteAddress, remotePort, localAddress, localPort }: Socket): string | null {
  if (remoteAddress === undefined || localAddress === undefined) return null
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}

/** True if a client speaks HTTP without TLS: its line begins with a method. A record of TLS begins with a number. */
function isPlain(first: Buffer): boolean {
  return /^[A-Z]/.test(first.subarray(0, 1).toString('latin1'))
}

/** Answers with the problem as a readable text. Reads the rest of the client's data, or it would lose the answer. */
function refusePlain(socket: Socket, first: Buffer, url: string): void {
  const text = `This port speaks HTTPS, and the request came in plain HTTP. Use ${url}\n`
  const isHead = first.subarray(0, 5).toString('latin1') === 'HEAD '
  const lines = [
    'HTTP/1.1 400 Bad Request',
    'content-type: text/plain; charset=utf-8',
    `content-length: ${Buffer.byteLength(text)}`,
    `${REQUEST_ID}: ${newRequestId()}`,
    'connection: close',
    '',
    isHead ? '' : text,
  ]
  socket.resume()
  socket.end(lines.join('\r\n'))
  setTimeout(() => socket.destroy(), REFUSAL_MS).unref()
}
