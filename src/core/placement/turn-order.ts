/**
 * The order of turns: a turn goes to the account with the fewest workers, of several with equally many to the one that
 * has the endpoint with the least, and within the account to the endpoint with the least of its highest priority.
 *
 * Before that, in this order: workers that were paused for the longest time, wants for work, and starts for which
 * others were paused. The least has an endpoint below workersMin, then the one with the smallest part of the workers
 * that it wants, then the one that waits longest.
 *
 * All endpoints of an account, and all accounts, are compared by a key each, so the order has no circles. Rules for
 * pairs made some: a priority that counts between two endpoints, and not between each of them and a third one of
 * another account.
 */
import { PRIORITIES } from '../endpoints/endpoint.ts'
import type { OwnerId } from '../ids.ts'
import type { Standing } from './placement-ledger.ts'

/** Facts about endpoints that change with each turn. */
export interface TurnFacts {
  /** True if a worker of the endpoint has been paused for the longest time. */
  readonly isOverdue: (standing: Standing) => boolean
  /** Number of workers that an account has or gets now. */
  readonly countOf: (owner: OwnerId) => number
}

/** The endpoints of this rank of an account, of which one may be next. */
interface Candidate {
  readonly owner: OwnerId
  readonly rank: number
  /** The least of {@link leastKey} of all of them. */
  readonly least: TurnKey
  readonly first: Standing
  readonly firstKey: TurnKey
}

/** Parts in the order of their weight; the smaller one comes first. */
type TurnKey = readonly (number | string)[]

/** The endpoint that gets the next turn. @param waiting endpoints that want workers, at least one */
export function nextTurn(waiting: Iterable<Standing>, { isOverdue, countOf }: TurnFacts): Standing {
  const candidates = new Map<OwnerId, Candidate>()
  for (const first of waiting) {
    const { owner, priority } = first.tenant
    const least = leastKey(first)
    const firstKey = [-PRIORITIES.indexOf(priority), ...least]
    const own = { owner, rank: rankOf(first, isOverdue(first)), least, first, firstKey }
    const other = candidates.get(owner)
    candidates.set(owner, other === undefined ? own : joined(other, own))
  }
  const keyed = [...candidates.values()].map(({ owner, rank, least, first }) => ({
    first,
    key: [rank, countOf(owner), ...least],
  }))
  return keyed.reduce((best, other) => (isBefore(other.key, best.key) ? other : best)).first
}

/** Those of the better rank of an account; with the same rank all of them. */
function joined(a: Candidate, b: Candidate): Candidate {
  if (a.rank !== b.rank) return a.rank < b.rank ? a : b
  const ahead = isBefore(b.firstKey, a.firstKey) ? b : a
  return { ...ahead, least: isBefore(b.least, a.least) ? b.least : a.least }
}

/** The rank that counts before the turns of accounts; the smaller one first. */
function rankOf({ tenant, promised, wanted }: Standing, isOverdue: boolean): number {
  if (isOverdue) return tenant.isSpare ? 1 : 0
  return (tenant.isSpare ? 4 : 2) + (promised > 0 && wanted > 0 ? 0 : 1)
}

/** The last part, the id, differs for all. */
function leastKey({ tenant, have, wanted, wakes }: Standing): TurnKey {
  const isBelow = have < tenant.workersMin
  return [isBelow ? 0 : 1, have / (have + wanted + wakes.length), tenant.sinceMs, tenant.id]
}

/** Compares keys of the same form. */
function isBefore(a: TurnKey, b: TurnKey): boolean {
  const index = a.findIndex((part, at) => part !== b[at])
  return index >= 0 && a[index]! < b[index]!
}
