import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import type { EndpointId, WorkerId } from '../../core/ids.ts'
import { type DownloadProgress, summedProgress } from '../../core/models/download-progress.ts'
import { isPassing, ModelError } from '../../core/models/model-problem.ts'
import { modelFolder, parseModelReference } from '../../core/models/model-reference.ts'
import { type StartFailure, startFailureText, WorkerStartError } from '../../core/workers/start-failure.ts'
import type { MountedModel } from '../../ports/driver.ts'
import type { ModelCache, ModelSnapshot, ModelWish } from '../../ports/model-cache.ts'
import type { Ports } from '../../ports/ports.ts'
import { HUB_TOKEN } from './model-operations.ts'

/** Names of the variables in which the client of Hugging Face finds a token; the first that is set counts. */
const TOKEN_VARIABLES = [HUB_TOKEN, 'HUGGING_FACE_HUB_TOKEN']
/** Wait before a failed download is tried again; each further one is twice as long, up to `last`. */
const RETRY_MS = { first: 30_000, last: 600_000 }
/** Wait after a failure that only a person can fix; a change by the person counts at once. */
const LASTING_RETRY_MS = 300_000

/** A download of the models of one endpoint. */
interface Fetching {
  /** Version, references and token of the download. Another key starts a new download. */
  readonly key: string
  /** By reference. */
  readonly progress: Map<string, DownloadProgress>
  /** Null while it goes on, and once all models are present. */
  failure: StartFailure | null
  /** Time of the next try after a failure. */
  retryAtMs: number
  failures: number
  isOver: boolean
}

/** State of the models of an endpoint: `ready`, or on their way, with the names of the missing ones. */
export type ModelsState =
  | { readonly kind: 'ready' }
  | { readonly kind: 'downloading'; readonly names: readonly string[] }

/**
 * Downloads the models of endpoints to the machine before their workers are placed, so that no GPU waits for a
 * download. A branch means the commit that it had at the first start of a release, for all workers of the release.
 */
export class EndpointModels {
  readonly #ports
  readonly #fetching = new Map<EndpointId, Fetching>()

  constructor(ports: Ports) {
    this.#ports = ports
  }

