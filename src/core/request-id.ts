/** The id of a request: one word in its response, in events, in log lines and in the audit log. */

/** The header that names a request, in both directions. */
export const REQUEST_ID = 'x-request-id'

/** No quotes, spaces or separators of fields, so that it is the same in headers, logs and queries. */
const SAFE = /^[A-Za-z0-9._:/+=@~-]{1,128}$/

/** The id that a client gave its request; null if it gave no id, or one that is not safe. */
export function readRequestId(given: string | readonly string[] | null | undefined): string | null {
  return typeof given === 'string' && SAFE.test(given) ? given : null
}
