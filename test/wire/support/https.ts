/** Requests over TLS with a choice of connection, and what certificate was seen. */
import { type Agent, request } from 'node:https'
import { text } from 'node:stream/consumers'
import { connect, type TLSSocket } from 'node:tls'
import type { Server } from './server.ts'

/** Parts of a request over TLS beside its path. */
export interface SecureCall {
  /** The connections to use; a new one unless given. */
  readonly agent?: Agent
  readonly headers?: Readonly<Record<string, string>>
  /** GET without a body and POST with one unless given. */
  readonly method?: string
  /** Sent as it is when it is a buffer, else as JSON. */
  readonly body?: unknown
  /** Trusted certificates, besides those of the process. */
  readonly ca?: string
  readonly port?: number
  /** The name that is asked for, in the handshake and in the request. */
  readonly host?: string
}

/** The answer, whole, and the SHA-256 of the certificate of its connection. */
export interface SecureAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
  readonly fingerprint: string
}

/** Sends one request with the key of the server. @throws when it fails, or its answer is not whole */
export function secureCall(server: Server, path: string, wish: SecureCall = {}): Promise<SecureAnswer> {
  const { agent, body, ca, port = server.port, host = 'localhost' } = wish
  const payload = body === undefined || Buffer.isBuffer(body) ? body : JSON.stringify(body)
  const headers = {
    host: `${host}:${port}`,
    authorization: `Bearer ${server.apiKey}`,
    ...(payload === undefined ? {} : { 'content-length': String(Buffer.byteLength(payload)) }),
    ...wish.headers,
  }
  const method = wish.method ?? (payload === undefined ? 'GET' : 'POST')
  const trust = ca === undefined ? {} : { ca }
  return new Promise((resolve, reject) => {
    const options = {
      host: '127.0.0.1',
      servername: host,
      port,
      path,
      method,
      headers,
      agent: agent ?? false,
      ...trust,
    }
    const call = request(options, answer => {
      const fingerprint = (answer.socket as TLSSocket).getPeerX509Certificate()?.fingerprint256 ?? ''
      text(answer).then(whole => {
        if (!answer.complete) reject(new Error(`the answer ended after ${whole.length} bytes`))
        else resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text: whole, fingerprint })
      }, reject)
    })
    call.on('error', reject)
    call.end(payload)
  })
}

/** The SHA-256 of the certificate that a port shows to a new connection. */
export function shownAt(port: number, ca: string | readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', ca: ca as string[] }, () => {
      resolve(socket.getPeerX509Certificate()?.fingerprint256 ?? '')
      socket.destroy()
    })
    socket.on('error', reject)
  })
}
