/** Gives requests their ids. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { REQUEST_ID, readRequestId } from '../core/request-head.ts'

/**
 * The id of a request: the client's where it is safe, else a new one, which takes its place among the headers, so
 * that whoever asks later finds the same.
 */
export function requestIdFromHeaders({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const requestId = readRequestId(headers[REQUEST_ID])
  if (requestId !== null) return requestId
  const newId = newRequestId()
  headers[REQUEST_ID] = newId
  return newId
}

/** An id for a request that cannot be read. Node prepares random bytes for them. */
export function newRequestId(): string {
  return randomUUID()
}
