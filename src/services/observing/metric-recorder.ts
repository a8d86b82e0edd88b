import { addJobUsage, type JobUsage, NO_JOB_USAGE } from '../../core/billing/usage.ts'
import { gpuKey } from '../../core/hardware/inventory.ts'
import type { EndpointId, WorkerId } from '../../core/ids.ts'
import {
  addBucket,
  countGpu,
  countOfRelease,
  countQueue,
  countTime,
  countWorkers,
  emptyBucket,
  type MetricBucket,
  type MetricResult,
  type MetricWorkers,
} from '../../core/observing/metric-bucket.ts'
import { METRIC_SPANS, type MetricPoint, spanStart } from '../../core/observing/metric-series.ts'
import type { Worker, WorkerLoad, WorkerState } from '../../core/workers/worker.ts'
import type { Emit, EventName, Events } from '../../events.ts'
import type { Ports } from '../../ports/ports.ts'
import type { EndpointQueue, MetricCount } from '../../ports/store/metric-store.ts'
import { RecentResults } from './recent-results.ts'

/** Limit of counts that one call of the store adds. */
const MAX_ADDED = 200
/** Limit of counts in memory while the store fails; past it the oldest are dropped. */
const MAX_HELD = 50_000

/** Maximum queues of jobs that are counted at once, the longest ones. */
const MAX_QUEUES = 1_000

/** Status of a request whose client left before the response. */
const CLIENT_GONE = 499

const RESULTS: Partial<Record<string, MetricResult>> = {
  COMPLETED: 'completed',
  FAILED: 'failed',
  TIMED_OUT: 'timedOut',
  CANCELLED: 'cancelled',
}

/** Counts of an endpoint in one minute. */
interface Held {
  readonly bucket: MetricBucket
  /** Usage of its requests, which no job has; null without one. Filled in place, since many requests end in it. */
  requests: { -readonly [Figure in keyof JobUsage]: JobUsage[Figure] } | null
}

/** Requests of a load-balancing endpoint that ended. */
export type EndedRequests = Pick<JobUsage, 'completed' | 'failed'>

type Readers = { readonly [Name in EventName]?: (fields: Events[Name]) => void }

/**
 * Counts events at each endpoint by the minute, from the stream of events, and adds the counts to the store in
 * groups: those of requests also into the counters and the usage of their endpoints. Counts that were not stored are
 * lost when the server is killed: no decision depends on them.
 */
export class MetricRecorder {
  readonly #ports
  /** Results of the requests of the last hour. */
  readonly recent: RecentResults
  /** The release of each worker that has not ended. Results of a worker that is not in it count for no release. */
  readonly #versions = new Map<WorkerId, number>()
  /** Counts that are not stored yet, by minute and endpoint. */
  readonly #counts = new Map<number, Map<EndpointId, Held>>()
  #held = 0
  readonly #withRequests
  readonly #requestQueues

  /**
   * @param withRequests adds to serving workers their requests, which the store does not know
   * @param requestQueues the queues of load-balancing endpoints in which requests wait or are in flight
   */
  constructor(
    ports: Ports,
    withRequests: (workers: readonly WorkerLoad[]) => readonly WorkerLoad[],
    requestQueues: () => readonly EndpointQueue[],
  ) {
    this.#ports = ports
    this.#withRequests = withRequests
    this.#requestQueues = requestQueues
    this.recent = new RecentResults(ports)
  }

  readonly #readers: Readers = {
    'worker.created': ({ workerId, version }) => {
      this.#versions.set(workerId, version)
    },
    'job.moved': ({ endpointId, workerId, to, usage, transition }) => {
      const result = RESULTS[to]
      if (result === undefined || usage === undefined) return
      const bucket = this.#bucket(endpointId)
      this.#count(endpointId, bucket, result)
      const executionMs = usage.attempts > 0 ? usage.executionMs + usage.lostMs : null
      this.#countOfRelease(bucket, workerId, result, executionMs)
      // The wait before a late result was counted with the lost attempt.
      if (transition === 'finish' && usage.attempts === 0) return
      countTime(bucket, 'delay', usage.queuedMs)
      if (executionMs !== null) countTime(bucket, 'execution', executionMs)
    },
    'job.expired': ({ endpointId, usage }) => {
      if (usage.expired > 0) this.#count(endpointId, this.#bucket(endpointId), 'expired')
    },
    'worker.moved': ({ endpointId, coldStartMs }) => {
      if (coldStartMs !== undefined) countTime(this.#bucket(endpointId), 'coldStart', coldStartMs)
    },
    'worker.exited': ({ endpointId, asked }) => {
      if (!asked) this.#bucket(endpointId).crashes += 1
    },
    'gateway.request_finished': ({ endpointId, status, complete, workerId, waitMs, totalMs }) => {
      const held = this.#now(endpointId)
      const { bucket } = held
      const result = status === CLIENT_GONE ? 'cancelled' : status < 500 && complete ? 'completed' : 'failed'
      this.#count(endpointId, bucket, result)
      countTime(bucket, 'delay', waitMs)
      const executionMs = workerId === null ? 0 : Math.max(0, totalMs - waitMs)
      if (workerId !== null) countTime(bucket, 'execution', executionMs)
      this.#countOfRelease(bucket, workerId, result, executionMs)
      held.requests ??= { ...NO_JOB_USAGE }
      const { requests } = held
      requests[result] += 1
      requests.queuedMs += Math.round(waitMs)
      requests.executionMs += Math.round(executionMs)
      if (workerId !== null) requests.attempts += 1
    },
  }

