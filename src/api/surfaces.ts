import { RESERVED_SEGMENTS } from '../core/ids.ts'
import { jsonText, type Surface, type SurfaceEnv, type SurfaceName } from './surface.ts'
import { WORKER_CALLS } from './worker/routes.ts'

/** Which surface a path belongs to; null for none. Management routes win over endpoint ids. */
export function surfaceOf(path: string): SurfaceName | null {
  const [, first, second, third] = path.split('/')
  if (first === 'graphql') return 'graphql'
  if (first === 'healthz' || first === 'readyz' || first === 'ops') return 'ops'
  if (first !== 'v2' || second === undefined || second === '') return null
  if (RESERVED_SEGMENTS.has(second)) return 'rest'
  if (third === 'openai') return 'openai'
  return WORKER_CALLS.has((third ?? '').split('&')[0]!) ? 'worker' : 'jobs'
}

/** One function over several surfaces, for a listener that offers those of `offered` only. */
export function dispatch(surfaces: Readonly<Record<SurfaceName, Surface>>, offered: ReadonlySet<SurfaceName>): Surface {
  return async (request: Request, env: SurfaceEnv) => {
    const name = surfaceOf(new URL(request.url).pathname)
    if (name === null || !offered.has(name)) {
      return jsonText('{"error":"there is nothing at this path"}', 404)
    }
    return surfaces[name](request, env)
  }
}
