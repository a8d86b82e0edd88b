import type { EndpointId, WorkerId } from '../../src/core/ids.ts'
import { WORKER_STATES, type WorkerState } from '../../src/core/workers/worker.ts'
import type { Events } from '../../src/events.ts'
import { LastingProblems } from './lasting-problems.ts'

/** The number of workers of an endpoint, and its limits. */
export interface EndpointRow {
  readonly id: EndpointId
  readonly workers_min: number
  readonly workers_max: number
  readonly alive: number
  /** Number of frozen ones among them. */
  readonly frozen: number
}

/** A worker in the store. */
export interface WorkerRow {
  readonly id: WorkerId
  readonly state: WorkerState
}

/** A running job whose worker has ended. */
export interface StrandedRow {
  readonly id: string
  readonly worker_id: WorkerId
}

/** Differences between the store and the machine. */
export interface Leftovers {
  /** Workers that are alive in the store but have no running process. */
  readonly ended: readonly WorkerRow[]
  /** Running jobs whose workers have ended. */
  readonly stranded: readonly StrandedRow[]
  /** Workers that have a running process but are not alive in the store. */
  readonly orphans: readonly WorkerId[]
  /** Workers that are FROZEN in the store and run, or READY and are frozen. */
  readonly unsettled: readonly WorkerRow[]
}

/** Maximum time until the server detects the end of a worker. */
const NOTICE_MS = 5_000

/**
 * Reports workers whose state moves backwards but for a thaw, that get jobs while they are frozen or drain, exceed
 * the max, or stay after their end.
 */
export class FleetChecker {
  readonly #report: (problem: string) => void
  readonly #states = new Map<WorkerId, WorkerState>()
  readonly #previous = new Map<EndpointId, { alive: number; max: number }>()
  /** Differences that are allowed for a short time. */
  readonly #lasting

  readonly #storedState: (workerId: WorkerId) => WorkerState | null
  readonly #noticeMs: number

  /**
   * @param report receives one sentence per problem
   * @param storedState the state of a worker in the store, for those whose last event may be missing
   * @param noticeMs maximum time until the server detects the end of a worker
   */
  constructor(
    report: (problem: string) => void,
    storedState: (workerId: WorkerId) => WorkerState | null,
    noticeMs = NOTICE_MS,
  ) {
    this.#report = report
    this.#lasting = new LastingProblems(report)
    this.#noticeMs = noticeMs
    this.#storedState = storedState
  }

  /** A worker starts. A worker that has ended may start again under its id when requests require it. */
  created({ workerId }: Events['worker.created']): void {
    this.#states.delete(workerId)
  }

  /** A worker's state has changed. */
  moved({ workerId, from, to }: Events['worker.moved']): void {
    const state = this.#states.get(workerId) ?? from
    // The event of a freeze or a thaw is missing where its commit was taken for failed.
    const isBetween = (state: WorkerState) => state === 'READY' || state === 'FROZEN'
    const isFreezing = isBetween(from) && isBetween(to) && from !== to && order(state) <= order('FROZEN')
    if (!isFreezing && (order(from) >= order(to) || order(state) >= order(to))) {
      this.#report(`worker ${workerId} moved from ${from} to ${to}, but it was ${state}`)
    }
    this.#states.set(workerId, to)
  }

  /** A worker has ended. */
  exited({ workerId, cause }: Events['worker.exited']): void {
    // A server that ended while it started a worker again published no event for it.
    const isUnseen = cause === 'ended while the server was away' || cause === 'was not found'
    if (this.#states.get(workerId) === 'EXITED' && !isUnseen) this.#report(`worker ${workerId} has ended twice`)
    this.#states.set(workerId, 'EXITED')
  }

  /** A job was dispatched to a worker. */
  claimed(workerId: WorkerId, jobId: string): void {
    const lastState = this.#states.get(workerId) ?? 'STARTING'
    const state = lastState === 'FROZEN' ? (this.#storedState(workerId) ?? lastState) : lastState
    if (order(state) > order('READY')) this.#report(`worker ${workerId} got job ${jobId} while it was ${state}`)
  }

  /**
   * Compares the numbers of workers with their limits while no operation is under way. A lowered max
   * may be exceeded for a time.
   */
  compare(endpoints: readonly EndpointRow[]): void {
    for (const { id, workers_max: max, alive } of endpoints) {
      const previous = this.#previous.get(id) ?? { alive: 0, max }
      const allowed = Math.max(max, previous.max)
      if (alive > allowed && alive > previous.alive) {
        this.#report(`endpoint ${id} has ${alive} workers, but its max is ${max}`)
      }
      this.#previous.set(id, { alive, max: Math.max(max, Math.min(allowed, alive)) })
    }
  }

  /** Reports differences that last longer than the server may take to correct them. Call it while the server is up. */
  lingering(nowMs: number, { ended, stranded, orphans, unsettled }: Leftovers): void {
    const wrong = [
      ...ended.map(({ id, state }) => `worker ${id} is ${state} although its process has ended`),
      ...stranded.map(({ id, worker_id }) => `job ${id} is IN_PROGRESS with worker ${worker_id}, which has ended`),
      ...unsettled.map(
        ({ id, state }) => `worker ${id} is ${state}, and its process ${state === 'FROZEN' ? 'runs' : 'is frozen'}`,
      ),
      ...orphans.map(id => `the process of worker ${id} runs, but the store has it as ended`),
    ]
    this.#lasting.note(nowMs, new Map(wrong.map(problem => [problem, this.#noticeMs])))
  }

  /**
   * After a crash or while the server is down: restarts the times of {@link lingering} and takes
   * the states from the store.
   */
  resync(workers: readonly WorkerRow[]): void {
    this.#lasting.clear()
    for (const { id, state } of workers) this.#states.set(id, state)
  }
}

function order(state: WorkerState): number {
  return WORKER_STATES.indexOf(state)
}
