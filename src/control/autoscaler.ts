import type { EndpointId } from '../core/ids.ts'
import { DRAIN_DELETED_MS, DRAIN_MS } from '../core/scaling/balanced-plan.ts'
import { canaryViews } from '../core/scaling/canary-plan.ts'
import { freezesIdle, type KeepRule } from '../core/scaling/frozen-plan.ts'
import { pausedForNothing, waitingToGoOn, withPausedRunning } from '../core/scaling/paused-plan.ts'
import { earliest, planWorkers, type WorkerPlan } from '../core/scaling/plan.ts'
import { mayStop, type PlannedRelease, plannedRelease } from '../core/scaling/rollout.ts'
import { type EndpointSnapshot, waitingCount } from '../core/scaling/scale.ts'
import type { WorkerLoad } from '../core/workers/worker.ts'
import type { Emit, Events } from '../events.ts'
import type { Ports } from '../ports/ports.ts'
import type { LoadBalancer } from '../services/balancing/load-balancer.ts'
import type { EndpointModels } from '../services/models/endpoint-models.ts'
import type { Fleet } from '../services/workers/fleet.ts'
import type { Freezer } from './freezer.ts'
import type { Placer } from './placer.ts'
import type { WorkerUsageMeter } from './worker-usage-meter.ts'

/** Interval between attempts for an endpoint whose workers cannot be started. */
const RETRY_MS = 30_000
/**
 * Minimum interval between refreshes of a queue endpoint that needs no further worker: each move of a job asks for a
 * refresh, which costs as much as a step of a job.
 */
const SERVED_REST_MS = 100
/** Maximum interval between refreshes of an endpoint that has waiting work or keeps workers ready. */
const BUSY_REFRESH_MS = 5_000
/** Interval between checks of workers that finish requests of a removed endpoint. */
const STRAY_CHECK_MS = 1_000
/**
 * Maximum interval between refreshes of an endpoint that is not idle, and between lists of such endpoints: the
 * notification of a first job may be lost.
 */
const REFRESH_MS = 30_000
/** Minimum interval between lists of endpoints, of which there may be thousands, however many are saved. */
const LIST_REST_MS = 1_000

/**
 * Starts, freezes, thaws and drains workers. Each step refreshes only endpoints whose jobs or workers changed or
 * whose time has come; an idle endpoint is not due at any time. The first job of an endpoint wakes it at once.
 */
export class Autoscaler {
  readonly #ports
  readonly #parts
  readonly #wake
  /** Due times of endpoints; those at rest, most of thousands, have none until the next notification. */
  readonly #due = new Map<EndpointId, number>()
  /** Instants until which endpoints rest after their last refresh. */
  readonly #rests = new Map<EndpointId, number>()
  readonly #subscriptions = new Map<EndpointId, () => void>()
  /** Endpoints whose workers could not be started. */
  readonly #blocked = new Set<EndpointId>()
  /** True if these may have a cause no longer. */
  #retriesBlocked = false
  #relist = true
  #listedMs = Number.NEGATIVE_INFINITY
  #listAtMs = 0
  #lastMs = 0

  /** @param wake asks for a step soon */
  constructor(
    ports: Ports,
    parts: {
      readonly fleet: Fleet
      readonly models: EndpointModels
      readonly placer: Placer
      readonly balancing: LoadBalancer
      readonly freezer: Freezer
      readonly served: WorkerUsageMeter
      readonly rules: KeepRule
    },
    wake: () => void,
  ) {
    this.#ports = ports
    this.#parts = parts
    this.#wake = wake
    const relist = () => {
      this.#relist = true
      this.#retriesBlocked = true
      wake()
    }
    ports.notifier.subscribe('endpoints', relist)
    ports.notifier.subscribe('machine', wake)
  }

