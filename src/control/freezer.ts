import type { WorkerLoad } from '../core/workers/worker.ts'
import type { Balancing } from '../services/balancing/balancing.ts'
import type { Fleet } from '../services/workers/fleet.ts'
import type { Freezing } from '../services/workers/freezing.ts'
import type { WorkerUsageMeter } from './worker-usage-meter.ts'

/** What {@link Freezer} works with. */
export interface FreezerParts {
  readonly fleet: Fleet
  readonly freezing: Freezing
  readonly balancing: Balancing
  readonly served: WorkerUsageMeter
}

/** Freezes idle workers and thaws frozen ones, as the plan of their endpoint says. */
export class Freezer {
  readonly #parts: FreezerParts

  constructor(parts: FreezerParts) {
    this.#parts = parts
  }

  /** Freezes a worker that is still idle; does not wait for the driver. */
  async freeze(worker: WorkerLoad): Promise<void> {
    const { fleet, freezing, served } = this.#parts
    if (worker.serves !== null) await served.noteLast(worker.id)
    if (!(await fleet.freeze(worker.id))) return
    if (worker.serves !== null && (await this.#hasRequests(worker))) await fleet.thaw(worker.id)
    else void freezing.settle(worker)
  }

  /** Thaws a worker; does not wait for the driver. */
  async thaw({ id }: WorkerLoad): Promise<void> {
    await this.#parts.fleet.thaw(id)
  }

  /** The gateway knows that the worker is frozen before its requests are counted, so it gets none after that. */
  async #hasRequests({ id, endpointId }: WorkerLoad): Promise<boolean> {
    const { balancing } = this.#parts
    await balancing.refresh(endpointId)
    return balancing.inFlight(endpointId, id) > 0
  }
}
