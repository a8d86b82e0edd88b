/** The stream of a log: read as long as it is wanted, and resumed behind the last line that came. */
import { ApiError, sentenceOf } from '../../../client/api.ts'
import { Backoff, pause, readEvents } from '../../../client/event-source.ts'
import { type LineData, LineReader, type LogLine, noticeOf } from './log-line.ts'

/** How the stream is. */
export type StreamState =
  | { readonly is: 'opening' | 'open' | 'held' }
  | { readonly is: 'lost'; readonly retryAtMs: number }
  | { readonly is: 'ended'; readonly why: string }
  | { readonly is: 'failed'; readonly why: string }

/** What a stream needs. */
export interface StreamParts {
  /** Opens the stream behind an event; null for its beginning. */
  readonly open: (lastEventId: string | null, signal: AbortSignal) => Promise<Response>
  /** What is said when no more lines will come. */
  readonly endText: string
  readonly onLine: (line: LogLine) => void
  readonly onState: (state: StreamState) => void
  /** Told when the connection is there again. @param lostAtMs when it was lost */
  readonly onBack: (lostAtMs: number) => void
}

/** A stream that lasted this long was open. */
const LASTING_MS = 5_000
/** The server says every 15 s that nothing is new; after this time without a word the connection is lost. */
const SILENCE_MS = 40_000

/** Reads until it is closed. Lines are told once and in order, whatever happens to the connection. */
export class LogStream {
  readonly #parts: StreamParts
  readonly #end = new AbortController()
  #connection = new AbortController()
  #lastId: string | null = null
  #isHeld = false
  #wake = () => {}

  constructor(parts: StreamParts) {
    this.#parts = parts
    void this.#run()
  }

  /** Stops reading until it is wanted again; it goes on where it stopped. */
  hold(isHeld: boolean): void {
    if (isHeld === this.#isHeld) return
    this.#isHeld = isHeld
    if (isHeld) this.#connection.abort()
    else this.#wake()
  }

  close(): void {
    this.#end.abort()
    this.#connection.abort()
    this.#wake()
  }

  async #run(): Promise<void> {
    const { onState } = this.#parts
    const reader = new LineReader()
    const backoff = new Backoff()
    let lostAtMs: number | null = null
    const onOpen = () => {
      if (lostAtMs !== null) this.#parts.onBack(lostAtMs)
      lostAtMs = null
    }
    while (!this.#end.signal.aborted) {
      if (this.#isHeld) {
        onState({ is: 'held' })
        await new Promise<void>(resolve => (this.#wake = resolve))
        continue
      }
      if (lostAtMs === null) onState({ is: 'opening' })
      const beganMs = performance.now()
      const over = await this.#connect(reader, onOpen)
      if (over !== null) return onState(over)
      if (this.#isHeld || this.#end.signal.aborted) continue
      if (performance.now() - beganMs > LASTING_MS) backoff.reset()
      lostAtMs ??= Date.now()
      const waitMs = backoff.next()
      onState({ is: 'lost', retryAtMs: Date.now() + waitMs })
      await pause(waitMs, this.#end.signal)
    }
  }

  /** Reads one connection. @returns what is known when there is no other; null to try again */
  async #connect(reader: LineReader, onOpen: () => void): Promise<StreamState | null> {
    this.#connection = new AbortController()
    const { signal } = this.#connection
    try {
      const response = await this.#parts.open(this.#lastId, signal)
      onOpen()
      this.#parts.onState({ is: 'open' })
      const onPlace = (id: string) => {
        this.#lastId = id ?? this.#lastId
      }
      for await (const { name, data, id } of readEvents(response, onPlace, SILENCE_MS)) {
        // What was read but not told comes again.
        if (signal.aborted) return null
        this.#lastId = id ?? this.#lastId
        if (name === 'end') return { is: 'ended', why: this.#parts.endText }
        if (name === 'message') this.#parts.onLine(reader.read(JSON.parse(data) as LineData))
        else if (name === 'note') this.#parts.onLine(noticeOf((JSON.parse(data) as { text: string }).text, Date.now()))
      }
      return null
    } catch (error) {
      const isFinal = error instanceof ApiError && !error.isPassing
      return isFinal && !signal.aborted ? { is: 'failed', why: sentenceOf(error) } : null
    } finally {
      this.#connection.abort()
    }
  }
}
