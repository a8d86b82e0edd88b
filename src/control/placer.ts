import type { Endpoint } from '../core/endpoints/endpoint.ts'
import { givenMemoryMb } from '../core/endpoints/ready-workers.ts'
import type { ReleasedTemplate } from '../core/endpoints/release.ts'
import { savedEnv } from '../core/endpoints/saved-env.ts'
import { gpuKey, type MachineParts } from '../core/hardware/inventory.ts'
import type { EndpointId, WorkerId } from '../core/ids.ts'
import { type KnownMemory, placedCompute } from '../core/placement/learned-memory.ts'
import type { EndReason } from '../core/placement/leaving.ts'
import { placeWorkers } from '../core/placement/place.ts'
import type {
  Eviction,
  Occupant,
  PauseRules,
  PlacementDecision,
  PlacementRules,
  Stranded,
  Tenant,
  Unplaced,
  Woken,
} from '../core/placement/placement-input.ts'
import { freezesIdle } from '../core/scaling/frozen-plan.ts'
import { earliest } from '../core/scaling/plan.ts'
import type { PlannedRelease } from '../core/scaling/rollout.ts'
import { presentStartMs } from '../core/scaling/start-time.ts'
import { isHopeless, MAX_QUEUED_WORKERS, type QueuedWorker, UNPLACED } from '../core/workers/placement.ts'
import { hasSleepHooks, isFrozen, isPaused, takesJobs, type WorkerLoad } from '../core/workers/worker.ts'
import { resumeMb } from '../core/workers/worker-suspension.ts'
import type { Ports } from '../ports/ports.ts'
import type { Quotas } from '../services/accounts/quotas.ts'
import type { LoadBalancer } from '../services/balancing/load-balancer.ts'
import type { CardReader, CardUse } from '../services/hardware/card-reader.ts'
import type { InOrder } from '../services/in-order.ts'
import type { Fleet } from '../services/workers/fleet.ts'
import type { WorkerFreezer } from '../services/workers/worker-freezer.ts'
import type { WorkerSuspender } from '../services/workers/worker-suspender.ts'
import type { Freezer } from './freezer.ts'

/** An endpoint as of its last refresh. */
interface RefreshedEndpoint {
  /** The endpoint with the release whose workers are started. */
  readonly endpoint: Endpoint
  /** The template of these workers; null for the present one. */
  readonly released: ReleasedTemplate | null
  /** Its present version, which queued workers have. */
  readonly version: number
  readonly refreshedAtMs: number
  readonly hasWork: boolean
  /** Workers that wait for a place, as the store has them. */
  readonly queued: readonly QueuedWorker[]
  /** Ended workers that requests wait for by name; they start again before new ones. */
  readonly resumed: readonly WorkerId[]
  /** Number of further workers that it wants. */
  readonly wanted: number
  /** Its sleeping workers that it wants again. */
  readonly wakes: readonly WorkerLoad[]
  /** True if the wanted workers are for no work, but to be frozen. */
  readonly isSpare: boolean
  /** True if its workers have limits of vCPUs and memory, as containers do. */
  readonly limited: boolean
  /** The one that places its workers; see `Driver.placedBy`. */
  readonly placedBy: 'machine' | 'platform'
  /** The GPU memory of its workers, as far as it is known; for shares that are learned. */
  readonly memory: KnownMemory
  /** Typical time of a start of its workers, in milliseconds; null if unknown. */
  readonly startMs: number | null
  /** Start of its wait for a worker. */
  readonly sinceMs: number
}

/** Maximum interval between placements while workers wait for a place. */
const RETRY_MS = 5_000
/** For an endpoint whose share is not learned. */
const UNKNOWN_MEMORY: KnownMemory = { learned: null, givenMb: null }
/** Time for which a worker that could not be resumed for want of room is not tried again. */
const RESUME_AGAIN_MS = 2_000

/**
 * Places the workers that endpoints want, as `core/placement/place.ts` decides, and keeps those without a place as
 * queued workers with the reason. Holds each endpoint as of its last refresh.
 */
export class Placer {
  readonly #ports
  readonly #parts
  readonly #rules
  readonly #endpoints = new Map<EndpointId, RefreshedEndpoint>()
  /** Those of them that want workers: few, where there may be thousands of endpoints. */
  readonly #wishing = new Set<EndpointId>()
  /** The last event of each endpoint: the number of queued workers, and the reason of their wait. */
  readonly #reported = new Map<EndpointId, string>()
  /** Workers that were asked to end instead of being suspended, until they have ended. */
  readonly #endedSince = new Map<WorkerId, EndReason>()
  /** Versions of endpoints with an event that their workers get less than they want. */
  readonly #clamped = new Map<EndpointId, number>()

