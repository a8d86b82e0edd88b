import type { WorkerId } from '../ids.ts'
import type { AttemptTimes } from '../jobs/attempt-times.ts'
import { type DownloadProgress, progressText } from '../models/download-progress.ts'
import type { Capacity } from '../scaling/plan.ts'
import { currentBackoff, desiredWorkers, type EndpointSnapshot, waitingCount } from '../scaling/scale.ts'
import { type StartFailure, startFailureText, startRemedy } from '../workers/start-failure.ts'
import { type CrashBackoff, exitText, waitsForPlace } from '../workers/worker.ts'
import type { PortConflict } from '../workers/worker-exit.ts'
import { findCrashCause, neverStarted, remedyForExit, remedyForProblem } from '../workers/worker-failure.ts'
import { presentPhase, type WorkerPhase } from '../workers/worker-phase.ts'
import { problemText } from '../workers/worker-problem.ts'
import type { Action } from './action.ts'
import {
  counted,
  currentWorkers,
  executionText,
  noPercent,
  overdueDelay,
  type PullPercent,
  phaseText,
  queuedWorkerFacts,
  queueFact,
  workerFacts,
} from './explain-facts.ts'
import { endpointNotes, suspectText } from './explain-notes.ts'
import { findLostNode, findPlaceWait } from './explain-place.ts'
import { olderWithoutRoomBeside } from './explain-rollout.ts'
import { thawing, waking } from './explain-sleepers.ts'
import { overTask } from './explain-task.ts'
import { endpointWords, placeAdvice } from './explain-words.ts'
import { type Explanation, plain, type WaitCause } from './explanation.ts'
import {
  type ActionFacts,
  actionsOnFailure,
  createSecrets,
  distinct,
  keepReady,
  moreWorkers,
  mostOnMachine,
  placeActions,
  seeOutput,
  startSooner,
} from './fix-actions.ts'
import { pausedJobs, type UrgentNames } from './pause-words.ts'
import { settingAdvice } from './setting-advice.ts'

/** Facts for {@link explainEndpoint} besides the snapshot. */
export interface ExplainContext extends ActionFacts {
  readonly capacity: Capacity
  /** Reason why no worker of this endpoint can be started, from the driver or the secrets; null if one can. */
  readonly startFailure: StartFailure | null
  readonly nowMs: number
  /** Download progress of images; unknown unless given. */
  readonly pullPercent?: PullPercent
  /** Progress of the models of the endpoint; null, or left out, if no download runs. */
  readonly download?: DownloadProgress | null
  /** Names of the endpoints for which workers are paused; empty by default. */
  readonly urgentNames?: UrgentNames
  /** True if workers of GPU endpoints run without a GPU here, since the machine has no GPU. */
  readonly noGpus?: boolean
  /** True if its workers run on a platform; false by default. */
  readonly isElsewhere?: boolean
  /** Conflicts over ports that workers of the endpoint wanted; empty by default. */
  readonly portConflicts?: ReadonlyMap<WorkerId, PortConflict>
  /** The newest attempts of a queue endpoint, for advice; empty by default. */
  readonly attempts?: readonly AttemptTimes[]
}

/** Age from which a start that is not healthy yet gets advice. Most starts just take a while. */
const LATE_MS = 20_000

/**
 * The cause of the wait of an endpoint's jobs or requests; `nothing_waits` or `running` if none wait, no request is
 * refused, and the workers that are to be kept ready can be. Exactly one cause: the first whose fix would change
 * something.
 */
