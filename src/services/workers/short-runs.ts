import { savedEnv } from '../../core/endpoints/saved-env.ts'
import type { EndpointId, JobId } from '../../core/ids.ts'
import {
  addRun,
  allowsTakeAhead,
  countJobsAhead,
  type Runs,
  TAKE_AHEAD,
  type TakeFacts,
} from '../../core/jobs/take-ahead.ts'
import type { Emit, EventName, Events } from '../../events.ts'
import type { Ports } from '../../ports/ports.ts'

/** Limits of endpoints with a record, and of running jobs that began behind others. */
const MAX_RECORDS = 10_000

type Readers = { readonly [Name in EventName]?: (fields: Events[Name]) => void }

/** Runs of an endpoint. */
interface RunRecord {
  readonly runs: Runs
  /** End of a pause of take-ahead, in monotonic milliseconds; 0 without one. */
  readonly pausedUntilMs: number
}

const EMPTY: RunRecord = { runs: [], pausedUntilMs: 0 }

/**
 * Records how long jobs of each endpoint run, in memory, and decides from that how many a take of one job gets
 * (docs/adr/0098-take-ahead.md).
 */
export class ShortRuns {
  readonly #ports
  readonly #records = new Map<EndpointId, RunRecord>()
  readonly #behindOthers = new Set<JobId>()

  constructor(ports: Ports) {
    this.#ports = ports
  }

  readonly #readers: Readers = {
    'job.begun': ({ jobId }) => {
      this.#behindOthers.add(jobId)
      if (this.#behindOthers.size > MAX_RECORDS) this.#behindOthers.delete(this.#behindOthers.values().next().value!)
    },
    'job.moved': ({ endpointId, jobId, transition, unbegun, usage }) => {
      const isBehindOthers = this.#behindOthers.delete(jobId)
      if (transition === 'finish' && usage !== undefined && usage.attempts > 0) {
        const record = this.#records.get(endpointId) ?? EMPTY
        const runs = addRun(record.runs, { ms: usage.executionMs, isBehindOthers })
        this.#keep(endpointId, { ...record, runs })
      } else if (transition === 'release' && unbegun === true) this.#pause(endpointId)
    },
    'endpoint.deleted': ({ endpointId }) => void this.#records.delete(endpointId),
  }

  /** A reader of the event stream. */
  readonly emit: Emit = (name, fields) => this.#readers[name]?.(fields)

  /** Maximum number of jobs for a take of one job. */
  async countJobsAhead(endpointId: EndpointId, facts: Omit<TakeFacts, 'runs'>): Promise<number> {
    const { runs, pausedUntilMs } = this.#records.get(endpointId) ?? EMPTY
    if (pausedUntilMs > this.#ports.clock.monotonic()) return 1
    const count = countJobsAhead({ ...facts, runs })
    return count > 1 && (await this.#isAllowed(endpointId)) ? count : 1
  }

  async #isAllowed(endpointId: EndpointId): Promise<boolean> {
    const { endpoints, templates } = this.#ports.store
    const endpoint = await endpoints.find(endpointId)
    if (endpoint === null) return false
    const template = await templates.find(endpoint.owner, endpoint.templateId)
    return allowsTakeAhead(savedEnv(endpoint, { env: template?.env ?? {} }))
  }

  #pause(endpointId: EndpointId): void {
    const pausedUntilMs = this.#ports.clock.monotonic() + TAKE_AHEAD.pauseMs
    this.#keep(endpointId, { ...(this.#records.get(endpointId) ?? EMPTY), pausedUntilMs })
  }

  #keep(endpointId: EndpointId, record: RunRecord): void {
    this.#records.delete(endpointId)
    this.#records.set(endpointId, record)
    if (this.#records.size > MAX_RECORDS) this.#records.delete(this.#records.keys().next().value!)
  }
}
