import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import type { Template } from '../../core/endpoints/template.ts'
import { notFound } from '../../core/errors.ts'
import type { EndpointId, JobId, OwnerId, WorkerId } from '../../core/ids.ts'
import type { DownloadProgress } from '../../core/models/download-progress.ts'
import type { Explanation } from '../../core/observing/explanation.ts'
import { countWorkers, type ShownWorker, shownWorkers, type WorkerCounts } from '../../core/observing/worker-status.ts'
import { type EndpointSnapshot, type QueueLoad, waitingCount } from '../../core/scaling/scale.ts'
import type { Isolation } from '../../core/workers/isolation.ts'
import type { QueuedWorker } from '../../core/workers/placement.ts'
import { exitText, type Worker } from '../../core/workers/worker.ts'
import {
  type PhaseNow,
  presentPhase,
  queuedWorkerTimeLine,
  type TimeStep,
  workerTimeLine,
} from '../../core/workers/worker-phase.ts'
import type { Ports } from '../../ports/ports.ts'
import type { LoadBalancer } from '../balancing/load-balancer.ts'
import type { EndpointModels } from '../models/endpoint-models.ts'
import type { RunningWorkers } from '../workers/running-workers.ts'
import type { Explainer } from './explainer.ts'
import { readUrgentNames } from './urgent-names.ts'

/** A job that runs on a worker. */
export interface HeldJob {
  readonly id: JobId
  readonly startedAtMs: number | null
}

/**
 * A worker with its phase. An ended worker has the status EXITED, unless it is shown as UNHEALTHY among the others.
 */
export interface ReportedWorker extends Omit<ShownWorker, 'status'> {
  readonly status: ShownWorker['status'] | 'EXITED'
  readonly now: PhaseNow
  /** Downloaded part of its image in percent; null for an unknown part, and without a download. */
  readonly pullPercent: number | null
  /** Progress of the models of its endpoint; null without a download. */
  readonly download: DownloadProgress | null
  readonly timeLine: readonly TimeStep[]
  /** Its image; null for a worker of an old release whose image is no longer known. */
  readonly image: string | null
  /** Its isolation; null before its start, and for an unknown one. */
  readonly isolation: Isolation | null
}

/** The workers of an endpoint. */
export interface WorkerReport {
  readonly endpoint: Endpoint
  readonly workers: readonly ReportedWorker[]
  readonly counts: WorkerCounts
  /** Workers that have ended, newest first, at most 100; empty unless asked for. */
  readonly ended: readonly ReportedWorker[]
}

/** One endpoint in `runyard top`. */
export interface WatchedEndpoint {
  readonly endpoint: Endpoint
  readonly queue: QueueLoad
  /** Jobs that ended since the endpoint was created. */
  readonly finished: number
  readonly workers: readonly (ReportedWorker & { readonly jobs: readonly HeldJob[] })[]
  readonly counts: WorkerCounts
  /** Reason why its jobs wait; null when none waits and `workersMin` is 0. */
  readonly explanation: Explanation | null
}

/** Maximum number of ended workers in a report. */
const MAX_ENDED = 100
/** Maximum number of watched endpoints: a watch repeats often and must stay cheap. */
const MAX_WATCHED = 100
/** Maximum number of running jobs of an endpoint in a report. */
const MAX_HELD = 200
/** Limit of parallel reads of endpoints. */
const CONCURRENCY = 8

/** Reports workers, also ended ones, for the APIs and `runyard top`. */
export class WorkerReader {
  readonly #ports
  readonly #parts

  constructor(
    ports: Ports,
    parts: {
      readonly running: RunningWorkers
      readonly models: EndpointModels
      readonly balancing: LoadBalancer
      readonly explaining: Explainer
    },
  ) {
    this.#ports = ports
    this.#parts = parts
  }

