/** CORS of the gateway's own responses. Responses of workers carry the CORS headers of their application. */

/** The response to a CORS preflight: these headers and no body. */
export interface Preflight {
  readonly headers: Readonly<Record<string, string>>
}

const REQUEST_FIELDS = ['access-control-request-method', 'access-control-request-headers']

/**
 * The response that permits the request of a preflight, from any origin and with any headers; null for any other
 * request.
 */
export function readPreflight(method: string, rawHeaders: readonly string[]): Preflight | null {
  if (method !== 'OPTIONS') return null
  const [origin, requestedMethod, headers] = ['origin', ...REQUEST_FIELDS].map(name => findHeader(rawHeaders, name))
  if (origin === undefined || requestedMethod === undefined) return null
  return {
    headers: {
      'access-control-allow-origin': origin,
      'access-control-allow-credentials': 'true',
      'access-control-allow-methods': requestedMethod,
      ...(headers === undefined ? {} : { 'access-control-allow-headers': headers }),
      'access-control-max-age': '600',
      vary: ['origin', ...REQUEST_FIELDS].join(', '),
    },
  }
}

/**
 * The headers that let a page read one of the gateway's own responses, its `Retry-After` and its id: names and values
 * in turn; empty without an origin.
 * @param origin the `Origin` of the request
 */
export function corsHeaders(origin: string | undefined): readonly string[] {
  if (origin === undefined) return []
  return [
    ...['Access-Control-Allow-Origin', origin, 'Access-Control-Allow-Credentials', 'true'],
    ...['Access-Control-Expose-Headers', 'Retry-After, X-Request-Id', 'Vary', 'Origin'],
  ]
}

function findHeader(rawHeaders: readonly string[], lowerName: string): string | undefined {
  const at = rawHeaders.findIndex((text, index) => index % 2 === 0 && text.toLowerCase() === lowerName)
  return at < 0 ? undefined : rawHeaders[at + 1]
}
