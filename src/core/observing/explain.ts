import type { BatchId, EndpointId, WorkerId } from '../ids.ts'
import type { AttemptTimes } from '../jobs/attempt-times.ts'
import { errorLine } from '../jobs/error-groups.ts'
import { isSuspect, type Job } from '../jobs/job.ts'
import { type DownloadProgress, progressText } from '../models/download-progress.ts'
import type { Capacity } from '../scaling/plan.ts'
import { backoffOf, desiredWorkers, type EndpointSnapshot } from '../scaling/scale.ts'
import { type StartFailure, startFailureText, startRemedy } from '../workers/start-failure.ts'
import { type CrashBackoff, exitText, isFrozen, waitsForPlace } from '../workers/worker.ts'
import type { PortConflict } from '../workers/worker-exit.ts'
import { adviceFor, adviceForProblem, crashCauseOf, neverStarted } from '../workers/worker-failure.ts'
import { phaseOf } from '../workers/worker-phase.ts'
import { problemText } from '../workers/worker-problem.ts'
import {
  counted,
  currentWorkers,
  executionText,
  type PullPercent,
  phaseText,
  queuedWorkerFacts,
  queueFact,
  workerFacts,
} from './explain-facts.ts'
import { notesOn, onSuspects } from './explain-notes.ts'
import { leavingText, lostNodeOf, PLACE_CAUSES, placeWaitOf } from './explain-place.ts'
import { placeAction, wordsOf } from './explain-words.ts'

/** The causes of a wait, and the states of an endpoint or job that does not wait. */
export const WAIT_CAUSES = [
  ...(['nothing_waits', 'finished', 'running', 'about_to_start', 'paused'] as const),
  ...(['image_error', 'model_error', 'engine_away', 'secret_missing', 'volume_missing', 'settings_invalid'] as const),
  ...(['crash_loop', 'out_of_memory', 'fitness_failed', 'hung_start', 'unhealthy', 'never_healthy'] as const),
  ...([
    'models_downloading',
    'worker_starting',
    'worker_restarting',
    'max_reached',
    'no_capacity',
    'throttled',
  ] as const),
  ...PLACE_CAUSES,
  ...(['low_priority', 'batch_turn', 'runs_alone', 'rollout_stopped', 'store_damaged', 'store_full'] as const),
] as const
/** One of {@link WAIT_CAUSES}. */
export type WaitCause = (typeof WAIT_CAUSES)[number]

/** One cause with its text for people: what is wrong, since when, and what to do. */
export interface Explanation {
  readonly cause: WaitCause
  readonly summary: string
  /** What to do; null when there is nothing to do but wait. */
  readonly action: string | null
  /** Commands that do it, or show more, as they can be pasted; `<...>` stands for what a person has to choose. */
  readonly commands: readonly string[]
  /** Epoch milliseconds since when it is so; null when that does not apply. */
  readonly sinceMs: number | null
  /** The last lines of a worker's output, or the state of workers and queue; empty where nothing waits. */
  readonly evidence: readonly string[]
  /** Other facts, one sentence each: workers that run without a GPU although the endpoint asks for one, failed starts. */
  readonly notes: readonly string[]
}

/** What {@link explainEndpoint} reads besides the snapshot. */
export interface ExplainContext {
  readonly capacity: Capacity
  /** Why no worker of this endpoint can be started, from the driver or the secrets; null when it can. */
  readonly startFailure: StartFailure | null
  readonly nowMs: number
  /** Download progress of images; unknown unless given. */
  readonly pullPercent?: PullPercent
  /** How far the models of the endpoint are; null, or left out, where none are being downloaded. */
  readonly download?: DownloadProgress | null
  /** Whether workers of GPU endpoints run without one here, since the machine has none. */
  readonly noGpus?: boolean
  /** Whether its workers run on a platform; false unless given. */
  readonly isElsewhere?: boolean
  /** Ports that workers of the endpoint wanted and others have; empty by default. */
  readonly portConflicts?: ReadonlyMap<WorkerId, PortConflict>
  /** The newest attempts of a queue endpoint, for advice; none unless given. */
  readonly attempts?: readonly AttemptTimes[]
}

/** Age from which a start that is not healthy yet gets advice. Most starts just take a while. */
const LATE_MS = 20_000

