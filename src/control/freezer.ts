import type { EndpointId } from '../core/ids.ts'
import { type FreezeRules, frozenLongest, isMemoryShort } from '../core/scaling/frozen-plan.ts'
import { isFrozen, type Worker, type WorkerLoad } from '../core/workers/worker.ts'
import type { Ports } from '../ports/ports.ts'
import type { LoadBalancer } from '../services/balancing/load-balancer.ts'
import type { Fleet } from '../services/workers/fleet.ts'
import type { WorkerFreezer } from '../services/workers/worker-freezer.ts'
import type { WorkerUsageMeter } from './worker-usage-meter.ts'

/** Interval between looks at the memory of the machine while workers are frozen. */
const MEMORY_CHECK_MS = 1_000

/**
 * Freezes idle workers and thaws frozen ones by the plan of their endpoint, and ends frozen ones while memory is
 * short.
 */
export class Freezer {
  readonly #ports
  readonly #parts
  readonly #minMemory: number
  /** True if frozen workers may exist: an earlier run of the server may have left some. */
  #mayHaveFrozen = true
  #checkAtMs = 0

  constructor(
    ports: Ports,
    parts: {
      readonly fleet: Fleet
      readonly workerFreezer: WorkerFreezer
      readonly balancing: LoadBalancer
      readonly served: WorkerUsageMeter
    },
    { minMemoryPercent }: FreezeRules,
  ) {
    this.#ports = ports
    this.#parts = parts
    this.#minMemory = minMemoryPercent / 100
  }

  /**
   * Ends the worker that was frozen first if memory is short.
   * @returns time of the next check; null while no worker is frozen
   */
  async relieve(nowMs: number): Promise<number | null> {
    if (!this.#mayHaveFrozen) return null
    if (nowMs < this.#checkAtMs && this.#checkAtMs - nowMs <= MEMORY_CHECK_MS) return this.#checkAtMs
    this.#checkAtMs = nowMs + MEMORY_CHECK_MS
    const { store, machine } = this.#ports
    const alive = await store.workers.alive()
    this.#mayHaveFrozen = alive.some(isFrozen)
    if (!this.#mayHaveFrozen) return null
    if (isMemoryShort(machine.memory(), this.#minMemory)) await this.#endLongest(alive)
    return this.#checkAtMs
  }

  async #endLongest(alive: readonly Worker[]): Promise<void> {
    const { store } = this.#ports
    const frozen = alive.filter(isFrozen)
    const withPriority = new Set<EndpointId>()
    for (const id of new Set(frozen.map(({ endpointId }) => endpointId))) {
      if ((await store.endpoints.find(id))?.flashboot === 'PRIORITY_FLASHBOOT') withPriority.add(id)
    }
    const longest = frozenLongest(alive, id => withPriority.has(id))
    if (longest !== null) await this.#parts.fleet.drain(longest.id, 'memory_short')
  }

  /** Freezes a worker that is still idle; does not wait for the driver. */
  async freeze(worker: Worker): Promise<void> {
    const { fleet, workerFreezer, served } = this.#parts
    if (worker.serves !== null) await served.noteLast(worker.id)
    this.#mayHaveFrozen = true
    if (!(await fleet.freeze(worker.id))) return
    if (worker.serves !== null && (await this.#hasRequests(worker))) await fleet.thaw(worker.id, null)
    else void workerFreezer.settle(worker)
  }

  /**
   * Thaws workers of an endpoint, unless it has a new version since the plan; does not wait for the driver. The
   * health of workers that serve requests is checked at once.
   * @param endpointVersion the newest version in the plan
   * @param haveGpus true if placement gave sleeping workers their GPUs again; otherwise they stay frozen
   */
  async thaw(
    endpointId: EndpointId,
    workers: readonly WorkerLoad[],
    endpointVersion: number,
    haveGpus = false,
  ): Promise<void> {
    const { fleet, balancing } = this.#parts
    let serves = false
    for (const worker of workers) {
      if (await fleet.thaw(worker.id, endpointVersion, haveGpus)) serves ||= worker.serves !== null
    }
    if (serves) await balancing.refresh(endpointId)
  }

  /** The gateway marks the worker as frozen before its requests are counted, so it gets none after that. */
  async #hasRequests({ id, endpointId }: Worker): Promise<boolean> {
    const { balancing } = this.#parts
    await balancing.refresh(endpointId)
    return balancing.inFlight(endpointId, id) > 0
  }
}
