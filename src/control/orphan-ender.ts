import type { Ports } from '../ports/ports.ts'
import type { Tasks } from '../services/endpoints/tasks.ts'

/** Time within which a task without a starter is found without a notification. */
const TICK_MS = 60_000

/** Ends tasks of functions once what started them is removed, also after a crash of the server between the two. */
export class OrphanEnder {
  readonly #tasks
  #nextMs = 0

  /** @param ports the notifier says when an endpoint or a task is removed */
  constructor({ notifier }: Ports, tasks: Tasks) {
    this.#tasks = tasks
    notifier.subscribe('endpoints', () => {
      this.#nextMs = 0
    })
  }

  /**
   * Ends some tasks; those of these are for the next step.
   * @returns time of the next step without a wake
   */
  async step(nowMs: number): Promise<number> {
    if (nowMs < this.#nextMs && nowMs >= this.#nextMs - TICK_MS) return this.#nextMs
    // A removal in the meantime is for the next step.
    this.#nextMs = nowMs + TICK_MS
    if (await this.#tasks.endOrphans()) this.#nextMs = nowMs
    return this.#nextMs
  }
}
