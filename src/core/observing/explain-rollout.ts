/** Explains a release that does not work, besides the wait of jobs or requests. */

import {
  findRolloutState,
  isUnproven,
  MAX_ROLLOUT_CRASHES,
  type PlannedRelease,
  rolloutProblem,
} from '../scaling/rollout.ts'
import type { EndpointSnapshot } from '../scaling/scale.ts'
import { type StartFailure, startRemedy } from '../workers/start-failure.ts'
import type { Fix } from '../workers/start-remedy.ts'
import type { WorkerLoad } from '../workers/worker.ts'
import { remedyForExit } from '../workers/worker-failure.ts'
import type { Action } from './action.ts'
import { counted, currentWorkers } from './explain-facts.ts'
import type { Explanation, Note, WaitCause } from './explanation.ts'
import { type ActionFacts, actionsOnFailure, distinct, rollbackFor } from './fix-actions.ts'

/** Causes beside which a stopped rollout is the thing to fix. */
const FINE: ReadonlySet<WaitCause> = new Set(['nothing_waits', 'running', 'about_to_start', 'worker_starting'])

/** The snapshot that explains why work waits. Workers of a canary take work as those of its base do. */
export function explainedSnapshot({ snapshot, canary }: PlannedRelease): EndpointSnapshot {
  if (canary === null) return snapshot
  const { version } = snapshot.endpoint
  const isCanary = (worker: WorkerLoad) => worker.version === canary.endpoint.version
  return { ...snapshot, workers: snapshot.workers.map(worker => (isCanary(worker) ? { ...worker, version } : worker)) }
}

/**
 * An explanation with the rollout of the newest release: as the cause if the rollout has stopped and nothing else is
 * wrong, else as a note.
 * @param explanation of the release whose workers are started
 * @param snapshot of the newest release
 * @param startFailure reason why no worker of the newest release can be started now; null if one can
 * @param facts of the newest release
 */
export function withRollout(
  explanation: Explanation,
  snapshot: EndpointSnapshot,
  startFailure: StartFailure | null,
  facts: ActionFacts = {},
): Explanation {
  const { rollout } = snapshot
  const note = rolloutNote(snapshot, startFailure)
  if (note === null) return explanation
  if (findRolloutState(snapshot, startFailure) !== 'STOPPED')
    return { ...explanation, notes: [...explanation.notes, note] }
  const { stop } = rollout
  const stopped = stop === null ? afterCrashes(snapshot, startFailure, facts) : afterFailures(snapshot, facts)
  if (!FINE.has(explanation.cause)) {
    const back = stopped.actions.filter(({ kind }) => kind === 'rollback' || kind === 'promote')
    return {
      ...explanation,
      actions: distinct([...explanation.actions, ...back]),
      notes: [...explanation.notes, note],
    }
  }
  return {
    ...explanation,
    ...stopped,
    cause: 'rollout_stopped',
    summary: `${note.text}; ${explanation.summary}`,
    sinceMs: stopped.sinceMs ?? explanation.sinceMs,
    facts: stopped.facts.length > 0 ? stopped.facts : explanation.facts,
  }
}

/**
 * The older workers beside a release none of whose own workers has a place: "2 workers of older releases are busy".
 * Null if one of its workers exists or none waits for a place, and while an older worker is free for what waits.
 */
export function olderWithoutRoomBeside(snapshot: EndpointSnapshot): string | null {
  const { endpoint, queue, queuedWorkers } = snapshot
  const current = currentWorkers(snapshot)
  const isOwn = current.some(({ version }) => version === endpoint.version)
  if (queuedWorkers.length === 0 || current.length === 0 || isOwn || queue.inProgress < current.length) return null
  return `${counted(current.length, 'worker')} of older releases ${current.length === 1 ? 'is' : 'are'} busy`
}

type Stopped = Pick<Explanation, 'advice' | 'actions' | 'sinceMs' | 'facts'>

