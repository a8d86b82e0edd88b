import type { WorkerId } from '../core/ids.ts'
import { isFrozen } from '../core/workers/worker.ts'
import type { Ports } from '../ports/ports.ts'
import type { ServedTime as Served } from '../ports/store/usage-store.ts'
import type { BalancedWorker, LoadBalancer } from '../services/balancing/load-balancer.ts'

/** Interval between notes of the use of workers. */
const NOTE_MS = 10_000
/** Maximum number of workers that are noted at once. */
const MAX_NOTED = 500

/** Time up to which a worker's use is noted, and its state then. */
interface Mark {
  readonly atMs: number
  /** Its total busy time until then. */
  readonly busyMs: number
  readonly isBusy: boolean
}

/**
 * Stores the times in which workers of load-balancing endpoints had requests and had none, so that they are counted
 * like the times of workers with jobs. Time that was not noted when the server was killed, at most 10 s, counts like
 * the time before it.
 */
export class WorkerUsageMeter {
  readonly #ports
  readonly #balancing
  readonly #marks = new Map<WorkerId, Mark>()
  #dueAtMs = 0

  constructor(ports: Ports, balancing: LoadBalancer) {
    this.#ports = ports
    this.#balancing = balancing
  }

  /**
   * Notes the due times.
   * @returns time of the next step; null while no workers exist
   */
  async step(nowMs: number): Promise<number | null> {
    const workers = this.#balancing.workers()
    if (nowMs >= this.#dueAtMs || this.#dueAtMs - nowMs > NOTE_MS) {
      this.#forget(workers)
      const changed = workers.filter(balanced => this.#isOther(balanced, nowMs))
      await this.#note(changed.slice(0, MAX_NOTED), nowMs)
      this.#dueAtMs = changed.length > MAX_NOTED ? nowMs : nowMs + NOTE_MS
    }
    return workers.length === 0 ? null : this.#dueAtMs
  }

  /** Notes the use of one worker that is about to be ended. */
  async noteLast(id: WorkerId): Promise<void> {
    const worker = this.#balancing.worker(id)
    const nowMs = this.#ports.clock.now()
    if (worker !== undefined && this.#isOther(worker, nowMs)) await this.#note([worker], nowMs)
  }

  #forget(workers: readonly BalancedWorker[]): void {
    // The time of a frozen worker is counted by its state, and its next time starts again from zero.
    const alive = new Set(workers.flatMap(({ worker }) => (isFrozen(worker) ? [] : [worker.id])))
    for (const id of this.#marks.keys()) if (!alive.has(id)) this.#marks.delete(id)
  }

  /** True if the store would count its time wrongly without a note. */
  #isOther(balanced: BalancedWorker, nowMs: number): boolean {
    const previous = this.#readMark(balanced, nowMs)
    if (previous === null) return false
    const current = this.#currentMark(balanced, nowMs)
    return current.busyMs > previous.busyMs || current.isBusy !== previous.isBusy
  }

  #currentMark({ worker: { id, endpointId } }: BalancedWorker, nowMs: number): Mark {
    const isBusy = this.#balancing.inFlight(endpointId, id) > 0
    return { atMs: nowMs, busyMs: Math.round(this.#balancing.busyMs(endpointId, id)), isBusy }
  }

  /** Null for a worker that was never ready. */
  #readMark({ worker }: BalancedWorker, nowMs: number): Mark | null {
    const stored = isFrozen(worker) ? undefined : this.#marks.get(worker.id)
    if (stored !== undefined) return stored
    if (worker.readyAtMs === null || isFrozen(worker)) return null
    // As the store has it: idle since then, or busy while an earlier run of the server noted it.
    const { idleSinceMs } = worker
    const mark = { atMs: idleSinceMs ?? nowMs, busyMs: 0, isBusy: idleSinceMs === null }
    this.#marks.set(worker.id, mark)
    return mark
  }

  async #note(workers: readonly BalancedWorker[], nowMs: number): Promise<void> {
    const times: Served[] = []
    const marks = new Map<WorkerId, Mark>()
    for (const balanced of workers) {
      const { id } = balanced.worker
      const previous = this.#readMark(balanced, nowMs)
      if (previous === null) continue
      const current = this.#currentMark(balanced, nowMs)
      // A busy time that restarted under the same id counts from zero.
      const busyMs = Math.max(0, current.busyMs - previous.busyMs)
      times.push({ id, idleMs: Math.max(0, nowMs - previous.atMs - busyMs), isBusy: current.isBusy })
      marks.set(id, current)
    }
    if (times.length === 0) return
    await this.#ports.store.workers.served(times, nowMs)
    for (const [id, mark] of marks) this.#marks.set(id, mark)
  }
}
