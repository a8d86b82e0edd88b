import type { HealthAnswer } from '../src/core/balancing/health-check.ts'
import type { WorkerId } from '../src/core/ids.ts'
import type { SocketAddress } from '../src/core/workers/socket-address.ts'
import type { WorkerSpec } from '../src/ports/driver.ts'
import type { Probes } from '../src/ports/probe.ts'
import { WebProgram, type WebProgramParts } from './workers/web-program.ts'

const NOBODY_LISTENS: HealthAnswer = { problem: 'nothing listens there', refused: true }
/** Duration of a health check, in milliseconds. */
const PROBE_MS = 2

/** The programs of workers that serve requests, by worker and by address. */
export class Programs implements Probes {
  readonly #parts: WebProgramParts
  readonly #workerAt: (address: SocketAddress) => WorkerId | undefined
  readonly #programs = new Map<WorkerId, WebProgram>()

  /** @param workerAt the worker that has an address, or had it last */
  constructor(parts: WebProgramParts, workerAt: (address: SocketAddress) => WorkerId | undefined) {
    this.#parts = parts
    this.#workerAt = workerAt
  }

  /** The last program of each worker that was ever started. */
  get all(): readonly WebProgram[] {
    return [...this.#programs.values()]
  }

  /** The program of a worker. */
  find(worker: WorkerId): WebProgram | undefined {
    return this.#programs.get(worker)
  }

  /** The process of a worker starts. */
  start(spec: Pick<WorkerSpec, 'workerId' | 'endpointId'>): void {
    this.#programs.set(spec.workerId, new WebProgram(this.#parts, spec))
  }

  /** The program that listens at an address or did so. */
  at(address: SocketAddress): WebProgram | undefined {
    const worker = this.#workerAt(address)
    return worker === undefined ? undefined : this.#programs.get(worker)
  }

  /** No endpoint of the simulation has sleep hooks. */
  async post(): Promise<HealthAnswer> {
    return NOBODY_LISTENS
  }

  /** No program of the simulation names models. */
  async read(): Promise<string | null> {
    return null
  }

  async probe(address: SocketAddress, _path: string, timeoutMs: number): Promise<HealthAnswer> {
    const { clock } = this.#parts.world
    await new Promise<void>(resolve => clock.after(PROBE_MS, resolve))
    const program = this.at(address)
    if (program?.life.frozen !== true) return program?.health() ?? NOBODY_LISTENS
    const { promise, resolve } = Promise.withResolvers<HealthAnswer>()
    const cancel = clock.after(timeoutMs, () => resolve({ problem: 'no answer in time', refused: false }))
    const forget = program.life.onEnd(() =>
      resolve({ problem: 'the connection was cut before an answer', refused: false }),
    )
    program.life.deliver(() => resolve(program.health()))
    return promise.finally(() => {
      cancel()
      forget()
    })
  }
}
