/** Plan for the workers of a load-balancing endpoint: they are replaced and ended without refusing a request. */

import { type StopReason, takesJobs, type WorkerLoad } from '../workers/worker.ts'
import { FREEZE_RULES, freezesIdle, type KeepRule, missingSpare, planFrozen } from './frozen-plan.ts'
import { rolloutRoom, waitsForRoom } from './rollout-room.ts'
import {
  type Drain,
  desiredWorkers,
  type EndpointSnapshot,
  idleWorkers,
  type ScaleDecision,
  unwantedWaiting,
} from './scale.ts'

/** Maximum time of a draining worker for its requests: the longest time until a worker begins a response. */
export const DRAIN_MS = 330_000
/** Maximum time of a draining worker after its endpoint was deleted. */
export const DRAIN_DELETED_MS = 30_000

/** Result of {@link planLoadBalanced}; plan.ts decides how many of the missing workers are started. */
export interface BalancedPlan {
  readonly drain: readonly Drain[]
  /** Idle workers to freeze, and frozen ones to thaw. */
  readonly freeze: readonly WorkerLoad[]
  readonly thaw: readonly WorkerLoad[]
  readonly desired: number
  /** Number of further workers needed. */
  readonly missing: number
  /** True if no work needs the missing worker and it should be frozen; see {@link missingSpare}. */
  readonly isSpare: boolean
  /** Instant at which the plan may change without an event; null for never. */
  readonly wakeAtMs: number | null
}

/**
 * Plans a load-balancing endpoint. The rollout of a new version is a surge: new workers start beside old ones as
 * far as max and the machine allow, and an old worker drains as soon as the needed number is ready without it.
 * Without room for both, one old worker at a time makes room while another one is ready. If the endpoint has only
 * one worker, because max is 1 or the machine is full, that one ends first, and requests queue in the meantime.
 * Old workers that are not ready end at once, and all of them where the release says so.
 *
 * A worker that was ready and is unhealthy does not count, so another one starts beside it. Idle workers are
 * frozen with FlashBoot, and thawed before any worker is started (frozen-plan.ts).
 */
export function planLoadBalanced(
  snapshot: EndpointSnapshot,
  nowMs: number,
  rules: KeepRule = FREEZE_RULES,
): BalancedPlan {
  return new BalancedPlanner(snapshot, nowMs, rules).plan()
}

class BalancedPlanner {
  readonly #snapshot: EndpointSnapshot
  readonly #nowMs: number
  readonly #scale: ScaleDecision
  readonly #rules: KeepRule
  readonly #drain: Drain[] = []
  readonly #freeze: WorkerLoad[] = []
  /** Workers that accept requests and stay. */
  #stay: readonly WorkerLoad[]
  readonly #wakes: number[] = []

  constructor(snapshot: EndpointSnapshot, nowMs: number, rules: KeepRule) {
    this.#snapshot = snapshot
    this.#rules = rules
    this.#nowMs = nowMs
    this.#scale = desiredWorkers(snapshot, nowMs)
    this.#stay = snapshot.workers.filter(takesJobs)
  }

