import type { WorkerId } from '../../src/core/ids.ts'
import type { Commit } from '../ledger.ts'
import type { Database } from '../store.ts'
import { transitionFromChange } from './job-checker.ts'

const STOP_REASON = 'SELECT stop_reason FROM workers WHERE id = ?'

/** Reports jobs that lose an attempt because a cluster took their worker away. */
export class ClusterChecker {
  readonly #report: (problem: string) => void
  readonly #database: Pick<Database, 'query'>
  readonly #isRunning: (worker: WorkerId) => boolean
  readonly #reclaimed = new Set<WorkerId>()

  /**
   * @param report receives one sentence per problem
   * @param isRunning true if the process of a worker runs: a worker that has to end may still lose
   * a job by a fault of its own
   */
  constructor(
    report: (problem: string) => void,
    database: Pick<Database, 'query'>,
    isRunning: (worker: WorkerId) => boolean,
  ) {
    this.#report = report
    this.#database = database
    this.#isRunning = isRunning
  }

  /** The cluster takes a worker away. */
  reclaimed(worker: WorkerId): void {
    this.#reclaimed.add(worker)
  }

  /** The server ended: the next one cannot see how missing workers ended, so the cluster is not blamed for them. */
  serverEnded(): void {
    this.#reclaimed.clear()
  }

  /** The store committed changes. */
  committed({ changes }: Commit): void {
    for (const change of changes) {
      const { job, was_worker: worker } = change
      if (transitionFromChange(change) !== 'requeue' || worker === null || !this.#reclaimed.has(worker)) continue
      // One that the server ended itself, or had to, is not held against the cluster.
      const [row] = this.#database.query<{ stop_reason: string | null }>(STOP_REASON, worker)
      const reason = row?.stop_reason ?? null
      if (this.#isRunning(worker) || (reason !== null && reason !== 'reclaimed')) continue
      this.#report(`job ${job} lost an attempt with worker ${worker}, which the cluster had taken away`)
    }
  }
}
