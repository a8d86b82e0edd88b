/**
 * Which worker of a load-balancing endpoint gets a request. Pure: the same workers and the same request give the same answer.
 *
 * The least loaded ready worker gets it. Workers of the endpoint's version come first until each has as many requests as it
 * should have; then older ones take what is above that, so that the first new worker of a release is not given the load of
 * all old ones. Among equals it is the turn of the one that was used longest ago.
 *
 * A worker whose last requests failed is taken out of the rotation for a while, and then tried with one request. Where no
 * ready worker is in the rotation, all of them are used: a request that may fail is better than one that surely waits.
 */
import type { WorkerId } from '../ids.ts'
import type { BalancedEndpoint, Target } from '../workers/socket-address.ts'

/**
 * Which worker a request wants, by its header `X-Runpod-Worker-Id`: `soft` takes another when that one is not to be had,
 * `strict` does not, `strict-resume` has it started again when it has ended.
 */
export interface Affinity {
  readonly kind: 'soft' | 'strict' | 'strict-resume'
  readonly workerId: WorkerId
}

/** How a request ended, for the judgement about its worker: `unreachable` is one whose connection could not be made. */
export type RequestOutcome = 'answered' | 'broken' | 'unreachable' | 'aborted'

/** So many requests in a row must fail before a worker is taken out of the rotation. */
export const FAILURES_UNTIL_OUT = 3
const FIRST_OUT_MS = 1_000
const LONGEST_OUT_MS = 30_000

/**
 * How far a worker is trusted with requests: `good` is in the rotation; `out` is not; `due` was out for its time and gets one
 * request; `tried` has that one and gets no other until it is over.
 */
export interface Ejection {
  readonly standing: 'good' | 'out' | 'due' | 'tried'
  /** Requests that failed since the last one that was answered. */
  readonly failures: number
  /** How often it was taken out since then. */
  readonly outs: number
}

/** Nothing is held against it. */
export const NOT_EJECTED: Ejection = { standing: 'good', failures: 0, outs: 0 }

/** The trust in a worker after a request that was sent to it ended so. An aborted one says nothing about it. */
export function trustAfter(trust: Ejection, outcome: RequestOutcome): Ejection {
  if (outcome === 'answered') return NOT_EJECTED
  const { standing, failures, outs } = trust
  if (outcome === 'aborted') return standing === 'tried' ? { ...trust, standing: 'due' } : trust
  if (standing === 'tried') return { standing: 'out', failures: failures + 1, outs: outs + 1 }
  // It is out already and was used for lack of another, or what was sent to it before fails as well.
  if (standing !== 'good') return { ...trust, failures: failures + 1 }
  if (failures + 1 < FAILURES_UNTIL_OUT) return { ...trust, failures: failures + 1 }
  return { standing: 'out', failures: failures + 1, outs: 1 }
}

/** The trust in a worker as it is sent a request. */
export function trustWhenSent(trust: Ejection): Ejection {
  return trust.standing === 'due' ? { ...trust, standing: 'tried' } : trust
}

/** The trust in a worker that was out for its time, or whose trial has gone well for as long, such as a socket. */
export function trustWhenDue(trust: Ejection): Ejection {
  return trust.standing === 'good' ? trust : { ...trust, standing: 'due' }
}

/** For how long a worker stays out, and is tried with one request: 1 s, and twice as long each time, up to 30 s. */
export function outForMs({ outs }: Ejection): number {
  return Math.min(LONGEST_OUT_MS, FIRST_OUT_MS * 2 ** Math.min(outs - 1, 10))
}

/** A worker as the choice sees it. */
export interface Candidate extends Target {
  readonly inFlight: number
  /** Grows with each request that any worker gets; what it was at this one's last. */
  readonly usedAt: number
  readonly trust: Ejection
}

/** What of the endpoint the choice depends on. */
export type BalanceRules = Pick<BalancedEndpoint, 'version' | 'requestCount' | 'maxConcurrency' | 'paused'>

/** What a request wants. */
export interface Preference {
  readonly affinity: Affinity | null
  /** Workers that it was sent to in vain, which are taken only when no other is in the rotation. */
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
    if (named !== null && isOpen(named) && hasRoom(named, rules) && isInRotation(named, avoid)) return named
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

function isInRotation({ trust, workerId }: Candidate, avoid: readonly WorkerId[]): boolean {
  return (trust.standing === 'good' || trust.standing === 'due') && !(avoid.length > 0 && avoid.includes(workerId))
}

function findWorker<Worker extends Candidate>(workers: readonly Worker[], id: WorkerId): Worker | null {
  for (const worker of workers) if (worker.workerId === id) return worker
  return null
}

/** Its trust does not matter: there is no other. */
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
    const isFirstChoice = isInRotation(worker, avoid)
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
