/** State of the page of a log: its lines, the filter over them, and the pause of new ones. */

import { signal } from '@preact/signals'
import { clockTime } from '../../../format.ts'
import { serverNow } from '../../../server-clock.ts'
import { LogBuffer } from './log-buffer.ts'
import { type LogLine, notice } from './log-line.ts'
import { LogStream, type StreamParts, type StreamState } from './log-stream.ts'
import { isHit, type LogFilter, LogView } from './log-view.ts'

/** Limit of lines that are read during a pause; then the stream is left until somebody resumes. */
export const MAX_AHEAD = 50_000
/** Longest run over lines, in milliseconds; a frame has 16 ms. */
const SLICE_MS = 6
/** Interval at which new lines are shown, in milliseconds. */
const FLUSH_MS = 60
/** Time after which a hidden tab closes its connection, in milliseconds: a browser has six for a server. */
const HIDDEN_MS = 30_000

/** One log on a page. */
export class LogSession {
  /** Rises with each visible change. */
  readonly changes = signal(0)
  readonly stream = signal<StreamState>({ is: 'opening' })
  /** Number of lines since the pause that pass the filter; null: not paused. */
  readonly unseen = signal<number | null>(null)
  /** Number of the line to scroll into sight; null for none. */
  readonly target = signal<number | null>(null)
  /** Number of the line at the top of the visible area. */
  top = 0
  readonly buffer = new LogBuffer()
  view: LogView
  #filter: LogFilter
  #columns = Number.POSITIVE_INFINITY
  /** Number of the first line after the pause. */
  #pausedAt: number | null = null
  #counted = 0
  #timer: ReturnType<typeof setTimeout> | null = null
  #hiddenTimer: ReturnType<typeof setTimeout> | null = null
  #isHidden = false
  readonly #reading

  constructor(parts: Pick<StreamParts, 'open' | 'endText'>, filter: LogFilter) {
    this.#filter = filter
    this.view = new LogView(this.buffer, filter, this.#columns)
    this.#reading = new LogStream({
      ...parts,
      onLine: line => this.#take(line),
      onBack: lostAtMs => this.#take(notice(awayText(lostAtMs), serverNow())),
      onState: state => {
        this.stream.value = state
      },
    })
    document.addEventListener('visibilitychange', this.#onVisibility)
  }

  close(): void {
    this.#reading.close()
    for (const timer of [this.#timer, this.#hiddenTimer]) if (timer !== null) clearTimeout(timer)
    document.removeEventListener('visibilitychange', this.#onVisibility)
  }

  /** Replaces the filter. */
  filter(filter: LogFilter): void {
    this.#filter = filter
    this.view = new LogView(this.buffer, filter, this.#columns)
    if (this.#pausedAt !== null) {
      this.#counted = this.#pausedAt
      this.unseen.value = 0
      this.target.value ??= this.top
    }
    this.#flush()
  }

  /** Wraps rows at a number of characters; infinite for not at all. */
  wrap(columns: number): void {
    if (columns === this.#columns) return
    this.#columns = columns
    this.view.trim()
    this.view.wrap(columns)
    this.changes.value += 1
  }

  /** Stops showing new lines; they are still read, so that none is lost. */
  pause(): void {
    if (this.#pausedAt !== null) return
    this.#flush()
    this.#pausedAt = this.buffer.end
    this.#counted = this.#pausedAt
    this.unseen.value = 0
  }

  /** Shows the lines since the pause, and new ones. */
  resume(): void {
    this.#pausedAt = null
    this.unseen.value = null
    this.buffer.trim()
    this.#hold()
    this.#flush()
  }

  /** Lines that pass the filter, or all stored lines. */
  *lines(which: 'shown' | 'all'): Generator<LogLine> {
    this.#flush()
    if (which === 'all')
      for (let number = this.buffer.first; number < this.buffer.end; number += 1) yield this.buffer.get(number)!
    else for (let row = 0; row < this.view.count; row += 1) yield this.buffer.get(this.view.numberAt(row)!)!
  }

  #take(line: LogLine): void {
    this.buffer.push(line)
    // Lines that are read during a pause must not push out those on the screen.
    if (this.#pausedAt === null) this.buffer.trim()
    else this.#hold()
    this.#later()
  }

  #hold(): void {
    const isAhead = this.#pausedAt !== null && this.buffer.end - this.#pausedAt >= MAX_AHEAD
    this.#reading.hold(this.#isHidden || isAhead)
  }

  #later(): void {
    this.#timer ??= setTimeout(() => this.#flush(), FLUSH_MS)
  }

  #flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.view.trim()
    const isDone = this.view.advance(this.#pausedAt ?? this.buffer.end, SLICE_MS)
    this.#count()
    if (!isDone) this.#timer = setTimeout(() => this.#flush())
    this.changes.value += 1
  }

  #count(): void {
    if (this.#pausedAt === null) return
    let unseen = this.unseen.value ?? 0
    for (; this.#counted < this.buffer.end; this.#counted += 1)
      if (isHit(this.buffer.get(this.#counted)!, this.#filter)) unseen += 1
    this.unseen.value = unseen
  }

  readonly #onVisibility = () => {
    if (this.#hiddenTimer !== null) clearTimeout(this.#hiddenTimer)
    const set = (isHidden: boolean) => {
      this.#isHidden = isHidden
      this.#hold()
    }
    if (document.hidden) this.#hiddenTimer = setTimeout(() => set(true), HIDDEN_MS)
    else set(false)
  }
}

function awayText(fromMs: number): string {
  return `No connection to the server from ${clockTime(fromMs)} to ${clockTime(serverNow())}; the lines go on where they stopped.`
}
