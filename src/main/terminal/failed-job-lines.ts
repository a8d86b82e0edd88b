/** Failed jobs in the log of a server that watches folders, each with its error. */
import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import type { EndpointId, JobId } from '../../core/ids.ts'
import { errorLine } from '../../core/jobs/error-groups.ts'
import type { Emit, EventName, Events } from '../../events.ts'
import { withoutControls } from './plain-text.ts'

/** Maximum number of failed jobs that are named in a second; further ones are counted. */
const MAX_NAMED = 5
const PERIOD_MS = 1_000

/**
 * Reads the stream of events for jobs of some endpoints that fail or time out. An event has no error, so it is read
 * from the store.
 */
export class FailedJobLines {
  readonly #parts
  readonly #names: ReadonlyMap<EndpointId, string>
  #named = 0
  #unnamed = 0

  constructor(
    endpoints: readonly Pick<Endpoint, 'id' | 'name'>[],
    parts: {
      /** The error of a job; null without one, and for an unknown job. */
      readonly readError: (endpoint: EndpointId, job: JobId) => Promise<string | null>
      readonly log: { error(fields: object, name: string): void }
      readonly after: (ms: number, callback: () => void) => void
    },
  ) {
    this.#parts = parts
    this.#names = new Map(endpoints.map(({ id, name }) => [id, name]))
  }

  readonly emit: Emit = (name, fields) => {
    const failed = failedJob(name, fields)
    const endpoint = failed === null ? undefined : this.#names.get(failed.endpointId)
    if (failed === null || endpoint === undefined) return
    if (this.#named === MAX_NAMED) {
      this.#unnamed += 1
      return
    }
    if (this.#named === 0) this.#parts.after(PERIOD_MS, this.#begin)
    this.#named += 1
    void this.#print(failed, endpoint)
  }

  /** A new second begins. */
  readonly #begin = (): void => {
    if (this.#unnamed > 0) this.#parts.log.error({ count: this.#unnamed }, 'jobs.failed')
    this.#named = 0
    this.#unnamed = 0
  }

  async #print({ endpointId, jobId, fallback }: FailedJob, endpoint: string): Promise<void> {
    const error = await this.#parts.readError(endpointId, jobId).catch(() => null)
    const problem = withoutControls(errorLine(error ?? fallback))
    this.#parts.log.error({ jobId, endpoint, problem }, 'job.failed')
  }
}

interface FailedJob {
  readonly endpointId: EndpointId
  readonly jobId: JobId
  /** The error of a job that has no error in the store. */
  readonly fallback: string
}

function failedJob<Name extends EventName>(name: Name, fields: Events[Name]): FailedJob | null {
  if (name === 'job.moved') {
    const { endpointId, jobId, to } = fields as Events['job.moved']
    if (to !== 'FAILED' && to !== 'TIMED_OUT') return null
    return {
      endpointId,
      jobId,
      fallback: to === 'FAILED' ? 'it has no error' : 'it took longer than its execution timeout',
    }
  }
  if (name !== 'job.expired') return null
  const { endpointId, jobId, undone } = fields as Events['job.expired']
  return undone === undefined ? null : { endpointId, jobId, fallback: 'it was not done within its ttl' }
}
