import { type Caller, requireOperator } from '../../core/accounts/permission.ts'
import { AppError } from '../../core/errors.ts'
import { DEFAULT_OWNER } from '../../core/ids.ts'
import type { DownloadProgress } from '../../core/models/download-progress.ts'
import { ModelError, modelProblemText } from '../../core/models/model-problem.ts'
import { isCommit, type ModelReference, parseModelReference } from '../../core/models/model-reference.ts'
import { secretPlace } from '../../core/secrets/seals.ts'
import type { ModelCache, ModelCacheContent, ModelSnapshot } from '../../ports/model-cache.ts'
import type { Ports } from '../../ports/ports.ts'

/** Name of the secret and of the variable with an account's token for the hub. */
export const HUB_TOKEN = 'HF_TOKEN'
/** Time for which a call of a pull is held open. */
const HELD_MS = 5_000
/** Limit of pulls that run at the same time. */
const MAX_PULLS = 100

/** Progress of a pull; `snapshot` is null until it is done. */
export interface PullState extends DownloadProgress {
  readonly snapshot: ModelSnapshot | null
}

/** A pull that runs, or whose end was not reported yet. */
interface Pull {
  progress: DownloadProgress
  readonly end: Promise<ModelSnapshot>
}

/**
 * The operator's work with the cache of models. All methods refuse keys without all rights of the operator (AppError
 * `forbidden`).
 */
export class ModelOperations {
  readonly #ports
  readonly #pulls = new Map<string, Pull>()

  constructor(ports: Ports) {
    this.#ports = ports
  }

  /** All models in the cache, and those that are being downloaded. */
  content(caller: Caller): Promise<ModelCacheContent> {
    return this.#cache(caller).content()
  }

  /**
   * Downloads a model unless it is present, with the operator's secret HF_TOKEN where the hub wants a token. Waits
   * for some seconds; a further call joins the pull. A pull goes on without its caller.
   * @param text as in `modelReferences`
   * @throws AppError `invalid` with the reason of a failure
   */
  async pull(caller: Caller, text: string): Promise<PullState> {
    const cache = this.#cache(caller)
    const reference = parseModelReference(text)
    if (reference === null)
      throw new AppError('invalid', `'${text}' names no model; its form is owner/name or owner/name:revision`)
    const key = `${reference.name}:${reference.revision}`
    const pull = this.#pulls.get(key) ?? this.#begin(cache, key, reference)
    const { promise: late, resolve } = Promise.withResolvers<null>()
    const cancel = this.#ports.clock.after(HELD_MS, () => resolve(null))
    try {
      const snapshot = await Promise.race([pull.end, late])
      if (snapshot !== null) this.#pulls.delete(key)
      return { ...pull.progress, snapshot }
    } catch (thrown) {
      this.#pulls.delete(key)
      if (!(thrown instanceof ModelError)) throw thrown
      const problem = modelProblemText(thrown.problem)
      throw new AppError('invalid', `model ${reference.name} is not available: ${problem}`, { cause: thrown })
    } finally {
      cancel()
    }
  }

  /** True if a pull of this model runs, which further calls join. @param text as in `modelReferences` */
  isPulled(text: string): boolean {
    const reference = parseModelReference(text)
    return reference !== null && this.#pulls.has(`${reference.name}:${reference.revision}`)
  }

  /**
   * Removes a model, or one revision of it.
   * @param commit null for all
   * @throws AppError `not_found`, or `conflict` while a worker has it
   */
  async remove(caller: Caller, name: string, commit: string | null): Promise<void> {
    const cache = this.#cache(caller)
    if (parseModelReference(name)?.name !== name || (commit !== null && !isCommit(commit)))
      throw new AppError('invalid', 'a model is named owner/name, and a revision to remove by its whole commit')
    const result = await cache.remove(name, commit)
    if (result === 'absent') throw new AppError('not_found', `there is no model ${name} in the cache`)
    if (result === 'in_use') throw new AppError('conflict', `model ${name} is in use by a worker`)
    this.#ports.emit('model.removed', { model: name, commit })
  }

  #begin(cache: ModelCache, key: string, { name, revision }: ModelReference): Pull {
    if (this.#pulls.size >= MAX_PULLS) throw new AppError('unavailable', 'too many models are pulled at once')
    const fetched = this.#token().then(token => {
      const wish = { name, revision, commit: null, reader: { owner: DEFAULT_OWNER, token } }
      return cache.fetch(wish, { progress: progress => Object.assign(pull, { progress }) })
    })
    const pull: Pull = { progress: { receivedBytes: 0, totalBytes: null }, end: fetched }
    // The next call reports its end.
    fetched.catch(() => {})
    this.#pulls.set(key, pull)
    return pull
  }

  async #token(): Promise<string | null> {
    const { store, vault } = this.#ports
    const sealed = (await store.secrets.sealedValues(DEFAULT_OWNER, [HUB_TOKEN])).get(HUB_TOKEN)
    return sealed === undefined ? null : vault.open(sealed, secretPlace(DEFAULT_OWNER, HUB_TOKEN))
  }

  #cache(caller: Caller): ModelCache {
    requireOperator(caller)
    if (this.#ports.models === null) throw new AppError('conflict', 'this server has no cache of models')
    return this.#ports.models
  }
}