export function explainEndpoint(snapshot: EndpointSnapshot, context: ExplainContext): Explanation {
  const { queue, requests } = snapshot
  const notes = endpointNotes(snapshot, context)
  if (waitingCount(queue) === 0) {
    const { thing, underWay } = endpointWords(snapshot)
    const running = queue.inProgress > 0
    const refusing = requests === undefined ? null : findRefusal(snapshot, context, running)
    if (refusing !== null) return { ...refusing, notes }
    const lacking = notKeptReady(snapshot, context)
    if (lacking !== null && !running) return { ...lacking, notes }
    const paused = pausedJobs(snapshot.workers)
    const pauses = paused === 0 ? '' : `, ${paused} of them paused for an endpoint of higher priority`
    const summary = running
      ? `${counted(queue.inProgress, thing)} ${underWay}${pauses}, none waiting`
      : `no ${thing} is waiting`
    const cause = paused > 0 && paused >= queue.inProgress ? 'preempted' : 'running'
    return {
      ...plain(running ? cause : 'nothing_waits', summary),
      notes: lacking === null ? notes : [...notes, { text: lacking.summary, actions: lacking.actions }],
    }
  }
  const explanation =
    paused(snapshot) ??
    findObstacle(snapshot, context) ??
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
  const facts = explanation.facts.length > 0 ? explanation.facts : [queueFact(snapshot, context.nowMs)]
  const alone = suspectText(snapshot)
  if (alone === null) return { ...explanation, facts, notes }
  const othersWait = queue.suspectsQueued < waitingCount(queue)
  if (othersWait) return { ...explanation, facts, notes: [...notes, { text: alone, actions: [] }] }
  return { ...runsAlone(explanation, alone), facts, notes }
}

/** If workers work, a suspect waits for one without jobs. A problem of the workers is the same for all jobs. */
export function runsAlone(reason: Explanation, alone: string): Explanation {
  if (!BUSY.has(reason.cause)) return { ...reason, summary: `${reason.summary}; ${alone}` }
  const summary = `${reason.summary}; ${alone}: that takes a worker without other jobs`
  return {
    ...reason,
    cause: 'runs_alone',
    summary,
    advice: 'wait; one is started for it, or let run empty',
    actions: [],
  }
}

const BUSY: ReadonlySet<WaitCause> = new Set(['max_reached', 'throttled', 'running'])

/**
 * The cause of refused requests. They wait for minutes at most, and at a paused endpoint not at all, so the queue may
 * be empty now.
 */
function findRefusal(snapshot: EndpointSnapshot, context: ExplainContext, running: boolean): Explanation | null {
  const isPaused = paused(snapshot)
  if (isPaused !== null || running) return isPaused
  return findObstacle(snapshot, context) ?? starting(snapshot, context, false) ?? downloading(snapshot, context)
}

/** The obstacle that keeps workers from working, even if nothing waits for them. */
function findObstacle(snapshot: EndpointSnapshot, context: ExplainContext): Explanation | null {
  return cannotStart(snapshot, context) ?? unhealthyWorker(snapshot, context) ?? crashing(snapshot, context)
}

function paused(snapshot: EndpointSnapshot): Explanation | null {
  const { endpoint, queue } = snapshot
  if (endpoint.workersMax > 0) return null
  if (endpoint.runsOnce) return overTask(snapshot)
  return {
    ...plain(
      'paused',
      `endpoint ${endpoint.name} is paused: workersMax is 0, so ${endpointWords(snapshot).whilePaused}`,
    ),
    advice: 'set workersMax to 1 or more',
    actions: moreWorkers(snapshot, {}, endpoint.pausedFrom?.max ?? 1),
    sinceMs: queue.headQueuedAtMs,
  }
}

function cannotStart(snapshot: EndpointSnapshot, context: ExplainContext): Explanation | null {
  const { startFailure } = context
  if (startFailure === null) return null
  const { cause, advice } = startRemedy(startFailure)
  const text = startFailureText(startFailure)
  const actions = actionsOnStartFailure(startFailure, snapshot, context)
  return { ...plain(cause, `no worker can be started: ${text}`), advice, actions, facts: [text] }
}

/** A start is checked again automatically, so that no retry is needed after the fix. */
function actionsOnStartFailure(
  failure: StartFailure,
  snapshot: EndpointSnapshot,
  facts: ActionFacts,
): readonly Action[] {
  const { fixes } = startRemedy(failure)
  const actions = actionsOnFailure({ fixes, worker: null, isRetried: false }, snapshot, facts)
  if (failure.kind === 'secrets_missing') return distinct([...createSecrets(failure.names), ...actions])
  if (failure.kind !== 'model_failed' || fixes.some(fix => fix === 'models')) return actions
  const { model } = failure
  return [...actions, { kind: 'download', title: `Download ${model} now`, model }]
}

