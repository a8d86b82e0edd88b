import type { EndpointId, JobId } from '../../src/core/ids.ts'
import type { Change, Commit } from '../ledger.ts'

/** Holds purges to their answers: nothing that waited before waits after it, and as many jobs have gone as it says. */
export class PurgeChecker {
  readonly #report: (problem: string) => void
  readonly #latestMs: () => number
  /** When each waiting job has come into its line, as the number of a change. */
  readonly #since = new Map<JobId, Change>()
  readonly #cancelled: Change[] = []

  /**
   * @param report is given one sentence per problem
   * @param latestMs the latest that the clock on the wall has shown
   */
  constructor(report: (problem: string) => void, latestMs: () => number) {
    this.#latestMs = latestMs
    this.#report = report
  }

  /** The store has committed something. */
  committed({ changes }: Commit): void {
    for (const change of changes) {
      if (change.now !== 'IN_QUEUE') this.#since.delete(change.job)
      else {
        const n = change.was === 'IN_QUEUE' ? (this.#since.get(change.job)?.n ?? change.n) : change.n
        this.#since.set(change.job, { ...change, n })
      }
      if (change.was === 'IN_QUEUE' && change.now === 'CANCELLED') this.#cancelled.push(change)
    }
  }

  /** A purge was answered. @param before the last change before it was asked for; @param removed how many it says */
  answered(endpoint: EndpointId, before: number, removed: number): void {
    for (const [job, { n, endpoint: of, expires_at_ms: expiresAtMs }] of this.#since) {
      // What is past its ttl is no job any more, though its row may be there for a moment.
      const wasThere = of === endpoint && n <= before && expiresAtMs > this.#latestMs()
      if (wasThere) this.#report(`job ${job} waits after a purge of its endpoint ${endpoint}`)
    }
    const cancelled = this.#cancelled.filter(({ n, endpoint: of }) => of === endpoint && n > before).length
    if (removed > cancelled)
      this.#report(`a purge of ${endpoint} says ${removed} jobs, and ${cancelled} were cancelled`)
  }
}
