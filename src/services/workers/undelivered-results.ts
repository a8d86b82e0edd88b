import type { JobId, WorkerId } from '../../core/ids.ts'
import { readSdkOutput } from '../../core/jobs/sdk-output.ts'
import type { Worker } from '../../core/workers/worker.ts'
import type { Ports } from '../../ports/ports.ts'
import { InOrder } from '../in-order.ts'
import type { Jobs } from '../jobs/jobs.ts'
import type { RunningWorker } from './running-worker.ts'
import type { RunningWorkers } from './running-workers.ts'

/** A job whose result was lost on its way to this server. */
export interface UndeliveredResult {
  readonly jobId: JobId
  readonly reason: string
}

/** Maximum number of unsent results that are noted for one worker; the oldest is forgotten first. */
const MAX_UNSENT = 200

/**
 * Finds results that workers could not send, from their output. The output of a worker counts only for the jobs that
 * it holds and that have no result.
 */
export class UndeliveredResults {
  readonly #ports
  readonly #jobs
  readonly #running
  /** One read of a worker's output at a time, so that no line is read twice. */
  readonly #order = new InOrder<WorkerId>()

  constructor(ports: Ports, jobs: Jobs, running: RunningWorkers) {
    this.#ports = ports
    this.#jobs = jobs
    this.#running = running
  }

  /**
   * Reads the output of a worker since the last call, and fails jobs whose results no attempt could send.
   * @param forgottenJobs jobs that the worker no longer has; other jobs count only when the worker reports that it
   *   finished them
   * @returns jobs whose result was lost on its way, for which another attempt may help
   */
  read(
    worker: Pick<Worker, 'id' | 'state' | 'endpointId'>,
    forgottenJobs: readonly JobId[] | 'all',
  ): Promise<UndeliveredResult[]> {
    return this.#order.run(worker.id, true, () => this.#readNow(worker, forgottenJobs))
  }

  async #readNow(
    worker: Pick<Worker, 'id' | 'state' | 'endpointId'>,
    forgottenJobs: readonly JobId[] | 'all',
  ): Promise<UndeliveredResult[]> {
    const { id, endpointId } = worker
    const running = this.#running.of(worker)
    const { unsent } = running
    await this.#readLines(running)
    if (unsent.size === 0) return []
    const heldJobs = new Set(await this.#ports.store.jobs.heldBy(id))
    const undelivered: UndeliveredResult[] = []
    for (const [jobId, { why, reason, over }] of unsent) {
      const isGone = forgottenJobs === 'all' || forgottenJobs.includes(jobId)
      if (heldJobs.has(jobId) && !over && !isGone) continue
      if (heldJobs.has(jobId) && why === 'undelivered') undelivered.push({ jobId, reason })
      if (heldJobs.has(jobId) && why === 'unusable') {
        await this.#jobs.finish(endpointId, jobId, id, { status: 'FAILED', output: null, error: reason, warning: null })
      }
      unsent.delete(jobId)
    }
    return undelivered
  }

  /**
   * A line behind other text may be a text about the SDK: it only gives the reason, and other lines show the end of
   * the job.
   */
  async #readLines(running: RunningWorker): Promise<void> {
    const { unsent } = running
    const { lines, position } = await this.#ports.logs.since(running.id, running.outputPosition)
    running.outputPosition = position
    for (const { line, jobId, isMidLine = false } of lines) {
      const report = jobId === null ? null : readSdkOutput(line)
      if (report === null) continue
      const job = jobId as JobId
      const previous = unsent.get(job)
      const over = previous?.over === true || (!isMidLine && (report.kind === 'finished' || report.over))
      if (report.kind === 'unsent') unsent.set(job, { ...report, over })
      else if (previous !== undefined) unsent.set(job, { ...previous, over })
      const [oldest] = unsent.keys()
      if (unsent.size > MAX_UNSENT) unsent.delete(oldest!)
    }
  }
}
