import type { GivenLimits } from '../../src/core/accounts/quotas.ts'
import type { JobId } from '../../src/core/ids.ts'
import type { Placement } from '../../src/core/workers/placement.ts'
import type { Commit } from '../ledger.ts'
import type { Database } from '../store.ts'

const WORKERS = `SELECT placement FROM workers WHERE state <> 'EXITED' ORDER BY id`

/** Reports an account that exceeds its limits. The simulator has only one account. */
export class QuotaChecker {
  readonly #report: (problem: string) => void
  readonly #database: Pick<Database, 'query'>
  readonly #limits: GivenLimits
  /** Queued jobs that were never claimed. Requeued and retried jobs are accepted whatever the limit. */
  readonly #fresh = new Set<JobId>()
  readonly #reported = new Set<string>()

  constructor(report: (problem: string) => void, database: Pick<Database, 'query'>, limits: GivenLimits) {
    this.#report = report
    this.#database = database
    this.#limits = limits
  }

  /** The store committed changes. */
  committed({ changes }: Commit): void {
    for (const { kind, job, was, now } of changes) {
      if (kind === 'insert' && now === 'IN_QUEUE') this.#fresh.add(job)
      else if (was !== now) this.#fresh.delete(job)
    }
    this.#compare('queued jobs', this.#fresh.size, this.#limits.queuedJobs)
  }

  /** Checks the workers and their GPUs. */
  inspect(): void {
    const workers = this.#database.query<{ placement: string | null }>(WORKERS)
    this.#compare('workers', workers.length, this.#limits.workers)
    const gpus = workers.flatMap(({ placement }) =>
      placement === null ? [] : (JSON.parse(placement) as Placement).gpus,
    )
    this.#compare('GPUs', gpus.length, this.#limits.gpus)
  }

  #compare(what: string, count: number, limit: number | null | undefined): void {
    if (limit == null || count <= limit || this.#reported.has(what)) return
    this.#reported.add(what)
    this.#report(`the account has ${count} ${what}, and its limit is ${limit}`)
  }
}