/** A worker with a problem, if no other worker can take its work. */
function unhealthyWorker(snapshot: EndpointSnapshot, context: ExplainContext): Explanation | null {
  const { nowMs, pullPercent = noPercent } = context
  const current = currentWorkers(snapshot)
  const worker = current.find(({ problem }) => problem !== null)
  if (worker?.problem == null) return null
  if (current.some(({ state, problem }) => state === 'READY' && problem === null)) return null
  const { advice, fixes } = remedyForProblem(worker.problem)
  return {
    ...plain(
      worker.problem.kind === 'check_failed' ? 'fitness_failed' : 'unhealthy',
      `worker ${worker.id} ${endpointWords(snapshot).unhealthy}: ${problemText(worker.problem)}`,
    ),
    advice,
    actions: distinct([
      ...actionsOnFailure({ fixes, worker: worker.id, isRetried: false }, snapshot, context),
      REPLACE,
    ]),
    sinceMs: worker.problemAtMs ?? presentPhase(worker).sinceMs,
    facts: workerFacts(snapshot, nowMs, pullPercent),
  }
}

const REPLACE: Action = { kind: 'restart', title: 'Replace the workers now' }

function crashing(snapshot: EndpointSnapshot, context: ExplainContext): Explanation | null {
  const backoff = currentBackoff(snapshot)
  const { last } = backoff
  if (last === null || last.exit === null) return null
  if (currentWorkers(snapshot).some(({ state }) => state === 'READY')) return null
  const ended = exitText(last, last.exit)
  const times = backoff.crashes === 1 ? 'the last worker' : `the last ${backoff.crashes} workers crashed; the last one`
  const crash = neverStarted(last)
    ? `${backoff.crashes === 1 ? 'the last worker' : `each of the last ${backoff.crashes} workers crashed or`} could not be started: ${ended}`
    : `${times} ${ended}`
  const { advice, fixes } = remedyForExit(last.exit, last.problem)
  const worker = neverStarted(last) ? null : last.id
  return {
    cause: findCrashCause(last),
    summary: `${crash}${nextTry(backoff, snapshot, context)}`,
    advice,
    sinceMs: last.exitedAtMs,
    actions: actionsOnFailure({ fixes, worker, isRetried: true }, snapshot, context),
    facts: last.exit.lastLines.length > 0 ? last.exit.lastLines : [`worker ${last.id} ${ended}`],
    notes: [],
  }
}

function nextTry(
  backoff: CrashBackoff,
  snapshot: EndpointSnapshot,
  { nowMs, pullPercent = noPercent }: ExplainContext,
) {
  const seconds = Math.ceil((backoff.untilMs - nowMs) / 1000)
  const wanted = desiredWorkers(snapshot, nowMs).desired > currentWorkers(snapshot).length
  if (seconds > 0) return wanted ? `; the next one starts in ${seconds} s` : ''
  const next = currentWorkers(snapshot).find(({ state }) => state === 'STARTING')
  return next === undefined ? '' : `; ${phaseText(next, nowMs, pullPercent)}`
}

/** The phases of a start in which a worker prints something. */
const WITH_OUTPUT: ReadonlySet<WorkerPhase> = new Set(['starting', 'initializing'])

