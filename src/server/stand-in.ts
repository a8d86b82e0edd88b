import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/** Answers every request in place of surfaces and endpoints, while a server is not the active one. */
export interface StandIn {
  /**
   * `100 Continue` has been sent to a client that waits for it.
   * @param isPassedOn whether nothing but {@link passesOn} is to be done with it; false when left out
   */
  handle(incoming: IncomingMessage, outgoing: ServerResponse, isPassedOn?: boolean): void
  /** Whether another server gets a request, and judges its host: the domains of endpoints are known there alone. None is passed on when left out. */
  passesOn?(incoming: IncomingMessage): boolean
  /** @param head the bytes received after the request */
  upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void
}
