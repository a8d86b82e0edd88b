import { AppError } from '../errors.ts'
import { type FieldProblem, fieldProblem } from '../field-problem.ts'
import { DEFAULT_OWNER, type EndpointId, type KeyId, type OwnerId, type VolumeId } from '../ids.ts'
import type { KeyLimits } from '../key-limits.ts'

/** Level of the rights of a key in one area. */
export type AccessLevel = 'none' | 'read' | 'write'

/** Rights of a key on jobs: one level for all endpoints, or a level for each endpoint that is named. */
export type JobsAccess = AccessLevel | Readonly<Record<EndpointId, AccessLevel>>

/** Rights of a key on files of network volumes: one level for all volumes, or a level for each named volume. */
export type FilesAccess = AccessLevel | Readonly<Record<VolumeId, AccessLevel>>

/** The rights of a key. */
export type KeyScope =
  | { readonly type: 'all' }
  | { readonly type: 'read-only' }
  | {
      readonly type: 'restricted'
      readonly management: AccessLevel
      readonly jobs: JobsAccess
      /**
       * Rights on the metrics and the status of the whole server, for keys of the operator's account; omitted
       * means `none`.
       */
      readonly metrics?: 'none' | 'read'
      /** Rights on files of network volumes, which the S3 door gives; omitted means `none`. */
      readonly files?: FilesAccess
      /**
       * Names of models that it may call at `/openai/v1`, and nowhere else, besides those of the endpoints in `jobs`;
       * omitted means none.
       */
      readonly models?: readonly string[]
    }

/** All rights; for the first account, also those of the operator. */
export const FULL_SCOPE: KeyScope = { type: 'all' }

/** Metrics and status of the server, and nothing else. */
export const METRICS_SCOPE: KeyScope = { type: 'restricted', management: 'none', jobs: 'none', metrics: 'read' }

/** Limit of endpoints that a restricted key can name. */
export const MAX_SCOPE_ENDPOINTS = 1_000

/** Limits of the models that a restricted key can name; as long as a name in a request. */
export const SCOPE_MODELS = { count: 100, characters: 512 } as const

/** The maker of a key: a person, the server for itself, or the server for one endpoint. */
export type KeyKind = 'user' | 'server' | 'endpoint'

/** An API key as the store keeps it: the hash, never the key. */
export interface ApiKey {
  readonly id: KeyId
  readonly owner: OwnerId
  readonly kind: KeyKind
  readonly name: string
  readonly hash: string
  /** First characters of the key, so that people can distinguish keys; empty for old ones. */
  readonly hint: string
  readonly scope: KeyScope
  /** True for a key without REST windows and `RateLimit` headers. */
  readonly exempt: boolean
  /** Limits on requests whose answers report tokens; left out for a key without. */
  readonly limits?: KeyLimits
  /** True if streams of its requests are to report their tokens; left out for a key that does not ask for it. */
  readonly accounting?: boolean
  readonly disabled: boolean
  readonly expiresAtMs: number | null
  readonly createdAtMs: number
  /** Approximate instant of its last use; null before the first. */
  readonly lastUsedAtMs: number | null
  /** Endpoint of a key of the kind `endpoint`; the key is deleted with it. */
  readonly endpointId: EndpointId | null
}

/** A key without its hash, for its owner. */
export type KeyRecord = Omit<ApiKey, 'hash'>

/** The sender of a request, after its key was checked. */
export interface Caller {
  readonly owner: OwnerId
  readonly keyId: KeyId
  readonly scope: KeyScope
  readonly exempt: boolean
  /** True for a key of the first account with all rights: it may change the whole server and other accounts. */
  readonly operator: boolean
  /** Instant at which its key expires; null for never. */
  readonly expiresAtMs: number | null
  /** Limits of its key; left out for a key without. */
  readonly limits?: KeyLimits
  /** As of its key. */
  readonly accounting?: boolean
}

/** True if a key has all rights of the operator and never expires. One such key must always exist. */
export function isLastingOperatorKey({ owner, scope, disabled, expiresAtMs }: ApiKey): boolean {
  return owner === DEFAULT_OWNER && scope.type === 'all' && !disabled && expiresAtMs === null
}

/** True if a key is valid at an instant. */
export function isValidAt({ disabled, expiresAtMs }: Pick<ApiKey, 'disabled' | 'expiresAtMs'>, nowMs: number): boolean {
  return !disabled && (expiresAtMs === null || expiresAtMs > nowMs)
}

/** The caller of a key. */
export function callerFromKey(key: ApiKey): Caller {
  const { owner, id: keyId, scope, exempt, expiresAtMs, limits, accounting } = key
  const operator = owner === DEFAULT_OWNER && scope.type === 'all'
  return {
    owner,
    keyId,
    scope,
    exempt,
    operator,
    expiresAtMs,
    ...(limits !== undefined && { limits }),
    ...(accounting === true && { accounting }),
  }
}

