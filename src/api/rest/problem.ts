import { type AppError, ERROR_CODES } from '../../core/errors.ts'
import { refusalHeaders } from '../surface.ts'

/**
 * An error as a problem document (RFC 9457), with the id of its request. `errors` are sentences, because
 * clients decode them as strings.
 */
export function problemResponse(
  error: AppError,
  headers: Readonly<Record<string, string>>,
  requestId: string,
): Response {
  const body = {
    title: ERROR_CODES[error.code].title,
    status: error.status,
    detail: error.message,
    ...(error.failures.length > 0 ? { errors: error.failures } : {}),
    requestId,
  }
  return new Response(JSON.stringify(body), {
    status: error.status,
    headers: {
      'content-type': 'application/problem+json',
      ...headers,
      ...refusalHeaders(error),
    },
  })
}
