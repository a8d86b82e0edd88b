import type { JobUsage } from '../../core/billing/usage.ts'
import type { EndpointId, JobId, WorkerId } from '../../core/ids.ts'
import type { AttemptTimes } from '../../core/jobs/attempt-times.ts'
import type { Emit, EventName, Events } from '../../events.ts'
import type { Ports } from '../../ports/ports.ts'
import type { NewTimes } from '../../ports/store/attempt-times-store.ts'

/** Limit of attempts whose times one call of the store adds. */
const MAX_ADDED = 5_000
/** Limit of endpoints of one call. */
const MAX_ENDPOINTS = 100
/** Limit of times in memory while the store fails; past it new ones are dropped. */
const MAX_HELD = 200_000
/** Limits of remembered workers without a job so far, and of their first jobs; past them the oldest are forgotten. */
const MAX_FRESH = 10_000

type Readers = { readonly [Name in EventName]?: (fields: Events[Name]) => void }

/**
 * Records the times of each attempt that ends, from the stream of events, and adds them to the store in groups. Times
 * that were not stored are lost when the server is killed: no job and no bill depends on them.
 */
export class AttemptRecorder {
  readonly #ports
  /** Times that are not stored yet, by endpoint. */
  readonly #times = new Map<EndpointId, AttemptTimes[]>()
  #held = 0
  /** Instants at which workers without a job so far became ready. */
  readonly #fresh = new Map<WorkerId, number>()
  /** Running jobs that waited for the start of their worker. */
  readonly #cold = new Set<JobId>()

  constructor(ports: Ports) {
    this.#ports = ports
  }

  readonly #readers: Readers = {
    'worker.moved': ({ workerId, coldStartMs }) => {
      this.#fresh.delete(workerId)
      if (coldStartMs === undefined) return
      this.#fresh.set(workerId, this.#ports.clock.now())
      if (this.#fresh.size > MAX_FRESH) this.#fresh.delete(this.#fresh.keys().next().value!)
    },
    'job.moved': ({ endpointId, jobId, transition, workerId, waitedMs, usage }) => {
      if (transition === 'claim') this.#begins(jobId, workerId, waitedMs ?? 0)
      else this.#ends(endpointId, jobId, usage)
    },
    'job.expired': ({ endpointId, jobId, usage }) => this.#ends(endpointId, jobId, usage),
  }

  /** A reader of the event stream. */
  readonly emit: Emit = (name, fields) => this.#readers[name]?.(fields)

  /** Stores the times. */
  async flush(): Promise<void> {
    for (let newTimes = this.#taken(); newTimes.length > 0; newTimes = this.#taken()) {
      try {
        await this.#ports.store.attemptTimes.add(newTimes)
      } catch (error) {
        for (const { endpointId, times } of newTimes) this.#giveBack(endpointId, times)
        throw error
      }
    }
  }

  /** Times of an endpoint that are not stored yet. */
  pending(endpointId: EndpointId): readonly AttemptTimes[] {
    return this.#times.get(endpointId) ?? []
  }

  #begins(jobId: JobId, workerId: WorkerId | null, waitedMs: number): void {
    this.#cold.delete(jobId)
    const readyAtMs = workerId === null ? undefined : this.#fresh.get(workerId)
    if (workerId === null || readyAtMs === undefined) return
    this.#fresh.delete(workerId)
    if (this.#ports.clock.now() - waitedMs > readyAtMs) return
    this.#cold.add(jobId)
    if (this.#cold.size > MAX_FRESH) this.#cold.delete(this.#cold.keys().next().value!)
  }

  #ends(endpointId: EndpointId, jobId: JobId, usage: JobUsage | undefined): void {
    const cold = this.#cold.delete(jobId)
    // A job that never ran has no attempt, and a late result belongs to an attempt that ended before.
    if (usage === undefined || usage.attempts === 0 || this.#held >= MAX_HELD) return
    const finishedAtMs = this.#ports.clock.now()
    const startedAtMs = finishedAtMs - usage.executionMs - usage.lostMs
    const times = this.#times.get(endpointId) ?? []
    times.push({ queuedAtMs: startedAtMs - usage.queuedMs, startedAtMs, finishedAtMs, cold })
    this.#times.set(endpointId, times)
    this.#held += 1
  }

  /** Takes some times out. */
  #taken(): NewTimes[] {
    const newTimes: NewTimes[] = []
    let room = MAX_ADDED
    for (const [endpointId, heldTimes] of this.#times) {
      if (room === 0 || newTimes.length === MAX_ENDPOINTS) break
      const times = heldTimes.splice(0, room)
      if (heldTimes.length === 0) this.#times.delete(endpointId)
      newTimes.push({ endpointId, times })
      room -= times.length
      this.#held -= times.length
    }
    return newTimes
  }

  /** Puts times back in front of those that arrived in the meantime. */
  #giveBack(endpointId: EndpointId, times: readonly AttemptTimes[]): void {
    this.#times.set(endpointId, [...times, ...(this.#times.get(endpointId) ?? [])])
    this.#held += times.length
  }
}
