/** Notes for people besides the cause of a wait, one sentence each. */

import { type Endpoint, hasIdleTimeout, idleTimeoutMs, MAX_IDLE_TIMEOUT_S } from '../endpoints/endpoint.ts'
import type { WorkerId } from '../ids.ts'
import type { AttemptTimes } from '../jobs/attempt-times.ts'
import { freezesIdle } from '../scaling/frozen-plan.ts'
import { currentBackoff, type EndpointSnapshot } from '../scaling/scale.ts'
import { presentStartMs } from '../scaling/start-time.ts'
import { countGpus } from '../workers/placement.ts'
import { exitText } from '../workers/worker.ts'
import { type PortConflict, portConflictText } from '../workers/worker-exit.ts'
import { remedyForExit, SHARED_PORTS, sharedPortsAdvice } from '../workers/worker-failure.ts'
import { counted, currentWorkers, roughDuration } from './explain-facts.ts'
import { type Note, plainNote } from './explanation.ts'
import { type ActionFacts, actionsOnFailure, keepIdle, moreWorkers } from './fix-actions.ts'
import { settingAdvice } from './setting-advice.ts'

/** Minimum number of idle ends for a conclusion: a single one may be the end of all work. */
const IDLE_ENDS = 2

/** Facts for {@link endpointNotes} besides the snapshot. */
export interface NotesContext extends ActionFacts {
  /** True if workers of GPU endpoints run without a GPU, since the machine has no GPU. */
  readonly noGpus?: boolean
  /** The newest attempts of the endpoint. */
  readonly attempts?: readonly AttemptTimes[]
  /** True if its workers run on a platform. */
  readonly isElsewhere?: boolean
  /** Conflicts over ports that its workers wanted, by worker. */
  readonly portConflicts?: ReadonlyMap<WorkerId, PortConflict>
}

/** The notes on an endpoint. */
export function endpointNotes(snapshot: EndpointSnapshot, context: NotesContext): Note[] {
  const { noGpus = false, attempts = [], isElsewhere = false, portConflicts = new Map() } = context
  const elsewhere = isElsewhere ? platformTexts(snapshot.endpoint) : []
  return [
    ...[...gpuTexts(snapshot, noGpus), ...elsewhere].map(plainNote),
    ...takenPortNotes(portConflicts, snapshot, context),
    ...crashNotes(snapshot, context),
    ...settingNotes(snapshot, attempts, context),
  ]
}

/** Features without an effect on a platform. */
function platformTexts(endpoint: Endpoint): string[] {
  const frozen =
    'FlashBoot has no effect on a cluster, which cannot freeze workers: idle ones end after the idle timeout'
  const models = 'models are kept on the machine of the server, so each worker on the cluster downloads its own'
  return [...(freezesIdle(endpoint) ? [frozen] : []), ...(endpoint.modelReferences.length > 0 ? [models] : [])]
}

/**
 * At most one setting: the one with the largest effect on the waits of the attempts, else the one that the exits of
 * workers suggest.
 */
function settingNotes(snapshot: EndpointSnapshot, attempts: readonly AttemptTimes[], facts: ActionFacts): Note[] {
  const advice = settingAdvice(snapshot, attempts)
  if (advice === null) return idleTimeoutNotes(snapshot)
  const { id, name, workersMax, idleTimeoutS } = snapshot.endpoint
  const { setting, value, waited, waitedMs, attempts: of } = advice
  const isMax = setting === 'workersMax'
  const why = isMax
    ? `while ${workersMax === 1 ? 'its only worker was' : `all ${workersMax} workers were`} busy`
    : `for the start of a worker soon after one had ended, idle for ${idleTimeoutS} s`
  const text = `of the last ${counted(of, 'attempt')} of ${name} ${waited} waited, ${roughDuration(waitedMs)} in all, ${why}`
  const changes = isMax ? moreWorkers(snapshot, facts, value) : [keepIdle(snapshot, value)]
  if (changes.length === 0) return [plainNote(text)]
  const options = [isMax ? '--workers-max' : '--idle-timeout', String(value)]
  const words = ['runyard', 'whatif', id, ...options]
  return [{ text, actions: [...changes, { kind: 'run', title: 'See what that costs', words, place: 'client' }] }]
}

