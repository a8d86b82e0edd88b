import type { Endpoint } from '../core/endpoints/endpoint.ts'
import { AppError } from '../core/errors.ts'
import type { ArtifactKey, EndpointId, JobId } from '../core/ids.ts'

/** Files of certificates on the machine of the server, for a certificate that it has made for itself. */
export interface ClientTrust {
  /** All that a client trusts: the authority of the server, and those that this machine trusts. */
  readonly bundleFile: string
  /** The authority of the server alone. */
  readonly authorityFile: string
}

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
   * paths below the origin, and for browsers subdomains of `lb.localhost` if that origin is this machine.
   */
  readonly lbDomain?: string | null
  /** Certificates that clients need; null or left out where they need none. */
  readonly clientTrust?: ClientTrust | null
  /** Origin of the console alone. Null or left out without a console. */
  readonly consoleUrl?: string | null
}

/** Hosts that names below `localhost` resolve to. Other loopback addresses are not among them. */
const OF_LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

/**
 * URL of a load-balancing endpoint for programs, without a trailing slash: below `/lb/` unless there is a domain,
 * since few programs resolve names below localhost.
 */
export function balancedUrl(addresses: Addresses, id: EndpointId): string {
  const { publicUrl, balancedUrl: origin = publicUrl, lbDomain = null } = addresses
  return lbDomain === null ? `${origin}/lb/${id}` : atHost(origin, `${id}.${lbDomain}`)
}

/**
 * URL of a load-balancing endpoint for browsers, without a trailing slash: an origin of its own, so that its
 * pages cannot act as another endpoint or as the API. Its own domain, else a name below that of all endpoints;
 * null where it has neither.
 */
export function browserUrl(addresses: Addresses, { id, domain: own }: Pick<Endpoint, 'id' | 'domain'>): string | null {
  const { publicUrl, balancedUrl: origin = publicUrl, lbDomain = null } = addresses
  const domain = lbDomain ?? (OF_LOOPBACK.has(new URL(origin).hostname) ? 'lb.localhost' : null)
  const host = own ?? (domain === null ? null : `${id}.${domain}`)
  return host === null ? null : atHost(origin, host)
}

/** Another host with the scheme and the port of an origin. */
function atHost(origin: string, host: string): string {
  const { protocol, port } = new URL(origin)
  return `${protocol}//${host}${port === '' ? '' : `:${port}`}`
}

/** URL of the S3 door, without a trailing slash. */
export function s3Url({ queueUrl: origin }: Addresses): string {
  return `${origin}/s3`
}

/** URL that takes the archive of an app, without a key. */
export function uploadUrl({ publicUrl: origin }: Addresses, key: ArtifactKey, token: string): string {
  return `${origin}/v2/flash/uploads/${key}?token=${token}`
}

/** URL of the job operations of a queue endpoint, without a trailing slash. */
export function jobsUrl({ queueUrl: origin }: Addresses, id: EndpointId): string {
  return `${origin}/v2/${id}`
}

/** URL at which clients read a job with its output. */
export function statusUrl(addresses: Addresses, id: EndpointId, jobId: JobId): string {
  return `${jobsUrl(addresses, id)}/status/${jobId}`
}

/** Address at which clients read the input of a job. */
export function inputUrl(addresses: Addresses, endpointId: EndpointId, jobId: JobId): string {
  return `${jobsUrl(addresses, endpointId)}/requests/${jobId}/input`
}

/**
 * The error of a job operation on a load-balancing endpoint. Clients compare the beginning of its message.
 * @param below path after the address for this call, such as `/v1`
 */
export function notForBalanced(addresses: Addresses, id: EndpointId, below = ''): AppError {
  const where = `${balancedUrl(addresses, id)}${below}`
  return new AppError(
    'invalid',
    `not allowed for LB API: endpoint ${id} takes requests, not jobs; its address is ${where}`,
  )
}
