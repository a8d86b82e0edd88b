/** The stream of a log: read on demand, and resumed after the last line that arrived. */

import { ApiError, errorSentence } from '../../../client/api.ts'
import { Backoff, pause, readEvents } from '../../../client/event-source.ts'
import { serverNow } from '../../../server-clock.ts'
import { type LineData, LineReader, type LogLine, notice } from './log-line.ts'

/** State of the stream. */
export type StreamState =
  | { readonly is: 'opening' | 'open' | 'held' }
  | { readonly is: 'lost'; readonly retryAtMs: number }
  | { readonly is: 'ended'; readonly why: string }
  | { readonly is: 'failed'; readonly why: string }

/** Inputs of a stream. */
export interface StreamParts {
  /** Opens the stream after an event; null for its beginning. */
  readonly open: (lastEventId: string | null, signal: AbortSignal) => Promise<Response>
  /** Text at the end, when no more lines will arrive. */
  readonly endText: string
  readonly onLine: (line: LogLine) => void
  readonly onState: (state: StreamState) => void
  /** Called when the connection works again. @param lostAtMs instant of its loss */
  readonly onBack: (lostAtMs: number) => void
}

/** Duration in milliseconds after which a stream counts as opened. */
const LASTING_MS = 5_000
/** Silence after which the connection is lost, in milliseconds; the server sends a sign of life every 15 s. */
const SILENCE_MS = 40_000

/** Reads until it is closed. It reports each line once and in order, through all losses of the connection. */
export class LogStream {
  readonly #parts
  readonly #end = new AbortController()
  #connection = new AbortController()
  #lastId: string | null = null
  #isHeld = false
  #wake = () => {}

  constructor(parts: StreamParts) {
    this.#parts = parts
    void this.#run()
  }

  /** Stops reading, or resumes after the last line. */
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
      lostAtMs ??= serverNow()
      const waitMs = backoff.next()
      onState({ is: 'lost', retryAtMs: serverNow() + waitMs })
      await pause(waitMs, this.#end.signal)
    }
  }

  /** Reads one connection. @returns the final state if no other connection will follow; null to try again */
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
        // Lines that were read but not reported arrive again.
        if (signal.aborted) return null
        this.#lastId = id ?? this.#lastId
        if (name === 'end') return { is: 'ended', why: this.#parts.endText }
        if (name === 'message') this.#parts.onLine(reader.read(JSON.parse(data) as LineData))
        else if (name === 'note') this.#parts.onLine(notice((JSON.parse(data) as { text: string }).text, serverNow()))
      }
      return null
    } catch (error) {
      const isFinal = error instanceof ApiError && !error.isPassing
      return isFinal && !signal.aborted ? { is: 'failed', why: errorSentence(error) } : null
    } finally {
      this.#connection.abort()
    }
  }
}
