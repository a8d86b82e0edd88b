/** A program for the workers of a rig, with jobs for them. */
import type { EndpointId, JobId } from '../../src/core/ids.ts'
import type { Rig, RigWorker } from './rig.ts'

/**
 * Each worker of the rig takes jobs and finishes each after half a second, unless its release is broken: then it
 * ends. With FAILS_EVERY every so many jobs that its workers took fail, and with HANGS they never finish.
 */
export class RigProgram {
  readonly #rig: Rig
  #jobs: JobId[] = []
  #known = 0
  #taken = 0

  constructor(rig: Rig) {
    this.#rig = rig
  }

  /** Jobs that come each 200 ms for some time. */
  async load(endpoint: EndpointId, forMs: number): Promise<void> {
    for (let ms = 0; ms < forMs; ms += 200) {
      this.#jobs.push(await this.#rig.submit(endpoint))
      this.#begin()
      await this.#rig.clock.advance(200)
      this.#begin()
    }
  }

  /** Leaves out earlier jobs, whose results are not kept for ever. */
  forget(): void {
    this.#jobs = []
  }

  /** The states of all jobs, once the load is over. */
  async outcome(endpoint: EndpointId): Promise<{ statuses: string[]; retried: number }> {
    for (let ms = 0; ms < 80_000; ms += 200) {
      this.#begin()
      await this.#rig.clock.advance(200)
    }
    const jobs = await Promise.all(this.#jobs.map(job => this.#rig.job(endpoint, job)))
    return {
      statuses: [...new Set(jobs.map(({ status }) => status))],
      retried: jobs.filter(job => job.attempt > 1).length,
    }
  }

  #begin(): void {
    for (; this.#known < this.#rig.fleet.started.length; this.#known += 1) void this.#run(this.#rig.worker(this.#known))
  }

  async #run(worker: RigWorker): Promise<void> {
    if (worker.spec.env.RELEASE === 'broken') {
      this.#rig.fleet.exit(worker.id, { code: 3 })
      return
    }
    while (this.#rig.fleet.running().includes(worker.id)) {
      const answer = await worker.take().catch(() => null)
      if (answer?.status === 401 || answer === null) return
      if (answer.status !== 200) {
        await new Promise<void>(resolve => this.#rig.clock.after(100, resolve))
        continue
      }
      await new Promise<void>(resolve => this.#rig.clock.after(500, resolve))
      if (worker.spec.env.HANGS !== undefined) continue
      this.#taken += 1
      const fails = this.#taken % Number(worker.spec.env.FAILS_EVERY ?? Number.POSITIVE_INFINITY) === 0
      await worker.done(answer.json.id, fails ? { error: 'no' } : { output: 'done' })
    }
  }
}
