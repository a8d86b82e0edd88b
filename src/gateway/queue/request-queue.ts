import { choose, isOpen, type NoWorker } from '../../core/balancing/balance.ts'
import type { OpenCircuit } from '../../core/balancing/circuit-breaker.ts'
import {
  type Ejection,
  ejectedForMs,
  ejectionAfter,
  ejectionWhenDue,
  ejectionWhenSent,
  type RequestOutcome,
} from '../../core/balancing/outlier-ejection.ts'
import {
  expectedWaitMs,
  isHopelessWait,
  NO_THROUGHPUT,
  type QueueThroughput,
  throughputAfter,
} from '../../core/balancing/queue-throughput.ts'
import type { TrafficLoad } from '../../core/balancing/traffic.ts'
import type { AppError } from '../../core/errors.ts'
import type { EndpointId, WorkerId } from '../../core/ids.ts'
import type { BalancedEndpoint, Target } from '../../core/workers/socket-address.ts'
import type { Ports } from '../../ports/ports.ts'
import * as refusal from '../entrance/refusal.ts'
import type { QueueSharing, SharedEndpoint } from '../threads/queue-sharing.ts'
import type { WorkerSlot } from '../threads/worker-slots.ts'
import { CircuitBreaker } from './circuit-breaker.ts'
import { LoadNotifier, MIN_IDLE_NOTICE_MS } from './load-notifier.ts'
import { QueuedRequest, RequestList } from './queued-request.ts'
import type { Affinity, Reservation, WorkerRequest } from './reservation.ts'
import { TargetClaim, TrackedTarget } from './tracked-target.ts'
import { WorkerResumer } from './worker-resumer.ts'

/** Limits of request queues. */
export interface RequestQueueLimits {
  /** Maximum number of waiting requests of one endpoint. */
  readonly perEndpoint: number
  /** Maximum number of waiting requests of all endpoints. */
  readonly inAll: number
  /** Maximum wait for any worker, in milliseconds. */
  readonly waitMs: number
  /** Maximum wait for the worker that a request insists on, in milliseconds. */
  readonly namedWaitMs: number
}

/** Dependencies of the request queues of all endpoints. */
export interface SharedQueueState {
  readonly ports: Ports
  readonly limits: RequestQueueLimits
  /** True if an ended worker was one of this endpoint and can be started again under its id. */
  readonly canResume: (endpointId: EndpointId, workerId: WorkerId) => Promise<boolean>
  /** Counts of other threads that send requests to the same workers; null where one thread has all requests. */
  readonly sharing: QueueSharing | null
  /** Called once nothing is left of an endpoint that was removed. */
  readonly discarded: (id: EndpointId) => void
  /** Number of waiting requests of all endpoints. */
  waiting: number
  /** Grows with each request that waits. */
  places: number
  /** Grows with each request that is sent. */
  uses: number
}

const NOBODY: readonly WorkerId[] = []

/**
 * The requests of one endpoint: the number in flight at each worker, and those that wait. All changes are
 * synchronous: a request never waits while a worker that it may have is free and no request came before it.
 */
export class RequestQueue {
  readonly #id
  readonly #shared
  readonly #loadNotifier
  /** Null until the control loops have reported it, and after it was removed. */
  #endpoint: BalancedEndpoint | null = null
  /** Workers that have not ended. */
  #targets: TrackedTarget[] = []
  /** Workers that have ended and still have requests in flight. */
  readonly #ended = new Map<WorkerId, TrackedTarget>()
  /** Requests that take any worker. */
  readonly #anyone = new RequestList()
  /** Requests that insist on a worker. They hold up no other requests, and no others hold them up. */
  readonly #named = new Map<WorkerId, RequestList>()
  readonly #resumer
  readonly #breaker
  #throughput: QueueThroughput = NO_THROUGHPUT
  #freedMs: number | null = null
  /** The word with the number of its waiting requests for other threads; null without one. */
  #waitingWord: number | null

