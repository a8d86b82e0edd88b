/**
 * Chooses the worker of a load-balancing endpoint for a request. Pure: the same workers and the same request give the
 * same choice.
 *
 * The least loaded ready worker gets it. Workers of the endpoint's version come first until each has its target of
 * requests; then older ones take the excess, so that the first new worker of a release does not get the load of all
 * old ones. Among equals the least recently used one is chosen.
 *
 * An ejected worker gets no requests (outlier-ejection.ts). If no ready worker is in the rotation, all of them are
 * used: a request that may fail is better than one that surely waits. But a refusing one cannot serve it.
 */
import type { WorkerId } from '../ids.ts'
import type { BalancedEndpoint, Target } from '../workers/socket-address.ts'
import { type Ejection, isInRotation } from './outlier-ejection.ts'

/**
 * The worker that a request asks for with its header `X-Runpod-Worker-Id`: `soft` takes another if that one is
 * unavailable, `strict` does not, `strict-resume` has it started again if it has ended.
 */
export interface Affinity {
  readonly kind: 'soft' | 'strict' | 'strict-resume'
  readonly workerId: WorkerId
}

/** A worker as the choice sees it. */
export interface Candidate extends Target {
  readonly inFlight: number
  /** Value of a counter over all workers at the last request to this one. */
  readonly usedAt: number
  readonly ejection: Ejection
}

/** Fields of the endpoint that the choice depends on. */
export type BalanceRules = Pick<BalancedEndpoint, 'version' | 'requestCount' | 'maxConcurrency' | 'paused'>

/** Wishes of a request. */
export interface Preference {
  readonly affinity: Affinity | null
  /** Workers that failed to serve it; they are taken only if no other is in the rotation. */
  readonly avoid: readonly WorkerId[]
}

/**
 * Reason why a request gets no worker now. It waits on `none_ready`, if all are `full`, or if the worker that it
 * insists on is `not_ready`, `full` or, to be resumed, `ended`. It is refused if the endpoint is `paused` or that
 * worker is `gone`: unknown or about to end.
 */
export type NoWorker = 'none_ready' | 'full' | 'not_ready' | 'ended' | 'paused' | 'gone'

/**
 * The worker that gets the request now, or the reason for no worker. Allocates nothing, since it runs for every
 * request.
 */
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

/** True if the worker may get requests at all. */
export function isOpen({ state, servedAt }: Target): boolean {
  return state === 'ready' && servedAt !== null
}

function hasRoom({ inFlight }: Candidate, { maxConcurrency }: BalanceRules): boolean {
  return maxConcurrency === null || inFlight < maxConcurrency
}

function isEligible({ ejection, workerId }: Candidate, avoid: readonly WorkerId[]): boolean {
  return isInRotation(ejection) && !(avoid.length > 0 && avoid.includes(workerId))
}

function isRefusing({ ejection }: Candidate): boolean {
  return ejection.state === 'refusing'
}

function findWorker<Worker extends Candidate>(workers: readonly Worker[], id: WorkerId): Worker | null {
  for (const worker of workers) if (worker.workerId === id) return worker
  return null
}

/** An ejected worker too, unless it is refusing: the request takes no other. */
function insist<Worker extends Candidate>(
  named: Worker | null,
  { kind }: Affinity,
  rules: BalanceRules,
): Worker | NoWorker {
  if (named === null || named.state === 'draining') return kind === 'strict' ? 'gone' : 'ended'
  if (!isOpen(named) || isRefusing(named)) return 'not_ready'
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
    } else if (!isRefusing(worker) && (spare === null || isBetterSpare(worker, spare, rules, avoid))) spare = worker
  }
  if (best !== null) return best
  if (!inRotation && spare !== null) return spare
  return isReady ? 'full' : 'none_ready'
}

function isBetter(a: Candidate, b: Candidate, rules: BalanceRules): boolean {
  const tierA = loadTier(a, rules)
  const tierB = loadTier(b, rules)
  if (tierA !== tierB) return tierA < tierB
  if (a.inFlight !== b.inFlight) return a.inFlight < b.inFlight
  const isCurrent = a.version === rules.version
  if (isCurrent !== (b.version === rules.version)) return isCurrent
  return a.usedAt < b.usedAt
}

/** Below its target a worker of the current version comes first; above it only the load counts. */
function loadTier({ inFlight, version }: Candidate, rules: BalanceRules): number {
  if (inFlight >= rules.requestCount) return 2
  return version === rules.version ? 0 : 1
}

function isBetterSpare(a: Candidate, b: Candidate, rules: BalanceRules, avoid: readonly WorkerId[]): boolean {
  const isAvoided = avoid.includes(a.workerId)
  if (isAvoided !== avoid.includes(b.workerId)) return !isAvoided
  return isBetter(a, b, rules)
}
