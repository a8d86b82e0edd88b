import type { EndpointConfig } from '../../src/core/endpoints/endpoint.ts'
import type { EndpointId, JobId } from '../../src/core/ids.ts'
import { isFinal, type JobStatus } from '../../src/core/jobs/job.ts'
import { MAX_ROLLOUT_CRASHES } from '../../src/core/scaling/rollout.ts'
import { FAULT_REASONS, type WorkerState } from '../../src/core/workers/worker.ts'
import { SUSPECT_QUEUE } from '../../src/store/tables/guards.ts'
import type { Exchange } from '../network.ts'
import type { Database } from '../store.ts'

/** The fields of a response of `/explain` that are checked. */
interface Explanation {
  readonly cause: string
  readonly summary: string
  readonly status?: JobStatus
}

interface JobRow {
  readonly status: JobStatus
  /** Empty for the queue of the endpoint. */
  readonly queue: string
}

interface Facts {
  /** Number of workers that are to be kept ready. */
  readonly min: number
  readonly max: number
  readonly waiting: number
  readonly normal: number
  readonly running: number
  /** Number of ready workers that hold jobs; a paused one is frozen. */
  readonly busy: number
  /** Number of queued jobs that run alone. */
  readonly suspects: number
  /**
   * States of the workers that have not ended; those of older versions count as draining, except beside a canary
   * and beside a release that was stopped.
   */
  readonly states: readonly WorkerState[]
  /** True if one of them has a problem. */
  readonly ailing: boolean
  /** True if the worker that ended last crashed or was ended for a fault. */
  readonly crashed: boolean
  readonly machineFull: boolean
  /** Number of workers that wait for a placement. */
  readonly queued: number
  /** Number of sleeping workers that wait for their GPUs. */
  readonly unwoken: number
  /** Number of workers that are being suspended, and cannot be thawed yet. */
  readonly suspending: number
  /** Number of workers that are being resumed, and take no job yet. */
  readonly resuming: number
  /** Number of its paused workers. */
  readonly paused: number
  /** Wait of the first job beyond the queue delay; null if the scaler has no delay or no job waits. */
  readonly overdueMs: number | null
}

/** State that the checker reads besides the store. */
export interface ExplainView {
  readonly machineFull: () => boolean
  /** The wall-clock time. */
  readonly nowMs: () => number
}

/** Compares the cause that `/explain` gives with the state of the store at the instant of the response. */
export class ExplainChecker {
  readonly #report: (problem: string) => void
  readonly #database: Pick<Database, 'query'>
  readonly #view: ExplainView

  constructor(report: (problem: string) => void, database: Pick<Database, 'query'>, view: ExplainView) {
    this.#report = report
    this.#database = database
    this.#view = view
  }

  /** The server responded to a request. Only `/explain` is checked. */
  answered({ call, status, text }: Exchange): void {
    const [, , endpoint, operation, job] = new URL(call.url).pathname.split('/')
    if (operation !== 'explain' || status !== 200) return
    const explanation = JSON.parse(text) as Explanation
    const stored = this.#readFacts(endpoint as EndpointId)
    if (stored === null) return
    // A change whose notification was lost may have made the workers enough; a queued worker
    // stays until the next plan.
    const isEnough = explanation.summary.includes('enough for the wait')
    const facts = isEnough ? { ...stored, queued: 0 } : stored
    const row = job === undefined ? undefined : this.#readJob(job as JobId)
    const problem =
      isEnough && stored.overdueMs !== null && stored.overdueMs > 0
        ? `the first job waits ${stored.overdueMs} ms beyond its delay`
        : job === undefined
          ? endpointProblem(explanation, facts)
          : row === undefined
            ? null
            : jobProblem(explanation, row, facts)
    if (problem === null) return
    const subject = job === undefined ? `endpoint ${endpoint}` : `job ${job}`
    this.#report(
      `${subject} is explained as ${explanation.cause} (${explanation.summary}), but ${problem}: ${JSON.stringify(facts)}`,
    )
  }

  #readJob(job: JobId): JobRow | undefined {
    return this.#database.query<JobRow>('SELECT status, queue FROM jobs WHERE id = ?', job)[0]
  }

  #readFacts(id: EndpointId): Facts | null {
    const { query } = this.#database
    const [row] = query<FactsRow>(FACTS, ...Array(12).fill(id))
    if (row === undefined) return null
    const { scaler } = JSON.parse(row.config) as EndpointConfig
    const waitedMs = row.head_queued_at_ms === null ? null : this.#view.nowMs() - row.head_queued_at_ms
    const workers = query<AliveRow>(ALIVE, id)
    const [last] = query<{ stop_reason: string | null }>(LAST_EXIT, id)
    return {
      min: row.min,
      max: row.max,
      waiting: row.waiting,
      normal: row.normal,
      running: row.running,
      busy: row.busy,
      queued: row.queued,
      unwoken: row.unwoken,
      suspending: row.suspending,
      resuming: row.resuming,
      paused: row.paused,
      suspects: row.suspects,
      states: workers.map(({ state, old }) => (old === 1 && state !== 'STOPPING' ? 'DRAINING' : state)),
      ailing: workers.some(({ problem }) => problem !== null),
      crashed:
        last !== undefined &&
        (last.stop_reason === null || (FAULT_REASONS as readonly string[]).includes(last.stop_reason)),
      machineFull: this.#view.machineFull(),
      overdueMs: scaler.type === 'QUEUE_DELAY' && waitedMs !== null ? waitedMs - scaler.queueDelayS * 1000 : null,
    }
  }
}

