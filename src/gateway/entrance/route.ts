import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Caller } from '../../core/accounts/permission.ts'
import type { EndpointId } from '../../core/ids.ts'
import type { ProxyRequest } from '../proxy/proxy-request.ts'

/** The endpoint that a request names by its host or its path. It may not exist. */
export interface GatewayRoute {
  /** Null where headers name it by its app, its environment and its name. */
  readonly endpointId: EndpointId | null
  /** `/lb/<endpoint>` if it was removed from the path; null if the host name names the endpoint. */
  readonly prefix: string | null
  /** Path and query byte for byte, without the prefix. */
  readonly path: string
  /**
   * The host of an absolute target, which replaces the `Host` header (RFC 9112, 3.2.2); null
   * for another form of target.
   */
  readonly host: string | null
  /** The caller, where a surface of this server has authenticated it and hands the request over. */
  readonly caller?: Caller
  /** See `model` of {@link ProxyRequest}. */
  readonly model?: string
  /** See `waitsFor` of {@link ProxyRequest}. */
  readonly waitsFor?: ProxyRequest['waitsFor']
  /** See `answerFields` of {@link ProxyRequest}. */
  readonly answerFields?: readonly string[]
  /** See `hidesUsage` of {@link ProxyRequest}. */
  readonly hidesUsage?: boolean
  /** See `errorForm` of {@link ProxyRequest}. */
  readonly errorForm?: ProxyRequest['errorForm']
  /** See `complete` of {@link ProxyRequest}. */
  readonly complete?: ProxyRequest['complete']
  /** True at the address of a task, whose program asks for a token of its own; no key is needed there. */
  readonly isTask?: true
}

/** Handles the requests that name a load-balancing endpoint, and answers every one. */
export interface Entrance {
  /** `100 Continue` has not been sent to a client that waits for it. */
  handle(incoming: IncomingMessage, outgoing: ServerResponse, route: GatewayRoute): void
  /** @param head the bytes received after the request */
  upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer, route: GatewayRoute): void
}
