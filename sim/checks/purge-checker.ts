import type { EndpointId, JobId } from '../../src/core/ids.ts'
import type { Change, Commit } from '../ledger.ts'

/**
 * Checks the responses to purges: no job that was queued before is queued after it, and the
 * number of removed jobs is right.
 */
export class PurgeChecker {
  readonly #report: (problem: string) => void
  readonly #latestMs: () => number
  /** The change that put each queued job into its queue. */
  readonly #since = new Map<JobId, Change>()
  readonly #canceled: Change[] = []

  /**
   * @param report receives one sentence per problem
   * @param latestMs the latest time that the wall clock has shown
   */
  constructor(report: (problem: string) => void, latestMs: () => number) {
    this.#latestMs = latestMs
    this.#report = report
  }

  /** The store committed changes. */
  committed({ changes }: Commit): void {
    for (const change of changes) {
      if (change.now !== 'IN_QUEUE') this.#since.delete(change.job)
      else {
        const n = change.was === 'IN_QUEUE' ? (this.#since.get(change.job)?.n ?? change.n) : change.n
        this.#since.set(change.job, { ...change, n })
      }
      if (change.was === 'IN_QUEUE' && change.now === 'CANCELLED') this.#canceled.push(change)
    }
  }

  /**
   * The server responded to a purge.
   * @param lastChange number of the last change before its request
   * @param removed number of removed jobs in the response
   */
  answered(endpoint: EndpointId, lastChange: number, removed: number): void {
    for (const [job, { n, endpoint: owner, expires_at_ms: expiresAtMs }] of this.#since) {
      // A job past its ttl counts as removed, although its row may stay for a short time.
      const wasThere = owner === endpoint && n <= lastChange && expiresAtMs > this.#latestMs()
      if (wasThere) this.#report(`job ${job} is still queued after a purge of its endpoint ${endpoint}`)
    }
    const canceled = this.#canceled.filter(({ n, endpoint: owner }) => owner === endpoint && n > lastChange).length
    if (removed > canceled) this.#report(`a purge of ${endpoint} says ${removed} jobs, and ${canceled} were cancelled`)
  }
}
