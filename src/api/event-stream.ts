/** Logs as an answer: server-sent events, or JSON lines. */
import type { LogEvent, LogStream } from '../services/observing/log-stream.ts'

/** How often a quiet stream says that it is still there, below the idle times of proxies. */
const KEEP_ALIVE_MS = 15_000

/** The headers of a stream of events. */
export const EVENT_STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  connection: 'keep-alive',
  'x-accel-buffering': 'no',
} as const

/** How lines are written. */
export interface LogWriting {
  readonly headers: Readonly<Record<string, string>>
  readonly event: (event: LogEvent) => string
  /** What stands first. @param id from which the stream goes on when nothing else of it came */
  readonly opening: (id: string) => string
  /** What says that nothing has come for a while; it is ignored by whoever reads. Null for nothing. */
  readonly quiet: string | null
  /** What says that so many bytes that were asked for are gone. */
  readonly missed: (bytes: number) => string
  /** What stands at the end where there will be no more; nothing does where the server or the reader breaks off. */
  readonly end: string
}

/**
 * Server-sent events.
 * @param data the JSON of a line
 * @param own whether its readers know Runyard: an id then stands before the first line, and an event tells of the end
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

/** JSON lines. @param data the JSON of a line */
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

/** JSON without what some readers take for the end of a line. */
function oneLine(value: object): string {
  return JSON.stringify(value).replaceAll(
    /[\u0085\u2028\u2029]/g,
    found => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/**
 * The answer that sends a stream as fast as its reader takes it, and no faster: what was not taken is not read.
 * @param signals end it: the reader went away, or the server stops
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
  // The first part comes at once, so that the reader sees that it is connected.
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