/** True if the caller has rights of `level` in management. */
export function mayManage({ scope }: Pick<Caller, 'scope'>, level: 'read' | 'write'): boolean {
  return covers(managementLevel(scope), level)
}

/** True if the caller has rights of `level` on the jobs of this endpoint. */
export function mayUseJobs({ scope }: Pick<Caller, 'scope'>, level: 'read' | 'write', endpoint: EndpointId): boolean {
  return covers(jobsLevel(scope, endpoint), level)
}

/** True if the caller has rights of `level` on the jobs of all endpoints of its account, also of later ones. */
export function mayUseAllJobs({ scope }: Pick<Caller, 'scope'>, level: 'read' | 'write'): boolean {
  const all = levelEverywhere(scope)
  return all !== null && covers(all, level)
}

/** True if the caller may call a model by this name, whichever endpoint that leads to. */
export function mayUseModel({ scope }: Pick<Caller, 'scope'>, name: string): boolean {
  return scopeModels(scope).includes(name)
}

/** The models that a scope names. */
export function scopeModels(scope: KeyScope): readonly string[] {
  return scope.type === 'restricted' ? (scope.models ?? []) : []
}

/** True if the caller has rights of `level` on the files of this network volume. */
export function mayUseFiles({ scope }: Pick<Caller, 'scope'>, level: 'read' | 'write', volume: VolumeId): boolean {
  return covers(filesLevel(scope, volume), level)
}

/** True if a scope has a right on the files of some network volume. */
export function hasFiles(scope: KeyScope): boolean {
  const all = filesEverywhere(scope)
  return all === null ? scopeVolumes(scope).some(volume => filesLevel(scope, volume) !== 'none') : all !== 'none'
}

/** The network volumes whose files a scope names. */
export function scopeVolumes(scope: KeyScope): VolumeId[] {
  return scope.type === 'restricted' && typeof scope.files === 'object' ? (Object.keys(scope.files) as VolumeId[]) : []
}

/** True if the caller may read the metrics and the status of the whole server, which show all accounts. */
export function mayReadServer({ owner, scope }: Pick<Caller, 'owner' | 'scope'>): boolean {
  return owner === DEFAULT_OWNER && readsMetrics(scope)
}

/**
 * Guards operations on the whole server or on other accounts.
 * @throws AppError `forbidden` unless the caller has a key of the operator's account with all rights
 */
export function requireOperator({ operator }: Pick<Caller, 'operator'>): void {
  if (!operator) {
    throw new AppError(
      'forbidden',
      "this is for the operator: it needs a key of the operator's account that has all rights",
    )
  }
}

/** A scope for the jobs of one endpoint and nothing else. */
export function endpointScope(endpoint: EndpointId): KeyScope {
  return { type: 'restricted', management: 'none', jobs: { [endpoint]: 'write' } as Record<EndpointId, AccessLevel> }
}

/** Endpoints whose jobs the caller may read; null for all of its account. */
export function readableJobs({ scope }: Pick<Caller, 'scope'>): EndpointId[] | null {
  const all = levelEverywhere(scope)
  if (all !== null) return covers(all, 'read') ? null : []
  return scopeEndpoints(scope).filter(endpoint => covers(jobsLevel(scope, endpoint), 'read'))
}

/** The endpoints that a scope names. */
export function scopeEndpoints(scope: KeyScope): EndpointId[] {
  return scope.type === 'restricted' && typeof scope.jobs === 'object' ? (Object.keys(scope.jobs) as EndpointId[]) : []
}

/** All problems of a scope. @param owner the account of its key */
export function scopeProblems(owner: OwnerId, scope: KeyScope): FieldProblem[] {
  if (scope.type !== 'restricted') return []
  const problems: FieldProblem[] = []
  if (scopeEndpoints(scope).length > MAX_SCOPE_ENDPOINTS) {
    problems.push(fieldProblem('scope', `must name at most ${MAX_SCOPE_ENDPOINTS} endpoints`))
  }
  if (scopeVolumes(scope).length > MAX_SCOPE_ENDPOINTS) {
    problems.push(fieldProblem('scope', `must name at most ${MAX_SCOPE_ENDPOINTS} network volumes`))
  }
  const models = scopeModels(scope)
  if (models.length > SCOPE_MODELS.count) {
    problems.push(fieldProblem('scope', `must name at most ${SCOPE_MODELS.count} models`))
  }
  if (models.some(name => name === '' || name.length > SCOPE_MODELS.characters)) {
    problems.push(fieldProblem('scope', `must name models of 1 to ${SCOPE_MODELS.characters} characters`))
  }
  if (readsMetrics(scope) && owner !== DEFAULT_OWNER) {
    problems.push(
      fieldProblem('scope', "can have metrics only for a key of the operator's account: they show all accounts"),
    )
  }
  return problems
}

