import type { WorkerId } from '../../core/ids.ts'
import { eventId, eventIdOfMany, type LogPlace } from '../../core/observing/log-cursor.ts'
import type { Worker } from '../../core/workers/worker.ts'
import type { Topic } from '../../ports/notifier.ts'
import type { Ports } from '../../ports/ports.ts'
import type { FeedLine, LogFeed } from './log-feed.ts'

/** A line as it is sent, with the id that a reader can go on from. */
export interface LogEvent extends FeedLine {
  readonly id: string
}

/** What came at once; no lines when nothing came in time. */
export interface LogBatch {
  readonly events: readonly LogEvent[]
  /** Bytes that are no longer kept although they were asked for. */
  readonly missed: number
}

/** Whose logs are read, as they are now. */
export interface LogSubject {
  readonly workers: readonly Worker[]
  /** Whether nothing more will come but what is being written just now. */
  readonly ended: boolean
}

/** What a {@link LogStream} is made of. */
export interface LogStreamParts {
  readonly ports: Pick<Ports, 'logs' | 'clock' | 'notifier'>
  readonly feed: LogFeed
  readonly subject: LogSubject
  /** Asks who is read now. */
  readonly refresh: () => Promise<LogSubject>
  /** Notifications after which that may be another answer. */
  readonly topic: Topic | null
  /** Whether the ids say how far each of several workers was read. */
  readonly several: boolean
  /** Whether it goes on with new lines; else it ends with those that there are. */
  readonly follow: boolean
  /** How long it stays quiet behind the end of its subject before it ends, for readers that end by themselves in silence. */
  readonly lingerMs: number
  /** Is called once, when nobody reads it any more. */
  readonly onClose: () => void
}

/** How often it is asked who is read: notifications may be lost, and of new workers there are none. */
const REFRESH_MS = 1_000

/** Logs as they are sent to one reader: what there is, and what comes, as fast as it is asked for. */
export class LogStream {
  readonly #parts: LogStreamParts
  readonly #openedAtMs: number
  readonly #places: Map<WorkerId, LogPlace>
  readonly #watches = new Map<WorkerId, () => void>()
  readonly #unsubscribe: () => void
  #subject: LogSubject
  #refreshAtMs: number
  #quietSinceMs: number
  #closed = false
  #rung = false
  #wake: () => void = () => {}
  /** Whether all that will ever come has come. */
  ended = false

  /** @param places where the feed begins */
  constructor(parts: LogStreamParts, places: ReadonlyMap<WorkerId, LogPlace>) {
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

  /** The id of what was given out so far, from which a reader goes on. */
  get id(): string {
    const { several } = this.#parts
    const [place = { position: 0, told: 0 }] = this.#places.values()
    return several ? eventIdOfMany(this.#openedAtMs, this.#places) : eventId(this.#openedAtMs, place)
  }

  /**
   * What there is to send, at the latest after `forMs`; null when there is nothing more and never will be, or the stream was
   * closed.
   */
  async next(forMs: number): Promise<LogBatch | null> {
    const { feed, follow, lingerMs, ports } = this.#parts
    const untilMs = ports.clock.monotonic() + forMs
    while (!this.#closed && !this.ended) {
      await this.#refresh()
      this.#rung = false
      const { lines, more, missed } = await feed.next()
      const wanted = follow ? lines : lines.filter(({ tsMs }) => tsMs <= this.#openedAtMs)
      const nowMs = ports.clock.monotonic()
      if (lines.length > 0) this.#quietSinceMs = nowMs
      if (!follow && (wanted.length < lines.length || (wanted.length === 0 && !more))) this.ended = true
      if (wanted.length > 0 || missed > 0) return { events: wanted.map(line => this.#eventOf(line)), missed }
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

  #eventOf(line: FeedLine): LogEvent {
    this.#places.set(line.workerId, line.place)
    const { several } = this.#parts
    return { ...line, id: several ? eventIdOfMany(line.tsMs, this.#places) : eventId(line.tsMs, line.place) }
  }

  async #refresh(): Promise<void> {
    const { clock } = this.#parts.ports
    if (!this.#parts.follow || clock.monotonic() < this.#refreshAtMs) return
    this.#refreshAtMs = clock.monotonic() + REFRESH_MS
    // A store that is away for a moment does not end what is read from files.
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
