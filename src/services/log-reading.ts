import { AppError, notFound } from '../core/errors.ts'
import { type EndpointId, isEndpointId, isJobId, type JobId, type OwnerId, type WorkerId } from '../core/ids.ts'
import type { Worker } from '../core/worker.ts'
import type { Ports } from '../ports/ports.ts'
import type { LogLine } from '../ports/worker-logs.ts'

/** A line of output with the worker that wrote it. */
export interface WorkerLine extends LogLine {
  readonly workerId: WorkerId
}

/** What an id turned out to be the id of. */
export type Found =
  | { readonly kind: 'endpoint'; readonly id: EndpointId }
  | { readonly kind: 'worker'; readonly id: WorkerId; readonly endpointId: EndpointId }
  | { readonly kind: 'job'; readonly id: JobId; readonly endpointId: EndpointId; readonly workerId: WorkerId | null }

/** The newest workers of an endpoint whose output is read together. */
const WORKERS_READ = 20
/** How long the last lines of a worker that has ended are waited for. */
const LAST_LINES_MS = 1_000

/** Finds the output of workers by whatever id a person has: of an endpoint, a worker or a job. */
export class LogReading {
  readonly #ports: Pick<Ports, 'store' | 'logs' | 'clock' | 'notifier'>

  constructor(ports: Pick<Ports, 'store' | 'logs' | 'clock' | 'notifier'>) {
    this.#ports = ports
  }

  /**
   * What an id belongs to.
   * @throws AppError `not_found`, also for things of other owners
   */
  async locate(owner: OwnerId, id: string): Promise<Found> {
    const { store, clock } = this.#ports
    const endpoint = isEndpointId(id) ? await store.endpoints.find(id) : null
    if (endpoint !== null && endpoint.owner === owner) return { kind: 'endpoint', id: endpoint.id }
    const worker = await store.workers.find(id as WorkerId)
    if (worker !== null && worker.owner === owner)
      return { kind: 'worker', id: worker.id, endpointId: worker.endpointId }
    const job = isJobId(id) ? await store.jobs.locate(owner, id, clock.now()) : null
    if (job === null) throw new AppError('not_found', `there is no endpoint, worker or job ${id} (not found)`)
    return { kind: 'job', id: job.id, endpointId: job.endpointId, workerId: job.workerId }
  }

  /** The last lines that belong to what was found, oldest first for each worker. */
  async tail(found: Found, lines: number): Promise<WorkerLine[]> {
    if (found.kind === 'endpoint') {
      const workers = (await this.#ports.store.workers.list(found.id)).slice(0, WORKERS_READ).reverse()
      return (await Promise.all(workers.map(worker => this.#tailWorker(worker.id, lines)))).flat()
    }
    if (found.kind === 'worker') return this.#tailWorker(found.id, lines)
    if (found.workerId === null) return []
    return (await this.#tailWorker(found.workerId, 10_000)).filter(({ jobId }) => jobId === found.id).slice(-lines)
  }

  /** The last lines and then new ones as they come, until the signal aborts or the worker has ended. */
  async *follow(found: Found, lines: number, signal: AbortSignal): AsyncGenerator<WorkerLine> {
    const worker = await this.#workerToFollow(found)
    if (worker === null) {
      yield* await this.tail(found, lines)
      return
    }
    const { store, logs, clock, notifier } = this.#ports
    const over = new AbortController()
    const endWithWorker = async () => {
      const state = (await store.workers.find(worker.id).catch(() => worker))?.state ?? 'EXITED'
      if (state === 'EXITED') clock.after(LAST_LINES_MS, () => over.abort())
    }
    const unsubscribe = notifier.subscribe(`worker:${worker.id}`, () => void endWithWorker())
    try {
      await endWithWorker()
      for await (const line of logs.follow(worker.id, lines, AbortSignal.any([signal, over.signal]))) {
        if (found.kind !== 'job' || line.jobId === found.id) yield { ...line, workerId: worker.id }
      }
    } finally {
      unsubscribe()
    }
  }

  async #workerToFollow(found: Found): Promise<Worker | null> {
    const { store } = this.#ports
    if (found.kind === 'endpoint') return (await store.workers.list(found.id))[0] ?? null
    const id = found.kind === 'worker' ? found.id : found.workerId
    const worker = id === null ? null : await store.workers.find(id)
    if (worker === null && found.kind === 'worker') throw notFound('worker', found.id)
    return worker
  }

  async #tailWorker(workerId: WorkerId, lines: number): Promise<WorkerLine[]> {
    return (await this.#ports.logs.tail(workerId, lines)).map(line => ({ ...line, workerId }))
  }
}
