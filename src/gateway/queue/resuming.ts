import { toAppError } from '../../core/errors.ts'
import type { WorkerId } from '../../core/ids.ts'
import { workerGone } from '../entrance/refusal.ts'

/** What a line says about a worker that requests wait for by name. */
export interface ResumingLine {
  /** Whether somebody waits for it while it is not there. */
  readonly misses: (workerId: WorkerId) => boolean
  readonly canResume: (workerId: WorkerId) => Promise<boolean>
  /** It will be started again. */
  readonly resumes: () => void
  readonly refuse: (workerId: WorkerId, error: unknown) => void
}

/** The workers of one endpoint that have ended and that are to be started again, since requests wait for them. */
export class Resuming {
  readonly #line: ResumingLine
  readonly #asked = new Set<WorkerId>()
  readonly #resumed = new Set<WorkerId>()

  constructor(line: ResumingLine) {
    this.#line = line
  }

  /** Those that can be. */
  get workers(): readonly WorkerId[] {
    return [...this.#resumed]
  }

  /** Somebody may wait for a worker that has ended. */
  ask(workerId: WorkerId): void {
    if (!this.#line.misses(workerId) || this.#resumed.has(workerId) || this.#asked.has(workerId)) return
    this.#asked.add(workerId)
    this.#line.canResume(workerId).then(
      can => this.#answered(workerId, can ? null : workerGone()),
      error => this.#answered(workerId, toAppError(error)),
    )
  }

  /** It is there, or nobody waits for it any more. */
  drop(workerId: WorkerId): void {
    this.#resumed.delete(workerId)
  }

  #answered(workerId: WorkerId, problem: unknown): void {
    this.#asked.delete(workerId)
    if (!this.#line.misses(workerId)) return
    if (problem !== null) this.#line.refuse(workerId, problem)
    else {
      this.#resumed.add(workerId)
      this.#line.resumes()
    }
  }
}
