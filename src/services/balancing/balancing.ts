import {
  type BalancedSnapshot,
  balancedEndpoint,
  type ServingWorker,
  targetsOf,
  withRequests,
  withTraffic,
} from '../../core/balancing/balanced.ts'
import { openCircuitOf } from '../../core/balancing/circuit-breaker.ts'
import { unasked } from '../../core/balancing/health-check.ts'
import { idleTimeoutMs } from '../../core/endpoints/endpoint.ts'
import { savedEnv } from '../../core/endpoints/saved-env.ts'
import { isHealthPath, maxConcurrencyOf, servingVariables } from '../../core/endpoints/serving.ts'
import { isFolderImage } from '../../core/endpoints/template.ts'
import type { EndpointId, OwnerId, WorkerId } from '../../core/ids.ts'
import { MaxWindow } from '../../core/scaling/max-window.ts'
import { desiredWorkers, type EndpointSnapshot } from '../../core/scaling/scale.ts'
import type { ServedAt } from '../../core/workers/socket-address.ts'
import type { StartFailure } from '../../core/workers/start-failure.ts'
import type { WorkerLoad } from '../../core/workers/worker.ts'
import type { Ports } from '../../ports/ports.ts'
import type { Targets, Traffic } from '../../ports/targets.ts'
import { resolvedServing, ServingVariables } from '../endpoints/serving-variables.ts'
import { canResume } from './can-resume.ts'

/** A worker of a load-balancing endpoint that has not ended. */
export interface KnownWorker extends ServingWorker {
  readonly worker: WorkerLoad
  /** Since when it runs, as far as this server looked, of a clock that only grows; null until it was started. */
  readonly runsSinceMs: number | null
  /** Whether it was told of as one that gets nothing more, which stays so. */
  readonly isLeaving: boolean
  /** The path that it is asked for its health at, secrets resolved; null before it is asked for the first time. */
  readonly healthPath: string | null
}

/** So many workers that requests wait for by name are looked for at once. */
const MAX_RESUMED = 16

/** What of an endpoint's environment concerns its requests, by the version that has it. */
interface Settings {
  readonly version: number
  /** The variables that say how its workers serve, secrets as references. */
  readonly env: Readonly<Record<string, string>>
  readonly maxConcurrency: number | null
  /** Whether its workers run without a container, so that the driver chooses their ports. */
  readonly isFolder: boolean
}

/** The looks at one endpoint, which may end in another order than they began in. */
interface Looks {
  /** How many have not ended. */
  open: number
  /** The last read that counted; an earlier one that comes later tells nothing. */
  latest: number
  /** Whether the gateway knows of the endpoint. */
  told: boolean
}

/**
 * Load-balancing endpoints between the gateway and the loops: tells the gateway of workers that requests may be sent to, and shows
 * everybody else the requests as what those workers have to do. Keeps the health of workers in memory, so after a restart of the
 * server nothing is sent to a worker before it was asked.
 */
export class Balancing {
  readonly #ports: Pick<Ports, 'store' | 'clock' | 'vault'>
  readonly #variables: ServingVariables
  readonly #targets: Targets
  readonly #traffic: Traffic
  readonly #workers = new Map<WorkerId, KnownWorker>()
  readonly #settings = new Map<EndpointId, Settings>()
  readonly #peaks = new Map<EndpointId, MaxWindow>()
  /** Of each endpoint that was told of, and of those that are being looked at. */
  readonly #looks = new Map<EndpointId, Looks>()
  #reads = 0
  #learned: () => void = () => {}

  /** @param requests where they are counted, and who has to know of workers */
  constructor(ports: Pick<Ports, 'store' | 'clock' | 'vault' | 'notifier'>, requests: Targets & Traffic) {
    this.#ports = ports
    this.#variables = new ServingVariables(ports)
    this.#targets = requests
    this.#traffic = requests
  }

  /** An endpoint as the store has it, with its requests where it has some. Null when it is gone. */
  async snapshot(id: EndpointId): Promise<EndpointSnapshot | null> {
    const snapshot = await this.#ports.store.endpoints.snapshot(id)
    if (snapshot?.endpoint.type !== 'LOAD_BALANCER') return snapshot
    return this.#withTraffic(snapshot, await this.#settingsOf(snapshot), null)
  }

