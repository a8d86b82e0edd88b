import {
  type BalancedSnapshot,
  balancedEndpoint,
  balancingTargets,
  type ServingWorker,
  withRequests,
  withTraffic,
} from '../../core/balancing/balanced.ts'
import { findOpenCircuit } from '../../core/balancing/circuit-breaker.ts'
import { uncheckedHealth } from '../../core/balancing/health-check.ts'
import { type EndpointCounters, idleTimeoutMs } from '../../core/endpoints/endpoint.ts'
import { savedEnv } from '../../core/endpoints/saved-env.ts'
import { isHealthPath, readMaxConcurrency, servingVariables } from '../../core/endpoints/serving.ts'
import type { EndpointId, OwnerId, WorkerId } from '../../core/ids.ts'
import { MaxWindow } from '../../core/scaling/max-window.ts'
import { desiredWorkers, type EndpointSnapshot } from '../../core/scaling/scale.ts'
import type { ServedAt } from '../../core/workers/socket-address.ts'
import type { StartFailure } from '../../core/workers/start-failure.ts'
import { isFrozen, type WorkerLoad } from '../../core/workers/worker.ts'
import type { Ports } from '../../ports/ports.ts'
import type { EndpointQueue } from '../../ports/store/metric-store.ts'
import type { Targets, Traffic } from '../../ports/targets.ts'
import { isOnMachine } from '../endpoints/host-folders.ts'
import { resolvedServing, ServingVariables } from '../endpoints/serving-variables.ts'

/** A worker of a load-balancing endpoint that has not ended. */
export interface BalancedWorker extends ServingWorker {
  readonly worker: WorkerLoad
  /** Time at which this server first saw it running, of the monotonic clock; null before its start. */
  readonly runsSinceMs: number | null
  /** True if it gets no more requests, which never changes back. */
  readonly isLeaving: boolean
  /** The path of its health check, secrets resolved; null before the first check. */
  readonly healthPath: string | null
}

/** Longest time in which a worker starts for a {@link LoadBalancer.warm}, in milliseconds; limit of such endpoints. */
const WARMING_MS = 600_000
const MAX_WARMING = 10_000

/** Limit of ended workers that one refresh checks because requests wait for them by name. */
const MAX_RESUMED = 16

/** Requests of an endpoint that ended and are not stored yet. */
type PendingRequests = (id: EndpointId) => Pick<EndpointCounters, 'completed' | 'failed'>
const NO_REQUESTS = { completed: 0, failed: 0 }

/** The part of an endpoint's environment that concerns requests, with the version that has it. */
interface Settings {
  readonly version: number
  /** The variables that define how its workers serve, with secrets as references. */
  readonly env: Readonly<Record<string, string>>
  readonly maxConcurrency: number | null
  /** True for workers that are processes, whose ports the driver chooses. */
  readonly isFolder: boolean
}

/** The refreshes of one endpoint, which may end in another order than they began. */
interface Refreshes {
  /** Number of refreshes that have not ended. */
  open: number
  /** Number of the latest read that counted; an earlier read that ends later changes nothing. */
  latest: number
  /** True if the gateway knows the endpoint. */
  isPublished: boolean
}

/**
 * Connects load-balancing endpoints with the gateway and the loops: publishes to the gateway the workers that may get
 * requests, and shows the loops the requests as the load of those workers. The health of workers is in memory only,
 * so after a restart of the server no worker gets requests before its first health check.
 */
export class LoadBalancer {
  readonly #ports
  /** Instant at which this server began to act: older workers were started by an earlier run. */
  readonly #beganAtMs
  readonly #variables
  readonly #targets: Targets
  readonly #traffic: Traffic
  readonly #startAware
  readonly #workers = new Map<WorkerId, BalancedWorker>()
  readonly #settings = new Map<EndpointId, Settings>()
  readonly #peaks = new Map<EndpointId, MaxWindow>()
  /** Monotonic instants until which a worker is to start, by endpoint. */
  readonly #warming = new Map<EndpointId, number>()
  /** Of each endpoint that the gateway knows, and of those with an open refresh. */
  readonly #refreshes = new Map<EndpointId, Refreshes>()
  #reads = 0
  #onNewWorker: () => void = () => {}
  #pendingRequests: PendingRequests = () => NO_REQUESTS

