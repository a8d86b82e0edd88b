import type { Account, AccountChanges } from '../../core/accounts/account.ts'
import type { KeptRelease, PastRelease, Release } from '../../core/endpoints/release.ts'
import type { FailureStop, ResultCount, RolloutFacts } from '../../core/endpoints/rollout-facts.ts'
import type { Template } from '../../core/endpoints/template.ts'
import type { Volume, VolumeKind } from '../../core/endpoints/volume.ts'
import type { EndpointId, OwnerId, RegistryId, SecretId, TemplateId, VolumeId, WorkerId } from '../../core/ids.ts'
import type { ModelAlias } from '../../core/openai/model-alias.ts'
import type { ServedModels } from '../../core/openai/model-names.ts'
import type { Slice } from '../../core/pages.ts'
import type { LearnedMemory } from '../../core/placement/learned-memory.ts'
import type { Registry } from '../../core/secrets/registry.ts'
import { PAYLOAD_KINDS, type PayloadKind } from '../../core/secrets/seals.ts'
import type { Secret } from '../../core/secrets/secret.ts'
import type { SuspendFailures } from '../../core/workers/worker-suspension.ts'

/** Changes of a registry. */
export interface RegistryChanges {
  readonly name?: string
  readonly username?: string
  /** The password, sealed. */
  readonly sealed?: string
}

/** Credentials for private images, with their sealed passwords. */
export interface RegistryStore {
  insert(registry: Registry, sealed: string): Promise<void>
  /** Replaces the given fields; null if it was deleted. */
  update(owner: OwnerId, id: RegistryId, changes: RegistryChanges): Promise<Registry | null>
  find(owner: OwnerId, id: RegistryId): Promise<Registry | null>
  sealedPassword(owner: OwnerId, id: RegistryId): Promise<string | null>
  /** Those of an owner, oldest first; the first 10,000 unless a slice is given. */
  list(owner: OwnerId, slice?: Slice): Promise<Registry[]>
  /**
   * Removes it; templates that have it lose it, and each endpoint that uses one of those gets a new version with its
   * release. Returns these endpoints; null when there is no such registry.
   */
  remove(owner: OwnerId, id: RegistryId, nowMs: number): Promise<EndpointId[] | null>
}

/** Changes of a volume. */
export interface VolumeChanges {
  readonly name?: string
  readonly sizeGb?: number
}

/** Volumes of both kinds. */
export interface VolumeStore {
  insert(volume: Volume): Promise<void>
  /** Replaces the given fields; null if it was deleted, or is larger than the given size already. */
  update(owner: OwnerId, id: VolumeId, changes: VolumeChanges): Promise<Volume | null>
  find(owner: OwnerId, id: VolumeId): Promise<Volume | null>
  /** Those of an owner and of one kind or both, oldest first; the first 10,000 unless a slice is given. */
  list(owner: OwnerId, slice?: Slice, kind?: VolumeKind): Promise<Volume[]>
  /** The endpoints that use it, at most 10, when it cannot be removed for them. */
  remove(owner: OwnerId, id: VolumeId): Promise<'removed' | 'absent' | EndpointId[]>
}

/** Rarer properties of a new release. */
export interface ReleaseOptions {
  /** For a rollback, the version that it goes back to, and the exact image of that. */
  readonly restores?: Release['restores']
  readonly image?: Release['image']
  /** True where old workers go although no new one has been ready. */
  readonly replacesAtOnce?: boolean
  /** The percentage of workers that it has as a canary. */
  readonly canary?: Release['canary']
}

/** Results of the jobs and requests of a worker since the previous report. */
export interface WorkerResults extends ResultCount {
  readonly workerId: WorkerId
  /** True if it ended while it had jobs. That counts as one more failure if its release caused its end. */
  readonly lostJobs: boolean
}

/** The newest release of an endpoint while it is judged, with the one that it is compared with. */
export interface JudgedRelease {
  readonly endpointId: EndpointId
  readonly version: number
  readonly readyAtMs: number
  readonly results: ResultCount
  /** The last good release; null where no other one has worked. */
  readonly good: { readonly version: number; readonly results: ResultCount } | null
}

/** Images of a part of the endpoints. */
export interface UsedImages {
  readonly images: readonly string[]
  /** The endpoint after which the next part begins; null after the last one. */
  readonly next: EndpointId | null
}

