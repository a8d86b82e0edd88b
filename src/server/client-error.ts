/** The response to a request that cannot be read. */
import { STATUS_CODES } from 'node:http'
import { REQUEST_ID } from '../core/request-id.ts'

/** Error of the parser of requests; see `clientError` of `node:http`. */
export interface ReadingError extends Error {
  readonly code?: string
  /** The parser's reason, in a few words. */
  readonly reason?: string
}

const PROBLEMS: Readonly<Record<string, readonly [status: number, sentence: string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'the line and the headers of the request have more than 16 KB, or are too many'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'the chunks of the request have too large extensions'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'the headers of the request did not come in time'],
}

/** The whole response, as it is written to the socket, whose connection then ends. */
export function answerToUnreadable({ code = '', reason }: ReadingError, requestId: string): string {
  const detail = reason === undefined ? '' : ` (${reason.slice(0, 200)})`
  const [status, error] = PROBLEMS[code] ?? [400, `the request cannot be read as HTTP/1.1${detail}`]
  const body = JSON.stringify({ error })
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    `${REQUEST_ID}: ${requestId}`,
    'connection: close',
    '',
    body,
  ]
  return lines.join('\r\n')
}
