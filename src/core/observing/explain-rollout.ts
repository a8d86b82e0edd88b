/** What people should know of a release that does not work, beside why jobs or requests wait. */

import {
  isUnproven,
  MAX_ROLLOUT_CRASHES,
  type PlannedRelease,
  rolloutProblem,
  rolloutStateOf,
} from '../scaling/rollout.ts'
import type { EndpointSnapshot } from '../scaling/scale.ts'
import { type StartFailure, startRemedy } from '../workers/start-failure.ts'
import type { WorkerLoad } from '../workers/worker.ts'
import { adviceFor } from '../workers/worker-failure.ts'
import type { Explanation, WaitCause } from './explain.ts'

/** Causes beside which a stopped rollout is what people should mend. */
const FINE: ReadonlySet<WaitCause> = new Set(['nothing_waits', 'running', 'about_to_start', 'worker_starting'])

/** The snapshot that explains why work waits. Workers of a canary take it as those of its base do. */
export function explainedSnapshot({ snapshot, canary }: PlannedRelease): EndpointSnapshot {
  if (canary === null) return snapshot
  const { version } = snapshot.endpoint
  const isCanary = (worker: WorkerLoad) => worker.version === canary.endpoint.version
  return { ...snapshot, workers: snapshot.workers.map(worker => (isCanary(worker) ? { ...worker, version } : worker)) }
}

/**
 * An explanation with the rollout of the newest release: as the cause where it has stopped and nothing else is wrong, else as a note.
 * @param explanation of the release whose workers are started
 * @param snapshot of the newest release
 * @param startFailure why no worker of the newest release can be started now; null when one can
 */
export function withRollout(
  explanation: Explanation,
  snapshot: EndpointSnapshot,
  startFailure: StartFailure | null,
): Explanation {
  const { endpoint, rollout, exits } = snapshot
  const note = noteOf(snapshot, startFailure)
  if (note === null) return explanation
  const noted = { ...explanation, notes: [...explanation.notes, note] }
  if (rolloutStateOf(snapshot, startFailure) !== 'STOPPED') return noted
  const working = rollout.working!.version
  const { stop } = rollout
  const goesOn = stop === null ? [] : [`runyard endpoints promote ${endpoint.id} ${endpoint.version}`]
  const commands = [`runyard endpoints rollback ${endpoint.id} ${working}`, ...goesOn]
  const action =
    stop === null
      ? `go back to release ${working}, or change the endpoint`
      : `read how they failed, and go back to release ${working} or change the endpoint; or promote release ${endpoint.version}, so that it goes on all the same`
  if (!FINE.has(explanation.cause)) return { ...noted, commands: [...explanation.commands, ...commands] }
  if (stop !== null) {
    const summary = `${note}; ${explanation.summary}`
    return { ...explanation, cause: 'rollout_stopped', summary, action, commands, sinceMs: stop.atMs }
  }
  const last = exits.find(worker => worker.version === endpoint.version)
  const exit = startFailure === null ? last?.exit : null
  const advice =
    exit == null ? (startFailure === null ? null : startRemedy(startFailure).advice) : adviceFor(exit, last!.problem)
  return {
    cause: 'rollout_stopped',
    summary: `${note}; ${explanation.summary}`,
    action: advice === null ? action : `${action}: ${advice}`,
    commands: exit == null ? commands : [...commands, `runyard logs ${last!.id}`],
    sinceMs: (exit == null ? null : last!.exitedAtMs) ?? explanation.sinceMs,
    evidence: exit != null && exit.lastLines.length > 0 ? exit.lastLines : explanation.evidence,
    notes: explanation.notes,
  }
}

/** An explanation of one job, with the rollout of its endpoint as a note. Parameters as for {@link withRollout}. */
export function withRolloutNote(
  explanation: Explanation,
  snapshot: EndpointSnapshot,
  startFailure: StartFailure | null,
): Explanation {
  const note = noteOf(snapshot, startFailure)
  return note === null ? explanation : { ...explanation, notes: [...explanation.notes, note] }
}

function noteOf(snapshot: EndpointSnapshot, startFailure: StartFailure | null): string | null {
  const { version } = snapshot.endpoint
  const problem = rolloutProblem(snapshot, startFailure)
  const state = rolloutStateOf(snapshot, startFailure)
  if (state === 'CANARY') return canaryNote(snapshot, problem)
  if (problem === null) return null
  if (state === 'STOPPED') {
    const working = snapshot.rollout.working!.version
    return `the rollout of release ${version} has stopped: ${problem}; workers of release ${working} go on`
  }
  if (!isUnproven(snapshot)) return null
  return `release ${version} is being rolled out: ${problem}; after ${MAX_ROLLOUT_CRASHES} crashes the rollout stops`
}

function canaryNote({ endpoint: { id, version }, rollout, workers }: EndpointSnapshot, problem: string | null): string {
  const own = workers.filter(worker => worker.version === version).length
  const share = `release ${version} is a canary with ${rollout.canary} % of the workers, ${own} of ${workers.length} now`
  const ways = `promote it with runyard endpoints promote ${id} ${version}, or end it with runyard endpoints rollback ${id} ${rollout.working!.version}`
  return problem === null ? `${share}; ${ways}` : `${share}: ${problem}; ${ways}`
}
