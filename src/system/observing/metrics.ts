/**
 * Metrics for Prometheus: counters and histograms that read the event stream, gauges that are set at each scrape. The
 * names and labels are those of docs/reference/metrics.md; a test compares the two.
 */
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { EndpointId } from '../../core/ids.ts'
import type { EndpointLoad } from '../../core/scaling/scale.ts'
import { COLD_START_PHASES } from '../../core/workers/worker-phase.ts'
import type { CertificateSummary, Emit, EventName, Events } from '../../events.ts'
import type { Clock } from '../../ports/clock.ts'
import type { GatewayLoad, MeasuredGpu, Metrics } from '../../ports/metrics.ts'
import { BackupMetrics } from './backup-metrics.ts'
import { EndpointLabels } from './endpoint-labels.ts'
import { GatewayMetrics } from './gateway-metrics.ts'
import { addLogMetrics, addProcessMetrics } from './process-metrics.ts'

/** Options of {@link createMetrics}. */
export interface MetricsOptions {
  readonly clock: Clock
  /** True to show memory, CPU and event loop of this process. */
  readonly ofProcess: boolean
  /** Limit of endpoints with series of their own. */
  readonly maxEndpoints?: number
}

/** Metrics, and the calls that feed them. */
export interface CountingMetrics extends Metrics {
  /** A sink of the event stream. */
  readonly emit: Emit
  /** Counts a call of the store at its end. */
  storeCalled(operation: string, tookMs: number, unavailable: boolean): void
  /** Counts spans of traces that were sent, or dropped. */
  spansPassed(result: 'sent' | 'dropped', count: number): void
}

const MAX_ENDPOINTS = 200
const BYTES_PER_MIB = 2 ** 20
const ENDS = { COMPLETED: 'completed', FAILED: 'failed', TIMED_OUT: 'timed_out', CANCELLED: 'cancelled' } as const
const RESULTS = [...Object.values(ENDS), 'expired']
const KINDS = ['input', 'output', 'stream']
const PASSING_STATES = ['requests', 'sockets', 'waiting'] as const
const QUEUE_STATES = ['queued', 'low_priority', 'in_progress']
const WORKER_STATES = ['starting', 'idle', 'running', 'frozen', 'draining', 'stopping'] as const

/** Seconds. Jobs wait and run for anything from milliseconds to days. */
const JOB_BUCKETS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200]
const REQUEST_BUCKETS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 100]
const COLD_START_BUCKETS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800]
const STORE_BUCKETS = [0.000_1, 0.001, 0.005, 0.01, 0.05, 0.25, 1, 5]

/** Metrics in a registry of their own. */
export function createMetrics(options: MetricsOptions): CountingMetrics {
  return new PrometheusMetrics(options)
}

type Labelled = Counter | Gauge | Histogram
type Readers = { readonly [Name in EventName]?: (fields: Events[Name]) => void }

class PrometheusMetrics implements CountingMetrics {
  readonly #clock
  readonly #registry = new Registry()
  readonly #labels
  /** Metrics with an endpoint, each with the names and values of its other label. */
  readonly #ofEndpoints: { metric: Labelled; label: string | null; values: readonly string[] }[] = []
  readonly #gateway
  readonly #readers: Readers
  readonly #up
  readonly #storeCalls
  readonly #storeUnavailable
  readonly #spans
  readonly #gpuMemory

