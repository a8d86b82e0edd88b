import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/** Responds to all requests in place of surfaces and endpoints, while a server is not the active one. */
export interface StandIn {
  /**
   * A client that waits for `100 Continue` has got it.
   * @param isPassedOn true when the request may only be passed on ({@link passesOn}); false by default
   */
  handle(incoming: IncomingMessage, outgoing: ServerResponse, isPassedOn?: boolean): void
  /**
   * True for a request that another server gets: it has the domains of endpoints, and checks the host. By
   * default no request is passed on.
   */
  passesOn?(incoming: IncomingMessage): boolean
  /** @param head the bytes received after the request */
  upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void
}
