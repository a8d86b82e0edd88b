/** Facts of the rollout of an endpoint's newest release. core/scaling/rollout.ts decides from them. */
import { type FieldProblem, fieldProblem } from '../field-problem.ts'
import type { EndpointConfig } from './endpoint.ts'
import type { KeptConfiguration } from './release.ts'

/** A release whose workers were ready, with the fields that they see. */
export interface WorkingRelease {
  readonly version: number
  readonly configuration: KeptConfiguration
}

/** Results of a release: jobs and requests that ended in a way for which its workers are responsible. */
export interface ResultCount {
  readonly ended: number
  /** Failed ones among them. */
  readonly failed: number
}

/** Reason for stopping a release that was ready: it failed clearly more than the release that continues. */
export interface FailureStop {
  readonly atMs: number
  /** Results of the stopped release at that time. */
  readonly release: ResultCount
  /** Results of the release that continues. */
  readonly working: ResultCount
}

/** Stored facts of the rollout of an endpoint's newest release. */
export interface RolloutFacts {
  /** True if one of its workers was ready. */
  readonly wasReady: boolean
  /** Number of its workers that crashed before one was ready. */
  readonly crashes: number
  /**
   * The newest older release of which a worker was ready, without canaries and stopped ones; for a stopped
   * release, the one that it was compared with. Null if no such release exists or it is no longer needed.
   */
  readonly working: WorkingRelease | null
  /** Percentage of workers that it has as a canary; null for other releases. */
  readonly canary: number | null
  /** Reason for stopping it although it was ready; null if it is not stopped. */
  readonly stop: FailureStop | null
  /** True if the workers of older releases end at once, although no worker of this one may have been ready. */
  readonly replacesAtOnce?: true
}

/** Limits of the percentage of a canary. */
export const CANARY_PERCENT = { least: 1, most: 99 } as const

/**
 * Problem of a change of an endpoint as a canary; null if it can be one.
 * @param isSeen true if workers see the change
 */
export function canaryProblem(
  { workersMax }: Pick<EndpointConfig, 'workersMax'>,
  isSeen: boolean,
): FieldProblem | null {
  if (!isSeen) return fieldProblem('rollout.canary', 'needs a change that workers see, which makes a release')
  if (workersMax < 2)
    return fieldProblem(
      'rollout.canary',
      'needs a workersMax of at least 2: one for the canary, one for the release before',
    )
  return null
}

/** Facts of a release without a rollout in progress. */
export const ROLLED_OUT: RolloutFacts = { wasReady: true, crashes: 0, working: null, canary: null, stop: null }

/** As {@link ROLLED_OUT}, of a release that replaces the workers of older ones at once. */
export const REPLACED: RolloutFacts = { ...ROLLED_OUT, replacesAtOnce: true }
