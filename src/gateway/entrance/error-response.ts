/**
 * Error responses of the gateway: `{"error": "<sentence>"}`, the same for requests and for upgrades, and the form of
 * its client for a request that came by a base URL of OpenAI's clients.
 */
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { AppError } from '../../core/errors.ts'
import { KeyLimitError } from '../../core/key-limits.ts'
import type { ErrorForm } from '../../core/openai/error-form.ts'
import { inForm, openAiRefusal } from '../../core/openai/openai.ts'
import { REQUEST_ID } from '../../core/request-head.ts'
import { corsHeaders } from './cors.ts'

/**
 * Responds with an error. A response that has begun is cut off instead, so that it does not look complete.
 * @param form of the error; null for that of the gateway
 */
export function respondError(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  error: AppError,
  requestId: string,
  form: ErrorForm | null = null,
): void {
  if (outgoing.headersSent) outgoing.destroy()
  else {
    const { headers, body } = errorParts(error, requestId, form)
    // A client that waits for `100 Continue` may send the body now, or may not: the connection cannot be used again.
    if (incoming.headers.expect !== undefined) headers.connection = 'close'
    const cors = corsHeaders(incoming.headers.origin)
    outgoing.writeHead(error.status, [...Object.entries(headers).flat(), ...cors]).end(body)
  }
}

/** Responds to an upgrade with an error, and ends its connection. */
export function refuseUpgrade(socket: Duplex, error: AppError, requestId: string): void {
  const { headers, body } = errorParts(error, requestId, null)
  const lines = Object.entries({ ...headers, connection: 'close' }).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.resume()
  socket.end(`HTTP/1.1 ${error.status} ${STATUS_CODES[error.status] ?? ''}\r\n${lines.join('')}\r\n${body}`, () =>
    socket.destroy(),
  )
}

function errorParts(error: AppError, requestId: string, form: ErrorForm | null) {
  const { status, message, retryAfterSeconds } = error
  const body = form === null ? JSON.stringify({ error: message }) : inForm(openAiRefusal(error), form).text
  const fields = error instanceof KeyLimitError ? error.headers : []
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    'cache-control': 'no-store',
    [REQUEST_ID]: requestId,
    ...(status === 401 ? { 'www-authenticate': 'Bearer' } : {}),
    ...(retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }),
    ...Object.fromEntries(Array.from({ length: fields.length / 2 }, (_, at) => fields.slice(2 * at, 2 * at + 2))),
  }
  return { headers, body }
}
