import type { JobId, WorkerId } from '../../core/ids.ts'
import type { Worker } from '../../core/workers/worker.ts'
import type { Clock } from '../../ports/clock.ts'
import { RunningWorker } from './running-worker.ts'

/** Maximum number of chunks of all workers that could not be stored and are known for their retry. */
const MAX_FAILED_CHUNKS = 100

/**
 * The {@link RunningWorker} of each worker that this server knows of. There are never more than there are workers that
 * have not ended, are being launched, or whose end is being recorded, and those of which a late call came since the
 * last two inspections.
 */
export class RunningWorkers {
  readonly #clock
  readonly #workers = new Map<WorkerId, RunningWorker>()
  /** Those that the last inspection did not find among the living. */
  readonly #missed = new Set<WorkerId>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The object of a worker. One that has ended already gets an object that is not kept. */
  of({ id, state }: Pick<Worker, 'id' | 'state'>): RunningWorker {
    const existing = this.#workers.get(id)
    if (existing !== undefined) return existing
    return state === 'EXITED' ? new RunningWorker(id, this.#clock) : this.#add(id)
  }

  /** The object of a worker; null for an unknown one. */
  find(id: WorkerId): RunningWorker | null {
    return this.#workers.get(id) ?? null
  }

  /** A new worker, whose process is being started. */
  launch(id: WorkerId): RunningWorker {
    const worker = this.#add(id)
    worker.launching()
    return worker
  }

  /** Notes that the exit of a worker is observed. */
  end(id: WorkerId): RunningWorker {
    const worker = this.#workers.get(id) ?? this.#add(id)
    worker.hasEnded = true
    return worker
  }

  /** Forgets a worker: it was never recorded, or its end is recorded and published. */
  forget(id: WorkerId): void {
    this.#workers.delete(id)
    this.#missed.delete(id)
  }

  /** Those whose exit is observed and whose end is not published yet. */
  ended(): WorkerId[] {
    return [...this.#workers.values()].filter(({ hasEnded }) => hasEnded).map(({ id }) => id)
  }

  /**
   * Forgets those that two calls in a row do not name: a call of a worker may have come just after its end was
   * published, and a new worker may not have been read yet.
   * @param alive workers that have not ended
   */
  keep(alive: ReadonlySet<WorkerId>): void {
    for (const { id, isLaunching, hasEnded } of this.#workers.values()) {
      if (alive.has(id) || isLaunching || hasEnded) this.#missed.delete(id)
      else if (this.#missed.has(id)) this.forget(id)
      else this.#missed.add(id)
    }
  }

  /** Number of known workers. */
  get size(): number {
    return this.#workers.size
  }

  /** Forgets what all of them were seen to do: this server did not listen for a while. */
  forgetActivity(): void {
    for (const worker of this.#workers.values()) worker.forgetActivity()
  }

  /** Notes that responses written since then, in monotonic milliseconds, may not have reached their workers. */
  doubtSince(sinceMs: number): void {
    for (const worker of this.#workers.values()) worker.doubtSince(sinceMs)
  }

  /** Notes that a chunk of a worker could not be stored. */
  chunkFailed(worker: RunningWorker, jobId: JobId, items: readonly string[]): void {
    const workers = [...this.#workers.values()]
    const total = workers.reduce((sum, { failedChunks }) => sum + failedChunks, 0)
    if (total >= MAX_FAILED_CHUNKS) for (const other of workers) other.forgetFailedChunks()
    worker.chunkFailed(jobId, items)
  }

  #add(id: WorkerId): RunningWorker {
    const worker = new RunningWorker(id, this.#clock)
    this.#workers.set(id, worker)
    return worker
  }
}