  /** A sink of the event stream. */
  readonly emit: Emit = (name, fields) => this.#readers[name]?.(fields)

  /** Counts the existing workers, the use of their GPUs and the queues, and stores all counts. */
  async step(): Promise<void> {
    await this.#countWorkers()
    const queues = [...(await this.#ports.store.metrics.queues(MAX_QUEUES)), ...this.#requestQueues()]
    for (const { endpointId, ...queue } of queues) countQueue(this.#bucket(endpointId), queue)
    await this.flush()
  }

  /** Stores all counts. */
  async flush(): Promise<void> {
    for (let counts = this.#taken(); counts.length > 0; counts = this.#taken()) {
      try {
        await this.#ports.store.metrics.add(counts)
      } catch (error) {
        for (const { endpointId, minuteMs, bucket, requests } of counts) {
          const held = this.#at(endpointId, minuteMs)
          addBucket(held.bucket, bucket)
          if (requests != null) held.requests = addJobUsage(held.requests ?? NO_JOB_USAGE, requests)
        }
        throw error
      }
    }
  }

  /** Counts of an endpoint that are not stored yet. */
  pending(endpointId: EndpointId): MetricPoint[] {
    return [...this.#counts].flatMap(([atMs, ofMinute]) => {
      const held = ofMinute.get(endpointId)
      return held === undefined ? [] : [{ atMs, bucket: held.bucket }]
    })
  }

  /** Requests of a load-balancing endpoint that ended and are not stored yet. */
  pendingRequests(endpointId: EndpointId): EndedRequests {
    const sum = { completed: 0, failed: 0 }
    for (const ofMinute of this.#counts.values()) {
      const { completed = 0, failed = 0 } = ofMinute.get(endpointId)?.requests ?? {}
      sum.completed += completed
      sum.failed += failed
    }
    return sum
  }

  async #countWorkers(): Promise<void> {
    const workers = new Map<EndpointId, Record<MetricWorkers, number>>()
    const known = [...this.#versions.keys()]
    const loads = this.#withRequests(await this.#ports.store.workers.loads())
    const alive = new Map(loads.map(({ id, version }) => [id, version]))
    for (const id of known) if (!alive.has(id)) this.#versions.delete(id)
    for (const [id, version] of alive) this.#versions.set(id, version)
    for (const { endpointId, state, held } of loads) {
      const counts = workers.get(endpointId) ?? { starting: 0, idle: 0, running: 0, frozen: 0 }
      counts[workerCondition(state, held)] += 1
      workers.set(endpointId, counts)
    }
    for (const [endpointId, counts] of workers) countWorkers(this.#bucket(endpointId), counts)
    this.#countGpus(loads)
  }

  /** Counts the use of the GPUs that workers have. Nothing is measured without such workers. */
  #countGpus(workers: readonly Worker[]): void {
    const heldGpus = workers.flatMap(({ endpointId, placement }) =>
      (placement?.gpus ?? []).map(gpu => ({ endpointId, key: gpuKey(gpu) })),
    )
    if (heldGpus.length === 0) return
    const measured = this.#ports.machine.gpuUse()
    for (const { endpointId, key } of heldGpus) {
      const use = measured.get(key)
      if (use !== undefined) countGpu(this.#bucket(endpointId), use)
    }
  }

  #count(endpointId: EndpointId, bucket: MetricBucket, result: MetricResult): void {
    bucket.results[result] += 1
    this.recent.note(endpointId, result)
  }

  #countOfRelease(bucket: MetricBucket, workerId: WorkerId | null, result: MetricResult, executionMs: number | null) {
    const version = workerId === null ? undefined : this.#versions.get(workerId)
    if (version === undefined || result === 'cancelled') return
    countOfRelease(bucket, version, { hasFailed: result !== 'completed', executionMs })
  }

  #bucket(endpointId: EndpointId): MetricBucket {
    return this.#now(endpointId).bucket
  }

  #now(endpointId: EndpointId): Held {
    return this.#at(endpointId, spanStart(this.#ports.clock.now(), METRIC_SPANS.minute.lengthMs))
  }

  #at(endpointId: EndpointId, minuteMs: number): Held {
    let ofMinute = this.#counts.get(minuteMs)
    if (ofMinute === undefined) {
      ofMinute = new Map()
      this.#counts.set(minuteMs, ofMinute)
    }
    let held = ofMinute.get(endpointId)
    if (held === undefined) {
      held = { bucket: emptyBucket(), requests: null }
      ofMinute.set(endpointId, held)
      this.#held += 1
      if (this.#held > MAX_HELD) this.#dropOldest(minuteMs)
    }
    return held
  }

  #dropOldest(but: number): void {
    const oldest = [...this.#counts.keys()].filter(minuteMs => minuteMs !== but).sort((a, b) => a - b)[0]
    if (oldest === undefined) return
    this.#held -= this.#counts.get(oldest)?.size ?? 0
    this.#counts.delete(oldest)
  }

  /** Takes some counts out. */
  #taken(): MetricCount[] {
    const counts: MetricCount[] = []
    for (const [minuteMs, ofMinute] of this.#counts) {
      for (const [endpointId, held] of ofMinute) {
        if (counts.length === MAX_ADDED) return counts
        counts.push({ endpointId, minuteMs, ...held })
        ofMinute.delete(endpointId)
        this.#held -= 1
      }
      this.#counts.delete(minuteMs)
    }
    return counts
  }
}

function workerCondition(state: WorkerState, held: number): MetricWorkers {
  if (state === 'STARTING') return 'starting'
  if (state === 'FROZEN') return 'frozen'
  return held > 0 ? 'running' : 'idle'
}
