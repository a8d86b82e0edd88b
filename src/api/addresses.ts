import type { EndpointId } from '../core/ids.ts'

/** The origins that answers mention, without a trailing slash; known once the server listens. */
export interface Addresses {
  /** Of REST and GraphQL. */
  readonly publicUrl: string
  /** Of the job operations. */
  readonly queueUrl: string
  /** Of load-balancing endpoints; that of REST and GraphQL where it is left out. */
  readonly balancedUrl?: string
  /** Load-balancing endpoints are hosts below it, with scheme and port of their address; without it, paths of that. */
  readonly lbDomain?: string | null
}

/** Where a load-balancing endpoint is, without a slash at its end. */
export function balancedUrl(addresses: Addresses, id: EndpointId): string {
  const { publicUrl, balancedUrl: origin = publicUrl, lbDomain = null } = addresses
  if (lbDomain === null) return `${origin}/lb/${id}`
  const { protocol, port } = new URL(origin)
  return `${protocol}//${id}.${lbDomain}${port === '' ? '' : `:${port}`}`
}