interface FactsRow
  extends Pick<
    Facts,
    | 'min'
    | 'max'
    | 'waiting'
    | 'normal'
    | 'suspects'
    | 'running'
    | 'busy'
    | 'queued'
    | 'unwoken'
    | 'suspending'
    | 'resuming'
    | 'paused'
  > {
  readonly config: string
  readonly head_queued_at_ms: number | null
}

interface AliveRow {
  readonly state: WorkerState
  readonly problem: string | null
  readonly old: number
}

const PRESENT = 'releases.endpoint_id = endpoints.id AND releases.version = endpoints.version'
const ALIVE = `SELECT workers.state, workers.problem, workers.version <> endpoints.version
    AND NOT EXISTS (SELECT 1 FROM releases WHERE ${PRESENT} AND (canary IS NOT NULL
      OR (ready_at_ms IS NULL AND crashes >= ${MAX_ROLLOUT_CRASHES})))
    AND (workers.state <> 'READY' OR EXISTS (SELECT 1 FROM releases WHERE ${PRESENT} AND ready_at_ms IS NOT NULL)) AS old
  FROM workers JOIN endpoints ON endpoints.id = workers.endpoint_id WHERE endpoint_id = ? AND state <> 'EXITED'`

const FACTS = `SELECT workers_min AS min, workers_max AS max, config,
  (SELECT MIN(queued_at_ms) FROM jobs WHERE endpoint_id = ? AND status = 'IN_QUEUE' AND low_priority = 0
    AND queue = '') AS head_queued_at_ms,
  (SELECT COUNT(*) FROM jobs WHERE endpoint_id = ? AND status = 'IN_QUEUE') AS waiting,
  (SELECT COUNT(*) FROM jobs WHERE endpoint_id = ? AND status = 'IN_QUEUE' AND low_priority = 0) AS normal,
  (SELECT COUNT(*) FROM jobs WHERE endpoint_id = ? AND status = 'IN_QUEUE' AND queue = '${SUSPECT_QUEUE}') AS suspects,
  (SELECT COUNT(*) FROM jobs WHERE endpoint_id = ? AND status = 'IN_PROGRESS') AS running,
  (SELECT COUNT(DISTINCT worker_id) FROM jobs JOIN workers ON workers.id = worker_id
    WHERE jobs.endpoint_id = ? AND status = 'IN_PROGRESS' AND workers.state = 'READY') AS busy,
  (SELECT COUNT(*) FROM queued_workers WHERE endpoint_id = ? AND version = endpoints.version) AS queued,
  (SELECT COUNT(*) FROM workers WHERE endpoint_id = ? AND state = 'FROZEN' AND wake_waits_for IS NOT NULL) AS unwoken,
  (SELECT COUNT(*) FROM workers WHERE endpoint_id = ? AND state = 'FROZEN' AND suspension IS NOT NULL
    AND asleep_at_ms IS NULL) AS suspending,
  (SELECT COUNT(*) FROM workers WHERE endpoint_id = ? AND state = 'READY' AND suspension IS NOT NULL
    AND paused_at_ms IS NULL AND thawed_at_ms IS NOT NULL) AS resuming,
  (SELECT COUNT(*) FROM workers WHERE endpoint_id = ? AND paused_at_ms IS NOT NULL) AS paused
  FROM endpoints WHERE id = ?`
