/** CORS of the job operations: which web pages may call them from a browser, each time with a key in the request. */

/** The value that allows every page. */
export const ANY_ORIGIN = '*'

const MAX_AGE_S = '600'
const METHODS = 'GET, POST'
/** Besides the few that browsers always show to a page. */
const EXPOSED = 'retry-after'

/** Pages by their origins. */
export class CorsOrigins {
  readonly #origins: ReadonlySet<string>

  /** @param origins such as `https://app.example`, or {@link ANY_ORIGIN} */
  constructor(origins: readonly string[]) {
    this.#origins = new Set(origins)
  }

  /** The response to the question of a browser whether a page may send a request; null for anything else, and where no page may. */
  preflight(request: Request): Response | null {
    if (request.method !== 'OPTIONS' || !request.headers.has('access-control-request-method')) return null
    const headers = this.#headersFor(request)
    if (headers === null) return null
    const asked = request.headers.get('access-control-request-headers')
    if (asked !== null) headers['access-control-allow-headers'] = asked
    headers['access-control-allow-methods'] = METHODS
    headers['access-control-max-age'] = MAX_AGE_S
    headers.vary = `${headers.vary}, access-control-request-headers`
    return new Response(null, { status: 204, headers })
  }

  /** Lets the page of a request read the response, where it may. */
  allow(request: Request, response: Response): void {
    if (this.#origins.size === 0) return
    // Also without an origin: a cache must not give the response to a page.
    response.headers.append('vary', 'origin')
    const headers = this.#headersFor(request)
    if (headers === null) return
    response.headers.set('access-control-allow-origin', headers['access-control-allow-origin'] ?? '')
    response.headers.set('access-control-expose-headers', EXPOSED)
  }

  /** No cookies are allowed (`Access-Control-Allow-Credentials`), since a key is in a header that the page has to set. */
  #headersFor(request: Request): Record<string, string> | null {
    const origin = request.headers.get('origin')
    if (origin === null) return null
    if (this.#origins.has(ANY_ORIGIN)) return { 'access-control-allow-origin': ANY_ORIGIN, vary: 'origin' }
    return this.#origins.has(origin) ? { 'access-control-allow-origin': origin, vary: 'origin' } : null
  }
}
