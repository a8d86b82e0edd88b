import { AppError, invalidRequest, notFound } from '../../core/errors.ts'
import { Holdings } from '../../core/fair-share.ts'
import { type EndpointId, isEndpointId, isJobId, type JobId, type OwnerId, type WorkerId } from '../../core/ids.ts'
import { isFinal, type Job } from '../../core/jobs/job.ts'
import type { Worker } from '../../core/workers/worker.ts'
import type { Ports } from '../../ports/ports.ts'
import { LogFeed, type LogFilter, type LogSource, type LogSpan } from './log-feed.ts'
import { findLogStart, type LogStart } from './log-start.ts'
import { type LogNote, LogStream, type LogSubject } from './log-stream.ts'

/** The endpoint, worker or job that an id belongs to. */
export type LogScope =
  | { readonly kind: 'endpoint'; readonly id: EndpointId }
  | { readonly kind: 'worker'; readonly id: WorkerId; readonly endpointId: EndpointId }
  | { readonly kind: 'job'; readonly id: JobId; readonly endpointId: EndpointId }

/** Lines that a reader asks for, and the form of the reading. */
export interface LogQuery extends LogStart {
  /** Only lines of the worker or of the server; null for both. The lines of a job are those of its workers. */
  readonly source: LogSource | null
  /** Only lines with this text, in upper or lower case; null for all. */
  readonly text: string | null
  /** True to follow new lines. */
  readonly follow: boolean
  /** Time for which the stream stays open without lines after the last one. */
  readonly lingerMs: number
}

/** Maximum number of old lines that a reading starts with. */
export const MAX_TAIL = 5_000
/** Maximum number of readings of logs that an account may have open at once. */
export const MAX_OPEN = 100
/** Maximum number of workers of an endpoint whose output is read together, the newest ones. */
const MAX_WORKERS_READ = 20

/** Greatest lag of the clock of files behind the clock of the server. */
const CLOCK_MS = 1_000

/** Finds and reads the output of workers by the id of an endpoint, a worker or a job. */
export class LogFinder {
  readonly #ports
  readonly #open = new Holdings<OwnerId>()

  constructor(ports: Ports) {
    this.#ports = ports
  }

  /**
   * The endpoint, worker or job with this id.
   * @throws AppError `not_found`, also for those of other owners
   */
  async locate(owner: OwnerId, id: string): Promise<LogScope> {
    const { store, clock } = this.#ports
    const endpoint = isEndpointId(id) ? await store.endpoints.find(id) : null
    if (endpoint !== null && endpoint.owner === owner) return { kind: 'endpoint', id: endpoint.id }
    const worker = await store.workers.find(id as WorkerId)
    if (worker !== null && worker.owner === owner)
      return { kind: 'worker', id: worker.id, endpointId: worker.endpointId }
    const job = isJobId(id) ? await store.jobs.locate(owner, id, clock.now()) : null
    const endpointId = job?.endpointId ?? (isJobId(id) ? await store.jobRecords.endpointOf(owner, id) : null)
    if (endpointId === null) throw new AppError('not_found', `there is no endpoint, worker or job ${id} (not found)`)
    return { kind: 'job', id: id as JobId, endpointId }
  }

  /**
   * A worker of an endpoint, also one that has ended.
   * @throws AppError `not_found` when it belongs to another endpoint
   */
  async findWorker(endpointId: EndpointId, workerId: string): Promise<LogScope> {
    const worker = await this.#ports.store.workers.find(workerId as WorkerId)
    if (worker === null || worker.endpointId !== endpointId) throw notFound('worker', workerId)
    return { kind: 'worker', id: worker.id, endpointId }
  }

  /**
   * A worker of an account, also one that has ended.
   * @throws AppError `not_found`, also for those of other owners
   */
  async findOwnWorker(owner: OwnerId, workerId: string): Promise<LogScope> {
    const worker = await this.#ports.store.workers.find(workerId as WorkerId)
    if (worker === null || worker.owner !== owner) throw notFound('worker', workerId)
    return { kind: 'worker', id: worker.id, endpointId: worker.endpointId }
  }

  /** Number of open readings of an account. */
  openBy(owner: OwnerId): number {
    return this.#open.of(owner)
  }

  /**
   * Opens a stream of lines. The caller closes it, unless it is read to its end.
   * @throws AppError `rate_limited` when the account reads too many at once; `invalid` for an `after` of other logs
   */
  async open(owner: OwnerId, scope: LogScope, query: LogQuery): Promise<LogStream> {
    const { after } = query
    if (after !== null && after.kind !== 'instant' && (after.kind === 'place') !== (scope.kind === 'worker')) {
      throw invalidRequest([`header.Last-Event-ID: is not of the logs of ${scope.kind} ${scope.id}`])
    }
    if (this.openBy(owner) >= MAX_OPEN) {
      throw new AppError('rate_limited', `${MAX_OPEN} readings of logs are open already`, { retryAfterSeconds: 5 })
    }
    this.#open.add(owner, 1)
    const onClose = () => void this.#open.add(owner, -1)
    try {
      return await this.#stream(owner, scope, query, onClose)
    } catch (error) {
      onClose()
      throw error
    }
  }

