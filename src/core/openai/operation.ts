/** The operations of OpenAI's API, however a client writes their paths. */
import { textBefore } from '../text-parts.ts'

/**
 * The operation of a path, such as `chat/completions`: what is behind its last `/v1/`, or behind its first slash.
 * Servers of models read escapes, repeated slashes and dots as what they stand for, so they are the same operation.
 * @param path with or without its query
 */
export function operationOf(path: string): string {
  const bare = textBefore(path, '?')
  const plain = isPlain(bare) ? bare : normal(bare)
  const version = plain.lastIndexOf('/v1/')
  return plain.slice(version < 0 ? 1 : version + 4)
}

/** True for a path that is written in one way only. */
function isPlain(path: string): boolean {
  return !(path.includes('%') || path.includes('//') || path.includes('/.') || path.endsWith('/'))
}

function normal(path: string): string {
  const segments: string[] = []
  for (const segment of unescaped(path).split('/')) {
    if (segment === '..') segments.pop()
    else if (segment !== '' && segment !== '.') segments.push(segment)
  }
  return `/${segments.join('/')}`
}

function unescaped(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}
