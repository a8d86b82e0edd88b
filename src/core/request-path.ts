/** Paths of requests as clients write them. */

/**
 * The target of a request with one slash wherever its path has several in a row: clients join a base URL that ends with a slash and a
 * path that begins with one. The authority of an absolute target and the query stay as they are.
 */
export function withSingleSlashes(target: string): string {
  if (!target.includes('//')) return target
  const queryAt = target.indexOf('?')
  const end = queryAt < 0 ? target.length : queryAt
  const start = pathStart(target)
  if (start >= end) return target
  return `${target.slice(0, start)}${target.slice(start, end).replace(/\/{2,}/g, '/')}${target.slice(end)}`
}

/** Index of the path: 0, or the end of the authority of an absolute target. */
function pathStart(target: string): number {
  const found = /^https?:\/\/[^/?]*/i.exec(target)
  return found === null ? 0 : found[0].length
}