  plan(): BalancedPlan {
    const { endpoint, requests } = this.#snapshot
    const wanted = this.#wanted()
    this.#overMax()
    const { replacesAtOnce = false } = this.#snapshot.rollout
    for (const worker of this.#old()) if (replacesAtOnce || !isReady(worker)) this.#end(worker, 'outdated')
    for (const worker of this.#old()) if (this.#ready().length > wanted) this.#end(worker, 'outdated')
    const counted = this.#current().filter(isUseful)
    const fewer = Math.max(0, wanted - counted.length)
    const named = requests?.named ?? []
    const frozen = planFrozen(
      this.#snapshot,
      { missing: fewer, staying: this.#stay.length, named },
      this.#rules,
      this.#nowMs,
    )
    this.#drain.push(...frozen.drain)
    if (frozen.wakeAtMs !== null) this.#wakes.push(frozen.wakeAtMs)
    const resumed = endpoint.workersMax > 0 ? (requests?.resumed.length ?? 0) : 0
    const needed = Math.max(fewer - frozen.thaw.length, resumed)
    const missing = Math.max(needed, missingSpare(this.#snapshot))
    if (missing > 0 || this.#current().some(waitsForRoom)) this.#makeRoom()
    this.#endIdle(wanted)
    return {
      drain: this.#drain,
      freeze: this.#freeze,
      thaw: frozen.thaw,
      desired: wanted,
      missing,
      isSpare: needed <= 0,
      wakeAtMs: this.#wakes.length === 0 ? null : Math.min(...this.#wakes),
    }
  }

  /** Number of workers that requests need, and at least one while old workers are, or recently were, in use. */
  #wanted(): number {
    const { desired } = this.#scale
    if (desired > 0 || this.#snapshot.endpoint.workersMax === 0) return desired
    const warm = idleWorkers(this.#snapshot).filter(({ worker }) => this.#isOld(worker) && isReady(worker))
    const dueAtMs = Math.max(0, ...warm.map(one => one.dueAtMs))
    if (dueAtMs <= this.#nowMs) return 0
    this.#wakes.push(dueAtMs)
    return 1
  }

  #overMax(): void {
    const over = this.#stay.length - this.#snapshot.endpoint.workersMax
    const useless = (worker: WorkerLoad) => (isReady(worker) ? 1 : 0)
    const old = (worker: WorkerLoad) => (this.#isOld(worker) ? 0 : 1)
    const first = [...this.#stay].sort(
      (a, b) =>
        useless(a) - useless(b) || old(a) - old(b) || a.held - b.held || b.createdAtMs - a.createdAtMs || order(a, b),
    )
    for (const worker of first.slice(0, Math.max(0, over)))
      this.#end(worker, this.#isOld(worker) ? 'outdated' : 'scaled_down')
  }

  /** Ends an old worker first if a new one has no room beside it. */
  #makeRoom(): void {
    const [first] = this.#old()
    if (first === undefined || this.#drain.length > 0) return
    const { isDue, wakeAtMs } = rolloutRoom(this.#snapshot, this.#stay, this.#ready().length, this.#nowMs)
    if (isDue) this.#end(first, 'outdated')
    if (wakeAtMs !== null) this.#wakes.push(wakeAtMs)
  }

  /** Ends workers that were idle for the idle timeout, and surplus workers after the same time. */
  #endIdle(wanted: number): void {
    const { queue, requests, endpoint } = this.#snapshot
    if (queue.queued > 0) return
    // An unhealthy worker ends for its problem, so that it counts towards the back-off.
    const current = this.#current().filter(isUseful)
    for (const worker of unwantedWaiting(this.#snapshot, current, wanted)) this.#end(worker, 'scaled_down')
    let left = this.#current().filter(isUseful).length
    for (const { worker, dueAtMs } of idleWorkers(this.#snapshot)) {
      if (left <= wanted) return
      if (!current.includes(worker)) continue
      if (dueAtMs > this.#nowMs) {
        this.#wakes.push(dueAtMs)
        break
      }
      if (freezesIdle(endpoint)) {
        this.#freeze.push(worker)
        this.#stay = this.#stay.filter(other => other !== worker)
      } else this.#end(worker, 'idle')
      left -= 1
    }
    if (requests?.peak == null || this.#old().length > 0) return
    const enough = Math.max(requests.peak, endpoint.workersMin, wanted)
    const busy = this.#current().filter(({ held }) => held > 0)
    const least = busy.sort((a, b) => a.held - b.held || b.createdAtMs - a.createdAtMs || order(a, b))
    for (const worker of least.slice(0, Math.max(0, busy.length - Math.max(1, enough))))
      this.#end(worker, 'scaled_down')
  }

  #end(worker: WorkerLoad, reason: StopReason): void {
    this.#drain.push({ worker, reason })
    this.#stay = this.#stay.filter(other => other !== worker)
  }

  /** Remaining workers of older versions, in the order in which they end. */
  #old(): WorkerLoad[] {
    return this.#stay
      .filter(worker => this.#isOld(worker))
      .sort((a, b) => a.held - b.held || a.createdAtMs - b.createdAtMs || order(a, b))
  }

  #current(): WorkerLoad[] {
    return this.#stay.filter(worker => !this.#isOld(worker))
  }

  #ready(): WorkerLoad[] {
    return this.#stay.filter(isReady)
  }

  #isOld({ version }: WorkerLoad): boolean {
    return version !== this.#snapshot.endpoint.version
  }
}

/** True if the worker can receive requests. */
function isReady({ state, problem, serves }: WorkerLoad): boolean {
  return state === 'READY' && problem === null && serves !== null
}

/** True if the worker serves requests, or may soon. */
function isUseful(worker: WorkerLoad): boolean {
  return worker.state === 'STARTING' || isReady(worker)
}

function order(a: WorkerLoad, b: WorkerLoad): number {
  return a.id < b.id ? -1 : 1
}
