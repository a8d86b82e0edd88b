import { toAppError } from '../../core/errors.ts'
import { isFrozen, takesJobs, type Worker } from '../../core/workers/worker.ts'
import type { Ports } from '../../ports/ports.ts'
import type { RunningWorkers } from './running-workers.ts'

/**
 * Has the driver do what the store says: a worker that is FROZEN there is frozen, and one that is STARTING or READY runs. The store changes first,
 * so a server that is killed in between does the rest at its next start. Workers that are to end are thawed by the driver when it ends them.
 */
export class Freezing {
  readonly #ports: Pick<Ports, 'store' | 'driver' | 'emit'>
  readonly #running: RunningWorkers

  constructor(ports: Pick<Ports, 'store' | 'driver' | 'emit'>, running: RunningWorkers) {
    this.#ports = ports
    this.#running = running
  }

  /**
   * Freezes or thaws a worker until that is what the store says; returns at once where that is being done already. A driver that fails is
   * told, and is asked again by the next call.
   */
  async settle({ id, state }: Worker): Promise<void> {
    const running = this.#running.of({ id, state })
    if (running.isSettling) return
    running.isSettling = true
    try {
      for (;;) {
        const worker = await this.#ports.store.workers.find(id)
        if (worker === null || running.hasEnded || isSettled(worker, running.frozen)) return
        await this.#act(worker)
      }
    } catch (error) {
      running.frozen = null
      this.#ports.emit('loop.failed', { loop: 'freezing of a worker', problem: toAppError(error).message })
    } finally {
      running.isSettling = false
    }
  }

  /** As {@link settle}, for a worker that an earlier run of the server left. */
  async adopt(worker: Worker): Promise<void> {
    if (worker.frozenAtMs === null) return
    this.#running.of(worker).frozen = null
    await this.settle(worker)
    // Its signal to end may not have reached it.
    if (worker.state === 'STOPPING') await this.#ports.driver.terminate(worker.id)
  }

  /** Settles those of which the driver failed. @param alive workers that have not ended */
  async retry(alive: readonly Worker[]): Promise<void> {
    for (const worker of alive) {
      const frozen = this.#running.find(worker.id)?.frozen ?? false
      if (!isSettled(worker, frozen)) await this.settle(worker)
    }
  }

  async #act(worker: Worker): Promise<void> {
    const running = this.#running.of(worker)
    if (isFrozen(worker)) {
      running.freeze()
      await this.#ports.driver.freeze(worker.id)
      return
    }
    running.thaw()
    // From here on a take may be one that the worker sends when it runs again.
    running.frozen = false
    await this.#ports.driver.thaw(worker.id)
  }
}

/** Whether the driver has done what the store says. @param frozen what it has done last; null where that is not known */
function isSettled(worker: Worker, frozen: boolean | null): boolean {
  if (isFrozen(worker)) return frozen === true
  return frozen === false || !takesJobs(worker)
}
