/**
 * Judges a release that became ready by its failed jobs and requests: a sequential test, which may be evaluated
 * after each result, compares its failure rate with that of the last good release.
 *
 * The results of a release exclude each rate whose likelihood is {@link EXCLUSION} times smaller than the mean
 * likelihood of all rates from 0 to 1. Under the true rate that ratio is a martingale that starts at 1, so by
 * Ville's inequality the true rate is excluded at any of all evaluations with a probability of at most 1 /
 * EXCLUSION. The release is clearly worse if all rates that its results allow are above all that those of the
 * other one allow. For a release that is no worse, this requires that one of the two true rates is excluded: at
 * most 2 / EXCLUSION, 1 %, for any number of evaluations.
 */

import type { ResultCount } from '../endpoints/rollout-facts.ts'

/** Number of results of a new release below which it is not judged. */
export const MIN_JUDGED_RESULTS = 20
/** Number of results after which a release that was not stopped is good, and is no longer judged. */
export const TRIAL_RESULTS = 200
/** Time from its first ready worker after which a release with fewer results is no longer judged, in milliseconds. */
export const TRIAL_MS = 7 * 86_400_000
/** A rate is excluded if its likelihood is this many times smaller than the mean likelihood of all rates. */
const EXCLUSION = 200
/** Halvings of an interval of rates: to a billionth. */
const STEPS = 30

/** The lowest failure rate that these results allow, from 0 to 1, at any stop of the counting. */
export function leastFailureRate(results: ResultCount): number {
  if (results.failed === 0) return 0
  const excludes = exclusionBy(results)
  let [allowed, excluded] = [results.failed / results.ended, 0]
  for (let step = 0; step < STEPS; step += 1) {
    const middle = (allowed + excluded) / 2
    if (excludes(middle)) excluded = middle
    else allowed = middle
  }
  return excluded
}

/**
 * True if a release with these results fails more than another one, beyond chance; never below {@link
 * MIN_JUDGED_RESULTS}.
 */
export function isClearlyWorse(release: ResultCount, good: ResultCount): boolean {
  if (release.ended < MIN_JUDGED_RESULTS || good.ended === 0) return false
  if (release.failed * good.ended <= good.failed * release.ended) return false
  const least = leastFailureRate(release)
  return least > good.failed / good.ended && exclusionBy(good)(least)
}

/** The newest release of an endpoint while it is judged. */
export interface ReleaseTrial {
  readonly results: ResultCount
  /** Time at which its first worker was ready, in epoch milliseconds. */
  readonly readyAtMs: number
  /** Results of the release that it is compared with; null if no other one has worked. */
  readonly good: ResultCount | null
}

/**
 * Verdict on the results so far: the release stops, is no longer judged because it is good or old enough, or is
 * still judged.
 */
export type TrialVerdict = 'stop' | 'over' | 'open'

/** Judges a release. May be called after each result, or less often. */
export function judgeRelease({ results, readyAtMs, good }: ReleaseTrial, nowMs: number): TrialVerdict {
  if (nowMs - readyAtMs >= TRIAL_MS) return 'over'
  if (good !== null && isClearlyWorse(results, good)) return 'stop'
  return results.ended >= TRIAL_RESULTS ? 'over' : 'open'
}

/** The test for rates that these results exclude. */
function exclusionBy({ ended, failed }: ResultCount): (rate: number) => boolean {
  const passed = ended - failed
  const mean = logFactorial(failed) + logFactorial(passed) - logFactorial(ended + 1)
  const limit = mean - Math.log(EXCLUSION)
  return rate => {
    const likelihood = (failed === 0 ? 0 : failed * Math.log(rate)) + (passed === 0 ? 0 : passed * Math.log1p(-rate))
    return likelihood <= limit
  }
}

/** Logarithm of a factorial by Stirling's series, which is exact to a billionth from 10 on. */
function logFactorial(n: number): number {
  if (n < 10) {
    let product = 1
    for (let factor = 2; factor <= n; factor += 1) product *= factor
    return Math.log(product)
  }
  return n * Math.log(n) - n + Math.log(2 * Math.PI * n) / 2 + 1 / (12 * n) - 1 / (360 * n ** 3)
}
