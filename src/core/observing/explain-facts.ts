/** The state of workers and queues as sentences: the evidence of an explanation. */

import type { WorkerId } from '../ids.ts'
import { type EndpointSnapshot, waitingCount } from '../scaling/scale.ts'
import type { QueuedWorker } from '../workers/placement.ts'
import { reclaimText, waitForPlaceText } from '../workers/platform-report.ts'
import { takesJobs, type WorkerLoad, waitsForPlace } from '../workers/worker.ts'
import { presentPhase, type WorkerPhase } from '../workers/worker-phase.ts'
import { problemText } from '../workers/worker-problem.ts'
import { type SuspensionPhase, suspensionOf } from '../workers/worker-suspension.ts'
import { endpointWords } from './explain-words.ts'
import { pauseText } from './pause-words.ts'

/**
 * Workers that can get jobs or requests: those of the current version, and older ones until one of the current
 * version has been ready.
 */
export function currentWorkers({ workers, endpoint, rollout }: EndpointSnapshot): WorkerLoad[] {
  const isOldReady = ({ state, problem }: WorkerLoad) => !rollout.wasReady && state === 'READY' && problem === null
  return workers.filter(worker => takesJobs(worker) && (worker.version === endpoint.version || isOldReady(worker)))
}

/** Download progress of a worker's image in percent; null if unknown. */
export type PullPercent = (id: WorkerId) => number | null

/** The progress of downloads where none is known. */
export const noPercent: PullPercent = () => null

/** Limit of facts that are listed one by one. */
const MAX_FACTS = 5

/** A number with its noun: "1 job", "3 jobs". */
export function counted(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? '' : 's'}`
}

/** A duration in its largest useful unit: "12 s", "3 min", "5 h". */
export function roughDuration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  if (seconds < 120) return `${seconds} s`
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`
}

/** The duration of an attempt: "800 ms", else as {@link roughDuration}. */
export function executionText(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : roughDuration(ms)
}

/** Activity of a worker in each phase. */
const PHASE_TEXTS: Readonly<Record<WorkerPhase, string>> = {
  queued: 'waits for a place on a machine',
  downloading: 'waits for its models, which are downloaded',
  placing: 'is being given a place on a machine',
  pulling: 'downloads its image',
  starting: 'is being started',
  initializing: 'runs and has not asked for a job yet',
  ready: 'is ready',
  frozen: 'is frozen',
  draining: 'finishes its jobs and ends',
  stopping: 'is ending',
  exited: 'has ended',
}

/** Phases with different words for a worker that serves requests. */
const SERVING_PHASE_TEXTS: Partial<Record<WorkerPhase, string>> = {
  initializing: 'runs and has not reported that it is healthy yet',
  draining: 'finishes its requests and ends',
}

/** Words for a worker that the driver of its card suspends. */
const SUSPENSION_TEXTS: Readonly<Record<SuspensionPhase, string>> = {
  suspending: 'is being suspended',
  suspended: 'is suspended and has no memory on its GPU',
  resuming: 'gets its memory on its GPU again',
}

/** A worker's phase: "worker w1 downloads its image (43 %), for 12 s". */
export function phaseText(worker: WorkerLoad, nowMs: number, pullPercent: PullPercent): string {
  const { phase, sinceMs } = presentPhase(worker)
  const suspension = suspensionOf(worker)
  const suspended = suspension === null ? undefined : SUSPENSION_TEXTS[suspension.phase]
  const asleep = phase === 'frozen' && worker.asleepAtMs !== null ? 'sleeps without its GPUs' : undefined
  const waits = waitsForPlace(worker) ? worker.platform!.waits : null
  const place = waits === null ? undefined : 'waits for a place on its platform'
  const paused = pauseText(worker)
  const doing =
    (paused === null ? undefined : `is ${paused}`) ??
    suspended ??
    asleep ??
    place ??
    (worker.serves === null ? undefined : SERVING_PHASE_TEXTS[phase]) ??
    PHASE_TEXTS[phase]
  const percent = phase === 'pulling' ? pullPercent(worker.id) : null
  const much = percent === null ? '' : ` (${Math.round(percent)} %)`
  const why = waits === null ? '' : `: ${waitForPlaceText(waits)}`
  return `worker ${worker.id} ${doing}${much}, for ${roughDuration(nowMs - sinceMs)}${why}`
}

