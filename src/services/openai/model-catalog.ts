import {
  type Caller,
  mayUseAllJobs,
  mayUseJobs,
  mayUseModel,
  scopeEndpoints,
  scopeModels,
} from '../../core/accounts/permission.ts'
import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { savedEnv } from '../../core/endpoints/saved-env.ts'
import { AppError } from '../../core/errors.ts'
import { type EndpointId, isEndpointId, type OwnerId } from '../../core/ids.ts'
import { readJson } from '../../core/json/json-text.ts'
import { isReady, shownWorkers } from '../../core/observing/worker-status.ts'
import type { ModelAlias } from '../../core/openai/model-alias.ts'
import {
  chosenEndpoint,
  type ModelState,
  modelForWorker,
  modelFromVariables,
  readModelName,
  readServedModels,
  unknownModel,
} from '../../core/openai/model-names.ts'
import type { EndpointSnapshot } from '../../core/scaling/scale.ts'
import { presentStartMs } from '../../core/scaling/start-time.ts'
import type { SocketAddress } from '../../core/workers/socket-address.ts'
import { isFrozen } from '../../core/workers/worker.ts'
import type { Ports } from '../../ports/ports.ts'
import type { EndpointName } from '../../ports/store/store.ts'
import type { LoadBalancer } from '../balancing/load-balancer.ts'
import { listedInParts } from '../listed-endpoints.ts'
import { mapConcurrently } from '../map-concurrently.ts'
import { ServedModelNotes } from './served-model-notes.ts'

/** Limit of models in a list, counted by their endpoints. */
const MAX_LISTED = 1_000
/** Time for which endpoints of a name, and whether they are ready, are used without a read, in milliseconds. */
const FRESH_MS = { names: 5_000, ready: 1_000 } as const
/** Limit of entries of each table in memory. */
const MAX_ENTRIES = 10_000
/** The question to a ready worker: longest wait for its answer, longest answer, and time until the next question. */
const ASKING = { timeoutMs: 2_000, bytes: 65_536, everyMs: 60_000, path: '/v1/models' } as const
/** Limit of workers that one list asks. */
const MAX_ASKED = 16
const CONCURRENCY = 8

/** The endpoint of a model, and the name that its worker reads. */
export interface ResolvedModel {
  readonly endpoint: Endpoint
  readonly model: string
  /** False if it is a guess, since no worker of this release has said what it serves: see `modelAt`. */
  readonly isKnown: boolean
}

/** One model that a key may use. */
export interface ListedModel {
  /** The name that a request has as its `model`. */
  readonly id: string
  readonly endpoint: Endpoint
  readonly state: ModelState
  /** Typical time from the need of a worker to its first take, in milliseconds; null while none was measured. */
  readonly startMs: number | null
  /** The names of its models, as its workers said. */
  readonly served: readonly string[]
}

/** The models of an account that a key may use; `isCut` if there are more. */
export interface ModelList {
  readonly models: readonly ListedModel[]
  readonly isCut: boolean
}

/** A question to a worker for its models. */
interface Question {
  readonly version: number
  readonly askedMs: number
  /** Resolves once it is answered, or never will be. */
  readonly answered: Promise<void>
}

/** Models by their names: those of the endpoints of an account, as its keys may use them. */
export class ModelCatalog {
  readonly #ports
  readonly #balancing
  readonly #named = new Map<string, { readonly endpoints: readonly Endpoint[]; readonly readMs: number }>()
  readonly #ready = new Map<EndpointId, { readonly isReady: Promise<boolean>; readonly readMs: number }>()
  readonly #served: ServedModelNotes
  /** The last questions, by endpoint. */
  readonly #asked = new Map<EndpointId, Question>()
  readonly #variables = new Map<EndpointId, { readonly version: number; readonly model: string | null }>()
  readonly #unsubscribe: () => void

  constructor(ports: Ports, balancing: LoadBalancer) {
    this.#ports = ports
    this.#balancing = balancing
    this.#served = new ServedModelNotes(ports)
    this.#unsubscribe = ports.notifier.subscribe('endpoints', () => this.#named.clear())
  }

  /** Stops following changes. */
  close(): void {
    this.#unsubscribe()
  }

