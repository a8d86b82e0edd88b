import { toAppError } from '../../core/errors.ts'
import type { EndpointId, JobId } from '../../core/ids.ts'
import type { JobRecord } from '../../core/jobs/job-record.ts'
import type { Explanation } from '../../core/observing/explanation.ts'
import { type JobStory, jobStory } from '../../core/observing/job-story.ts'
import type { Ports } from '../../ports/ports.ts'
import type { Explainer } from './explainer.ts'
import { readUrgentNames } from './urgent-names.ts'

/** Finds a job, or the record of it. */
export interface JobFinder {
  /** @throws AppError `not_found` when neither the job nor a record exists */
  find(endpointId: EndpointId, jobId: JobId): Promise<JobRecord>
}

/** Makes the story of a job from the rows of the store. */
export class JobStories {
  readonly #ports
  readonly #jobRecords
  readonly #explaining

  constructor(ports: Ports, jobRecords: JobFinder, explaining: Explainer) {
    this.#ports = ports
    this.#jobRecords = jobRecords
    this.#explaining = explaining
  }

  /** @throws AppError `not_found` for a job of another endpoint, or without a row and a record */
  async of(endpointId: EndpointId, jobId: JobId): Promise<JobStory> {
    const job = await this.#jobRecords.find(endpointId, jobId)
    const [worker, deliveries, wait] = await Promise.all([
      job.workerId === null ? null : this.#ports.store.workers.find(job.workerId),
      this.#ports.store.webhooks.list(endpointId, jobId),
      job.status === 'IN_QUEUE' ? this.#wait(endpointId, jobId) : null,
    ])
    const names = worker === null ? null : await readUrgentNames(this.#ports.store, worker.owner, [worker])
    return jobStory({ job, worker, deliveries, wait, urgentNames: names ?? new Map() })
  }

  /** Null for a job that changed since it was read. */
  async #wait(endpointId: EndpointId, jobId: JobId): Promise<Explanation | null> {
    try {
      const { job, explanation } = await this.#explaining.job(endpointId, jobId)
      return job.status === 'IN_QUEUE' ? explanation : null
    } catch (thrown) {
      if (toAppError(thrown).code === 'not_found') return null
      throw thrown
    }
  }
}
