import type { JobId } from '../../core/ids.ts'
import type { Worker } from '../../core/workers/worker.ts'
import { mayRunHooks, reportsHeldJobs } from '../../core/workers/worker-sdk.ts'
import type { Ports } from '../../ports/ports.ts'
import type { Jobs } from '../jobs/jobs.ts'
import type { Fleet } from './fleet.ts'
import type { RunningWorkers } from './running-workers.ts'
import type { UndeliveredResults } from './undelivered-results.ts'

/**
 * Gives back jobs that running workers have lost, as their takes, pings and output show (rules L3 and L4 of the worker
 * protocol). A worker that has lost a job is drained and replaced, so a job never goes back to the worker that lost
 * it.
 */
export class LostJobs {
  readonly #ports
  readonly #parts

  constructor(
    ports: Ports,
    parts: { jobs: Jobs; fleet: Fleet; running: RunningWorkers; undelivered: UndeliveredResults },
  ) {
    this.#ports = ports
    this.#parts = parts
  }

  /**
   * Gives back the jobs of a worker that asks for jobs and says that it works on none. SDK 2.0 drops its take when a
   * hook fails, also while the take is answered, and asks for a job again: once the jobs of such a worker were never
   * delivered.
   */
  async afterIdleTake(worker: Worker, sdk: string | null): Promise<void> {
    if (!reportsHeldJobs(sdk)) return
    const heldJobs = await this.#ports.store.jobs.heldBy(worker.id)
    const running = this.#parts.running.of(worker)
    const forgotten = heldJobs.filter(jobId => !running.isOnItsWay(jobId))
    if (forgotten.length > 0 && mayRunHooks(sdk) && worker.jobsFinished === 0 && !running.hasDroppedTake) {
      running.hasDroppedTake = true
      for (const jobId of forgotten) await this.#undeliver(worker, jobId)
      return
    }
    await this.#giveBack(worker, forgotten, 'it asked for other work without a result')
  }

  /** Notes which jobs a ping lists, and gives back those that the worker has forgotten. */
  async afterPing(worker: Worker, listed: readonly string[], sdk: string | null): Promise<void> {
    const { store } = this.#ports
    const heldJobs = await store.jobs.heldBy(worker.id)
    const stopping = await store.stops.pending(worker.id)
    const missing = heldJobs.some(jobId => !listed.includes(jobId))
    const isAlone = missing && (await this.#isAlone(worker))
    const forgotten = this.#parts.running.of(worker).pinged({ sdk, held: heldJobs, stopping, listed, alone: isAlone })
    await this.#giveBack(worker, forgotten, 'it asked for other work and left the job out of its pings')
  }

  /** Gives back jobs whose results the worker could not send, as its new output says. */
  async readOutput(worker: Worker): Promise<void> {
    for (const { jobId, reason } of await this.#parts.undelivered.read(worker, [])) {
      await this.#lose(worker, jobId, reason)
    }
  }

  async #giveBack(worker: Worker, forgotten: readonly JobId[], cause: string): Promise<void> {
    if (forgotten.length === 0) return
    // Its output may say why, which is the better reason.
    const undelivered = await this.#parts.undelivered.read(worker, forgotten)
    const reasons = new Map(undelivered.map(({ jobId, reason }) => [jobId, reason]))
    const heldJobs = new Set(await this.#ports.store.jobs.heldBy(worker.id))
    for (const jobId of forgotten.filter(id => heldJobs.has(id))) {
      const reason = reasons.get(jobId)
      if (reason === undefined && this.#parts.running.of(worker).isDoubtful(jobId)) {
        await this.#undeliver(worker, jobId)
      } else {
        await this.#lose(worker, jobId, reason ?? cause)
      }
    }
  }

  /** Gives back a job that never reached the worker. The attempt does not count, and the worker is kept. */
  async #undeliver(worker: Worker, jobId: JobId): Promise<void> {
    if (await this.#parts.jobs.giveBack(worker, jobId)) this.#parts.running.of(worker).settled([jobId], false)
  }

  async #lose(worker: Worker, jobId: JobId, cause: string): Promise<void> {
    // First, so that the worker cannot claim the job again.
    await this.#parts.fleet.drain(worker.id, 'lost_lease')
    await this.#parts.jobs.requeueLost(worker.id, cause, { only: jobId })
  }

  async #isAlone(worker: Worker): Promise<boolean> {
    const snapshot = await this.#ports.store.endpoints.snapshot(worker.endpointId)
    return (snapshot?.workers.length ?? 0) <= 1
  }
}
