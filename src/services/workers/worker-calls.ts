import type { Body } from '../../core/bodies/body-readings.ts'
import type { EndpointId, JobId } from '../../core/ids.ts'
import { readChunk } from '../../core/jobs/chunk.ts'
import { isFinal, type JobOutcome } from '../../core/jobs/job.ts'
import {
  CHUNK_BYTES,
  type DroppedBody,
  droppedChunk,
  droppedResult,
  type ResultReading,
  readResult,
} from '../../core/jobs/result.ts'
import { readStartReport } from '../../core/workers/failed-start.ts'
import type { Worker } from '../../core/workers/worker.ts'
import { checkFailed } from '../../core/workers/worker-problem.ts'
import type { Ports } from '../../ports/ports.ts'
import { InvalidKeyError } from '../accounts/failed-keys.ts'
import { InOrder } from '../in-order.ts'
import type { Jobs } from '../jobs/jobs.ts'
import type { LargeResults, ReceivedResult } from '../jobs/large-results.ts'
import type { PassingBody } from '../jobs/large-texts.ts'
import type { FailedStarts } from './failed-starts.ts'
import type { Fleet } from './fleet.ts'
import type { JobStops } from './job-stops.ts'
import type { LostJobs } from './lost-jobs.ts'
import type { RunningWorkers } from './running-workers.ts'

/** Content of a worker's ping. */
export interface Ping {
  /** The jobs that it says it works on. */
  readonly listed: readonly string[]
  /** Name and version of its SDK, where it says them. */
  readonly sdk: string | null
  /** The reason for which it says that it cannot work; null when it can. */
  readonly unhealthy: { readonly check: string; readonly reason: string } | null
}

/** A body that was read up to a limit. `bytes` is its size as far as it was read. */
export interface LimitedBody {
  /** Null when it was over the limit. */
  readonly content: Body | null
  readonly bytes: number
  readonly ended: boolean
  /** The body itself where it is passed on as it arrives; the other members say nothing about it then. */
  readonly passing?: PassingBody
}

/**
 * Authenticates calls of workers, and receives their results, chunks and pings (docs/internals/worker-protocol.md).
 */
export class WorkerCalls {
  readonly #ports
  readonly #parts
  /** Keeps the order of chunks and results of one job where some are read in a thread. */
  readonly #order = new InOrder<JobId>()

  constructor(
    ports: Ports,
    parts: {
      readonly jobs: Jobs
      readonly fleet: Fleet
      readonly running: RunningWorkers
      readonly stops: JobStops
      readonly lostJobs: LostJobs
      readonly failedStarts: FailedStarts
      readonly largeResults: LargeResults
    },
  ) {
    this.#ports = ports
    this.#parts = parts
  }

  /**
   * The worker that a token belongs to. A token is valid for the routes of its own endpoint only.
   * @throws InvalidKeyError
   */
  async authenticate(token: string | null, endpointId: EndpointId): Promise<Worker> {
    const worker = token === null ? null : await this.#ports.store.workers.findByToken(this.#ports.vault.hash(token))
    if (worker === null || worker.endpointId !== endpointId) {
      throw new InvalidKeyError('worker_token', 'this is not the token of a worker of this endpoint')
    }
    return worker
  }

  /** Takes a post to job-done: a progress update or the final result. Never refuses it. */
  async done(worker: Worker, jobId: JobId, body: LimitedBody): Promise<void> {
    this.#parts.running.of(worker).worked()
    if (body.passing !== undefined) return this.#doneLarge(worker, jobId, body.passing)
    return this.#order.run(jobId, isLarge(body), () => this.#done(worker, jobId, body))
  }