  /**
   * The endpoint that a request for a model is for: of those with its name the first that is ready, else the first.
   * @throws AppError `not_found` for a name that leads to nothing that the caller may use, with names that do;
   * `unavailable`
   */
  async resolve(caller: Caller, asked: string): Promise<ResolvedModel> {
    const found = await this.#destination(caller, asked)
    if (found === null) throw await this.#unknown(caller, asked)
    return this.#resolved(found.endpoint, asked, found.named)
  }

  /** The endpoint of a name that the caller may use, and the model behind its slash; null without one. */
  async #destination(caller: Caller, asked: string): Promise<{ endpoint: Endpoint; named: string | null } | null> {
    const name = readModelName(asked)
    if (name === null) return null
    const whole = await this.#choose(await this.#usable(caller, name.whole, asked))
    if (whole !== null) return { endpoint: whole, named: null }
    if (name.part === null) return null
    const part = await this.#choose(await this.#usable(caller, name.part.endpoint, asked))
    return part === null ? null : { endpoint: part, named: name.part.model }
  }

  async #unknown(caller: Caller, asked: string): Promise<AppError> {
    return unknownModel(asked, await this.#names(caller))
  }

  /** The names of {@link list}, without the facts that it reads about each endpoint: clients repeat unknown names. */
  async #names(caller: Caller): Promise<string[]> {
    const endpoints = await this.#endpointNames(caller)
    const ids = new Set(endpoints.map(({ id }) => id))
    await this.#askOf(ids)
    await this.#served.recall([...ids])
    const ofEndpoints = endpoints.flatMap(endpoint => this.#namesOf(endpoint))
    const taken = new Set(ofEndpoints)
    const aliases = (await this.#ports.store.modelAliases.list(caller.owner)).filter(
      ({ name, endpointIds }) => !taken.has(name) && endpointIds.some(id => ids.has(id)),
    )
    const ofJobs = [...ofEndpoints, ...aliases.map(({ name }) => name)]
    const listed = new Set(ofJobs)
    const named = scopeModels(caller.scope).filter(name => !listed.has(name))
    const ofScope = await mapConcurrently(named, CONCURRENCY, async name =>
      (await this.#destination(caller, name)) === null ? [] : [name],
    )
    return [...ofJobs, ...ofScope.flat()]
  }

  /**
   * The name that a worker reads as its model, where {@link resolve} only guessed it: the worker is asked, at most
   * once a minute for all of its endpoint.
   * @param asked the name in the request
   * @param worker its address for requests
   */
  async modelAt(endpoint: Endpoint, asked: string, worker: SocketAddress): Promise<string> {
    await this.#askAt(endpoint, worker)
    const { name } = endpoint
    return modelForWorker(asked, { named: null, known: this.#served.models(endpoint.id), name })
  }

  /**
   * The models that a caller may use, those of the oldest endpoints first. Asks ready workers whose models are not
   * known.
   * @throws AppError `unavailable`
   */
  async list(caller: Caller): Promise<ModelList> {
    const snapshots = await this.#snapshots(caller)
    const shown = snapshots.slice(0, MAX_LISTED)
    const states = shown.map(snapshot => [snapshot, stateOf(snapshot)] as const)
    const unasked = states.filter(([snapshot, state]) => state === 'ready' && this.#isDue(snapshot.endpoint))
    await mapConcurrently(unasked.slice(0, MAX_ASKED), CONCURRENCY, ([snapshot]) => this.#ask(snapshot))
    await this.#served.recall(shown.map(({ endpoint }) => endpoint.id))
    const ofEndpoints = states.flatMap(([snapshot, state]) => this.#entries(snapshot, state))
    const ofJobs = [...ofEndpoints, ...(await this.#aliases(caller.owner, ofEndpoints))]
    const models = [...ofJobs, ...(await this.#ofScope(caller, new Set(ofJobs.map(({ id }) => id))))]
    return { models, isCut: snapshots.length > MAX_LISTED }
  }

  /**
   * Has a worker of the endpoint of a model start, as {@link LoadBalancer.warm}.
   * @returns the endpoint with its state before that
   * @throws AppError `not_found`; `conflict` for an endpoint that may have no workers
   */
  async warm(caller: Caller, asked: string): Promise<{ readonly endpoint: Endpoint; readonly state: ModelState }> {
    const name = readModelName(asked)
    const { owner } = caller
    const whole = name === null ? [] : await this.#find(owner, name.whole)
    const found = whole.length > 0 || !name?.part ? whole : await this.#find(owner, name.part.endpoint)
    const endpoint = await this.#choose(found)
    const snapshot = endpoint === null ? null : await this.#balancing.snapshot(endpoint.id)
    if (endpoint === null || snapshot === null) throw await this.#unknown(caller, asked)
    const state = stateOf(snapshot)
    if (state === 'paused')
      throw new AppError('conflict', `endpoint ${endpoint.name} has no workers: its workersMax is 0`)
    if (state !== 'ready') this.#balancing.warm(endpoint.id)
    return { endpoint, state }
  }

  /** Notes the answer of a worker to `GET /v1/models`, which any request has brought. Another text changes nothing. */
  learn({ id, version }: Pick<Endpoint, 'id' | 'version'>, json: string): void {
    const reading = json.length > ASKING.bytes ? null : readJson(json)
    const models = reading?.ok === true ? readServedModels(reading.value) : null
    if (models !== null) this.#served.keep(id, version, models)
  }

  /** The endpoints of a name that the caller may use for the model that it asked for, the preferred one first. */
  async #usable(caller: Caller, name: string, asked: string): Promise<readonly Endpoint[]> {
    const found = await this.#find(caller.owner, name)
    return mayUseModel(caller, asked) ? found : found.filter(({ id }) => mayUseJobs(caller, 'write', id))
  }

  /** The endpoints of an alias, else those with a name, else that with an id. */
  async #find(owner: OwnerId, name: string): Promise<readonly Endpoint[]> {
    const nowMs = this.#ports.clock.monotonic()
    const key = `${owner} ${name}`
    const cached = this.#named.get(key)
    if (cached !== undefined && nowMs - cached.readMs < FRESH_MS.names) return cached.endpoints
    const endpoints = await this.#read(owner, name)
    if (endpoints.length === 0) return endpoints
    if (this.#named.size >= MAX_ENTRIES) this.#named.clear()
    this.#named.set(key, { endpoints, readMs: nowMs })
    return endpoints
  }

  async #read(owner: OwnerId, name: string): Promise<readonly Endpoint[]> {
    const { endpoints, modelAliases } = this.#ports.store
    const alias = await modelAliases.find(owner, name)
    if (alias !== null) return this.#present(alias)
    const named = await endpoints.named(owner, name)
    if (named.length > 0 || !isEndpointId(name)) return named
    const one = await endpoints.find(name)
    return one === null || one.owner !== owner ? [] : [one]
  }

  /** The endpoints of an alias that are not gone, the preferred one first. */
  async #present({ owner, endpointIds }: ModelAlias): Promise<readonly Endpoint[]> {
    const found = await mapConcurrently(endpointIds, CONCURRENCY, id => this.#ports.store.endpoints.find(id))
    return found.filter(endpoint => endpoint?.owner === owner) as Endpoint[]
  }

  async #choose(endpoints: readonly Endpoint[]): Promise<Endpoint | null> {
    if (endpoints.length < 2) return endpoints[0] ?? null
    const candidates = await mapConcurrently(endpoints, CONCURRENCY, async ({ id }) => ({
      id,
      ready: await this.isReady(id),
    }))
    const chosen = chosenEndpoint(candidates)
    return endpoints.find(({ id }) => id === chosen) ?? null
  }

  /** True if a worker of an endpoint may answer now; as of the last second. */
  isReady(id: EndpointId): Promise<boolean> {
    const nowMs = this.#ports.clock.monotonic()
    const known = this.#ready.get(id)
    if (known !== undefined && nowMs - known.readMs < FRESH_MS.ready) return known.isReady
    const isReady = this.#balancing.snapshot(id).then(
      snapshot => snapshot !== null && stateOf(snapshot) === 'ready',
      () => false,
    )
    if (this.#ready.size >= MAX_ENTRIES) this.#ready.clear()
    this.#ready.set(id, { isReady, readMs: nowMs })
    return isReady
  }

  async #resolved(endpoint: Endpoint, asked: string, named: string | null): Promise<ResolvedModel> {
    const { id, name } = endpoint
    if (named === null && this.#isDue(endpoint) && (await this.isReady(id))) {
      const snapshot = await this.#balancing.snapshot(id)
      if (snapshot !== null) await this.#ask(snapshot)
    }
    if (named === null) await this.#served.recall([id])
    const served = this.#served.models(id)
    const variable = served.length > 0 || named !== null ? null : await this.#fromVariables(endpoint)
    const known = variable === null ? served : [variable]
    const isKnown = named !== null || variable !== null || this.#served.arePresent(endpoint)
    return { endpoint, model: modelForWorker(asked, { named, known, name }), isKnown }
  }

  /** True if a worker may be asked: those of queue endpoints answer only as jobs, which nobody has submitted. */
  #isDue({ id, type, version }: Endpoint): boolean {
    if (type !== 'LOAD_BALANCER') return false
    const asked = this.#asked.get(id)
    return asked?.version !== version || this.#ports.clock.monotonic() - asked.askedMs >= ASKING.everyMs
  }

  /** Asks a ready worker for its models. Never rejects. */
  async #ask({ endpoint, workers }: EndpointSnapshot): Promise<void> {
    const current = [...workers].sort((a, b) => b.version - a.version)
    for (const worker of current) {
      const serving = this.#balancing.worker(worker.id)
      if (serving?.health.state !== 'healthy' || serving.servedAt === null) continue
      await this.#askAt(endpoint, serving.servedAt.traffic)
      return
    }
  }

  /** Asks ready workers of these endpoints, of those that were not asked lately. Never rejects. */
  async #askOf(ids: ReadonlySet<EndpointId>): Promise<void> {
    const nowMs = this.#ports.clock.monotonic()
    const isRested = (id: EndpointId) => nowMs - (this.#asked.get(id)?.askedMs ?? -ASKING.everyMs) >= ASKING.everyMs
    const ready = this.#balancing.workers().filter(({ worker, health, servedAt }) => {
      const isAsked = ids.has(worker.endpointId) && isRested(worker.endpointId)
      return isAsked && health.state === 'healthy' && servedAt !== null && !isFrozen(worker)
    })
    const newest = ready.sort((a, b) => a.worker.version - b.worker.version)
    const byEndpoint = new Map(newest.map(serving => [serving.worker.endpointId, serving.servedAt!]))
    await mapConcurrently([...byEndpoint].slice(0, MAX_ASKED), CONCURRENCY, async ([id, servedAt]) => {
      const endpoint = await this.#ports.store.endpoints.find(id).catch(() => null)
      if (endpoint !== null && this.#isDue(endpoint)) await this.#askAt(endpoint, servedAt.traffic)
    })
  }

  /** Asks at an address, unless the endpoint was asked lately; waits for the answer. Never rejects. */
  #askAt(endpoint: Endpoint, address: SocketAddress): Promise<void> {
    const { id, version } = endpoint
    const { clock, probes } = this.#ports
    const last = this.#asked.get(id)
    if (last !== undefined && !this.#isDue(endpoint)) return last.answered
    const answer = probes.read(address, ASKING.path, ASKING.timeoutMs, ASKING.bytes)
    const answered = answer.then(text => {
      if (text !== null) this.learn({ id, version }, text)
    })
    if (this.#asked.size >= MAX_ENTRIES) this.#asked.clear()
    this.#asked.set(id, { version, askedMs: clock.monotonic(), answered })
    return answered
  }

  async #fromVariables({ id, owner, version, templateId, env }: Endpoint): Promise<string | null> {
    const known = this.#variables.get(id)
    if (known?.version === version) return known.model
    const template = await this.#ports.store.templates.find(owner, templateId)
    const model = modelFromVariables(savedEnv({ env }, { env: template?.env ?? {} }))
    if (this.#variables.size >= MAX_ENTRIES) this.#variables.clear()
    this.#variables.set(id, { version, model })
    return model
  }

  #entries(snapshot: EndpointSnapshot, state: ModelState): ListedModel[] {
    const { endpoint } = snapshot
    const served = this.#served.models(endpoint.id)
    const rest = { endpoint, state, startMs: presentStartMs(snapshot), served }
    return this.#namesOf(endpoint).map(id => ({ id, ...rest }))
  }

  /** The names of an endpoint, and of its models where it has several. */
  #namesOf({ id, name }: EndpointName): string[] {
    const served = this.#served.models(id)
    return [name, ...(served.length < 2 ? [] : served.map(model => `${name}/${model}`))]
  }

  /** The aliases that lead to a listed endpoint, each with the facts of the endpoint that answers now. */
  async #aliases(owner: OwnerId, listed: readonly ListedModel[]): Promise<ListedModel[]> {
    const byId = new Map(listed.map(model => [model.endpoint.id, model]))
    const taken = new Set(listed.map(({ id }) => id))
    const aliases = await this.#ports.store.modelAliases.list(owner)
    return aliases.flatMap(({ name, endpointIds }) => {
      const candidates = endpointIds.filter(id => byId.has(id))
      const chosen = chosenEndpoint(candidates.map(id => ({ id, ready: byId.get(id)!.state === 'ready' })))
      return chosen === null || taken.has(name) ? [] : [{ ...byId.get(chosen)!, id: name }]
    })
  }

  /** The models that the key of a caller names, besides those that are listed. */
  async #ofScope(caller: Caller, listed: ReadonlySet<string>): Promise<ListedModel[]> {
    const names = scopeModels(caller.scope).filter(name => !listed.has(name))
    const found = await mapConcurrently(names, CONCURRENCY, async id => {
      const found = await this.#destination(caller, id)
      const snapshot = found === null ? null : await this.#balancing.snapshot(found.endpoint.id)
      return found === null || snapshot === null ? [] : [{ id, snapshot, endpoint: found.endpoint }]
    })
    await this.#served.recall(found.flat().map(({ endpoint }) => endpoint.id))
    return found.flat().map(({ id, snapshot, endpoint }) => {
      const served = this.#served.models(endpoint.id)
      return { id, endpoint, state: stateOf(snapshot), startMs: presentStartMs(snapshot), served }
    })
  }

  /** The endpoints of a caller that a list shows. */
  async #endpointNames(caller: Caller): Promise<readonly EndpointName[]> {
    const { owner, scope } = caller
    const { endpoints } = this.#ports.store
    if (mayUseAllJobs(caller, 'write')) return endpoints.names(owner, { after: null, limit: MAX_LISTED })
    const ids = scopeEndpoints(scope).filter(id => mayUseJobs(caller, 'write', id))
    const found = await mapConcurrently(ids.slice(0, MAX_LISTED), CONCURRENCY, id => endpoints.find(id))
    return found.flatMap(endpoint => (endpoint?.owner === owner ? [{ id: endpoint.id, name: endpoint.name }] : []))
  }

  /** The endpoints of a caller with their facts, one more than a list has. */
  async #snapshots(caller: Caller): Promise<readonly EndpointSnapshot[]> {
    const { owner, scope } = caller
    if (mayUseAllJobs(caller, 'write')) {
      const listed = await listedInParts(this.#ports, owner, { after: null, limit: MAX_LISTED + 1 })
      return listed.map(({ snapshot }) => this.#balancing.counted(snapshot))
    }
    const ids = scopeEndpoints(scope).filter(id => mayUseJobs(caller, 'write', id))
    const found = await mapConcurrently(ids, CONCURRENCY, id => this.#balancing.snapshot(id))
    return found.filter(snapshot => snapshot !== null && snapshot.endpoint.owner === owner) as EndpointSnapshot[]
  }
}

function stateOf(snapshot: EndpointSnapshot): ModelState {
  const { workers, endpoint } = snapshot
  const shown = shownWorkers(snapshot)
  if (shown.some(worker => isReady(worker) && worker.worker !== null && !isFrozen(worker.worker))) return 'ready'
  if (workers.some(isFrozen)) return 'sleeping'
  if (endpoint.workersMax === 0) return 'paused'
  return shown.some(({ status }) => status === 'INITIALIZING') ? 'starting' : 'cold'
}
