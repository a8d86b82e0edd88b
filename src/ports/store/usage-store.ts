import type { BilledPhase } from '../../core/billing/prices.ts'
import type { JobUsage, WorkerUsage } from '../../core/billing/usage.ts'
import type { EndpointId, KeyId, OwnerId, WorkerId } from '../../core/ids.ts'
import type { TokenDay, TokenFigures, TokenPlace } from '../../core/openai/token-sums.ts'

/** Query of usage. */
export interface UsageQuery {
  readonly owner: OwnerId
  /** Null for all endpoints, those that are gone included. */
  readonly endpointId: EndpointId | null
  /**
   * Instants of whole hours, ascending: sums are made from each to the next. At most 100 spans are read at once.
   */
  readonly bounds: readonly number[]
}

/** Usage of the jobs of an endpoint in the span that begins at `startMs`. */
export interface JobUsageSum {
  readonly startMs: number
  readonly endpointId: EndpointId
  readonly usage: JobUsage
}

/** Time for which workers of an endpoint existed in the span that begins at `startMs`. */
export interface WorkerUsageSum {
  readonly startMs: number
  readonly endpointId: EndpointId
  /** See core/usage `billedFlavor`; `unknown` for workers of versions that did not note it. */
  readonly flavor: string
  readonly usage: WorkerUsage
}

/** Query of tokens. Bounds are instants of whole days, ascending; an omitted key or endpoint means all. */
export interface TokenQuery {
  readonly owner: OwnerId
  readonly bounds: readonly number[]
  readonly endpointId?: EndpointId | null
  readonly keyId?: KeyId | null
  /** True for one sum of each endpoint in a span, without key and model; false when left out. */
  readonly byEndpoint?: boolean
}

/** Tokens of one place in the span that begins at `startMs`. */
export interface TokenSum extends Omit<TokenPlace, 'owner'> {
  readonly startMs: number
  readonly figures: TokenFigures
}

/** The name of a deleted endpoint, or task. */
export interface FormerName {
  readonly endpointId: EndpointId
  readonly name: string
}

/** Workers of one flavor in one phase, at this moment. */
export interface FlavorWorkers {
  readonly flavor: string
  readonly phase: BilledPhase
  readonly workers: number
}

/**
 * Usage by the hour. Jobs are counted by the transitions that end their attempts and waits, workers when they end and
 * in between by {@link countWorkers}; each in the same transaction, so nothing is counted twice or lost. Usage
 * outlives endpoints. Reading stops before a span that would make more than 10,000 sums, and at an hour, also within a
 * span, once it has read some thousand hours of endpoints: `nextMs` is where to go on, null at the end.
 */
export interface UsageStore {
  jobs(query: UsageQuery): Promise<{ sums: JobUsageSum[]; nextMs: number | null }>
  /** Numbers of an owner's workers that have not ended, of each flavor in each phase. */
  running(owner: OwnerId): Promise<FlavorWorkers[]>
  /** The time of workers that run is included up to `nowMs`. */
  workers(query: UsageQuery, nowMs: number): Promise<{ sums: WorkerUsageSum[]; nextMs: number | null }>
  /**
   * Counts workers that were not counted since `beforeMs` up to now, at most `limit`.
   * @returns their number
   */
  countWorkers(nowMs: number, beforeMs: number, limit: number): Promise<number>
  /** Adds figures of requests; see services/billing `TokenCounter`, which bounds the names of models. */
  addTokens(days: readonly TokenDay[]): Promise<void>
  /** Tokens of an owner's requests. A span with too many sums is `nextMs`, also the first one. */
  tokens(query: TokenQuery): Promise<{ sums: TokenSum[]; nextMs: number | null }>
  /** Names of models of an owner's requests of a day, at most `limit`. */
  modelsOfDay(owner: OwnerId, dayMs: number, limit: number): Promise<string[]>
  /** Names of an owner's endpoints that were deleted since an instant, the last one first, at most `limit`. */
  formerNames(owner: OwnerId, sinceMs: number, limit: number): Promise<FormerName[]>
  /**
   * Removes hours, days of tokens, and names of deleted endpoints, before `beforeMs`, at most `limit` of each kind.
   * @returns number of removed rows of the most frequent kind
   */
  removeOld(beforeMs: number, limit: number): Promise<number>
}

/** Time of a worker that serves requests, since the previous report. */
export interface ServedTime {
  readonly id: WorkerId
  /** Time without a request, in ms. */
  readonly idleMs: number
  /** True while it has some. */
  readonly isBusy: boolean
}