/** @param besides true if other workers may be ready */
function starting(snapshot: EndpointSnapshot, context: ExplainContext, besides: boolean): Explanation | null {
  const { nowMs, pullPercent = noPercent } = context
  const current = currentWorkers(snapshot)
  const onItsWay = current.filter(({ state }) => state === 'STARTING')
  const worker = onItsWay.find(one => !waitsForPlace(one)) ?? onItsWay[0]
  if (worker === undefined || (waitsForPlace(worker) && findPlaceWait(snapshot, nowMs) !== null)) return null
  if (!besides && current.some(({ state }) => state === 'READY')) return null
  const { phase, sinceMs } = presentPhase(worker)
  const health = snapshot.requests?.healthProblems.get(worker.id)
  const isLate = health !== undefined && nowMs - (worker.startedAtMs ?? nowMs) >= LATE_MS
  const healthText = health === undefined ? '' : `: ${problemText(health)}`
  const remedy = isLate ? remedyForProblem(health) : null
  const late = remedy === null ? [] : actionsOnFailure({ ...remedy, worker: null, isRetried: false }, snapshot, context)
  return {
    ...plain('worker_starting', `${phaseText(worker, nowMs, pullPercent)}${healthText}`),
    advice:
      phase === 'pulling'
        ? 'wait; an image that is on the machine already, or a smaller one, starts sooner'
        : (remedy?.advice ?? 'wait; its output shows what takes long'),
    actions: [...late, ...(WITH_OUTPUT.has(phase) ? [seeOutput(worker.id)] : [])],
    sinceMs,
    facts: workerFacts(snapshot, nowMs, pullPercent),
  }
}

function restarting(snapshot: EndpointSnapshot, context: ExplainContext): Explanation | null {
  const { nowMs, pullPercent = noPercent } = context
  const { workers, endpoint } = snapshot
  if (workers.length === 0 || workers.length < endpoint.workersMax || currentWorkers(snapshot).length > 0) return null
  const facts = workerFacts(snapshot, nowMs, pullPercent)
  const more = moreWorkers(snapshot, context, endpoint.workersMax + 1)
  const lost = findLostNode(snapshot)
  if (lost !== null) return { ...plain(lost.cause, lost.summary), ...lost, actions: [...more, ...lost.actions], facts }
  const held = workers.reduce((sum, worker) => sum + worker.held, 0)
  const old = workers.filter(({ version }) => version !== endpoint.version).length
  const which = old === 0 ? '' : `, ${old} of an older version,`
  const jobs = held === 0 ? 'end' : `finish ${counted(held, endpointWords(snapshot).thing)} and end`
  return {
    ...plain('worker_restarting', `${counted(workers.length, 'worker')}${which} ${jobs} before new ones start`),
    advice:
      more.length === 0
        ? 'wait until old workers have ended'
        : 'wait, or raise workersMax so that new workers need not wait for old ones',
    actions: more,
    sinceMs: workers[0]!.stopRequestedAtMs,
    facts,
  }
}

/** Workers start, and their platform has no place for them. */
function withoutPlace(
  snapshot: EndpointSnapshot,
  { nowMs, pullPercent = noPercent }: ExplainContext,
): Explanation | null {
  const wait = findPlaceWait(snapshot, nowMs)
  return wait && { ...plain(wait.cause, wait.summary), ...wait, facts: workerFacts(snapshot, nowMs, pullPercent) }
}

function maxReached(snapshot: EndpointSnapshot, context: ExplainContext): Explanation | null {
  const { nowMs, pullPercent = noPercent } = context
  const { workers, endpoint, queue, counters, requests } = snapshot
  if (workers.length < endpoint.workersMax) return null
  const { thing, underWay } = endpointWords(snapshot)
  const most = requests?.maxConcurrency ?? null
  const { averageExecutionMs: average } = counters
  const takes = average === null ? '' : `; a job takes ${executionText(average)} on average`
  const max = `workersMax is ${endpoint.workersMax}, and there ${workers.length === 1 ? 'is' : 'are'}`
  const busy =
    thing === 'job'
      ? `${counted(workers.length, 'worker')} with ${counted(queue.inProgress, 'running job')}`
      : `${counted(workers.length, 'worker')} with ${counted(queue.inProgress, thing)} ${underWay}`
  const limit = most === null ? '' : `; a worker has at most ${counted(most, thing)} at once (RUNYARD_MAX_CONCURRENCY)`
  const actions = moreWorkers(snapshot, context, wantedMax(snapshot, context))
  return {
    ...plain('max_reached', `${max} ${busy}${takes}${limit}`),
    advice: adviceAtMax(snapshot, context, actions.length > 0),
    actions,
    sinceMs: queue.headQueuedAtMs,
    facts: [queueFact(snapshot, nowMs), ...workerFacts(snapshot, nowMs, pullPercent)],
  }
}

