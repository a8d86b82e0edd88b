import type { JobId } from '../../core/ids.ts'
import type { StartReport } from '../../core/workers/failed-start.ts'
import type { Worker } from '../../core/workers/worker.ts'
import { problemText } from '../../core/workers/worker-problem.ts'
import type { Ports } from '../../ports/ports.ts'
import type { Jobs } from '../jobs/jobs.ts'
import type { Fleet } from './fleet.ts'

/** Number of failed starts that give one job back; with the next one it fails, with what the worker says. */
const MAX_GIVEN_BACK = 10
/** Maximum number of jobs whose failed starts are counted; the one that was given back first is forgotten first. */
const MAX_JOBS = 10_000

/**
 * Receives reports of workers on RunPod's SDK 2.0 that their start failed, which come in place of the results of jobs.
 */
export class FailedStarts {
  readonly #ports
  readonly #jobs
  readonly #fleet
  /** Number of times that each job was given back. */
  readonly #givenBack = new Map<JobId, number>()

  constructor(ports: Ports, jobs: Jobs, fleet: Fleet) {
    this.#ports = ports
    this.#jobs = jobs
    this.#fleet = fleet
  }

  /**
   * Ends the worker as a failed start, and gives the job back without an attempt. A worker that was only asked to end
   * before its hooks were over is drained.
   * @returns false for a report that counts as a result: of a worker that has finished jobs, about another worker, or
   * for a job that was given back too often
   * @throws AppError `unavailable`; the worker sends the report again, or its end gives the job back
   */
  async take(worker: Worker, jobId: JobId, { failure, workerId }: StartReport): Promise<boolean> {
    if (workerId !== null && workerId !== worker.id) return false
    const stored = await this.#ports.store.workers.find(worker.id)
    if (stored === null || stored.jobsFinished > 0) return false
    // First, so that the worker cannot claim the job again.
    if (failure === null) await this.#fleet.drain(worker.id, 'refresh')
    else await this.#fleet.endFaulty(worker, 'failed_start', failure)
    if (failure !== null && !this.#count(jobId)) return false
    const reason = failure === null ? 'it was asked to end before its prestart hooks were over' : problemText(failure)
    await this.#giveBack(worker, jobId, reason)
    return true
  }

  async #giveBack(worker: Worker, jobId: JobId, reason: string): Promise<void> {
    const { store, clock } = this.#ports
    if (!(await this.#jobs.giveBack(worker, jobId, { reason }))) return
    await store.jobs.addDiagnostic(
      jobId,
      clock.now(),
      worker.id,
      `given back by a worker that did not start: ${reason}`,
    )
  }

  /** False when the job was given back often enough. */
  #count(jobId: JobId): boolean {
    const times = (this.#givenBack.get(jobId) ?? 0) + 1
    this.#givenBack.delete(jobId)
    if (times > MAX_GIVEN_BACK) return false
    this.#givenBack.set(jobId, times)
    const [oldest] = this.#givenBack.keys()
    if (this.#givenBack.size > MAX_JOBS) this.#givenBack.delete(oldest!)
    return true
  }
}
