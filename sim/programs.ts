import type { HealthAnswer } from '../src/core/balancing/health-check.ts'
import type { WorkerId } from '../src/core/ids.ts'
import type { SocketAddress } from '../src/core/workers/socket-address.ts'
import type { WorkerSpec } from '../src/ports/driver.ts'
import type { Probes } from '../src/ports/probe.ts'
import { WebProgram, type WebSurroundings } from './workers/web-program.ts'

const NOBODY_LISTENS: HealthAnswer = { problem: 'nothing listens there', refused: true }
/** A health check takes this long. */
const PROBE_MS = 2
/** The mock driver gives its worker number n two ports from here on. */
const FIRST_PORT = 20_000

/** The programs of workers that serve requests, and who listens where. */
export class Programs implements Probes {
  readonly #around: WebSurroundings
  readonly #started: () => readonly WorkerSpec[]
  readonly #programs = new Map<WorkerId, WebProgram>()

  /** @param started every worker that was ever started, in order */
  constructor(around: WebSurroundings, started: () => readonly WorkerSpec[]) {
    this.#around = around
    this.#started = started
  }

  /** Every program that was ever started; of a worker that was started again the last one. */
  get all(): readonly WebProgram[] {
    return [...this.#programs.values()]
  }

  /** The program of a worker. */
  find(worker: WorkerId): WebProgram | undefined {
    return this.#programs.get(worker)
  }

  /** The process of a worker starts. */
  start(spec: WorkerSpec): void {
    this.#programs.set(spec.workerId, new WebProgram(this.#around, spec))
  }

  /** The program that listens at an address, or did. */
  at({ port }: SocketAddress): WebProgram | undefined {
    const spec = this.#started()[Math.floor((port - FIRST_PORT) / 2)]
    return spec === undefined ? undefined : this.#programs.get(spec.workerId)
  }

  async probe(address: SocketAddress): Promise<HealthAnswer> {
    await new Promise<void>(resolve => this.#around.world.clock.after(PROBE_MS, resolve))
    return this.at(address)?.health() ?? NOBODY_LISTENS
  }
}