/** Why the jobs or requests of an endpoint wait, or that none does. Exactly one cause: the first whose repair would change something. */
export function explainEndpoint(snapshot: EndpointSnapshot, context: ExplainContext): Explanation {
  const { queue, requests } = snapshot
  const notes = notesOn(snapshot, context)
  if (queue.queued + queue.queuedLowPriority === 0) {
    const { thing, underWay } = wordsOf(snapshot)
    const running = queue.inProgress > 0
    const refusing = requests === undefined ? null : whyRefused(snapshot, context, running)
    if (refusing !== null) return { ...refusing, notes }
    const summary = running ? `${counted(queue.inProgress, thing)} ${underWay}, none waiting` : `no ${thing} is waiting`
    return {
      ...plain(running ? 'running' : 'nothing_waits', summary),
      notes: [...notes, ...notKeptReady(snapshot, context)],
    }
  }
  const found =
    paused(snapshot) ??
    wrongWith(snapshot, context) ??
    starting(snapshot, context, false) ??
    waking(snapshot, context) ??
    thawing(snapshot, context) ??
    restarting(snapshot, context) ??
    withoutPlace(snapshot, context) ??
    maxReached(snapshot, context) ??
    downloading(snapshot, context) ??
    noPlace(snapshot, context) ??
    starting(snapshot, context, true) ??
    working(snapshot, context) ??
    undecided(snapshot)
  const evidence = found.evidence.length > 0 ? found.evidence : [queueFact(snapshot, context.nowMs)]
  const alone = onSuspects(snapshot)
  if (alone === null) return { ...found, evidence, notes }
  const othersWait = queue.suspectsQueued < queue.queued + queue.queuedLowPriority
  if (othersWait) return { ...found, evidence, notes: [...notes, alone] }
  return { ...runsAlone(found, alone), evidence, notes }
}

/** Where workers work, a suspect waits for one without jobs. What keeps workers from working is the same for all jobs. */
function runsAlone(reason: Explanation, alone: string): Explanation {
  if (!BUSY.has(reason.cause)) return { ...reason, summary: `${reason.summary}; ${alone}` }
  const summary = `${reason.summary}; ${alone}: that takes a worker without other jobs`
  return { ...reason, cause: 'runs_alone', summary, action: 'wait; one is started for it, or let run empty' }
}

const BUSY: ReadonlySet<WaitCause> = new Set(['max_reached', 'throttled', 'running'])

/** Limit to which the requests of a batch that come before a job are counted: a batch may have a million. */
export const MAX_REQUESTS_BEFORE = 1_000

/** The batch for whose turn a job waits, and how many of its requests come before the job, counted to {@link MAX_REQUESTS_BEFORE}. */
export interface BatchWait {
  readonly batchId: BatchId
  readonly before: number
}

/** Why one job waits, runs or ended the way it did. @param batch null for a job that is in no batch */
export function explainJob(
  job: Job,
  snapshot: EndpointSnapshot,
  context: ExplainContext,
  batch: BatchWait | null = null,
): Explanation {
  if (job.status === 'IN_QUEUE') {
    const ofAll = explainEndpoint(snapshot, context)
    if (isSuspect(job)) {
      const alone = 'it runs alone, because its worker was lost twice while it ran'
      const reason = ofAll.cause === 'runs_alone' ? ofAll : runsAlone(ofAll, alone)
      return { ...reason, sinceMs: reason.sinceMs ?? job.queuedAtMs }
    }
    const reason = inBatch(ofAll, batch)
    const again = job.lostAttempts > 0 ? `; it was queued again after ${job.lostAttempts} lost attempt(s)` : ''
    return { ...reason, summary: reason.summary + again, sinceMs: reason.sinceMs ?? job.queuedAtMs }
  }
  if (job.status === 'IN_PROGRESS') {
    return {
      ...plain(
        'running',
        `attempt ${job.attempt} runs on worker ${job.workerId}${leavingText(snapshot, job.workerId)}`,
      ),
      sinceMs: job.startedAtMs,
      notes: notesOn(snapshot, context),
    }
  }
  const why = job.error === null ? '' : `: ${errorLine(job.error)}`
  return { ...plain('finished', `the job is ${job.status}${why}`), sinceMs: job.finishedAtMs }
}