/** Workers of a stopped release are newer than the explained release. */
function versionText(version: number, explained: number): string {
  if (version === explained) return ''
  return version > explained
    ? `; of the newer release ${version}`
    : `; of version ${version}, now there is ${explained}`
}

/** A sentence for each worker, oldest first, then for those without a place. */
export function workerFacts(
  { workers, endpoint, queuedWorkers, requests }: EndpointSnapshot,
  nowMs: number,
  pullPercent: PullPercent,
): string[] {
  const facts = workers.map(worker => {
    const version = versionText(worker.version, endpoint.version)
    const held =
      worker.serves === null ? `holds ${counted(worker.held, 'job')}` : `has ${counted(worker.held, 'request')}`
    const holds = worker.held > 0 ? `; ${held}` : ''
    const wrong = worker.problem ?? requests?.healthProblems.get(worker.id)
    const problem = wrong === undefined ? '' : `; ${problemText(wrong)}`
    const leaves = worker.platform?.leaves ?? null
    const taken = leaves === null ? '' : `; it ${reclaimText(leaves)}`
    return `${phaseText(worker, nowMs, pullPercent)}${holds}${version}${problem}${taken}`
  })
  return bounded([...facts, ...queuedWorkerFacts(queuedWorkers, nowMs)])
}

/** A sentence for each worker without a place, with the reason. */
export function queuedWorkerFacts(queued: readonly QueuedWorker[], nowMs: number): string[] {
  return bounded(
    queued.map(
      ({ id, queuedAtMs, resource, reason }) =>
        `worker ${id} waits for ${resource === 'models' ? 'models' : 'a place'}, for ${roughDuration(nowMs - queuedAtMs)}: ${reason}`,
    ),
  )
}

/** The length of the queue, the work in progress, and the number of workers. */
export function queueFact(snapshot: EndpointSnapshot, nowMs: number): string {
  const { queue, endpoint, workers, requests } = snapshot
  const { thing } = endpointWords(snapshot)
  const waiting = waitingCount(queue)
  const first = queue.headQueuedAtMs === null ? '' : `, the first for ${roughDuration(nowMs - queue.headQueuedAtMs)}`
  const low = queue.queuedLowPriority > 0 ? ` (${queue.queuedLowPriority} of low priority)` : ''
  const taking = workers.filter(takesJobs).length
  return (
    `${counted(waiting, `queued ${thing}`)}${low}${first}; ${queue.inProgress} ${requests === undefined ? 'in progress' : 'in flight'}; ` +
    `${counted(taking, 'worker')}, at least ${endpoint.workersMin}, at most ${endpoint.workersMax}`
  )
}

/**
 * The excess of the first job's wait over the queue delay of the endpoint, as a clause; null if it has not waited
 * longer.
 */
export function overdueDelay({ endpoint, queue }: EndpointSnapshot, nowMs: number): string | null {
  if (endpoint.scaler.type !== 'QUEUE_DELAY' || queue.headQueuedAtMs === null) return null
  const { queueDelayS } = endpoint.scaler
  if (nowMs - queue.headQueuedAtMs < queueDelayS * 1000) return null
  return `the first job has waited longer than the queue delay of ${queueDelayS} s`
}

function bounded(facts: readonly string[]): string[] {
  if (facts.length <= MAX_FACTS) return [...facts]
  return [...facts.slice(0, MAX_FACTS), `and ${facts.length - MAX_FACTS} more`]
}
