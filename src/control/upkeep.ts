import { logBytesOf } from '../core/accounts/quotas.ts'
import { hourOf } from '../core/billing/usage.ts'
import type { OwnerId } from '../core/ids.ts'
import { ATTEMPT_TIMES_KEPT_MS } from '../core/jobs/attempt-times.ts'
import type { JobRecordRules } from '../core/jobs/job-record.ts'
import { EXITED_WORKER_RETENTION_MS, USAGE_RETENTION_MS, WINDOW_RETENTION_MS } from '../core/jobs/retention.ts'
import { METRIC_SPANS, type MetricSpan } from '../core/observing/metric-series.ts'
import { outputBytesByOwner, outputsToShrink } from '../core/workers/output-share.ts'
import type { Ports } from '../ports/ports.ts'
import type { RecordedWorker } from '../ports/store/store.ts'
import type { Quotas } from '../services/accounts/quotas.ts'
import type { AuditKeeper } from '../services/audit/audit-keeper.ts'
import type { ReleaseResults } from '../services/endpoints/release-results.ts'
import type { AttemptRecorder } from '../services/observing/attempt-recorder.ts'
import type { MetricRecorder } from '../services/observing/metric-recorder.ts'

const TRIM_MS = 2_000
/** How often workers are selected for counting, and how often each is counted. */
const COUNT_MS = { check: 5_000, each: 60_000 }
const FORGET_MS = 60_000
const COMPACT_MS = 5_000
/** Interval at which counts of metrics and times of attempts are stored. */
const METRICS_MS = 20_000
/** Interval at which results are added to their releases, and new releases judged. */
const RESULTS_MS = 1_000
/** Interval at which refused attempts are written into the audit log, and its old entries removed. */
const AUDIT_MS = 10_000
/** Interval at which the driver gets the workers and images in use. */
const TIDY_MS = 10 * 60_000
/** Maximum number of workers that one step counts, and of rows of each kind that it removes. */
const MAX = { workers: 100, rows: 500 }

/** What collects from the events, and is stored in groups. */
export interface Recorders {
  readonly metrics: MetricRecorder
  readonly attemptTimes: AttemptRecorder
  readonly audit: AuditKeeper
  readonly releaseResults: ReleaseResults
}

/**
 * Judges new releases by their results, and removes what is past its retention: records and outputs of ended workers, records of jobs, old usage, old metrics, old times of attempts, old counts, old entries of the audit log, ended sessions, free space, containers and
 * images. Each step does a bounded part of each, and the next steps do the rest.
 */
export class Upkeep {
  readonly #ports: Pick<Ports, 'store' | 'logs' | 'driver' | 'models'>
  readonly #records: JobRecordRules
  readonly #recorders: Recorders
  readonly #quotas: Pick<Quotas, 'limitsOf' | 'noteLogs'>
  /** When each kind of work is next due. */
  readonly #due = { trim: 0, count: 0, forget: 0, records: 0, metrics: 0, results: 0, audit: 0, compact: 0, tidy: 0 }
  /** Whether there may be outputs to cut or to remove; not known after a start. */
  #untidy = true

  /** @param records what is kept of jobs when they are removed */
  constructor(
    ports: Pick<Ports, 'store' | 'logs' | 'driver' | 'models'>,
    records: JobRecordRules,
    recorders: Recorders,
    quotas: Pick<Quotas, 'limitsOf' | 'noteLogs'>,
  ) {
    this.#ports = ports
    this.#quotas = quotas
    this.#records = records
    this.#recorders = recorders
  }

