import type { Worker } from '../core/workers/worker.ts'
import type { Ports } from '../ports/ports.ts'
import type { PendingStop } from '../ports/store/store.ts'
import type { Fleet } from '../services/workers/fleet.ts'
import { PlatformReports } from '../services/workers/platform-reports.ts'
import type { RunningWorkers } from '../services/workers/running-workers.ts'
import type { WorkerFreezer } from '../services/workers/worker-freezer.ts'
import type { Upkeep } from './upkeep.ts'
import type { WorkerWatchdog } from './worker-watchdog.ts'

/** Longest time of a worker with an ended job before the worker is replaced. */
const STOP_GRACE_MS = 5_000
/** Longest time of a worker to end after its stop. Longer than the pauses of 1 s in the loops of the Python SDK. */
export const KILL_GRACE_MS = 10_000
const TICK_MS = 1_000

/**
 * Records exits of workers and the reports of their platforms, ends workers that keep ended jobs, retries freezes and
 * thaws that failed in the driver, and runs the watchdog and the upkeep.
 */
export class Reaper {
  readonly #ports
  readonly #parts
  readonly #platforms

  constructor(
    ports: Ports,
    parts: {
      readonly fleet: Fleet
      readonly workerFreezer: WorkerFreezer
      readonly running: RunningWorkers
      readonly watchdog: WorkerWatchdog
      readonly upkeep: Upkeep
    },
  ) {
    this.#ports = ports
    this.#parts = parts
    this.#platforms = new PlatformReports(ports, parts.fleet, parts.running)
  }

  /**
   * Does the due work.
   * @returns time of the next step without a wake
   */
  async step(nowMs: number): Promise<number> {
    const workers = await this.#ports.store.workers.alive()
    // First: on a full disk the rest fails.
    await this.#parts.upkeep.makeRoom(workers, nowMs)
    const alive = await this.#recordExits(workers)
    await this.#killOverdue(alive, nowMs)
    await this.#replaceStuck(alive, nowMs)
    await this.#parts.workerFreezer.retry(alive)
    await this.#parts.watchdog.inspect(alive, nowMs)
    await this.#parts.upkeep.step(nowMs)
    return nowMs + TICK_MS
  }

  async #recordExits(workers: readonly Worker[]): Promise<Worker[]> {
    const alive: Worker[] = []
    for (const worker of workers) {
      const observation = await this.#ports.driver.observe(worker.id)
      const isLaunching = this.#parts.running.find(worker.id)?.isLaunching === true
      if (observation.state !== 'exited') alive.push(await this.#platforms.note(worker, observation))
      else if (isLaunching) alive.push(worker)
      else await this.#parts.fleet.recordExit(worker.id, observation.exit)
    }
    await this.#parts.fleet.finishExits(new Set(workers.map(({ id }) => id)))
    return alive
  }

  async #killOverdue(alive: readonly Worker[], nowMs: number): Promise<void> {
    for (const worker of alive.filter(({ state }) => state === 'STOPPING')) {
      const running = this.#parts.running.of(worker)
      running.stoppingSinceMs ??= nowMs
      if (nowMs - running.stoppingSinceMs >= KILL_GRACE_MS) await this.#ports.driver.kill(worker.id)
    }
  }

  /** A worker that still works on an ended job and holds no other is replaced; one with other jobs is left alone. */
  async #replaceStuck(alive: readonly Worker[], nowMs: number): Promise<void> {
    const stops = await this.#ports.store.stops.list()
    if (stops.length === 0) return
    const byId = new Map(alive.map(worker => [worker.id, worker]))
    for (const stop of stops.filter(({ sinceMs }) => nowMs - sinceMs >= STOP_GRACE_MS)) {
      const worker = byId.get(stop.workerId)
      if (worker === undefined) await this.#ports.store.stops.letGo(stop.workerId, 'all')
      else if (worker.state !== 'STOPPING' && (await this.#holdsOnlyStops(worker, stops))) {
        await this.#parts.fleet.kill(worker.id, 'cancelled_job')
      }
    }
  }

  async #holdsOnlyStops(worker: Worker, stops: readonly PendingStop[]): Promise<boolean> {
    const snapshot = await this.#ports.store.endpoints.snapshot(worker.endpointId)
    const held = snapshot?.workers.find(({ id }) => id === worker.id)?.held ?? 0
    return held <= stops.filter(stop => stop.workerId === worker.id).length
  }
}
