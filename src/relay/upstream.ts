import { Agent, type IncomingMessage, request } from 'node:http'
import type { Readable } from 'node:stream'
import { passedHeaders } from './calls.ts'
import type { Sharer } from './shares.ts'
import type { Spool, SpooledBody } from './spool.ts'

/** Address of the server. */
export interface UpstreamAddress {
  readonly host: string
  readonly port: number
}

/** A request to the server. */
export interface UpstreamRequest {
  readonly method: string
  readonly path: string
  /** Names and values in turn. */
  readonly headers: readonly string[]
  /** Names and values of the relay's own headers. */
  readonly added: readonly string[]
  readonly body: SpooledBody | null
  /** Cancels the request; null for one that cannot be canceled. */
  readonly signal: AbortSignal | null
  /** The worker and account whose share the response takes. */
  readonly sharer: Sharer
}

/** An answer of the server, received wholly. */
export interface UpstreamAnswer {
  readonly status: number
  readonly headers: readonly string[]
  readonly body: SpooledBody
}

/** Sends requests to the present server. */
export class Upstream {
  readonly #agent = new Agent({ keepAlive: true })
  readonly #spool
  readonly #waiting = new Set<() => void>()
  #address: UpstreamAddress | null = null
  #losses = 0
  #sinceMs = 0

  constructor(spool: Spool) {
    this.#spool = spool
  }

  /** Null while the server is away. */
  get address(): UpstreamAddress | null {
    return this.#address
  }

  /**
   * Sets the address of the running server; null while it is away. Cuts off calls to the previous
   * server, which may never answer.
   */
  set address(address: UpstreamAddress | null) {
    if (address === null && this.#address !== null) this.#losses += 1
    if (address !== null && !isSame(address, this.#address)) this.#sinceMs = performance.now()
    if (address !== null && this.#address !== null && !isSame(address, this.#address)) this.#agent.destroy()
    this.#address = address
    if (address === null) return
    for (const wake of [...this.#waiting]) wake()
  }

  /** Number of servers that ended so far. */
  get losses(): number {
    return this.#losses
  }

  /** Time since the server came up, in ms; 0 while it is away. */
  get upMs(): number {
    return this.#address === null ? 0 : performance.now() - this.#sinceMs
  }

  /**
   * Waits until the server is up. False if the wait ends first: at `endMs` of the monotonic clock, or by the signal.
   */
  async present(endMs: number, signal: AbortSignal | null): Promise<boolean> {
    for (;;) {
      const leftMs = endMs - performance.now()
      if (signal?.aborted === true || leftMs <= 0) return false
      if (this.#address !== null) return true
      await new Promise<void>(resolve => {
        const done = () => {
          clearTimeout(timer)
          this.#waiting.delete(done)
          signal?.removeEventListener('abort', done)
          resolve()
        }
        const timer = setTimeout(done, leftMs)
        this.#waiting.add(done)
        signal?.addEventListener('abort', done)
      })
    }
  }

  /**
   * Sends one request and receives its whole response.
   * @throws when the response did not arrive wholly, although the server may have acted; SpoolFull for a response
   *   without room
   */
  async ask({ method, path, headers, added, body, signal, sharer }: UpstreamRequest): Promise<UpstreamAnswer> {
    const address = this.#address
    if (address === null) throw new Error('the server is away')
    const length = body === null ? [] : ['Content-Length', String(body.bytes)]
    const sentHeaders = ['Host', `${address.host}:${address.port}`, ...passedHeaders(headers), ...added, ...length]
    const outgoing = request({
      ...address,
      method,
      path,
      headers: sentHeaders,
      agent: this.#agent,
      ...(signal && { signal }),
    })
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      outgoing.on('response', resolve)
      outgoing.on('error', reject)
    })
    send(body?.read() ?? null, outgoing)
    const incoming = await answered
    const receivedBody = await this.#spool.receive(incoming, Number.POSITIVE_INFINITY, false, sharer)
    return { status: incoming.statusCode ?? 502, headers: passedHeaders(incoming.rawHeaders), body: receivedBody }
  }

  /** Ends all connections. */
  close(): void {
    this.#agent.destroy()
  }
}

function isSame(address: UpstreamAddress, other: UpstreamAddress | null): boolean {
  return address.host === other?.host && address.port === other.port
}

function send(body: Buffer | Readable | null, outgoing: ReturnType<typeof request>): void {
  if (body === null) outgoing.end()
  else if (Buffer.isBuffer(body)) outgoing.end(body)
  else body.on('error', error => outgoing.destroy(error)).pipe(outgoing)
}