/** The newest release was ready and failed its jobs or requests. */
function afterFailures(snapshot: EndpointSnapshot, facts: ActionFacts): Stopped {
  const { endpoint, rollout } = snapshot
  const { version } = endpoint
  const promote: Action = { kind: 'promote', title: `Promote release ${version} all the same`, version }
  const failed: Action = { kind: 'open', title: 'See the failed requests', page: 'requests', part: 'failed' }
  const back = wayBack(['unknown'], snapshot, facts)
  return {
    advice: `read how they failed, and go back to release ${rollout.working!.version} or change the endpoint; or promote release ${version}, so that it goes on all the same`,
    actions: [...back, failed, promote],
    sinceMs: rollout.stop!.atMs,
    facts: [],
  }
}

const AGAIN: Action = { kind: 'restart', title: 'Try the new release again' }

/** No worker of the newest release has been ready. */
function afterCrashes(snapshot: EndpointSnapshot, startFailure: StartFailure | null, facts: ActionFacts): Stopped {
  const { endpoint, rollout, exits } = snapshot
  const last = exits.find(worker => worker.version === endpoint.version)
  const exit = startFailure === null ? last?.exit : null
  const remedy =
    exit == null ? (startFailure === null ? null : startRemedy(startFailure)) : remedyForExit(exit, last!.problem)
  const { advice = null, fixes = ['unknown'] as const } = remedy ?? {}
  const worker = exit == null || last!.startedAtMs === null ? null : last!.id
  const back = wayBack(fixes, snapshot, facts)
  const others = actionsOnFailure({ fixes, worker, isRetried: false }, snapshot, facts).filter(
    ({ kind }) => kind !== 'rollback',
  )
  const change =
    back.length === 0 ? 'change the endpoint' : `go back to release ${rollout.working!.version}, or change the endpoint`
  return {
    advice: advice === null ? change : `${change}: ${advice}`,
    // Without a retry action: the next start is checked again once its failure has ended.
    actions: distinct([...back, ...others, ...(startFailure === null ? [AGAIN] : [])]),
    sinceMs: exit == null ? null : last!.exitedAtMs,
    facts: exit == null ? [] : exit.lastLines,
  }
}

/** The rollback to the release that continues, if its configuration may help. */
function wayBack(fixes: readonly Fix[], snapshot: EndpointSnapshot, facts: ActionFacts): readonly Action[] {
  const back = rollbackFor(fixes, snapshot, facts)
  return back === null ? [] : [back]
}

/** An explanation of one job, with the rollout of its endpoint as a note. Parameters as for {@link withRollout}. */
export function withRolloutNote(
  explanation: Explanation,
  snapshot: EndpointSnapshot,
  startFailure: StartFailure | null,
): Explanation {
  const note = rolloutNote(snapshot, startFailure)
  return note === null ? explanation : { ...explanation, notes: [...explanation.notes, note] }
}

function rolloutNote(snapshot: EndpointSnapshot, startFailure: StartFailure | null): Note | null {
  const { version } = snapshot.endpoint
  const problem = rolloutProblem(snapshot, startFailure)
  const state = findRolloutState(snapshot, startFailure)
  if (state === 'CANARY') return canaryNote(snapshot, problem)
  if (problem === null) return null
  if (state === 'STOPPED') {
    const working = snapshot.rollout.working!.version
    const text = `the rollout of release ${version} has stopped: ${problem}; workers of release ${working} go on`
    return { text, actions: [] }
  }
  if (!isUnproven(snapshot)) return null
  const text = `release ${version} is being rolled out: ${problem}; after ${MAX_ROLLOUT_CRASHES} crashes the rollout stops`
  return { text, actions: [] }
}

function canaryNote({ endpoint: { version }, rollout, workers }: EndpointSnapshot, problem: string | null): Note {
  const own = workers.filter(worker => worker.version === version).length
  const share = `release ${version} is a canary with ${rollout.canary} % of the workers, ${own} of ${workers.length} now`
  const working = rollout.working!.version
  return {
    text: problem === null ? share : `${share}: ${problem}`,
    actions: [
      { kind: 'promote', title: `Promote release ${version} to all workers`, version },
      { kind: 'rollback', title: `End the canary: back to release ${working}`, version: working },
    ],
  }
}
