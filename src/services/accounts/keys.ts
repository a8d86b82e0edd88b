import {
  type ApiKey,
  type Caller,
  endpointScope,
  isValidAt,
  isWithin,
  type KeyRecord,
  type KeyScope,
  mayUseJobs,
  scopeEndpoints,
  scopeProblems,
  scopeVolumes,
  scopeWithout,
} from '../../core/accounts/permission.ts'
import { replacedName, rotationEndMs } from '../../core/accounts/rotation.ts'
import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { AppError, invalidFields, notFound } from '../../core/errors.ts'
import { fieldProblem, nameProblems } from '../../core/field-problem.ts'
import type { EndpointId, KeyId, OwnerId, VolumeId } from '../../core/ids.ts'
import { isLimitedAsMuch, type KeyLimits } from '../../core/key-limits.ts'
import type { Page, PageRequest } from '../../core/pages.ts'
import { endpointKeyPlace } from '../../core/secrets/seals.ts'
import type { Ports } from '../../ports/ports.ts'
import { onePage } from '../paging.ts'
import { retryOnConflict } from '../retry-on-conflict.ts'
import { type Access, keyHint } from './access.ts'
import { s3Secret } from './s3-keys.ts'

/** Limit of keys of one account. */
const MAX_KEYS = 1_000
const KEY_BYTES = 24

/** Properties of a new key that the caller chooses. */
export interface KeyInput {
  readonly name: string
  readonly scope: KeyScope
  /** Null or left out for a key that does not expire. */
  readonly expiresAtMs?: number | null
  /** True for a key without REST windows, which only an operator can create. */
  readonly exempt?: boolean
  /** Its limits; by default those of the caller's key. */
  readonly limits?: KeyLimits
  /** True if streams of its requests are to report their tokens; by default as the caller's key. */
  readonly accounting?: boolean
  /** The account of the key, for operators; the caller's own unless given. */
  readonly account?: OwnerId
}

/** Changes of a key; fields that are left out are kept. */
export interface KeyChanges
  extends Partial<Pick<KeyInput, 'name' | 'scope' | 'expiresAtMs' | 'exempt' | 'limits' | 'accounting'>> {
  readonly disabled?: boolean
}

/** A new key. Its text and its secret for S3 are shown only here. */
export interface NewKey {
  readonly key: string
  readonly s3Secret: string
  readonly record: KeyRecord
}

/** API keys and their rights. A caller gives no more than its own rights, and changes no key with more. */
export class Keys {
  readonly #ports
  readonly #access

  /** @param access drops a changed key from its cache at once */
  constructor(ports: Ports, access: Access) {
    this.#ports = ports
    this.#access = access
  }

  /**
   * @throws AppError `invalid` with all failures, `forbidden` for more rights than the caller has, `not_found` for an
   *   unknown account, `conflict` when the account has too many keys
   */
  async create(caller: Caller, input: KeyInput): Promise<NewKey> {
    const owner = input.account ?? caller.owner
    if (owner !== caller.owner) await this.#requireAccount(caller, owner)
    const { key, stored } = await this.#newOfUser(caller, owner, input)
    await this.#requireRoom(owner)
    await this.#ports.store.keys.insert(stored)
    return this.#made(caller, key, stored)
  }

