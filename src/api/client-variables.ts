/** The variables by which clients of RunPod find this server, in one list for people and for workers of apps. */
import type { AppVariables } from '../services/workers/worker-addresses.ts'
import type { Addresses, ClientTrust } from './addresses.ts'

/** Names of loopback addresses below which no name can be, as endpoints need one. */
const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', '[::1]'])

/**
 * The variables without the key, by name.
 * @param trust null where clients trust the server by themselves, or it speaks plain HTTP
 */
export function clientVariables(addresses: Addresses, trust: ClientTrust | null): Record<string, string> {
  const { publicUrl, consoleUrl } = addresses
  const api = atName(publicUrl, null)
  const jobs = `${jobsOrigin(addresses)}/v2`
  return {
    RUNPOD_API_BASE_URL: api,
    RUNPOD_ENDPOINT_BASE_URL: jobs,
    RUNPOD_HAPI_URL: api,
    ...(consoleUrl != null && { RUNPOD_CONSOLE_URL: consoleUrl }),
    RUNPOD_REST_API_URL: `${api}/v1`,
    RUNPOD_GRAPHQL_URL: `${api}/graphql`,
    RUNPOD_REST_V2_URL: `${api}/v2`,
    RUNPOD_API_URL: `${api}/v1`,
    RUNPOD_INVOKE_URL: jobs,
    RUNPOD_BASE_URL: `${api}/v1`,
    RUNPOD_SERVERLESS_API_URL: jobs,
    RUNPOD_AUTHED_GRAPHQL_URL: `${api}/graphql`,
    RUNPOD_PUBLIC_GRAPHQL_URL: `${api}/graphql`,
    ...(trust !== null && {
      SSL_CERT_FILE: trust.bundleFile,
      REQUESTS_CA_BUNDLE: trust.bundleFile,
      NODE_EXTRA_CA_CERTS: trust.authorityFile,
    }),
  }
}

/**
 * The origin of jobs for clients: RunPod's SDK calls an endpoint that serves requests at a name below its host, and
 * tasks at a path of it.
 */
export function jobsOrigin({ queueUrl, lbDomain = null }: Addresses): string {
  return atName(queueUrl, lbDomain)
}

/** The variables of {@link clientVariables} that functions of an app need to call others on this server. */
export function workerVariables(addresses: Addresses, trust: ClientTrust | null): AppVariables {
  const all = clientVariables(addresses, trust)
  const some = (names: readonly string[]) =>
    Object.fromEntries(names.flatMap(name => (all[name] === undefined ? [] : [[name, all[name]]])))
  return {
    addresses: some(['RUNPOD_API_BASE_URL', 'RUNPOD_ENDPOINT_BASE_URL']),
    files: some(['SSL_CERT_FILE', 'REQUESTS_CA_BUNDLE']),
  }
}

/** An origin by a name below which others can be. @param domain the name; null for that of the origin */
function atName(origin: string, domain: string | null): string {
  const { protocol, hostname, port } = new URL(origin)
  const name = domain ?? (LOOPBACK.has(hostname) ? 'localhost' : hostname)
  return `${protocol}//${name}${port === '' ? '' : `:${port}`}`
}