/** A scope without the endpoints and network volumes of these ids, which a new key cannot name. */
export function scopeWithout(scope: KeyScope, gone: ReadonlySet<EndpointId | VolumeId>): KeyScope {
  if (scope.type !== 'restricted') return scope
  const { jobs, files } = scope
  const kept = <Levels extends AccessLevel | Readonly<Record<string, AccessLevel>>>(levels: Levels): Levels =>
    typeof levels === 'string'
      ? levels
      : (Object.fromEntries(Object.entries(levels).filter(([id]) => !gone.has(id as EndpointId))) as Levels)
  return { ...scope, jobs: kept(jobs), ...(files !== undefined && { files: kept(files) }) }
}

/** True if the other scope has every right of this one. */
export function isWithin(scope: KeyScope, other: KeyScope): boolean {
  if (other.type === 'all') return true
  if (scope.type === 'all') return false
  if (!atMost(managementLevel(scope), managementLevel(other))) return false
  if (readsMetrics(scope) && !readsMetrics(other)) return false
  if (!areFilesWithin(scope, other)) return false
  const usesAll = levelEverywhere(other) === 'write'
  if (!usesAll && !scopeModels(scope).every(name => scopeModels(other).includes(name))) return false
  const jobs = levelEverywhere(scope)
  if (jobs !== null) return atMost(jobs, levelEverywhere(other) ?? 'none')
  return scopeEndpoints(scope).every(endpoint => atMost(jobsLevel(scope, endpoint), jobsLevel(other, endpoint)))
}

function managementLevel(scope: KeyScope): AccessLevel {
  if (scope.type === 'all') return 'write'
  return scope.type === 'read-only' ? 'read' : scope.management
}

/** A `read-only` key lacks this right: it reads only its own account. */
function readsMetrics(scope: KeyScope): boolean {
  return scope.type === 'all' || (scope.type === 'restricted' && scope.metrics === 'read')
}

/** Level for all endpoints; null if it depends on the endpoint. */
function levelEverywhere(scope: KeyScope): AccessLevel | null {
  if (scope.type === 'all') return 'write'
  if (scope.type === 'read-only') return 'read'
  return typeof scope.jobs === 'string' ? scope.jobs : null
}

/** Level on the files of all volumes; null if it depends on the volume. */
function filesEverywhere(scope: KeyScope): AccessLevel | null {
  if (scope.type === 'all') return 'write'
  if (scope.type === 'read-only') return 'read'
  const { files = 'none' } = scope
  return typeof files === 'string' ? files : null
}

function filesLevel(scope: KeyScope, volume: VolumeId): AccessLevel {
  const all = filesEverywhere(scope)
  if (all !== null) return all
  const { files } = scope as { files: Readonly<Record<VolumeId, AccessLevel>> }
  return Object.hasOwn(files, volume) ? files[volume]! : 'none'
}

function areFilesWithin(scope: KeyScope, other: KeyScope): boolean {
  const all = filesEverywhere(scope)
  if (all !== null) return atMost(all, filesEverywhere(other) ?? 'none')
  return scopeVolumes(scope).every(volume => atMost(filesLevel(scope, volume), filesLevel(other, volume)))
}

function jobsLevel(scope: KeyScope, endpoint: EndpointId): AccessLevel {
  const all = levelEverywhere(scope)
  if (all !== null) return all
  const { jobs } = scope as { jobs: Readonly<Record<EndpointId, AccessLevel>> }
  return Object.hasOwn(jobs, endpoint) ? jobs[endpoint]! : 'none'
}

function covers(has: AccessLevel, needs: 'read' | 'write'): boolean {
  return has === 'write' || has === needs
}

const LEVELS: readonly AccessLevel[] = ['none', 'read', 'write']

function atMost(level: AccessLevel, other: AccessLevel): boolean {
  return LEVELS.indexOf(level) <= LEVELS.indexOf(other)
}

/** Length of a key that an operator chose: fewer characters can be guessed. */
const KEY_LENGTH = { min: 20, max: 256 }

/** Problems of an API key that an operator chose, each as the rest of a sentence; empty for a good key. */
export function givenKeyProblems(key: string): string[] {
  const { min, max } = KEY_LENGTH
  if (/^[\x21-\x7e]+$/.test(key) && key.length >= min && key.length <= max) return []
  return [`must have ${min} to ${max} visible ASCII characters`]
}
