/** Calls a container engine over HTTP: through a socket of this machine, TCP or TLS. */
import { Agent, type IncomingMessage, request as plainRequest } from 'node:http'
import { Agent as SecureAgent, request as secureRequest } from 'node:https'
import { addAbortSignal, type Readable } from 'node:stream'
import type { EngineAddress } from './engine-address.ts'
import { RefusedCall } from './engine-error.ts'

/** One call of an engine. */
export interface EngineRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** The path without a version, such as `/containers/json`. Ids and names of people in it are encoded. */
  readonly path: string
  /** An object is sent as JSON, an array as one value for each element. */
  readonly query?: Readonly<Record<string, unknown>>
  /** Sent as JSON. */
  readonly body?: unknown
  /** A tar archive, sent in place of `body` as it is read. */
  readonly archive?: Readable
  /** Credentials for a registry, sent in a header. */
  readonly auth?: Readonly<Record<string, string>>
  /** Ends the call, and the response while it is read. */
  readonly signal?: AbortSignal
}

/** Options of {@link EngineClient}. */
export interface EngineClientOptions {
  /** Version of the API, such as `1.41`; the engine's own by default. */
  readonly version?: string
  /** Time without a byte after which a call fails, in ms; no limit by default. */
  readonly idleMs?: number
}

const MAX_ANSWER_BYTES = 64 * 1024 * 1024
const MAX_PROBLEM_BYTES = 64 * 1024
const DONE = new Set([200, 201, 204, 304])

/** Calls one engine. Each call has a connection of its own: a kept one still responds for an engine that stops. */
export class EngineClient {
  readonly #address
  readonly #options
  readonly #agent: Agent

  constructor(address: EngineAddress, options: EngineClientOptions = {}) {
    this.#address = address
    this.#options = options
    this.#agent = address.tls === null ? new Agent() : new SecureAgent()
  }

  /**
   * Calls the engine and reads its response.
   * @returns the value of JSON, or the text of any other response; an empty text without a body
   * @throws RefusedCall when the engine refuses the call; the error of the socket when the engine cannot be reached
   */
  async call<Result>(call: EngineRequest): Promise<Result> {
    const response = await this.stream(call)
    if (call.signal !== undefined) addAbortSignal(call.signal, response)
    const text = await readText(response, MAX_ANSWER_BYTES)
    if (text === null) throw new Error(`the response of the engine is larger than ${MAX_ANSWER_BYTES / 1024} kB`)
    try {
      return JSON.parse(text) as Result
    } catch {
      return text as Result
    }
  }

  /** Calls the engine for a response that the caller reads. @throws as {@link call} */
  async stream(call: EngineRequest): Promise<IncomingMessage> {
    const response = await this.#send(call)
    const { statusCode: status = 0 } = response
    if (DONE.has(status)) return response
    const text = await readText(response, MAX_PROBLEM_BYTES)
    throw new RefusedCall(problemFromText(text ?? '', status), status)
  }

  #send(call: EngineRequest): Promise<IncomingMessage> {
    const { method, path, query, body, archive, auth, signal } = call
    const { connection, tls } = this.#address
    const { version, idleMs = 0 } = this.#options
    const content = body === undefined ? null : JSON.stringify(body)
    const headers = {
      ...(content === null ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(content) }),
      ...(archive === undefined ? {} : { 'content-type': 'application/tar' }),
      ...(auth === undefined ? {} : { 'x-registry-auth': authHeader(auth) }),
    }
    const target = `${version === undefined ? '' : `/v${version}`}${path}${queryText(query)}`
    const options = { ...connection, ...tls, method, path: target, headers, agent: this.#agent, signal }
    return new Promise((resolve, reject) => {
      const request = (tls === null ? plainRequest : secureRequest)(options, resolve)
      // A later error ends the response, whose reader receives it.
      request.on('error', error => {
        archive?.destroy()
        reject(error)
      })
      // The timeout of a request begins after the connection; that of its socket limits the connection, too.
      request.on('socket', socket => void socket.setTimeout(idleMs, () => request.destroy()))
      if (archive === undefined) return void request.end(content ?? undefined)
      archive.on('error', error => request.destroy(error))
      archive.pipe(request)
    })
  }
}

/** Base64 for URLs, with the padding that engines expect. */
function authHeader(auth: Readonly<Record<string, string>>): string {
  return Buffer.from(JSON.stringify(auth)).toString('base64').replaceAll('+', '-').replaceAll('/', '_')
}

function queryText(query: EngineRequest['query']): string {
  const words = new URLSearchParams()
  for (const [name, value] of Object.entries(query ?? {})) {
    if (Array.isArray(value)) for (const each of value) words.append(name, String(each))
    else words.append(name, typeof value === 'object' ? JSON.stringify(value) : String(value))
  }
  return words.size === 0 ? '' : `?${words}`
}

/** The engine's own message, or its whole response where it has none. */
function problemFromText(text: string, status: number): string {
  try {
    const { message, error } = JSON.parse(text) as { message?: string; error?: string }
    return message ?? error ?? text
  } catch {
    return text.trim() === '' ? `status ${status}` : text
  }
}

/** Null for a response that is larger than the limit. */
async function readText(response: IncomingMessage, limit: number): Promise<string | null> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of response as AsyncIterable<Buffer>) {
    pieces.push(piece)
    bytes += piece.length
    if (bytes > limit) return null
  }
  return Buffer.concat(pieces).toString()
}