  /** A reader of the event stream: a new endpoint is watched before its first job comes, without a list of all. */
  readonly emit: Emit = (name, fields) => {
    if (name !== 'endpoint.saved') return
    const { endpointId, created } = fields as Events['endpoint.saved']
    if (!created) return
    // The id of a removed one may be given again.
    if (this.#subscriptions.has(endpointId)) this.#due.set(endpointId, 0)
    else this.#watch(endpointId, 0)
  }

  /**
   * Refreshes and scales the endpoints that are due. An endpoint whose step failed stays due.
   * @returns time of the next step without a wake; null for never
   */
  async step(nowMs: number): Promise<number | null> {
    // After the clock was set back, due times are too late.
    if (nowMs < this.#lastMs) for (const id of this.#subscriptions.keys()) this.#due.set(id, nowMs)
    if (this.#retriesBlocked) this.#retryBlocked(nowMs)
    const isAsked = this.#relist && nowMs >= this.#listedMs + LIST_REST_MS
    if (isAsked || nowMs < this.#lastMs || nowMs >= this.#listAtMs) await this.#listEndpoints(nowMs)
    this.#lastMs = nowMs
    const failures: unknown[] = []
    const visited = new Set<EndpointId>()
    for (const [id, dueMs] of this.#due) {
      if (dueMs > nowMs || visited.has(id)) continue
      visited.add(id)
      await this.#visit(id, nowMs).catch(error => failures.push(error))
    }
    const placeAtMs = await this.#parts.placer
      .step(nowMs, id => this.#visit(id, nowMs))
      .catch(error => {
        failures.push(error)
        return nowMs
      })
    const relieveAtMs = await this.#parts.freezer.relieve(nowMs)
    if (failures.length > 0) throw failures[0]
    const listAtMs = this.#relist ? this.#listedMs + LIST_REST_MS : this.#listAtMs
    return earliest([listAtMs, placeAtMs, relieveAtMs, ...this.#due.values()])
  }

  /** Makes endpoints due whose workers could not be started: a change may have removed the cause. */
  #retryBlocked(nowMs: number): void {
    this.#retriesBlocked = false
    for (const id of this.#blocked) this.#due.set(id, nowMs)
    this.#blocked.clear()
  }

  async #visit(id: EndpointId, nowMs: number): Promise<void> {
    this.#due.delete(id)
    try {
      const next = await this.#scale(id, nowMs)
      if (next !== null) this.#due.set(id, Math.min(this.#due.get(id) ?? next, next))
    } catch (error) {
      this.#due.set(id, nowMs)
      throw error
    }
  }

  /** Makes new endpoints due, and those whose notification was lost. */
  async #listEndpoints(nowMs: number): Promise<void> {
    this.#relist = false
    this.#listedMs = nowMs
    this.#retryBlocked(nowMs)
    const { endpoints } = this.#ports.store
    const [ids, active] = await Promise.all([endpoints.ids(), endpoints.active()]).catch(error => {
      this.#relist = true
      throw error
    })
    this.#listAtMs = nowMs + REFRESH_MS
    const isThere = new Set(ids)
    const isActive = new Set(active)
    for (const id of this.#subscriptions.keys())
      if (!this.#due.has(id) && (isActive.has(id) || !isThere.has(id))) this.#due.set(id, nowMs)
    // Reads the machine too: its hardware may have changed.
    void this.#ports.machine.parts()
    for (const id of ids) {
      if (!this.#subscriptions.has(id)) this.#watch(id, nowMs)
    }
  }

  #watch(id: EndpointId, nowMs: number): void {
    this.#due.set(id, nowMs)
    const changed = () => {
      const present = this.#ports.clock.now()
      // After the clock was set back an instant may be far away.
      const restsMs = Math.min((this.#rests.get(id) ?? present) - present, SERVED_REST_MS)
      const dueMs = restsMs > 0 ? present + restsMs : 0
      const previous = this.#due.get(id) ?? null
      if (restsMs > 0 && previous !== null && previous <= dueMs) return
      this.#due.set(id, dueMs)
      this.#wake()
    }
    this.#subscriptions.set(id, this.#ports.notifier.subscribe(`load:${id}`, changed))
  }

  async #scale(id: EndpointId, nowMs: number): Promise<number | null> {
    const present = await this.#parts.balancing.refresh(id)
    if (present === null) return this.#endStray(id, nowMs)
    for (const worker of pausedForNothing(present.workers)) await this.#parts.fleet.drain(worker.id, 'idle')
    const refreshed = withPausedRunning(present)
    const [snapshotWithoutFreezes, release] = await this.#withoutFreezes(
      refreshed,
      await this.#chooseRelease(refreshed),
    )
    const { snapshot } = release
    const drainedAtMs = await this.#stopDrained(snapshot, nowMs)
    const planned = makePlans(snapshotWithoutFreezes, release, nowMs, this.#parts.rules)
    for (const { plan } of planned) {
      const withGpus = plan.thaw.filter(({ asleepAtMs }) => asleepAtMs === null)
      await this.#parts.freezer.thaw(id, withGpus, release.presentVersion)
      for (const { worker, reason } of plan.drain) await this.#parts.fleet.drain(worker.id, reason)
      for (const worker of plan.freeze) await this.#parts.freezer.freeze(worker)
    }
    const serves = snapshot.requests !== undefined && snapshot.workers.length > 0
    const waits = snapshot.queue.queued > 0 || snapshot.endpoint.workersMin > 0 || serves
    const latest = nowMs + (waits ? BUSY_REFRESH_MS : REFRESH_MS)
    const wakeAtMs = earliest(planned.map(({ plan }) => plan.wakeAtMs))
    const next = earliest([wakeAtMs, drainedAtMs, latest]) ?? latest
    // A canary gets its workers after those of its base.
    const starting = planned.find(({ plan }) => plan.start > 0) ?? planned[0]
    const sleepers = planned.flatMap(({ plan }) => plan.thaw.filter(({ asleepAtMs }) => asleepAtMs !== null))
    const wakes = [...waitingToGoOn(present.workers), ...sleepers]
    const isBlocked = await this.#start(starting, wakes, snapshot, nowMs)
    if (!isBlocked && isServed(snapshot, planned)) this.#rests.set(id, nowMs + SERVED_REST_MS)
    else this.#rests.delete(id)
    if ((isIdle(snapshot) || isOff(snapshot)) && starting.plan.start === 0 && wakeAtMs === null) return null
    if (!isBlocked) return next
    this.#blocked.add(id)
    return starting === planned[0] ? nowMs + RETRY_MS : Math.min(next, nowMs + RETRY_MS)
  }

  /**
   * Notes the workers that are wanted for a place on the machine.
   * @param wakes paused workers that need room again, and sleeping ones that need their GPUs again
   * @param snapshot the snapshot of the release that has to serve, whose requests have no hope if none of its workers
   * can start
   * @returns true if none of them can be started
   */
  async #start(
    { release, plan, isCanary }: Planned,
    wakes: readonly WorkerLoad[],
    snapshot: EndpointSnapshot,
    nowMs: number,
  ): Promise<boolean> {
    const { template } = release
    const { endpoint } = release.snapshot
    const startFailure = plan.start > 0 ? await this.#parts.fleet.startFailure(endpoint, template) : null
    const isBlocked = startFailure !== null
    this.#parts.balancing.setCircuit(snapshot, isCanary ? null : startFailure, nowMs)
    const models = plan.start > 0 && !isBlocked ? await this.#parts.fleet.prepareModels(endpoint, template) : null
    const missing = models?.kind === 'downloading' ? models.names : []
    const wish = { wanted: isBlocked ? 0 : plan.start, isSpare: plan.isSpare && wakes.length === 0, wakes }
    await this.#parts.placer.noteWish(release, wish, nowMs, missing)
    return isBlocked
  }

  /**
   * The release whose workers are started. The newest one is checked for a start failure only while another one could
   * take its place.
   */
  async #chooseRelease(snapshot: EndpointSnapshot): Promise<PlannedRelease> {
    const { rollout, endpoint } = snapshot
    return plannedRelease(snapshot, mayStop(rollout) ? await this.#parts.fleet.startFailure(endpoint) : null)
  }

  /** A platform cannot freeze workers: idle ones end there as without FlashBoot. */
  async #withoutFreezes(
    present: EndpointSnapshot,
    release: PlannedRelease,
  ): Promise<[EndpointSnapshot, PlannedRelease]> {
    const { snapshot, template } = release
    if (!freezesIdle(snapshot.endpoint) && !freezesIdle(present.endpoint)) return [present, release]
    if ((await this.#parts.fleet.placedBy(snapshot.endpoint, template)) === 'machine') return [present, release]
    const withoutFreeze = (source: EndpointSnapshot): EndpointSnapshot => ({
      ...source,
      endpoint: { ...source.endpoint, flashboot: 'OFF' },
    })
    return [withoutFreeze(present), { ...release, snapshot: withoutFreeze(snapshot) }]
  }

  /** Ends the workers of a removed endpoint; serving workers may finish their requests for a short time. */
  async #endStray(id: EndpointId, nowMs: number): Promise<number | null> {
    const servingCount = await this.#parts.fleet.endStray(id, worker => {
      const sinceMs = worker.stopRequestedAtMs ?? nowMs
      return nowMs - sinceMs < DRAIN_DELETED_MS && this.#parts.balancing.inFlight(id, worker.id) > 0
    })
    return servingCount > 0 ? nowMs + STRAY_CHECK_MS : this.#forget(id)
  }

  #forget(id: EndpointId): null {
    this.#subscriptions.get(id)?.()
    this.#subscriptions.delete(id)
    this.#due.delete(id)
    this.#rests.delete(id)
    this.#blocked.delete(id)
    this.#parts.placer.forget(id)
    this.#parts.models.forget(id)
    return null
  }

  /** Stops drained workers. @returns deadline of the next draining worker that serves requests; null without one */
  async #stopDrained(snapshot: EndpointSnapshot, nowMs: number): Promise<number | null> {
    const dueTimes: number[] = []
    for (const { id, state, held, serves, stopRequestedAtMs, stopReason } of snapshot.workers) {
      if (state !== 'DRAINING') continue
      const dueAtMs = serves === null ? Number.POSITIVE_INFINITY : (stopRequestedAtMs ?? nowMs) + DRAIN_MS
      if (held > 0 && dueAtMs > nowMs) {
        if (serves !== null) dueTimes.push(dueAtMs)
        continue
      }
      if (serves !== null) await this.#parts.served.noteLast(id)
      await this.#parts.fleet.stop(id, stopReason ?? 'scaled_down')
    }
    return earliest(dueTimes)
  }
}

/** A release whose workers are started, with the plan for them. */
interface Planned {
  readonly release: PlannedRelease
  readonly plan: WorkerPlan
  readonly isCanary: boolean
}

/** The plans for an endpoint: of the release that has to serve, and after that of a canary, if it has one. */
function makePlans(
  found: EndpointSnapshot,
  release: PlannedRelease,
  nowMs: number,
  rules: KeepRule,
): readonly [Planned, ...Planned[]] {
  const views = canaryViews(release, nowMs)
  if (views === null) return [{ release, plan: planWorkers(release.snapshot, nowMs, rules), isCanary: false }]
  const ofCanary = { snapshot: found, template: null, presentVersion: release.presentVersion, canary: null }
  return [
    { release, plan: planWorkers(views.base, nowMs, rules), isCanary: false },
    { release: ofCanary, plan: planWorkers(views.canary, nowMs, rules), isCanary: true },
  ]
}

/** True if a queue endpoint has a worker that takes jobs, and its workers stay as they are. */
function isServed({ requests, workers }: EndpointSnapshot, planned: readonly Planned[]): boolean {
  const stay = planned.every(
    ({ plan }) => plan.start === 0 && plan.drain.length + plan.freeze.length + plan.thaw.length === 0,
  )
  return requests === undefined && stay && workers.some(({ state }) => state === 'READY')
}

/** True if the jobs of an endpoint wait until it may have workers again, which is a change of it. */
function isOff({ endpoint, workers, queuedWorkers, requests }: EndpointSnapshot): boolean {
  return requests === undefined && endpoint.workersMax + workers.length + queuedWorkers.length === 0
}

/** True if an endpoint needs nothing until it changes. */
function isIdle({ endpoint, queue, workers, queuedWorkers, requests }: EndpointSnapshot): boolean {
  const jobs = waitingCount(queue) + queue.inProgress
  return requests === undefined && endpoint.workersMin + jobs + workers.length + queuedWorkers.length === 0
}