  async #doneLarge(worker: Worker, jobId: JobId, body: PassingBody): Promise<void> {
    const { largeResults } = this.#parts
    // Otherwise a worker could fill the disk for jobs of others, or for none.
    const counts = await this.#hasUnfinished(worker, jobId)
    const received = await largeResults.receive(worker, jobId, body, counts)
    try {
      await this.#order.run(jobId, true, () => this.#useReceived(worker, jobId, received, counts))
    } finally {
      // The store changes nothing where the job has the text.
      await received.settle()
    }
  }

  /** True for a job that is not final and that no other worker has claimed since. */
  async #hasUnfinished({ id, endpointId }: Worker, jobId: JobId): Promise<boolean> {
    const job = await this.#ports.store.jobs.find(endpointId, jobId, this.#ports.clock.now())
    return job !== null && job.workerId === id && !isFinal(job.status)
  }

  async #useReceived(worker: Worker, jobId: JobId, { reading }: ReceivedResult, counts: boolean): Promise<void> {
    const { store, clock } = this.#ports
    if (reading.kind === 'note') await store.jobs.addDiagnostic(jobId, clock.now(), worker.id, reading.text)
    else await this.#useFinal(worker, jobId, reading, counts)
  }

  async #done(worker: Worker, jobId: JobId, { content, bytes, ended }: LimitedBody): Promise<void> {
    const reading =
      content === null
        ? { kind: 'final' as const, refresh: false, outcome: this.#parts.largeResults.tooLarge(bytes, !ended) }
        : typeof content === 'string'
          ? readResult(content)
          : await this.#ports.bodies.read(worker.owner, 'result', content)
    if (reading.kind === 'progress') {
      const isStored = await this.#ports.store.jobs.setProgress(jobId, worker.id, reading.output)
      if (!isStored) return
      this.#ports.notifier.publish(`job:${jobId}`)
      await this.#runs(worker, jobId)
      return
    }
    await this.#useFinal(worker, jobId, reading)
  }

  /** @param counts false where the job was not this worker's when the result began to arrive */
  async #useFinal(
    worker: Worker,
    jobId: JobId,
    reading: ResultReading & { readonly kind: 'final' },
    counts = true,
  ): Promise<void> {
    this.#ports.logs.mark(worker.id, 'end')
    const running = this.#parts.running.of(worker)
    if (await this.#didNotStart(worker, jobId, reading.outcome)) {
      running.holdsNot(jobId)
      return
    }
    if (reading.refresh) {
      await this.#parts.fleet.drain(worker.id, 'refresh')
      await this.#parts.jobs.takeBack(worker.id, 'its worker is replaced at its own request')
    }
    await this.#finish(worker, jobId, reading.outcome, counts)
  }

  async #finish(worker: Worker, jobId: JobId, outcome: JobOutcome, counts = true): Promise<void> {
    const { jobs, stops } = this.#parts
    const running = this.#parts.running.of(worker)
    const how = { beginsNext: running.runsMoreAfter(jobId), counts }
    await jobs.finish(worker.endpointId, jobId, worker.id, outcome, how)
    running.finished(jobId, outcome.status === 'COMPLETED')
    stops.holdsLess(running)
  }

  /** Notes that a worker runs a job, as a chunk or its progress shows. A job behind others begins so at the latest. */
  async #runs(worker: Worker, jobId: JobId): Promise<void> {
    const running = this.#parts.running.of(worker)
    if (running.mayBegin(jobId)) await this.#parts.jobs.begin(worker.id, jobId)
    running.runs(jobId)
  }

  /** True when a result is none of the handler, since the worker did not start; see {@link FailedStarts.take}. */
  async #didNotStart(worker: Worker, jobId: JobId, { status, error }: JobOutcome): Promise<boolean> {
    const report = status === 'FAILED' && error !== null ? readStartReport(error) : null
    return report !== null && (await this.#parts.failedStarts.take(worker, jobId, report))
  }

  /**
   * Notes a result or chunk that the relay did not pass on, because servers have crashed on it. A dropped result fails
   * its job, so that it is not lost silently.
   */
  async dropped(worker: Worker, jobId: JobId, part: 'result' | 'chunk', body: DroppedBody): Promise<void> {
    const { store, clock, emit } = this.#ports
    this.#parts.running.of(worker).worked()
    emit('job.body_dropped', { endpointId: worker.endpointId, jobId, workerId: worker.id, what: part, ...body })
    if (part === 'result') await this.#finish(worker, jobId, droppedResult(body))
    else await store.jobs.addDiagnostic(jobId, clock.now(), worker.id, droppedChunk(body))
  }

  /**
   * Stores a chunk of a worker's stream. Never refuses it; a chunk that is not stored leaves a diagnostic.
   * @param copies number of equal chunks in a row that are stored if an earlier call, which was cut off, stored this
   * one; 0 without such a call
   */
  async chunk(worker: Worker, jobId: JobId, body: LimitedBody, copies = 0): Promise<void> {
    this.#parts.running.of(worker).worked()
    return this.#order.run(jobId, isLarge(body), () => this.#chunk(worker, jobId, body, copies))
  }

  async #chunk(worker: Worker, jobId: JobId, { content, bytes }: LimitedBody, copies: number): Promise<void> {
    const { store, notifier, clock, bodies, tracing } = this.#ports
    const reading =
      content === null
        ? null
        : typeof content === 'string'
          ? readChunk(content)
          : await bodies.read(worker.owner, 'chunk', content)
    const items = reading !== null && 'items' in reading ? reading.items : null
    // With the begin before the trace, which has the chunks of jobs that have begun.
    const isStored = items !== null && (await this.#append(worker, jobId, items, copies))
    if (isStored) {
      tracing?.streamed(jobId, items.length)
      notifier.publish(`job:${jobId}`)
      return
    }
    const because = reading !== null && 'problem' in reading ? `: ${reading.problem}` : ''
    const reason = `a chunk of ${bytes} bytes was not kept${because}`
    await store.jobs.addDiagnostic(jobId, clock.now(), worker.id, reason)
  }

  /**
   * Notes the health of a worker and the jobs that it lists. It has let go of jobs that it should stop and does not
   * list; jobs that it has forgotten are given back.
   */
  async ping(worker: Worker, { listed, sdk, unhealthy }: Ping): Promise<void> {
    const { fleet, stops, lostJobs } = this.#parts
    if (worker.state === 'EXITED') return
    if (unhealthy !== null) {
      await fleet.noteProblem(worker, checkFailed(unhealthy.check, unhealthy.reason))
      return
    }
    await stops.afterPing(worker, listed)
    await lostJobs.afterPing(worker, listed, worker.sdk ?? sdk)
  }

  /**
   * Stores the items of a chunk, and the begin of a job behind others. An error of either is the answer to the chunk,
   * which comes again.
   */
  async #append(worker: Worker, jobId: JobId, items: readonly string[], copies: number): Promise<boolean> {
    const { store } = this.#ports
    const running = this.#parts.running.of(worker)
    const again = running.isChunkAgain(jobId, items)
    try {
      const seen = Math.max(copies, again ? 1 : 0)
      const isStored = await store.streams.append(jobId, worker.id, items, CHUNK_BYTES.all, seen)
      if (isStored) await this.#runs(worker, jobId)
      return isStored
    } catch (error) {
      this.#parts.running.chunkFailed(running, jobId, items)
      throw error
    }
  }
}

function isLarge({ content }: LimitedBody): boolean {
  return content !== null && typeof content !== 'string'
}
