/** Responses with logs: server-sent events or JSON lines. */
import type { LogEvent, LogStream } from '../services/observing/log-stream.ts'

/** Interval between keep-alive comments on a quiet stream, in ms. Shorter than the idle timeouts of proxies. */
const KEEP_ALIVE_MS = 15_000

/** Response headers of an event stream. */
export const EVENT_STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  connection: 'keep-alive',
  'x-accel-buffering': 'no',
} as const

/** Format of a log stream. */
export interface LogWriting {
  readonly headers: Readonly<Record<string, string>>
  readonly event: (event: LogEvent) => string
  /** First text. @param id the event id from which a client resumes if it received no event */
  readonly opening: (id: string) => string
  /** Keep-alive text, which readers ignore. Null: none. */
  readonly quiet: string | null
  /** Text that reports how many of the requested bytes are no longer kept. */
  readonly missed: (bytes: number) => string
  /** Last text of a complete stream. Not sent if the server stops or the reader disconnects. */
  readonly end: string
}

/**
 * Server-sent events.
 * @param data the JSON of a log line
 * @param own whether the readers are Runyard's own: they get an id before the first log line, and an event `end`
 */
export function asEvents(data: (event: LogEvent) => object, own: boolean): LogWriting {
  return {
    headers: EVENT_STREAM_HEADERS,
    event: event => `id: ${event.id}\ndata: ${oneLine(data(event))}\n\n`,
    opening: id => (own ? `id: ${id}\n\n` : ''),
    quiet: ': nothing new\n\n',
    missed: bytes => `: ${bytes} bytes in front of this are no longer kept\n\n`,
    end: own ? 'event: end\ndata: {}\n\n' : '',
  }
}

/** JSON lines. @param data the JSON of a log line */
export function asLines(data: (event: LogEvent) => object): LogWriting {
  return {
    headers: { 'content-type': 'application/x-ndjson', 'x-accel-buffering': 'no' },
    event: event => `${oneLine(data(event))}\n`,
    opening: () => '',
    quiet: null,
    missed: () => '',
    end: '',
  }
}

/** JSON on one line. Escapes characters that some readers treat as line ends. */
function oneLine(value: object): string {
  return JSON.stringify(value).replaceAll(
    /[\u0085\u2028\u2029]/g,
    found => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/**
 * A response that reads the stream only as fast as its client reads the response.
 * @param signals end the response: the client disconnected, or the server stops
 */
export function streamedAnswer(stream: LogStream, writing: LogWriting, signals: readonly AbortSignal[]): Response {
  const encoder = new TextEncoder()
  const close = () => stream.close()
  for (const signal of signals) {
    if (signal.aborted) close()
    signal.addEventListener('abort', close, { once: true })
  }
  const leave = () => {
    for (const signal of signals) signal.removeEventListener('abort', close)
    close()
  }
  // Send the first part at once, so that the reader sees that it is connected.
  let waitMs = 0
  let opening = writing.opening(stream.id)
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          for (;;) {
            const text = await nextText(stream, writing, waitMs)
            waitMs = KEEP_ALIVE_MS
            if (text !== null && opening + text !== '') {
              controller.enqueue(encoder.encode(opening + text))
              opening = ''
              return
            }
            if (text === null) break
          }
          const ending = stream.ended ? opening + writing.end : ''
          if (ending !== '') controller.enqueue(encoder.encode(ending))
          leave()
          controller.close()
        } catch (error) {
          leave()
          throw error
        }
      },
      cancel: leave,
    },
    { highWaterMark: 0 },
  )
  return new Response(body, { headers: writing.headers })
}

async function nextText(stream: LogStream, writing: LogWriting, forMs: number): Promise<string | null> {
  const batch = await stream.next(forMs)
  if (batch === null) return null
  if (batch.events.length === 0 && batch.missed === 0) return writing.quiet ?? ''
  return (batch.missed > 0 ? writing.missed(batch.missed) : '') + batch.events.map(writing.event).join('')
}
