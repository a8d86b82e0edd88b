import type { Body } from '../../core/bodies/body-readings.ts'
import { AppError } from '../../core/errors.ts'

/** The media type of a body, in lower case; empty without a body or a type. */
export function contentType({ method, headers }: Request): string {
  if (method === 'GET' || method === 'HEAD') return ''
  return (headers.get('content-type') ?? '').split(';', 1)[0]!.trim().toLowerCase()
}

/** Media types that programs send for text by default, also for JSON. */
const DEFAULT_TYPES = new Set(['', 'text/plain', 'application/x-www-form-urlencoded'])

/** @throws AppError `unsupported_media` if a type states that the body is not JSON */
export function requireJsonType(type: string): void {
  if (!DEFAULT_TYPES.has(type) && type !== 'application/json' && !type.endsWith('+json')) throw otherMedia(type)
}

/** @throws AppError `unsupported_media` for a body that is not JSON, and has a type that programs give to any text */
export function requireJsonText(type: string, body: Body): void {
  if (typeof body !== 'string' || type === '' || !DEFAULT_TYPES.has(type)) return
  if (body.trim() !== '' && !/^[[{"]/.test(body.trimStart())) throw otherMedia(type)
}

function otherMedia(type: string): AppError {
  const message = `the body must be JSON (application/json), not ${type.slice(0, 100)}; files go into it as text or as addresses`
  return new AppError('unsupported_media', message)
}
