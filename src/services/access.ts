import { AppError } from '../core/errors.ts'
import type { EndpointId, KeyId, OwnerId } from '../core/ids.ts'
import { type ApiKey, type Caller, FULL_SCOPE, mayManage, mayUseJobs } from '../core/permission.ts'
import { countRequest, type RateDecision, type RateWindow, type WindowCount } from '../core/rate-limit.ts'
import type { Ports } from '../ports/ports.ts'

const CACHE_MS = 5_000
const CACHE_SIZE = 1_000
/** How often the counts of the REST windows are kept. */
const SAVE_MS = 5_000

/** Who may do what: API keys, their rights, and the windows in which REST requests are counted. */
export class Access {
  readonly #ports: Pick<Ports, 'store' | 'clock' | 'random' | 'vault'>
  readonly #windows: readonly RateWindow[]
  readonly #cache = new Map<string, { key: ApiKey | null; untilMs: number }>()
  readonly #counts = new Map<OwnerId, { counts: readonly WindowCount[]; savedAtMs: number }>()

  /** @param windows the REST windows of this installation */
  constructor(ports: Pick<Ports, 'store' | 'clock' | 'random' | 'vault'>, windows: readonly RateWindow[]) {
    this.#ports = ports
    this.#windows = windows
  }

  /**
   * The caller that a key stands for.
   * @throws AppError `unauthorized` when there is no key or it is unknown, disabled or expired
   */
  async authenticate(key: string | null): Promise<Caller> {
    if (key === null || key === '') throw new AppError('unauthorized', 'the API key is missing')
    const { clock, vault } = this.#ports
    const hash = vault.hash(key)
    const record = await this.#find(hash)
    const expired = record?.expiresAtMs != null && record.expiresAtMs <= clock.now()
    if (record === null || record.disabled || expired || !vault.equal(record.hash, hash)) {
      throw new AppError('unauthorized', 'the API key is invalid or has expired')
    }
    return { owner: record.owner, keyId: record.id, scope: record.scope, exempt: record.exempt }
  }

  /** @throws AppError `forbidden` unless the caller may read or write in management */
  requireManagement(caller: Caller, level: 'read' | 'write'): void {
    if (!mayManage(caller, level)) throw new AppError('forbidden', `this API key has no ${level} right for management`)
  }

  /** @throws AppError `forbidden` unless the caller may read or write the jobs of this endpoint */
  requireJobs(caller: Caller, level: 'read' | 'write', endpoint: EndpointId): void {
    if (!mayUseJobs(caller, level, endpoint)) {
      throw new AppError('forbidden', `this API key has no ${level} right for the jobs of endpoint ${endpoint}`)
    }
  }

  /**
   * Counts one REST request of the caller; null for callers without limits. What was counted is kept in the store every
   * few seconds, so that a restart of the server forgives no more than those.
   */
  async count(caller: Caller): Promise<RateDecision | null> {
    if (caller.exempt) return null
    const { store, clock } = this.#ports
    if (!this.#counts.has(caller.owner)) {
      const counts = await store.keys.windowCounts(caller.owner)
      if (!this.#counts.has(caller.owner)) this.#counts.set(caller.owner, { counts, savedAtMs: clock.now() })
    }
    const known = this.#counts.get(caller.owner)!
    const decision = countRequest(this.#windows, known.counts, clock.now())
    known.counts = decision.counts
    if (clock.now() - known.savedAtMs >= SAVE_MS) {
      known.savedAtMs = clock.now()
      await store.keys.saveWindowCounts(caller.owner, decision.counts)
    }
    return decision
  }

  /** Makes a key with full rights valid, adding its record when there is none. Keys of the same name lose their validity. */
  async ensureKey(owner: OwnerId, name: string, key: string): Promise<void> {
    const { store, vault, random, clock } = this.#ports
    const hash = vault.hash(key)
    for (const other of await store.keys.list(owner)) {
      if (other.name === name && other.hash !== hash) await store.keys.remove(owner, other.id)
    }
    this.#cache.clear()
    if ((await store.keys.findByHash(hash)) !== null) return
    const createdAtMs = clock.now()
    const id = random.uuid() as KeyId
    await store.keys.insert({
      ...{ id, owner, name, hash, scope: FULL_SCOPE, exempt: false, disabled: false, expiresAtMs: null, createdAtMs },
    })
  }

  async #find(hash: string): Promise<ApiKey | null> {
    const nowMs = this.#ports.clock.now()
    const known = this.#cache.get(hash)
    if (known !== undefined && known.untilMs > nowMs) return known.key
    const key = await this.#ports.store.keys.findByHash(hash)
    if (this.#cache.size >= CACHE_SIZE) this.#cache.clear()
    if (key !== null) this.#cache.set(hash, { key, untilMs: nowMs + CACHE_MS })
    return key
  }
}
