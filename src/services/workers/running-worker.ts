import type { JobId, WorkerId } from '../../core/ids.ts'
import type { SdkOutputReport } from '../../core/jobs/sdk-output.ts'
import { type AskedConcurrency, afterAsking, concurrencyAsked } from '../../core/workers/asked-concurrency.ts'
import type { FailedStart } from '../../core/workers/failed-start.ts'
import { firstStop, firstStopDueMs, nextStop, type SentStop, showsRelease } from '../../core/workers/sent-stop.ts'
import {
  afterPing,
  afterTake,
  isForgotten,
  type JobActivity,
  showsBlocking,
  type WorkerActivity,
} from '../../core/workers/worker-liveness.ts'
import { asksForAllAtOnce, omissionMeaning, sendsResultsDuringTakes } from '../../core/workers/worker-sdk.ts'
import type { Clock } from '../../ports/clock.ts'

/** Content of a ping, and the facts of its worker in the store. */
export interface SeenPing {
  readonly sdk: string | null
  /** The jobs that the worker holds. */
  readonly held: readonly JobId[]
  /** The jobs that it has yet to let go of. */
  readonly stopping: readonly JobId[]
  /** The jobs that the ping lists, also those of other workers. */
  readonly listed: readonly string[]
  /** True when its endpoint has no other worker. */
  readonly alone: boolean
}

/** A take that is not answered yet. */
export interface PendingTake {
  /** True when it cannot get a job before its worker holds less; then it claims again. */
  waitsForLess: boolean
  /**
   * True when its worker was frozen after it was sent, so that the worker may not read its response; see
   * {@link RunningWorker.thaw}.
   */
  isStale: boolean
}

/** The state of the hooks that a worker's program runs before its handler, as far as known; see {@link Prestarts}. */
export interface Prestart {
  /** `unknown` while its output says nothing of hooks: most workers have none. */
  state: 'unknown' | 'running' | 'over' | 'failed'
  /** The one that runs, or ran last; empty while none is known. */
  hook: string
  failure: FailedStart | null
  /** Position from which its output is read for this; null before the first reading. */
  position: number | null
  /** Facts of its last take; null before the first. */
  take: { readonly capacity: number; readonly sdk: string | null } | null
  /** True while its output is read as it grows. */
  isFollowed: boolean
}

/** Output of a worker about a result that it could not send. */
export type UnsentReport = Extract<SdkOutputReport, { kind: 'unsent' }>

/**
 * Time within which a chunk that was answered with 5xx comes again, in ms: the Python SDK tries for six seconds, and
 * the one for JavaScript pauses for five, to which a slow network adds.
 */
const CHUNK_RETRY_MS = 15_000

/**
 * Facts about one worker in memory since this server runs. The store has everything that must outlive the server; the
 * health of workers that serve requests is in services/balancing. `RunningWorkers` makes this object and forgets it.
 *
 * Its states, with their beginnings:
 *
 * - launching: `Fleet.start`, before the worker's row is written. Its process is being started, and the reaper does
 *   not take it for ended.
 * - running: its process was started; or the first call or inspection of a worker that an earlier run left. All
 *   facts below change.
 * - ended: `Fleet.recordExit`, when its exit is observed. It claims nothing, and its jobs are given back.
 * - forgotten: its end is recorded and published; or two inspections in a row do not find it among the living.
 *
 * A worker whose start failed is launching and ended until its end is recorded.
 *
 * - Activity (takes, pings, jobs): changed by each call of the worker. It begins again with {@link forgetActivity}
 *   after a time in which this server did not listen, since the silence of that time proves nothing.
 * - Asked concurrency: changed by each take. Proof of several jobs at the same time stays.
 * - Completed: changed by each result.
 * - Told stops: a job is noted each time the response to a job-stop has it, and forgotten when the worker lets go of
 *   it or gets it again.
 * - Output: the position up to which it is read, and the results that it reports as not sent, until they are
 *   delivered or fail.
 * - Prestart: noted by each take of a STARTING worker, and as its output grows while hooks of its program run.
 * - Freezing: the last request to the driver, which may differ from the state in the store for a moment; activity
 *   begins again at the freeze and at the thaw.
 * - Failed pause: noted when it cannot be suspended, forgotten when it works on. The store has how long it is left
 *   alone then.
 * - Failed chunks: noted when a chunk could not be stored, forgotten with the next chunk of the job.
 */