/** Releases, which appear in the transaction that makes a new version of an endpoint, and go with the endpoint. */
export interface ReleaseStore {
  /** Those that are kept, newest first; see `MAX_RELEASES`. */
  list(endpointId: EndpointId): Promise<PastRelease[]>
  /** One with its configuration; null when it is not kept. */
  find(endpointId: EndpointId, version: number): Promise<KeptRelease | null>
  /** Facts of the rollout of a version. */
  rollout(endpointId: EndpointId, version: number): Promise<RolloutFacts>
  /**
   * Adds results of workers to those of their releases; removed workers are left out. They may be
   * lost when the machine fails.
   * @param results at most 500 workers
   * @returns of the endpoints of these workers the newest releases that are judged
   */
  addResults(results: readonly WorkerResults[]): Promise<JudgedRelease[]>
  /** Ends the trial of a release. */
  endTrial(endpointId: EndpointId, version: number): Promise<void>
  /**
   * Stops a release that fails its jobs. False if its trial is over, or it is not the newest release.
   * @param working the version that goes on
   */
  stop(endpointId: EndpointId, version: number, working: number, stop: FailureStop): Promise<boolean>
  /**
   * Makes a canary an ordinary release, and resumes one that was stopped for its failures. False if it is
   * neither, or not the newest release.
   */
  promote(endpointId: EndpointId, version: number): Promise<boolean>
  /** The exact image that the workers of a version run; null before the first of them was started. */
  image(endpointId: EndpointId, version: number): Promise<string | null>
  /**
   * Settles which image the workers of a version run, unless another call was faster.
   * @param replaced result of {@link image} that no longer exists; null if it was null
   * @returns the present image; null if the release does not exist
   */
  pinImage(
    endpointId: EndpointId,
    version: number,
    choice: { readonly image: string; readonly replaced: string | null },
  ): Promise<string | null>
  /** The commits that the models of a version mean, by their references; those that are settled. */
  models(endpointId: EndpointId, version: number): Promise<Record<string, string>>
  /**
   * Settles which commit a model of a version means, unless another call was faster.
   * @returns the present commit; null if the release does not exist
   */
  pinModel(
    endpointId: EndpointId,
    version: number,
    choice: { readonly reference: string; readonly commit: string },
  ): Promise<string | null>
  /** The failures to suspend workers of a version; null for none since the last success. */
  suspendFailures(endpointId: EndpointId, version: number): Promise<SuspendFailures | null>
  /** Stores {@link suspendFailures}. */
  setSuspendFailures(endpointId: EndpointId, version: number, failures: SuspendFailures | null): Promise<void>
  /** The GPU memory that workers of a version needed; null before the first measurement. */
  gpuMemory(endpointId: EndpointId, version: number): Promise<LearnedMemory | null>
  /** Stores {@link gpuMemory}. */
  setGpuMemory(endpointId: EndpointId, version: number, learned: LearnedMemory): Promise<void>
  /**
   * The images of the newest version of each endpoint, of the one before, and of the last one that has worked, a part
   * of the endpoints at a time.
   * @param after the endpoint after which they come; null for the first ones
   * @param limit maximum number of endpoints
   */
  images(after: EndpointId | null, limit: number): Promise<UsedImages>
}

/** Accounts. */
export interface AccountStore {
  /** False when there is one of that id. */
  insert(account: Account): Promise<boolean>
  find(id: OwnerId): Promise<Account | null>
  /** Changes the given fields; null if it was deleted. */
  update(id: OwnerId, changes: AccountChanges): Promise<Account | null>
  /** All, oldest first; the first 10,000 unless a slice is given. */
  list(slice?: Slice): Promise<Account[]>
  /** The public SSH keys of an account; empty when it is not there. */
  sshKeys(id: OwnerId): Promise<string[]>
  /** Puts these in their place; an account that is not there comes about. */
  replaceSshKeys(id: OwnerId, keys: readonly string[], nowMs: number): Promise<void>
}

/**
 * Kinds of texts that the vault seals: values of secrets, signing keys, passwords of registries, addresses of
 * receivers of alerts, keys of endpoints, `s3Config` of jobs.
 */
export const SEAL_KINDS = [
  ...(['keyCanaries', 'secrets', 'webhookKeys', 'registries', 'alertReceivers', 'endpointKeys', 'jobs'] as const),
  ...PAYLOAD_KINDS,
] as const
/** One of {@link SEAL_KINDS}. */
export type SealKind = (typeof SEAL_KINDS)[number]

