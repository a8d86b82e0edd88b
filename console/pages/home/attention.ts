/** Endpoints and keys that need attention, and sums over all endpoints. */
import type { ApiKey, EndpointOverview } from '../../client/api-types.d.ts'
import { isPassing } from '../../parts/cause.ts'
import { ATTENTION_KINDS, requestsOfHour } from '../endpoints/endpoint-states.ts'

/** Shorter waits are usual, in milliseconds. */
const SHORT_MS = 10_000

/**
 * The endpoints that somebody should look at: first those to fix, then those whose requests fail, then those that
 * wait longest.
 * @param isKept true for one that was fixed just now
 */
export function findAttention(
  rows: readonly EndpointOverview[],
  nowMs: number,
  isKept: (id: string) => boolean,
): readonly EndpointOverview[] {
  // Waits have one rank: the longest comes first.
  const rank = ({ attention }: EndpointOverview) =>
    attention === null ? 3 : Math.min(2, ATTENTION_KINDS.indexOf(attention))
  const since = ({ why }: EndpointOverview) => why?.sinceMs ?? Number.MAX_SAFE_INTEGER
  return rows
    .filter(({ id, why, attention }) => {
      if (isKept(id)) return true
      const isWait = attention === 'wait' || attention === 'chosen'
      return attention !== null && !(isWait && why !== null && isPassing(why, SHORT_MS, nowMs))
    })
    .sort((a, b) => rank(a) - rank(b) || since(a) - since(b))
}

/** Facts of a key that decide on its attention. */
export type KeyFacts = Pick<ApiKey, 'id' | 'name' | 'expiresAt' | 'disabled'>

const SOON_MS = 7 * 86_400_000

/** Keys that still work and expire within a week, the first one first. */
export function soonEnding(keys: readonly KeyFacts[], nowMs: number): readonly KeyFacts[] {
  const remainingMs = ({ expiresAt }: KeyFacts) =>
    expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(expiresAt) - nowMs
  return keys
    .filter(key => !key.disabled && remainingMs(key) > 0 && remainingMs(key) <= SOON_MS)
    .sort((a, b) => remainingMs(a) - remainingMs(b))
}

const MAX_ACTIVE = 8

/** The most active endpoints, the busiest first. */
export function mostActive(rows: readonly EndpointOverview[]): readonly EndpointOverview[] {
  const currentLoad = ({ jobs, workers }: EndpointOverview) => jobs.inProgress + jobs.inQueue + workers.total
  return [...rows]
    .sort((a, b) => requestsOfHour(b) - requestsOfHour(a) || currentLoad(b) - currentLoad(a))
    .slice(0, MAX_ACTIVE)
}

/** The sums over all endpoints. */
export function sumTotals(rows: readonly EndpointOverview[]) {
  const sum = (of: (row: EndpointOverview) => number) => rows.reduce((total, row) => total + of(row), 0)
  return {
    inQueue: sum(({ jobs }) => jobs.inQueue),
    inProgress: sum(({ jobs }) => jobs.inProgress),
    workers: sum(({ workers }) => workers.total),
    perMinute: Math.round(sum(({ rate }) => rate.perMinute)),
  }
}
