import type { WorkerId } from '../../core/ids.ts'
import type { LastEvent, LogCursor, LogPlace } from '../../core/observing/log-cursor.ts'
import type { Worker } from '../../core/workers/worker.ts'
import { type WorkerHistoryEntry, workerHistory } from '../../core/workers/worker-history.ts'
import type { Ports } from '../../ports/ports.ts'
import { createMatcher, type LogFilter } from './log-feed.ts'

/** The beginning of a reading of logs. */
export interface LogStart {
  /** Number of the newest old lines to return. */
  readonly tail: number
  /** Only lines from this instant on; null for all. */
  readonly sinceMs: number | null
  /**
   * The last event of an earlier reading, which is continued right after it; `tail` and `sinceMs` have no effect
   * then.
   */
  readonly after: LastEvent | null
}

/** Maximum number of pages of one output that are searched; no output has as many. */
const MAX_PAGES = 512

/**
 * The places at which a feed of these workers begins, so that it returns the wanted old lines and no others.
 * @param knownMs a time before which no line matches; null for an unknown one
 */
export async function findLogStart(
  logs: Ports['logs'],
  workers: readonly Worker[],
  { tail, sinceMs, after }: LogStart,
  filter: LogFilter,
  knownMs: number | null,
): Promise<LogCursor> {
  if (after !== null) return placesAfter(logs, workers, after)
  const fromMs = Math.max(sinceMs ?? 0, knownMs ?? 0)
  const candidates: Candidate[] = []
  const ends = new Map<WorkerId, LogPlace>()
  for (const worker of workers) {
    const matches = createMatcher(filter)
    const history = workerHistory(worker)
    const printed = await lastPrinted(logs, worker.id, { tail, fromMs, filter })
    candidates.push(...printed.found)
    const entries = history.flatMap(({ atMs, line }, index) =>
      atMs >= fromMs && matches(worker.id, { line, jobId: null, tsMs: atMs })
        ? [{ workerId: worker.id, tsMs: atMs, entry: index }]
        : [],
    )
    if (filter.sources.has('system')) candidates.push(...entries)
    ends.set(worker.id, { position: printed.end, historyRead: history.length })
  }
  candidates.sort((a, b) => a.tsMs - b.tsMs)
  // The wanted lines of a worker are its last ones, so its reading begins at the first of them.
  for (const { workerId, position, entry } of candidates.slice(Math.max(0, candidates.length - tail)).reverse()) {
    const end = ends.get(workerId)!
    ends.set(workerId, { position: position ?? end.position, historyRead: entry ?? end.historyRead })
  }
  return ends
}

/** A matching line: the position in the output before it, or its index in the worker history. */
interface Candidate {
  readonly workerId: WorkerId
  readonly tsMs: number
  readonly position?: number
  readonly entry?: number
}

async function lastPrinted(
  logs: Ports['logs'],
  workerId: WorkerId,
  { tail, fromMs, filter }: { tail: number; fromMs: number; filter: LogFilter },
): Promise<{ found: Candidate[]; end: number }> {
  if (!filter.sources.has('container')) return { found: [], end: 0 }
  const matches = createMatcher(filter)
  const all = filter.text === null && filter.jobId === null
  const last = all || tail === 0 ? await logs.startOfLast(workerId, tail) : 0
  const start = Math.max(last, fromMs === 0 ? 0 : await logs.startOfTime(workerId, fromMs))
  const reader = logs.reader(workerId, start)
  let candidates: Candidate[] = []
  let end = start
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { lines, position, more } = await reader.next(filter.unfinished ? 'over' : 'open')
    const matchingLines = lines.filter(line => line.tsMs >= fromMs && matches(workerId, line))
    candidates.push(...matchingLines.map(line => ({ workerId, tsMs: line.tsMs, position: line.position - 1 })))
    if (candidates.length > 2 * tail) candidates = candidates.slice(candidates.length - tail)
    end = position
    if (!more) break
  }
  return { found: candidates, end }
}

async function placesAfter(logs: Ports['logs'], workers: readonly Worker[], after: LastEvent): Promise<LogCursor> {
  if (after.kind === 'places') return after.places
  const places = new Map<WorkerId, LogPlace>()
  for (const worker of workers) {
    places.set(worker.id, after.kind === 'place' ? after.place : await placeAt(logs, worker, after.ms))
  }
  return places
}

/** The place behind all lines up to an instant. */
async function placeAt(logs: Ports['logs'], worker: Worker, ms: number): Promise<LogPlace> {
  const isBefore = (line: WorkerHistoryEntry) => line.atMs <= ms
  return {
    position: await logs.startOfTime(worker.id, ms + 1),
    historyRead: workerHistory(worker).filter(isBefore).length,
  }
}
