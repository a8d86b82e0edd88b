import type { ApiKey } from '../../core/accounts/permission.ts'
import type { WindowCount } from '../../core/accounts/rate-limit.ts'
import type { EndpointId, KeyId, OwnerId } from '../../core/ids.ts'
import type { Slice } from '../../core/pages.ts'

/** The key of an endpoint with its sealed text. */
export interface EndpointKey {
  readonly key: ApiKey
  readonly sealed: string
}

/** API keys and their use. */
export interface KeyStore {
  /** Adds a key that no endpoint has. */
  insert(key: ApiKey): Promise<void>
  /** Adds the key of an endpoint unless there is one; returns the one that there is now. */
  ensureForEndpoint(key: ApiKey, sealed: string): Promise<EndpointKey>
  /** Puts a new key in the place of the endpoint's; returns that one, null where there was none. */
  replaceForEndpoint(key: ApiKey, sealed: string): Promise<ApiKey | null>
  /** An endpoint's key, which is disabled where it was revoked; null while it never had one. */
  ofEndpoint(endpointId: EndpointId): Promise<EndpointKey | null>
  /** The keys of an owner's endpoints, oldest first; the first 10,000 unless a slice is given. */
  listOfEndpoints(owner: OwnerId, slice?: Slice): Promise<ApiKey[]>
  /**
   * Replaces name, scope, kind, expiry and flags: `outdated` when it is gone, or when they are no longer those of
   * `before`; `last_key` when no key with all rights of the operator would be left, however many are changed and
   * removed at once.
   */
  update(key: ApiKey, previous: ApiKey): Promise<'changed' | 'outdated' | 'last_key'>
  /**
   * Adds a key in the place of another one, which is removed, or changed to `after`, in one step. `outdated` and
   * `last_key` as for {@link update}: nothing was added then.
   */
  replace(key: ApiKey, previous: ApiKey, after: ApiKey | null): Promise<'replaced' | 'outdated' | 'last_key'>
  /** Notes that a key was used. */
  used(id: KeyId, nowMs: number): Promise<void>
  findByHash(hash: string): Promise<ApiKey | null>
  /** A key of any owner. */
  find(id: KeyId): Promise<ApiKey | null>
  /** Those of an owner, without those of endpoints, oldest first; the first 10,000 unless a slice is given. */
  list(owner: OwnerId, slice?: Slice): Promise<ApiKey[]>
  /** `last_key` as for {@link update}. */
  remove(owner: OwnerId, id: KeyId): Promise<'removed' | 'absent' | 'last_key'>
  /** Counts that {@link saveWindowCounts} kept last; empty before that. */
  windowCounts(owner: OwnerId): Promise<WindowCount[]>
  /** Stores the counts, so that a restart loses only the latest ones. */
  saveWindowCounts(owner: OwnerId, counts: readonly WindowCount[]): Promise<void>
}
