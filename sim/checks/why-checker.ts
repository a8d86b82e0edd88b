import type { EndpointConfig } from '../../src/core/endpoints/endpoint.ts'
import type { EndpointId, JobId } from '../../src/core/ids.ts'
import { isFinal, type JobStatus } from '../../src/core/jobs/job.ts'
import { FAULT_REASONS, type WorkerState } from '../../src/core/workers/worker.ts'
import { SUSPECT_QUEUE } from '../../src/store/tables/guards.ts'
import type { Answered } from '../network.ts'
import type { Database } from '../store.ts'

/** What `/explain` says, as far as it can be held to. */
interface Said {
  readonly cause: string
  readonly summary: string
  readonly status?: JobStatus
}

interface JobRow {
  readonly status: JobStatus
  /** Empty unless it waits for the turn of a batch. */
  readonly queue: string
}

interface Facts {
  readonly max: number
  readonly waiting: number
  readonly normal: number
  readonly running: number
  /** Jobs in line that run alone. */
  readonly suspects: number
  /** Of workers that have not ended; those of older versions are as good as draining. */
  readonly states: readonly WorkerState[]
  /** Whether something is wrong with one of them. */
  readonly ailing: boolean
  /** Whether the worker that ended last did so by itself, or because it was of no use. */
  readonly crashed: boolean
  readonly machineFull: boolean
  /** How many workers wait for a place on the machine. */
  readonly queued: number
  /** For how long the first job waits beyond the delay that its endpoint wants; null where that does not apply. */
  readonly overdueMs: number | null
}

/** What the checker looks at besides the store. */
export interface WhySight {
  readonly machineFull: () => boolean
  /** The instant on the wall. */
  readonly nowMs: () => number
}

/** Compares why something is said to wait with what is the matter, at the instant of the answer. */
export class WhyChecker {
  readonly #report: (problem: string) => void
  readonly #database: Pick<Database, 'query'>
  readonly #sight: WhySight

  constructor(report: (problem: string) => void, database: Pick<Database, 'query'>, sight: WhySight) {
    this.#report = report
    this.#database = database
    this.#sight = sight
  }

  /** A request has its answer; those that do not ask why are none of its business. */
  answered({ call, status, text }: Answered): void {
    const [, , endpoint, operation, job] = new URL(call.url).pathname.split('/')
    if (operation !== 'explain' || status !== 200) return
    const said = JSON.parse(text) as Said
    const found = this.#facts(endpoint as EndpointId)
    if (found === null) return
    // A change that nobody was told of may have made them enough; one that waits for a place does so until the next look.
    const isEnough = said.summary.includes('enough for the wait')
    const facts = isEnough ? { ...found, queued: 0 } : found
    const row = job === undefined ? undefined : this.#jobOf(job as JobId)
    const problem =
      isEnough && found.overdueMs !== null && found.overdueMs > 0
        ? `the first job waits ${found.overdueMs} ms beyond its delay`
        : job === undefined
          ? ofEndpoint(said, facts)
          : row === undefined
            ? null
            : ofJob(said, row, facts)
    if (problem === null) return
    const what = job === undefined ? `endpoint ${endpoint}` : `job ${job}`
    this.#report(`${what} is said to be ${said.cause} (${said.summary}), but ${problem}: ${JSON.stringify(facts)}`)
  }

  #jobOf(job: JobId): JobRow | undefined {
    return this.#database.query<JobRow>('SELECT status, queue FROM jobs WHERE id = ?', job)[0]
  }

  #facts(id: EndpointId): Facts | null {
    const { query } = this.#database
    const [row] = query<FactsRow>(FACTS, ...Array(7).fill(id))
    if (row === undefined) return null
    const { scaler } = JSON.parse(row.config) as EndpointConfig
    const waitedMs = row.head_queued_at_ms === null ? null : this.#sight.nowMs() - row.head_queued_at_ms
    const workers = query<AliveRow>(ALIVE, id)
    const [last] = query<{ stop_reason: string | null }>(LAST_EXIT, id)
    return {
      max: row.max,
      waiting: row.waiting,
      normal: row.normal,
      running: row.running,
      queued: row.queued,
      suspects: row.suspects,
      states: workers.map(({ state, old }) => (old === 1 && state !== 'STOPPING' ? 'DRAINING' : state)),
      ailing: workers.some(({ problem }) => problem !== null),
      crashed:
        last !== undefined &&
        (last.stop_reason === null || (FAULT_REASONS as readonly string[]).includes(last.stop_reason)),
      machineFull: this.#sight.machineFull(),
      overdueMs: scaler.type === 'QUEUE_DELAY' && waitedMs !== null ? waitedMs - scaler.queueDelayS * 1000 : null,
    }
  }
}

