import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/** Answers every request in place of surfaces and endpoints, while a server is not the active one. */
export interface StandIn {
  /** `100 Continue` has been sent to a client that waits for it. */
  handle(incoming: IncomingMessage, outgoing: ServerResponse): void
  /** @param head the bytes received after the request */
  upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void
}