  /** Does what is due. @param running how many workers have not ended */
  async step(running: number, nowMs: number): Promise<void> {
    const { store } = this.#ports
    await this.#every('trim', TRIM_MS, nowMs, () => this.#trim(running, nowMs))
    await this.#every('count', COUNT_MS.check, nowMs, async () => {
      // At the beginning of an hour at once, so that no count is spread over two hours.
      const beforeMs = Math.max(nowMs - COUNT_MS.each, hourOf(nowMs) - 1)
      return (await store.usage.countWorkers(nowMs, beforeMs, MAX.workers)) === MAX.workers
    })
    await this.#every('forget', FORGET_MS, nowMs, async () => {
      const hours = await store.usage.removeOld(nowMs - USAGE_RETENTION_MS, MAX.rows)
      const windows = await store.upkeep.removeOldWindows(nowMs - WINDOW_RETENTION_MS, MAX.rows)
      const sessions = await store.sessions.removeOver(nowMs, MAX.rows)
      const spans = Object.entries(METRIC_SPANS) as [MetricSpan, (typeof METRIC_SPANS)[MetricSpan]][]
      const removed = spans.map(([span, { keptMs }]) => store.metrics.removeOld(span, nowMs - keptMs, MAX.rows))
      const times = store.attemptTimes.removeOld(nowMs - ATTEMPT_TIMES_KEPT_MS, MAX.rows)
      return [hours, windows, sessions, ...(await Promise.all([...removed, times]))].includes(MAX.rows)
    })
    await this.#every('records', FORGET_MS, nowMs, () => store.jobRecords.trim(this.#records, nowMs, MAX.rows))
    await this.#every('metrics', METRICS_MS, nowMs, async () => {
      // One after the other: a flush that runs beside the next one would store out of order.
      await this.#recorders.attemptTimes.flush()
      await this.#recorders.metrics.step()
      return false
    })
    await this.#every('results', RESULTS_MS, nowMs, async () => {
      await this.#recorders.releaseResults.flush()
      return false
    })
    await this.#every('audit', AUDIT_MS, nowMs, () => this.#recorders.audit.step(nowMs))
    await this.#every('compact', COMPACT_MS, nowMs, () => store.upkeep.compact())
    await this.#every('tidy', TIDY_MS, nowMs, async () => {
      const images = new Set(await store.releases.images())
      const alive = async () => new Set((await store.workers.alive()).map(({ id }) => id))
      await this.#ports.driver.tidy(await alive(), images, async id => (await store.endpoints.find(id)) !== null)
      // The disk of the models may be away; the next round tries again.
      await this.#ports.models?.tidy(alive).catch(() => {})
      return false
    })
  }

  /** @param work true when there is more, for the next step */
  async #every(
    name: 'trim' | 'count' | 'forget' | 'records' | 'metrics' | 'results' | 'audit' | 'compact' | 'tidy',
    everyMs: number,
    nowMs: number,
    work: () => Promise<boolean>,
  ): Promise<void> {
    if (nowMs < this.#due[name]) return
    if (!(await work())) this.#due[name] = nowMs + everyMs
  }

  async #trim(running: number, nowMs: number): Promise<boolean> {
    const { store } = this.#ports
    const wasUntidy = this.#untidy || running > 0
    // Until it has been seen to be otherwise: the answer of the store may be lost.
    this.#untidy = true
    const removed = await store.workers.removeExited(nowMs - EXITED_WORKER_RETENTION_MS, MAX.rows)
    if (wasUntidy || removed.length > 0) await this.#trimOutputs(await store.workers.known())
    this.#untidy = running > 0
    return removed.length === MAX.rows
  }

  async #trimOutputs(workers: readonly RecordedWorker[]): Promise<void> {
    const { logs } = this.#ports
    const bytes = await logs.trim(new Set(workers.map(({ id }) => id)))
    const outputs = workers.map(worker => ({ ...worker, bytes: bytes.get(worker.id) ?? 0 }))
    const mostOf = (owner: OwnerId) => logBytesOf(this.#quotas.limitsOf(owner))
    const shrunk = outputsToShrink(outputs, mostOf)
    await logs.shrink(shrunk)
    this.#quotas.noteLogs(
      outputBytesByOwner(
        outputs.map(output => ({ ...output, bytes: Math.min(output.bytes, shrunk.get(output.id) ?? output.bytes) })),
      ),
    )
  }
}
