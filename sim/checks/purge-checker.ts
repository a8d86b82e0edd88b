import type { EndpointId, JobId } from '../../src/core/ids.ts'
import type { Change, Commit } from '../ledger.ts'

/** Holds purges to their answers: nothing that waited before waits after it, and as many jobs have gone as it says. */
export class PurgeChecker {
  readonly #report: (problem: string) => void
  /** When each waiting job has come into its line, as the number of a change. */
  readonly #since = new Map<JobId, Change>()
  readonly #cancelled: Change[] = []

  constructor(report: (problem: string) => void) {
    this.#report = report
  }

  /** The store has committed something. */
  committed({ changes }: Commit): void {
    for (const change of changes) {
      if (change.now !== 'IN_QUEUE') this.#since.delete(change.job)
      else if (change.was !== 'IN_QUEUE') this.#since.set(change.job, change)
      if (change.was === 'IN_QUEUE' && change.now === 'CANCELLED') this.#cancelled.push(change)
    }
  }

  /** A purge was answered. @param before the last change before it was asked for; @param removed how many it says */
  answered(endpoint: EndpointId, before: number, removed: number): void {
    for (const [job, { n, endpoint: of }] of this.#since) {
      if (of === endpoint && n <= before) this.#report(`job ${job} waits after a purge of its endpoint ${endpoint}`)
    }
    const cancelled = this.#cancelled.filter(({ n, endpoint: of }) => of === endpoint && n > before).length
    if (removed > cancelled)
      this.#report(`a purge of ${endpoint} says ${removed} jobs, and ${cancelled} were cancelled`)
  }
}