  /** @throws AppError `not_found` for an endpoint that the owner does not have */
  async ofEndpoint(owner: OwnerId, id: EndpointId, withEnded: boolean): Promise<WorkerReport> {
    const { snapshot, template } = await this.#read(owner, id)
    const shown = await this.#shown(snapshot)
    const ended = withEnded ? await this.#ended(id) : []
    return {
      endpoint: snapshot.endpoint,
      workers: shown.map(worker => this.#report(worker, snapshot.endpoint, template)),
      counts: countWorkers(shown),
      ended: ended.map(worker => this.#report(asEnded(worker, snapshot.endpoint), snapshot.endpoint, template)),
    }
  }

  /**
   * One worker with the jobs that it holds, also one that has ended.
   * @throws AppError `not_found` for a worker of another endpoint, or past its retention
   */
  async one(
    owner: OwnerId,
    id: EndpointId,
    workerId: WorkerId,
  ): Promise<{ worker: ReportedWorker; jobs: readonly HeldJob[] }> {
    const { snapshot, template } = await this.#read(owner, id)
    const stored = await this.#ports.store.workers.find(workerId)
    const worker = stored?.endpointId === id ? stored : null
    const shown =
      worker?.state === 'EXITED'
        ? asEnded(worker, snapshot.endpoint)
        : (await this.#shown(snapshot)).find(worker => worker.id === workerId)
    if (shown === undefined) throw notFound('worker', workerId)
    const jobs = shown.held === 0 ? [] : ((await this.#held(snapshot)).get(workerId) ?? [])
    return { worker: this.#report(shown, snapshot.endpoint, template), jobs }
  }

  /**
   * The endpoints of an owner with their queues and workers, oldest first, at most 100.
   * @param only the only endpoint to return; null for all
   * @throws AppError `not_found`
   */
  async watch(owner: OwnerId, only: EndpointId | null): Promise<{ endpoints: WatchedEndpoint[]; more: boolean }> {
    const { store } = this.#ports
    if (only !== null) {
      const { snapshot, template } = await this.#read(owner, only)
      return { endpoints: [await this.#watched(snapshot, template)], more: false }
    }
    const endpoints = await store.endpoints.list(owner, { after: null, limit: MAX_WATCHED + 1 }, 'all')
    const watched: (WatchedEndpoint | null)[] = []
    for (let start = 0; start < Math.min(endpoints.length, MAX_WATCHED); start += CONCURRENCY) {
      const group = endpoints.slice(start, Math.min(start + CONCURRENCY, MAX_WATCHED))
      watched.push(...(await Promise.all(group.map(endpoint => this.#watchedNow(endpoint)))))
    }
    return { endpoints: watched.filter(endpoint => endpoint !== null), more: endpoints.length > MAX_WATCHED }
  }

  /** Null for an endpoint that was deleted in the meantime. */
  async #watchedNow({ id, owner, templateId }: Endpoint): Promise<WatchedEndpoint | null> {
    const { store } = this.#ports
    const snapshot = await this.#parts.balancing.snapshot(id)
    return snapshot === null ? null : this.#watched(snapshot, await store.templates.find(owner, templateId))
  }

  async #watched(snapshot: EndpointSnapshot, template: Template | null): Promise<WatchedEndpoint> {
    const { endpoint, queue, counters } = snapshot
    const shown = await this.#shown(snapshot)
    const heldJobs = queue.inProgress > 0 ? await this.#held(snapshot) : new Map<WorkerId, HeldJob[]>()
    const waits = waitingCount(queue) > 0 || endpoint.workersMin > 0
    return {
      endpoint,
      queue,
      finished: counters.completed + counters.failed,
      counts: countWorkers(shown),
      workers: shown.map(worker => ({
        ...this.#report(worker, endpoint, template),
        jobs: heldJobs.get(worker.id) ?? [],
      })),
      explanation: waits ? await this.#parts.explaining.of(snapshot) : null,
    }
  }

  async #shown(snapshot: EndpointSnapshot): Promise<ShownWorker[]> {
    const { endpoint, workers } = snapshot
    return shownWorkers(snapshot, await readUrgentNames(this.#ports.store, endpoint.owner, workers))
  }

  async #read(owner: OwnerId, id: EndpointId): Promise<{ snapshot: EndpointSnapshot; template: Template | null }> {
    const { store } = this.#ports
    const snapshot = await this.#parts.balancing.snapshot(id)
    if (snapshot === null || snapshot.endpoint.owner !== owner) throw notFound('endpoint', id)
    return { snapshot, template: await store.templates.find(owner, snapshot.endpoint.templateId) }
  }

  async #ended(id: EndpointId): Promise<Worker[]> {
    const workers = await this.#ports.store.workers.list(id)
    return workers
      .filter(({ state }) => state === 'EXITED')
      .sort((a, b) => (b.exitedAtMs ?? 0) - (a.exitedAtMs ?? 0))
      .slice(0, MAX_ENDED)
  }

  async #held({ endpoint }: EndpointSnapshot): Promise<Map<WorkerId, HeldJob[]>> {
    const heldJobs = new Map<WorkerId, HeldJob[]>()
    for (const { id, workerId, startedAtMs } of await this.#ports.store.jobs.running(endpoint.id, MAX_HELD)) {
      const jobs = heldJobs.get(workerId)
      if (jobs === undefined) heldJobs.set(workerId, [{ id, startedAtMs }])
      else jobs.push({ id, startedAtMs })
    }
    return heldJobs
  }

  #report(shown: ReportedShape, endpoint: Endpoint, template: Template | null): ReportedWorker {
    const { worker, queued, version } = shown
    const nowMs = this.#ports.clock.now()
    const timeLine = worker === null ? queuedTimeLine(queued, nowMs) : workerTimeLine(worker, nowMs)
    const last = timeLine.at(-1)
    const phase =
      worker !== null ? presentPhase(worker) : { phase: last?.phase ?? 'queued', sinceMs: last?.startedAtMs ?? nowMs }
    return {
      ...shown,
      now: phase,
      pullPercent: phase.phase === 'pulling' ? (this.#parts.running.find(shown.id)?.pullPercent ?? null) : null,
      download: phase.phase === 'downloading' ? this.#parts.models.progress(endpoint.id) : null,
      timeLine,
      image: version === endpoint.version ? (template?.image ?? null) : null,
      isolation: worker?.handle == null ? null : this.#ports.driver.isolation(worker.handle, worker.driver),
    }
  }
}

type ReportedShape = Omit<ReportedWorker, 'now' | 'pullPercent' | 'download' | 'timeLine' | 'image' | 'isolation'>

function queuedTimeLine(queued: QueuedWorker | null, nowMs: number): TimeStep[] {
  return queued === null ? [] : queuedWorkerTimeLine(queued, nowMs)
}

function asEnded(worker: Worker, endpoint: Endpoint): ReportedShape {
  const { id, version } = worker
  const reason = worker.exit && exitText(worker, worker.exit)
  return { id, version, status: 'EXITED', isStale: version !== endpoint.version, held: 0, worker, queued: null, reason }
}
