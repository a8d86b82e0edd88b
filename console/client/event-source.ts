/**
 * Server-sent events over `fetch`, since `EventSource` sends no header
 * (https://html.spec.whatwg.org/multipage/server-sent-events.html).
 */

/** One event of a stream. */
export interface ServerEvent {
  readonly name: string
  readonly data: string
  /** Id of the newest event so far; a client that reconnects sends it as `Last-Event-ID`. */
  readonly id: string | null
}

/** Limit of characters of one event; a stream that sends more is cut. */
const MAX_EVENT = 4 * 1024 * 1024

/**
 * Reads the events of a response until it ends.
 * @param onPlace receives an id without data, such as the one from which a stream without events can be resumed
 * @param silenceMs silence after which the stream fails: its connection may be dead without a sign
 */
export async function* readEvents(
  response: Response,
  onPlace: (id: string) => void = () => {},
  silenceMs = 0,
): AsyncGenerator<ServerEvent> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  let id: string | null = null
  try {
    for (;;) {
      const { value, done } = await inTime(reader.read(), silenceMs)
      if (done) return
      rest += value
      const blocks = rest.split(/\r?\n\r?\n/)
      rest = blocks.pop()!
      if (rest.length > MAX_EVENT) throw new Error('an event of the stream is too large')
      for (const block of blocks) {
        const event = parse(block, id)
        id = event.id
        if (event.data !== null) yield { name: event.name, data: event.data, id }
        else if (id !== null) onPlace(id)
      }
    }
  } finally {
    // Cancelling may never resolve on a dead connection.
    void reader.cancel().catch(() => {})
  }
}

async function inTime<Type>(wait: Promise<Type>, ms: number): Promise<Type> {
  if (ms === 0) return wait
  let timer: ReturnType<typeof setTimeout> | undefined
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('the server sent nothing for too long')), ms)
  })
  return Promise.race([wait, silence]).finally(() => clearTimeout(timer))
}

function parse(block: string, lastId: string | null) {
  let name = 'message'
  let id = lastId
  const data: string[] = []
  for (const line of block.split(/\r?\n/)) {
    const colon = line.indexOf(':')
    if (colon === 0) continue
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (field === 'event') name = value
    else if (field === 'data') data.push(value)
    else if (field === 'id') id = value
  }
  return { name, id, data: data.length === 0 ? null : data.join('\n') }
}

const FIRST_WAIT_MS = 250
const MAX_WAIT_MS = 10_000

/**
 * Waits before tries to connect again: doubled each time, with a random part, so that many
 * pages do not return at once.
 */
export class Backoff {
  #waitMs = FIRST_WAIT_MS

  /** The next wait in milliseconds. */
  next(): number {
    const ms = this.#waitMs * (0.75 + Math.random() / 2)
    this.#waitMs = Math.min(this.#waitMs * 2, MAX_WAIT_MS)
    return ms
  }

  /** Starts again at the shortest wait, once the connection works. */
  reset(): void {
    this.#waitMs = FIRST_WAIT_MS
  }
}

/** Resolves after the time, or at once when the signal aborts. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal.aborted) return resolve()
    const end = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end)
  })
}
