import type { BatchId } from '../../src/core/ids.ts'
import { isFinal } from '../../src/core/jobs/job.ts'
import type { Commit } from '../ledger.ts'

/** A batch in the store. */
export interface BatchRow {
  readonly id: BatchId
  readonly status: 'DRAFT' | 'FINALIZED' | 'CANCELLED'
  readonly total: number
  readonly completed: number
  readonly failed: number
}

/** Minimum retention of a batch and its results after the end of its last job. */
const RETENTION_MS = 24 * 3_600_000

interface BatchCounts {
  jobs: number
  completed: number
  failed: number
  /** Wall-clock time at which the last of its jobs ended. */
  endedAtMs: number
}

/** Compares the counts of batches with the ends of their jobs, and reports claims of jobs whose batch is cancelled. */
export class BatchChecker {
  readonly #report: (problem: string) => void
  readonly #wall: { now(): number; latest(): number }
  readonly #batches = new Map<BatchId, BatchCounts>()
  readonly #canceled = new Set<BatchId>()

  /**
   * @param report receives one sentence per problem
   * @param wall the wall clock
   */
  constructor(report: (problem: string) => void, wall: { now(): number; latest(): number }) {
    this.#wall = wall
    this.#report = report
  }

  /** The store committed changes. */
  committed({ changes }: Commit): void {
    for (const { kind, job, batch, queue, was, now } of changes) {
      if (batch === null) continue
      const counts = this.#batches.get(batch) ?? { jobs: 0, completed: 0, failed: 0, endedAtMs: 0 }
      this.#batches.set(batch, counts)
      if (kind === 'insert') counts.jobs += 1
      if (now === 'IN_PROGRESS' && was === 'IN_QUEUE' && queue !== '' && this.#canceled.has(queue))
        this.#report(`job ${job} was claimed after its batch ${batch} was cancelled`)
      // A job that is removed before its end counts as failed. One that is removed after its end keeps its count.
      const wasFinal = was !== null && isFinal(was)
      const isFinalNow = now === null || isFinal(now)
      if (wasFinal === isFinalNow) continue
      const step = isFinalNow ? 1 : -1
      counts.endedAtMs = this.#wall.now()
      if (now === 'COMPLETED' || was === 'COMPLETED') counts.completed += step
      else counts.failed += step
    }
  }

  /** True if its retention is over, so that the batch and its jobs may be removed. */
  isOver(id: BatchId): boolean {
    const counts = this.#batches.get(id)
    if (counts === undefined || counts.completed + counts.failed < counts.jobs) return false
    return counts.endedAtMs + RETENTION_MS <= this.#wall.latest()
  }

  /** The cancel of a batch was confirmed to a client. */
  canceled(id: BatchId): void {
    this.#canceled.add(id)
  }

  /** Compares a batch in the store with the changes of its jobs. */
  compare({ id, status, total, completed, failed }: BatchRow): void {
    const counts = this.#batches.get(id) ?? { jobs: 0, completed: 0, failed: 0 }
    if (counts.jobs > total) this.#report(`batch ${id} has ${counts.jobs} jobs of ${total}`)
    // The requests of a cancelled draft count as failed and never become jobs.
    const neverJobs = status === 'CANCELLED' && counts.jobs === 0 && completed === 0 && failed === total
    if (neverJobs || (completed === counts.completed && failed === counts.failed)) return
    const expectedCounts = `${counts.completed} completed and ${counts.failed} failed`
    this.#report(`batch ${id} counts ${completed} completed and ${failed} failed, and ${expectedCounts} by the changes`)
  }
}
