import { gpuKey } from '../../core/hardware/inventory.ts'
import type { EndpointId } from '../../core/ids.ts'
import {
  addBucket,
  countGpu,
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
import type { MetricCount } from '../../ports/store/metric-store.ts'
import { RecentResults } from './recent-results.ts'

/** Limit of counts that one call of the store adds. */
const MAX_ADDED = 200
/** Limit of counts in memory while the store fails; past it the oldest are dropped. */
const MAX_HELD = 50_000

/** Status of a request whose client left before the response. */
const CLIENT_GONE = 499

const RESULTS: Partial<Record<string, MetricResult>> = {
  COMPLETED: 'completed',
  FAILED: 'failed',
  TIMED_OUT: 'timedOut',
  CANCELLED: 'cancelled',
}

type Readers = { readonly [Name in EventName]?: (fields: Events[Name]) => void }

/**
 * Counts events at each endpoint by the minute, from the stream of events, and adds the counts to the store in
 * groups. Counts that were not stored are lost when the server is killed: nothing depends on them.
 */
export class MetricRecorder {
  readonly #ports
  /** Results of the requests of the last hour. */
  readonly recent: RecentResults
  /** Counts that are not stored yet, by minute and endpoint. */
  readonly #counts = new Map<number, Map<EndpointId, MetricBucket>>()
  #held = 0
  readonly #withRequests

  /** @param withRequests adds to serving workers their requests, which the store does not know */
  constructor(ports: Ports, withRequests: (workers: readonly WorkerLoad[]) => readonly WorkerLoad[]) {
    this.#ports = ports
    this.#withRequests = withRequests
    this.recent = new RecentResults(ports)
  }

  readonly #readers: Readers = {
    'job.moved': ({ endpointId, to, usage, transition }) => {
      const result = RESULTS[to]
      if (result === undefined || usage === undefined) return
      const bucket = this.#bucket(endpointId)
      this.#count(endpointId, bucket, result)
      // The wait before a late result was counted with the lost attempt.
      if (transition === 'finish' && usage.attempts === 0) return
      countTime(bucket, 'delay', usage.queuedMs)
      if (usage.attempts > 0) countTime(bucket, 'execution', usage.executionMs + usage.lostMs)
    },
    'job.expired': ({ endpointId, usage }) => {
      if (usage.expired > 0) this.#count(endpointId, this.#bucket(endpointId), 'expired')
    },
    'worker.moved': ({ endpointId, coldStartMs }) => {
      if (coldStartMs !== undefined) countTime(this.#bucket(endpointId), 'coldStart', coldStartMs)
    },
    'gateway.request_finished': ({ endpointId, status, complete, workerId, waitMs, totalMs }) => {
      const bucket = this.#bucket(endpointId)
      const result = status === CLIENT_GONE ? 'cancelled' : status < 500 && complete ? 'completed' : 'failed'
      this.#count(endpointId, bucket, result)
      countTime(bucket, 'delay', waitMs)
      if (workerId !== null) countTime(bucket, 'execution', Math.max(0, totalMs - waitMs))
    },
  }

  /** A sink of the event stream. */
  readonly emit: Emit = (name, fields) => this.#readers[name]?.(fields)

  /** Counts the existing workers and the use of their GPUs, and stores all counts. */
  async step(): Promise<void> {
    await this.#countWorkers()
    await this.flush()
  }

  /** Stores all counts. */
  async flush(): Promise<void> {
    for (let counts = this.#taken(); counts.length > 0; counts = this.#taken()) {
      try {
        await this.#ports.store.metrics.add(counts)
      } catch (error) {
        for (const { endpointId, minuteMs, bucket } of counts) addBucket(this.#at(endpointId, minuteMs), bucket)
        throw error
      }
    }
  }

  /** Counts of an endpoint that are not stored yet. */
  pending(endpointId: EndpointId): MetricPoint[] {
    return [...this.#counts].flatMap(([atMs, ofMinute]) => {
      const bucket = ofMinute.get(endpointId)
      return bucket === undefined ? [] : [{ atMs, bucket }]
    })
  }

  async #countWorkers(): Promise<void> {
    const workers = new Map<EndpointId, Record<MetricWorkers, number>>()
    const loads = this.#withRequests(await this.#ports.store.workers.loads())
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

  #bucket(endpointId: EndpointId): MetricBucket {
    return this.#at(endpointId, spanStart(this.#ports.clock.now(), METRIC_SPANS.minute.lengthMs))
  }

  #at(endpointId: EndpointId, minuteMs: number): MetricBucket {
    let ofMinute = this.#counts.get(minuteMs)
    if (ofMinute === undefined) {
      ofMinute = new Map()
      this.#counts.set(minuteMs, ofMinute)
    }
    let bucket = ofMinute.get(endpointId)
    if (bucket === undefined) {
      bucket = emptyBucket()
      ofMinute.set(endpointId, bucket)
      this.#held += 1
      if (this.#held > MAX_HELD) this.#dropOldest(minuteMs)
    }
    return bucket
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
      for (const [endpointId, bucket] of ofMinute) {
        if (counts.length === MAX_ADDED) return counts
        counts.push({ endpointId, minuteMs, bucket })
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
