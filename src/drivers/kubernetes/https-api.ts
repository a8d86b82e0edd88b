/** Calls the API of a cluster over HTTPS. Every call has a deadline, and every answer a limit. */
import { type IncomingMessage, Agent as PlainAgent, request as plainRequest, type RequestOptions } from 'node:http'
import { Agent as SecureAgent, request as secureRequest } from 'node:https'
import type { Clock } from '../../ports/clock.ts'
import type { ClusterAccess } from './access.ts'
import {
  type ByteStream,
  CHANGE_MS,
  type KubernetesApi,
  type KubernetesCall,
  KubernetesError,
  kubernetesError,
} from './api.ts'

const READ_MS = 15_000
const MAX_ANSWER_BYTES = 64 * 1024 * 1024
const MAX_PROBLEM_BYTES = 64 * 1024
/** Connections for calls; each stream has one of its own beside them. */
const MAX_CALLS = 32
/** Media types for the metadata of any kind of objects. */
const METADATA = {
  one: 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1',
  list: 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
}
const KEEP_ALIVE_MS = 30_000
const MAX_RETRY_AFTER_MS = 60_000

/** The API at an address. */
export class HttpsApi implements KubernetesApi {
  readonly #access
  readonly #clock
  readonly #calls
  readonly #streams
  /** The API has asked for no calls before this instant of the monotonic clock. */
  #notBeforeMs = Number.NEGATIVE_INFINITY

  constructor(access: ClusterAccess, clock: Clock) {
    this.#access = access
    this.#clock = clock
    const Agent = access.server.startsWith('https:') ? SecureAgent : PlainAgent
    this.#calls = new Agent({ keepAlive: true, keepAliveMsecs: KEEP_ALIVE_MS, maxSockets: MAX_CALLS })
    this.#streams = new Agent({ keepAlive: false })
  }

  async call<Result>(call: KubernetesCall): Promise<Result> {
    this.#refuseEarly()
    const ms = call.method === 'GET' ? READ_MS : CHANGE_MS
    return this.#within(ms, call.signal, async signal => {
      const response = await this.#ask(call, this.#calls, signal)
      const text = (await readAll(response, MAX_ANSWER_BYTES)).toString('utf8')
      return (text === '' ? null : JSON.parse(text)) as Result
    })
  }

  async stream(call: KubernetesCall): Promise<ByteStream> {
    this.#refuseEarly()
    const { signal } = call
    // The deadline is that of the head; the caller's signal ends the body, too.
    const response = await this.#within(READ_MS, signal, deadline => this.#ask(call, this.#streams, deadline))
    const stop = () => response.destroy()
    if (signal?.aborted === true) stop()
    signal?.addEventListener('abort', stop, { once: true })
    response.once('close', () => signal?.removeEventListener('abort', stop))
    return response
  }

  /** Closes connections that are kept. */
  close(): void {
    this.#calls.destroy()
    this.#streams.destroy()
  }

  #refuseEarly(): void {
    const waitMs = this.#notBeforeMs - this.#clock.monotonic()
    if (waitMs > 0) throw tooMany(waitMs)
  }

  async #within<Result>(
    ms: number,
    callerSignal: AbortSignal | undefined,
    run: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const deadline = new AbortController()
    const cancel = this.#clock.after(ms, () => deadline.abort())
    try {
      return await run(callerSignal === undefined ? deadline.signal : AbortSignal.any([deadline.signal, callerSignal]))
    } catch (thrown) {
      if (deadline.signal.aborted) throw new KubernetesError(`no answer within ${ms / 1000} s`, null)
      throw kubernetesError(thrown)
    } finally {
      cancel()
    }
  }

  /** The response, when it is a good one. */
  async #ask(call: KubernetesCall, agent: PlainAgent, signal: AbortSignal): Promise<IncomingMessage> {
    const token = this.#access.token('kept')
    const response = await this.#send(call, agent, signal, token)
    if (response.statusCode !== 401) return this.#checked(response)
    // A token may have been replaced since it was read.
    const fresh = this.#access.token('fresh')
    if (fresh === token) return this.#checked(response)
    response.resume()
    return this.#checked(await this.#send(call, agent, signal, fresh))
  }

  async #checked(response: IncomingMessage): Promise<IncomingMessage> {
    const status = response.statusCode ?? 0
    if (status >= 200 && status < 300) return response
    const text = (await readAll(response, MAX_PROBLEM_BYTES)).toString('utf8')
    const error = refusal(status, text, Number(response.headers['retry-after']) * 1000)
    if (status === 429) this.#notBeforeMs = this.#clock.monotonic() + error.retryAfterMs
    throw error
  }

  async #send(
    call: KubernetesCall,
    agent: PlainAgent,
    signal: AbortSignal,
    token: string | null,
  ): Promise<IncomingMessage> {
    try {
      return await this.#sendOnce(call, agent, signal, token)
    } catch (thrown) {
      // A kept connection that the API closed in this moment: nothing of the call was done.
      if (!(thrown instanceof StaleConnection)) throw thrown
      return this.#sendOnce(call, agent, signal, token)
    }
  }

  #sendOnce(
    { method, path, query, body, metadataOnly }: KubernetesCall,
    agent: PlainAgent,
    signal: AbortSignal,
    token: string | null,
  ): Promise<IncomingMessage> {
    const { server, tls } = this.#access
    const url = new URL(`${server}${path}`)
    for (const [name, value] of Object.entries(query ?? {})) url.searchParams.set(name, value)
    const content = body === undefined ? null : Buffer.from(JSON.stringify(body))
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
    const headers = {
      accept: metadataOnly === undefined ? 'application/json' : METADATA[metadataOnly],
      'user-agent': 'runyard',
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(content === null ? {} : { 'content-type': type, 'content-length': String(content.length) }),
    }
    const options: RequestOptions = { method, headers, agent, signal, ...tls }
    const request = url.protocol === 'https:' ? secureRequest : plainRequest
    return new Promise((resolve, reject) => {
      const clientRequest = request(url, options, resolve)
      clientRequest.once('error', error => {
        const isStale = clientRequest.reusedSocket && (error as NodeJS.ErrnoException).code === 'ECONNRESET'
        reject(isStale ? new StaleConnection() : error)
      })
      clientRequest.once('socket', socket => socket.setKeepAlive(true, KEEP_ALIVE_MS))
      clientRequest.end(content ?? undefined)
    })
  }
}

class StaleConnection extends KubernetesError {
  constructor() {
    super('the connection was closed', null)
  }
}

function tooMany(waitMs: number): KubernetesError {
  return new KubernetesError('the API asks for fewer calls', 429, { reason: 'TooManyRequests', retryAfterMs: waitMs })
}

/** The error in the response of the API to a call that it refuses: an object `Status` where it has one. */
function refusal(status: number, text: string, retryAfterMs: number): KubernetesError {
  const wait = Number.isFinite(retryAfterMs) ? Math.min(Math.max(0, retryAfterMs), MAX_RETRY_AFTER_MS) : 0
  try {
    const { message, reason } = JSON.parse(text) as { message?: string; reason?: string }
    const problem = typeof message === 'string' && message !== '' ? message : `status ${status}`
    return new KubernetesError(problem, status, { reason: reason ?? '', retryAfterMs: wait })
  } catch {
    return new KubernetesError(text.trim() === '' ? `status ${status}` : text.trim(), status, { retryAfterMs: wait })
  }
}

async function readAll(response: IncomingMessage, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > limit) {
      response.destroy()
      throw new KubernetesError(`the answer is larger than ${limit / 1024 / 1024} MB`, null)
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
