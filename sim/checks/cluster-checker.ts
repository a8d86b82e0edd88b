import type { WorkerId } from '../../src/core/ids.ts'
import type { Commit } from '../ledger.ts'
import { transitionOf } from './job-checker.ts'

/** Reports jobs that lose an attempt because a cluster took their worker away. */
export class ClusterChecker {
  readonly #report: (problem: string) => void
  readonly #reclaimed = new Set<WorkerId>()

  /** @param report receives one sentence per problem */
  constructor(report: (problem: string) => void) {
    this.#report = report
  }

  /** The cluster takes a worker away. */
  reclaimed(worker: WorkerId): void {
    this.#reclaimed.add(worker)
  }

  /** The server ended: a worker that is gone when the next one looks may have ended in any way. */
  serverEnded(): void {
    this.#reclaimed.clear()
  }

  /** The store committed changes. */
  committed({ changes }: Commit): void {
    for (const change of changes) {
      const { job, was_worker: worker } = change
      if (transitionOf(change) === 'requeue' && worker !== null && this.#reclaimed.has(worker))
        this.#report(`job ${job} lost an attempt with worker ${worker}, which the cluster had taken away`)
    }
  }
}
