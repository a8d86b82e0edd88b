import type { EndpointId, WorkerId } from '../../src/core/ids.ts'
import { WORKER_STATES, type WorkerState } from '../../src/core/workers/worker.ts'
import type { Events } from '../../src/events.ts'

/** How many workers an endpoint has and may have. */
export interface EndpointRow {
  readonly id: EndpointId
  readonly workers_min: number
  readonly workers_max: number
  readonly alive: number
}

/** A worker as the store has it. */
export interface WorkerRow {
  readonly id: WorkerId
  readonly state: WorkerState
}

/** A job that its holder can do nothing about any more. */
export interface StrandedRow {
  readonly id: string
  readonly worker_id: WorkerId
}

/** What is left when the store and the machine do not agree. */
export interface Leftovers {
  /** Workers that are alive in the store and whose processes do not run. */
  readonly ended: readonly WorkerRow[]
  /** Jobs that are held by workers which have ended. */
  readonly stranded: readonly StrandedRow[]
  /** Workers whose processes run and that are not alive in the store. */
  readonly orphans: readonly WorkerId[]
}

/** After this time the server must have noticed that a worker has ended. */
const NOTICE_MS = 5_000

/** Reports workers that go backwards, get jobs while they drain, are too many, or stay after their end. */
export class FleetChecker {
  readonly #report: (problem: string) => void
  readonly #states = new Map<WorkerId, WorkerState>()
  readonly #before = new Map<EndpointId, { alive: number; max: number }>()
  /** Since when something has been wrong that may be so for a moment. */
  readonly #since = new Map<string, number>()

  /** @param report is given one sentence per problem */
  constructor(report: (problem: string) => void) {
    this.#report = report
  }

  /** A worker starts; one that has ended may start again under its id, where requests insist on it. */
  created({ workerId }: Events['worker.created']): void {
    this.#states.delete(workerId)
  }

  /** A worker's state has changed. */
  moved({ workerId, from, to }: Events['worker.moved']): void {
    const known = this.#states.get(workerId) ?? from
    if (order(from) >= order(to) || order(known) >= order(to)) {
      this.#report(`worker ${workerId} moved from ${from} to ${to}, but it was ${known}`)
    }
    this.#states.set(workerId, to)
  }

  /** A worker has ended. */
  exited({ workerId, cause }: Events['worker.exited']): void {
    // A server that ended as it started a worker again has told nobody of that.
    const isUnseen = cause === 'ended while the server was away'
    if (this.#states.get(workerId) === 'EXITED' && !isUnseen) this.#report(`worker ${workerId} has ended twice`)
    this.#states.set(workerId, 'EXITED')
  }

  /** A worker was handed a job. */
  claimed(workerId: WorkerId, jobId: string): void {
    const state = this.#states.get(workerId) ?? 'STARTING'
    if (order(state) > order('READY')) this.#report(`worker ${workerId} was handed job ${jobId} while it was ${state}`)
  }

  /** Compares numbers of workers with their limits, when nothing is on its way. A lowered max may be exceeded for a time. */
  compare(endpoints: readonly EndpointRow[]): void {
    for (const { id, workers_max: max, alive } of endpoints) {
      const before = this.#before.get(id) ?? { alive: 0, max }
      const allowed = Math.max(max, before.max)
      if (alive > allowed && alive > before.alive) {
        this.#report(`endpoint ${id} has ${alive} workers, but its max is ${max}`)
      }
      this.#before.set(id, { alive, max: Math.max(max, Math.min(allowed, alive)) })
    }
  }

  /** Looks, while the server is up, for what may be wrong for a moment but must be over soon. */
  lingering(nowMs: number, { ended, stranded, orphans }: Leftovers): void {
    const wrong = [
      ...ended.map(({ id, state }) => `worker ${id} is ${state} although its process has ended`),
      ...stranded.map(({ id, worker_id }) => `job ${id} is IN_PROGRESS with worker ${worker_id}, which has ended`),
      ...orphans.map(id => `the process of worker ${id} runs, but the store has it as ended`),
    ]
    const still = new Set(wrong)
    for (const what of this.#since.keys()) if (!still.has(what)) this.#since.delete(what)
    for (const what of wrong) {
      const sinceMs = this.#since.get(what) ?? nowMs
      this.#since.set(what, sinceMs)
      if (nowMs - sinceMs < NOTICE_MS) continue
      this.#report(`${what}, since ${nowMs - sinceMs} ms`)
      this.#since.set(what, Number.POSITIVE_INFINITY)
    }
  }

  /** After a crash or while the server is away: the time of {@link lingering} begins anew, and states are the store's. */
  resync(workers: readonly WorkerRow[]): void {
    this.#since.clear()
    for (const { id, state } of workers) this.#states.set(id, state)
  }
}

function order(state: WorkerState): number {
  return WORKER_STATES.indexOf(state)
}
