import { RESERVED_SEGMENTS } from '../core/ids.ts'
import type { Emit } from '../events.ts'
import type { Clock } from '../ports/clock.ts'
import type { CorsOrigins } from './cors.ts'
import { jsonText, type Surface, type SurfaceEnv, type SurfaceName } from './surface.ts'
import { WORKER_CALLS } from './worker/routes.ts'

/** Surface that a path belongs to; null for none. Management routes take precedence over endpoint ids. */
export function surfaceOf(path: string): SurfaceName | null {
  const [, first, second, third] = path.split('/')
  if (first === 'graphql') return 'graphql'
  if (first === 'healthz' || first === 'readyz' || first === 'metrics' || first === 'ops') return 'ops'
  if (first === 'v1') return 'restV1'
  if (first !== 'v2' || second === undefined || second === '') return null
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
 * Whether a request may use the capacity reserved for management and workers. One without a key or token may not: only
 * requests with a wrong key are answered at once.
 */
export function keepsReserved({ url = '', headers }: Head): boolean {
  const [path = '', query = ''] = url.split('?')
  const surface = surfaceOf(path)
  if (surface === 'ops') return true
  if (surface === null || surface === 'jobs' || surface === 'openai') return false
  return headers.authorization !== undefined || new URLSearchParams(query).has('api_key')
}

/** The surfaces that pages of other origins may call. */
const CALLED_BY_PAGES: ReadonlySet<SurfaceName | null> = new Set<SurfaceName>(['jobs', 'openai'])

/**
 * Joins surfaces into one function for a listener that offers only those in `offered`. Emits an event for each response.
 * @param cors which pages may call the job operations
 */
export function dispatch(
  surfaces: Readonly<Record<SurfaceName, Surface>>,
  offered: ReadonlySet<SurfaceName>,
  { clock, emit }: { readonly clock: Clock; readonly emit: Emit },
  cors: CorsOrigins,
): Surface {
  return async (request: Request, env: SurfaceEnv) => {
    const startMs = clock.monotonic()
    const found = surfaceOf(new URL(request.url).pathname)
    const surface = found !== null && offered.has(found) ? found : null
    const forPages = CALLED_BY_PAGES.has(surface)
    const response =
      surface === null
        ? jsonText('{"error":"there is nothing at this path"}', 404)
        : ((forPages ? await cors.preflight(request) : null) ?? (await surfaces[surface](request, env)))
    if (forPages) await cors.allow(request, response)
    guard(response)
    emit('request.answered', { surface, status: response.status, tookMs: clock.monotonic() - startMs })
    return response
  }
}

/** Forbids caching and content sniffing. Pages set their own `Cache-Control`. */
function guard({ headers }: Response): void {
  headers.set('x-content-type-options', 'nosniff')
  if (!headers.has('cache-control')) headers.set('cache-control', 'no-store')
}
