import type { EndpointId } from '../core/ids.ts'

/** Origins used in responses, without a trailing slash. Known once the server listens. */
export interface Addresses {
  /** Origin of REST and GraphQL. */
  readonly publicUrl: string
  /** Origin of the job operations. */
  readonly queueUrl: string
  /** Origin of load-balancing endpoints. Default: the origin of REST and GraphQL. */
  readonly balancedUrl?: string
  /**
   * Domain whose subdomains are load-balancing endpoints, with scheme and port of their origin. Without it they are
   * subdomains of `lb.localhost` if that origin is this machine, and paths below the origin otherwise.
   */
  readonly lbDomain?: string | null
  /** Origin of the console, which it has for itself; none unless given. */
  readonly consoleUrl?: string | null
}

/** Hosts that names below `localhost` resolve to. Other loopback addresses are not among them. */
const OF_LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

/** URL of a load-balancing endpoint, without a trailing slash. */
export function balancedUrl(addresses: Addresses, id: EndpointId): string {
  const { publicUrl, balancedUrl: origin = publicUrl, lbDomain = null } = addresses
  const { protocol, hostname, port } = new URL(origin)
  // Each endpoint has its own origin, so that its pages cannot act as another endpoint or as the API.
  const domain = lbDomain ?? (OF_LOOPBACK.has(hostname) ? 'lb.localhost' : null)
  if (domain === null) return `${origin}/lb/${id}`
  return `${protocol}//${id}.${domain}${port === '' ? '' : `:${port}`}`
}