  constructor({ clock, ofProcess, maxEndpoints = MAX_ENDPOINTS }: MetricsOptions) {
    this.#clock = clock
    this.#labels = new EndpointLabels(maxEndpoints, endpoint => this.#remove(endpoint))
    if (ofProcess) addProcessMetrics(this.#registry)
    addLogMetrics(this.#registry)
    this.#gateway = new GatewayMetrics(this.#registry)
    this.#readers = { ...this.#jobReaders(), ...this.#workerReaders(), ...this.#otherReaders() }
    const registers = [this.#registry]
    this.#up = new Gauge({
      registers,
      name: 'runyard_store_up',
      help: 'Whether the store could be read for this scrape',
    })
    this.#storeCalls = new Histogram({
      registers,
      name: 'runyard_store_call_seconds',
      help: 'Calls of the store',
      labelNames: ['operation'],
      buckets: STORE_BUCKETS,
    })
    this.#storeUnavailable = new Counter({
      registers,
      name: 'runyard_store_unavailable_total',
      help: 'Calls that failed because the store was unavailable',
    })
    this.#spans = new Counter({
      registers,
      name: 'runyard_trace_spans_total',
      help: 'Spans of traces that were sent to the collector, or dropped',
      labelNames: ['result'],
    })
    this.#gpuMemory = new Gauge({
      registers,
      name: 'runyard_gpu_memory_bytes',
      help: 'Memory of each GPU of the machine, by its use',
      labelNames: ['gpu', 'use'],
    })
    this.#gauges = this.#createGauges()
  }

  readonly emit: Emit = (name, fields) => this.#readers[name]?.(fields)

  storeCalled(operation: string, tookMs: number, unavailable: boolean): void {
    this.#storeCalls.observe({ operation }, tookMs / 1_000)
    if (unavailable) this.#storeUnavailable.inc()
  }

  spansPassed(result: 'sent' | 'dropped', count: number): void {
    this.#spans.inc({ result }, count)
  }

  async expose(
    loads: readonly EndpointLoad[] | null,
    gatewayLoad: (id: EndpointId) => GatewayLoad,
    gpus: readonly MeasuredGpu[] = [],
  ) {
    this.#up.set(loads === null ? 0 : 1)
    this.#gauges(loads ?? [], gatewayLoad)
    this.#setGpus(gpus)
    if (loads !== null) this.#labels.existing(new Set(loads.map(({ endpointId }) => endpointId)))
    return { contentType: this.#registry.contentType, text: await this.#registry.metrics() }
  }

  #setGpus(gpus: readonly MeasuredGpu[]): void {
    this.#gpuMemory.reset()
    for (const { index, totalMb, freeMb, foreignMb } of gpus) {
      const uses = { workers: Math.max(0, totalMb - freeMb - foreignMb), other: foreignMb, free: freeMb }
      for (const [use, mb] of Object.entries(uses)) this.#gpuMemory.set({ gpu: index, use }, mb * BYTES_PER_MIB)
    }
  }

  readonly #gauges: (loads: readonly EndpointLoad[], gatewayLoad: (id: EndpointId) => GatewayLoad) => void

  #createGauges(): (loads: readonly EndpointLoad[], gatewayLoad: (id: EndpointId) => GatewayLoad) => void {
    const jobs = this.#gauge('runyard_queue_jobs', 'Jobs that have not ended', 'state', QUEUE_STATES)
    const oldest = this.#gauge('runyard_queue_oldest_seconds', 'How long the first job in the queue has waited')
    const workers = this.#gauge('runyard_workers', 'Workers that have not ended', 'state', WORKER_STATES)
    const nowPassing = this.#gauge(
      'runyard_gateway_passing',
      'Requests and upgraded connections in the gateway now',
      'state',
      PASSING_STATES,
    )
    return (loads, gatewayLoad) => {
      for (const gauge of [jobs, oldest, workers, nowPassing]) gauge.reset()
      const nowMs = this.#clock.now()
      const waits = new Map<string, number>()
      for (const load of loads) {
        const endpoint = this.#labels.get(load.endpointId)
        const { queued, queuedLowPriority, inProgress, headQueuedAtMs } = load.queue
        for (const [index, count] of [queued, queuedLowPriority, inProgress].entries()) {
          jobs.inc({ endpoint, state: QUEUE_STATES[index]! }, count)
        }
        const passing = gatewayLoad(load.endpointId)
        const { idle, running, draining } = load.workers
        // Draining workers have jobs, or they would be stopped.
        const busy = Math.min(idle, Math.max(0, passing.busyWorkers - draining))
        const states = { ...load.workers, idle: idle - busy, running: running + busy }
        for (const state of WORKER_STATES) workers.inc({ endpoint, state }, states[state])
        if (this.#gateway.has(load.endpointId) || passing.requests + passing.sockets > 0) {
          for (const state of PASSING_STATES) nowPassing.inc({ endpoint, state }, passing[state])
        }
        const wait = headQueuedAtMs === null ? 0 : Math.max(0, nowMs - headQueuedAtMs) / 1_000
        waits.set(endpoint, Math.max(wait, waits.get(endpoint) ?? 0))
      }
      for (const [endpoint, wait] of waits) oldest.set({ endpoint }, wait)
    }
  }

  #jobReaders(): Readers {
    const submitted = this.#counter('runyard_jobs_submitted_total', 'Jobs that were accepted')
    const finished = this.#counter('runyard_jobs_finished_total', 'Jobs that ended', 'result', RESULTS)
    const retried = this.#counter('runyard_jobs_retried_total', 'Jobs that a client queued again')
    const lost = this.#counter('runyard_attempts_lost_total', 'Attempts that were lost with their worker')
    const ignored = this.#counter('runyard_results_ignored_total', 'Results that came too late to count')
    const bytes = this.#counter('runyard_job_bytes_total', 'Bytes of attempts that ended', 'kind', KINDS)
    const delay = this.#histogram('runyard_job_delay_seconds', 'How long jobs waited in the queue for an attempt')
    const execution = this.#histogram('runyard_job_execution_seconds', 'How long attempts ran, without lost ones')
    const used = (endpoint: string, usage: Events['job.expired']['usage']) => {
      const { inputBytes, outputBytes, streamBytes, executionMs, attempts, lostAttempts } = usage
      for (const [index, count] of [inputBytes, outputBytes, streamBytes].entries()) {
        if (count > 0) bytes.inc({ endpoint, kind: KINDS[index]! }, count)
      }
      if (lostAttempts > 0) lost.inc({ endpoint }, lostAttempts)
      else if (attempts > 0) execution.observe({ endpoint }, executionMs / 1_000)
    }
    return {
      'job.accepted': ({ endpointId }) => submitted.inc({ endpoint: this.#labels.get(endpointId) }),
      'job.moved': ({ endpointId, transition, to, waitedMs, usage }) => {
        const endpoint = this.#labels.get(endpointId)
        if (waitedMs !== undefined) delay.observe({ endpoint }, waitedMs / 1_000)
        if (transition === 'retry') retried.inc({ endpoint })
        if (to in ENDS) finished.inc({ endpoint, result: ENDS[to as keyof typeof ENDS] })
        if (usage !== undefined) used(endpoint, usage)
      },
      'job.begun': ({ endpointId, waitedMs }) =>
        delay.observe({ endpoint: this.#labels.get(endpointId) }, waitedMs / 1_000),
      'job.expired': ({ endpointId, usage }) => {
        const endpoint = this.#labels.get(endpointId)
        if (usage.expired > 0) finished.inc({ endpoint, result: 'expired' })
        used(endpoint, usage)
      },
      'job.result_ignored': ({ endpointId }) => ignored.inc({ endpoint: this.#labels.get(endpointId) }),
    }
  }

  #workerReaders(): Readers {
    const created = this.#counter('runyard_workers_created_total', 'Workers that were created')
    const failed = this.#counter('runyard_worker_start_failures_total', 'Workers that could not be started')
    const cold = this.#histogram(
      'runyard_worker_cold_start_seconds',
      'Time from the decision for a worker to its first request',
    )
    // Not by endpoint: with the phases that would make too many series.
    const phase = new Histogram({
      registers: [this.#registry],
      name: 'runyard_worker_cold_start_phase_seconds',
      help: 'How long each phase of a cold start took',
      labelNames: ['phase'],
      buckets: COLD_START_BUCKETS,
    })
    const exited = this.#counter('runyard_workers_exited_total', 'Workers that have ended', 'asked', ['true', 'false'])
    const pauses = this.#counter('runyard_worker_pauses_total', 'Pauses of workers in their jobs', 'result', [
      'begun',
      'failed',
    ])
    const paused = this.#histogram('runyard_worker_pause_seconds', 'How long pauses of workers took')
    const stopped = this.#counter('runyard_rollouts_stopped_total', 'Rollouts that were stopped', 'reason', [
      'crashes',
      'failures',
    ])
    return {
      'worker.created': ({ endpointId }) => created.inc({ endpoint: this.#labels.get(endpointId) }),
      'worker.start_failed': ({ endpointId }) => failed.inc({ endpoint: this.#labels.get(endpointId) }),
      'worker.moved': ({ endpointId, coldStartMs, phases }) => {
        if (coldStartMs !== undefined) cold.observe({ endpoint: this.#labels.get(endpointId) }, coldStartMs / 1_000)
        if (phases === undefined) return
        for (const name of COLD_START_PHASES) phase.observe({ phase: name }, phases[name] / 1_000)
      },
      'rollout.stopped': ({ endpointId, failures }) =>
        stopped.inc({
          endpoint: this.#labels.get(endpointId),
          reason: failures === undefined ? 'crashes' : 'failures',
        }),
      'worker.paused': ({ endpointId }) => pauses.inc({ endpoint: this.#labels.get(endpointId), result: 'begun' }),
      'worker.pause_failed': ({ endpointId }) =>
        pauses.inc({ endpoint: this.#labels.get(endpointId), result: 'failed' }),
      'worker.pause_ended': ({ endpointId, pausedMs }) =>
        paused.observe({ endpoint: this.#labels.get(endpointId) }, pausedMs / 1_000),
      'worker.exited': ({ endpointId, asked }) =>
        exited.inc({ endpoint: this.#labels.get(endpointId), asked: String(asked) }),
    }
  }

  #otherReaders(): Readers {
    const registers = [this.#registry]
    const hooks = this.#counter('runyard_webhooks_total', 'Webhooks that were delivered or given up', 'result', [
      'delivered',
      'failed',
    ])
    const tokens = this.#counter('runyard_tokens_total', "Tokens of answers in OpenAI's form", 'kind', [
      'prompt',
      'cached',
      'completion',
    ])
    const requests = new Counter({
      registers,
      name: 'runyard_http_requests_total',
      help: 'Requests that were answered',
      labelNames: ['surface', 'status'],
    })
    const took = new Histogram({
      registers,
      name: 'runyard_http_request_seconds',
      help: 'Time to the start of a response, long polls included',
      labelNames: ['surface'],
      buckets: REQUEST_BUCKETS,
    })
    const loops = new Counter({
      registers,
      name: 'runyard_loop_failures_total',
      help: 'Steps of loops that failed',
      labelNames: ['loop'],
    })
    const keys = new Counter({
      registers,
      name: 'runyard_key_failures_total',
      help: 'Keys that were not valid',
      labelNames: ['reason'],
    })
    const rights = new Counter({
      registers,
      name: 'runyard_rights_refused_total',
      help: 'Requests of valid keys that lacked a right',
      labelNames: ['right'],
    })
    const backups = new BackupMetrics(this.#registry)
    const apart = new Gauge({
      registers,
      name: 'runyard_clock_step_seconds',
      help: "What the machine's clock is ahead of the server's time, below 0 where it is behind; 0 while both agree",
    })
    const leads = new Gauge({
      registers,
      name: 'runyard_leader',
      help: 'Whether this server is the active one of its database',
    })
    // On the embedded database it always is, without an event.
    leads.set(1)
    const certificate = new Gauge({
      registers,
      name: 'runyard_tls_certificate_expiry_seconds',
      help: 'When the certificate in use expires, in seconds since 1970; nothing without HTTPS',
      labelNames: ['subject'],
    })
    const certified = ({ subject, expiresAt }: CertificateSummary) => {
      certificate.reset()
      certificate.set({ subject }, Date.parse(expiresAt) / 1_000)
    }
    return {
      'tls.loaded': certified,
      'tls.reloaded': certified,
      'backup.scheduled': latest => backups.scheduled(latest),
      'backup.made': backup => backups.made(backup),
      'backup.failed': () => backups.failed(),
      'clock.stepped': ({ byMs }) => apart.set(byMs / 1_000),
      'clock.agrees': () => apart.set(0),
      'clock.adopted': () => apart.set(0),
      'leader.changed': ({ now }) => {
        leads.set(now === 'active' ? 1 : 0)
        if (now === 'deposed') backups.ended()
      },
      'key.failed': ({ reason, count }) => keys.inc({ reason }, count),
      'right.refused': ({ right }) => rights.inc({ right }),
      'webhook.delivered': ({ endpointId }) =>
        hooks.inc({ endpoint: this.#labels.get(endpointId), result: 'delivered' }),
      'webhook.failed': ({ endpointId }) => hooks.inc({ endpoint: this.#labels.get(endpointId), result: 'failed' }),
      'gateway.request_finished': passed => this.#gateway.count(this.#labels.get(passed.endpointId), passed),
      'tokens.used': ({ endpointId, usage }) => {
        if (usage === null) return
        const endpoint = this.#labels.get(endpointId)
        tokens.inc({ endpoint, kind: 'prompt' }, usage.promptTokens)
        tokens.inc({ endpoint, kind: 'cached' }, usage.cachedTokens)
        tokens.inc({ endpoint, kind: 'completion' }, usage.completionTokens)
      },
      'endpoint.deleted': ({ endpointId }) => this.#labels.drop(endpointId),
      'request.answered': ({ surface, status, tookMs }) => {
        requests.inc({ surface: surface ?? 'none', status: `${Math.floor(status / 100)}xx` })
        took.observe({ surface: surface ?? 'none' }, tookMs / 1_000)
      },
      'loop.failed': ({ loop }) => loops.inc({ loop }),
    }
  }

  #counter(name: string, help: string, label: string | null = null, values: readonly string[] = []): Counter {
    return this.#register(new Counter(this.#described(name, help, label)), label, values)
  }

  #gauge(name: string, help: string, label: string | null = null, values: readonly string[] = []): Gauge {
    return this.#register(new Gauge(this.#described(name, help, label)), label, values)
  }

  #histogram(name: string, help: string): Histogram {
    return this.#register(new Histogram({ ...this.#described(name, help, null), buckets: JOB_BUCKETS }), null, [])
  }

  #described(name: string, help: string, label: string | null) {
    const labelNames = ['endpoint', ...(label === null ? [] : [label])]
    return { name, help, labelNames, registers: [this.#registry] }
  }

  #register<Metric extends Labelled>(metric: Metric, label: string | null, values: readonly string[]): Metric {
    this.#ofEndpoints.push({ metric, label, values })
    return metric
  }

  #remove(endpoint: EndpointId | string): void {
    this.#gateway.remove(endpoint)
    for (const { metric, label, values } of this.#ofEndpoints) {
      if (label === null) metric.remove({ endpoint })
      else for (const value of values) metric.remove({ endpoint, [label]: value })
    }
  }
}