  /**
   * Gives a new key in the place of another one: with its name, rights, limits, accounting and expiry, but without the
   * endpoints and volumes that are gone. The previous key is renamed and expires after a time, never later than it
   * would have, or is revoked as by {@link remove}.
   * @param overlapMs time for which the previous key goes on; 0 revokes it
   * @throws AppError as {@link create} and {@link update}; `conflict` for a key that is disabled or has expired, and
   *   for the key of an endpoint
   */
  async rotate(caller: Caller, id: KeyId, overlapMs: number): Promise<NewKey> {
    return retryOnConflict(`key ${id}`, async () => {
      const previous = await this.#find(caller, id)
      const { owner, name, exempt, limits, expiresAtMs } = previous
      if (previous.kind === 'endpoint') throw new AppError('conflict', 'the key of an endpoint is rotated with it')
      this.#requireOver(caller, previous)
      const nowMs = this.#ports.clock.now()
      if (!isValidAt(previous, nowMs)) {
        throw new AppError('conflict', 'this key is disabled or has expired; create another one')
      }
      const scope = scopeWithout(previous.scope, new Set(await this.#unknownIds(owner, previous.scope)))
      const accounting = previous.accounting === true || caller.accounting === true
      const input = { name, scope, exempt, expiresAtMs, accounting, ...(limits && { limits }) }
      const { key, stored } = await this.#newOfUser(caller, owner, input)
      const endsAtMs = rotationEndMs(expiresAtMs, nowMs + overlapMs)
      const after = overlapMs === 0 ? null : { ...previous, name: replacedName(name), expiresAtMs: endsAtMs }
      if (after !== null) await this.#requireRoom(owner)
      const outcome = await this.#ports.store.keys.replace(stored, previous, after)
      if (outcome === 'last_key') throw lastKey()
      if (outcome === 'outdated') return null
      this.#access.changed(previous)
      this.#ports.emit(after === null ? 'key.revoked' : 'key.changed', { keyId: id, owner, by: caller.keyId })
      return this.#made(caller, key, stored)
    })
  }

  /** A key that the caller may create, which is not stored yet. */
  async #newOfUser(caller: Caller, owner: OwnerId, input: KeyInput): Promise<{ key: string; stored: ApiKey }> {
    const { clock, random, vault } = this.#ports
    const { name, scope, expiresAtMs = null, exempt = false } = input
    const limits = { ...caller.limits, ...input.limits }
    const { accounting = caller.accounting === true } = input
    await this.#check(caller, owner, { name, scope, expiresAtMs, exempt, limits, accounting })
    const key = this.#newText()
    const stored: ApiKey = {
      id: random.uuid() as KeyId,
      owner,
      kind: 'user',
      name,
      scope,
      exempt,
      expiresAtMs,
      disabled: false,
      hash: vault.hash(key),
      hint: keyHint(key),
      createdAtMs: clock.now(),
      lastUsedAtMs: null,
      endpointId: null,
      ...(Object.keys(limits).length > 0 && { limits }),
      ...(accounting && { accounting }),
    }
    return { key, stored }
  }

  #made(caller: Caller, key: string, stored: ApiKey): NewKey {
    const { vault, emit } = this.#ports
    emit('key.created', { keyId: stored.id, owner: stored.owner, by: caller.keyId })
    return { key, s3Secret: s3Secret(vault, stored), record: shown(stored) }
  }

