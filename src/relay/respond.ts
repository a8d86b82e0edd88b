import type { ServerResponse } from 'node:http'

/** Answers with JSON, or with nothing, unless there is an answer already. */
export function respond(
  response: ServerResponse,
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (response.headersSent || response.destroyed) return
  response.writeHead(status, { ...(text !== '' && { 'Content-Type': 'application/json' }), ...headers }).end(text)
}
