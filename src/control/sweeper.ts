import type { Ports } from '../ports/ports.ts'
import type { Batches } from '../services/jobs/batches.ts'
import type { Jobs } from '../services/jobs/jobs.ts'

const TICK_MS = 1_000

/**
 * Times out and expires jobs and batches. It asks the store alone, so neither a driver that hangs nor outputs that are read for long keep a
 * limit of a job from being applied.
 */
export class Sweeper {
  readonly #ports: Pick<Ports, 'store'>
  readonly #jobs: Pick<Jobs, 'sweep'>
  readonly #batches: Pick<Batches, 'sweep'>

  constructor(
    ports: Pick<Ports, 'store'>,
    { jobs, batches }: { readonly jobs: Pick<Jobs, 'sweep'>; readonly batches: Pick<Batches, 'sweep'> },
  ) {
    this.#ports = ports
    this.#jobs = jobs
    this.#batches = batches
  }

  /**
   * Does the work that is due.
   * @returns when to step again
   */
  async step(nowMs: number): Promise<number> {
    const moreJobs = await this.#jobs.sweep()
    const more = (await this.#batches.sweep()) || moreJobs
    const deadline = await this.#ports.store.jobOutcomes.nextDeadline()
    return more ? nowMs : Math.min(nowMs + TICK_MS, Math.max(nowMs + 1, deadline ?? Number.POSITIVE_INFINITY))
  }
}