export class RunningWorker {
  readonly id: WorkerId
  readonly #clock
  /**
   * Its process is being started. `percent` of its image is downloaded, null when that is not known or not being done.
   */
  #launch: { percent: number | null } | null = null
  /** Its exit is observed, and its end not yet recorded and published. */
  hasEnded = false
  /** Since when it is known to be unhealthy, in monotonic milliseconds. */
  unhealthySinceMs: number | null = null
  /** Since when it is seen to be STOPPING (Unix time in ms). */
  stoppingSinceMs: number | null = null
  /** Time of the last write of a report of its platform, in monotonic milliseconds. */
  reportedAtMs = Number.NEGATIVE_INFINITY
  /**
   * True when the driver froze it last, false when it thawed it; null while that is unknown, since an earlier run of
   * the server did it.
   */
  frozen: boolean | null = false
  /**
   * True when it was asked to sleep, or an earlier run of the server may have asked it, and it has not woken since.
   */
  isAsleep = false
  /** True from a pause that failed until it is over. */
  hasPauseFailed = false
  /** True while {@link WorkerFreezer} is at work on it. */
  isSettling = false
  readonly #takes = new Set<PendingTake>()
  #activity: Omit<WorkerActivity, 'openTakes'> | null = null
  readonly #jobs = new Map<JobId, JobActivity>()
  /** False until a claim or a ping: it may have jobs that an earlier run of the server gave it. */
  #areAllJobsNoted = false
  /** The job of its last chunk or progress. */
  #runs: JobId | null = null
  #isSerial = false
  #asked: AskedConcurrency | null = null
  #isConcurrent = false
  #completedAtMs = 0
  readonly #sentStops = new Map<JobId, SentStop>()
  /** Position from which its output is read on; null before the first reading. */
  outputPosition: number | null = null
  /** Results that it could not send, as its output says. */
  readonly unsent = new Map<JobId, UnsentReport>()
  /** True when it has dropped a take that was answered; see {@link LostJobs.afterIdleTake}. */
  hasDroppedTake = false
  readonly prestart: Prestart = {
    state: 'unknown',
    hook: '',
    failure: null,
    position: null,
    take: null,
    isFollowed: false,
  }
  readonly #failedChunks = new Map<JobId, { readonly items: readonly string[]; readonly atMs: number }>()

  constructor(id: WorkerId, clock: Clock) {
    this.id = id
    this.#clock = clock
  }

  /** Notes that its process is being started. */
  launching(): void {
    this.#launch = { percent: null }
  }

  /** Notes that its process was started, or that the start failed. */
  launched(): void {
    this.#launch = null
  }

  /** True while its process is being started: it has a row already, and no process can be observed yet. */
  get isLaunching(): boolean {
    return this.#launch !== null
  }

  /** True when hooks of its program run or have failed, so that it may have no job. */
  get isLoading(): boolean {
    return this.prestart.state === 'running' || this.prestart.state === 'failed'
  }

  /** Downloaded part of its image in percent; null while it is unknown or no download runs. */
  get pullPercent(): number | null {
    return this.#launch?.percent ?? null
  }

