import {
  type ApiKey,
  type Caller,
  callerFromKey,
  isValidAt,
  type KeyScope,
  mayManage,
  mayReadServer,
  mayUseFiles,
  mayUseJobs,
  mayUseModel,
  readableJobs,
  requireOperator,
} from '../../core/accounts/permission.ts'
import { countRequest, type RateDecision, type RateWindow, type WindowCount } from '../../core/accounts/rate-limit.ts'
import { equalSecrets } from '../../core/equal-secrets.ts'
import { AppError } from '../../core/errors.ts'
import type { EndpointId, KeyId, OwnerId, VolumeId } from '../../core/ids.ts'
import type { LimitedOperation } from '../../core/jobs/job-limits.ts'
import type { RefusedRight } from '../../events.ts'
import type { Ports } from '../../ports/ports.ts'
import { AppWorkerKeys } from './app-worker-keys.ts'
import { FailedKeys, InvalidKeyError, keyFailure, type ReadAddress } from './failed-keys.ts'
import { JobLimiter } from './job-limiter.ts'
import { KeyLimiter } from './key-limiter.ts'
import { OpenUses } from './open-uses.ts'

const CACHE_MS = 5_000
/** Time for which a valid key is trusted while the store is unavailable. */
const STALE_MS = 300_000
const CACHE_SIZE = 1_000
/** Minimum interval between two records of the use of a key. */
const USE_MS = 60_000
/** Interval at which the counts of the REST windows are stored. */
const SAVE_MS = 5_000

/** A key that the server is started with. */
export interface ServerKey {
  readonly name: string
  readonly key: string
  readonly scope: KeyScope
}

/** A key that was read a moment ago. */
interface CachedKey {
  readonly key: ApiKey
  readonly readMs: number
  untilMs: number
  /** Null before its first use. */
  caller: Caller | null
}

/** Rights of callers: API keys, the operations that they open, and the windows in which REST requests are counted. */
export class Access {
  /** Counts of failed keys, by address. */
  readonly failedKeys: FailedKeys
  /** Counts of keys that have limits. */
  readonly keyLimits: KeyLimiter
  readonly #ports
  readonly #windows
  readonly #cache = new Map<string, CachedKey>()
  /** The last key that was recalled, with its hash: an application sends many requests with one key. */
  #recalled: { readonly key: string; readonly hash: string } | null = null
  readonly #jobLimiter
  readonly #uses
  readonly #appWorkers
  readonly #used = new Map<KeyId, number>()
  /** Grows with each change of a key, so that nothing read before it is kept after it. */
  #changes = 0
  readonly #watchers = new Set<() => void>()
  readonly #counts = new Map<OwnerId, { counts: readonly WindowCount[]; savedAtMs: number }>()

  /**
   * @param windows the REST windows of this installation
   * @param limitJobs true to limit job operations, too
   */
  constructor(ports: Ports, windows: readonly RateWindow[], limitJobs = false) {
    this.#ports = ports
    this.#windows = windows
    this.#jobLimiter = new JobLimiter(ports, limitJobs)
    const appWorkers = new AppWorkerKeys(ports)
    this.#uses = new OpenUses(ports, id => appWorkers.find(id))
    this.#appWorkers = appWorkers
    this.failedKeys = new FailedKeys(ports)
    this.keyLimits = new KeyLimiter(ports)
  }

