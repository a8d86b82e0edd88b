import type { WorkerId } from '../../core/ids.ts'
import { type LogCursor, type LogPlace, MAX_HISTORY } from '../../core/observing/log-cursor.ts'
import type { Worker } from '../../core/workers/worker.ts'
import { type WorkerHistoryEntry, workerHistory } from '../../core/workers/worker-history.ts'
import type { Ports } from '../../ports/ports.ts'
import type { LogReader, PlacedLine } from '../../ports/worker-logs.ts'

/** The writer of a line: the worker, or the server about the worker. */
export type LogSource = 'container' | 'system'

/** The time in which one worker had a job, and no other job; empty while `workerId` is null. */
export interface LogSpan {
  workerId: WorkerId | null
  /** Exclusive beginning; the end is inclusive. */
  fromMs: number
  untilMs: number
}

/** Lines that a reader asks for. */
export interface LogFilter {
  readonly sources: ReadonlySet<LogSource>
  /** Only lines of this job; null for all. */
  readonly jobId: string | null
  /** Output in this time belongs to the job, too; changes with the job. */
  readonly span?: LogSpan
  /** Only lines with this text, in upper or lower case; null for all. */
  readonly text: string | null
  /** True to return the unfinished last line of a running worker, for readers that do not wait for its end. */
  readonly unfinished: boolean
}

/** One line of a feed. */
export interface FeedLine {
  readonly workerId: WorkerId
  readonly source: LogSource
  readonly tsMs: number
  readonly line: string
  readonly jobId: string | null
  /** Place up to which the logs of its worker are read with this line. */
  readonly place: LogPlace
}

/** The lines that a feed reads at once. */
export interface FeedBatch {
  readonly lines: readonly FeedLine[]
  /** True when more lines can be read at once. */
  readonly more: boolean
  /** Number of requested bytes that are no longer kept. */
  readonly missed: number
}

/**
 * Reads the output and the history of several workers as lines in the order of time. Holds at most one page of each
 * worker.
 */
export class LogFeed {
  readonly #logs
  readonly #matches: ReturnType<typeof createMatcher>
  readonly #filter
  readonly #start
  readonly #workers = new Map<WorkerId, WorkerFeed>()

  /** @param start the place from which each worker is read; others are read from their beginning */
  constructor(logs: Ports['logs'], filter: LogFilter, start: LogCursor) {
    this.#logs = logs
    this.#matches = createMatcher(filter)
    this.#filter = filter
    this.#start = start
  }