  /**
   * @param requests the request queues, which count requests and need the workers
   * @param startAware as in {@link EndpointSnapshot}
   */
  constructor(ports: Ports, requests: Targets & Traffic, startAware = false) {
    this.#ports = ports
    this.#beganAtMs = ports.clock.now()
    this.#startAware = startAware
    this.#variables = new ServingVariables(ports)
    this.#targets = requests
    this.#traffic = requests
  }

  /** An endpoint from the store, with its requests if it balances load. Null for one that does not exist. */
  async snapshot(id: EndpointId): Promise<EndpointSnapshot | null> {
    const snapshot = await this.#read(id)
    if (snapshot?.endpoint.type !== 'LOAD_BALANCER') return snapshot
    return this.#withTraffic(snapshot, await this.#readSettings(snapshot), null)
  }

  /** A snapshot that was read from the store, with the requests of the endpoint if it balances load. */
  counted(snapshot: EndpointSnapshot): EndpointSnapshot {
    const { id, type } = snapshot.endpoint
    if (type !== 'LOAD_BALANCER') return snapshot
    return this.#withTraffic(snapshot, { maxConcurrency: this.#settings.get(id)?.maxConcurrency ?? null }, null)
  }

  /**
   * As {@link snapshot}, and publishes the endpoint and its workers to the gateway. The requests are read after that,
   * so a draining worker without requests gets none later.
   */
  async refresh(id: EndpointId): Promise<EndpointSnapshot | null> {
    const refreshes = this.#refreshes.get(id) ?? { open: 0, latest: 0, isPublished: false }
    this.#refreshes.set(id, refreshes)
    refreshes.open += 1
    this.#reads += 1
    try {
      return await this.#refresh(id, this.#reads, refreshes)
    } finally {
      refreshes.open -= 1
      if (refreshes.open === 0 && !refreshes.isPublished) this.#refreshes.delete(id)
    }
  }

