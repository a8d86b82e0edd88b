/** Server-sent events, resumed when the server restarts. */

import { CliError, EXIT } from '../exit.ts'
import { ask, type ConnectionOptions } from './connection.ts'
import { ReconnectBackoff } from './reconnect-backoff.ts'

/** One server-sent event. */
export interface ServerEvent {
  /** Event name; default: `message`. */
  readonly event: string
  readonly data: string
}

/**
 * The events at a path, up to and including the event named `last`. If the connection breaks, such as when the server
 * restarts, resumes after the last received event.
 * @param backoff bounds the retries. If it has not seen a response yet, the first request must succeed
 * @throws CliError if the first request fails, the server refuses to resume, or is unavailable for too long
 */
export async function* events(
  options: ConnectionOptions,
  path: string,
  last: string,
  backoff = new ReconnectBackoff(),
): AsyncGenerator<ServerEvent, void, undefined> {
  let lastId: string | null = null
  for (;;) {
    try {
      const headers = { accept: 'text/event-stream', ...(lastId === null ? {} : { 'last-event-id': lastId }) }
      const answer = await ask(options, path, { headers })
      backoff.answered()
      for await (const { id, event, data } of blocks(answer)) {
        if (id !== undefined) lastId = id
        if (data === undefined) continue
        yield { event: event ?? 'message', data }
        if (event === last) return
      }
      throw new CliError('the server has ended the connection', EXIT.unavailable)
    } catch (error) {
      await backoff.after(error)
    }
  }
}

/** Fields of each block of a response. Ends without an error if the connection breaks. */
async function* blocks({ body }: Response): AsyncGenerator<Readonly<Record<string, string | undefined>>> {
  if (body === null) return
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  try {
    for (let text = ''; ; ) {
      const { value, done } = await reader.read().catch(() => ({ value: undefined, done: true }))
      if (done || value === undefined) return
      const parts = (text + value).split('\n\n')
      text = parts.pop()!
      for (const part of parts) yield eventFields(part)
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}

function eventFields(block: string): Readonly<Record<string, string>> {
  const fields: Record<string, string> = {}
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':')
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 1).replace(/^ /, '')
  }
  return fields
}
