/** What the store knows of the rollout of an endpoint's newest release. See core/scaling/rollout.ts for what is done about it. */
import { type FieldProblem, fieldProblem } from '../field-problem.ts'
import type { EndpointConfig } from './endpoint.ts'
import type { KeptConfiguration } from './release.ts'

/** A release whose workers have been ready, with what they see. */
export interface WorkingRelease {
  readonly version: number
  readonly configuration: KeptConfiguration
}

/** Results of a release: jobs and requests that ended in a way that its workers answer for. */
export interface ResultCount {
  readonly ended: number
  /** Those of them that failed. */
  readonly failed: number
}

/** Why a release that was ready is stopped: it failed clearly more than the one that goes on. */
export interface FailureStop {
  readonly atMs: number
  /** The results of the stopped release by then. */
  readonly release: ResultCount
  /** Those of the one that goes on. */
  readonly working: ResultCount
}

/** What the store knows of an endpoint's newest release. */
export interface RolloutFacts {
  /** Whether one of its workers has been ready. */
  readonly wasReady: boolean
  /** Number of its workers that crashed before one was ready. */
  readonly crashes: number
  /**
   * The newest older release of which a worker has been ready, without canaries and stopped ones; for a release that is stopped, the one that it was
   * compared with. Null for none, and where it is not asked for any more.
   */
  readonly working: WorkingRelease | null
  /** The percentage of workers that it has as a canary; null where it is none. */
  readonly canary: number | null
  /** Why it is stopped although it was ready; null where it is not. */
  readonly stop: FailureStop | null
}

/** Limits of the percentage of a canary. */
export const CANARY_PERCENT = { least: 1, most: 99 } as const

/** Why a change of an endpoint cannot be a canary; null when it can. @param isSeen whether workers see the change */
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

/** A release that nobody has to fall back from. */
export const ROLLED_OUT: RolloutFacts = { wasReady: true, crashes: 0, working: null, canary: null, stop: null }
