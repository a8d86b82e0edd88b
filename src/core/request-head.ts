/** Values of the head of a request: its id, path, length and key. */

/**
 * The header with the id of a request, in both directions. The id is the same word in the response, in events, log
 * lines and the audit log.
 */
export const REQUEST_ID = 'x-request-id'

/** No quotes, spaces or separators of fields, so that it is the same in headers, logs and queries. */
const SAFE = /^[A-Za-z0-9._:/+=@~-]{1,128}$/

/** The id that a client gave its request; null if it gave no id, or one that is not safe. */
export function readRequestId(given: string | readonly string[] | null | undefined): string | null {
  return typeof given === 'string' && SAFE.test(given) ? given : null
}

/**
 * The target of a request with one slash wherever its path has several in a row: clients join a base URL that ends
 * with a slash and a path that begins with one. The authority of an absolute target and the query stay as they are.
 */
export function withSingleSlashes(target: string): string {
  if (!target.includes('//')) return target
  const queryAt = target.indexOf('?')
  const end = queryAt < 0 ? target.length : queryAt
  // 0, or the end of the authority of an absolute target.
  const start = target.length - (absoluteTarget(target)?.rest ?? target).length
  if (start >= end) return target
  return `${target.slice(0, start)}${target.slice(start, end).replace(/\/{2,}/g, '/')}${target.slice(end)}`
}

/** The host of an absolute target, and the rest of it; null for a target in another form (RFC 9112, 3.2.2). */
export function absoluteTarget(target: string): { readonly host: string; readonly rest: string } | null {
  const match = target.startsWith('/') ? null : /^https?:\/\/([^/?#]*)/i.exec(target)
  return match === null ? null : { host: match[1]!, rest: target.slice(match[0].length) }
}

/**
 * True if a Content-Length has only one reading: a number of bytes without a sign, a list or leading zeros, which
 * some programs read as octal (RFC 9110, 8.6).
 */
export function isContentLength(text: string): boolean {
  return /^(?:0|[1-9]\d{0,14})$/.test(text)
}

/** The key of an Authorization header, with or without the word Bearer; null without a header. */
export function readAuthorizationKey(header: string | null | undefined): string | null {
  const text = header?.trim() ?? ''
  if (text === '') return null
  return /^bearer(?:\s|$)/i.test(text) ? text.slice('bearer'.length).trim() : text
}
