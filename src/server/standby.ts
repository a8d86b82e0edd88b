/**
 * Answers of a server while another one is active: its own health and status; it refuses all other requests, or
 * passes them on to the active server.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { AppError } from '../core/errors.ts'
import { readAuthorizationKey, withSingleSlashes } from '../core/request-head.ts'
import { textBefore } from '../core/text-parts.ts'
import { isSameSecret } from '../crypto/same-secret.ts'
import { refuseUpgrade } from '../gateway/entrance/error-response.ts'
import { requestIdFromHeaders } from './request-ids.ts'
import type { StandIn } from './stand-in.ts'
import { PASSED_ON, StandbyForwarder } from './standby-forwarder.ts'
import type { ListenerTls } from './tls.ts'

/** Origins of the active server; null for each that is unknown. */
export interface ActiveAddresses {
  /** For job operations, workers and load-balancing endpoints. */
  readonly open: URL | null
  /** For management and all job operations. */
  readonly management: URL | null
  /** A port with the calls of workers alone. */
  readonly workers: URL | null
}

/** Parts of a {@link Standby}. */
export interface StandbyParts {
  /** The active server as last read. */
  readonly active: () => ActiveAddresses
  /** True to pass requests on to it. */
  readonly forwards: boolean
  /** True if a peer is a trusted proxy, whose fields about the client are passed on. */
  readonly trusts: (address: string) => boolean
  /** The own certificate; null without one. */
  readonly tls: ListenerTls | null
  /** The present keys of the server, which can read its status; empty before it has one. */
  readonly keys: () => readonly string[]
  /** The status, as JSON. */
  readonly status: () => Promise<string>
  /** Metrics of this process, if everyone may read them; else null. */
  readonly metrics: (() => Promise<{ readonly contentType: string; readonly text: string }>) | null
}

const RETRY_AFTER_S = 2

/** The responses of a standby server. */
export class Standby {
  readonly #parts
  readonly #forwarder

  constructor(parts: StandbyParts) {
    this.#parts = parts
    this.#forwarder = new StandbyForwarder(parts.trusts, parts.tls)
  }

  /**
   * For one listener.
   * @param kind its requests: all, or all but management, management alone, calls of workers alone. These go to a
   * port of the active server that has nothing else, so that workers reach no more there than here
   */
  for(kind: 'all' | 'open' | 'management' | 'workers'): StandIn {
    const ofWorkers = kind === 'workers'
    const target = () => {
      const { open, management, workers } = this.#parts.active()
      if (ofWorkers) return workers
      return kind === 'management' ? management : open
    }
    const refusal = () => (ofWorkers ? FOR_WORKERS : standsBy(target()))
    const passedTo = (incoming: IncomingMessage) =>
      this.#parts.forwards && incoming.headers[PASSED_ON] === undefined ? target() : null
    const answersItself = kind === 'all' || kind === 'management'
    return {
      passesOn: incoming => !ofWorkers && passedTo(incoming) !== null,
      handle: (incoming, outgoing, isPassedOn = false) => {
        if (answersItself && !isPassedOn && this.#answers(incoming, outgoing, target())) return
        const to = passedTo(incoming)
        if (to !== null) this.#forwarder.forward(incoming, outgoing, { to, isNamed: !ofWorkers })
        else respond(outgoing, 503, refusal())
      },
      upgrade: (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
        // Workers do not ask for it.
        const to = ofWorkers ? null : passedTo(incoming)
        if (to !== null) this.#forwarder.upgrade(incoming, socket, head, to)
        else refuseUpgrade(socket, unavailable(refusal().error), requestIdFromHeaders(incoming))
      },
    }
  }

  /** Ends connections to the active server that no request uses. */
  close(): void {
    this.#forwarder.close()
  }

  /** Answers a request for this server itself; false for other requests. */
  #answers(incoming: IncomingMessage, outgoing: ServerResponse, active: URL | null): boolean {
    if (incoming.method !== 'GET' && incoming.method !== 'HEAD') return false
    const path = textBefore(withSingleSlashes(incoming.url ?? ''), '?')
    const { forwards, metrics } = this.#parts
    if (path === '/healthz') respond(outgoing, 200, { status: 'ok', role: 'standby' })
    else if (path === '/readyz') respond(outgoing, forwards && active !== null ? 200 : 503, { status: 'standby' })
    else if (path === '/ops/status') void this.#sayStatus(incoming, outgoing)
    else if (path === '/metrics' && metrics !== null) {
      metrics().then(
        ({ contentType, text }) => outgoing.writeHead(200, { 'content-type': contentType }).end(text),
        () => outgoing.destroy(),
      )
    } else return false
    return true
  }

  /** Other keys are in the store, which a standby server does not read. */
  async #sayStatus(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const key = readAuthorizationKey(incoming.headers.authorization ?? null) ?? ''
    if (!this.#parts.keys().some(ownKey => isSameSecret(key, ownKey))) {
      const error = 'a standby server shows its status to its own API key and RUNYARD_METRICS_KEY alone'
      respond(outgoing, 401, { error })
      return
    }
    try {
      const text = await this.#parts.status()
      outgoing.writeHead(200, HEADERS).end(text)
    } catch {
      respond(outgoing, 503, { error: 'the status cannot be read now' })
    }
  }
}

const HEADERS = { 'content-type': 'application/json', 'cache-control': 'no-store' }

function respond(outgoing: ServerResponse, status: number, body: object): void {
  const again = status === 503 ? { 'retry-after': String(RETRY_AFTER_S) } : {}
  outgoing.writeHead(status, { ...HEADERS, ...again }).end(JSON.stringify(body))
}

function standsBy(active: URL | null) {
  const activeServer = active === null ? 'no active server is known' : `the active server is at ${active.origin}`
  return { error: `this server stands by; ${activeServer}`, active: active?.origin ?? null }
}

function unavailable(message: string): AppError {
  return new AppError('unavailable', message, { retryAfterSeconds: RETRY_AFTER_S })
}

/** Workers do not learn the addresses of servers. */
const FOR_WORKERS = { error: 'this server stands by' }
