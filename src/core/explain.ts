import type { BatchId } from './ids.ts'
import type { Job } from './job.ts'
import type { Capacity } from './plan.ts'
import { backoffOf, type EndpointSnapshot } from './scale.ts'
import { takesJobs, type WorkerExit, type WorkerLoad } from './worker.ts'

/** Why something waits, as one word for programs. */
export type WaitCause =
  | 'nothing_waits'
  | 'paused'
  | 'image_error'
  | 'crash_loop'
  | 'worker_starting'
  | 'worker_restarting'
  | 'max_reached'
  | 'no_capacity'
  | 'low_priority'
  | 'batch_turn'
  | 'about_to_start'
  | 'running'
  | 'finished'

/** One cause, said to a person: what is the matter, since when, and what to do about it. */
export interface Explanation {
  readonly cause: WaitCause
  readonly summary: string
  /** What to do; null when there is nothing to do but wait. */
  readonly action: string | null
  /** Epoch milliseconds since when it is so; null when that does not apply. */
  readonly sinceMs: number | null
  /** Last lines of the output that shows it; empty when there are none. */
  readonly evidence: readonly string[]
}

/** What {@link explainEndpoint} looks at besides the snapshot. */
export interface ExplainContext {
  readonly capacity: Capacity
  /** Why no worker of this endpoint can be started, from the driver or the secrets; null when it can. */
  readonly startProblem: string | null
  readonly nowMs: number
}

/** Why the jobs of an endpoint wait, or that none does. Exactly one cause: the first that, once mended, would change something. */
export function explainEndpoint(snapshot: EndpointSnapshot, context: ExplainContext): Explanation {
  const { queue, endpoint } = snapshot
  const waiting = queue.queued + queue.queuedLowPriority
  if (waiting === 0) {
    const running = queue.inProgress > 0
    return plain(
      running ? 'running' : 'nothing_waits',
      running ? `${jobs(queue.inProgress)} running, none waiting` : 'no job is waiting',
    )
  }
  return (
    paused(snapshot) ??
    startProblem(context) ??
    crashLoop(snapshot, context.nowMs) ??
    busyOrStarting(snapshot, context) ??
    (queue.queued === 0
      ? {
          ...plain('low_priority', `${jobs(waiting)} of low priority wait; they never start a worker`),
          action: 'wait until another job starts one, set workersMin to 1, or submit without lowPriority',
        }
      : {
          ...plain('about_to_start', `${jobs(waiting)} waiting; a worker is about to be started for ${endpoint.name}`),
          sinceMs: queue.headQueuedAtMs,
        })
  )
}

/** The batch for whose turn a job waits, and how many of its requests come before the job. */
export interface BatchWait {
  readonly batchId: BatchId
  readonly before: number
}

/** Why one job waits, runs or ended the way it did. @param batch null for a job that stands in line by itself */
export function explainJob(
  job: Job,
  snapshot: EndpointSnapshot,
  context: ExplainContext,
  batch: BatchWait | null = null,
): Explanation {
  if (job.status === 'IN_QUEUE') {
    const reason = inBatch(explainEndpoint(snapshot, context), batch)
    const again = job.lostAttempts > 0 ? `; it was queued again after ${job.lostAttempts} lost attempt(s)` : ''
    return { ...reason, summary: reason.summary + again, sinceMs: reason.sinceMs ?? job.queuedAtMs }
  }
  if (job.status === 'IN_PROGRESS') {
    return {
      ...plain('running', `attempt ${job.attempt} runs on worker ${job.workerId}`),
      sinceMs: job.startedAtMs,
    }
  }
  const why = job.error === null ? '' : `: ${job.error}`
  return { ...plain('finished', `the job is ${job.status}${why}`), sinceMs: job.finishedAtMs }
}

/** Where workers work, the job waits for its batch; what keeps workers from working is the same for all. */
function inBatch(reason: Explanation, batch: BatchWait | null): Explanation {
  if (batch === null || (reason.cause !== 'max_reached' && reason.cause !== 'running')) return reason
  const before = `${batch.before} of its requests come before this one`
  const summary = `${reason.summary}; batch ${batch.batchId} takes turns with the other jobs, and ${before}`
  return { ...reason, cause: 'batch_turn', summary }
}

