import {
  afterAnswer,
  afterNothing,
  type HealthAnswer,
  healthProblem,
  PROBE_TIMEOUT_MS,
  verdictOn,
  type WorkerHealth,
} from '../core/balancing/health-check.ts'
import type { WorkerId } from '../core/ids.ts'
import { earliest } from '../core/scaling/plan.ts'
import type { ServedAt } from '../core/workers/socket-address.ts'
import { problemText } from '../core/workers/worker-problem.ts'
import type { Ports } from '../ports/ports.ts'
import type { Balancing, KnownWorker } from '../services/balancing/balancing.ts'
import type { Fleet } from '../services/workers/fleet.ts'

/** Most health checks at once. */
export const MAX_PROBES = 128
/** After this time a worker is asked again whose answer could not be dealt with. */
const RETRY_MS = 1_000

/** What becomes of a health check whose path nobody knows. */
const NO_PATH: HealthAnswer = { problem: 'the secret of its path is gone, or is no path any more', refused: false }

type ProberPorts = Pick<Ports, 'store' | 'driver' | 'clock' | 'notifier' | 'emit' | 'probes'>

/**
 * Asks the workers of load-balancing endpoints for their health: often while they start, rarely when they are well. Makes a worker
 * READY when it is well for the first time, takes it out of rotation and back, and ends one that is of no use, as core/health says.
 */
export class HealthChecker {
  readonly #ports: ProberPorts
  readonly #balancing: Balancing
  readonly #fleet: Fleet
  readonly #wake: () => void
  readonly #asked = new Set<WorkerId>()
  /** Answers that are being dealt with. */
  readonly #dealing = new Set<Promise<void>>()
  #stopped = false

  /** @param wake asks for a step soon */
  constructor(ports: ProberPorts, parts: { readonly balancing: Balancing; readonly fleet: Fleet }, wake: () => void) {
    this.#ports = ports
    this.#balancing = parts.balancing
    this.#fleet = parts.fleet
    this.#wake = wake
    parts.balancing.whenLearned(wake)
  }

  /**
   * Starts the health checks that are due; does not wait for them.
   * @returns when to step again if nothing wakes it before; null when there is nobody to ask
   */
  async step(nowMs: number): Promise<number | null> {
    const atMs = this.#ports.clock.monotonic()
    const waiting = this.#balancing
      .workers()
      .filter(({ worker, isLeaving }) => !isLeaving && !this.#asked.has(worker.id))
      .sort((a, b) => a.health.nextAtMs - b.health.nextAtMs)
    const due = waiting.filter(({ health }) => health.nextAtMs <= atMs)
    const now = due.slice(0, Math.max(0, MAX_PROBES - this.#asked.size))
    for (const known of now) void this.#ask(known)
    const next = earliest(waiting.slice(now.length).map(({ health }) => health.nextAtMs))
    // Where there are too many at once, the next one that answers wakes it.
    if (next === null || due.length > now.length) return null
    return nowMs + Math.max(0, next - atMs)
  }

  /** Starts no further checks, and resolves when the answers that have come are dealt with; later ones count for nothing. */
  async end(): Promise<void> {
    this.#stopped = true
    await Promise.allSettled(this.#dealing)
  }

  async #ask(known: KnownWorker): Promise<void> {
    const { worker } = known
    const { driver, probes, clock } = this.#ports
    this.#asked.add(worker.id)
    try {
      const servedAt = known.servedAt ?? (await driver.address(worker.id))
      const path = servedAt === null ? null : await this.#balancing.healthPath(known)
      const answer =
        servedAt === null ? null : path === null ? NO_PATH : await probes.probe(servedAt.health, path, PROBE_TIMEOUT_MS)
      if (this.#stopped) return
      const dealing = this.#deal(known, answer, servedAt)
      this.#dealing.add(dealing)
      await dealing.finally(() => this.#dealing.delete(dealing))
    } catch (error) {
      this.#ports.emit('loop.failed', { loop: 'health check', problem: String(error) })
      this.#balancing.note(worker.id, { health: { ...known.health, nextAtMs: clock.monotonic() + RETRY_MS } })
    } finally {
      this.#asked.delete(worker.id)
      if (!this.#stopped) this.#wake()
    }
  }

  /** @param answer null where there was nobody to ask yet */
  async #deal(known: KnownWorker, answer: HealthAnswer | null, servedAt: ServedAt | null): Promise<void> {
    const { health, worker } = known
    const nowMs = this.#ports.clock.monotonic()
    if (answer === null) this.#balancing.note(worker.id, { health: afterNothing(health, nowMs) })
    else await this.#keep(known, afterAnswer(health, answer, nowMs), servedAt)
    await this.#judge(worker.id)
  }

  async #keep(known: KnownWorker, health: WorkerHealth, servedAt: ServedAt | null): Promise<void> {
    const { store, clock, notifier, emit } = this.#ports
    const { id, endpointId, state, serves } = known.worker
    const isFirst = health.state === 'healthy' && state === 'STARTING'
    // Recorded before it is told of; when that fails, it is asked again.
    const move = isFirst ? await store.workers.seen(id, 1, null, clock.now()) : null
    this.#balancing.note(id, { health, servedAt })
    if (move !== null) this.#fleet.moved(move)
    if (health.state === known.health.state && !isFirst) return
    const isBack = health.state === 'healthy'
    if (known.health.wasHealthy && known.health.last !== null && serves !== null) {
      const problem = isBack
        ? null
        : healthProblem(health, serves, this.#balancing.worker(id)?.port ?? serves.healthPort)
      emit('worker.health', {
        endpointId,
        workerId: id,
        healthy: isBack,
        problem: problem === null ? null : problemText(problem),
      })
    }
    await this.#balancing.refresh(endpointId)
    notifier.publish(`load:${endpointId}`)
  }

  async #judge(id: WorkerId): Promise<void> {
    const known = this.#balancing.worker(id)
    if (known === undefined || known.isLeaving || known.worker.serves === null) return
    const { worker, health, port, runsSinceMs } = known
    const nowMs = this.#ports.clock.monotonic()
    const runsForMs = runsSinceMs === null ? null : nowMs - runsSinceMs
    const inFlight = this.#balancing.inFlight(worker.endpointId, id)
    const verdict = verdictOn(health, { serves: known.worker.serves, port, runsForMs, inFlight }, nowMs)
    if (verdict === null) return
    await this.#fleet.endFaulty(worker, verdict.reason, verdict.problem)
    await this.#balancing.refresh(worker.endpointId)
  }
}
