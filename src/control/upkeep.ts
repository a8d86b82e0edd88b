import { hourStart } from '../core/billing/usage.ts'
import type { EndpointId } from '../core/ids.ts'
import { ATTEMPT_TIMES_KEPT_MS } from '../core/jobs/attempt-times.ts'
import type { JobRecordRules } from '../core/jobs/job-record.ts'
import { EXITED_WORKER_RETENTION_MS, USAGE_RETENTION_MS, WINDOW_RETENTION_MS } from '../core/jobs/retention.ts'
import { METRIC_SPANS, type MetricSpan } from '../core/observing/metric-series.ts'
import type { Worker } from '../core/workers/worker.ts'
import type { Ports } from '../ports/ports.ts'
import type { UsedImages } from '../ports/store/management-store.ts'
import type { AppBuilds } from '../services/apps/app-builds.ts'
import type { AuditKeeper } from '../services/audit/audit-keeper.ts'
import type { TokenCounter } from '../services/billing/token-counter.ts'
import type { ReleaseResults } from '../services/endpoints/release-results.ts'
import type { Tasks } from '../services/endpoints/tasks.ts'
import type { LargeTexts } from '../services/jobs/large-texts.ts'
import type { AttemptRecorder } from '../services/observing/attempt-recorder.ts'
import type { MetricRecorder } from '../services/observing/metric-recorder.ts'
import type { WorkerOutputs } from '../services/workers/worker-outputs.ts'

const TRIM_MS = 2_000
/** Interval between selections of workers to count, and between two counts of one worker. */
const COUNT_MS = { check: 5_000, each: 60_000 }
const FORGET_MS = 60_000
const COMPACT_MS = 5_000
/** Interval at which large texts that no job has are looked for. */
const LARGE_TEXTS_MS = 5_000
/** Interval at which folders of builds that nothing runs are looked for. */
const BUILDS_MS = 5_000
/** Interval at which tasks that ended long ago are looked for. */
const TASKS_MS = 60_000
/** Interval at which counts of metrics and times of attempts are stored. */
const METRICS_MS = 20_000
/** Interval at which results are added to their releases, and new releases judged. */
const RESULTS_MS = 1_000
/** Interval at which sums of tokens are stored. */
const TOKENS_MS = 5_000
/** Interval at which refused attempts are written into the audit log, and its old entries removed. */
const AUDIT_MS = 10_000
/** Interval at which the driver gets the workers and images in use, and old uploads are removed. */
const TIDY_MS = 10 * 60_000
/** Time after which uploads of files that nobody continues are removed. */
const UPLOAD_RETENTION_MS = 24 * 3_600_000
/**
 * Maximum number of workers that one step counts, of rows of each kind that it removes, and of endpoints whose images
 * one read has.
 */
const MAX = { workers: 100, rows: 500, endpoints: 200 }

/** The kinds of work. */
type Work =
  | 'outputs'
  | 'tidy'
  | 'uploads'
  | 'builds'
  | 'tasks'
  | 'exited'
  | 'count'
  | 'forget'
  | 'records'
  | 'largeTexts'
  | 'metrics'
  | 'results'
  | 'tokens'
  | 'audit'
  | 'compact'

/** Recorders that collect from events and are stored in groups. */
export interface Recorders {
  readonly metrics: MetricRecorder
  readonly attemptTimes: AttemptRecorder
  readonly audit: AuditKeeper
  readonly releaseResults: ReleaseResults
  readonly tokens: TokenCounter
}

/**
 * Judges new releases by their results, and removes data past its retention: records and outputs of ended workers,
 * records of jobs, old usage, old metrics, old times of attempts, old counts, old entries of the audit log, ended
 * sessions, large texts that no job has, folders of builds that nothing runs, ended tasks, free space, containers and
 * images. Each step does a bounded part of each, and the next steps do the rest.
 */
export class Upkeep {
  readonly #ports
  readonly #records
  readonly #recorders
  readonly #outputs
  readonly #largeTexts
  readonly #appBuilds
  readonly #tasks
  /** Due time of each kind of work. */
  readonly #dueMs = new Map<Work, number>()
  /** Error of {@link makeRoom}; null without an error. */
  #problem: unknown = null