  constructor(id: EndpointId, shared: SharedQueueState) {
    this.#id = id
    this.#shared = shared
    this.#waitingWord = shared.sharing?.waiting.take() ?? null
    this.#loadNotifier = new LoadNotifier(shared.ports, id)
    this.#breaker = new CircuitBreaker(shared.ports.clock)
    this.#resumer = new WorkerResumer({
      misses: workerId => this.#named.has(workerId) && this.#findTarget(workerId) === undefined,
      canResume: workerId => shared.canResume(id, workerId),
      resumes: () => this.#loadNotifier.notify(),
      refuse: (workerId, error) => this.#refuseQueue(this.#named.get(workerId), error),
    })
  }

  /** See {@link Reservations.reserve}. */
  reserve(request: WorkerRequest): Promise<Reservation> {
    const claimed = this.#chooseAndClaim(request)
    if (typeof claimed !== 'string') return Promise.resolve(claimed)
    if (this.#waitingWord === null) return this.#wait(request, claimed)
    // A request of another thread that ends from here on reports its place. One that ended before has left it.
    this.#countWaiting(1)
    const again = this.#chooseAndClaim(request)
    const reservation = typeof again === 'string' ? this.#wait(request, again) : Promise.resolve(again)
    this.#countWaiting(-1)
    return reservation
  }

  /**
   * A request that another thread sent to a worker is over, and is counted no longer.
   * @param slot that of the worker
   */
  released(workerId: WorkerId, slot: WorkerSlot, outcome: RequestOutcome): void {
    const target = this.#findTarget(workerId) ?? this.#ended.get(workerId)
    const isSame = target?.slot?.at === slot.at && target.slot.generation === slot.generation
    if (isSame) this.#afterRelease(target, outcome)
  }

  /** See {@link Targets.keep}. */
  keep(endpoint: BalancedEndpoint, reported: readonly Target[]): void {
    const { sharing, ports } = this.#shared
    const previousTargets = new Map(this.#targets.map(target => [target.workerId, target]))
    const wasOpen = this.#openCount()
    const wasMax = this.#endpoint?.maxConcurrency
    this.#endpoint = endpoint
    this.#targets = reported.map(update => {
      const { workerId } = update
      const known = previousTargets.get(workerId) ?? this.#ended.get(workerId)
      const target = known ?? new TrackedTarget(workerId, ports.clock, sharing?.slots ?? null)
      previousTargets.delete(workerId)
      this.#ended.delete(workerId)
      target.update(update)
      target.rule(endpoint.maxConcurrency)
      return target
    })
    for (const target of previousTargets.values()) this.#end(target)
    sharing?.publish(endpoint.id, this.#toShare(endpoint))
    if (this.#openCount() !== wasOpen || endpoint.maxConcurrency !== wasMax) this.#throughput = NO_THROUGHPUT
    if (endpoint.paused) this.refuseAll(refusal.paused())
    if (this.#mayServe()) this.#breaker.close()
    this.#checkNamed()
    this.#dispatch()
  }

  /** See {@link Targets.circuit}. */
  setCircuit(circuit: OpenCircuit | null): void {
    this.#breaker.close()
    if (circuit === null || this.#mayServe()) return
    this.#breaker.open(circuit)
    for (const queue of [this.#anyone, ...this.#named.values()]) {
      for (const queued of queue.all())
        this.#refuse(queued, refusal.cannotServe(circuit, queued.request.isAnonymous === true))
    }
  }

  /** See {@link Targets.forget}. */
  forget(): void {
    this.#endpoint = null
    this.#breaker.close()
    for (const target of this.#targets) this.#end(target)
    this.#targets = []
    this.#shared.sharing?.publish(this.#id, null)
    this.#throughput = NO_THROUGHPUT
    this.refuseAll(refusal.endpointGone(this.#id))
    this.#discardIfGone()
  }

  /** See {@link Traffic.load}. */
  load(): TrafficLoad {
    const nowMs = this.#shared.ports.clock.now()
    // The workers of a deleted endpoint finish these before they are ended.
    const targets = this.#endpoint === null ? [...this.#ended.values()] : this.#targets
    const workers = targets.map(({ workerId, inFlight, idleSinceMs }) => {
      const sinceMs = this.#named.has(workerId) ? nowMs : idleSinceMs
      return { workerId, inFlight, idleSinceMs: inFlight > 0 ? null : sinceMs }
    })
    const waitingSinceMs = this.#anyone.first?.sinceWallMs ?? null
    const named = this.#named.size === 0 ? NOBODY : [...this.#named.keys()]
    return { waiting: this.#anyone.size, waitingSinceMs, workers, resumed: this.#resumer.workers, named }
  }

  /** See {@link Traffic.busyMs}. */
  busyMs(workerId: WorkerId): number {
    const target = this.#findTarget(workerId) ?? this.#ended.get(workerId)
    return target?.busyMs() ?? 0
  }

  /** Refuses all waiting requests. */
  refuseAll(error: AppError): void {
    this.#refuseQueue(this.#anyone, error)
    for (const queue of [...this.#named.values()]) this.#refuseQueue(queue, error)
  }

  #choose(request: WorkerRequest): TrackedTarget | NoWorker {
    const isNamed = requiredWorker(request) !== null
    if (this.#endpoint === null) return isNamed ? 'not_ready' : 'none_ready'
    const isBehind = !isNamed && this.#anyone.size > this.#anyone.picky
    return isBehind ? 'full' : choose(this.#targets, this.#endpoint, request)
  }

  /** Again as long as other threads take the last place of the chosen worker. */
  #chooseAndClaim(request: WorkerRequest): Reservation | NoWorker {
    for (;;) {
      const choice = this.#choose(request)
      if (typeof choice === 'string') return choice
      const reservation = this.#claim(choice, 0)
      if (reservation !== null) return reservation
    }
  }

  /** Null if another thread took the last place. */
  #claim(target: TrackedTarget, waitedMs: number): Reservation | null {
    const { requestCount } = this.#endpoint!
    if (!target.begin(++this.#shared.uses)) return null
    this.#setEjection(target, ejectionWhenSent(target.ejection))
    this.#loadNotifier.notifyAbove(target.inFlight, requestCount)
    return new TargetClaim(target, waitedMs, this.#onReleased)
  }

  /** A request that was sent to a worker is over. */
  readonly #onReleased = (target: TrackedTarget, outcome: RequestOutcome): void => {
    target.end()
    this.#afterRelease(target, outcome)
  }

  #afterRelease(target: TrackedTarget, outcome: RequestOutcome): void {
    if (!target.ended) this.#setEjection(target, ejectionAfter(target.ejection, outcome))
    if (target.inFlight === 0) this.#becomeIdle(target)
    if (this.#anyone.size > 0) this.#measure()
    if (this.#anyone.size > 0 || this.#named.size > 0) this.#dispatch()
  }

  /** The last request of a worker is over. */
  #becomeIdle(target: TrackedTarget): void {
    if (target.ended) {
      if (this.#ended.delete(target.workerId)) target.close()
      if (this.#endpoint === null) this.#loadNotifier.notify()
      this.#discardIfGone()
    } else if (target.state === 'draining') this.#loadNotifier.notify()
    else this.#loadNotifier.notifyWithin(MIN_IDLE_NOTICE_MS)
  }

  #end(target: TrackedTarget): void {
    target.ended = true
    target.cancelTimer()
    // Before the count is read, which grows no more from here on.
    target.rule()
    if (target.inFlight > 0) this.#ended.set(target.workerId, target)
    else target.close()
  }

  /** Takes a worker out of the rotation, or back into it, and sets the timer that ends an ejection or a trial. */
  #setEjection(target: TrackedTarget, ejection: Ejection): void {
    const previous = target.ejection
    if (ejection === previous) return
    target.ejection = ejection
    target.rule()
    if (ejection.state === previous.state) return
    const { clock, emit } = this.#shared.ports
    const subject = { endpointId: this.#id, workerId: target.workerId }
    target.cancelTimer()
    if (ejection.state === 'in_rotation') emit('worker.trusted', subject)
    if (ejection.state === 'ejected' || ejection.state === 'refusing') {
      emit('worker.avoided', { ...subject, failures: ejection.failures, forMs: ejectedForMs(ejection) })
    }
    if (ejection.state === 'in_rotation' || ejection.state === 'trial_due') return
    target.cancelTimer = clock.after(ejectedForMs(ejection), () => {
      this.#setEjection(target, ejectionWhenDue(target.ejection))
      this.#dispatch()
    })
  }

  #wait(request: WorkerRequest, obstacle: NoWorker): Promise<Reservation> {
    if (request.signal.aborted) return Promise.reject(request.signal.reason)
    const affinity = requiredWorker(request)
    const { limits, ports } = this.#shared
    const longestMs = affinity === null ? limits.waitMs : limits.namedWaitMs
    const maxWaitMs = Math.min(request.maxWaitMs ?? longestMs, longestMs) - (request.waitedMs ?? 0)
    const problem = this.#problem(obstacle, request, maxWaitMs)
    if (problem !== null) {
      this.#discardIfGone()
      return Promise.reject(problem)
    }
    const queued = new QueuedRequest(request, ++this.#shared.places, ports.clock)
    this.#enter(queued, affinity)
    const { signal } = request
    const leave = () => this.#refuse(queued, signal.reason)
    const cancelTimer = ports.clock.after(maxWaitMs, () => this.#refuse(queued, tooLong(affinity)))
    signal.addEventListener('abort', leave, { once: true })
    queued.close = () => {
      cancelTimer()
      signal.removeEventListener('abort', leave)
    }
    if (obstacle === 'ended') this.#resumer.ask(affinity!.workerId)
    this.#loadNotifier.notify()
    return queued.promise
  }

  /** Reason why a request may not wait; null if it may. */
  #problem(obstacle: NoWorker, request: WorkerRequest, maxWaitMs: number): AppError | null {
    if (obstacle === 'paused') return refusal.paused()
    if (obstacle === 'gone') return refusal.workerGone()
    const affinity = requiredWorker(request)
    const circuit = affinity === null ? this.#breaker.current : null
    if (circuit !== null) return refusal.cannotServe(circuit, request.isAnonymous === true)
    if (maxWaitMs <= 0) return tooLong(affinity)
    const { limits, waiting } = this.#shared
    const isGrowing = this.#targets.some(({ state }) => state === 'starting')
    const expectedMs = isGrowing ? null : expectedWaitMs(this.#throughput, this.#anyone.size)
    if (this.#size() >= limits.perEndpoint)
      return refusal.queueFull(limits.perEndpoint, expectedWaitMs(this.#throughput, 0))
    if (waiting >= limits.inAll) return refusal.serverFull()
    const isHopeless = affinity === null && isHopelessWait(expectedMs, maxWaitMs)
    return isHopeless ? refusal.tooSlow(expectedMs!, maxWaitMs) : null
  }

  /** True if a worker is ready, or may soon be. */
  #mayServe(): boolean {
    return this.#targets.some(({ state }) => state !== 'draining')
  }

  #enter(queued: QueuedRequest, affinity: Affinity | null): void {
    this.#shared.waiting += 1
    this.#countWaiting(1)
    if (affinity === null) {
      if (this.#anyone.size === 0) this.#freedMs = null
      this.#anyone.push(queued)
      return
    }
    const queue = this.#named.get(affinity.workerId) ?? new RequestList()
    this.#named.set(affinity.workerId, queue)
    queue.push(queued)
  }

  /** Removes a request from its queue. */
  #leave(queued: QueuedRequest): void {
    const { queue, request } = queued
    this.#shared.waiting -= 1
    this.#countWaiting(-1)
    queue!.remove(queued)
    queued.close()
    const workerId = requiredWorker(request)?.workerId
    if (workerId === undefined || queue!.size > 0) return
    this.#named.delete(workerId)
    this.#resumer.drop(workerId)
  }

  #refuse(queued: QueuedRequest, reason: unknown): void {
    if (queued.queue === null) return
    this.#leave(queued)
    queued.reject(reason)
    this.#loadNotifier.notifyWithin(MIN_IDLE_NOTICE_MS)
    this.#discardIfGone()
    // The request may have held up another one that does not avoid the same workers.
    if (this.#anyone.picky > 0) this.#dispatch()
  }

  #refuseQueue(queue: RequestList | undefined, reason: unknown): void {
    for (const queued of queue?.all() ?? []) this.#refuse(queued, reason)
  }

  /** Dispatches waiting requests to free workers, in the order of arrival. */
  #dispatch(): void {
    for (let next = this.#next(); next !== null; next = this.#next()) {
      const { queued, target } = next
      const reservation = this.#claim(target, this.#shared.ports.clock.monotonic() - queued.sinceMs)
      if (reservation === null) continue
      this.#leave(queued)
      queued.resolve(reservation)
    }
  }

  #next(): { readonly queued: QueuedRequest; readonly target: TrackedTarget } | null {
    if (this.#endpoint === null) return null
    let next = this.#nextUnnamed(this.#endpoint)
    for (const { first } of this.#named.values()) {
      if (first === null || (next !== null && next.queued.order < first.order)) continue
      const target = choose(this.#targets, this.#endpoint, first.request)
      if (typeof target !== 'string') next = { queued: first, target }
    }
    return next
  }

  #nextUnnamed(endpoint: BalancedEndpoint): { readonly queued: QueuedRequest; readonly target: TrackedTarget } | null {
    for (let queued = this.#anyone.first; queued !== null; queued = queued.after) {
      const target = choose(this.#targets, endpoint, queued.request)
      if (typeof target !== 'string') return { queued, target }
      // No worker is free for the requests behind it either, unless it avoids some workers.
      if (!queued.isPicky) return null
    }
    return null
  }

  /** After a change of workers: some that requests insist on may run again, or have ended. */
  #checkNamed(): void {
    for (const [workerId, queue] of [...this.#named]) {
      const target = this.#findTarget(workerId)
      if (target !== undefined) this.#resumer.drop(workerId)
      if (target !== undefined && target.state !== 'draining') continue
      for (const queued of queue.all()) {
        if (requiredWorker(queued.request)?.kind === 'strict') this.#refuse(queued, refusal.workerGone())
      }
      this.#resumer.ask(workerId)
    }
  }

  #measure(): void {
    const nowMs = this.#shared.ports.clock.monotonic()
    if (this.#freedMs !== null) this.#throughput = throughputAfter(this.#throughput, nowMs - this.#freedMs)
    this.#freedMs = nowMs
  }

  /** Discards the queue of a forgotten endpoint once its last request is over. */
  #discardIfGone(): void {
    if (this.#endpoint !== null || this.#size() > 0 || this.#ended.size > 0) return
    this.#loadNotifier.close()
    if (this.#waitingWord !== null) this.#shared.sharing?.waiting.giveBack(this.#waitingWord)
    this.#waitingWord = null
    this.#shared.discarded(this.#id)
  }

  /** The endpoint for threads that choose workers by themselves; null where a worker has no slot. */
  #toShare(endpoint: BalancedEndpoint): SharedEndpoint | null {
    if (this.#waitingWord === null) return null
    const targets = this.#targets.map(target => {
      const { workerId, version, state, servedAt, slot } = target
      return { workerId, version, state, servedAt, slot }
    })
    const isWhole = targets.every(target => target.slot !== null)
    return isWhole ? { endpoint, waitingWord: this.#waitingWord, targets: targets as SharedEndpoint['targets'] } : null
  }

  #countWaiting(amount: number): void {
    if (this.#waitingWord !== null) this.#shared.sharing?.waiting.add(this.#waitingWord, amount)
  }

  #findTarget(workerId: WorkerId): TrackedTarget | undefined {
    return this.#targets.find(target => target.workerId === workerId)
  }

  #openCount(): number {
    return this.#targets.filter(isOpen).length
  }

  #size(): number {
    let size = this.#anyone.size
    for (const queue of this.#named.values()) size += queue.size
    return size
  }
}

function requiredWorker({ affinity }: WorkerRequest): Affinity | null {
  return affinity === null || affinity.kind === 'soft' ? null : affinity
}

function tooLong(affinity: Affinity | null): AppError {
  return affinity === null ? refusal.noWorkers() : refusal.workerTimeout()
}