/** What usually helps after a worker ended like this; null when nothing is known. */
export function adviceFor(exit: WorkerExit): string | null {
  const text = exit.lastLines.join('\n')
  const missing = /No module named '([^']+)'/.exec(text)?.[1]
  if (missing !== undefined) {
    return `install the Python module '${missing}' where the worker runs: put it into the folder's .venv (python3 -m venv .venv && .venv/bin/pip install ${missing})`
  }
  const packageName = /Cannot find (?:package|module) '([^'./][^':]*)'/.exec(text)?.[1]
  if (packageName !== undefined) return `install '${packageName}' in the worker's folder (npm install ${packageName})`
  if (/can't open file|No such file or directory|Cannot find module/.test(text)) {
    return 'check that the folder of the image and the command in args name files that exist'
  }
  if (/did not ask for a job within/.test(exit.cause)) {
    return 'load less before the handler starts, or allow more time with RUNPOD_INIT_TIMEOUT (seconds) in the environment of the endpoint'
  }
  if (/\bcheck\b.* failed/.test(exit.cause)) return 'mend what the fitness check of the worker has found'
  if (/its loop is stuck/.test(exit.cause)) {
    return 'look at the last lines of its output; often concurrency_modifier does not return a number'
  }
  if (exit.signal === 'SIGKILL')
    return 'the worker was killed from outside, often because memory ran out; look at the memory it needs'
  if (exit.code === 0)
    return 'the worker ended by itself without an error; its program must call start() and keep running'
  return 'read its output (runyard logs <worker>) and fix the error it ends with'
}

function paused({ endpoint, queue }: EndpointSnapshot): Explanation | null {
  if (endpoint.workersMax > 0) return null
  return {
    ...plain('paused', `${endpoint.name} is paused: workersMax is 0, so jobs are accepted and wait`),
    action: 'set workersMax to 1 or more',
    sinceMs: queue.headQueuedAtMs,
  }
}

function startProblem({ startProblem: problem }: ExplainContext): Explanation | null {
  if (problem === null) return null
  return {
    ...plain('image_error', `no worker can be started: ${problem}`),
    action: 'mend it and save the template or the endpoint again',
  }
}

function crashLoop(snapshot: EndpointSnapshot, nowMs: number): Explanation | null {
  const backoff = backoffOf(snapshot)
  const exit = backoff.last?.exit
  if (backoff.last === null || exit === undefined || exit === null) return null
  if (snapshot.workers.some(worker => worker.state === 'READY' && worker.version === snapshot.endpoint.version))
    return null
  const seconds = Math.ceil((backoff.untilMs - nowMs) / 1000)
  const next = seconds > 0 ? `; the next one starts in ${seconds} s` : ''
  return {
    cause: 'crash_loop',
    summary: `the last ${backoff.crashes} worker(s) ended by themselves: ${exit.cause}${next}`,
    action: adviceFor(exit),
    sinceMs: backoff.last.exitedAtMs,
    evidence: exit.lastLines,
  }
}

function busyOrStarting(snapshot: EndpointSnapshot, { capacity, nowMs }: ExplainContext): Explanation | null {
  const { workers, endpoint, queue } = snapshot
  const starting = workers.filter(worker => worker.state === 'STARTING')
  const ready = workers.filter(worker => worker.state === 'READY')
  if (ready.length === 0 && starting.length > 0) return startingSince(starting[0]!, nowMs)
  if (workers.length > 0 && !workers.some(takesJobs)) {
    return {
      ...plain(
        'worker_restarting',
        `${workers.length} worker(s) finish and end before new ones start (${workers[0]!.stopReason})`,
      ),
      sinceMs: workers[0]!.stopRequestedAtMs,
    }
  }
  if (workers.length >= endpoint.workersMax) {
    return {
      ...plain('max_reached', `all ${endpoint.workersMax} workers are busy with ${jobs(queue.inProgress)}`),
      action: 'wait, or raise workersMax',
      sinceMs: queue.headQueuedAtMs,
    }
  }
  if (capacity.freeWorkers !== null && capacity.freeWorkers <= 0) {
    return {
      ...plain('no_capacity', `there is no room for another worker: ${capacity.bound}`),
      action: 'stop other workers, or add capacity',
      sinceMs: queue.headQueuedAtMs,
    }
  }
  if (starting.length > 0) return startingSince(starting[0]!, nowMs)
  if (ready.length === 0) return null
  return {
    ...plain(
      'running',
      `${ready.length} worker(s) work on the queue; their number is enough for the wait that the scaler allows`,
    ),
    action: 'wait, or choose a smaller scalerValue',
    sinceMs: queue.headQueuedAtMs,
  }
}

function startingSince(worker: WorkerLoad, nowMs: number): Explanation {
  const sinceMs = worker.startedAtMs ?? worker.createdAtMs
  const phase = worker.startedAtMs === null ? 'is being started' : 'runs and has not asked for a job yet'
  const problem = worker.problem === null ? '' : `; ${worker.problem}`
  return {
    ...plain(
      'worker_starting',
      `worker ${worker.id} ${phase}, for ${Math.round((nowMs - sinceMs) / 1000)} s${problem}`,
    ),
    sinceMs,
  }
}

function jobs(count: number): string {
  return count === 1 ? '1 job' : `${count} jobs`
}

function plain(cause: WaitCause, summary: string): Explanation {
  return { cause, summary, action: null, sinceMs: null, evidence: [] }
}
