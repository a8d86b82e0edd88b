import type { JobId, WorkerId } from '../../src/core/ids.ts'
import { isSuspect } from '../../src/core/jobs/job.ts'
import type { Change, Commit } from '../ledger.ts'
import { transitionFromChange } from './job-checker.ts'

/**
 * Reports a suspect (a job that was lost twice) that does not run alone on its worker: another
 * job could be lost with it.
 */
export class SuspectChecker {
  readonly #report: (problem: string) => void
  /** The running jobs of each worker, and whether each must run alone. */
  readonly #held = new Map<WorkerId, Map<JobId, { readonly alone: boolean }>>()

  /** @param report receives one sentence per problem */
  constructor(report: (problem: string) => void) {
    this.#report = report
  }

  /** The store committed changes. */
  committed({ changes }: Commit): void {
    for (const change of changes) {
      const { job, was, now, worker, was_worker: previous } = change
      if (transitionFromChange(change) === 'claim' && worker !== null) this.#claimed(change, worker)
      else if (was === 'IN_PROGRESS' && now !== 'IN_PROGRESS' && previous !== null) this.#released(previous, job)
    }
  }

  #claimed({ job, was_lost: lostAttempts }: Change, worker: WorkerId): void {
    const jobs = this.#held.get(worker) ?? new Map<JobId, { readonly alone: boolean }>()
    const alone = isSuspect({ lostAttempts })
    for (const [other, { alone: wasAlone }] of jobs) {
      if (alone)
        this.#report(`job ${job}, which was lost twice, was dispatched to worker ${worker} beside job ${other}`)
      if (wasAlone)
        this.#report(`job ${job} was dispatched to worker ${worker} beside job ${other}, which was lost twice`)
    }
    jobs.set(job, { alone })
    this.#held.set(worker, jobs)
  }

  #released(worker: WorkerId, job: JobId): void {
    const jobs = this.#held.get(worker)
    if (jobs?.delete(job) === true && jobs.size === 0) this.#held.delete(worker)
  }
}
