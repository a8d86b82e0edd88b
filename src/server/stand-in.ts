import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { AppError } from '../core/errors.ts'
import { refuseUpgrade } from '../gateway/entrance/error-response.ts'
import { NO_TARGET, plainHost } from './hosts.ts'
import { requestIdFromHeaders } from './request-ids.ts'

/** Responds to all requests in place of surfaces and endpoints, while a server is not the active one. */
export interface StandIn {
  /** True if it counts the requests itself, by the limits of connections; false by default. */
  readonly isCounting?: boolean
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

/**
 * Leads every request to its host in HTTPS. The listener has refused hosts that the server does not go by,
 * so nobody is led elsewhere.
 * @param port the port of HTTPS, as clients reach it
 */
export function redirectToHttps(port: () => number): StandIn {
  return {
    handle(incoming, outgoing) {
      const location = secured(incoming, port())
      if (location === null) answer(outgoing, NO_TARGET.status, { error: NO_TARGET.error })
      else answer(outgoing, 308, { error: `this server speaks HTTPS: ${location}` }, { location })
    },
    upgrade(incoming, socket) {
      const error = new AppError('invalid', 'this server speaks HTTPS; connect with wss')
      refuseUpgrade(socket, error, requestIdFromHeaders(incoming))
    },
  }
}

/** The address of a request in HTTPS; null for one without a host. */
function secured({ url = '/', headers }: IncomingMessage, port: number): string | null {
  // The authority of an absolute target is the host, and the header does not count (RFC 9112, 3.2.2).
  const [, authority, rest] = /^https?:\/\/([^/?#]*)(.*)/is.exec(url) ?? []
  const host = plainHost(authority ?? headers.host ?? '')
  if (host === '') return null
  const path = rest ?? url
  return `https://${host}${port === 443 ? '' : `:${port}`}${path.startsWith('/') ? path : `/${path.replace(/^\*$/, '')}`}`
}

function answer(outgoing: ServerResponse, status: number, body: object, fields: Record<string, string> = {}): void {
  const text = JSON.stringify(body)
  outgoing.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    connection: 'close',
    ...fields,
  })
  outgoing.end(text)
}