/** Where workers work, the job waits for its batch. What keeps workers from working is the same for all jobs. */
function inBatch(reason: Explanation, batch: BatchWait | null): Explanation {
  if (batch === null || (reason.cause !== 'max_reached' && reason.cause !== 'running')) return reason
  const count = batch.before < MAX_REQUESTS_BEFORE ? batch.before : `at least ${MAX_REQUESTS_BEFORE}`
  const before = `${count} of its requests come before this one`
  const summary = `${reason.summary}; batch ${batch.batchId} takes turns with the other jobs, and ${before}`
  return { ...reason, cause: 'batch_turn', summary }
}

/** Why requests were refused. They wait for minutes at most, and at a paused endpoint not at all, so none may be waiting now. */
function whyRefused(snapshot: EndpointSnapshot, context: ExplainContext, running: boolean): Explanation | null {
  const isPaused = paused(snapshot)
  if (isPaused !== null || running) return isPaused
  return wrongWith(snapshot, context) ?? starting(snapshot, context, false) ?? downloading(snapshot, context)
}

/** What keeps workers from working, whether or not something waits for them. */
function wrongWith(snapshot: EndpointSnapshot, context: ExplainContext): Explanation | null {
  return cannotStart(snapshot, context) ?? unhealthyWorker(snapshot, context) ?? crashing(snapshot, context)
}

function paused(snapshot: EndpointSnapshot): Explanation | null {
  const { endpoint, queue } = snapshot
  if (endpoint.workersMax > 0) return null
  return {
    ...plain('paused', `${endpoint.name} is paused: workersMax is 0, so ${wordsOf(snapshot).whilePaused}`),
    action: 'set workersMax to 1 or more',
    commands: [`${update(endpoint.id)} --max 1`],
    sinceMs: queue.headQueuedAtMs,
  }
}

function cannotStart({ endpoint }: EndpointSnapshot, { startFailure }: ExplainContext): Explanation | null {
  if (startFailure === null) return null
  const { cause, advice } = startRemedy(startFailure)
  const text = startFailureText(startFailure)
  const commands = startCommands(startFailure, endpoint.id)
  return { ...plain(cause, `no worker can be started: ${text}`), action: advice, commands, evidence: [text] }
}

/** A worker with a problem, where no other one can work in its place. */
function unhealthyWorker(
  snapshot: EndpointSnapshot,
  { nowMs, pullPercent = unknown }: ExplainContext,
): Explanation | null {
  const current = currentWorkers(snapshot)
  const worker = current.find(({ problem }) => problem !== null)
  if (worker?.problem == null) return null
  if (current.some(({ state, problem }) => state === 'READY' && problem === null)) return null
  return {
    ...plain(
      worker.problem.kind === 'check_failed' ? 'fitness_failed' : 'unhealthy',
      `worker ${worker.id} ${wordsOf(snapshot).unhealthy}: ${problemText(worker.problem)}`,
    ),
    action: adviceForProblem(worker.problem),
    commands: [`runyard logs ${worker.id}`, `runyard workers delete ${worker.id}`],
    sinceMs: worker.problemAtMs ?? phaseOf(worker).sinceMs,
    evidence: workerFacts(snapshot, nowMs, pullPercent),
  }
}

function crashing(snapshot: EndpointSnapshot, context: ExplainContext): Explanation | null {
  const backoff = backoffOf(snapshot)
  const { last } = backoff
  if (last === null || last.exit === null) return null
  if (currentWorkers(snapshot).some(({ state }) => state === 'READY')) return null
  const ended = exitText(last, last.exit)
  const times = backoff.crashes === 1 ? 'the last worker' : `the last ${backoff.crashes} workers crashed; the last one`
  const what = neverStarted(last)
    ? `${backoff.crashes === 1 ? 'the last worker' : `each of the last ${backoff.crashes} workers crashed or`} could not be started: ${ended}`
    : `${times} ${ended}`
  return {
    cause: crashCauseOf(last),
    summary: `${what}${nextTry(backoff, snapshot, context)}`,
    action: adviceFor(last.exit, last.problem),
    sinceMs: last.exitedAtMs,
    commands: [`runyard logs ${last.id}`, `runyard endpoints restart ${snapshot.endpoint.id}`],
    evidence: last.exit.lastLines.length > 0 ? last.exit.lastLines : [`worker ${last.id} ${ended}`],
    notes: [],
  }
}

