import type { HealthAnswer } from '../../src/core/balancing/health-check.ts'
import type { WorkerId } from '../../src/core/ids.ts'
import type { MockFleet } from '../../src/drivers/mock/mock.ts'
import type { Probes } from '../../src/ports/probe.ts'

/** Health checks of the workers of a {@link MockFleet}, for tests and the simulator. */
export class MockProbes implements Probes {
  readonly #fleet: Pick<MockFleet, 'started' | 'running'>
  readonly #answers = new Map<WorkerId, HealthAnswer | (() => Promise<HealthAnswer>)>()
  /** Number of checks of each worker. */
  readonly counts = new Map<WorkerId, number>()
  /** Path of the last check of each worker. */
  readonly paths = new Map<WorkerId, string>()
  /** The requests to sleep and to wake, in their order. */
  readonly posts: { readonly worker: WorkerId; readonly path: string }[] = []
  /** Answer of workers to those requests. */
  posted: (path: string) => HealthAnswer | Promise<HealthAnswer> = () => ({ status: 200 })
  /** Answer of workers to the question for the text at a path; null for none. */
  text: (worker: WorkerId, path: string, bearer?: string) => string | null | Promise<string | null> = () => null
  /** Answer of workers without an answer of their own. */
  usual: HealthAnswer = { status: 200 }

  constructor(fleet: Pick<MockFleet, 'started' | 'running'>) {
    this.#fleet = fleet
  }

  /** From now on this worker answers so. */
  answer(worker: WorkerId, answer: HealthAnswer | (() => Promise<HealthAnswer>)): void {
    this.#answers.set(worker, answer)
  }

  async probe({ port }: { readonly port: number }, path: string): Promise<HealthAnswer> {
    const worker = this.#workerAt(port)
    if (worker === null) return REFUSED
    this.paths.set(worker, path)
    this.counts.set(worker, (this.counts.get(worker) ?? 0) + 1)
    const answer = this.#answers.get(worker) ?? this.usual
    return typeof answer === 'function' ? answer() : answer
  }

  async post({ port }: { readonly port: number }, path: string): Promise<HealthAnswer> {
    const worker = this.#workerAt(port)
    if (worker === null) return REFUSED
    this.posts.push({ worker, path })
    return this.posted(path)
  }

  async read(
    { port }: { readonly port: number },
    path: string,
    _timeoutMs: number,
    _maxBytes: number,
    bearer?: string,
  ): Promise<string | null> {
    const worker = this.#workerAt(port)
    return worker === null ? null : this.text(worker, path, bearer)
  }

  /** The mock driver gives its worker number n two ports from 20,000 on. */
  #workerAt(port: number): WorkerId | null {
    const worker = this.#fleet.started[Math.floor((port - 20_000) / 2)]?.workerId
    return worker !== undefined && this.#fleet.running().includes(worker) ? worker : null
  }
}

/** The result where no server listens. */
export const REFUSED: HealthAnswer = { problem: 'nothing listens there', refused: true }