  /**
   * Reason why the models of an endpoint cannot be downloaded now; null without one, and before the first try.
   * @param env as its workers get it
   */
  failure(endpoint: Endpoint, env: Readonly<Record<string, string>>): StartFailure | null {
    const odd = endpoint.modelReferences.find(reference => parseModelReference(reference) === null)
    if (odd !== undefined) return { kind: 'settings_invalid', problem: `modelReferences: '${odd}' names no model` }
    const fetching = this.#fetching.get(endpoint.id)
    if (fetching === undefined || fetching.key !== this.#modelsKey(endpoint, env)) return null
    return fetching.retryAtMs > this.#ports.clock.now() ? fetching.failure : null
  }

  /** Progress of the downloads for an endpoint; null without one. */
  progress(id: EndpointId): DownloadProgress | null {
    const fetching = this.#fetching.get(id)
    return fetching === undefined || fetching.isOver ? null : summedProgress([...fetching.progress.values()])
  }

  /**
   * Starts the download of missing models without waiting for its end, which publishes `load:`. Present models are
   * kept for the next minutes.
   * @param env as the workers of the endpoint get it, secrets resolved
   */
  async prepare(endpoint: Endpoint, env: Readonly<Record<string, string>>): Promise<ModelsState> {
    const cache = this.#ports.models
    if (cache === null || endpoint.modelReferences.length === 0) return { kind: 'ready' }
    const wishes = await this.#wishes(endpoint, env)
    const missing = wishes.filter(({ wish }) => cache.ready(wish) === null)
    if (missing.length === 0) {
      this.#fetching.delete(endpoint.id)
      return { kind: 'ready' }
    }
    const names = missing.map(({ wish }) => wish.name)
    const key = this.#modelsKey(endpoint, env)
    const previous = this.#fetching.get(endpoint.id)
    if (previous?.key === key && !previous.isOver) return { kind: 'downloading', names }
    const failures = previous?.key === key ? previous.failures : 0
    const progress = new Map(missing.map(({ reference }) => [reference, { receivedBytes: 0, totalBytes: null }]))
    const fetching: Fetching = { key, progress, failure: null, retryAtMs: 0, failures, isOver: false }
    this.#fetching.set(endpoint.id, fetching)
    void this.#fetch(cache, endpoint, missing, fetching)
    return { kind: 'downloading', names }
  }

  /**
   * Keeps the models of an endpoint for a worker that is about to start, until {@link release}.
   * @throws WorkerStartError when a model was removed, or its owner may not have it
   */
  async hold(worker: WorkerId, endpoint: Endpoint, env: Readonly<Record<string, string>>): Promise<MountedModel[]> {
    const cache = this.#ports.models
    if (cache === null || endpoint.modelReferences.length === 0) return []
    const snapshots: ModelSnapshot[] = []
    for (const { wish } of await this.#wishes(endpoint, env)) {
      const snapshot = cache.ready(wish)
      if (snapshot === null) throw new WorkerStartError({ kind: 'model_gone', model: wish.name })
      snapshots.push(snapshot)
    }
    if (!(await cache.hold(worker, snapshots)))
      throw new WorkerStartError({ kind: 'model_gone', model: snapshots[0]?.name ?? '' })
    const folders = [...new Set(snapshots.map(({ name }) => modelFolder(name)))]
    return folders.map(folder => ({ folder, path: `${cache.hubFolder}/${folder}` }))
  }

  /** Forgets the downloads of a removed endpoint. */
  forget(id: EndpointId): void {
    this.#fetching.delete(id)
  }

  /**
   * Releases the models of a worker that has ended, or was not started. Never fails: notes on a disk that is
   * unavailable are removed later.
   */
  async release(worker: WorkerId): Promise<void> {
    await this.#ports.models?.letGo(worker).catch(() => {})
  }

  async #fetch(
    cache: ModelCache,
    endpoint: Endpoint,
    missing: readonly { readonly reference: string; readonly wish: ModelWish }[],
    fetching: Fetching,
  ): Promise<void> {
    const { clock, notifier, emit } = this.#ports
    const beganAtMs = clock.monotonic()
    const results = await Promise.all(
      missing.map(({ reference, wish }) => this.#fetchOne(cache, endpoint, reference, wish, fetching)),
    )
    fetching.isOver = true
    fetching.failure = results.find(result => result !== null) ?? null
    const { id: endpointId } = endpoint
    const models = missing.map(({ wish }) => wish.name).join(', ')
    if (fetching.failure === null) {
      const { receivedBytes: bytes = 0 } = summedProgress([...fetching.progress.values()]) ?? {}
      emit('model.downloaded', { endpointId, models, bytes, ms: Math.round(clock.monotonic() - beganAtMs) })
    } else {
      fetching.failures += 1
      const waitMs = lasts(fetching.failure)
        ? LASTING_RETRY_MS
        : Math.min(RETRY_MS.last, RETRY_MS.first * 2 ** (fetching.failures - 1))
      fetching.retryAtMs = clock.now() + waitMs
      emit('model.failed', { endpointId, models, problem: startFailureText(fetching.failure) })
    }
    notifier.publish(`load:${endpointId}`)
  }

  /** Null for a model that is present. */
  async #fetchOne(
    cache: ModelCache,
    { id, version }: Endpoint,
    reference: string,
    wish: ModelWish,
    { progress }: Fetching,
  ): Promise<StartFailure | null> {
    const { store } = this.#ports
    try {
      await cache.fetch(wish, {
        // Before the download, so that the same commit goes on after a kill of the server.
        resolved: async commit => void (await store.releases.pinModel(id, version, { reference, commit })),
        progress: modelProgress => progress.set(reference, modelProgress),
      })
      return null
    } catch (thrown) {
      if (thrown instanceof ModelError) return { kind: 'model_failed', model: wish.name, problem: thrown.problem }
      return { kind: 'other', problem: `model ${wish.name} is not available: ${String(thrown)}` }
    }
  }

  async #wishes(
    { id, owner, version, modelReferences }: Endpoint,
    env: Readonly<Record<string, string>>,
  ): Promise<{ readonly reference: string; readonly wish: ModelWish }[]> {
    const pins = await this.#ports.store.releases.models(id, version)
    const reader = { owner, token: tokenIn(env) }
    return [...new Set(modelReferences)].map(reference => {
      const parsed = parseModelReference(reference)
      if (parsed === null)
        throw new WorkerStartError({
          kind: 'settings_invalid',
          problem: `modelReferences: '${reference}' names no model`,
        })
      return { reference, wish: { ...parsed, commit: pins[reference] ?? null, reader } }
    })
  }

  #modelsKey({ version, modelReferences }: Endpoint, env: Readonly<Record<string, string>>): string {
    const token = tokenIn(env)
    return JSON.stringify([version, modelReferences, token === null ? null : this.#ports.vault.hash(token)])
  }
}

function tokenIn(env: Readonly<Record<string, string>>): string | null {
  return TOKEN_VARIABLES.map(name => env[name]?.trim()).find(value => value !== undefined && value !== '') ?? null
}

function lasts(failure: StartFailure): boolean {
  return failure.kind === 'model_failed' && !isPassing(failure.problem)
}