/** A sealed text and its owner. */
export interface SealedText {
  readonly id: string
  /** The row that it is bound to; see core/secrets/seals.ts. */
  readonly row: string
  readonly sealed: string
}

/** Another sealing of the same text. */
export interface SealChange {
  readonly id: string
  readonly previous: string
  readonly next: string
}

/** All sealed texts of all owners, to seal them with another key. */
export interface SealStore {
  /** Those of one kind behind an id, in the order of the ids; from the first one behind ''. */
  list(kind: SealKind, after: string, limit: number): Promise<SealedText[]>
  /** Texts of one kind that may be sealed, sealed or not, likewise. */
  listPayloads(kind: PayloadKind, after: string, limit: number): Promise<SealedText[]>
  /** Replaces those that did not change. @returns their number */
  replace(kind: SealKind, changes: readonly SealChange[]): Promise<number>
  /**
   * Keeps the sealed text that shows which encryption key the database has, unless there is one.
   * @returns the one that is kept
   */
  keepCanary(sealed: string): Promise<string>
}

/** Templates. */
export interface TemplateStore {
  /** False when the owner has another template of that name. */
  insert(template: Template): Promise<boolean>
  /**
   * Replaces one, and makes a new version, with its release, of each endpoint that uses it. Null when the name is
   * taken by another, or the template is gone.
   * @param previous its state when the change was made; `changed` if it changed since
   */
  replace(template: Template, previous: Template, nowMs: number): Promise<EndpointId[] | 'changed' | null>
  find(owner: OwnerId, id: TemplateId): Promise<Template | null>
  /** A public template of any owner. */
  findPublic(id: TemplateId): Promise<Template | null>
  findByName(owner: OwnerId, name: string): Promise<Template | null>
  /** The listed ones of an owner, oldest first; the first 10,000 unless a slice is given. */
  list(owner: OwnerId, slice?: Slice): Promise<Template[]>
  /** The public ones of all owners, oldest first. */
  listPublic(slice?: Slice): Promise<Template[]>
  /** Those of an owner with these ids, listed or not, in no order. */
  ofThese(owner: OwnerId, ids: readonly TemplateId[]): Promise<Template[]>
  /** Those that endpoints of the owner have, listed or not, at most 10,000. */
  ofEndpoints(owner: OwnerId): Promise<Template[]>
  /** The endpoints that have it. */
  users(id: TemplateId): Promise<EndpointId[]>
  /** `in_use` when an endpoint has it. */
  remove(owner: OwnerId, id: TemplateId): Promise<'removed' | 'in_use' | 'absent'>
}

/** Changes of a secret. */
export interface SecretChanges {
  readonly description?: string | null
  /** The value, sealed, and when it was given. */
  readonly value?: { readonly sealed: string; readonly atMs: number }
}

/** Other names of models. */
export interface ModelAliasStore {
  /** Adds one, or replaces the endpoints of one that is there; false for one more than an account may have. */
  save(alias: ModelAlias): Promise<boolean>
  find(owner: OwnerId, name: string): Promise<ModelAlias | null>
  /** All of an owner, by name. */
  list(owner: OwnerId): Promise<ModelAlias[]>
  /** False without one of that name. */
  remove(owner: OwnerId, name: string): Promise<boolean>
}

/** The models that workers said they serve, for endpoints that exist. They go with their endpoint. */
export interface ServedModelStore {
  /** Replaces those of the endpoint. They may be lost when the machine fails. */
  save(served: ServedModels): Promise<void>
  /** Those of some endpoints, at most 1,001, in no order. */
  of(ids: readonly EndpointId[]): Promise<ServedModels[]>
}

/** Secrets with their sealed values. */
export interface SecretStore {
  /** False when the owner has a secret of that name. */
  insert(secret: Secret, sealed: string): Promise<boolean>
  /** Replaces the given fields; null if it was deleted. */
  update(owner: OwnerId, id: SecretId, changes: SecretChanges): Promise<Secret | null>
  find(owner: OwnerId, id: SecretId): Promise<Secret | null>
  findByName(owner: OwnerId, name: string): Promise<Secret | null>
  /** Those of an owner, oldest first; the first 10,000 unless a slice is given. */
  list(owner: OwnerId, slice?: Slice): Promise<Secret[]>
  /** Sealed values by name, of those that exist. */
  sealedValues(owner: OwnerId, names: readonly string[]): Promise<Map<string, string>>
  remove(owner: OwnerId, id: SecretId): Promise<boolean>
}