const LAST_EXIT = `SELECT stop_reason FROM workers WHERE endpoint_id = ? AND state = 'EXITED'
  ORDER BY exited_at_ms DESC, created_at_ms DESC, id DESC LIMIT 1`

function jobProblem(explanation: Explanation, { status, queue }: JobRow, facts: Facts): string | null {
  if (explanation.status !== status) return `it is ${status} and not ${explanation.status}`
  if (isFinal(status)) return explanation.cause === 'finished' ? null : `it is ${status}`
  if (status === 'IN_PROGRESS') return isWork(explanation.cause, facts) ? null : 'it runs'
  if (explanation.cause === 'runs_alone' && queue !== SUSPECT_QUEUE) return 'it is no suspect'
  if (explanation.cause === 'batch_turn') {
    if (queue === '') return 'it waits in the queue of its endpoint'
    return waitProblem('running', facts) === null ? null : waitProblem('max_reached', facts)
  }
  return explanation.cause === 'finished' || explanation.cause === 'nothing_waits'
    ? 'it waits'
    : waitProblem(explanation.cause, facts)
}

/** True if this cause is that of jobs that are in progress. */
function isWork(cause: string, { paused }: Facts): boolean {
  return cause === 'running' || (cause === 'preempted' && paused > 0)
}

function endpointProblem(explanation: Explanation, facts: Facts): string | null {
  if (facts.waiting > 0)
    return explanation.cause === 'nothing_waits' ? 'jobs wait' : waitProblem(explanation.cause, facts)
  const expectedCause = facts.running > 0 ? 'running' : 'nothing_waits'
  if (facts.running > 0 && isWork(explanation.cause, facts)) return null
  // A broken release has to be fixed first, whatever waits.
  if (explanation.cause === 'rollout_stopped') return null
  if (explanation.cause === expectedCause) return null
  const isLacking = facts.min > 0 && facts.running === 0 && (facts.ailing || !facts.states.includes('READY'))
  return isLacking && LACKS.has(explanation.cause) ? waitProblem(explanation.cause, facts) : `it is ${expectedCause}`
}

/** Causes for which workers that are to be kept ready are not, though nothing waits. */
const LACKS: ReadonlySet<string> = new Set([
  ...['image_error', 'fitness_failed', 'unhealthy', 'out_of_memory', 'hung_start', 'crash_loop'],
  ...['no_capacity', 'throttled'],
])

/** Reason why the cause is wrong for an endpoint with queued jobs; null if it is right. */
function waitProblem(cause: string, facts: Facts): string | null {
  const { max, normal, suspects, states, crashed, ailing, machineFull, queued, unwoken } = facts
  const has = (state: WorkerState) => states.includes(state)
  const count = (state: WorkerState) => states.filter(one => one === state).length
  if ((max === 0) !== (cause === 'paused')) return max === 0 ? 'it is paused' : 'it is not paused'
  switch (cause) {
    case 'paused':
      return null
    case 'fitness_failed':
    case 'unhealthy':
      return crashed || ailing ? null : 'nothing is wrong with its workers'
    case 'image_error':
    case 'out_of_memory':
    case 'hung_start':
    case 'crash_loop':
      return crashed ? null : 'the worker that ended last was terminated by the server'
    case 'worker_starting':
      return has('STARTING') ? null : 'no worker is starting'
    case 'worker_restarting':
      return states.length > 0 && !has('STARTING') && !has('READY') ? null : 'workers are there'
    case 'max_reached':
      return states.length >= max ? null : 'there may be more workers'
    case 'throttled':
    case 'no_capacity':
      return machineFull || queued + unwoken > 0 ? null : 'the machine has a free place'
    case 'rollout_stopped':
      return null
    case 'low_priority':
      return normal === 0 ? null : 'other jobs wait too'
    case 'running':
      // With an idle worker, which is about to take a job, another one may no longer be needed; it stays
      // queued until the next refresh.
      if (queued > 0 && facts.busy >= count('READY')) return 'a worker waits for a place'
      return has('READY') ? null : 'no worker is ready'
    case 'runs_alone':
      return suspects > 0 && (has('READY') || states.length >= max) ? null : 'no suspect waits for a free worker'
    case 'about_to_start':
      if (queued > 0 && facts.suspending + facts.resuming === 0) return 'a worker waits for a place'
      return has('STARTING') || count('READY') > facts.resuming ? 'workers are there' : null
    default:
      return 'there is no such cause here'
  }
}
