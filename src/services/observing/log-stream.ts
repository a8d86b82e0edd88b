import type { WorkerId } from '../../core/ids.ts'
import { eventId, eventIdFromPlaces, type LogPlace } from '../../core/observing/log-cursor.ts'
import type { Worker } from '../../core/workers/worker.ts'
import type { Topic } from '../../ports/notifier.ts'
import type { Ports } from '../../ports/ports.ts'
import type { FeedLine, LogFeed } from './log-feed.ts'

/** A line with the event id after which a reader can continue. */
export interface LogEvent extends FeedLine {
  readonly id: string
}

/** Lines that are sent at once; empty when no line came in time. */
export interface LogBatch {
  readonly events: readonly LogEvent[]
  /** Number of requested bytes that are no longer kept. */
  readonly missed: number
}

/** Note about the lines for their readers. */
export interface LogNote {
  readonly text: string
  /** True if lines that were asked for are no longer kept. */
  readonly isLost: boolean
}

/** The workers whose logs are read. */
export interface LogSubject {
  readonly workers: readonly Worker[]
  /** True when no more lines come, apart from lines that are being written now. */
  readonly ended: boolean
}

/** Interval of reads of the subject: notifications may be lost, and new workers send none. */
const REFRESH_MS = 1_000

/** Logs for one reader: old lines, then new ones, as fast as the reader asks for them. */
export class LogStream {
  readonly #parts
  readonly #openedAtMs: number
  readonly #places
  readonly #watches = new Map<WorkerId, () => void>()
  readonly #unsubscribe: () => void
  #subject: LogSubject
  #refreshAtMs: number
  #quietSinceMs: number
  #closed = false
  #rung = false
  #wake: () => void = () => {}
  /** True when all lines were returned and no more come. */
  ended = false

  /** @param places the place at which the feed begins, by worker */
  constructor(
    parts: {
      readonly ports: Ports
      readonly feed: LogFeed
      readonly subject: LogSubject
      /** Reads the subject again. */
      readonly refresh: () => Promise<LogSubject>
      /** Notifications after which the subject may have changed. */
      readonly topic: Topic | null
      /** True for event ids with the place of each of several workers. */
      readonly several: boolean
      /** True to follow new lines; else the stream ends with the last old line. */
      readonly follow: boolean
      /**
       * Time for which the stream stays open without lines after the end of its subject, for readers that end by
       * themselves in silence.
       */
      readonly lingerMs: number
      /** Note about the lines for their readers; null for no note. */
      readonly note?: LogNote | null
      /** Called once, when the stream is closed. */
      readonly onClose: () => void
    },
    places: ReadonlyMap<WorkerId, LogPlace>,
  ) {
    this.#parts = parts
    this.#places = new Map(places)
    const { clock, notifier } = parts.ports
    this.#openedAtMs = clock.now()
    this.#refreshAtMs = clock.monotonic() + REFRESH_MS
    this.#quietSinceMs = clock.monotonic()
    const changed = () => {
      this.#refreshAtMs = 0
      this.#ring()
    }
    this.#unsubscribe = parts.topic === null ? () => {} : notifier.subscribe(parts.topic, changed)
    this.#subject = parts.subject
    this.#use(parts.subject)
  }

  /** Note about the lines for their readers; null for no note. */
  get note(): LogNote | null {
    return this.#parts.note ?? null
  }

  /** The event id of the lines that were returned so far, after which a reader can continue. */
  get id(): string {
    const { several } = this.#parts
    const [place = { position: 0, historyRead: 0 }] = this.#places.values()
    return several ? eventIdFromPlaces(this.#openedAtMs, this.#places) : eventId(this.#openedAtMs, place)
  }

  /** The next lines, empty when no line comes within `forMs`; null for a stream that ended or was closed. */
  async next(forMs: number): Promise<LogBatch | null> {
    const { feed, follow, lingerMs, ports } = this.#parts
    const untilMs = ports.clock.monotonic() + forMs
    while (!this.#closed && !this.ended) {
      await this.#refresh()
      this.#rung = false
      const { lines, more, missed } = await feed.next()
      const shownLines = follow ? lines : lines.filter(({ tsMs }) => tsMs <= this.#openedAtMs)
      const nowMs = ports.clock.monotonic()
      if (lines.length > 0) this.#quietSinceMs = nowMs
      if (!follow && (shownLines.length < lines.length || (shownLines.length === 0 && !more))) this.ended = true
      if (shownLines.length > 0 || missed > 0)
        return { events: shownLines.map(line => this.#eventFromLine(line)), missed }
      if (more || this.ended) continue
      const endMs = this.#subject.ended ? this.#quietSinceMs + lingerMs : Number.POSITIVE_INFINITY
      if (nowMs >= endMs) this.ended = true
      else if (nowMs >= untilMs) return { events: [], missed: 0 }
      else await this.#pause(Math.min(untilMs, endMs, this.#refreshAtMs) - nowMs)
    }
    this.close()
    return null
  }

  /** Ends the stream. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#unsubscribe()
    for (const unwatch of this.#watches.values()) unwatch()
    this.#watches.clear()
    this.#parts.onClose()
    this.#ring()
  }

  #eventFromLine(line: FeedLine): LogEvent {
    this.#places.set(line.workerId, line.place)
    const { several } = this.#parts
    return { ...line, id: several ? eventIdFromPlaces(line.tsMs, this.#places) : eventId(line.tsMs, line.place) }
  }

  async #refresh(): Promise<void> {
    const { clock } = this.#parts.ports
    if (!this.#parts.follow || clock.monotonic() < this.#refreshAtMs) return
    this.#refreshAtMs = clock.monotonic() + REFRESH_MS
    // A short failure of the store does not end the reading of files.
    const subject = await this.#parts.refresh().catch(() => null)
    if (subject !== null && !this.#closed) this.#use(subject)
  }

  #use(subject: LogSubject): void {
    this.#subject = subject
    const { feed, follow, ports } = this.#parts
    feed.set(subject.workers)
    const ids = new Set(subject.workers.map(({ id }) => id))
    for (const id of this.#places.keys()) if (!ids.has(id)) this.#places.delete(id)
    if (!follow) return
    for (const id of ids) {
      if (!this.#watches.has(id))
        this.#watches.set(
          id,
          ports.logs.watch(id, () => this.#ring()),
        )
    }
    for (const [id, unwatch] of this.#watches) {
      if (ids.has(id)) continue
      unwatch()
      this.#watches.delete(id)
    }
  }

  #ring(): void {
    this.#rung = true
    this.#wake()
  }

  async #pause(ms: number): Promise<void> {
    if (this.#rung) return
    await new Promise<void>(resolve => {
      const cancel = this.#parts.ports.clock.after(Math.max(0, ms), resolve)
      this.#wake = () => {
        cancel()
        resolve()
      }
    })
    this.#wake = () => {}
  }
}
