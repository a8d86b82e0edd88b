import { savedEnv } from '../core/endpoints/saved-env.ts'
import { initTimeoutMs } from '../core/endpoints/serving.ts'
import type { EndpointId } from '../core/ids.ts'
import type { Worker } from '../core/workers/worker.ts'
import { INIT_MS, isSilent, isWedged, SILENT_MS, WEDGED_MS } from '../core/workers/worker-liveness.ts'
import type { Ports } from '../ports/ports.ts'
import { resolvedServing } from '../services/endpoints/serving-variables.ts'
import type { Fleet } from '../services/workers/fleet.ts'
import type { LostJobs } from '../services/workers/lost-jobs.ts'
import type { RunningWorkers } from '../services/workers/running-workers.ts'

/** Time between two inspections after which this server may have missed calls of workers. */
const GAP_MS = 10_000
/** Time for a worker that reported itself unhealthy to end by itself. */
const UNHEALTHY_MS = 10_000

/**
 * Inspects running workers: reads their output, and ends those that are stuck, silent or unhealthy, and those that
 * never asked for a job. Their jobs are given back when their exit is observed.
 */
export class WorkerWatchdog {
  readonly #ports
  readonly #parts
  /** Start limits of the workers of endpoints that this inspection has read: a thousand workers may start at once. */
  readonly #limits = new Map<EndpointId, Promise<number | null>>()
  #inspectedAtMs = Number.NEGATIVE_INFINITY
  /** Start of its inspections without a gap (Unix time in ms). */
  #sinceMs = 0

  constructor(
    ports: Ports,
    parts: { readonly fleet: Fleet; readonly running: RunningWorkers; readonly lostJobs: LostJobs },
  ) {
    this.#ports = ports
    this.#parts = parts
  }

  /** Inspects all workers that have not ended. To be called about every second. */
  async inspect(alive: readonly Worker[], nowMs: number): Promise<void> {
    const { running, lostJobs } = this.#parts
    this.#noticeGap(nowMs)
    running.keep(new Set(alive.map(({ id }) => id)))
    this.#limits.clear()
    for (const worker of alive.filter(({ state }) => state !== 'STOPPING' && state !== 'FROZEN')) {
      if (await this.#endFaulty(worker, nowMs)) continue
      if (worker.state !== 'STARTING') await lostJobs.readOutput(worker)
    }
  }

  #noticeGap(nowMs: number): void {
    const { clock } = this.#ports
    if (clock.monotonic() - this.#inspectedAtMs > GAP_MS) {
      this.#parts.running.forgetActivity()
      this.#sinceMs = nowMs
    }
    this.#inspectedAtMs = clock.monotonic()
  }

  async #endFaulty(worker: Worker, nowMs: number): Promise<boolean> {
    const { fleet } = this.#parts
    const atMs = this.#ports.clock.monotonic()
    const running = this.#parts.running.of(worker)
    const activity = running.activity
    if (worker.problem !== null) {
      running.unhealthySinceMs ??= atMs
      if (atMs - running.unhealthySinceMs < UNHEALTHY_MS) return false
      await fleet.endFaulty(worker, 'unhealthy', worker.problem)
      return true
    }
    // The store is read only for workers that would be ended if they held no job.
    if (activity !== null && (isWedged(activity, worker, false, atMs) || isSilent(activity, worker, false, atMs))) {
      const holdsJobs = (await this.#ports.store.jobs.heldBy(worker.id)).length > 0
      if (isWedged(activity, worker, holdsJobs, atMs)) {
        await fleet.endFaulty(worker, 'wedged', { kind: 'loop_stuck', forS: WEDGED_MS / 1000 })
        return true
      }
      if (isSilent(activity, worker, holdsJobs, atMs)) {
        await fleet.endFaulty(worker, 'silent', { kind: 'silent', forS: SILENT_MS / 1000 })
        return true
      }
    }
    return worker.state === 'STARTING' && (await this.#endHung(worker, nowMs))
  }

  /** Ends a worker that has never asked for a job. Time in which this server did not listen does not count. */
  async #endHung(worker: Worker, nowMs: number): Promise<boolean> {
    const { fleet, running } = this.#parts
    if (running.of(worker).isLaunching) return false
    // Adopted in the middle of its start, which its platform may hold up for as long as it likes.
    if (worker.placement?.asked !== undefined && worker.startedAtMs === null) return false
    const forMs = nowMs - Math.max(worker.startedAtMs ?? worker.createdAtMs, this.#sinceMs)
    const limitMs = await this.#readLimit(worker)
    if (limitMs === null || forMs < limitMs) return false
    const { isLoading, prestart } = running.of(worker)
    const limitS = limitMs / 1000
    const kind = isLoading
      ? ({ kind: 'prestart_hung', hook: prestart.hook } as const)
      : ({ kind: 'hung_start' } as const)
    await fleet.endFaulty(worker, 'hung_start', { ...kind, limitS })
    return true
  }

  #readLimit(worker: Worker): Promise<number | null> {
    const limit = this.#limits.get(worker.endpointId) ?? this.#initTimeoutMs(worker)
    this.#limits.set(worker.endpointId, limit)
    return limit
  }

  /** Longest start of the worker; null if it never asks for jobs, or its endpoint is deleted. */
  async #initTimeoutMs({ owner, endpointId }: Worker): Promise<number | null> {
    const { store } = this.#ports
    const endpoint = await store.endpoints.find(endpointId)
    if (endpoint === null || endpoint.type === 'LOAD_BALANCER') return null
    const template = await store.templates.find(owner, endpoint.templateId)
    if (template === null) return INIT_MS
    const env = await resolvedServing(this.#ports, owner, savedEnv(endpoint, template))
    return initTimeoutMs(env, INIT_MS)
  }
}