  /**
   * As {@link snapshot}, and tells the gateway of the endpoint and its workers. What the answer says of requests comes after
   * that: a worker that drains and holds nothing gets nothing any more.
   */
  async refresh(id: EndpointId): Promise<EndpointSnapshot | null> {
    const looks = this.#looks.get(id) ?? { open: 0, latest: 0, told: false }
    this.#looks.set(id, looks)
    looks.open += 1
    this.#reads += 1
    try {
      return await this.#refresh(id, this.#reads, looks)
    } finally {
      looks.open -= 1
      if (looks.open === 0 && !looks.told) this.#looks.delete(id)
    }
  }

  async #refresh(id: EndpointId, read: number, looks: Looks): Promise<EndpointSnapshot | null> {
    const snapshot = await this.#ports.store.endpoints.snapshot(id)
    const settings = snapshot?.endpoint.type === 'LOAD_BALANCER' ? await this.#settingsOf(snapshot) : null
    const counts = looks.latest < read
    if (counts) looks.latest = read
    if (snapshot === null || settings === null) {
      if (counts) this.#forget(id, looks)
      // What its workers have from before it was given a queue.
      return snapshot === null ? null : { ...snapshot, workers: this.loaded(snapshot.workers) }
    }
    if (counts) {
      looks.told = true
      this.#settings.set(id, settings)
      this.#learn(snapshot, settings)
      this.#tell(snapshot, settings)
    }
    const seen = this.#withTraffic(snapshot, settings, null)
    const nowMs = this.#ports.clock.now()
    const peak = this.#peaks.get(id) ?? new MaxWindow()
    if (looks.told) this.#peaks.set(id, peak)
    const most = peak.note(desiredWorkers(seen, nowMs).desired, idleTimeoutMs(snapshot.endpoint), nowMs)
    const resumed: WorkerId[] = []
    for (const workerId of seen.requests.resumed.slice(0, MAX_RESUMED)) {
      if (await canResume(this.#ports.store, id, workerId)) resumed.push(workerId)
    }
    return { ...seen, requests: { ...seen.requests, peak: most, resumed } }
  }

  /**
   * Tells the gateway whether requests wait in vain, so that they are refused with the cause.
   * @param snapshot as {@link look} gave it
   * @param startFailure why no worker of it can be started; null when one can, or none is wanted
   */
  setCircuit(snapshot: EndpointSnapshot, startFailure: StartFailure | null, nowMs: number): void {
    const { endpoint, queue, requests } = snapshot
    if (requests === undefined) return
    const isAsked = queue.queued > 0 || requests.resumed.length > 0
    this.#targets.setCircuit(endpoint.id, isAsked ? openCircuitOf(snapshot, { startFailure, nowMs }) : null)
  }

  /** Workers with the requests that they have, as {@link snapshot} shows them. */
  loaded(workers: readonly WorkerLoad[]): WorkerLoad[] {
    const byEndpoint = new Map<EndpointId, ReturnType<Traffic['load']>>()
    return workers.map(worker => {
      if (worker.serves === null) return worker
      const { id, endpointId } = worker
      const load = byEndpoint.get(endpointId) ?? this.#traffic.load(endpointId)
      byEndpoint.set(endpointId, load)
      const own = load.workers.find(({ workerId }) => workerId === id)
      return withRequests(worker, own, this.#workers.get(id))
    })
  }

  /** Calls back when there may be a worker that was not known before. */
  whenLearned(learned: () => void): void {
    this.#learned = learned
  }

  /** How many requests a worker has in flight. */
  inFlight(endpointId: EndpointId, workerId: WorkerId): number {
    const { workers } = this.#traffic.load(endpointId)
    return workers.find(worker => worker.workerId === workerId)?.inFlight ?? 0
  }

  /** For how long a worker had requests in flight since it was told of, in milliseconds. */
  busyMs(endpointId: EndpointId, workerId: WorkerId): number {
    return this.#traffic.busyMs(endpointId, workerId)
  }

  /** All workers that serve requests and have not ended, as they were when their endpoints were looked at last. */
  workers(): KnownWorker[] {
    return [...this.#workers.values()]
  }

  /** What is known of a worker; undefined for one that has ended, or serves no requests. */
  worker(id: WorkerId): KnownWorker | undefined {
    return this.#workers.get(id)
  }

  /** Keeps what was found out about a worker, unless it has ended meanwhile. */
  note(id: WorkerId, found: Partial<Pick<KnownWorker, 'health' | 'servedAt' | 'healthPath'>>): void {
    const known = this.#workers.get(id)
    if (known !== undefined) this.#workers.set(id, this.#withPort({ ...known, ...found }))
  }

  /**
   * The path that a worker is asked for its health at; null where that comes from a secret that is gone or is no path. A worker has
   * the value from its start on: it is asked at the same path as long as this server runs.
   */
  async healthPath({ worker: { id, owner, serves }, healthPath }: KnownWorker): Promise<string | null> {
    if (healthPath !== null) return healthPath
    const { HEALTH_CHECK_PATH: path = '' } = await resolvedServing(this.#ports, owner, {
      HEALTH_CHECK_PATH: serves?.healthPath ?? '/',
    })
    if (!isHealthPath(path)) return null
    this.note(id, { healthPath: path })
    return path
  }

  /** Listens to no changes any more. */
  close(): void {
    this.#variables.close()
  }

  #forget(id: EndpointId, looks: Looks): void {
    if (!looks.told) return
    looks.told = false
    this.#targets.forget(id)
    for (const { worker } of this.workers()) if (worker.endpointId === id) this.#workers.delete(worker.id)
    for (const map of [this.#settings, this.#peaks]) map.delete(id)
  }

  #learn({ endpoint, workers }: EndpointSnapshot, { isFolder }: Settings): void {
    const nowMs = this.#ports.clock.monotonic()
    const alive = new Set(workers.map(({ id }) => id))
    for (const { worker } of this.workers()) {
      if (worker.endpointId === endpoint.id && !alive.has(worker.id)) this.#workers.delete(worker.id)
    }
    for (const worker of workers) {
      if (worker.serves === null) continue
      const known = this.#workers.get(worker.id)
      if (known === undefined) this.#learned()
      const runsSinceMs = known?.runsSinceMs ?? (worker.startedAtMs === null ? null : nowMs)
      const isLeaving = known?.isLeaving === true || worker.state === 'DRAINING' || worker.state === 'STOPPING'
      const port = known?.port ?? (isFolder ? 0 : worker.serves.healthPort)
      const health = known?.health ?? unasked(nowMs, worker.readyAtMs !== null)
      const servedAt: ServedAt | null = known?.servedAt ?? null
      const healthPath = known?.healthPath ?? null
      const next = { worker, runsSinceMs, isLeaving, port, health, servedAt, healthPath }
      this.#workers.set(worker.id, this.#withPort(next))
    }
  }

  /** The driver chooses the ports of workers without a container. */
  #withPort(known: KnownWorker): KnownWorker {
    return known.port === 0 && known.servedAt !== null ? { ...known, port: known.servedAt.health.port } : known
  }

  #tell(snapshot: EndpointSnapshot, { maxConcurrency }: Settings): void {
    const targets = targetsOf(snapshot.workers, id => this.#workers.get(id)).map(target =>
      this.#workers.get(target.workerId)?.isLeaving === true ? { ...target, state: 'draining' as const } : target,
    )
    this.#targets.keep(balancedEndpoint(snapshot, maxConcurrency), targets)
  }

  #withTraffic(snapshot: EndpointSnapshot, { maxConcurrency }: Settings, peak: number | null): BalancedSnapshot {
    const load = this.#traffic.load(snapshot.endpoint.id)
    return withTraffic(snapshot, load, id => this.#workers.get(id), { maxConcurrency, peak })
  }

  /** Every change of the environment makes another version; one of a secret makes none. */
  async #settingsOf({ endpoint }: EndpointSnapshot): Promise<Settings> {
    const { id, owner, templateId, version } = endpoint
    const known = this.#settings.get(id)
    if (known?.version === version) return this.#withLimit(owner, known)
    const template = await this.#ports.store.templates.find(owner, templateId)
    if (template === null) return known ?? { version, env: {}, maxConcurrency: null, isFolder: false }
    const env = servingVariables(savedEnv(endpoint, template))
    return this.#withLimit(owner, { version, env, maxConcurrency: null, isFolder: isFolderImage(template.image) })
  }

  async #withLimit(owner: OwnerId, settings: Settings): Promise<Settings> {
    return { ...settings, maxConcurrency: maxConcurrencyOf(await this.#variables.of(owner, settings.env)) }
  }
}
