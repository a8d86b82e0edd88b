/** The part of a driver that is the same for processes, containers and pods. */
import { AppError } from '../../core/errors.ts'
import type { WorkerId } from '../../core/ids.ts'
import type { Capacity } from '../../core/scaling/plan.ts'
import type { ObservedExit } from '../../core/workers/worker-exit.ts'
import type { Observation, StartWatch, WorkerSpec } from '../../ports/driver.ts'
import type { ProcessFamily } from '../../ports/gpu-suspender.ts'

/** A worker that a driver started or adopted. */
export interface TrackedWorker {
  /** Its end; null while it runs. */
  readonly exit: ObservedExit | null
}

interface Start {
  readonly handle: Promise<string>
  readonly stop: AbortController
}

/** Tracks the workers of one driver from their start or adoption to their release, and lets each start once. */
export abstract class WorkerRunner<Worker extends TrackedWorker> {
  abstract readonly name: string
  protected readonly workers = new Map<WorkerId, Worker>()
  protected readonly starts = new Map<WorkerId, Start>()
  readonly #limit

  constructor(limit: {
    readonly maxWorkers: number
    /** The workers that it counts, such as `workers on this machine`. */
    readonly counted: string
    /** The end of a worker that the driver does not track. */
    readonly unknownExit: ObservedExit
  }) {
    this.#limit = limit
  }

  nameFor(): string {
    return this.name
  }

  savedImage(image: string): string {
    return image
  }

  keepsApart(): string | null {
    return null
  }

  async processes(_worker: WorkerId): Promise<ProcessFamily | null> {
    return null
  }

  async start(spec: WorkerSpec, watch?: StartWatch): Promise<string> {
    const { workerId } = spec
    const running = this.starts.get(workerId)
    if (running !== undefined) return running.handle
    const tracked = this.workers.get(workerId)
    if (tracked !== undefined) return this.workerHandle(tracked, spec)
    const stop = new AbortController()
    const handle = this.begin(spec, watch, stop.signal).finally(() => {
      this.starts.delete(workerId)
      this.onStartEnd(workerId)
    })
    this.starts.set(workerId, { handle, stop })
    return handle
  }

  async adopt(worker: WorkerId, handle: string | null): Promise<boolean> {
    const tracked = this.workers.get(worker)
    return tracked === undefined ? this.takeOver(worker, handle) : tracked.exit === null
  }

  async observe(worker: WorkerId): Promise<Observation> {
    const tracked = this.workers.get(worker)
    return tracked === undefined
      ? { state: 'exited', exit: this.#limit.unknownExit }
      : this.observation(worker, tracked)
  }

  async release(worker: WorkerId): Promise<void> {
    const tracked = this.workers.get(worker)
    if (this.starts.has(worker) || tracked?.exit === null) throw new AppError('conflict', `worker ${worker} still runs`)
    // A release that fails is repeated, and needs the worker then.
    await this.forget(worker, tracked)
    this.workers.delete(worker)
  }

  async capacity(): Promise<Capacity> {
    const { maxWorkers, counted } = this.#limit
    const running = [...this.workers].filter(([, { exit }]) => exit === null).map(([worker]) => worker)
    const occupied = new Set([...running, ...this.starts.keys()])
    return {
      freeWorkers: maxWorkers - occupied.size,
      bound: `the limit of ${maxWorkers} ${counted} (--max-workers)`,
    }
  }

  /** Starts a worker that is not tracked. @param signal asks for an early end of the start */
  protected abstract begin(spec: WorkerSpec, watch: StartWatch | undefined, signal: AbortSignal): Promise<string>

  /** The handle of a worker that was started before. */
  protected abstract workerHandle(tracked: Worker, spec: WorkerSpec): string

  /** Adopts a worker that is not tracked; false when it no longer runs. */
  protected abstract takeOver(worker: WorkerId, handle: string | null): Promise<boolean>

  protected abstract observation(worker: WorkerId, tracked: Worker): Observation | Promise<Observation>

  /** Removes the rest of a worker that has ended. @param tracked undefined for one that was not tracked */
  protected abstract forget(worker: WorkerId, tracked: Worker | undefined): void | Promise<void>

  /** A start ended, well or not. */
  protected onStartEnd(_worker: WorkerId): void {}
}
