import type { Endpoint } from '../core/endpoints/endpoint.ts'
import type { EndpointId, WorkerId } from '../core/ids.ts'
import { placeWorkers } from '../core/placement/place.ts'
import { isHopeless } from '../core/placement/placement-failure.ts'
import type {
  Eviction,
  Occupant,
  PlacementDecision,
  PlacementRules,
  Tenant,
  Unplaced,
} from '../core/placement/placement-input.ts'
import { earliest } from '../core/scaling/plan.ts'
import type { EndpointSnapshot } from '../core/scaling/scale.ts'
import { MAX_QUEUED_WORKERS, type QueuedWorker, UNPLACED } from '../core/workers/placement.ts'
import { takesJobs, type WorkerLoad } from '../core/workers/worker.ts'
import type { Ports } from '../ports/ports.ts'
import type { Quotas } from '../services/accounts/quotas.ts'
import type { Balancing } from '../services/balancing/balancing.ts'
import type { Fleet } from '../services/workers/fleet.ts'

type PlacerPorts = Pick<Ports, 'store' | 'driver' | 'machine' | 'clock' | 'notifier' | 'emit'>

/** An endpoint as it was when it was looked at last. */
interface Known {
  readonly endpoint: Endpoint
  readonly lookedAtMs: number
  readonly hasWork: boolean
  /** Those that wait for a place, as the store has them. */
  readonly queued: readonly QueuedWorker[]
  /** Workers that have ended and that are to be started again before others. */
  readonly resumed: readonly WorkerId[]
  /** How many more workers it wants. */
  readonly wanted: number
  /** Whether its workers are held to their limits, as containers are. */
  readonly limited: boolean
  /** Since when it wants one in vain. */
  readonly sinceMs: number
}

/** While workers wait for a place, it is looked again at least this often. */
const LOOK_AGAIN_MS = 5_000

/**
 * Gives the machine to the workers that endpoints want, as core/place decides, and keeps those without a place as queued
 * workers, with what they wait for. Knows every endpoint as it was looked at last.
 */
export class Placer {
  readonly #ports: PlacerPorts
  readonly #fleet: Fleet
  readonly #balancing: Balancing
  readonly #rules: PlacementRules
  readonly #quotas: Pick<Quotas, 'limitsOf'>
  readonly #known = new Map<EndpointId, Known>()
  /** What was told of each endpoint last: the number that waits, and why. */
  readonly #told = new Map<EndpointId, string>()
  /** Endpoints and versions of which it was told that they get less than they ask for. */
  readonly #clamped = new Map<EndpointId, number>()

  constructor(
    ports: PlacerPorts,
    parts: { readonly fleet: Fleet; readonly balancing: Balancing; readonly quotas: Pick<Quotas, 'limitsOf'> },
    rules: PlacementRules,
  ) {
    this.#ports = ports
    this.#fleet = parts.fleet
    this.#balancing = parts.balancing
    this.#rules = rules
    this.#quotas = parts.quotas
  }

  /** An endpoint was looked at. @param wanted how many more workers it wants, and could start if there were room */
  async noteWish(snapshot: EndpointSnapshot, wanted: number, nowMs: number): Promise<void> {
    const { endpoint, queue, queuedWorkers, requests } = snapshot
    const { id, owner, templateId } = endpoint
    const before = this.#known.get(id)
    const template = wanted > 0 ? await this.#ports.store.templates.find(owner, templateId) : null
    const limited = template === null ? (before?.limited ?? true) : !template.image.startsWith('dir:')
    const waitedMs = before !== undefined && before.wanted > 0 ? before.sinceMs : nowMs
    const sinceMs = Math.min(waitedMs, queuedWorkers[0]?.queuedAtMs ?? waitedMs, nowMs)
    const hasWork = queue.queued > 0
    const resumed = requests?.resumed ?? []
    const known = { endpoint, lookedAtMs: nowMs, hasWork, queued: queuedWorkers, resumed, wanted, limited, sinceMs }
    this.#known.set(id, known)
    if (wanted === 0) await this.#keepQueued(id, null)
  }

  /** An endpoint is gone. */
  forget(id: EndpointId): void {
    this.#known.delete(id)
    this.#told.delete(id)
    this.#clamped.delete(id)
  }