/** The number of workers that the waits of the last attempts ask for, else one more. */
function wantedMax({ endpoint, ...snapshot }: EndpointSnapshot, { attempts = [] }: ExplainContext): number {
  const advised = settingAdvice({ endpoint, ...snapshot }, attempts)
  return advised?.setting === 'workersMax' ? advised.value : endpoint.workersMax + 1
}

function adviceAtMax(snapshot: EndpointSnapshot, context: ExplainContext, mayHaveMore: boolean): string {
  const ways = [
    ...(mayHaveMore ? ['workersMax'] : []),
    ...(snapshot.requests?.maxConcurrency == null ? [] : ['RUNYARD_MAX_CONCURRENCY']),
  ]
  if (ways.length > 0) return `wait, or raise ${ways.join(' or ')}`
  const isFull = mostOnMachine(snapshot, context) <= snapshot.endpoint.workersMax
  return isFull ? 'wait; the GPUs of this machine take no further worker' : 'wait; no endpoint has more workers'
}

/** Workers are wanted whose models are still downloading. */
function downloading(snapshot: EndpointSnapshot, context: ExplainContext): Explanation | null {
  const { nowMs, download = null } = context
  const [waiting] = snapshot.queuedWorkers
  if (waiting?.resource !== 'models') return null
  const current = currentWorkers(snapshot).length
  if (desiredWorkers(snapshot, nowMs).desired <= current && olderWithoutRoomBeside(snapshot) === null) return null
  const before = current === 0 ? 'before a worker is started' : 'before another worker is started'
  return {
    ...plain(
      'models_downloading',
      `${waiting.reason} ${before}${download === null ? '' : `: ${progressText(download)}`}`,
    ),
    advice: 'wait; each model is downloaded once, for all workers of this machine',
    actions: placeActions('models', snapshot, context),
    sinceMs: waiting.downloadStartedAtMs ?? waiting.queuedAtMs,
    facts: queuedWorkerFacts(snapshot.queuedWorkers, nowMs),
  }
}

/** More workers are wanted than fit on the machine. */
function noPlace(snapshot: EndpointSnapshot, context: ExplainContext): Explanation | null {
  const { capacity, nowMs } = context
  const { queue, queuedWorkers } = snapshot
  const current = currentWorkers(snapshot).length
  const full = capacity.freeWorkers !== null && capacity.freeWorkers <= 0
  const reason = queuedWorkers[0]?.reason ?? (full ? capacity.bound : null)
  const older = olderWithoutRoomBeside(snapshot)
  const wanted = desiredWorkers(snapshot, nowMs).desired > current
  if (reason === null || (!wanted && older === null && !waitsBesideBusyOnes(snapshot))) return null
  const resource = queuedWorkers[0]?.resource ?? 'workers'
  const advice = placeAdvice(resource)
  const actions = placeActions(resource, snapshot, context)
  const facts = queuedWorkerFacts(queuedWorkers, nowMs)
  const sinceMs = queuedWorkers[0]?.queuedAtMs ?? queue.headQueuedAtMs
  if (current === 0) {
    return { ...plain('no_capacity', `there is no room for a worker: ${reason}`), advice, actions, sinceMs, facts }
  }
  const more =
    older === null
      ? wanted
        ? `more than ${counted(current, 'worker')} ${isAre(current)} wanted, and there is no room for another one`
        : `${counted(current, 'worker')} ${isAre(current)} busy, and there is no room for the next one`
      : `${older}, and there is no room for one of release ${snapshot.endpoint.version} beside ${current === 1 ? 'it' : 'them'}`
  const summary = `${more}: ${reason}`
  return { ...plain('throttled', summary), advice, actions, sinceMs, facts }
}

/**
 * True if a worker waits for a place and no other one could take a job. The scaler may want no more workers at this
 * instant, since the job that waited for long has just begun; its time for the next one runs.
 */
function waitsBesideBusyOnes(snapshot: EndpointSnapshot): boolean {
  const current = currentWorkers(snapshot)
  return snapshot.queuedWorkers.length > 0 && current.length > 0 && current.every(({ held }) => held > 0)
}