  constructor(
    ports: Ports,
    parts: {
      readonly fleet: Fleet
      readonly freezer: Freezer
      readonly suspender: WorkerSuspender
      readonly workerFreezer: WorkerFreezer
      readonly balancing: LoadBalancer
      readonly quotas: Quotas
      readonly cards: CardReader
      /** Keeps other changes of claims to cards apart from a step, which decides by those before it. */
      readonly claiming: InOrder<'cards'>
    },
    rules: { readonly placing: PlacementRules; readonly pausing: PauseRules },
  ) {
    this.#ports = ports
    this.#parts = parts
    this.#rules = rules
  }

  /**
   * Notes a refreshed endpoint, with the release whose workers are started.
   * @param wish the number of further workers that it wants and that could start in free room, a flag that is
   * true if no work needs them, and the sleeping workers that it wants again
   * @param missing models that are still downloading; its workers ask for no place in the meantime, and take none
   * from others
   */
  async noteWish(
    { snapshot, template: released, presentVersion: version }: PlannedRelease,
    {
      wanted,
      isSpare,
      wakes,
    }: { readonly wanted: number; readonly isSpare: boolean; readonly wakes: readonly WorkerLoad[] },
    nowMs: number,
    missing: readonly string[] = [],
  ): Promise<void> {
    const { endpoint, queue, queuedWorkers, requests } = snapshot
    const { id, owner, templateId } = endpoint
    const previous = this.#endpoints.get(id)
    const template = wanted > 0 ? (released ?? (await this.#ports.store.templates.find(owner, templateId))) : null
    const limited = template === null ? (previous?.limited ?? true) : !template.image.startsWith('dir:')
    const placedBy = template === null ? (previous?.placedBy ?? 'machine') : this.#ports.driver.placedBy(template.image)
    const waitedMs = previous !== undefined && wishes(previous) ? previous.sinceMs : nowMs
    const sinceMs = Math.min(waitedMs, queuedWorkers[0]?.queuedAtMs ?? waitedMs, nowMs)
    const hasWork = queue.queued > 0
    const resumed = requests?.resumed ?? []
    const memory = template === null ? (previous?.memory ?? UNKNOWN_MEMORY) : await this.#readMemory(endpoint, template)
    const runs = { endpoint, released, version, limited, placedBy, memory }
    const refreshed = {
      ...runs,
      isSpare,
      refreshedAtMs: nowMs,
      hasWork,
      queued: queuedWorkers,
      resumed,
      sinceMs,
      wakes,
      startMs: presentStartMs(snapshot),
    }
    const isLate = missing.length > 0
    this.#keep(id, { ...refreshed, wanted: isLate ? 0 : wanted })
    if (isLate) await this.#keepQueued(id, lacksModels(id, wanted, missing))
    else if (wanted === 0 || isSpare) await this.#keepQueued(id, null)
  }

  #keep(id: EndpointId, refreshed: RefreshedEndpoint): void {
    this.#endpoints.set(id, refreshed)
    if (wishes(refreshed)) this.#wishing.add(id)
    else this.#wishing.delete(id)
  }

  /** Drops an endpoint that was removed. */
  forget(id: EndpointId): void {
    this.#endpoints.delete(id)
    this.#wishing.delete(id)
    this.#reported.delete(id)
    this.#clamped.delete(id)
  }

  /**
   * Places the workers that fit.
   * @param refresh refreshes an endpoint and notes its wish
   * @returns time of the next step without an event; null if no worker waits
   */
  step(nowMs: number, refresh: (id: EndpointId) => Promise<void>): Promise<number | null> {
    return this.#parts.claiming.run('cards', true, () => this.#step(nowMs, refresh))
  }

  async #step(nowMs: number, refresh: (id: EndpointId) => Promise<void>): Promise<number | null> {
    for (;;) {
      if (this.#wishing.size === 0) return null
      const decision = await this.#decide(nowMs)
      const { placed, woken, evictions, pauses } = decision
      const changes = [...placed, ...woken, ...evictions, ...pauses]
      const concerned = [...changes.map(({ endpointId }) => endpointId), ...pauses.map(pause => pause.for)]
      const stale = concerned.find(id => this.#endpoints.has(id) && this.#endpoints.get(id)!.refreshedAtMs !== nowMs)
      if (stale !== undefined) {
        await refresh(stale)
        continue
      }
      for (const stranded of decision.stranded) await this.#endStranded(stranded)
      for (const eviction of evictions) await this.#evict(eviction)
      for (const { workerId, for: by } of pauses) await this.#parts.workerFreezer.pause(workerId, by)
      for (const wakeUp of woken) await this.#wake(wakeUp)
      for (const { workerId, reason } of decision.unwoken) await this.#ports.store.workers.waitsToWake(workerId, reason)
      await this.#start(decision)
      for (const unplaced of decision.unplaced) await this.#keepQueued(unplaced.endpointId, unplaced)
      return earliest([decision.wakeAtMs, nowMs + RETRY_MS])
    }
  }

  async #decide(nowMs: number): Promise<PlacementDecision> {
    const { store, machine, driver } = this.#ports
    const [parts, capacity] = [await machine.parts(), await driver.capacity()]
    const loads = await store.workers.loads()
    const cards = this.#areCardsWanted(parts) ? await this.#parts.cards.rooms(loads) : undefined
    const occupants = await this.#occupants(this.#parts.balancing.loaded(loads), cards)
    if (parts.gpus.length > 0) await this.#replaceUnplaced(occupants)
    const tenants = this.#tenants(parts, occupants, nowMs)
    const quotas = new Map(tenants.map(({ owner }) => [owner, this.#parts.quotas.effectiveLimits(owner)]))
    return placeWorkers({
      parts,
      ...(cards && { cards }),
      copying: this.#parts.suspender.copying(loads),
      capacity,
      occupants,
      tenants,
      quotas,
      rules: this.#rules.placing,
      pauseRules: this.#rules.pausing,
      nowMs,
    })
  }

  /** True if a wanted worker needs a card whose memory can be measured. */
  #areCardsWanted({ gpus }: MachineParts): boolean {
    if (!gpus.some(({ vendor }) => vendor === 'NVIDIA')) return false
    return this.#wishes().some(({ placedBy, endpoint }) => placedBy === 'machine' && endpoint.compute.kind === 'gpu')
  }

  /** The endpoints that want workers. */
  #wishes(): RefreshedEndpoint[] {
    return [...this.#wishing].map(id => this.#endpoints.get(id)!)
  }

  /** The memory of the workers of a release; read only for shares that are learned. */
  async #readMemory(endpoint: Endpoint, template: ReleasedTemplate): Promise<KnownMemory> {
    const { id, version, compute } = endpoint
    if (compute.kind === 'cpu' || compute.memoryGb !== 'auto') return UNKNOWN_MEMORY
    const learned = await this.#ports.store.releases.gpuMemory(id, version)
    return { learned, givenMb: givenMemoryMb(template.image, savedEnv(endpoint, template)) }
  }

  /** The endpoints that want workers, and those that have some. */
  #tenants(parts: MachineParts, occupants: readonly Occupant[], nowMs: number): Tenant[] {
    const concerned = new Set([...this.#wishing, ...occupants.map(({ endpointId }) => endpointId)])
    const refreshed = [...concerned].flatMap(id => this.#endpoints.get(id) ?? [])
    return refreshed.map(({ endpoint, wakes, ...refreshed }) => {
      const { id, owner, name, workersMin, priority } = endpoint
      const compute = placedCompute(endpoint.compute, refreshed.memory, parts)
      const possible = wakes.filter(worker => !hadNoRoom(worker, nowMs))
      const again = possible.map(({ id: workerId, placement, suspension, pause }) => {
        const memoryMb = suspension === null ? null : resumeMb(suspension)
        const paused = pause === null ? {} : { pausedSinceMs: pause.sinceMs }
        return { workerId, placement: placement ?? UNPLACED, memoryMb, ...paused }
      })
      const { wanted, isSpare, limited, placedBy, sinceMs, hasWork } = refreshed
      const wish = { limited, placedBy, wanted, wakes: again, isSpare, sinceMs, hasWork }
      return { id, owner, name, compute, workersMin, priority, ...wish }
    })
  }

  /** @param cards the measured cards, if a wanted worker needs one */
  async #occupants(loads: readonly WorkerLoad[], cards: ReadonlyMap<string, CardUse> | undefined): Promise<Occupant[]> {
    const occupants: Occupant[] = []
    const ended = new Map(this.#endedSince)
    this.#endedSince.clear()
    const lowOnes = await this.#withLowPriorityOnly(loads)
    for (const worker of loads) {
      const { id: workerId, endpointId, owner, idleSinceMs, suspension, pause } = worker
      const refreshed = this.#endpoints.get(endpointId)?.endpoint
      const endpoint = refreshed ?? (await this.#ports.store.endpoints.find(endpointId))
      const placement = worker.placement ?? (endpoint?.compute.kind === 'gpu' ? null : UNPLACED)
      const endsSince = ended.get(workerId) ?? null
      if (endsSince !== null) this.#endedSince.set(workerId, endsSince)
      const isFlash = endpoint !== null && freezesIdle(endpoint)
      const maySuspend = isFlash && (await this.#parts.suspender.maySuspend(worker))
      const sleep = this.#sleepState(worker, endpoint, maySuspend)
      occupants.push({
        workerId,
        endpointId,
        owner,
        endpointName: endpoint?.name ?? endpointId,
        placement,
        phase: occupantPhase(worker),
        readyAtMs: readinessStartMs(worker, sleep),
        startingSinceMs: startMs(worker),
        idleSinceMs,
        frozen: isFrozen(worker)
          ? { sinceMs: worker.frozenAtMs ?? 0, hasPriority: endpoint?.flashboot === 'PRIORITY_FLASHBOOT' }
          : null,
        sleep,
        // One that only confirmed that it sleeps may have memory on its card.
        suspends: suspension !== null || (pause !== null && sleep !== null) || (maySuspend && sleep !== 'asleep'),
        copyMb: maySuspend && (sleep === 'able' || sleep === 'falling') ? copyMb(worker, cards) : null,
        startMs: this.#endpoints.get(endpointId)?.startMs ?? null,
        endsSince,
        priority: lowOnes.has(workerId) ? 'low' : (endpoint?.priority ?? 'normal'),
        pausableAtMs: await this.#pausableAtMs(worker, endpoint),
        pause: isPaused(worker) ? pause : null,
      })
    }
    return occupants
  }

  /** Workers with jobs of low priority alone; read only where one of them may be paused. */
  async #withLowPriorityOnly(loads: readonly WorkerLoad[]): Promise<ReadonlySet<WorkerId>> {
    const isBusy = loads.some(({ held, state }) => held > 0 && state === 'READY')
    const isAsked = () => [...this.#endpoints.values()].some(one => one.hasWork && one.endpoint.priority !== 'low')
    return new Set(isBusy && isAsked() ? await this.#ports.store.workers.withLowPriorityOnly() : [])
  }

  /** See `Occupant.pausableAtMs`. A worker with several GPUs, or with one that cannot be suspended, is not paused. */
  async #pausableAtMs(worker: WorkerLoad, endpoint: Endpoint | null): Promise<number | null> {
    const { placement, suspension, serves, problem } = worker
    if (endpoint?.preemptible !== true || serves !== null || problem !== null || suspension !== null) return null
    if (occupantPhase(worker) !== 'busy' || placement?.asked !== undefined) return null
    const hasGpus = (placement?.gpus ?? []).length > 0
    if (hasGpus && !(await this.#parts.suspender.maySuspend(worker))) return null
    return worker.pausableAtMs ?? 0
  }

  #sleepState(worker: WorkerLoad, endpoint: Endpoint | null, maySuspend: boolean): Occupant['sleep'] {
    const { id, state, version, placement, problem } = worker
    if (worker.asleepAtMs !== null) return 'asleep'
    if (worker.pause !== null && isFrozen(worker)) return (placement?.gpus ?? []).length > 0 ? 'falling' : null
    if (isFrozen(worker) && worker.suspension !== null) return 'falling'
    if (endpoint === null || (placement?.gpus ?? []).length === 0) return null
    if (!hasSleepHooks(worker) && !maySuspend) return null
    if (isFrozen(worker)) return this.#parts.workerFreezer.isFallingAsleep(id) ? 'falling' : null
    const isAble = state === 'READY' && problem === null && version === endpoint.version && freezesIdle(endpoint)
    return isAble ? 'able' : null
  }

  /** Workers of older versions of the server may use any GPU, so they end before a GPU is given to a new worker. */
  async #replaceUnplaced(occupants: readonly Occupant[]): Promise<void> {
    const isGpuWanted = this.#wishes().some(
      ({ wanted, placedBy, endpoint }) => wanted > 0 && placedBy === 'machine' && endpoint.compute.kind === 'gpu',
    )
    const unknown = occupants.filter(({ placement, phase }) => placement === null && phase !== 'leaving')
    if (isGpuWanted) for (const { workerId } of unknown) await this.#parts.fleet.drain(workerId, 'outdated')
  }

  async #wake({ endpointId, workerId }: Woken): Promise<void> {
    const refreshed = this.#endpoints.get(endpointId)
    if (refreshed === undefined) return
    const isWoken = ({ id }: WorkerLoad) => id === workerId
    const wake = refreshed.wakes.find(isWoken)
    // A paused one goes on, also of an older release.
    if (wake?.pause != null) await this.#parts.fleet.thaw(workerId, null, true)
    else await this.#parts.freezer.thaw(endpointId, refreshed.wakes.filter(isWoken), refreshed.version, true)
    this.#keep(endpointId, { ...refreshed, wakes: refreshed.wakes.filter(worker => !isWoken(worker)) })
  }

  /** Ends a paused worker that can never go on; its jobs go back without an attempt. */
  async #endStranded({ workerId, reason }: Stranded): Promise<void> {
    const worker = await this.#ports.store.workers.find(workerId)
    if (worker === null || !isPaused(worker)) return
    await this.#parts.fleet.endFaulty(worker, 'suspend_failed', { kind: 'not_resumed', said: reason })
  }

  async #evict({ workerId, endpointId, for: by, sleeps, endsSince, afterJob }: Eviction): Promise<void> {
    if (afterJob) await this.#parts.fleet.drain(workerId, 'evicted')
    // The store counts jobs, not requests.
    else if (this.#parts.balancing.inFlight(endpointId, workerId) > 0) return
    else if (sleeps) {
      const worker = await this.#ports.store.workers.find(workerId)
      if (worker !== null) await this.#parts.freezer.freeze(worker)
      return
    } else if (!(await this.#parts.fleet.evict(workerId))) return
    if (endsSince !== null) this.#endedSince.set(workerId, endsSince)
    this.#ports.emit('worker.evicted', { endpointId, workerId, for: by, afterJob, notSuspended: endsSince })
  }

  async #start({ placed }: PlacementDecision): Promise<void> {
    for (const { endpointId, placement, clamped } of placed) {
      const refreshed = this.#endpoints.get(endpointId)
      if (refreshed === undefined) continue
      const [oldestQueued = null, ...queued] = refreshed.queued
      const [resumedWorker, ...resumed] = refreshed.resumed
      const nowMs = this.#ports.clock.now()
      const downloaded = { downloadStartedAtMs: null, downloadEndedAtMs: null }
      const queuedWorker =
        resumedWorker === undefined
          ? oldestQueued
          : { queuedAtMs: nowMs, ...downloaded, ...oldestQueued, id: resumedWorker }
      this.#reportClamped(endpointId, refreshed.endpoint.version, clamped)
      // The queued worker that it replaces would count twice.
      if (resumedWorker !== undefined && oldestQueued !== null)
        await this.#ports.store.queuedWorkers.replace(endpointId, queued)
      await this.#parts.fleet.start(refreshed.endpoint, placement, queuedWorker, refreshed.released)
      const sinceMs = queued[0]?.queuedAtMs ?? nowMs
      this.#keep(endpointId, { ...refreshed, wanted: refreshed.wanted - 1, queued, resumed, sinceMs })
      if (refreshed.wanted === 1) await this.#keepQueued(endpointId, null)
    }
  }

  /** Sets the queued workers to the unplaced number, keeping the oldest, with the current reason. */
  async #keepQueued(id: EndpointId, unplaced: Unplaced | null): Promise<void> {
    const refreshed = this.#endpoints.get(id)
    if (refreshed === undefined) return
    const { version } = refreshed
    const { owner } = refreshed.endpoint
    const { count, resource, reason } = unplaced ?? { count: 0, resource: 'workers', reason: '' }
    const queuedAtMs = this.#ports.clock.now()
    const queued = Array.from({ length: Math.min(count, MAX_QUEUED_WORKERS) }, (_, index): QueuedWorker => {
      const existing = refreshed.queued[index]
      return {
        ...(existing ?? { id: this.#parts.fleet.newId(), owner, endpointId: id, version, queuedAtMs }),
        ...downloadTimes(existing, resource, queuedAtMs),
        resource,
        reason,
      }
    })
    this.#reportUnplaced(id, count, unplaced)
    if (JSON.stringify(queued) === JSON.stringify(refreshed.queued)) return
    await this.#ports.store.queuedWorkers.replace(id, queued)
    this.#keep(id, { ...refreshed, queued })
    // The circuit breaker has to open: no worker of it can ever be placed.
    if (unplaced !== null && isHopeless(unplaced)) this.#ports.notifier.publish(`load:${id}`)
  }

  #reportUnplaced(endpointId: EndpointId, count: number, unplaced: Unplaced | null): void {
    const { resource, reason } = unplaced ?? { resource: '', reason: '' }
    const report = count === 0 ? '' : `${count} ${reason}`
    if ((this.#reported.get(endpointId) ?? '') === report) return
    this.#reported.set(endpointId, report)
    this.#ports.emit('worker.unplaced', { endpointId, count, resource, reason })
  }

  #reportClamped(endpointId: EndpointId, version: number, problem: string | null): void {
    if (problem === null || this.#clamped.get(endpointId) === version) return
    this.#clamped.set(endpointId, version)
    this.#ports.emit('worker.clamped', { endpointId, problem })
  }
}

/** True if a suspended worker found too little room on its card a moment ago, although placement had given it. */
function hadNoRoom({ suspension, wakeWaitsFor, asleepAtMs }: WorkerLoad, nowMs: number): boolean {
  return suspension !== null && wakeWaitsFor !== null && nowMs - (asleepAtMs ?? 0) < RESUME_AGAIN_MS
}

/** Its workers wait for models. */
function lacksModels(endpointId: EndpointId, count: number, names: readonly string[]): Unplaced {
  const reason = names.length === 1 ? `model ${names[0]} is downloaded` : `models ${names.join(', ')} are downloaded`
  return { endpointId, count, resource: 'models', reason }
}

/** The times at which a queued worker began and ended its wait for models. */
function downloadTimes(
  there: QueuedWorker | undefined,
  resource: QueuedWorker['resource'],
  nowMs: number,
): Pick<QueuedWorker, 'downloadStartedAtMs' | 'downloadEndedAtMs'> {
  if (resource === 'models')
    return { downloadStartedAtMs: there?.downloadStartedAtMs ?? nowMs, downloadEndedAtMs: null }
  const downloadStartedAtMs = there?.downloadStartedAtMs ?? null
  const downloadEndedAtMs = downloadStartedAtMs === null ? null : (there?.downloadEndedAtMs ?? nowMs)
  return { downloadStartedAtMs, downloadEndedAtMs }
}

/** Memory that a suspend of a worker copies, as measured, else its share, in MiB; null if unknown. */
function copyMb(worker: WorkerLoad, cards: ReadonlyMap<string, CardUse> | undefined): number | null {
  const [gpu] = worker.placement?.gpus ?? []
  // A worker that was asked to sleep keeps an unknown part.
  if (gpu === undefined || worker.suspension !== null || hasSleepHooks(worker)) return null
  return cards?.get(gpuKey(gpu))?.ownMb.get(worker.id) ?? gpu.shareMb ?? null
}

/** True if an endpoint wants workers. */
function wishes({ wanted, wakes }: Pick<RefreshedEndpoint, 'wanted' | 'wakes'>): boolean {
  return wanted > 0 || wakes.length > 0
}

/**
 * Start of its readiness. For a worker that can sleep it begins again with its wake; else two of them would take
 * turns without end.
 */
function readinessStartMs({ readyAtMs, thawedAtMs }: WorkerLoad, sleep: Occupant['sleep']): number | null {
  return readyAtMs !== null && sleep !== null ? Math.max(readyAtMs, thawedAtMs ?? 0) : readyAtMs
}

/** Start of its start or its resume; null for one that works. */
function startMs(worker: WorkerLoad): number | null {
  const { placedAtMs, createdAtMs, thawedAtMs } = worker
  return occupantPhase(worker) === 'starting' ? Math.max(placedAtMs ?? createdAtMs, thawedAtMs ?? 0) : null
}

function occupantPhase(worker: WorkerLoad): Occupant['phase'] {
  if (isFrozen(worker)) return worker.pause === null ? 'frozen' : 'paused'
  if (!takesJobs(worker)) return 'leaving'
  // Nothing takes the place of a task.
  if (worker.serves?.once === true && worker.state === 'READY') return 'once'
  if (worker.state === 'STARTING' || worker.suspension !== null || worker.pause !== null) return 'starting'
  return worker.held > 0 ? 'busy' : 'idle'
}
