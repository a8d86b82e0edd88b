import type { JobId } from '../../src/core/ids.ts'
import type { Commit } from '../ledger.ts'
import type { Database } from '../store.ts'

/** Longest time that a server that works may take to end a job that is over. */
const LATE_MS = 10_000
/** Pauses do not count; the begin of an ended job has moved by them. */
const RUNNING = `SELECT id, started_at_ms + paused_ms AS started, execution_timeout_ms AS timeout FROM jobs
  WHERE status = 'IN_PROGRESS' AND unbegun IS NULL AND paused_at_ms IS NULL`
const ONE = 'SELECT id, started_at_ms AS started, execution_timeout_ms AS timeout FROM jobs WHERE id = ?'

interface Limited {
  readonly id: JobId
  readonly started: number
  readonly timeout: number
}

/** The time of the world, and by how much that of a server may differ from it. */
export interface WorldTime {
  now(): number
  readonly slackMs: number
}

/**
 * Finds starts of jobs at another time than that of the world, and execution timeouts before or after it, whatever
 * the clocks of machines show.
 */
export class LimitChecker {
  readonly #report: (problem: string) => void
  readonly #database: Pick<Database, 'query'>
  readonly #time: WorldTime
  readonly #reported = new Set<JobId>()
  /** Time since which a server works; null while no server works. */
  #servedSinceMs: number | null = null
  /** Time since which each job was seen to run without a pause: after one a server first sees that it is over. */
  #ranSinceMs: ReadonlyMap<JobId, number> = new Map()

  /** @param report receives one sentence per problem */
  constructor(report: (problem: string) => void, database: Pick<Database, 'query'>, time: WorldTime) {
    this.#report = report
    this.#database = database
    this.#time = time
  }

  /** The store committed changes. */
  committed({ changes }: Commit): void {
    for (const { job, was, now } of changes) {
      if (was === now || (now !== 'IN_PROGRESS' && now !== 'TIMED_OUT')) continue
      const [row] = this.#database.query<Limited>(ONE, job)
      if (row === undefined || row.started === null) continue
      if (now === 'IN_PROGRESS') this.#started(row)
      else if (was === 'IN_PROGRESS') this.#timedOut(row)
    }
  }

  /** @param isServed true if a server works and its store is fast */
  inspect(isServed: boolean): void {
    const nowMs = this.#time.now()
    this.#servedSinceMs = isServed ? (this.#servedSinceMs ?? nowMs) : null
    if (this.#servedSinceMs === null) return
    const running = this.#database.query<Limited>(RUNNING)
    this.#ranSinceMs = new Map(running.map(({ id }) => [id, this.#ranSinceMs.get(id) ?? nowMs]))
    for (const { id, started, timeout } of running) {
      const lateMs = nowMs - Math.max(started + timeout, this.#servedSinceMs, this.#ranSinceMs.get(id) ?? nowMs)
      if (lateMs <= LATE_MS + this.#time.slackMs || this.#reported.has(id)) continue
      this.#report(`job ${id} runs ${lateMs} ms after its execution timeout of ${timeout} ms`)
      this.#reported.add(id)
    }
  }

  #started({ id, started }: Limited): void {
    const aheadMs = started - this.#time.now()
    if (aheadMs > this.#time.slackMs) this.#report(`job ${id} was started ${aheadMs} ms before it was`)
  }

  #timedOut({ id, started, timeout }: Limited): void {
    const ranMs = this.#time.now() - started
    if (ranMs >= timeout - this.#time.slackMs) return
    this.#report(`job ${id} timed out after ${ranMs} ms, and its execution timeout is ${timeout} ms`)
  }
}
