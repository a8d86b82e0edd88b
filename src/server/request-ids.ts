/** Gives requests their ids. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { REQUEST_ID, readRequestId } from '../core/request-head.ts'

/**
 * The id of a request: the client's where it is safe, else a new one, which takes its place among the headers, so
 * that whoever asks later finds the same.
 */
export function requestIdFromHeaders({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const given = readRequestId(headers[REQUEST_ID])
  if (given !== null) return given
  const made = newRequestId()
  headers[REQUEST_ID] = made
  return made
}

/** An id for a request that cannot be read. Node prepares random bytes for them. */
export function newRequestId(): string {
  return randomUUID()
}
