import type { JobId, WorkerId } from '../../core/ids.ts'
import {
  afterPing,
  afterTake,
  isForgotten,
  type JobActivity,
  showsBlocking,
  type WorkerActivity,
} from '../../core/workers/worker-liveness.ts'
import { omissionOf } from '../../core/workers/worker-sdk.ts'
import type { Clock } from '../../ports/clock.ts'

/** What a ping says and on whose behalf. */
export interface SeenPing {
  readonly sdk: string | null
  /** The jobs that the worker holds, as the store has it. */
  readonly held: readonly JobId[]
  /** Those that it has yet to let go of. */
  readonly stopping: readonly JobId[]
  /** What it lists, of whomever. */
  readonly listed: readonly string[]
  /** Whether its endpoint has no other worker. */
  readonly alone: boolean
}

interface Seen {
  sighting: WorkerActivity
  readonly jobs: Map<JobId, JobActivity>
  /** It does one thing at a time, whatever batches it asks for. */
  serial: boolean
}

/**
 * What workers were seen to do since this server runs. It is only in memory: after a restart nothing may be concluded from a
 * silence in which the server itself did not listen, so all watching begins anew.
 */
export class WorkerActivities {
  readonly #clock: Clock
  readonly #workers = new Map<WorkerId, Seen>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** What was seen of a worker; null when it was not heard of yet. */
  of(workerId: WorkerId): WorkerActivity | null {
    return this.#workers.get(workerId)?.sighting ?? null
  }

  /** A request for jobs came. The returned function says that it is answered. */
  took(workerId: WorkerId): () => void {
    const seen = this.#seen(workerId)
    const nowMs = this.#clock.monotonic()
    for (const [jobId, job] of seen.jobs) seen.jobs.set(jobId, afterTake(job, nowMs))
    this.#note(workerId, { openTakes: seen.sighting.openTakes + 1 })
    return () => {
      const now = this.#workers.get(workerId)
      if (now !== undefined) this.#note(workerId, { openTakes: Math.max(0, now.sighting.openTakes - 1) })
    }
  }

  /** A result or a chunk came. */
  worked(workerId: WorkerId): void {
    this.#note(workerId, {})
  }

  /** A request to know which jobs to stop came. */
  heard(workerId: WorkerId): void {
    const { sighting } = this.#seen(workerId)
    this.#seen(workerId).sighting = { ...sighting, heardAtMs: this.#clock.monotonic() }
  }

  /** Jobs are on their way to the worker. */
  handed(workerId: WorkerId, jobs: readonly JobId[]): void {
    for (const jobId of jobs) {
      this.#seen(workerId).jobs.set(jobId, { deliveredAtMs: null, askedSince: false, omissions: 0 })
    }
  }

  /** The answer with these jobs was written, or was not. */
  settled(workerId: WorkerId, jobs: readonly JobId[], delivered: boolean): void {
    const known = this.#seen(workerId).jobs
    const deliveredAtMs = this.#clock.monotonic()
    for (const jobId of jobs) {
      if (delivered) known.set(jobId, { deliveredAtMs, askedSince: false, omissions: 0 })
      else known.delete(jobId)
    }
  }

  /** Answers that were written since then, in monotonic milliseconds, may not have reached their workers. */
  doubtSince(sinceMs: number): void {
    for (const { jobs } of this.#workers.values()) {
      for (const [jobId, job] of jobs) {
        if (job.deliveredAtMs === null || job.deliveredAtMs >= sinceMs) jobs.set(jobId, { ...job, doubtful: true })
      }
    }
  }

  /** Whether the answer with this job was written and may not have reached the worker. */
  isDoubtful(workerId: WorkerId, jobId: JobId): boolean {
    return this.#workers.get(workerId)?.jobs.get(jobId)?.doubtful === true
  }

  /** Whether the answer with this job is being written. */
  isOnItsWay(workerId: WorkerId, jobId: JobId): boolean {
    return this.#workers.get(workerId)?.jobs.get(jobId)?.deliveredAtMs === null
  }

  /**
   * Notes a ping.
   * @returns the jobs that the worker has forgotten
   */
  pinged(workerId: WorkerId, { sdk, held, stopping, listed, alone }: SeenPing): JobId[] {
    const seen = this.#seen(workerId)
    const { sinceMs, pingsSinceWork } = seen.sighting
    const nowMs = this.#clock.monotonic()
    const heldNow = new Set(held)
    for (const jobId of seen.jobs.keys()) if (!heldNow.has(jobId)) seen.jobs.delete(jobId)
    for (const jobId of held) {
      // One that was handed out before this server looked was delivered before, too.
      const job = seen.jobs.get(jobId) ?? { deliveredAtMs: sinceMs, askedSince: false, omissions: 0 }
      const ping = { lists: listed.includes(jobId), omission: omissionOf(sdk), listed: listed.length, alone }
      seen.jobs.set(jobId, afterPing(job, ping))
    }
    const own = [...held, ...stopping].filter(jobId => listed.includes(jobId)).length
    const heard = { pingedAtMs: nowMs, heardAtMs: nowMs, pingsSinceWork: pingsSinceWork + 1, listed: own }
    seen.sighting = { ...seen.sighting, ...heard }
    seen.serial ||= [...seen.jobs.values()].some(showsBlocking)
    return [...seen.jobs].flatMap(([jobId, job]) => (isForgotten(job) ? [jobId] : []))
  }

  /** Whether the worker does one thing at a time, so that a job which it is given while it is busy waits inside it. */
  isSerial(workerId: WorkerId): boolean {
    return this.#workers.get(workerId)?.serial === true
  }

  /** Forgets all workers but these. */
  keep(workers: ReadonlySet<WorkerId>): void {
    for (const workerId of this.#workers.keys()) if (!workers.has(workerId)) this.#workers.delete(workerId)
  }

  /** Forgets everything: the server did not look for a while. */
  clear(): void {
    this.#workers.clear()
  }

  #seen(workerId: WorkerId): Seen {
    let seen = this.#workers.get(workerId)
    if (seen === undefined) {
      const nowMs = this.#clock.monotonic()
      const never = { workedAtMs: null, openTakes: 0, pingedAtMs: null, pingsSinceWork: 0, listed: 0 }
      seen = { sighting: { sinceMs: nowMs, heardAtMs: nowMs, ...never }, jobs: new Map(), serial: false }
      this.#workers.set(workerId, seen)
    }
    return seen
  }

  #note(workerId: WorkerId, change: Partial<WorkerActivity>): void {
    const seen = this.#seen(workerId)
    const nowMs = this.#clock.monotonic()
    seen.sighting = { ...seen.sighting, ...change, workedAtMs: nowMs, heardAtMs: nowMs, pingsSinceWork: 0 }
  }
}