  /** Sets the workers that are read. Reading of a known worker continues at its place. */
  set(workers: readonly Worker[]): void {
    const ids = new Set(workers.map(({ id }) => id))
    for (const id of this.#workers.keys()) if (!ids.has(id)) this.#workers.delete(id)
    for (const worker of workers) {
      const feed = this.#workers.get(worker.id)
      if (feed !== undefined) feed.update(worker)
      else this.#workers.set(worker.id, this.#open(worker))
    }
  }

  /** The place up to which the lines of each worker were returned. */
  get cursor(): LogCursor {
    return new Map([...this.#workers].map(([id, { place }]) => [id, place]))
  }

  /** New lines, perhaps none. Lines of different workers come in the order of their times. */
  async next(): Promise<FeedBatch> {
    const feeds = [...this.#workers.values()]
    await Promise.all(feeds.map(feed => feed.fill()))
    // A line waits for earlier lines that another worker may have yet to read.
    const untilMs = Math.min(...feeds.map(feed => feed.readUntilMs))
    const lines = feeds.flatMap(feed => feed.take(untilMs))
    if (feeds.length > 1) lines.sort((a, b) => a.tsMs - b.tsMs)
    const missed = feeds.reduce((sum, feed) => sum + feed.takeMissed(), 0)
    return { lines, more: untilMs !== Number.POSITIVE_INFINITY, missed }
  }

  #open(worker: Worker): WorkerFeed {
    const place = this.#start.get(worker.id) ?? { position: 0, historyRead: 0 }
    const { sources, unfinished } = this.#filter
    const reader = sources.has('container') ? this.#logs.reader(worker.id, place.position) : null
    return new WorkerFeed(worker, {
      place,
      reader,
      hasHistory: sources.has('system'),
      unfinished,
      matches: this.#matches,
    })
  }
}

/** A line with the properties that a filter compares. */
interface MatchedLine {
  readonly line: string
  readonly jobId: string | null
  readonly tsMs: number
}

/** A function that returns true for lines of a worker that match the filter. */
export function createMatcher({
  jobId,
  text,
  span,
}: Pick<LogFilter, 'jobId' | 'text' | 'span'>): (worker: WorkerId, line: MatchedLine) => boolean {
  const searchText = text?.toLowerCase() ?? null
  const isInSpan = (worker: WorkerId, tsMs: number) =>
    span !== undefined && span.workerId === worker && tsMs > span.fromMs && tsMs <= span.untilMs
  return (worker, { line, jobId: ofJob, tsMs }) =>
    (jobId === null || ofJob === jobId || (ofJob === null && isInSpan(worker, tsMs))) &&
    (searchText === null || line.toLowerCase().includes(searchText))
}

/** One worker of a feed. */
class WorkerFeed {
  readonly #parts
  #worker: Worker
  #history: readonly WorkerHistoryEntry[]
  #printed: readonly PlacedLine[] = []
  #more = false
  #missed = 0
  place: LogPlace

  constructor(
    worker: Worker,
    parts: {
      readonly place: LogPlace
      readonly reader: LogReader | null
      readonly hasHistory: boolean
      readonly unfinished: boolean
      readonly matches: ReturnType<typeof createMatcher>
    },
  ) {
    this.#parts = parts
    this.#worker = worker
    this.#history = workerHistory(worker)
    this.place = parts.place
  }

  update(worker: Worker): void {
    this.#worker = worker
    this.#history = workerHistory(worker)
  }

  /** Reads the next page, unless lines of the last one are left. */
  async fill(): Promise<void> {
    const { reader, matches, unfinished } = this.#parts
    if (this.#printed.length > 0 || reader === null) return
    const page = await reader.next(unfinished || this.#worker.state === 'EXITED' ? 'over' : 'open')
    this.#printed = page.lines.filter(line => matches(this.#worker.id, line))
    this.#more = page.more
    this.#missed += page.missed
  }

  /** Instant up to which all lines are read; infinite when all are. */
  get readUntilMs(): number {
    if (!this.#more) return Number.POSITIVE_INFINITY
    return this.#printed.at(-1)?.tsMs ?? Number.NEGATIVE_INFINITY
  }

  /** Returns the lines up to an instant. */
  take(untilMs: number): FeedLine[] {
    const lines: FeedLine[] = []
    let printed = 0
    for (;;) {
      const written = this.#printed[printed]
      const entry = this.#nextEntry()
      const due = (ms: number | undefined) => ms !== undefined && ms <= untilMs
      if (due(entry?.atMs) && (written === undefined || entry!.atMs < written.tsMs))
        lines.push(...this.#entryLines(entry!))
      else if (written !== undefined && due(written.tsMs)) {
        printed += 1
        this.place = { ...this.place, position: written.position }
        lines.push(this.#makeLine('container', written.tsMs, written.line, written.jobId))
      } else break
    }
    this.#printed = this.#printed.slice(printed)
    return lines
  }

  takeMissed(): number {
    const missed = this.#missed
    this.#missed = 0
    return missed
  }

  #nextEntry(): WorkerHistoryEntry | undefined {
    return this.#parts.hasHistory && this.place.historyRead < MAX_HISTORY
      ? this.#history[this.place.historyRead]
      : undefined
  }

  #entryLines({ atMs, line }: WorkerHistoryEntry): FeedLine[] {
    this.place = { ...this.place, historyRead: this.place.historyRead + 1 }
    return this.#parts.matches(this.#worker.id, { line, jobId: null, tsMs: atMs })
      ? [this.#makeLine('system', atMs, line, null)]
      : []
  }

  #makeLine(source: LogSource, tsMs: number, line: string, jobId: string | null): FeedLine {
    return { workerId: this.#worker.id, source, tsMs, line, jobId, place: this.place }
  }
}
