import { hash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { readAuthorizationKey } from '../core/request-head.ts'
import { RELAY_HEADERS } from '../core/workers/relay-headers.ts'
import { HOLD_MS } from '../core/workers/worker-liveness.ts'
import { endpointFromUrl } from './calls.ts'
import type { CachedTokens } from './known-tokens.ts'
import type { Sharer } from './shares.ts'
import type { Upstream, UpstreamRequest } from './upstream.ts'

/** Limit of concurrent calls with unknown tokens; each is a small request to the server. */
const MAX_UNKNOWN = 256
/** Limit of tokens that the server confirmed before its list had them. */
const MAX_VOUCHED = 10_000
/** Later than any claim, so that the server gives nothing back. */
const NEVER_MS = 999_999_999_999_999
const PAUSE_MS = 100

/** An empty report of undelivered jobs: any server responds to it, and it changes nothing. */
export function emptyReport(request: IncomingMessage, sharer: Sharer): UpstreamRequest {
  const path = `/v2/${endpointFromUrl(request.url)}/job-take/w`
  const headers = ['Authorization', request.headers.authorization ?? '']
  const added = [RELAY_HEADERS.undeliveredSince, String(NEVER_MS)]
  return { method: 'GET', path, headers, added, body: null, signal: AbortSignal.timeout(HOLD_MS), sharer }
}

/** The reason why a call is not admitted; `away` while the server cannot be asked. */
export type AdmissionRefusal = 'unauthorized' | 'away'

/** Admits workers before their bodies are read. */
export class RelayAdmission {
  readonly #tokens
  readonly #upstream
  readonly #vouched = new Map<string, Sharer>()
  #unknown = 0

  constructor(tokens: CachedTokens, upstream: Upstream) {
    this.#tokens = tokens
    this.#upstream = upstream
  }

  /** The caller of a request with a known token; null for an unknown token. */
  findCaller(request: IncomingMessage): Sharer | null {
    const token = readAuthorizationKey(request.headers.authorization)
    if (token === null) return null
    return this.#tokens.find(token) ?? this.#vouched.get(token) ?? null
  }

  /**
   * The caller of a request with an unknown token, confirmed by the server: a worker that was started a moment ago,
   * or by a server of an earlier version. While the server is away, a relay that has the whole list refuses all
   * others, and one without it waits.
   */
  async confirmCaller(request: IncomingMessage, closing: AbortSignal): Promise<Sharer | AdmissionRefusal> {
    const token = readAuthorizationKey(request.headers.authorization)
    if (token === null || token === '') return 'unauthorized'
    if (this.#unknown >= MAX_UNKNOWN) return 'away'
    this.#unknown += 1
    try {
      const endMs = performance.now() + HOLD_MS
      while (!this.#tokens.isComplete || this.#upstream.address !== null) {
        if (!(await this.#upstream.present(endMs, closing))) return 'away'
        const caller = this.findCaller(request) ?? (await this.#vouch(request, token))
        if (caller !== null) return caller
        await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
      }
      return 'away'
    } finally {
      this.#unknown -= 1
    }
  }

  /** Null when the server did not respond. */
  async #vouch(request: IncomingMessage, token: string): Promise<Sharer | 'unauthorized' | null> {
    try {
      const sharer = { token: hash('sha256', token), owner: '' }
      const answer = await this.#upstream.ask(emptyReport(request, sharer))
      await answer.body.drop()
      if (answer.status === 401) return 'unauthorized'
      if (answer.status !== 204) return null
      this.#vouched.set(token, sharer)
      const [oldest] = this.#vouched.keys()
      if (this.#vouched.size > MAX_VOUCHED) this.#vouched.delete(oldest!)
      return sharer
    } catch {
      return null
    }
  }
}