interface FactsRow extends Pick<Facts, 'max' | 'waiting' | 'normal' | 'suspects' | 'running' | 'queued'> {
  readonly config: string
  readonly head_queued_at_ms: number | null
}

interface AliveRow {
  readonly state: WorkerState
  readonly problem: string | null
  readonly old: number
}

const ALIVE = `SELECT workers.state, workers.problem, workers.version <> endpoints.version AS old
  FROM workers JOIN endpoints ON endpoints.id = workers.endpoint_id WHERE endpoint_id = ? AND state <> 'EXITED'`

const FACTS = `SELECT workers_max AS max, config,
  (SELECT MIN(queued_at_ms) FROM jobs WHERE endpoint_id = ? AND status = 'IN_QUEUE' AND low_priority = 0
    AND queue = '') AS head_queued_at_ms,
  (SELECT COUNT(*) FROM jobs WHERE endpoint_id = ? AND status = 'IN_QUEUE') AS waiting,
  (SELECT COUNT(*) FROM jobs WHERE endpoint_id = ? AND status = 'IN_QUEUE' AND low_priority = 0) AS normal,
  (SELECT COUNT(*) FROM jobs WHERE endpoint_id = ? AND status = 'IN_QUEUE' AND queue = '${SUSPECT_QUEUE}') AS suspects,
  (SELECT COUNT(*) FROM jobs WHERE endpoint_id = ? AND status = 'IN_PROGRESS') AS running,
  (SELECT COUNT(*) FROM queued_workers WHERE endpoint_id = ? AND version = endpoints.version) AS queued
  FROM endpoints WHERE id = ?`
const LAST_EXIT = `SELECT stop_reason FROM workers WHERE endpoint_id = ? AND state = 'EXITED'
  ORDER BY exited_at_ms DESC, created_at_ms DESC, id DESC LIMIT 1`

function ofJob(said: Said, { status, queue }: JobRow, facts: Facts): string | null {
  if (said.status !== status) return `it is ${status} and not ${said.status}`
  if (isFinal(status)) return said.cause === 'finished' ? null : `it is ${status}`
  if (status === 'IN_PROGRESS') return said.cause === 'running' ? null : 'it runs'
  if (said.cause === 'runs_alone' && queue !== SUSPECT_QUEUE) return 'it is no suspect'
  if (said.cause === 'batch_turn') {
    if (queue === '') return 'it waits in the queue of its endpoint'
    return ofWaiting('running', facts) === null ? null : ofWaiting('max_reached', facts)
  }
  return said.cause === 'finished' || said.cause === 'nothing_waits' ? 'it waits' : ofWaiting(said.cause, facts)
}

function ofEndpoint(said: Said, facts: Facts): string | null {
  if (facts.waiting > 0) return said.cause === 'nothing_waits' ? 'jobs wait' : ofWaiting(said.cause, facts)
  const wanted = facts.running > 0 ? 'running' : 'nothing_waits'
  return said.cause === wanted ? null : `it is ${wanted}`
}

/** Null when the cause is true of an endpoint whose jobs wait. */
function ofWaiting(cause: string, facts: Facts): string | null {
  const { max, normal, suspects, states, crashed, ailing, machineFull, queued } = facts
  const has = (state: WorkerState) => states.includes(state)
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
      return crashed ? null : 'the worker that ended last was asked to'
    case 'worker_starting':
      return has('STARTING') ? null : 'no worker is starting'
    case 'worker_restarting':
      return states.length > 0 && !has('STARTING') && !has('READY') ? null : 'workers are there'
    case 'max_reached':
      return states.length >= max ? null : 'there may be more workers'
    case 'throttled':
    case 'no_capacity':
      return machineFull || queued > 0 ? null : 'the machine has room'
    case 'low_priority':
      return normal === 0 ? null : 'others wait too'
    case 'running':
      if (queued > 0) return 'a worker waits for a place'
      return has('READY') ? null : 'no worker is ready'
    case 'runs_alone':
      return suspects > 0 && (has('READY') || states.length >= max) ? null : 'no suspect waits for a free worker'
    case 'about_to_start':
      if (queued > 0) return 'a worker waits for a place'
      return has('READY') || has('STARTING') ? 'workers are there' : null
    default:
      return 'there is no such cause here'
  }
}
