/**
 * Makes spans from the events of jobs and workers. Its memory is bounded; a dropped entry only costs details of
 * spans.
 */
import type { EndpointId, JobId, WorkerId } from '../ids.ts'
import type { ColdStartPhase } from '../workers/worker-phase.ts'
import { type ChunkTimes, jobSpans, type MoveFacts, type TracedMove, type TraceRules } from './job-spans.ts'
import type { Span } from './span.ts'
import { failedStartSpans, startLink, startSpans } from './worker-spans.ts'

/** Limits of remembered workers and of running attempts; above them the oldest are dropped. */
const MAX_REMEMBERED = 20_000

/** Facts about a worker that has not ended. */
interface LiveWorker {
  readonly release: number
  readonly createdAtMs: number
  /** Null until it is ready. */
  readonly readyAtMs: number | null
}

/** An attempt in progress. */
interface HeldJob {
  readonly workerId: WorkerId
  readonly attempt: number
  readonly startedAtMs: number
  /** Undefined until its worker streams. */
  readonly stream: ChunkTimes | undefined
}

/** A worker that became ready. */
export interface StartedWorkerTimes {
  readonly endpointId: EndpointId
  readonly workerId: WorkerId
  readonly coldStartMs: number
  readonly phases: Readonly<Record<ColdStartPhase, number>>
}

/**
 * Makes spans once they have ended. The event that ends a span has all of its data, except details that this server
 * must have seen: the release of a worker, a job's wait for its start, the times of chunks, and the beginning of an
 * attempt that is given back.
 */
export class SpanBuilder {
  readonly #rules: TraceRules
  readonly #workers = new Map<WorkerId, LiveWorker>()
  readonly #held = new Map<JobId, HeldJob>()
  #moves = 0

  constructor(rules: TraceRules) {
    this.#rules = rules
  }

  /** Records a created worker. */
  created(workerId: WorkerId, release: number, atMs: number): void {
    remember(this.#workers, workerId, { release, createdAtMs: atMs, readyAtMs: null })
  }

  /** Ends the start of a worker: it has asked for its first job, or is healthy for the first time. */
  ready({ endpointId, workerId, coldStartMs: tookMs, phases }: StartedWorkerTimes, atMs: number): Span[] {
    const worker = this.#workers.get(workerId)
    if (worker !== undefined) this.#workers.set(workerId, { ...worker, readyAtMs: atMs })
    return startSpans({ endpointId, workerId, release: worker?.release, tookMs }, phases, this.#rules, atMs)
  }

  /** Makes the span of a start that failed, and drops the ended worker. @param error the reason in a word */
  ended(endpointId: EndpointId, workerId: WorkerId, error: string, atMs: number): Span[] {
    const live = this.#workers.get(workerId)
    this.#workers.delete(workerId)
    if (live === undefined || live.readyAtMs !== null) return []
    const { release, createdAtMs } = live
    const worker = { endpointId, workerId, release, tookMs: atMs - createdAtMs }
    return failedStartSpans(worker, error, this.#rules, atMs)
  }

  /** Records stored chunks of a job. */
  streamed(jobId: JobId, chunks: number, atMs: number): void {
    const job = this.#held.get(jobId)
    if (job === undefined) return
    const { firstMs, count } = job.stream ?? { firstMs: atMs, count: 0 }
    this.#held.set(jobId, { ...job, stream: { firstMs, lastMs: atMs, count: count + chunks } })
  }

  /**
   * Makes the spans of a job's move.
   * @param isUndelivered true if the job is given back because it never reached its worker
   */
  moved(move: TracedMove, isUndelivered: boolean, atMs: number): Span[] {
    const { jobId, transition, workerId, attempt, waitedMs } = move
    const held = this.#held.get(jobId)
    this.#held.delete(jobId)
    const worker = this.#workers.get(workerId ?? held?.workerId ?? ('' as WorkerId))
    const facts: { -readonly [Name in keyof MoveFacts]: MoveFacts[Name] } = {
      nth: ++this.#moves,
      release: worker?.release,
      stream: held?.stream,
    }
    if (transition === 'claim' && workerId !== null) {
      remember(this.#held, jobId, { workerId, attempt, startedAtMs: atMs, stream: undefined })
      const readyAtMs = worker?.readyAtMs ?? null
      const isCold = readyAtMs !== null && atMs - waitedMs <= readyAtMs
      if (isCold) facts.coldStart = startLink(workerId, readyAtMs, this.#rules.ids)
    } else if (transition === 'release' && held !== undefined) facts.held = { ...held, isUndelivered }
    return jobSpans(move, facts, this.#rules, atMs)
  }
}

function remember<Key, Value>(map: Map<Key, Value>, key: Key, value: Value): void {
  map.delete(key)
  map.set(key, value)
  if (map.size > MAX_REMEMBERED) map.delete(map.keys().next().value!)
}
