import type { JobId, WorkerId } from '../../core/ids.ts'
import { readSdkOutput, type SdkOutputReport } from '../../core/jobs/sdk-output.ts'
import type { Worker } from '../../core/workers/worker.ts'
import type { Ports } from '../../ports/ports.ts'
import type { Jobs } from './jobs.ts'

/** A result that was lost on its way to us. */
export interface UndeliveredResult {
  readonly jobId: JobId
  readonly reason: string
}

type Unsent = Extract<SdkOutputReport, { kind: 'unsent' }>

/** Jobs of one worker about which its output has said something, at most. */
const MAX_NOTED = 200

/**
 * Results that workers could not send, as their own output says. A worker's output counts only for the jobs that it holds
 * itself and that have no result.
 */
export class UndeliveredResults {
  readonly #ports: Pick<Ports, 'store' | 'logs'>
  readonly #jobs: Jobs
  readonly #read = new Map<WorkerId, number>()
  readonly #noted = new Map<WorkerId, Map<JobId, Unsent>>()
  readonly #turns = new Map<WorkerId, Promise<unknown>>()

  constructor(ports: Pick<Ports, 'store' | 'logs'>, jobs: Jobs) {
    this.#ports = ports
    this.#jobs = jobs
  }

  /**
   * Reads what a worker has printed since the last call, and fails jobs whose results can never be sent.
   * @param gone jobs that the worker is known to have no more; of others only those count that it says it has finished
   * @returns those whose result was lost on its way, and which another attempt may help
   */
  async read(worker: Pick<Worker, 'id' | 'endpointId'>, gone: readonly JobId[] | 'all'): Promise<UndeliveredResult[]> {
    // One at a time, so that no line is read twice.
    const turn = (this.#turns.get(worker.id) ?? Promise.resolve()).then(() => this.#readNow(worker, gone))
    const over = turn.catch(() => {})
    this.#turns.set(worker.id, over)
    try {
      return await turn
    } finally {
      if (this.#turns.get(worker.id) === over) this.#turns.delete(worker.id)
    }
  }

  /** Forgets all workers but these. */
  keep(workers: ReadonlySet<WorkerId>): void {
    for (const map of [this.#read, this.#noted]) for (const id of map.keys()) if (!workers.has(id)) map.delete(id)
  }

  async #readNow(
    { id, endpointId }: Pick<Worker, 'id' | 'endpointId'>,
    gone: readonly JobId[] | 'all',
  ): Promise<UndeliveredResult[]> {
    const noted = this.#noted.get(id) ?? new Map<JobId, Unsent>()
    await this.#readLines(id, noted)
    if (noted.size === 0) {
      this.#noted.delete(id)
      return []
    }
    this.#noted.set(id, noted)
    const held = new Set(await this.#ports.store.jobs.heldBy(id))
    const undelivered: UndeliveredResult[] = []
    for (const [jobId, { why, reason, over }] of noted) {
      const isGone = gone === 'all' || gone.includes(jobId)
      if (held.has(jobId) && !over && !isGone) continue
      if (held.has(jobId) && why === 'undelivered') undelivered.push({ jobId, reason })
      if (held.has(jobId) && why === 'unusable') {
        await this.#jobs.finish(endpointId, jobId, id, { status: 'FAILED', output: null, error: reason, warning: null })
      }
      noted.delete(jobId)
    }
    return undelivered
  }

  async #readLines(id: WorkerId, noted: Map<JobId, Unsent>): Promise<void> {
    const { lines, position } = await this.#ports.logs.since(id, this.#read.get(id) ?? null)
    this.#read.set(id, position)
    for (const { line, jobId } of lines) {
      const report = jobId === null ? null : readSdkOutput(line)
      if (report === null) continue
      const job = jobId as JobId
      const before = noted.get(job)
      if (report.kind === 'unsent') noted.set(job, { ...report, over: report.over || before?.over === true })
      else if (before !== undefined) noted.set(job, { ...before, over: true })
      const [oldest] = noted.keys()
      if (noted.size > MAX_NOTED) noted.delete(oldest!)
    }
  }
}