  async #requireRoom(owner: OwnerId): Promise<void> {
    const enough = await this.#ports.store.keys.list(owner, { after: null, limit: MAX_KEYS })
    if (enough.length === MAX_KEYS) throw new AppError('conflict', `an account can have at most ${MAX_KEYS} keys`)
  }

  /**
   * All keys of an account, oldest first, without the keys that belong to endpoints.
   * @param account another account, for operators
   * @throws AppError `not_found` for another account unless the caller is an operator
   */
  async list(caller: Caller, account = caller.owner): Promise<KeyRecord[]> {
    if (account !== caller.owner) await this.#requireAccount(caller, account)
    return (await this.#ports.store.keys.list(account)).map(shown)
  }

  /** @throws AppError `not_found`, also for a key of another account unless the caller is an operator */
  async find(caller: Caller, id: KeyId): Promise<KeyRecord> {
    return shown(await this.#find(caller, id))
  }

  /**
   * Changes the given fields and keeps the others; keys of endpoints cannot be changed. The change counts at once
   * here and within seconds on other servers; uses that the key holds open end within a second.
   * @throws AppError `invalid`, `not_found`, `forbidden` for rights that the caller lacks, `conflict` for the
   *   server's own key and for the last one that has all rights of the operator
   */
  async update(caller: Caller, id: KeyId, changes: KeyChanges): Promise<KeyRecord> {
    return retryOnConflict(`key ${id}`, async () => {
      const previous = await this.#find(caller, id)
      if (previous.kind === 'endpoint') {
        throw new AppError('conflict', 'the key of an endpoint cannot be changed; it can be rotated and revoked')
      }
      const after: ApiKey = { ...previous, ...changes }
      this.#requireOver(caller, previous)
      await this.#check(caller, previous.owner, changes)
      const widens = changes.scope !== undefined && !isWithin(changes.scope, previous.scope)
      if (widens) requireNoLonger(caller, after.expiresAtMs)
      const outcome = await this.#ports.store.keys.update(after, previous)
      if (outcome === 'last_key') throw lastKey()
      if (outcome === 'outdated') return null
      this.#access.changed(previous)
      this.#ports.emit('key.changed', { keyId: id, owner: previous.owner, by: caller.keyId })
      return shown(after)
    })
  }

  /**
   * Revokes a key for good; an endpoint then has no key until {@link rotateOfEndpoint}. The change counts at once
   * here and within seconds on other servers; uses that the key holds open end within a second.
   * @throws AppError as {@link update}
   */
  async remove(caller: Caller, id: KeyId): Promise<void> {
    const key = await this.#find(caller, id)
    this.#requireOver(caller, key)
    if (key.kind === 'endpoint') return this.#revokeOfEndpoint(caller, key)
    const outcome = await this.#ports.store.keys.remove(key.owner, id)
    if (outcome === 'last_key') throw lastKey()
    if (outcome === 'absent') throw notFound('key', id)
    this.#access.changed(key)
    this.#ports.emit('key.revoked', { keyId: id, owner: key.owner, by: caller.keyId })
  }

  /**
   * The key of an endpoint, which opens its job operations and nothing else; created when it is first requested. Null
   * for a revoked key, and for a caller who may not write the endpoint's jobs, or whose own key expires: this key
   * does not.
   */
  async ofEndpoint(caller: Caller, endpoint: Endpoint): Promise<string | null> {
    const { id, owner } = endpoint
    if (!mayHave(caller, endpoint)) return null
    const { store, vault, emit } = this.#ports
    let stored = await store.keys.ofEndpoint(id)
    if (stored === null) {
      const { record, sealed } = this.#newOfEndpoint(endpoint)
      stored = await store.keys.ensureForEndpoint(record, sealed)
      if (stored.key.id === record.id) emit('key.created', { keyId: record.id, owner, by: caller.keyId })
    }
    return stored.key.disabled ? null : vault.open(stored.sealed, endpointKeyPlace(id))
  }

  /**
   * Gives an endpoint a new key, also after its key was revoked. The previous key becomes invalid as after {@link
   * remove}.
   * @throws AppError `forbidden` for a caller who may not write the endpoint's jobs, or whose own key expires
   */
  async rotateOfEndpoint(caller: Caller, endpoint: Endpoint): Promise<Omit<NewKey, 's3Secret'>> {
    if (!mayHave(caller, endpoint)) {
      throw new AppError(
        'forbidden',
        'only a key that does not expire and may write the jobs of the endpoint gets a new key for it',
      )
    }
    const { store, emit } = this.#ports
    const { owner } = endpoint
    const { key, record, sealed } = this.#newOfEndpoint(endpoint)
    const previous = await store.keys.replaceForEndpoint(record, sealed)
    if (previous !== null) {
      this.#access.changed(previous)
      if (!previous.disabled) emit('key.revoked', { keyId: previous.id, owner, by: caller.keyId })
    }
    emit('key.created', { keyId: record.id, owner, by: caller.keyId })
    return { key, record: shown(record) }
  }

  /**
   * The keys of the endpoints of the caller's account, oldest first; a disabled key was revoked.
   * @throws AppError `invalid` for a cursor that no page had
   */
  async listOfEndpoints(caller: Caller, request: PageRequest = {}): Promise<Page<KeyRecord>> {
    const { keys } = this.#ports.store
    const { items, nextCursor } = await onePage(request, slice => keys.listOfEndpoints(caller.owner, slice))
    return { items: items.map(shown), nextCursor }
  }

  /** The record stays, so that a later read of the endpoint's key creates no new one. */
  async #revokeOfEndpoint(caller: Caller, key: ApiKey): Promise<void> {
    if (key.disabled) return
    const outcome = await this.#ports.store.keys.update({ ...key, disabled: true }, key)
    if (outcome !== 'changed') throw notFound('key', key.id)
    this.#access.changed(key)
    this.#ports.emit('key.revoked', { keyId: key.id, owner: key.owner, by: caller.keyId })
  }

  #newOfEndpoint({ id, owner, name }: Endpoint): { key: string; record: ApiKey; sealed: string } {
    const { vault, clock, random } = this.#ports
    const key = this.#newText()
    const record: ApiKey = {
      id: random.uuid() as KeyId,
      owner,
      kind: 'endpoint',
      name,
      scope: endpointScope(id),
      exempt: false,
      expiresAtMs: null,
      disabled: false,
      hash: vault.hash(key),
      hint: keyHint(key),
      createdAtMs: clock.now(),
      lastUsedAtMs: null,
      endpointId: id,
    }
    return { key, record, sealed: vault.seal(key, endpointKeyPlace(id)) }
  }

  #newText(): string {
    return `rpa_${Buffer.from(this.#ports.random.bytes(KEY_BYTES)).toString('base64url')}`
  }

  async #find(caller: Caller, id: KeyId): Promise<ApiKey> {
    const key = await this.#ports.store.keys.find(id)
    const visible = key !== null && (key.owner === caller.owner || caller.operator)
    if (!visible) throw notFound('key', id)
    return key
  }

  async #requireAccount(caller: Caller, account: OwnerId): Promise<void> {
    const exists = caller.operator && (await this.#ports.store.accounts.find(account)) !== null
    if (!exists) throw notFound('account', account)
  }

  async #check(caller: Caller, owner: OwnerId, changes: KeyChanges): Promise<void> {
    const { name, scope, expiresAtMs, limits } = changes
    const problems = name === undefined ? [] : nameProblems(name)
    if (expiresAtMs != null && !(Number.isSafeInteger(expiresAtMs) && expiresAtMs > this.#ports.clock.now())) {
      problems.push(fieldProblem('expiresAtMs', 'must be in the future'))
    }
    if (scope !== undefined) {
      const [endpoints, volumes] = [
        await this.#unknownEndpoints(owner, scope),
        await this.#unknownVolumes(owner, scope),
      ]
      problems.push(...scopeProblems(owner, scope))
      problems.push(...endpoints.map(id => fieldProblem('scope', 'not found', `endpoint ${id}`)))
      problems.push(...volumes.map(id => fieldProblem('scope', 'not found', `network volume ${id}`)))
    }
    if (problems.length > 0) throw invalidFields(problems)
    if (scope !== undefined && !isWithin(scope, caller.scope)) {
      throw new AppError('forbidden', 'a key cannot get more rights than the key that creates or changes it')
    }
    if (changes.exempt === true && !caller.operator) {
      throw new AppError('forbidden', 'only an operator can exempt a key from the limits')
    }
    if (limits !== undefined && !isLimitedAsMuch(limits, caller.limits ?? {})) {
      throw new AppError('forbidden', 'a key cannot get higher limits than the key that creates or changes it')
    }
    if (changes.accounting === false && caller.accounting === true) {
      throw new AppError('forbidden', 'the key that creates or changes this one has accounting, so it has it as well')
    }
    if (expiresAtMs !== undefined) requireNoLonger(caller, expiresAtMs)
  }

  async #unknownIds(owner: OwnerId, scope: KeyScope): Promise<(EndpointId | VolumeId)[]> {
    return [...(await this.#unknownEndpoints(owner, scope)), ...(await this.#unknownVolumes(owner, scope))]
  }

  async #unknownEndpoints(owner: OwnerId, scope: KeyScope): Promise<EndpointId[]> {
    const ids = scopeEndpoints(scope)
    if (ids.length === 0) return []
    const endpoints = new Set<EndpointId>((await this.#ports.store.endpoints.names(owner)).map(({ id }) => id))
    return ids.filter(id => !endpoints.has(id))
  }

  async #unknownVolumes(owner: OwnerId, scope: KeyScope): Promise<VolumeId[]> {
    const ids = scopeVolumes(scope)
    if (ids.length === 0) return []
    const volumes = new Set<VolumeId>((await this.#ports.store.volumes.list(owner)).map(({ id }) => id))
    return ids.filter(id => !volumes.has(id))
  }

  #requireOver(caller: Caller, key: ApiKey): void {
    if (key.kind === 'server') {
      throw new AppError(
        'conflict',
        'this is the key of the server itself; set another one with RUNYARD_API_KEY or in the file api-key and start again',
      )
    }
    if (!isWithin(key.scope, caller.scope)) {
      throw new AppError('forbidden', 'a key cannot be changed with one that has fewer rights')
    }
  }
}

/** @throws AppError `forbidden` for a key that gets rights for longer than the caller has them */
function requireNoLonger({ expiresAtMs: callerEnds }: Caller, expiresAtMs: number | null): void {
  if (callerEnds === null || (expiresAtMs !== null && expiresAtMs <= callerEnds)) return
  throw new AppError('forbidden', 'a key cannot outlive the key that creates or changes it')
}

/** True if a caller may have the key of an endpoint, which never expires and has no limits. */
function mayHave(caller: Caller, { id, owner }: Endpoint): boolean {
  const isUnbound = caller.expiresAtMs === null && caller.limits === undefined && caller.accounting !== true
  return caller.owner === owner && isUnbound && mayUseJobs(caller, 'write', id)
}

function lastKey(): AppError {
  return new AppError('conflict', 'this is the last key with all rights of the operator; create another one first')
}

function shown({ hash: _, ...record }: ApiKey): KeyRecord {
  return record
}
