/** Responses with events as they happen, such as lines of logs: server-sent events or JSON lines. */

/** Interval between keep-alive comments on a quiet stream, in ms. Shorter than the idle timeouts of proxies. */
const KEEP_ALIVE_MS = 15_000

/** Response headers of an event stream. */
export const EVENT_STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  connection: 'keep-alive',
  'x-accel-buffering': 'no',
} as const

/** Events for one reader, who takes them at its own speed. */
export interface ReadableEvents<Event> {
  /** Id of the last returned event, from which a reader can continue. */
  readonly id: string
  /** True if all events were returned and no more will come. */
  readonly ended: boolean
  /**
   * The next events, an empty list if none come within `forMs`; null at the end. `missed` is null if the number is
   * unknown.
   */
  next(forMs: number): Promise<{ readonly events: readonly Event[]; readonly missed: number | null } | null>
  close(): void
}

interface Identified {
  readonly id: string
}

/** Format of a stream. */
export interface EventWriting<Event> {
  readonly headers: Readonly<Record<string, string>>
  readonly event: (event: Event) => string
  /** First text. @param id the event id from which a client resumes if it received no event */
  readonly opening: (id: string) => string
  /** Text of a note about the events. */
  readonly note: (note: { readonly text: string; readonly isLost: boolean }) => string
  /** Keep-alive text, which readers ignore; null to send none. */
  readonly quiet: string | null
  /**
   * Text that reports requested data that was already removed: bytes of logs, otherwise events; null for an unknown
   * number.
   */
  readonly missed: (count: number | null) => string
  /** Last text of a complete stream. Not sent if the server stops or the reader disconnects. */
  readonly end: string
}

/**
 * Lines of logs as server-sent events.
 * @param data the JSON of a log line
 * @param own true for Runyard's own readers: they get an id before the first log line, and an event `end`
 */
export function asEvents<Event extends Identified>(data: (event: Event) => object, own: boolean): EventWriting<Event> {
  return {
    headers: EVENT_STREAM_HEADERS,
    event: event => `id: ${event.id}\ndata: ${oneLine(data(event))}\n\n`,
    opening: id => (own ? `id: ${id}\n\n` : ''),
    note: ({ text, isLost }) =>
      own ? `event: note\ndata: ${oneLine({ text, ...(isLost ? { lost: true } : {}) })}\n\n` : '',
    quiet: ': nothing new\n\n',
    missed: bytes => `: ${bytes} bytes in front of this are no longer kept\n\n`,
    end: own ? 'event: end\ndata: {}\n\n' : '',
  }
}

/**
 * Server-sent events with names. Missed events are reported as an event `missed`, whose `events` is their number,
 * null if unknown.
 * @param data the name and the JSON of an event
 */
export function asNamedEvents<Event extends Identified>(
  data: (event: Event) => { readonly name: string; readonly data: object },
): EventWriting<Event> {
  return {
    headers: EVENT_STREAM_HEADERS,
    event: event => {
      const { name, data: members } = data(event)
      return `id: ${event.id}\nevent: ${name}\ndata: ${oneLine(members)}\n\n`
    },
    opening: id => `id: ${id}\n\n`,
    note: () => '',
    quiet: ': nothing new\n\n',
    missed: count => `event: missed\ndata: ${oneLine({ events: count })}\n\n`,
    end: '',
  }
}

/** JSON lines. @param data the JSON of a log line */
export function asLines<Event>(data: (event: Event) => object): EventWriting<Event> {
  return {
    headers: { 'content-type': 'application/x-ndjson', 'x-accel-buffering': 'no' },
    event: event => `${oneLine(data(event))}\n`,
    opening: () => '',
    note: () => '',
    quiet: null,
    missed: () => '',
    end: '',
  }
}

/** Lines for people. @param line an event without a line end */
export function asTextLines<Event>(line: (event: Event) => string): EventWriting<Event> {
  return {
    headers: { 'content-type': 'text/plain; charset=utf-8', 'x-accel-buffering': 'no' },
    event: event => `${line(event)}\n`,
    opening: () => '',
    note: () => '',
    quiet: null,
    missed: () => '',
    end: '',
  }
}

/** JSON on one line. Escapes characters that some readers treat as line ends. */
function oneLine(value: object): string {
  return JSON.stringify(value).replaceAll(
    /[\u0085\u2028\u2029]/g,
    character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/**
 * A response that reads the stream only as fast as its client reads the response.
 * @param signals end the response: the client disconnected, or the server stops
 */
export function streamedAnswer<Event>(
  stream: ReadableEvents<Event>,
  writing: EventWriting<Event>,
  signals: readonly AbortSignal[],
): Response {
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

async function nextText<Event>(
  stream: ReadableEvents<Event>,
  writing: EventWriting<Event>,
  forMs: number,
): Promise<string | null> {
  const batch = await stream.next(forMs)
  if (batch === null) return null
  if (batch.events.length === 0 && batch.missed === 0) return writing.quiet ?? ''
  return (batch.missed !== 0 ? writing.missed(batch.missed) : '') + batch.events.map(writing.event).join('')
}
