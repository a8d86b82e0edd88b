import type { Ports } from '../ports/ports.ts'
import type { Batches } from '../services/jobs/batches.ts'
import type { Jobs } from '../services/jobs/jobs.ts'

const TICK_MS = 1_000

/**
 * Times out and expires jobs and batches. It uses the store alone, so neither a driver that hangs nor a slow read of
 * outputs delays a limit of a job.
 */
export class Sweeper {
  readonly #ports
  readonly #jobs
  readonly #batches

  constructor(ports: Ports, jobs: Jobs, batches: Batches) {
    this.#ports = ports
    this.#jobs = jobs
    this.#batches = batches
  }

  /**
   * Does the due work.
   * @returns time of the next step
   */
  async step(nowMs: number): Promise<number> {
    const moreJobs = await this.#jobs.sweep()
    const hasMore = (await this.#batches.sweep()) || moreJobs
    const deadline = await this.#ports.store.jobOutcomes.nextDeadline()
    return hasMore ? nowMs : Math.min(nowMs + TICK_MS, Math.max(nowMs + 1, deadline ?? Number.POSITIVE_INFINITY))
  }
}
