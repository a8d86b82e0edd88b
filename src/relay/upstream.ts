import { passedHeaders } from './calls.ts'
import { ServerClient } from './server-client.ts'
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
  /** For the present server, or the last one. */
  #client: ServerClient | null = null
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
    this.#address = address
    if (address === null) return
    if (this.#client === null || !isSame(address, this.#client.address)) {
      this.#client?.close()
      this.#client = new ServerClient(address)
    }
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
    const fields = ['Host', `${address.host}:${address.port}`, ...passedHeaders(headers), ...added, ...length]
    const client = this.#client!
    const response = await client.send({ head: headText(method, path, fields), body: body?.read() ?? null, signal })
    const receivedBody = await this.#spool.receive(response.body, Number.POSITIVE_INFINITY, false, sharer)
    return { status: response.status, headers: passedHeaders(response.headers), body: receivedBody }
  }

  /** Ends all connections. */
  close(): void {
    this.#client?.close()
  }
}

function isSame(address: UpstreamAddress, other: UpstreamAddress | null): boolean {
  return address.host === other?.host && address.port === other.port
}

/** @param fields names and values in turn, as a parser of HTTP had them: without a line break */
function headText(method: string, path: string, fields: readonly string[]): string {
  let text = `${method} ${path} HTTP/1.1\r\n`
  for (let at = 0; at + 1 < fields.length; at += 2) text += `${fields[at]}: ${fields[at + 1]}\r\n`
  return `${text}\r\n`
}