  /** Notes the downloaded part of its image. */
  pulled(percent: number | null): void {
    if (this.#launch !== null) this.#launch.percent = percent
  }

  /** Its observed activity; null before its first call. */
  get activity(): WorkerActivity | null {
    return this.#activity === null ? null : { ...this.#activity, openTakes: this.#takes.size }
  }

  /** Forgets its activity: this server did not listen for a while. */
  forgetActivity(): void {
    this.#activity = null
    this.#jobs.clear()
    this.#areAllJobsNoted = false
    this.#isSerial = false
  }

  /** Notes a take, which is open until {@link endTake}. */
  beginTake(): PendingTake {
    const nowMs = this.#clock.monotonic()
    for (const [jobId, job] of this.#jobs) this.#jobs.set(jobId, afterTake(job, nowMs))
    const take = { waitsForLess: false, isStale: this.frozen === true }
    this.#takes.add(take)
    this.worked()
    return take
  }

  /**
   * Notes the number of jobs that a take asks for, of a worker that says `idle` when it holds none.
   * @param noted the concurrency that the store has
   * @returns the concurrency that it has lately shown
   */
  asks({ limit, idle, sdk }: { limit: number; idle: boolean | null; sdk: string | null }, noted: number): number {
    const wasConcurrent = this.#asked === null && noted > 1 && asksForAllAtOnce(sdk)
    this.#isConcurrent ||= limit > 1 || wasConcurrent || sendsResultsDuringTakes(sdk)
    const requested = this.#isSerial ? 1 : limit + (idle === true ? 0 : this.#jobs.size)
    this.#asked = afterAsking(this.#asked, requested, this.#clock.monotonic())
    return concurrencyAsked(this.#asked, noted)
  }

  /** True once it ran several jobs at the same time, or for an SDK that sends results while takes are open. */
  get isConcurrent(): boolean {
    return this.#isConcurrent
  }

  /** Notes that it is being frozen: nothing may be concluded from its silence. */
  freeze(): void {
    this.frozen = true
    this.forgetActivity()
  }

  /**
   * Notes that it is about to be thawed. Its open takes, and those that come before it runs, were sent before it was
   * frozen: a client that was frozen past its time limit throws the response away although the connection took it, so
   * they never get a job.
   */
  thaw(): void {
    this.forgetActivity()
    for (const take of this.#takes) take.isStale = true
  }

  /** Notes that a take is answered. */
  endTake(take: PendingTake): void {
    this.#takes.delete(take)
    if (this.#activity !== null) this.worked()
  }

  /** True when it may get a job now that it could not get before, since it holds less. */
  get mayClaimMore(): boolean {
    return this.#isSerial || [...this.#takes].some(take => take.waitsForLess)
  }

  /** Notes a result or a chunk. */
  worked(): void {
    const nowMs = this.#clock.monotonic()
    this.#activity = { ...this.#active(), workedAtMs: nowMs, requestedAtMs: nowMs, pingsSinceWork: 0 }
  }

  /** Notes a call that asks which jobs to stop. */
  noteRequest(): void {
    this.#activity = { ...this.#active(), requestedAtMs: this.#clock.monotonic() }
  }

  /** Notes that it has claimed jobs, which are on their way to it. */
  claimed(jobs: readonly JobId[]): void {
    this.#active()
    this.#areAllJobsNoted = true
    for (const jobId of jobs) {
      this.#jobs.set(jobId, { deliveredAtMs: null, askedSince: false, omissions: 0 })
      this.#sentStops.delete(jobId)
    }
  }

  /** Notes that the response with these jobs was written, or was not. */
  settled(jobs: readonly JobId[], delivered: boolean): void {
    this.#active()
    const deliveredAtMs = this.#clock.monotonic()
    for (const jobId of jobs) {
      if (!delivered) this.#jobs.delete(jobId)
      // Its result may have come before the end of the response was noted.
      else if (this.#jobs.has(jobId)) this.#jobs.set(jobId, { deliveredAtMs, askedSince: false, omissions: 0 })
    }
  }

  /** Notes a result. @param completed true for a job without an error */
  finished(jobId: JobId, completed: boolean): void {
    this.#completedAtMs = completed ? this.#clock.monotonic() : 0
    this.holdsNot(jobId)
  }

  /** Time at which it completed a job last, in monotonic milliseconds; 0 for never, or where its last one failed. */
  get completedAtMs(): number {
    return this.#completedAtMs
  }

  /** True if it has, or may have, more jobs than this one, of which it runs one at a time. */
  runsMoreAfter(jobId: JobId): boolean {
    const more = this.#jobs.size - (this.#jobs.has(jobId) ? 1 : 0)
    return !this.#isConcurrent && (more > 0 || !this.#areAllJobsNoted)
  }

  /** True for a job that it may have got behind others, and of which no sign that it runs was noted. */
  mayBegin(jobId: JobId): boolean {
    return this.#runs !== jobId && !this.#isConcurrent && (this.#jobs.size > 1 || !this.#areAllJobsNoted)
  }

  /** Notes a sign that it runs a job, once the begin of the job is stored. */
  runs(jobId: JobId): void {
    this.#runs = jobId
  }

  /** Notes that a job is no longer its own: its result is stored. */
  holdsNot(jobId: JobId): void {
    this.#jobs.delete(jobId)
  }

  /** Notes that responses written since then, in monotonic milliseconds, may not have reached it. */
  doubtSince(sinceMs: number): void {
    for (const [jobId, job] of this.#jobs) {
      if (job.deliveredAtMs === null || job.deliveredAtMs >= sinceMs) this.#jobs.set(jobId, { ...job, doubtful: true })
    }
  }

  /** True when the response with this job was written and may not have reached it. */
  isDoubtful(jobId: JobId): boolean {
    return this.#jobs.get(jobId)?.doubtful === true
  }

  /** True while the response with this job is being written. */
  isOnItsWay(jobId: JobId): boolean {
    return this.#jobs.get(jobId)?.deliveredAtMs === null
  }

  /** True when it does one thing at a time, so that a job which it gets while it is busy waits inside it. */
  get isSerial(): boolean {
    return this.#isSerial
  }

  /**
   * Notes a ping.
   * @returns the jobs that the worker has forgotten
   */
  pinged({ sdk, held, stopping, listed, alone }: SeenPing): JobId[] {
    const active = this.#active()
    const nowMs = this.#clock.monotonic()
    const heldJobs = new Set(held)
    this.#areAllJobsNoted = true
    for (const [jobId, { deliveredAtMs }] of this.#jobs) {
      // The delivery decides when the worker is asked to stop a job, and what its pings show then.
      const isNew = stopping.includes(jobId) && firstStop(deliveredAtMs, nowMs).isEarly
      if (!heldJobs.has(jobId) && !isNew) this.#jobs.delete(jobId)
    }
    for (const jobId of held) {
      // A job that it got before its activity began was delivered before, too.
      const job = this.#jobs.get(jobId) ?? { deliveredAtMs: active.sinceMs, askedSince: false, omissions: 0 }
      const ping = { lists: listed.includes(jobId), omission: omissionMeaning(sdk), listed: listed.length, alone }
      this.#jobs.set(jobId, afterPing(job, ping))
    }
    const ownCount = [...held, ...stopping].filter(jobId => listed.includes(jobId)).length
    const pingsSinceWork = active.pingsSinceWork + 1
    this.#activity = { ...active, pingedAtMs: nowMs, requestedAtMs: nowMs, pingsSinceWork, listed: ownCount }
    this.#isSerial ||= [...this.#jobs.values()].some(showsBlocking)
    return [...this.#jobs].flatMap(([jobId, job]) => (isForgotten(job) ? [jobId] : []))
  }

  /** Earliest time of its next stop of this job, in monotonic milliseconds. */
  stopDueAtMs(jobId: JobId): number {
    const sentStop = this.#sentStops.get(jobId)
    return sentStop?.againAtMs ?? firstStopDueMs(this.#jobs.get(jobId)?.deliveredAtMs, this.#clock.monotonic())
  }

  /**
   * True when a ping that does not list this job shows that it has let go: it got a stop, and could have begun the job
   * by now.
   */
  hasLetGoUnlisted(jobId: JobId): boolean {
    const sentStop = this.#sentStops.get(jobId)
    return sentStop !== undefined && showsRelease(sentStop, this.#clock.monotonic())
  }

  /** Number of jobs that it was asked to stop and has not let go of. */
  get sentStops(): number {
    return this.#sentStops.size
  }

  /** Notes that it is asked to stop a job, for the first time or again. */
  noteStop(jobId: JobId): void {
    const nowMs = this.#clock.monotonic()
    const sentStop = this.#sentStops.get(jobId)
    this.#sentStops.set(
      jobId,
      sentStop === undefined ? firstStop(this.#jobs.get(jobId)?.deliveredAtMs, nowMs) : nextStop(sentStop, nowMs),
    )
  }

  /** Notes that it has let go of a job, or of all that it was asked to stop. */
  letGo(jobId: JobId | 'all'): void {
    if (jobId === 'all') this.#sentStops.clear()
    else this.#sentStops.delete(jobId)
  }

  /** Notes that a chunk could not be stored. */
  chunkFailed(jobId: JobId, items: readonly string[]): void {
    this.#failedChunks.set(jobId, { items, atMs: this.#clock.now() })
  }

  /**
   * True for a chunk that could not be stored a moment ago: chunks have no numbers on the wire, so a second post of
   * the same items is the same chunk only when the first was answered with an error. Forgets the failed one.
   */
  isChunkAgain(jobId: JobId, items: readonly string[]): boolean {
    const failed = this.#failedChunks.get(jobId)
    this.#failedChunks.delete(jobId)
    return failed !== undefined && areSame(failed.items, items) && this.#clock.now() - failed.atMs <= CHUNK_RETRY_MS
  }

  /** Number of chunks that could not be stored and have not come again. */
  get failedChunks(): number {
    return this.#failedChunks.size
  }

  /** Forgets chunks that could not be stored. */
  forgetFailedChunks(): void {
    this.#failedChunks.clear()
  }

  #active(): Omit<WorkerActivity, 'openTakes'> {
    if (this.#activity === null) {
      const nowMs = this.#clock.monotonic()
      const never = { workedAtMs: null, pingedAtMs: null, pingsSinceWork: 0, listed: 0 }
      this.#activity = { sinceMs: nowMs, requestedAtMs: nowMs, ...never }
    }
    return this.#activity
  }
}

function areSame(texts: readonly string[], others: readonly string[]): boolean {
  return texts.length === others.length && texts.every((text, index) => text === others[index])
}
