import type { EndpointId } from '../core/ids.ts'

/** The origins that answers mention, without a trailing slash; known once the server listens. */
export interface Addresses {
  /** Of REST and GraphQL. */
  readonly publicUrl: string
  /** Of the job operations. */
  readonly queueUrl: string
  /** Load-balancing endpoints are hosts below it, with scheme and port of the public address; without it, paths of that. */
  readonly lbDomain?: string | null
}

/** Where a load-balancing endpoint is, without a slash at its end. */
export function balancedUrl({ publicUrl, lbDomain = null }: Addresses, id: EndpointId): string {
  if (lbDomain === null) return `${publicUrl}/lb/${id}`
  const { protocol, port } = new URL(publicUrl)
  return `${protocol}//${id}.${lbDomain}${port === '' ? '' : `:${port}`}`
}
