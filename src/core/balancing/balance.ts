/**
 * Which worker of a load-balancing endpoint gets a request. Pure: the same workers and the same request give the same choice.
 *
 * The least loaded ready worker gets it. Workers of the endpoint's version come first until each has as many requests as it
 * should have; then older ones take what is above that, so that the first new worker of a release is not given the load of
 * all old ones. Among equals it is the turn of the one that was used longest ago.
 *
 * An ejected worker gets no requests (outlier-ejection.ts). Where no ready worker is in the rotation, all of them are used: a request
 * that may fail is better than one that surely waits.
 */
import type { WorkerId } from '../ids.ts'
import type { BalancedEndpoint, Target } from '../workers/socket-address.ts'
import { type Ejection, isInRotation } from './outlier-ejection.ts'

/**
 * Which worker a request wants, by its header `X-Runpod-Worker-Id`: `soft` takes another when that one is not to be had,
 * `strict` does not, `strict-resume` has it started again when it has ended.
 */
export interface Affinity {
  readonly kind: 'soft' | 'strict' | 'strict-resume'
  readonly workerId: WorkerId
}

/** A worker as the choice sees it. */
export interface Candidate extends Target {
  readonly inFlight: number
  /** A counter over all workers, as it was when this one was last sent a request. */
  readonly usedAt: number
  readonly ejection: Ejection
}

/** What of the endpoint the choice depends on. */
export type BalanceRules = Pick<BalancedEndpoint, 'version' | 'requestCount' | 'maxConcurrency' | 'paused'>

/** What a request wants. */
export interface Preference {
  readonly affinity: Affinity | null
  /** Workers that failed to serve it, which are taken only when no other is in the rotation. */
  readonly avoid: readonly WorkerId[]
}

/**
 * Why a request gets no worker now. It waits while `none_ready`, all are `full`, or the one that it insists on is `not_ready`,
 * `full` or, to be resumed after it, `ended`. It is refused when the endpoint is `paused` or the worker that it insists
 * on is `gone`, that is unknown or about to end.
 */
export type NoWorker = 'none_ready' | 'full' | 'not_ready' | 'ended' | 'paused' | 'gone'

/** The worker that gets the request now, or why none does. Allocates nothing: it is asked for every request. */
export function choose<Worker extends Candidate>(
  workers: readonly Worker[],
  rules: BalanceRules,
  preference: Preference,
): Worker | NoWorker {
  if (rules.paused) return 'paused'
  const { affinity, avoid } = preference
  if (affinity !== null) {
    const named = findWorker(workers, affinity.workerId)
    if (affinity.kind !== 'soft') return insist(named, affinity, rules)
    if (named !== null && isOpen(named) && hasRoom(named, rules) && isEligible(named, avoid)) return named
  }
  return chooseAny(workers, rules, avoid)
}

/** Whether it may be sent requests at all. */
export function isOpen({ state, servedAt }: Target): boolean {
  return state === 'ready' && servedAt !== null
}

function hasRoom({ inFlight }: Candidate, { maxConcurrency }: BalanceRules): boolean {
  return maxConcurrency === null || inFlight < maxConcurrency
}

function isEligible({ ejection, workerId }: Candidate, avoid: readonly WorkerId[]): boolean {
  return isInRotation(ejection) && !(avoid.length > 0 && avoid.includes(workerId))
}

function findWorker<Worker extends Candidate>(workers: readonly Worker[], id: WorkerId): Worker | null {
  for (const worker of workers) if (worker.workerId === id) return worker
  return null
}

/** Also an ejected worker: the request takes no other. */
function insist<Worker extends Candidate>(
  named: Worker | null,
  { kind }: Affinity,
  rules: BalanceRules,
): Worker | NoWorker {
  if (named === null || named.state === 'draining') return kind === 'strict' ? 'gone' : 'ended'
  if (!isOpen(named)) return 'not_ready'
  return hasRoom(named, rules) ? named : 'full'
}

function chooseAny<Worker extends Candidate>(
  workers: readonly Worker[],
  rules: BalanceRules,
  avoid: readonly WorkerId[],
): Worker | NoWorker {
  let best: Worker | null = null
  let spare: Worker | null = null
  let inRotation = false
  let isReady = false
  for (const worker of workers) {
    if (!isOpen(worker)) continue
    isReady = true
    const isFirstChoice = isEligible(worker, avoid)
    inRotation ||= isFirstChoice
    if (!hasRoom(worker, rules)) continue
    if (isFirstChoice) {
      if (best === null || isBetter(worker, best, rules)) best = worker
    } else if (spare === null || isBetterSpare(worker, spare, rules, avoid)) spare = worker
  }
  if (best !== null) return best
  if (!inRotation && spare !== null) return spare
  return isReady ? 'full' : 'none_ready'
}

function isBetter(a: Candidate, b: Candidate, rules: BalanceRules): boolean {
  const tierA = tierOf(a, rules)
  const tierB = tierOf(b, rules)
  if (tierA !== tierB) return tierA < tierB
  if (a.inFlight !== b.inFlight) return a.inFlight < b.inFlight
  const isCurrent = a.version === rules.version
  if (isCurrent !== (b.version === rules.version)) return isCurrent
  return a.usedAt < b.usedAt
}

/** Below its target one of the current version comes first; above it only the load counts. */
function tierOf({ inFlight, version }: Candidate, rules: BalanceRules): number {
  if (inFlight >= rules.requestCount) return 2
  return version === rules.version ? 0 : 1
}

function isBetterSpare(a: Candidate, b: Candidate, rules: BalanceRules, avoid: readonly WorkerId[]): boolean {
  const isAvoided = avoid.includes(a.workerId)
  if (isAvoided !== avoid.includes(b.workerId)) return !isAvoided
  return isBetter(a, b, rules)
}
