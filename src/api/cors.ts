/** CORS of the job operations: which web pages may call them from a browser, each time with a key in the request. */

import { pageRefusal, shownOrigin } from '../core/endpoints/page-refusal.ts'
import { type EndpointId, isEndpointId } from '../core/ids.ts'
import type { Emit } from '../events.ts'
import { jsonText, type SurfaceRoute } from './surface.ts'

/** The value that allows every page. */
export const ANY_ORIGIN = '*'

const MAX_AGE_S = '600'
const METHODS = 'GET, POST'
/** Besides the few that browsers always show to a page. */
const EXPOSED = 'retry-after, x-request-id, x-runyard-job-id, x-runyard-wait'

/** The origins that an endpoint names itself. */
export type FindOrigins = (id: EndpointId) => Promise<readonly string[]>

/** Pages by their origins: those of the server for all endpoints, and those of each endpoint. */
export class CorsOrigins {
  readonly #origins: ReadonlySet<string>
  readonly #findOrigins
  readonly #emit

  /** @param origins such as `https://app.example`, or {@link ANY_ORIGIN} */
  constructor(origins: readonly string[], ofEndpoint: FindOrigins, emit: Emit) {
    this.#origins = new Set(origins)
    this.#findOrigins = ofEndpoint
    this.#emit = emit
  }

  /**
   * The response to a preflight request; null for any other request, and if the endpoint cannot be read. A browser
   * hides the reason of a refusal from its page, so the log and the body of the response state how to allow the page.
   */
  async preflight(request: Request, route: SurfaceRoute): Promise<Response | null> {
    if (!isPreflight(request)) return null
    const origin = await this.#allowed(request, route).catch(() => undefined)
    if (origin === undefined) return null
    if (origin === null) return this.#refuse(request, route)
    const names = request.headers.get('access-control-request-headers')
    const headers = {
      'access-control-allow-origin': origin,
      'access-control-allow-methods': METHODS,
      'access-control-max-age': MAX_AGE_S,
      vary: 'origin, access-control-request-headers',
    }
    return new Response(null, {
      status: 204,
      headers: names === null ? headers : { ...headers, 'access-control-allow-headers': names },
    })
  }

  /** Lets the page of a request read the response, if it may. */
  async allow(request: Request, route: SurfaceRoute, response: Response): Promise<void> {
    if (this.#origins.size > 0 || request.headers.has('origin')) response.headers.append('vary', 'origin')
    const fields = await this.fields(request, route)
    for (let at = 0; at + 1 < fields.length; at += 2) response.headers.set(fields[at]!, fields[at + 1]!)
  }

  /** The fields that let the page of a request read its response, names and values in turn; none if it may not. */
  async fields(request: Request, route: SurfaceRoute): Promise<readonly string[]> {
    // Without the database every request fails, so no page needs to read the response.
    const origin = await this.#allowed(request, route).catch(() => null)
    if (origin === null) return []
    return ['access-control-allow-origin', origin, 'access-control-expose-headers', EXPOSED]
  }

  /**
   * The value that allows the page of this request; null for a page that is not allowed. No cookies are allowed
   * (`Access-Control-Allow-Credentials`), since a key is in a header that the page has to set.
   * @throws AppError `unavailable` if the endpoint cannot be read
   */
  async #allowed(request: Request, { segments }: SurfaceRoute): Promise<string | null> {
    const origin = request.headers.get('origin')
    if (origin === null) return null
    const allowed = allowedBy(this.#origins, origin)
    if (allowed !== null) return allowed
    const id = endpointSegment(segments)
    if (!isEndpointId(id)) return null
    return allowedBy(new Set(await this.#findOrigins(id)), origin)
  }

  /** Null if the path names neither an endpoint nor the models. */
  #refuse(request: Request, { segments }: SurfaceRoute): Response | null {
    const named = endpointSegment(segments)
    const id = isEndpointId(named) ? named : null
    if (id === null && named !== '') return null
    const origin = shownOrigin(request.headers.get('origin') ?? '')
    this.#emit('page.refused', { origin, endpointId: id })
    return jsonText(JSON.stringify({ error: pageRefusal(origin, id) }), 403)
  }
}

/** The segment of a path that names an endpoint; empty where the body of the request does. */
function endpointSegment([, first, second = '']: readonly string[]): string {
  return first === 'openai' ? '' : second
}

/** The response to a preflight request for anything but job operations. */
export function managementRefusal(): Response {
  const error = 'pages of other origins may call only the job operations of endpoints, never management'
  return jsonText(JSON.stringify({ error }), 403)
}

/** True for a preflight request: a browser asks for a page before it sends the request itself. */
export function isPreflight({ method, headers }: Request): boolean {
  return method === 'OPTIONS' && headers.has('origin') && headers.has('access-control-request-method')
}

function allowedBy(origins: ReadonlySet<string>, origin: string): string | null {
  return origins.has(ANY_ORIGIN) ? ANY_ORIGIN : origins.has(origin) ? origin : null
}
