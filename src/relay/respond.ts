import type { ServerResponse } from 'node:http'

/** Responds with JSON, or with an empty body, unless a response has begun. */
export function respond(
  response: ServerResponse,
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (response.headersSent || response.destroyed) return
  response.writeHead(status, { ...(text !== '' && { 'Content-Type': 'application/json' }), ...headers }).end(text)
}