function nextTry(backoff: CrashBackoff, snapshot: EndpointSnapshot, { nowMs, pullPercent = unknown }: ExplainContext) {
  const seconds = Math.ceil((backoff.untilMs - nowMs) / 1000)
  const wanted = desiredWorkers(snapshot, nowMs).desired > currentWorkers(snapshot).length
  if (seconds > 0) return wanted ? `; the next one starts in ${seconds} s` : ''
  const next = currentWorkers(snapshot).find(({ state }) => state === 'STARTING')
  return next === undefined ? '' : `; ${phaseText(next, nowMs, pullPercent)}`
}

/** @param besides whether other workers may be ready */
function starting(
  snapshot: EndpointSnapshot,
  { nowMs, pullPercent = unknown }: ExplainContext,
  besides: boolean,
): Explanation | null {
  const current = currentWorkers(snapshot)
  const onItsWay = current.filter(({ state }) => state === 'STARTING')
  const worker = onItsWay.find(one => !waitsForPlace(one)) ?? onItsWay[0]
  if (worker === undefined || (waitsForPlace(worker) && placeWaitOf(snapshot, nowMs) !== null)) return null
  if (!besides && current.some(({ state }) => state === 'READY')) return null
  const { phase, sinceMs } = phaseOf(worker)
  const health = snapshot.requests?.healthProblems.get(worker.id)
  const isLate = health !== undefined && nowMs - (worker.startedAtMs ?? nowMs) >= LATE_MS
  const says = health === undefined ? '' : `: ${problemText(health)}`
  const patience = `wait; what it prints shows what takes long: runyard logs ${worker.id}`
  return {
    ...plain('worker_starting', `${phaseText(worker, nowMs, pullPercent)}${says}`),
    action:
      phase === 'pulling'
        ? 'wait; an image that is on the machine already, or a smaller one, starts sooner'
        : isLate
          ? adviceForProblem(health)
          : patience,
    sinceMs,
    evidence: workerFacts(snapshot, nowMs, pullPercent),
  }
}

/** A sleeping worker is wanted, and the GPUs that it gave back are not free. */
function waking(snapshot: EndpointSnapshot, { nowMs, pullPercent = unknown }: ExplainContext): Explanation | null {
  const { endpoint, queue, workers } = snapshot
  const sleeper = workers.find(
    worker => isFrozen(worker) && worker.version === endpoint.version && worker.wakeWaitsFor !== null,
  )
  const current = currentWorkers(snapshot).length
  if (sleeper === undefined || queue.queued === 0 || desiredWorkers(snapshot, nowMs).desired <= current) return null
  const summary = `worker ${sleeper.id} sleeps and wakes once it has its GPU memory again: ${sleeper.wakeWaitsFor}`
  return {
    ...plain(current === 0 ? 'no_capacity' : 'throttled', summary),
    action: placeAction('gpu'),
    commands: ['runyard top'],
    sinceMs: queue.headQueuedAtMs,
    evidence: workerFacts(snapshot, nowMs, pullPercent),
  }
}

/** No worker is ready, and a frozen one is about to run again. */
function thawing(snapshot: EndpointSnapshot, { nowMs, pullPercent = unknown }: ExplainContext): Explanation | null {
  const { endpoint, queue, workers } = snapshot
  const frozen = workers.find(worker => isFrozen(worker) && worker.version === endpoint.version)
  if (frozen === undefined || queue.queued === 0 || currentWorkers(snapshot).length > 0) return null
  return {
    ...plain(
      'about_to_start',
      `${counted(queue.queued, wordsOf(snapshot).thing)} waiting; frozen worker ${frozen.id} is about to be thawed`,
    ),
    action: 'wait a moment',
    sinceMs: queue.headQueuedAtMs,
    evidence: workerFacts(snapshot, nowMs, pullPercent),
  }
}

function restarting(snapshot: EndpointSnapshot, { nowMs, pullPercent = unknown }: ExplainContext): Explanation | null {
  const { workers, endpoint } = snapshot
  if (workers.length === 0 || workers.length < endpoint.workersMax || currentWorkers(snapshot).length > 0) return null
  const evidence = workerFacts(snapshot, nowMs, pullPercent)
  const lost = lostNodeOf(snapshot)
  if (lost !== null) return { ...plain(lost.cause, lost.summary), ...lost, evidence }
  const held = workers.reduce((sum, worker) => sum + worker.held, 0)
  const old = workers.filter(({ version }) => version !== endpoint.version).length
  const which = old === 0 ? '' : `, ${old} of an older version,`
  const jobs = held === 0 ? 'end' : `finish ${counted(held, wordsOf(snapshot).thing)} and end`
  return {
    ...plain('worker_restarting', `${counted(workers.length, 'worker')}${which} ${jobs} before new ones start`),
    action: 'wait, or raise workersMax so that new workers need not wait for old ones',
    commands: [`${update(endpoint.id)} --max ${endpoint.workersMax + 1}`],
    sinceMs: workers[0]!.stopRequestedAtMs,
    evidence,
  }
}

