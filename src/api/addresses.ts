import type { EndpointId } from '../core/ids.ts'

/** The origins that answers mention, without a trailing slash; known once the server listens. */
export interface Addresses {
  /** Of REST and GraphQL. */
  readonly publicUrl: string
  /** Of the job operations. */
  readonly queueUrl: string
  /** Of load-balancing endpoints; that of REST and GraphQL where it is left out. */
  readonly balancedUrl?: string
  /**
   * Load-balancing endpoints are hosts below it, with scheme and port of their address. Without it they are hosts below
   * `lb.localhost` where that address is this machine's own, and paths of it elsewhere.
   */
  readonly lbDomain?: string | null
}

/** Where names below localhost lead to; other addresses of loopback are not among them. */
const OF_LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

/** Where a load-balancing endpoint is, without a slash at its end. */
export function balancedUrl(addresses: Addresses, id: EndpointId): string {
  const { publicUrl, balancedUrl: origin = publicUrl, lbDomain = null } = addresses
  const { protocol, hostname, port } = new URL(origin)
  // An origin of its own for each, so that what one serves cannot act in the name of another, or of the API.
  const domain = lbDomain ?? (OF_LOOPBACK.has(hostname) ? 'lb.localhost' : null)
  if (domain === null) return `${origin}/lb/${id}`
  return `${protocol}//${id}.${domain}${port === '' ? '' : `:${port}`}`
}