function gpuTexts({ endpoint, workers }: EndpointSnapshot, noGpus: boolean): string[] {
  const { compute } = endpoint
  if (compute.kind !== 'gpu') return []
  if (noGpus) return [`this machine has no GPU, so workers of ${endpoint.name} run on the CPU`]
  const without = workers.filter(({ placement }) => placement !== null && countGpus(placement) === 0)
  if (without.length === 0) return []
  const [count, has] = [counted(without.length, 'worker'), without.length === 1 ? 'has' : 'have']
  return [
    `endpoint ${endpoint.name} asks for GPUs (${compute.pools.join(', ')}), and ${count} of it ${has} none and ${has === 'has' ? 'runs' : 'run'} on the CPU`,
  ]
}

/** Running workers whose wanted port is in use: another program answers at it. */
function takenPortNotes(
  conflicts: ReadonlyMap<WorkerId, PortConflict>,
  snapshot: EndpointSnapshot,
  facts: ActionFacts,
): Note[] {
  const actions = actionsOnFailure({ fixes: SHARED_PORTS, worker: null, isRetried: false }, snapshot, facts)
  return [...conflicts].map(([worker, conflict]) => {
    return { text: `worker ${worker}: ${portConflictText(conflict)}; ${sharedPortsAdvice(conflict)}`, actions }
  })
}

/** Workers that crash beside working ones, because their wanted port is in use. */
function crashNotes(snapshot: EndpointSnapshot, facts: ActionFacts): Note[] {
  const { last } = currentBackoff(snapshot)
  if (last === null || last.exit?.suspicion === undefined) return []
  if (!currentWorkers(snapshot).some(({ state }) => state === 'READY')) return []
  const { advice, fixes } = remedyForExit(last.exit, last.problem)
  const actions = actionsOnFailure({ fixes, worker: last.id, isRetried: false }, snapshot, facts)
  return [{ text: `another worker ${exitText(last, last.exit)}: ${advice}`, actions }]
}

/** Idle workers that end sooner than a new one starts. */
function idleTimeoutNotes(snapshot: EndpointSnapshot): Note[] {
  const { name } = snapshot.endpoint
  const ends = startsAfterIdleEnds(snapshot)
  if (ends === null) return []
  const [startS, idleS] = [Math.ceil(ends.startMs / 1000), ends.idleMs / 1000]
  const enoughS = Math.min(MAX_IDLE_TIMEOUT_S, startS)
  if (enoughS <= idleS) return []
  const text =
    `workers of ${name} take ${startS} s to start and end after ${idleS} s without work, so what comes soon after waits for a start; ` +
    'a longer idle timeout may cost less than it saves'
  return [{ text, actions: [keepIdle(snapshot, enoughS)] }]
}

/**
 * Start time and idle timeout of workers of the present release, in milliseconds, if idle workers ended sooner
 * than the next one could start; null otherwise, and if idle workers are frozen.
 */
function startsAfterIdleEnds(
  snapshot: Pick<EndpointSnapshot, 'endpoint' | 'workers' | 'exits'>,
): { readonly startMs: number; readonly idleMs: number } | null {
  const { endpoint, exits } = snapshot
  if (!hasIdleTimeout(endpoint) || endpoint.flashboot !== 'OFF') return null
  const startMs = presentStartMs(snapshot)
  const idleMs = idleTimeoutMs(endpoint)
  if (startMs === null || startMs <= idleMs) return null
  const idleEnds = exits.filter(({ version, stopReason }) => version === endpoint.version && stopReason === 'idle')
  return idleEnds.length < IDLE_ENDS ? null : { startMs, idleMs }
}

/** Number of queued jobs that are suspects, which run alone; null for zero. */
export function suspectText({ queue: { suspectsQueued: count } }: EndpointSnapshot): string | null {
  if (count === 0) return null
  const [run, their, they] = count === 1 ? ['runs', 'its worker was', 'it'] : ['run', 'their workers were', 'they']
  return `${counted(count, 'queued job')} ${run} alone, because ${their} lost twice while ${they} ran`
}