/** Workers start, and their platform has no place for them. */
function withoutPlace(
  snapshot: EndpointSnapshot,
  { nowMs, pullPercent = unknown }: ExplainContext,
): Explanation | null {
  const wait = placeWaitOf(snapshot, nowMs)
  return wait && { ...plain(wait.cause, wait.summary), ...wait, evidence: workerFacts(snapshot, nowMs, pullPercent) }
}

function maxReached(snapshot: EndpointSnapshot, { nowMs, pullPercent = unknown }: ExplainContext): Explanation | null {
  const { workers, endpoint, queue, counters, requests } = snapshot
  if (workers.length < endpoint.workersMax) return null
  const { thing, underWay } = wordsOf(snapshot)
  const most = requests?.maxConcurrency ?? null
  const { averageExecutionMs: average } = counters
  const takes = average === null ? '' : `; a job takes ${executionText(average)} on average`
  const max = `workersMax is ${endpoint.workersMax}, and there ${workers.length === 1 ? 'is' : 'are'}`
  const busy =
    thing === 'job'
      ? `${counted(workers.length, 'worker')} with ${counted(queue.inProgress, 'running job')}`
      : `${counted(workers.length, 'worker')} with ${counted(queue.inProgress, thing)} ${underWay}`
  const limit = most === null ? '' : `; a worker has at most ${counted(most, thing)} at once (RUNYARD_MAX_CONCURRENCY)`
  return {
    ...plain('max_reached', `${max} ${busy}${takes}${limit}`),
    action: most === null ? 'wait, or raise workersMax' : 'wait, or raise workersMax or RUNYARD_MAX_CONCURRENCY',
    commands: [`${update(endpoint.id)} --max ${endpoint.workersMax + 1}`],
    sinceMs: queue.headQueuedAtMs,
    evidence: [queueFact(snapshot, nowMs), ...workerFacts(snapshot, nowMs, pullPercent)],
  }
}

/** Workers are wanted whose models are still on their way. */
function downloading(snapshot: EndpointSnapshot, { nowMs, download = null }: ExplainContext): Explanation | null {
  const [waiting] = snapshot.queuedWorkers
  if (waiting?.resource !== 'models') return null
  const current = currentWorkers(snapshot).length
  if (desiredWorkers(snapshot, nowMs).desired <= current) return null
  const before = current === 0 ? 'before a worker is started' : 'before another worker is started'
  return {
    ...plain(
      'models_downloading',
      `${waiting.reason} ${before}${download === null ? '' : `: ${progressText(download)}`}`,
    ),
    action: 'wait; each model is downloaded once, for all workers of this machine',
    commands: ['runyard models list'],
    sinceMs: waiting.downloadStartedAtMs ?? waiting.queuedAtMs,
    evidence: queuedWorkerFacts(snapshot.queuedWorkers, nowMs),
  }
}

/** More workers are wanted than fit on the machine. */
function noPlace(snapshot: EndpointSnapshot, { capacity, nowMs }: ExplainContext): Explanation | null {
  const { queue, queuedWorkers } = snapshot
  const current = currentWorkers(snapshot).length
  const full = capacity.freeWorkers !== null && capacity.freeWorkers <= 0
  const reason = queuedWorkers[0]?.reason ?? (full ? capacity.bound : null)
  if (reason === null || desiredWorkers(snapshot, nowMs).desired <= current) return null
  const action = placeAction(queuedWorkers[0]?.resource ?? 'workers')
  const commands = ['runyard top']
  const evidence = queuedWorkerFacts(queuedWorkers, nowMs)
  const sinceMs = queuedWorkers[0]?.queuedAtMs ?? queue.headQueuedAtMs
  if (current === 0) {
    return { ...plain('no_capacity', `there is no room for a worker: ${reason}`), action, commands, sinceMs, evidence }
  }
  const summary = `more than ${counted(current, 'worker')} ${isAre(current)} wanted, and there is no room for another one: ${reason}`
  return { ...plain('throttled', summary), action, commands, sinceMs, evidence }
}