  async #stream(owner: OwnerId, scope: LogScope, query: LogQuery, onClose: () => void): Promise<LogStream> {
    const { logs } = this.#ports
    const job = scope.kind === 'job' ? await this.#job(owner, scope.id) : null
    const span: LogSpan = { workerId: null, fromMs: 0, untilMs: 0 }
    const filter: LogFilter = {
      sources: new Set(
        query.source === null ? (job === null ? ['container', 'system'] : ['container']) : [query.source],
      ),
      jobId: job?.id ?? null,
      span,
      text: query.text,
      unfinished: !query.follow,
    }
    const refresh = () => this.#findSubject(owner, scope, job, span)
    const subject = await refresh()
    const places = await findLogStart(
      logs,
      subject.workers,
      query,
      filter,
      job === null ? null : job.queuedAtMs - CLOCK_MS,
    )
    const feed = new LogFeed(logs, filter, places)
    const { follow, lingerMs } = query
    const topic = scope.kind === 'endpoint' ? null : (`${scope.kind}:${scope.id}` as const)
    return new LogStream(
      {
        ports: this.#ports,
        feed,
        subject,
        refresh,
        topic,
        several: scope.kind !== 'worker',
        follow,
        lingerMs,
        note: (await this.#lostOutput(job)) ?? jobNote(job, subject.workers),
        onClose,
      },
      places,
    )
  }

  async #findSubject(owner: OwnerId, scope: LogScope, job: Job | null, span: LogSpan): Promise<LogSubject> {
    const { store } = this.#ports
    if (scope.kind === 'worker') {
      const worker = await store.workers.find(scope.id)
      return { workers: worker === null ? [] : [worker], ended: worker === null || worker.state === 'EXITED' }
    }
    const all = (await store.workers.list(scope.kind === 'endpoint' ? scope.id : scope.endpointId)).reverse()
    if (scope.kind === 'job') {
      const present = await this.#job(owner, scope.id)
      const workers = all.filter(worker => mayHaveHeld(worker, present ?? job))
      Object.assign(span, jobSpan(present ?? job, all))
      return { workers: workers.slice(-MAX_WORKERS_READ), ended: present === null || isFinal(present.status) }
    }
    const ended = all.every(({ state }) => state === 'EXITED') && (await store.endpoints.find(scope.id)) === null
    return { workers: all.slice(-MAX_WORKERS_READ), ended }
  }

  /** Says that output of a job is no longer kept: its worker was removed, or has printed much since. */
  async #lostOutput(job: Job | null): Promise<LogNote | null> {
    if (job?.workerId == null || job.startedAtMs === null) return null
    const { store, logs } = this.#ports
    const lost = (which: string) => ({ text: `${which} is no longer kept`, isLost: true })
    if ((await store.workers.find(job.workerId)) === null) return lost(`the output of worker ${job.workerId}`)
    const { lines, missed } = await logs.reader(job.workerId, 0).next('over')
    const [first] = lines
    if (missed === 0 || (first !== undefined && first.tsMs < job.startedAtMs)) return null
    const isAll = job.finishedAtMs !== null && (first === undefined || first.tsMs > job.finishedAtMs)
    return lost(`${isAll ? 'the' : 'older'} output of worker ${job.workerId} from the time of this job`)
  }

  async #job(owner: OwnerId, id: JobId): Promise<Job | null> {
    return this.#ports.store.jobs.locate(owner, id, this.#ports.clock.now())
  }
}

/** Longest time that output of a container takes to reach its file. */
const COPY_MS = 200

/**
 * Note about a job's logs for its reader: a worker with several jobs at once prints for all of them, and the output
 * of a container is copied. Null without one.
 */
function jobNote(job: Job | null, workers: readonly Worker[]): LogNote | null {
  const worker = workers.find(({ id }) => id === job?.workerId)
  if (worker === undefined || (worker.capacity <= 1 && !isCopied(worker))) return null
  const text =
    worker.capacity <= 1
      ? `lines within ${COPY_MS} ms of the end may be of the job after it: the output of containers is copied`
      : `worker ${worker.id} runs up to ${worker.capacity} jobs at once: only lines that name this job are shown`
  return { text, isLost: false }
}

/**
 * Time in which its worker had a job, for workers that take one job at a time: output of that time belongs to the job.
 */
function jobSpan(job: Job | null, workers: readonly Worker[]): LogSpan {
  const worker = workers.find(({ id }) => id === job?.workerId)
  if (job === null || job.startedAtMs === null || worker === undefined || worker.capacity > 1)
    return { workerId: null, fromMs: 0, untilMs: 0 }
  const untilMs = (job.finishedAtMs ?? Number.POSITIVE_INFINITY) + (isCopied(worker) ? COPY_MS : 0)
  return { workerId: worker.id, fromMs: job.startedAtMs, untilMs }
}

function isCopied({ driver }: Worker): boolean {
  return driver === 'docker'
}

/** True if the job and the worker existed at the same time, so that the worker may have held the job. */
function mayHaveHeld({ createdAtMs, exitedAtMs }: Worker, job: Job | null): boolean {
  if (job === null) return false
  return (
    (exitedAtMs ?? Number.POSITIVE_INFINITY) >= job.queuedAtMs &&
    createdAtMs <= (job.finishedAtMs ?? Number.POSITIVE_INFINITY)
  )
}
