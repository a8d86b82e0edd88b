import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Caller } from '../../core/accounts/permission.ts'
import type { AccessLogEntry } from '../../core/balancing/access-log-entry.ts'
import type { EndpointId } from '../../core/ids.ts'

export type { AccessLogEntry } from '../../core/balancing/access-log-entry.ts'

/** A request for a load-balancing endpoint that may go on to a worker. */
export interface ProxyRequest {
  readonly endpointId: EndpointId
  /** What the worker is asked for: path and query byte for byte, without the prefix of the endpoint and without a key. */
  readonly path: string
  /** For `X-Forwarded-Prefix`: `/lb/<endpoint>` where that was taken from the path, behind what a trusted proxy took; null for nothing. */
  readonly prefix: string | null
  /** Whether it is for the worker's health port. */
  readonly toHealth: boolean
  /**
   * Names and values in turns, as they came, without the caller's key, and without all that is said about who sent it
   * (`X-Forwarded-...`, `Forwarded`, `X-Real-IP`): what is true of that is in the next three.
   */
  readonly rawHeaders: readonly string[]
  /** For `X-Forwarded-For`: addresses with `, ` between them, the client's first, then those of trusted proxies before us. */
  readonly client: string
  readonly protocol: 'http' | 'https'
  /** What the client called the host. */
  readonly host: string
  /** Whether the endpoint is open to everybody; no when left out. */
  readonly isOpen?: boolean
  /** Whose right lets it pass, for as long as that lasts; nobody's where it is left out. */
  readonly caller?: Caller
  /**
   * What `Sec-WebSocket-Protocol` of the handshake answer is to say where the worker says nothing: the subprotocol that had
   * the key, when it was the only one. Browsers end a socket whose answer names none of those that they offered.
   */
  readonly subprotocol?: string
}

/** Hands calls on to workers, and their answers back, without ever holding more of them than a buffer. */
export interface Forwarding {
  /** Answers the request whatever happens. Never rejects. */
  forward(incoming: IncomingMessage, outgoing: ServerResponse, call: ProxyRequest): Promise<AccessLogEntry>
  /** Answers the upgrade, or refuses it, and joins both sides until one ends. Never rejects. */
  upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer, call: ProxyRequest): Promise<AccessLogEntry>
}
