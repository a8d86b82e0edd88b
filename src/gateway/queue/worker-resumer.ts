import { toAppError } from '../../core/errors.ts'
import type { WorkerId } from '../../core/ids.ts'
import { workerGone } from '../entrance/refusal.ts'

/** Ended workers of one endpoint that should start again, because requests insist on them. */
export class WorkerResumer {
  readonly #queue
  readonly #asked = new Set<WorkerId>()
  readonly #resumed = new Set<WorkerId>()

  constructor(queue: {
    /** True if requests wait for it while it is not running. */
    readonly misses: (workerId: WorkerId) => boolean
    readonly canResume: (workerId: WorkerId) => Promise<boolean>
    /** Called when it should start again. */
    readonly resumes: () => void
    readonly refuse: (workerId: WorkerId, error: unknown) => void
  }) {
    this.#queue = queue
  }

  /** Workers that should start again. */
  get workers(): readonly WorkerId[] {
    return [...this.#resumed]
  }

  /** Checks a worker that has ended and that a request may insist on. */
  ask(workerId: WorkerId): void {
    if (!this.#queue.misses(workerId) || this.#resumed.has(workerId) || this.#asked.has(workerId)) return
    this.#asked.add(workerId)
    this.#queue.canResume(workerId).then(
      isResumable => this.#answered(workerId, isResumable ? null : workerGone()),
      error => this.#answered(workerId, toAppError(error)),
    )
  }

  /** Drops a worker that runs again, or that no request insists on any longer. */
  drop(workerId: WorkerId): void {
    this.#resumed.delete(workerId)
  }

  #answered(workerId: WorkerId, problem: unknown): void {
    this.#asked.delete(workerId)
    if (!this.#queue.misses(workerId)) return
    if (problem !== null) this.#queue.refuse(workerId, problem)
    else {
      this.#resumed.add(workerId)
      this.#queue.resumes()
    }
  }
}