  /**
   * Places what can be placed.
   * @param look looks at an endpoint again and notes what it wants
   * @returns when to come again if nothing happens before; null when nobody waits
   */
  async step(nowMs: number, look: (id: EndpointId) => Promise<void>): Promise<number | null> {
    for (;;) {
      if (![...this.#known.values()].some(({ wanted }) => wanted > 0)) return null
      const decision = await this.#decide(nowMs)
      const concerned = [...decision.placed, ...decision.evictions].map(({ endpointId }) => endpointId)
      const stale = concerned.find(id => this.#known.has(id) && this.#known.get(id)!.lookedAtMs !== nowMs)
      if (stale !== undefined) {
        await look(stale)
        continue
      }
      for (const eviction of decision.evictions) await this.#evict(eviction)
      await this.#start(decision)
      for (const unplaced of decision.unplaced) await this.#keepQueued(unplaced.endpointId, unplaced)
      return earliest([decision.wakeAtMs, nowMs + LOOK_AGAIN_MS])
    }
  }

  async #decide(nowMs: number): Promise<PlacementDecision> {
    const { store, machine, driver } = this.#ports
    const [parts, capacity] = [await machine.parts(), await driver.capacity()]
    const occupants = await this.#occupants(this.#balancing.loaded(await store.workers.loads()))
    if (parts.gpus.length > 0) await this.#replaceUnknown(occupants)
    const tenants = this.#tenants()
    const quotas = new Map(tenants.map(({ owner }) => [owner, this.#quotas.limitsOf(owner)]))
    return placeWorkers({ parts, capacity, occupants, tenants, quotas, rules: this.#rules, nowMs })
  }

  #tenants(): Tenant[] {
    return [...this.#known.values()].map(({ endpoint, wanted, limited, sinceMs, hasWork }) => {
      const { id, owner, name, compute, workersMin } = endpoint
      return { id, owner, name, compute, workersMin, limited, wanted, sinceMs, hasWork }
    })
  }

  async #occupants(loads: readonly WorkerLoad[]): Promise<Occupant[]> {
    const occupants: Occupant[] = []
    for (const worker of loads) {
      const { id: workerId, endpointId, owner, readyAtMs, idleSinceMs } = worker
      const known = this.#known.get(endpointId)?.endpoint
      const endpoint = known ?? (await this.#ports.store.endpoints.find(endpointId))
      const placement = worker.placement ?? (endpoint?.compute.kind === 'gpu' ? null : UNPLACED)
      occupants.push({
        workerId,
        endpointId,
        owner,
        endpointName: endpoint?.name ?? endpointId,
        placement,
        phase: phaseOf(worker),
        readyAtMs,
        idleSinceMs,
      })
    }
    return occupants
  }

  /** Workers of an older version may use any GPU, so they end before one is given to somebody. */
  async #replaceUnknown(occupants: readonly Occupant[]): Promise<void> {
    const isGpuWanted = [...this.#known.values()].some(
      ({ wanted, endpoint }) => wanted > 0 && endpoint.compute.kind === 'gpu',
    )
    const unknown = occupants.filter(({ placement, phase }) => placement === null && phase !== 'leaving')
    if (isGpuWanted) for (const { workerId } of unknown) await this.#fleet.drain(workerId, 'outdated')
  }

  async #evict({ workerId, endpointId, for: by, afterJob }: Eviction): Promise<void> {
    if (afterJob) await this.#fleet.drain(workerId, 'evicted')
    // The store knows of jobs and not of requests.
    else if (this.#balancing.inFlight(endpointId, workerId) > 0) return
    else if (!(await this.#fleet.evict(workerId))) return
    this.#ports.emit('worker.evicted', { endpointId, workerId, for: by, afterJob })
  }

  async #start({ placed }: PlacementDecision): Promise<void> {
    for (const { endpointId, placement, clamped } of placed) {
      const known = this.#known.get(endpointId)
      if (known === undefined) continue
      const [waited = null, ...queued] = known.queued
      const [again, ...resumed] = known.resumed
      const nowMs = this.#ports.clock.now()
      const first = again === undefined ? waited : { id: again, queuedAtMs: waited?.queuedAtMs ?? nowMs }
      this.#tellClamped(endpointId, known.endpoint.version, clamped)
      // Under its own id it would count twice.
      if (again !== undefined && waited !== null) await this.#ports.store.queuedWorkers.replace(endpointId, queued)
      await this.#fleet.start(known.endpoint, placement, first)
      const sinceMs = queued[0]?.queuedAtMs ?? nowMs
      this.#known.set(endpointId, { ...known, wanted: known.wanted - 1, queued, resumed, sinceMs })
      if (known.wanted === 1) await this.#keepQueued(endpointId, null)
    }
  }

  /** Makes the workers that wait for a place so many, the oldest first, and keeps their reasons true. */
  async #keepQueued(id: EndpointId, unplaced: Unplaced | null): Promise<void> {
    const known = this.#known.get(id)
    if (known === undefined) return
    const { owner, version } = known.endpoint
    const { count, resource, reason } = unplaced ?? { count: 0, resource: 'workers', reason: '' }
    const queuedAtMs = this.#ports.clock.now()
    const queued = Array.from({ length: Math.min(count, MAX_QUEUED_WORKERS) }, (_, index): QueuedWorker => {
      const there = known.queued[index]
      return {
        ...(there ?? { id: this.#fleet.newId(), owner, endpointId: id, version, queuedAtMs }),
        resource,
        reason,
      }
    })
    this.#tellUnplaced(id, count, unplaced)
    if (JSON.stringify(queued) === JSON.stringify(known.queued)) return
    await this.#ports.store.queuedWorkers.replace(id, queued)
    this.#known.set(id, { ...known, queued })
    // Whoever waits for a worker of it waits in vain.
    if (unplaced !== null && isHopeless(unplaced)) this.#ports.notifier.publish(`load:${id}`)
  }

  #tellUnplaced(endpointId: EndpointId, count: number, unplaced: Unplaced | null): void {
    const { resource, reason } = unplaced ?? { resource: '', reason: '' }
    const told = count === 0 ? '' : `${count} ${reason}`
    if ((this.#told.get(endpointId) ?? '') === told) return
    this.#told.set(endpointId, told)
    this.#ports.emit('worker.unplaced', { endpointId, count, resource, reason })
  }

  #tellClamped(endpointId: EndpointId, version: number, problem: string | null): void {
    if (problem === null || this.#clamped.get(endpointId) === version) return
    this.#clamped.set(endpointId, version)
    this.#ports.emit('worker.clamped', { endpointId, problem })
  }
}

function phaseOf(worker: WorkerLoad): Occupant['phase'] {
  if (!takesJobs(worker)) return 'leaving'
  if (worker.state === 'STARTING') return 'starting'
  return worker.held > 0 ? 'busy' : 'idle'
}
