import {
  type HealthAnswer,
  healthAfterAnswer,
  healthProblem,
  healthWithoutAddress,
  judgeHealth,
  PROBE_TIMEOUT_MS,
  uncheckedHealth,
  type WorkerHealth,
} from '../core/balancing/health-check.ts'
import type { WorkerId } from '../core/ids.ts'
import { earliest } from '../core/scaling/plan.ts'
import type { ServedAt } from '../core/workers/socket-address.ts'
import { isFrozen } from '../core/workers/worker.ts'
import { problemText } from '../core/workers/worker-problem.ts'
import type { Ports } from '../ports/ports.ts'
import type { BalancedWorker, LoadBalancer } from '../services/balancing/load-balancer.ts'
import type { Fleet } from '../services/workers/fleet.ts'
import type { WorkerFreezer } from '../services/workers/worker-freezer.ts'

/** Limit of concurrent health checks. */
const MAX_PROBES = 128
/** Interval after which a check is repeated whose result could not be handled. */
const RETRY_MS = 1_000

/** The result of a health check whose path is unknown. */
const NO_PATH: HealthAnswer = { problem: 'the secret of its path was deleted or is no longer a path', refused: false }

/**
 * Checks the health of the workers of load-balancing endpoints: often while they start, rarely when they are healthy.
 * Makes a worker READY when it is healthy for the first time, ejects it and takes it back, and ends a faulty one, as
 * `core/balancing/health-check.ts` decides.
 */
export class HealthChecker {
  readonly #ports
  readonly #parts
  readonly #wake
  /** Workers with an open check. */
  readonly #checked = new Set<WorkerId>()
  /** Results that are being handled. */
  readonly #handling = new Set<Promise<void>>()
  #stopped = false

  /** @param wake asks for a step soon */
  constructor(
    ports: Ports,
    parts: { readonly balancing: LoadBalancer; readonly fleet: Fleet; readonly workerFreezer: WorkerFreezer },
    wake: () => void,
  ) {
    this.#ports = ports
    this.#parts = parts
    this.#wake = wake
    parts.balancing.onNewWorker(wake)
    // A long wake is not a failed health check.
    parts.workerFreezer.whenAwake(id => {
      parts.balancing.note(id, { health: uncheckedHealth(ports.clock.monotonic(), true) })
      wake()
    })
  }

  /**
   * Starts the health checks that are due; does not wait for them.
   * @returns time of the next step without a wake; null if no worker needs checks
   */
  async step(nowMs: number): Promise<number | null> {
    const atMs = this.#ports.clock.monotonic()
    const waiting = this.#parts.balancing
      .workers()
      .filter(({ worker, isLeaving }) => !isLeaving && !isFrozen(worker) && !this.#checked.has(worker.id))
      .filter(({ worker }) => !this.#parts.workerFreezer.isAsleep(worker.id))
      .sort((a, b) => a.health.nextAtMs - b.health.nextAtMs)
    const due = waiting.filter(({ health }) => health.nextAtMs <= atMs)
    const probed = due.slice(0, Math.max(0, MAX_PROBES - this.#checked.size))
    for (const balanced of probed) void this.#check(balanced)
    const next = earliest(waiting.slice(probed.length).map(({ health }) => health.nextAtMs))
    // With too many at once, the next result wakes it.
    if (next === null || due.length > probed.length) return null
    return nowMs + Math.max(0, next - atMs)
  }

  /** Starts no further checks. Resolves when the results that have arrived are handled; later ones are ignored. */
  async end(): Promise<void> {
    this.#stopped = true
    await Promise.allSettled(this.#handling)
  }

  async #check(balanced: BalancedWorker): Promise<void> {
    const { worker } = balanced
    const { driver, probes, clock } = this.#ports
    this.#checked.add(worker.id)
    try {
      const servedAt = balanced.servedAt ?? (await driver.address(worker.id))
      const path = servedAt === null ? null : await this.#parts.balancing.healthPath(balanced)
      const answer =
        servedAt === null ? null : path === null ? NO_PATH : await probes.probe(servedAt.health, path, PROBE_TIMEOUT_MS)
      if (this.#stopped) return
      const handling = this.#handle(balanced, answer, servedAt)
      this.#handling.add(handling)
      await handling.finally(() => this.#handling.delete(handling))
    } catch (error) {
      this.#ports.emit('loop.failed', { loop: 'health check', problem: String(error) })
      this.#parts.balancing.note(worker.id, { health: { ...balanced.health, nextAtMs: clock.monotonic() + RETRY_MS } })
    } finally {
      this.#checked.delete(worker.id)
      if (!this.#stopped) this.#wake()
    }
  }

  /** Ignores an answer from before a freeze or a thaw. @param answer null if the worker has no address yet */
  async #handle(balanced: BalancedWorker, answer: HealthAnswer | null, servedAt: ServedAt | null): Promise<void> {
    const { health, worker } = balanced
    const currentWorker = this.#parts.balancing.worker(worker.id)?.worker
    if (currentWorker !== undefined && (isFrozen(currentWorker) || currentWorker.thawedAtMs !== worker.thawedAtMs))
      return
    const nowMs = this.#ports.clock.monotonic()
    if (answer === null) this.#parts.balancing.note(worker.id, { health: healthWithoutAddress(health, nowMs) })
    else await this.#keep(balanced, healthAfterAnswer(health, answer, nowMs), servedAt)
    await this.#judge(worker.id)
  }

  async #keep(balanced: BalancedWorker, health: WorkerHealth, servedAt: ServedAt | null): Promise<void> {
    const { store, clock, notifier, emit } = this.#ports
    const { id, endpointId, state, serves } = balanced.worker
    const isFirst = health.state === 'healthy' && state === 'STARTING'
    // Recorded before it is published; if that fails, the check is repeated.
    const move = isFirst ? await store.workers.seen(id, 1, null, clock.now()) : null
    this.#parts.balancing.note(id, { health, servedAt })
    if (move !== null) this.#parts.fleet.moved(move)
    if (health.state === balanced.health.state && !isFirst) return
    const isBack = health.state === 'healthy'
    if (balanced.health.wasHealthy && balanced.health.last !== null && serves !== null) {
      const problem = isBack
        ? null
        : healthProblem(health, serves, this.#parts.balancing.worker(id)?.port ?? serves.healthPort)
      emit('worker.health', {
        endpointId,
        workerId: id,
        healthy: isBack,
        problem: problem === null ? null : problemText(problem),
      })
    }
    await this.#parts.balancing.refresh(endpointId)
    notifier.publish(`load:${endpointId}`)
  }

  async #judge(id: WorkerId): Promise<void> {
    const balanced = this.#parts.balancing.worker(id)
    if (balanced === undefined || balanced.isLeaving || balanced.worker.serves === null) return
    const { worker, health, port, runsSinceMs } = balanced
    const nowMs = this.#ports.clock.monotonic()
    const runsForMs = runsSinceMs === null ? null : nowMs - runsSinceMs
    const inFlight = this.#parts.balancing.inFlight(worker.endpointId, id)
    const verdict = judgeHealth(health, { serves: balanced.worker.serves, port, runsForMs, inFlight }, nowMs)
    if (verdict === null) return
    await this.#parts.fleet.endFaulty(worker, verdict.reason, verdict.problem)
    await this.#parts.balancing.refresh(worker.endpointId)
  }
}