  async #read(id: EndpointId): Promise<EndpointSnapshot | null> {
    const snapshot = await this.#ports.store.endpoints.snapshot(id)
    if (snapshot === null) return null
    const warming = this.#isWarming(snapshot)
    return { ...snapshot, ...(this.#startAware && { startAware: true }), ...(warming && { warming }) }
  }

  /**
   * Has a worker of an endpoint start although nothing needs it yet. Once one is ready, or after ten minutes, the
   * endpoint scales as before: the worker ends after its idle time.
   */
  warm(id: EndpointId): void {
    if (this.#warming.size >= MAX_WARMING) this.#warming.clear()
    this.#warming.set(id, this.#ports.clock.monotonic() + WARMING_MS)
    this.#ports.notifier.publish(`load:${id}`)
  }

  #isWarming({ endpoint: { id }, workers }: EndpointSnapshot): boolean {
    const untilMs = this.#warming.get(id)
    if (untilMs === undefined) return false
    const isReady = workers.some(worker => worker.state === 'READY' && !isFrozen(worker))
    const goesOn = !isReady && this.#ports.clock.monotonic() < untilMs
    if (!goesOn) this.#warming.delete(id)
    return goesOn
  }

  async #refresh(id: EndpointId, read: number, refreshes: Refreshes): Promise<EndpointSnapshot | null> {
    const snapshot = await this.#read(id)
    const settings = snapshot?.endpoint.type === 'LOAD_BALANCER' ? await this.#readSettings(snapshot) : null
    const counts = refreshes.latest < read
    if (counts) refreshes.latest = read
    if (snapshot === null || settings === null) {
      if (counts) this.#forget(id, refreshes)
      // Its workers may still have requests from the time before it became a queue endpoint.
      return snapshot === null ? null : { ...snapshot, workers: this.loaded(snapshot.workers) }
    }
    if (counts) {
      refreshes.isPublished = true
      this.#settings.set(id, settings)
      this.#addWorkers(snapshot, settings)
      this.#publish(snapshot, settings)
    }
    const loaded = this.#withTraffic(snapshot, settings, null)
    const nowMs = this.#ports.clock.now()
    const window = this.#peaks.get(id) ?? new MaxWindow()
    if (refreshes.isPublished) this.#peaks.set(id, window)
    const peak = window.note(desiredWorkers(loaded, nowMs).desired, idleTimeoutMs(snapshot.endpoint), nowMs)
    const resumed: WorkerId[] = []
    for (const workerId of loaded.requests.resumed.slice(0, MAX_RESUMED)) {
      if (await canResume(this.#ports, id, workerId)) resumed.push(workerId)
    }
    return { ...loaded, requests: { ...loaded.requests, peak, resumed } }
  }

  /**
   * Opens the circuit breaker of an endpoint whose requests wait for workers that cannot start, or closes it.
   * @param snapshot of {@link refresh}
   * @param startFailure reason why no worker can start; null when one can, or no worker is wanted
   */
  setCircuit(snapshot: EndpointSnapshot, startFailure: StartFailure | null, nowMs: number): void {
    const { endpoint, queue, requests } = snapshot
    if (requests === undefined) return
    const hasWaiting = queue.queued > 0 || requests.resumed.length > 0
    this.#targets.setCircuit(endpoint.id, hasWaiting ? findOpenCircuit(snapshot, { startFailure, nowMs }) : null)
  }

  /** Workers with their requests, as {@link snapshot} has them. */
  loaded(workers: readonly WorkerLoad[]): WorkerLoad[] {
    const byEndpoint = new Map<EndpointId, ReturnType<Traffic['load']>>()
    return workers.map(worker => {
      if (worker.serves === null) return worker
      const { id, endpointId } = worker
      const load = byEndpoint.get(endpointId) ?? this.#traffic.load(endpointId)
      byEndpoint.set(endpointId, load)
      const workerLoad = load.workers.find(({ workerId }) => workerId === id)
      return withRequests(worker, workerLoad, this.#workers.get(id))
    })
  }

  /** The queues of the endpoints in which requests wait or are in flight. */
  queues(): readonly EndpointQueue[] {
    return [...this.#settings.keys()].flatMap(endpointId => {
      const { waiting, workers } = this.#traffic.load(endpointId)
      const inProgress = workers.reduce((sum, { inFlight }) => sum + inFlight, 0)
      return waiting + inProgress === 0 ? [] : [{ endpointId, waiting, inProgress }]
    })
  }

  /** Calls back when a refresh finds a new worker. */
  onNewWorker(learned: () => void): void {
    this.#onNewWorker = learned
  }

  /** Adds requests that ended and are not stored yet to the counters of snapshots. */
  addPending(pendingRequests: PendingRequests): void {
    this.#pendingRequests = pendingRequests
  }

  /** Number of requests that a worker has in flight. */
  inFlight(endpointId: EndpointId, workerId: WorkerId): number {
    const { workers } = this.#traffic.load(endpointId)
    return workers.find(worker => worker.workerId === workerId)?.inFlight ?? 0
  }

  /** Milliseconds in which a worker had requests in flight, since the gateway got it. */
  busyMs(endpointId: EndpointId, workerId: WorkerId): number {
    return this.#traffic.busyMs(endpointId, workerId)
  }

  /** All workers that serve requests and have not ended, as of the last refresh of their endpoints. */
  workers(): BalancedWorker[] {
    return [...this.#workers.values()]
  }

  /** A worker that serves requests; undefined for one that has ended or serves none. */
  worker(id: WorkerId): BalancedWorker | undefined {
    return this.#workers.get(id)
  }

  /** Stores results of a health check, unless the worker ended in the meantime. */
  note(id: WorkerId, changes: Partial<Pick<BalancedWorker, 'health' | 'servedAt' | 'healthPath'>>): void {
    const worker = this.#workers.get(id)
    if (worker !== undefined) this.#workers.set(id, this.#withPort({ ...worker, ...changes }))
  }

  /**
   * The path of a worker's health check; null for a secret that was removed or is no path. A worker has the value of
   * its start, so the path does not change while this server runs.
   */
  async healthPath({ worker: { id, owner, serves }, healthPath }: BalancedWorker): Promise<string | null> {
    if (healthPath !== null) return healthPath
    const { HEALTH_CHECK_PATH: path = '' } = await resolvedServing(this.#ports, owner, {
      HEALTH_CHECK_PATH: serves?.healthPath ?? '/',
    })
    if (!isHealthPath(path)) return null
    this.note(id, { healthPath: path })
    return path
  }

  /** Stops listening to changes. */
  close(): void {
    this.#variables.close()
  }

  #forget(id: EndpointId, refreshes: Refreshes): void {
    if (!refreshes.isPublished) return
    refreshes.isPublished = false
    this.#targets.forget(id)
    for (const { worker } of this.workers()) if (worker.endpointId === id) this.#workers.delete(worker.id)
    for (const map of [this.#settings, this.#peaks]) map.delete(id)
  }

  #addWorkers({ endpoint, workers }: EndpointSnapshot, { isFolder }: Settings): void {
    const nowMs = this.#ports.clock.monotonic()
    const alive = new Set(workers.map(({ id }) => id))
    for (const { worker } of this.workers()) {
      if (worker.endpointId === endpoint.id && !alive.has(worker.id)) this.#workers.delete(worker.id)
    }
    for (const worker of workers) {
      if (worker.serves === null) continue
      const previous = this.#workers.get(worker.id)
      if (previous === undefined) this.#onNewWorker()
      // Of an adopted one the start may not have been stored: then its address shows that it runs. A platform of nodes
      // gives addresses before images are there, and reports starts itself.
      const isAdopted = worker.createdAtMs < this.#beganAtMs && worker.placement?.asked === undefined
      const isRunning = worker.startedAtMs !== null || (isAdopted && (previous?.servedAt ?? null) !== null)
      const runsSinceMs = previous?.runsSinceMs ?? (isRunning ? nowMs : null)
      const isLeaving = previous?.isLeaving === true || worker.state === 'DRAINING' || worker.state === 'STOPPING'
      const port = previous?.port ?? (isFolder ? 0 : worker.serves.healthPort)
      const isSame = previous !== undefined && previous.worker.thawedAtMs === worker.thawedAtMs
      // Health from before a freeze no longer counts.
      const health = isSame ? previous.health : uncheckedHealth(nowMs, worker.readyAtMs !== null)
      if (previous !== undefined && !isSame) this.#onNewWorker()
      const servedAt: ServedAt | null = previous?.servedAt ?? null
      const healthPath = previous?.healthPath ?? null
      const next = { worker, runsSinceMs, isLeaving, port, health, servedAt, healthPath }
      this.#workers.set(worker.id, this.#withPort(next))
    }
  }

  /** The driver chooses the ports of workers without a container. */
  #withPort(worker: BalancedWorker): BalancedWorker {
    return worker.port === 0 && worker.servedAt !== null ? { ...worker, port: worker.servedAt.health.port } : worker
  }

  #publish(snapshot: EndpointSnapshot, { maxConcurrency }: Settings): void {
    const targets = balancingTargets(snapshot.workers, id => this.#workers.get(id)).map(target =>
      this.#workers.get(target.workerId)?.isLeaving === true ? { ...target, state: 'draining' as const } : target,
    )
    this.#targets.keep(balancedEndpoint(snapshot, maxConcurrency), targets)
  }