function working(snapshot: EndpointSnapshot, context: ExplainContext): Explanation | null {
  const { nowMs, pullPercent = unknown } = context
  const ready = currentWorkers(snapshot).filter(({ state }) => state === 'READY').length
  if (ready === 0) return null
  const enough = desiredWorkers(snapshot, nowMs).desired <= currentWorkers(snapshot).length
  const overdue = overdueDelay(snapshot, nowMs)
  const more = enough
    ? whyEnough(snapshot, context, ready === 1 ? 'it is' : 'they are')
    : `more are wanted${overdue === null ? '' : ` since ${overdue}`}${nextTry(backoffOf(snapshot), snapshot, context)}`
  return {
    ...plain('running', `${counted(ready, 'worker')} ${isAre(ready)} ready; ${more}`),
    action: enough ? 'wait, or choose a smaller scalerValue' : 'wait for the next worker',
    sinceMs: snapshot.queue.headQueuedAtMs,
    evidence: [queueFact(snapshot, nowMs), ...workerFacts(snapshot, nowMs, pullPercent)],
  }
}

/** Why no further worker is wanted although jobs or requests wait. @param they "it is" or "they are", of the ready workers */
function whyEnough(snapshot: EndpointSnapshot, { nowMs }: ExplainContext, they: string): string {
  if (snapshot.requests !== undefined) return `${they} about to get them`
  const overdue = overdueDelay(snapshot, nowMs)
  if (overdue === null) return `${they} enough for the wait that the scaler allows`
  const { wakeAtMs } = desiredWorkers(snapshot, nowMs)
  if (wakeAtMs === null) return `${overdue}, and there is a worker for each job`
  return `${overdue}; another one is started in ${Math.ceil((wakeAtMs - nowMs) / 1000)} s if it still waits`
}

/** That the first job has waited longer than the queue delay of the endpoint, as a clause; null when it has not. */
function overdueDelay({ endpoint, queue }: EndpointSnapshot, nowMs: number): string | null {
  if (endpoint.scaler.type !== 'QUEUE_DELAY' || queue.headQueuedAtMs === null) return null
  const { queueDelayS } = endpoint.scaler
  if (nowMs - queue.headQueuedAtMs < queueDelayS * 1000) return null
  return `the first job has waited longer than the queue delay of ${queueDelayS} s`
}

/** No worker works, and none starts yet. */
function undecided(snapshot: EndpointSnapshot): Explanation {
  const { queue, endpoint } = snapshot
  const waiting = queue.queued + queue.queuedLowPriority
  if (queue.queued === 0) {
    return {
      ...plain('low_priority', `${counted(waiting, 'queued job')} of low priority; they never start a worker`),
      action: 'wait until another job starts one, set workersMin to 1, or submit without lowPriority',
      commands: [`${update(endpoint.id)} --min 1`],
    }
  }
  return {
    ...plain(
      'about_to_start',
      `${counted(waiting, wordsOf(snapshot).thing)} waiting; a worker is about to be started for ${endpoint.name}`,
    ),
    action: 'wait a moment',
    sinceMs: queue.headQueuedAtMs,
  }
}

/** Why an endpoint with workersMin has no worker ready, although nothing waits. */
function notKeptReady(snapshot: EndpointSnapshot, context: ExplainContext): string[] {
  if (snapshot.endpoint.workersMin === 0) return []
  const found = wrongWith(snapshot, context)
  if (found === null) return []
  const { workersMin } = snapshot.endpoint
  return [`${counted(workersMin, 'worker')} ${isAre(workersMin)} to be kept ready, but ${found.summary}`]
}

function isAre(count: number): string {
  return count === 1 ? 'is' : 'are'
}

const unknown: PullPercent = () => null

function plain(cause: WaitCause, summary: string): Explanation {
  return { cause, summary, action: null, commands: [], sinceMs: null, evidence: [], notes: [] }
}

function update(id: EndpointId): string {
  return `runyard endpoints update ${id}`
}

/** What people run to put right why no worker can be started. */
function startCommands(failure: StartFailure, id: EndpointId): string[] {
  if (failure.kind === 'secrets_missing') return failure.names.map(name => `runyard secrets create --name ${name}`)
  if (failure.kind === 'model_failed') return ['runyard models list', `runyard models pull ${failure.model}`]
  if (failure.kind === 'volume_missing') return ['runyard volumes list', `${update(id)} --volume <volume>`]
  return ['runyard doctor']
}
