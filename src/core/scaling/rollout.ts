/**
 * Rollout of an endpoint's newest release. Until one of its workers is ready, the release has not shown that it
 * works: after three crashes the rollout stops, and workers of the last release that worked are started in its
 * place. The same happens if a release was ready and fails its jobs; rollout-judge.ts decides that.
 */

import type { Endpoint } from '../endpoints/endpoint.ts'
import type { ReleasedTemplate } from '../endpoints/release.ts'
import { type FailureStop, ROLLED_OUT, type RolloutFacts, type WorkingRelease } from '../endpoints/rollout-facts.ts'
import { type StartFailure, startFailureText, startRemedy } from '../workers/start-failure.ts'
import { isAwayCause } from '../workers/start-remedy.ts'
import { crashed, exitText, takesJobs, type Worker } from '../workers/worker.ts'
import type { ExitCause } from '../workers/worker-exit.ts'
import type { EndpointSnapshot } from './scale.ts'

/** Number of crashes that stop a rollout, unless a worker of the release was ready. */
export const MAX_ROLLOUT_CRASHES = 3

/** Progress of a rollout. `STOPPED` lasts until the next release, `CANARY` until that or its promotion. */
export type RolloutState = 'IN_PROGRESS' | 'STOPPED' | 'CANARY' | 'COMPLETE'

const INNOCENT: ReadonlySet<ExitCause['kind']> = new Set([
  ...(['unseen', 'server_stopped', 'engine_stopped', 'container_removed', 'reclaimed'] as const),
])

/**
 * True if the end of a worker shows that its release does not work: not an unseen end, and not one that the engine
 * caused.
 */
export function countsAgainstRelease(worker: Worker): boolean {
  const cause = worker.exit?.cause
  if (!crashed(worker) || cause === undefined || INNOCENT.has(cause.kind)) return false
  return cause.kind !== 'not_started' || blamesRelease(cause.failure)
}

/**
 * Progress of the rollout.
 * @param startFailure reason why no worker of the newest release can be started now; null if one can
 */
export function findRolloutState(snapshot: EndpointSnapshot, startFailure: StartFailure | null): RolloutState {
  const { rollout, endpoint, workers } = snapshot
  const fails = rollout.crashes >= MAX_ROLLOUT_CRASHES || (startFailure !== null && blamesRelease(startFailure))
  const hasFallback = findFallback(snapshot) !== null
  if ((rollout.stop !== null || (!rollout.wasReady && fails)) && hasFallback) return 'STOPPED'
  if (rollout.canary !== null && hasFallback) return 'CANARY'
  return workers.some(({ version }) => version !== endpoint.version) ? 'IN_PROGRESS' : 'COMPLETE'
}

/**
 * Reason why a rollout stopped, or may stop soon, as a clause; null without any evidence against the release.
 */
export function rolloutProblem(snapshot: EndpointSnapshot, startFailure: StartFailure | null): string | null {
  const { endpoint, rollout, exits } = snapshot
  if (rollout.stop !== null && rollout.working !== null)
    return failuresText(endpoint, { stop: rollout.stop, working: rollout.working.version })
  if (rollout.wasReady) return null
  if (startFailure !== null && blamesRelease(startFailure))
    return `no worker of it can be started: ${startFailureText(startFailure)}`
  if (rollout.crashes === 0) return null
  const times = rollout.crashes === 1 ? 'a worker of it crashed' : `${rollout.crashes} workers of it crashed`
  const last = exits.find(worker => worker.version === endpoint.version && countsAgainstRelease(worker))
  const how = last?.exit == null ? '' : `; the last one ${exitText(last, last.exit)}`
  return `${times} and none has been ready${how}`
}

/**
 * The figures for which a release that was ready was stopped, as a clause.
 * @param endpoint at the version that is stopped
 * @param found the results of both releases, and the version that continues
 */
export function failuresText(
  { type, version }: Pick<Endpoint, 'type' | 'version'>,
  { stop: { release, working: previous }, working }: { readonly stop: FailureStop; readonly working: number },
): string {
  const what = type === 'LOAD_BALANCER' ? 'requests' : 'jobs'
  return `${release.failed} of ${release.ended} ${what} failed on release ${version}, ${previous.failed} of ${previous.ended} on release ${working}`
}

/** The newest release while it is a canary. */
export interface CanaryRelease {
  /** The endpoint with the configuration of the canary. */
  readonly endpoint: Endpoint
  /** Percentage of workers that run it. */
  readonly percent: number
}

/**
 * The release whose workers are started: the newest one, or the last one that worked while the rollout is stopped
 * or the newest is a canary.
 */
export interface PlannedRelease {
  /**
   * The endpoint in the configuration of that release, with the present name, range of workers, scaler and
   * timeouts.
   */
  readonly snapshot: EndpointSnapshot
  /** Template of its workers; null for the present template. */
  readonly template: ReleasedTemplate | null
  /** The version of the newest release. */
  readonly presentVersion: number
  /** Null without a canary; see canary-plan.ts. */
  readonly canary: CanaryRelease | null
}

/** Chooses the release whose workers are started. @param startFailure as for {@link findRolloutState} */
export function plannedRelease(snapshot: EndpointSnapshot, startFailure: StartFailure | null): PlannedRelease {
  const state = findRolloutState(snapshot, startFailure)
  const working = state === 'STOPPED' || state === 'CANARY' ? findFallback(snapshot) : null
  const presentVersion = snapshot.endpoint.version
  if (working === null) return { snapshot, template: null, presentVersion, canary: null }
  const { version, configuration } = working
  const { scaler: _, ...seen } = configuration.endpoint
  const endpoint: Endpoint = { ...snapshot.endpoint, ...seen, version }
  const percent = state === 'CANARY' ? snapshot.rollout.canary : null
  return {
    snapshot: { ...snapshot, endpoint, rollout: ROLLED_OUT },
    template: configuration.template,
    presentVersion,
    canary: percent === null ? null : { endpoint: snapshot.endpoint, percent },
  }
}

/** True if workers of an older release may still serve because none of the newest one was ready. */
export function isUnproven({ rollout, endpoint, workers }: EndpointSnapshot): boolean {
  return !rollout.wasReady && workers.some(worker => takesJobs(worker) && worker.version !== endpoint.version)
}

/** The release to fall back to: null after a change of the type, since workers of a queue serve no requests. */
export function findFallback({
  rollout: { working },
  endpoint,
}: {
  readonly rollout: RolloutFacts
  readonly endpoint: Pick<Endpoint, 'type'>
}): WorkingRelease | null {
  return working?.configuration.endpoint.type === endpoint.type ? working : null
}

/** True if a start failure would stop the rollout; otherwise the caller need not look for one. */
export function mayStop({ wasReady, working }: RolloutFacts): boolean {
  return !wasReady && working !== null
}

function blamesRelease(failure: StartFailure): boolean {
  return !isAwayCause(startRemedy(failure).cause)
}