  /** @param records rules for the records of removed jobs */
  constructor(
    ports: Ports,
    records: JobRecordRules,
    recorders: Recorders,
    parts: {
      readonly outputs: WorkerOutputs
      readonly largeTexts: LargeTexts
      readonly appBuilds: AppBuilds
      readonly tasks: Tasks
    },
  ) {
    this.#ports = ports
    this.#outputs = parts.outputs
    this.#largeTexts = parts.largeTexts
    this.#appBuilds = parts.appBuilds
    this.#tasks = parts.tasks
    this.#records = records
    this.#recorders = recorders
  }

  /**
   * Makes room on disks without a change of the store, which may be full. Never throws; the next {@link step} throws
   * the error.
   * @param alive workers that have not ended
   */
  async makeRoom(alive: readonly Worker[], nowMs: number): Promise<void> {
    try {
      await this.#every('outputs', TRIM_MS, nowMs, async () => {
        if (alive.length > 0 || !this.#outputs.isSettled) await this.#outputs.step(alive, nowMs)
        return false
      })
      await this.#every('tidy', TIDY_MS, nowMs, () => this.#tidy())
      await this.#every('uploads', TIDY_MS, nowMs, async () => {
        await this.#ports.files?.uploads.removeOld(UPLOAD_RETENTION_MS)
        await this.#appBuilds.removeOrphans()
        return false
      })
    } catch (thrown) {
      this.#problem = thrown
    }
  }

  /** Does the rest of the due work. */
  async step(nowMs: number): Promise<void> {
    const { store } = this.#ports
    await this.#every('exited', TRIM_MS, nowMs, () => this.#removeExited(nowMs))
    await this.#every('count', COUNT_MS.check, nowMs, async () => {
      // At the beginning of an hour at once, so that no count is spread over two hours.
      const beforeMs = Math.max(nowMs - COUNT_MS.each, hourStart(nowMs) - 1)
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
    await this.#every('largeTexts', LARGE_TEXTS_MS, nowMs, () => this.#largeTexts.removeUnused(nowMs))
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
    await this.#every('tokens', TOKENS_MS, nowMs, async () => {
      await this.#recorders.tokens.flush()
      return false
    })
    await this.#every('audit', AUDIT_MS, nowMs, () => this.#recorders.audit.step(nowMs))
    await this.#every('builds', BUILDS_MS, nowMs, async () => {
      await this.#appBuilds.tidy(nowMs)
      return false
    })
    await this.#every('tasks', TASKS_MS, nowMs, () => this.#tasks.removeEnded(nowMs))
    await this.#every('compact', COMPACT_MS, nowMs, () => store.upkeep.compact())
    const problem = this.#problem
    this.#problem = null
    if (problem !== null) throw problem
  }

  async #tidy(): Promise<boolean> {
    const { store, driver, models } = this.#ports
    const images = new Set<string>()
    for (let after: EndpointId | null = null; ; ) {
      const part: UsedImages = await store.releases.images(after, MAX.endpoints)
      for (const image of part.images) images.add(image)
      if (part.next === null) break
      after = part.next
    }
    const alive = async () => new Set((await store.workers.alive()).map(({ id }) => id))
    await driver.tidy(await alive(), images, async id => (await store.endpoints.find(id)) !== null)
    // The disk of the models may be away; the next round tries again.
    await models?.tidy(alive).catch(() => {})
    return false
  }

  /** @param work resolves to true if more work is left for the next step */
  async #every(name: Work, everyMs: number, nowMs: number, work: () => Promise<boolean>): Promise<void> {
    if (nowMs < (this.#dueMs.get(name) ?? 0)) return
    if (!(await work())) this.#dueMs.set(name, nowMs + everyMs)
  }

  async #removeExited(nowMs: number): Promise<boolean> {
    const { store } = this.#ports
    const beforeMs = nowMs - EXITED_WORKER_RETENTION_MS
    const removed = await this.#outputs.removing(() => store.workers.removeExited(beforeMs, MAX.rows))
    return removed.length === MAX.rows
  }
}