  #withTraffic(
    snapshot: EndpointSnapshot,
    { maxConcurrency }: Pick<Settings, 'maxConcurrency'>,
    peak: number | null,
  ): BalancedSnapshot {
    const { id } = snapshot.endpoint
    const { counters, ...balanced } = withTraffic(
      snapshot,
      this.#traffic.load(id),
      workerId => this.#workers.get(workerId),
      { maxConcurrency, peak },
    )
    const { completed, failed } = this.#pendingRequests(id)
    const sums = { completed: counters.completed + completed, failed: counters.failed + failed }
    return { ...balanced, counters: { ...counters, ...sums } }
  }

  /**
   * A change of the environment makes a new version; a change of a secret does not, so the limit is read each time.
   */
  async #readSettings({ endpoint }: EndpointSnapshot): Promise<Settings> {
    const { id, owner, templateId, version } = endpoint
    const cached = this.#settings.get(id)
    if (cached?.version === version) return this.#withLimit(owner, cached)
    const template = await this.#ports.store.templates.find(owner, templateId)
    if (template === null) return cached ?? { version, env: {}, maxConcurrency: null, isFolder: false }
    const env = servingVariables(savedEnv(endpoint, template))
    return this.#withLimit(owner, {
      version,
      env,
      maxConcurrency: null,
      isFolder: isOnMachine(this.#ports, template.image),
    })
  }

  async #withLimit(owner: OwnerId, settings: Settings): Promise<Settings> {
    return { ...settings, maxConcurrency: readMaxConcurrency(await this.#variables.of(owner, settings.env)) }
  }
}

/**
 * True if a worker of this endpoint has ended and still has its record, so that it can be started again under its id.
 */
export async function canResume({ store }: Ports, endpointId: EndpointId, workerId: WorkerId): Promise<boolean> {
  const worker = await store.workers.find(workerId)
  return worker !== null && worker.endpointId === endpointId && worker.state === 'EXITED' && worker.serves !== null
}
