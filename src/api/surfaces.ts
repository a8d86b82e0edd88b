import { FLASH, RESERVED_SEGMENTS } from '../core/ids.ts'
import { REQUEST_ID, readAuthorizationKey } from '../core/request-head.ts'
import { isConsoleHost, isLoopbackHost, TOKEN_HEADER } from './console/origin.ts'
import { consoleAnswer } from './console/surface.ts'
import { type CorsOrigins, isPreflight, managementRefusal } from './cors.ts'
import type { ApiParts } from './parts.ts'
import { type Fetch, jsonText, type Surface, type SurfaceEnv, type SurfaceName, type SurfaceRoute } from './surface.ts'
import { WORKER_CALLS } from './worker/routes.ts'

function routeFromUrl(url: URL): SurfaceRoute {
  const segments = url.pathname.split('/')
  return { url, segments, surface: surfaceName(segments) }
}

/**
 * Surface of the segments of a path; null for an unknown path. Management routes take precedence over endpoint ids.
 */
function surfaceName([, first, second, third]: readonly string[]): SurfaceName | null {
  if (first === 'graphql') return 'graphql'
  if (first === 'healthz' || first === 'readyz' || first === 'metrics' || first === 'ops') return 'ops'
  if (first === 'v1') return 'restV1'
  if (first === 's3') return 's3'
  // Endpoints that the model in the body names.
  if (first === 'openai') return 'openai'
  if (first === 'console') return 'console'
  if (first !== 'v2' || second === undefined || second === '') return null
  // Jobs of endpoints that headers name, and archives of apps.
  if (second === FLASH) return third === 'uploads' ? 'uploads' : 'jobs'
  if (RESERVED_SEGMENTS.has(second)) return 'rest'
  if (third === 'openai') return 'openai'
  return WORKER_CALLS.has((third ?? '').split('&')[0]!) ? 'worker' : 'jobs'
}

/** The parts of a request known before its body. */
interface Head {
  readonly url?: string | undefined
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
}

/**
 * True when a request may use the capacity reserved for management and workers. One without a key or token may not:
 * only requests with a wrong key are answered at once. A listener asks only when it has no other place for the
 * request.
 * @param isConsole true for the host of the console, where sessions count in place of keys
 */
export function keepsReserved({ url = '', headers }: Head, isConsole: boolean): boolean {
  // As the surfaces read it: without dot segments.
  const parsed = url.startsWith('/') ? URL.parse(`http://localhost${url}`) : null
  if (parsed === null) return false
  const { surface } = routeFromUrl(parsed)
  if (surface === null || surface === 'jobs' || surface === 'openai') return false
  if (surface === 's3' || surface === 'uploads') return false
  if (isConsole) return headers[TOKEN_HEADER] !== undefined
  if (surface === 'ops') return true
  const { authorization } = headers
  const key = typeof authorization === 'string' ? readAuthorizationKey(authorization) : null
  return (key ?? parsed.searchParams.get('api_key') ?? '') !== ''
}

/**
 * True for a request to the S3 door, which workers in containers may send to the address of clients: whoever gives
 * them a pair of keys wants that.
 * @param url the target of the request
 */
export function isS3Call(url: string): boolean {
  // As the surfaces read it: without dot segments.
  const parsed = url.startsWith('/') ? URL.parse(`http://localhost${url}`) : null
  return parsed !== null && routeFromUrl(parsed).surface === 's3'
}

/** The surfaces that pages of other origins may call. */
const CALLED_BY_PAGES: ReadonlySet<SurfaceName | null> = new Set<SurfaceName>(['jobs', 'openai'])

/** Surfaces that the page of the console may call for its signed-in user. */
const CALLED_BY_CONSOLE: ReadonlySet<SurfaceName> = new Set<SurfaceName>([
  'rest',
  'restV1',
  'graphql',
  'jobs',
  'openai',
  'ops',
])

/**
 * Joins surfaces into one function for a listener that offers only those in `offered`. Emits an event for each
 * response.
 * @param cors pages of other origins that may call the job operations
 */
export function dispatch(
  parts: ApiParts,
  surfaces: Readonly<Record<SurfaceName, Surface>>,
  offered: ReadonlySet<SurfaceName>,
  cors: CorsOrigins,
): Fetch {
  const { clock, emit } = parts.ports
  const { consoleUrl = null } = parts.addresses
  const isConsole = isConsoleHost(consoleUrl)
  const ofOtherHosts = async (surface: SurfaceName | null, request: Request, env: SurfaceEnv) => {
    if (surface === null) return refuseAddress(request, env.route.url, offered.has('console') ? consoleUrl : null)
    if (!CALLED_BY_PAGES.has(surface))
      return isPreflight(request) ? managementRefusal() : surfaces[surface](request, env)
    const asked = await cors.preflight(request, env.route)
    // A worker writes the response of its load-balancing endpoint, and knows no pages of this address.
    const pageFields = surface === 'openai' && asked === null ? await cors.fields(request, env.route) : []
    const response = asked ?? (await surfaces[surface](request, pageFields.length === 0 ? env : { ...env, pageFields }))
    await cors.allow(request, env.route, response)
    return response
  }
  const ofConsole = async (surface: SurfaceName | null, request: Request, env: SurfaceEnv) => {
    if (!offered.has('console')) return refuseAddress(request, env.route.url, null)
    const api = surface === null || !CALLED_BY_CONSOLE.has(surface) ? null : surfaces[surface]
    return consoleAnswer(parts, { request, env }, api)
  }
  return async (request, env) => {
    const startMs = clock.monotonic()
    const route = routeFromUrl(new URL(request.url))
    const surface = route.surface !== null && offered.has(route.surface) ? route.surface : null
    const answer = isConsole(route.url.hostname) ? ofConsole : ofOtherHosts
    const response = await answer(surface, request, { ...env, route })
    setDefaultHeaders(response)
    // No body may be coded (RFC 9110, 15.5.16).
    if (response.status === 415 && request.headers.has('content-encoding'))
      response.headers.set('accept-encoding', 'identity')
    response.headers.set(REQUEST_ID, env.requestId)
    emit('request.answered', { surface, status: response.status, tookMs: clock.monotonic() - startMs })
    return response
  }
}

/** A browser on the server's machine that opens the server itself is redirected to the console. */
function refuseAddress(request: Request, { pathname, hostname }: URL, consoleUrl: string | null): Response {
  const isStart = pathname === '/' && (request.method === 'GET' || request.method === 'HEAD')
  if (!isStart || consoleUrl === null) return jsonText('{"error":"there is nothing at this path"}', 404)
  if (isLoopbackHost(hostname) && /\btext\/html\b/.test(request.headers.get('accept') ?? '')) {
    return new Response(null, { status: 302, headers: { location: `${consoleUrl}/` } })
  }
  return jsonText(JSON.stringify({ error: `there is nothing at this path; the console is at ${consoleUrl}` }), 404)
}

/** Forbids caching and content sniffing. Pages set their own `Cache-Control`. */
function setDefaultHeaders({ headers }: Response): void {
  headers.set('x-content-type-options', 'nosniff')
  if (!headers.has('cache-control')) headers.set('cache-control', 'no-store')
}
