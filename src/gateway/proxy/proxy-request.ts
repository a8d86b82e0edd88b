import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Caller } from '../../core/accounts/permission.ts'
import type { AccessLogEntry } from '../../core/balancing/access-log-entry.ts'
import type { EndpointId, OwnerId } from '../../core/ids.ts'
import type { RequestTrace } from '../../core/observing/request-trace.ts'
import type { ErrorForm } from '../../core/openai/error-form.ts'
import type { TokenUsage } from '../../core/openai/token-usage.ts'
import type { SocketAddress } from '../../core/workers/socket-address.ts'

export type { AccessLogEntry } from '../../core/balancing/access-log-entry.ts'

/** A request for a load-balancing endpoint that may go on to a worker. */
export interface ProxyRequest {
  readonly endpointId: EndpointId
  /** `X-Request-Id`, of the request to the worker and of the response, in place of theirs. */
  readonly requestId: string
  /** Path and query for the worker, byte for byte, without the prefix of the endpoint and without a key. */
  readonly path: string
  /**
   * For `X-Forwarded-Prefix`: `/lb/<endpoint>` if that was removed from the path, after the prefix that a trusted
   * proxy removed; else null.
   */
  readonly prefix: string | null
  /** True if it goes to the worker's health port. */
  readonly toHealth: boolean
  /**
   * Names and values in turn, as they came, without the caller's key and without fields about the sender
   * (`X-Forwarded-...`, `Forwarded`, `X-Real-IP`), which the next three replace.
   */
  readonly rawHeaders: readonly string[]
  /** For `X-Forwarded-For`: addresses separated by `, `, the client's first, then those of trusted proxies. */
  readonly client: string
  readonly protocol: 'http' | 'https'
  /** The host as the client named it. */
  readonly host: string
  /** True if the endpoint needs no key; false when left out. */
  readonly isOpen?: boolean
  /** The caller whose right admitted it, and whose loss of that right ends it; left out if no key is needed. */
  readonly caller?: Caller
  /**
   * `Sec-WebSocket-Protocol` of the 101 if the worker sets none: the subprotocol that carried the key, if it was the
   * only one. Browsers close a socket whose 101 names none of the subprotocols that they offered.
   */
  readonly subprotocol?: string
  /** The model by which the caller may have that right; by the endpoint alone when left out. */
  readonly model?: string
  /** The account of the endpoint. */
  readonly owner?: OwnerId
  /**
   * Called once with the tokens that a successful answer reports, null if it reports none; left out for a request
   * whose answer has none.
   */
  readonly onTokens?: (usage: TokenUsage | null) => void
  /** Fields of the response in place of those of the worker, names and values in turn; none when left out. */
  readonly answerFields?: readonly string[]
  /**
   * The cause for which its stream waits: the client gets the head of an event stream at once if no worker is free.
   * When left out, the head is that of the worker.
   */
  readonly waitsFor?: string
  /**
   * True if the event of usage of its stream is for this server alone: see {@link UsageEventFilter}; false when left
   * out.
   */
  readonly hidesUsage?: boolean
  /** The form of errors of the gateway; `{"error": "<sentence>"}` when left out. */
  readonly errorForm?: ErrorForm
  /**
   * Completes the body of the request once its first worker is known, which may be asked before that. Never rejects.
   * The body is there already when left out.
   * @returns its length in bytes
   */
  readonly complete?: (worker: SocketAddress) => Promise<number>
  /** Its place in a trace, which the worker gets. When left out, the client's trace fields are passed on. */
  readonly trace?: RequestTrace
}

/** Sends requests to workers and their responses back, with at most a buffer of a body in memory. */
export interface Forwarding {
  /** Responds in every case. Never rejects. */
  forward(incoming: IncomingMessage, outgoing: ServerResponse, request: ProxyRequest): Promise<AccessLogEntry>
  /** Responds to the upgrade or refuses it, and joins both sides until one ends. Never rejects. */
  upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer, request: ProxyRequest): Promise<AccessLogEntry>
}
