import type { GivenLimits } from '../../src/core/accounts/quotas.ts'
import type { EndpointId, JobId } from '../../src/core/ids.ts'
import { fractionOfGpus, type Placement } from '../../src/core/workers/placement.ts'
import type { Commit } from '../ledger.ts'
import type { Database } from '../store.ts'

const WORKERS = `SELECT placement, asleep_at_ms FROM workers WHERE state <> 'EXITED' ORDER BY id`
const ENDPOINTS = 'SELECT id FROM endpoints'

/** Reports an account that exceeds its limits. The simulator has only one account. */
export class QuotaChecker {
  readonly #report: (problem: string) => void
  readonly #database: Pick<Database, 'query'>
  readonly #limits: GivenLimits
  /** Queued jobs that were never claimed. Requeued and retried jobs are accepted whatever the limit. */
  readonly #fresh = new Map<JobId, EndpointId>()
  readonly #reported = new Set<string>()

  constructor(report: (problem: string) => void, database: Pick<Database, 'query'>, limits: GivenLimits) {
    this.#report = report
    this.#database = database
    this.#limits = limits
  }

  /** The store committed changes. */
  committed({ changes }: Commit): void {
    for (const { kind, job, endpoint, was, now } of changes) {
      if (kind === 'insert' && now === 'IN_QUEUE') this.#fresh.set(job, endpoint)
      else if (was !== now) this.#fresh.delete(job)
    }
    const limit = this.#limits.queuedJobs
    if (limit != null && this.#fresh.size > limit) this.#compare('queued jobs', this.#freshCount(), limit)
  }

  /** Without the jobs of deleted endpoints, which are removed some time after these. */
  #freshCount(): number {
    const endpoints = new Set(this.#database.query<{ id: EndpointId }>(ENDPOINTS).map(({ id }) => id))
    return [...this.#fresh.values()].filter(endpoint => endpoints.has(endpoint)).length
  }

  /** Checks the workers and their GPUs. */
  inspect(): void {
    const workers = this.#database.query<{ placement: string | null; asleep_at_ms: number | null }>(WORKERS)
    this.#compare('workers', workers.length, this.#limits.workers)
    const gpus = workers.map(({ placement, asleep_at_ms: asleepAtMs }) =>
      placement === null || asleepAtMs !== null ? 0 : fractionOfGpus(JSON.parse(placement) as Placement),
    )
    // Hundredths of shares are no exact sums.
    const count = Math.round(gpus.reduce((sum, part) => sum + part, 0) * 100) / 100
    this.#compare('GPUs', count, this.#limits.gpus)
  }

  #compare(resource: string, count: number, limit: number | null | undefined): void {
    if (limit == null || count <= limit || this.#reported.has(resource)) return
    this.#reported.add(resource)
    this.#report(`the account has ${count} ${resource}, and its limit is ${limit}`)
  }
}