function working(snapshot: EndpointSnapshot, context: ExplainContext): Explanation | null {
  const { nowMs, pullPercent = noPercent } = context
  const ready = currentWorkers(snapshot).filter(({ state }) => state === 'READY').length
  if (ready === 0) return null
  const enough = desiredWorkers(snapshot, nowMs).desired <= currentWorkers(snapshot).length
  const overdue = overdueDelay(snapshot, nowMs)
  const sooner = enough && mayStartSooner(snapshot, nowMs) ? startSooner(snapshot) : []
  const more = enough
    ? enoughText(snapshot, context, ready === 1 ? 'it is' : 'they are')
    : `more are wanted${overdue === null ? '' : ` since ${overdue}`}${nextTry(currentBackoff(snapshot), snapshot, context)}`
  return {
    ...plain('running', `${counted(ready, 'worker')} ${isAre(ready)} ready; ${more}`),
    advice: !enough
      ? 'wait for the next worker'
      : sooner.length === 0
        ? 'wait a moment'
        : 'wait, or choose a smaller scalerValue',
    actions: sooner,
    sinceMs: snapshot.queue.headQueuedAtMs,
    facts: [queueFact(snapshot, nowMs), ...workerFacts(snapshot, nowMs, pullPercent)],
  }
}

/**
 * True if a smaller value of the scaler starts a worker for the waiting jobs. Requests are about to get the existing
 * workers.
 */
function mayStartSooner(snapshot: EndpointSnapshot, nowMs: number): boolean {
  if (snapshot.requests !== undefined) return false
  return overdueDelay(snapshot, nowMs) === null || desiredWorkers(snapshot, nowMs).wakeAtMs !== null
}

/**
 * Reason why no further worker is wanted although jobs or requests wait.
 * @param they "it is" or "they are", of the ready workers
 */
function enoughText(snapshot: EndpointSnapshot, { nowMs }: ExplainContext, they: string): string {
  if (snapshot.requests !== undefined) return `${they} about to get them`
  const overdue = overdueDelay(snapshot, nowMs)
  if (overdue === null) return `${they} enough for the wait that the scaler allows`
  const { wakeAtMs } = desiredWorkers(snapshot, nowMs)
  if (wakeAtMs === null) return `${overdue}, and there is a worker for each job`
  return `${overdue}; another one is started in ${Math.ceil((wakeAtMs - nowMs) / 1000)} s if it still waits`
}

/** No worker works, and none starts yet. */
function undecided(snapshot: EndpointSnapshot): Explanation {
  const { queue, endpoint } = snapshot
  const waiting = waitingCount(queue)
  if (queue.queued === 0) {
    return {
      ...plain('low_priority', `${counted(waiting, 'queued job')} of low priority; they never start a worker`),
      advice: 'wait until another job starts one, set workersMin to 1, or submit without lowPriority',
      actions: keepReady(snapshot, 1),
    }
  }
  return {
    ...plain(
      'about_to_start',
      `${counted(waiting, endpointWords(snapshot).thing)} waiting; a worker is about to be started for ${endpoint.name}`,
    ),
    advice: 'wait a moment',
    sinceMs: queue.headQueuedAtMs,
  }
}

/** Reason why an endpoint with workersMin has no ready worker and gets none, although nothing waits. */
function notKeptReady(snapshot: EndpointSnapshot, context: ExplainContext): Explanation | null {
  const { workersMin, workersMax } = snapshot.endpoint
  if (workersMin === 0 || workersMax === 0) return null
  if (currentWorkers(snapshot).some(({ state, problem }) => state === 'READY' && problem === null)) return null
  const obstacle =
    findObstacle(snapshot, context) ??
    withoutPlace(snapshot, context) ??
    downloading(snapshot, context) ??
    noPlace(snapshot, context)
  if (obstacle === null) return null
  const summary = `${counted(workersMin, 'worker')} ${isAre(workersMin)} to be kept ready, but ${obstacle.summary}`
  return { ...obstacle, summary }
}

function isAre(count: number): string {
  return count === 1 ? 'is' : 'are'
}
