import type { EndpointId, JobId, WorkerId } from '../../core/ids.ts'
import type { Worker } from '../../core/workers/worker.ts'
import { HOLD_MS } from '../../core/workers/worker-liveness.ts'
import type { Ports } from '../../ports/ports.ts'
import type { Store } from '../../ports/store/store.ts'
import type { LongPoll } from '../long-poll.ts'
import type { RunningWorker } from './running-worker.ts'
import type { RunningWorkers } from './running-workers.ts'

/** Jobs that ended while workers had them: asks the workers to stop them, and notes when they let go. */
export class JobStops {
  readonly #ports
  readonly #longPoll
  readonly #running
  readonly #closed

  /** @param closed aborts when held polls have to end */
  constructor(ports: Ports, longPoll: LongPoll, running: RunningWorkers, closed: AbortSignal) {
    this.#ports = ports
    this.#longPoll = longPoll
    this.#running = running
    this.#closed = closed
  }

  /**
   * The jobs that a worker should stop: at once when there are some, else held like a take. It gets those that it has
   * not let go of again, after growing pauses (core/workers/sent-stop.ts).
   */
  async next(worker: Worker, signal: AbortSignal): Promise<JobId[]> {
    const { store, clock } = this.#ports
    const running = this.#running.of(worker)
    running.noteRequest()
    using call = this.#longPoll.hold({
      topics: [`worker:${worker.id}`],
      forMs: HOLD_MS,
      signals: [signal, this.#closed],
    })
    for (;;) {
      const pending = await store.stops.pending(worker.id)
      const nowMs = clock.monotonic()
      const dueMs = pending.map(jobId => running.stopDueAtMs(jobId))
      const due = pending.filter((_, index) => dueMs[index]! <= nowMs)
      if (due.length > 0) return this.#noteStops(running, due)
      if (!(await mayWait(store, worker.id)) || call.isOver) return []
      const firstMs = dueMs.reduce((earliest, instant) => Math.min(earliest, instant), Number.POSITIVE_INFINITY)
      await call.next(dueMs.length === 0 ? undefined : Math.max(1, firstMs - clock.monotonic()))
    }
  }

  /** Notes that a worker is asked to stop these jobs. */
  #noteStops(running: RunningWorker, jobs: JobId[]): JobId[] {
    const toldBefore = running.sentStops
    for (const jobId of jobs) running.noteStop(jobId)
    // An open take would keep it from saying soon that it has let go.
    if (running.sentStops > toldBefore) this.#ports.notifier.publish(`worker:${running.id}`)
    return jobs
  }

  /**
   * Notes the jobs that a worker lists in a ping. It has let go of those that it should stop and no longer lists.
   */
  async afterPing(worker: Worker, listed: readonly string[]): Promise<void> {
    const running = this.#running.of(worker)
    for (const jobId of await this.#ports.store.stops.pending(worker.id)) {
      if (!listed.includes(jobId) && running.hasLetGoUnlisted(jobId)) await this.#letGo(worker, running, jobId)
    }
  }

  /** Notes that a worker holds no job at all. */
  async letGoAll({ id, endpointId }: Worker, running: RunningWorker): Promise<void> {
    const { store } = this.#ports
    if ((await store.stops.pending(id)).length === 0) return
    await store.stops.letGo(id, 'all')
    running.letGo('all')
    this.#mayQueueAgain(endpointId)
  }

  /** Wakes the takes of a worker that may get a job now, since it holds less. */
  holdsLess({ id, mayClaimMore }: RunningWorker): void {
    if (mayClaimMore) this.#ports.notifier.publish(`worker:${id}`)
  }

  async #letGo({ id, endpointId }: Worker, running: RunningWorker, jobId: JobId): Promise<void> {
    await this.#ports.store.stops.letGo(id, jobId)
    running.letGo(jobId)
    this.#mayQueueAgain(endpointId)
    this.holdsLess(running)
  }

  /** A job that was let go of may be claimed again, by any worker. */
  #mayQueueAgain(endpointId: EndpointId): void {
    this.#ports.notifier.publish(`queue:${endpointId}`)
    this.#ports.notifier.publish(`load:${endpointId}`)
  }
}

/** True when a call of a worker may be held: one that was asked to end gets an answer at once. */
export async function mayWait({ workers }: Pick<Store, 'workers'>, workerId: WorkerId): Promise<boolean> {
  const worker = await workers.find(workerId)
  return worker !== null && worker.state !== 'STOPPING' && worker.state !== 'EXITED'
}
