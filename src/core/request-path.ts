/** Paths of requests as clients write them. */

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
