/** What the store knows of the rollout of an endpoint's newest release. See core/scaling/rollout.ts for what is done about it. */
import type { KeptConfiguration } from './release.ts'

/** A release whose workers have been ready, with what they see. */
export interface WorkingRelease {
  readonly version: number
  readonly configuration: KeptConfiguration
}

/** What the store knows of an endpoint's newest release. */
export interface RolloutFacts {
  /** Whether one of its workers has been ready. */
  readonly wasReady: boolean
  /** Number of its workers that crashed before one was ready. */
  readonly crashes: number
  /** The newest older release of which a worker has been ready; null for none, and where it is not asked for any more. */
  readonly working: WorkingRelease | null
}

/** A release that nobody has to fall back from. */
export const ROLLED_OUT: RolloutFacts = { wasReady: true, crashes: 0, working: null }