  /**
   * The caller that a key stands for.
   * @param readAddress address of the caller, if a failure should be counted
   * @throws AppError `unauthorized` when there is no key, InvalidKeyError when it is unknown, disabled or expired, and
   *   `rate_limited` instead where too many keys of that address failed
   */
  async authenticate(key: string | null, readAddress?: ReadAddress): Promise<Caller> {
    if (key === null || key === '') throw new AppError('unauthorized', 'the API key is missing')
    const hash = this.#ports.vault.hash(key)
    const record = await this.#find(hash, this.#appWorkers.isToken(key))
    if (record !== null && isValidAt(record, this.#ports.clock.now())) return this.#useKey(record)
    const error = new InvalidKeyError(keyFailure(record))
    throw readAddress === undefined ? error : this.failedKeys.refusal(readAddress(), error)
  }

  /**
   * The caller of a key that was checked before, by the hash of the key.
   * @throws InvalidKeyError when the key was removed, disabled or expired in the meantime
   */
  async ofKeyHash(hash: string): Promise<Caller> {
    const record = await this.#find(hash)
    if (record !== null && isValidAt(record, this.#ports.clock.now())) return this.#useKey(record)
    throw new InvalidKeyError(keyFailure(record))
  }

  /**
   * As {@link authenticate}, without waiting, for valid keys in the cache; null for all others, which have to be
   * authenticated.
   */
  recall(key: string): Caller | null {
    const recalled = this.#recalled
    const isSame = recalled !== null && equalSecrets(recalled.key, key)
    const hash = isSame ? recalled.hash : this.#ports.vault.hash(key)
    const entry = this.#cache.get(hash)
    const nowMs = this.#ports.clock.now()
    if (entry === undefined || entry.untilMs <= nowMs || !isValidAt(entry.key, nowMs)) return null
    if (!isSame) this.#recalled = { key, hash }
    this.#noteUse(entry.key, nowMs)
    entry.caller ??= callerFromKey(entry.key)
    return entry.caller
  }

  #useKey(record: ApiKey): Caller {
    this.#noteUse(record, this.#ports.clock.now())
    return callerFromKey(record)
  }

  /** @throws AppError `forbidden` unless the caller may read or write in management */
  requireManagement(caller: Caller, level: 'read' | 'write'): void {
    if (mayManage(caller, level)) return
    this.#refused(caller, `management:${level}`)
    throw new AppError('forbidden', `this API key has no ${level} right for management`)
  }

  /** @throws AppError `forbidden` unless the caller may read or write the jobs of this endpoint */
  requireJobs(caller: Caller, level: 'read' | 'write', endpoint: EndpointId): void {
    if (mayUseJobs(caller, level, endpoint)) return
    this.#refused(caller, `jobs:${level}`)
    throw new AppError('forbidden', `this API key has no ${level} right for the jobs of endpoint ${endpoint}`)
  }

  /**
   * Guards a request to a model.
   * @param model its name in a request at `/openai/v1`; null at the address of its endpoint
   * @throws AppError `forbidden` unless the caller may call that model, or write the jobs of this endpoint
   */
  requireModel(caller: Caller, endpoint: EndpointId, model: string | null): void {
    if (model === null || !mayUseModel(caller, model)) this.requireJobs(caller, 'write', endpoint)
  }

  /** @throws AppError `forbidden` unless the caller may read or write the files of this network volume */
  requireFiles(caller: Caller, level: 'read' | 'write', volume: VolumeId): void {
    if (mayUseFiles(caller, level, volume)) return
    this.#refused(caller, `files:${level}`)
    throw new AppError('forbidden', `this key has no ${level} right for the files of network volume ${volume}`)
  }

  /**
   * The endpoints whose jobs the caller may read, as its key names them; null for those of its whole account.
   * @throws AppError `forbidden` where it may read no jobs
   */
  requireSomeJobs(caller: Caller): EndpointId[] | null {
    const endpoints = readableJobs(caller)
    if (endpoints === null || endpoints.length > 0) return endpoints
    this.#refused(caller, 'jobs:read')
    throw new AppError('forbidden', 'this API key has no read right for the jobs of any endpoint')
  }

  /**
   * Refuses callers without a right to the whole server or to other accounts.
   * @param operation the name of the requested operation, for the audit log
   * @throws AppError `forbidden` unless the caller has a key of the operator's account with all rights
   */
  requireOperator(caller: Caller, operation: string): void {
    if (!caller.operator) this.#refused(caller, 'operator', operation)
    requireOperator(caller)
  }

  /**
   * Refuses callers whose rights end, for operations that return keys: with these they could stay longer than their
   * own key.
   * @param operation the name of the requested operation, for the audit log
   * @param isSession true for a caller who is signed in to the console: a session has an end
   * @throws AppError `forbidden` unless the caller has a key of the operator without an end
   */
  requireLastingOperator(caller: Caller, operation: string, isSession: boolean): void {
    this.requireOperator(caller, operation)
    if (caller.expiresAtMs === null && !isSession) return
    this.#refused(caller, 'operator:lasting', operation)
    throw new AppError(
      'forbidden',
      'this contains keys of the server: it needs a key of the operator that does not expire',
    )
  }

  /**
   * Refuses callers that may not read the metrics and the status of the whole server.
   * @param operation the name of the requested operation, for the audit log
   * @throws AppError `forbidden` unless the caller's key is of the operator's account and may read metrics
   */
  requireMetrics(caller: Caller, operation: string): void {
    if (mayReadServer(caller)) return
    this.#refused(caller, 'metrics:read', operation)
    throw new AppError(
      'forbidden',
      "this needs a key of the operator's account with all rights, or with metrics: read in its scope",
    )
  }

  #refused({ owner, keyId }: Caller, right: RefusedRight, operation?: string): void {
    const operationPart = operation === undefined ? {} : { operation }
    this.#ports.emit('right.refused', { account: owner, keyId, right, ...operationPart })
  }

  /**
   * Counts one REST request of the caller; null for callers without limits. The counts are stored every
   * few seconds, so a restart of the server loses only the latest ones.
   */
  async count(caller: Caller): Promise<RateDecision | null> {
    if (caller.exempt) return null
    const { store, clock } = this.#ports
    if (!this.#counts.has(caller.owner)) {
      const counts = await store.keys.windowCounts(caller.owner)
      if (!this.#counts.has(caller.owner)) this.#counts.set(caller.owner, { counts, savedAtMs: clock.now() })
    }
    const ownerCounts = this.#counts.get(caller.owner)!
    const decision = countRequest(this.#windows, ownerCounts.counts, clock.now())
    ownerCounts.counts = decision.counts
    if (clock.now() - ownerCounts.savedAtMs >= SAVE_MS) {
      ownerCounts.savedAtMs = clock.now()
      await store.keys.saveWindowCounts(caller.owner, decision.counts)
    }
    return decision
  }

  /** Stores the latest counts when the server stops. They are lost if the store fails. */
  async saveCounts(): Promise<void> {
    const { keys } = this.#ports.store
    const all = [...this.#counts].map(([owner, { counts }]) => keys.saveWindowCounts(owner, counts))
    await Promise.allSettled(all)
  }

  /**
   * Counts a call of a job operation at its beginning, where this installation limits them.
   * @returns a function to call once when the call has ended
   * @throws AppError `rate_limited`
   */
  countJobs(caller: Caller, endpoint: EndpointId, operation: LimitedOperation): Promise<() => void> {
    return this.#jobLimiter.begin(caller, endpoint, operation)
  }

  /**
   * Makes the keys that the server is started with valid, and adds records for new ones. Other keys of that kind
   * become invalid.
   * @param adds called before a record is added
   * @returns the names of the keys that became invalid
   */
  async ensureKeys(
    owner: OwnerId,
    keys: readonly ServerKey[],
    adds: (id: KeyId) => Promise<void> = async () => {},
  ): Promise<readonly string[]> {
    const { store, vault, random, clock } = this.#ports
    const hashes = new Set<string>()
    for (const { name, key, scope } of keys) {
      const hash = vault.hash(key)
      hashes.add(hash)
      const fixed = { kind: 'server', scope, disabled: false, expiresAtMs: null } as const
      const record = await store.keys.findByHash(hash)
      if (record === null) {
        const id = random.uuid() as KeyId
        await adds(id)
        const newFields = { createdAtMs: clock.now(), lastUsedAtMs: null, endpointId: null, exempt: false }
        await store.keys.insert({ ...newFields, id, owner, name, hash, hint: keyHint(key), ...fixed })
      } else await store.keys.update({ ...record, ...fixed }, record)
    }
    const storedKeys = await store.keys.list(owner)
    const ended = storedKeys.filter(({ kind, hash }) => kind === 'server' && !hashes.has(hash))
    for (const { id } of ended) await store.keys.remove(owner, id)
    this.#countChange()
    this.#cache.clear()
    return ended.map(({ name }) => name)
  }

  /**
   * Holds open a use of the caller until it is released, or the key or the required right ends: within a second here
   * and on other servers.
   * @param requires throws when a caller lacks the right
   * @param end called with the reason, at most once
   * @returns releases the use
   */
  hold(caller: Caller, requires: (caller: Caller) => void, end: (why: AppError) => void): () => void {
    return this.#uses.hold(caller, requires, end)
  }

  /**
   * A key was changed or removed: it is read again at its next use, and the uses that it holds open end with their
   * right.
   */
  changed({ id, hash }: Pick<ApiKey, 'id' | 'hash'>): void {
    this.#countChange()
    this.#cache.delete(hash)
    this.#uses.changed(id)
  }

  /**
   * Watches for changes of any key, for those who keep callers.
   * @param changed called before the change is answered
   * @returns ends the watching
   */
  watch(changed: () => void): () => void {
    this.#watchers.add(changed)
    return () => void this.#watchers.delete(changed)
  }

  #countChange(): void {
    this.#changes += 1
    for (const changed of this.#watchers) changed()
  }

  #cached(hash: string): ApiKey | null {
    const entry = this.#cache.get(hash)
    return entry !== undefined && entry.untilMs > this.#ports.clock.now() ? entry.key : null
  }

  /** @param isToken true for a key that is the token of a worker */
  async #find(hash: string, isToken = false): Promise<ApiKey | null> {
    const cached = this.#cached(hash)
    if (cached !== null) return cached
    const nowMs = this.#ports.clock.now()
    const entry = this.#cache.get(hash)
    const changes = this.#changes
    let key: ApiKey | null
    try {
      const source = isToken ? this.#appWorkers : this.#ports.store.keys
      const stored = await source.findByHash(hash)
      key = stored !== null && this.#ports.vault.equal(stored.hash, hash) ? stored : null
    } catch (error) {
      const away = error instanceof AppError && error.code === 'unavailable'
      if (!away || entry === undefined || nowMs - entry.readMs >= STALE_MS) throw error
      // A known caller does not wait for the store again.
      entry.untilMs = nowMs + CACHE_MS
      return entry.key
    }
    if (this.#cache.size >= CACHE_SIZE) this.#cache.clear()
    if (key !== null && changes === this.#changes) {
      this.#cache.set(hash, { key, readMs: nowMs, untilMs: nowMs + CACHE_MS, caller: null })
    }
    return key
  }

  /** The request does not wait for it. If the store fails, only this record is lost. */
  #noteUse({ id, lastUsedAtMs }: ApiKey, nowMs: number): void {
    if (nowMs - (this.#used.get(id) ?? lastUsedAtMs ?? 0) < USE_MS) return
    if (this.#used.size >= CACHE_SIZE) this.#used.clear()
    this.#used.set(id, nowMs)
    this.#ports.store.keys.used(id, nowMs).catch(() => {})
  }
}

/** The beginning of a key, by which people recognize it: 8 characters, and at most a quarter of a short key. */
export function keyHint(key: string): string {
  return key.slice(0, Math.min(8, Math.floor(key.length / 4)))
}
