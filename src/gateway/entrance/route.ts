import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { EndpointId } from '../../core/ids.ts'

/** Which endpoint a request names by its host or by its path. Whether there is such an endpoint is not known yet. */
export interface GatewayRoute {
  readonly endpointId: EndpointId
  /** `/lb/<endpoint>` where that was taken from the path; null where the host name says which endpoint it is. */
  readonly prefix: string | null
  /** Path and query byte for byte, without the prefix. */
  readonly path: string
  /** The host of an absolute target, which counts instead of the Host field (RFC 9112, 3.2.2); null where there is none. */
  readonly host: string | null
}

/** Takes the requests that name an endpoint, and answers all of them. */
export interface Entrance {
  /** A client that waits for `100 Continue` has not had it. */
  handle(incoming: IncomingMessage, outgoing: ServerResponse, route: GatewayRoute): void
  /** @param head what came behind the request already */
  upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer, route: GatewayRoute): void
}
