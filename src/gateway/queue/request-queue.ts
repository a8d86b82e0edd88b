import {
  choose,
  type Ejection,
  isOpen,
  type NoWorker,
  outForMs,
  type RequestOutcome,
  trustAfter,
  trustWhenDue,
  trustWhenSent,
} from '../../core/balancing/balance.ts'
import type { Outage } from '../../core/balancing/circuit-breaker.ts'
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
import { BreakerCache } from './breaker-cache.ts'
import { TargetClaim } from './claim.ts'
import { LoadNotifier } from './load-notifier.ts'
import { QueuedRequest, WaitQueue } from './queued-request.ts'
import type { Affinity, Reservation, WorkerRequest } from './reservation.ts'
import { Resuming } from './resuming.ts'
import { TrackedTarget } from './tracked-target.ts'

/** How many requests may wait, and for how long. */
export interface RequestQueueLimits {
  /** Most requests in the line of one endpoint. */
  readonly perEndpoint: number
  /** Most requests in the lines of all endpoints. */
  readonly inAll: number
  /** For how long a request may wait for any worker, in milliseconds. */
  readonly waitMs: number
  /** For how long a request may wait for the worker that it insists on, in milliseconds. */
  readonly namedWaitMs: number
}

/** What the lines of all endpoints share. */
export interface Shared {
  readonly ports: Pick<Ports, 'clock' | 'notifier' | 'emit'>
  readonly limits: RequestQueueLimits
  /** Whether a worker that is not there was one of this endpoint and can be started again under its id. */
  readonly canResume: (endpointId: EndpointId, workerId: WorkerId) => Promise<boolean>
  /** Nothing is left of an endpoint that is not kept any more. */
  readonly emptied: (id: EndpointId) => void
  /** Requests in all lines. */
  waiting: number
  /** Grows with each request that waits. */
  places: number
  /** Grows with each request that is sent. */
  uses: number
}

/** So often it is told that workers have nothing to do, at most. */
const IDLE_NEWS_MS = 1_000
/** So often it is told that workers have more to do than they should, at most. */
const LOAD_NEWS_MS = 100

/**
 * The requests of one endpoint: how many are in flight at each worker, and those that wait. Everything here happens at once, so
 * that at each instant nobody waits while a worker that it may have has room and nobody was there before it.
 */
export class RequestQueue {
  readonly #id: EndpointId
  readonly #shared: Shared
  readonly #news: LoadNotifier
  /** Null while it was not told of. */
  #endpoint: BalancedEndpoint | null = null
  /** Workers that have not ended. */
  #slots: TrackedTarget[] = []
  /** Workers that have ended, with requests that have not. */
  readonly #ended = new Map<WorkerId, TrackedTarget>()
  /** Those that take any worker. */
  readonly #anyone = new WaitQueue()
  /** Those that insist on one. They are in nobody's way, and nobody is in theirs. */
  readonly #named = new Map<WorkerId, WaitQueue>()
  readonly #resuming: Resuming
  readonly #outage: BreakerCache
  #pace: QueueThroughput = NO_THROUGHPUT
  #freedMs: number | null = null

  constructor(id: EndpointId, shared: Shared) {
    this.#id = id
    this.#shared = shared
    this.#news = new LoadNotifier(shared.ports, id)
    this.#outage = new BreakerCache(shared.ports.clock)
    this.#resuming = new Resuming({
      misses: workerId => this.#named.has(workerId) && this.#slotOf(workerId) === undefined,
      canResume: workerId => shared.canResume(id, workerId),
      resumes: () => this.#news.now(),
      refuse: (workerId, error) => this.#refuseAllOf(this.#named.get(workerId), error),
    })
  }

  /** See {@link Reservations.reserve}. */
  reserve(wanted: WorkerRequest): Promise<Reservation> {
    const found = this.#find(wanted)
    if (typeof found === 'string') return this.#wait(wanted, found)
    return Promise.resolve(this.#claim(found, 0))
  }

  /** See {@link Targets.keep}. */
  keep(endpoint: BalancedEndpoint, targets: readonly Target[]): void {
    const nowMs = this.#shared.ports.clock.now()
    const before = new Map(this.#slots.map(slot => [slot.workerId, slot]))
    const wasOpen = this.#openCount()
    const wasMax = this.#endpoint?.maxConcurrency
    this.#endpoint = endpoint
    this.#slots = targets.map(target => {
      const slot =
        before.get(target.workerId) ?? this.#ended.get(target.workerId) ?? new TrackedTarget(target.workerId, nowMs)
      before.delete(target.workerId)
      this.#ended.delete(target.workerId)
      slot.tell(target, nowMs)
      return slot
    })
    for (const slot of before.values()) this.#end(slot)
    if (this.#openCount() !== wasOpen || endpoint.maxConcurrency !== wasMax) this.#pace = NO_THROUGHPUT
    if (endpoint.paused) this.refuseAll(refusal.paused())
    if (this.#mayServe()) this.#outage.end()
    this.#lookAtNamed()
    this.#handOut()
  }

  /** See {@link Targets.outage}. */
  outage(why: Outage | null): void {
    this.#outage.end()
    if (why === null || this.#mayServe()) return
    this.#outage.begin(why)
    for (const queue of [this.#anyone, ...this.#named.values()]) {
      for (const waiter of queue.all())
        this.#refuse(waiter, refusal.cannotServe(why, waiter.wanted.isStranger === true))
    }
  }

  /** See {@link Targets.forget}. */
  forget(): void {
    this.#endpoint = null
    this.#outage.end()
    for (const slot of this.#slots) this.#end(slot)
    this.#slots = []
    this.#pace = NO_THROUGHPUT
    this.refuseAll(refusal.endpointGone(this.#id))
    this.#tidy()
  }

  /** See {@link Traffic.load}. */
  load(): TrafficLoad {
    const nowMs = this.#shared.ports.clock.now()
    // Whoever ends the workers of an endpoint that is gone lets them finish these.
    const slots = this.#endpoint === null ? [...this.#ended.values()] : this.#slots
    const workers = slots.map(({ workerId, inFlight, idleSinceMs }) => {
      const sinceMs = this.#named.has(workerId) ? nowMs : idleSinceMs
      return { workerId, inFlight, idleSinceMs: inFlight > 0 ? null : sinceMs }
    })
    const waitingSinceMs = this.#anyone.first?.sinceWallMs ?? null
    return { waiting: this.#anyone.size, waitingSinceMs, workers, resumed: this.#resuming.workers }
  }

  /** See {@link Traffic.busyMs}. */
  busyMs(workerId: WorkerId): number {
    const slot = this.#slotOf(workerId) ?? this.#ended.get(workerId)
    return slot?.busyMs(this.#shared.ports.clock.monotonic()) ?? 0
  }

  /** Nobody waits any more. */
  refuseAll(error: AppError): void {
    this.#refuseAllOf(this.#anyone, error)
    for (const queue of [...this.#named.values()]) this.#refuseAllOf(queue, error)
  }

  #find(wanted: WorkerRequest): TrackedTarget | NoWorker {
    const isNamed = insistsOn(wanted) !== null
    if (this.#endpoint === null) return isNamed ? 'not_ready' : 'none_ready'
    const isBehind = !isNamed && this.#anyone.size > this.#anyone.picky
    return isBehind ? 'full' : choose(this.#slots, this.#endpoint, wanted)
  }

  #claim(slot: TrackedTarget, waitedMs: number): Reservation {
    const { requestCount } = this.#endpoint!
    slot.begin(this.#shared.ports.clock.monotonic())
    slot.usedAt = ++this.#shared.uses
    this.#trust(slot, trustWhenSent(slot.trust))
    const above = slot.inFlight - requestCount
    if (above > 0 && (requestCount === 1 || above % requestCount === 1)) this.#news.within(LOAD_NEWS_MS)
    return new TargetClaim(slot, waitedMs, this.#released)
  }

  /** The request that was sent to a worker is over. */
  readonly #released = (slot: TrackedTarget, outcome: RequestOutcome): void => {
    slot.end(this.#shared.ports.clock.monotonic())
    if (!slot.ended) this.#trust(slot, trustAfter(slot.trust, outcome))
    if (slot.inFlight === 0) this.#rest(slot)
    if (this.#anyone.size > 0) this.#measure()
    if (this.#anyone.size > 0 || this.#named.size > 0) this.#handOut()
  }

  /** A worker has nothing more to do. */
  #rest(slot: TrackedTarget): void {
    slot.idleSinceMs = this.#shared.ports.clock.now()
    if (slot.ended) {
      this.#ended.delete(slot.workerId)
      if (this.#endpoint === null) this.#news.now()
      this.#tidy()
    } else if (slot.state === 'draining') this.#news.now()
    else this.#news.within(IDLE_NEWS_MS)
  }

  #end(slot: TrackedTarget): void {
    slot.ended = true
    slot.cancelTimer()
    if (slot.inFlight > 0) this.#ended.set(slot.workerId, slot)
  }

  /** Out of the rotation, or back into it when its time has come. */
  #trust(slot: TrackedTarget, trust: Ejection): void {
    const before = slot.trust
    if (trust === before) return
    slot.trust = trust
    if (trust.standing === before.standing) return
    const { clock, emit } = this.#shared.ports
    const about = { endpointId: this.#id, workerId: slot.workerId }
    slot.cancelTimer()
    if (trust.standing === 'good') emit('worker.trusted', about)
    if (trust.standing === 'out') {
      emit('worker.avoided', { ...about, failures: trust.failures, forMs: outForMs(trust) })
    }
    if (trust.standing === 'good' || trust.standing === 'due') return
    slot.cancelTimer = clock.after(outForMs(trust), () => {
      this.#trust(slot, trustWhenDue(slot.trust))
      this.#handOut()
    })
  }

  #wait(wanted: WorkerRequest, found: NoWorker): Promise<Reservation> {
    if (wanted.signal.aborted) return Promise.reject(wanted.signal.reason)
    const affinity = insistsOn(wanted)
    const { limits, ports } = this.#shared
    const longestMs = affinity === null ? limits.waitMs : limits.namedWaitMs
    const patienceMs = Math.min(wanted.patienceMs ?? longestMs, longestMs)
    const problem = this.#problem(found, wanted, patienceMs)
    if (problem !== null) {
      this.#tidy()
      return Promise.reject(problem)
    }
    const waiter = new QueuedRequest(wanted, ++this.#shared.places, ports.clock)
    this.#enter(waiter, affinity)
    const { signal } = wanted
    const leave = () => this.#refuse(waiter, signal.reason)
    const cancelTimer = ports.clock.after(patienceMs, () => this.#refuse(waiter, tooLong(affinity)))
    signal.addEventListener('abort', leave, { once: true })
    waiter.close = () => {
      cancelTimer()
      signal.removeEventListener('abort', leave)
    }
    if (found === 'ended') this.#resuming.ask(affinity!.workerId)
    this.#news.now()
    return waiter.promise
  }

  /** Why a request may not wait. */
  #problem(found: NoWorker, wanted: WorkerRequest, patienceMs: number): AppError | null {
    if (found === 'paused') return refusal.paused()
    if (found === 'gone') return refusal.workerGone()
    const affinity = insistsOn(wanted)
    const outage = affinity === null ? this.#outage.current : null
    if (outage !== null) return refusal.cannotServe(outage, wanted.isStranger === true)
    if (patienceMs <= 0) return tooLong(affinity)
    const { limits, waiting } = this.#shared
    const isGrowing = this.#slots.some(({ state }) => state === 'starting')
    const expectedMs = isGrowing ? null : expectedWaitMs(this.#pace, this.#anyone.size)
    if (this.#size() >= limits.perEndpoint) return refusal.lineFull(limits.perEndpoint, expectedWaitMs(this.#pace, 0))
    if (waiting >= limits.inAll) return refusal.serverFull()
    const isHopeless = affinity === null && isHopelessWait(expectedMs, patienceMs)
    return isHopeless ? refusal.tooSlow(expectedMs!, patienceMs) : null
  }

  /** Whether there is a worker that is ready, or may soon be. */
  #mayServe(): boolean {
    return this.#slots.some(({ state }) => state !== 'draining')
  }

  #enter(waiter: QueuedRequest, affinity: Affinity | null): void {
    this.#shared.waiting += 1
    if (affinity === null) {
      if (this.#anyone.size === 0) this.#freedMs = null
      this.#anyone.push(waiter)
      return
    }
    const queue = this.#named.get(affinity.workerId) ?? new WaitQueue()
    this.#named.set(affinity.workerId, queue)
    queue.push(waiter)
  }

  /** It is in no line any more. */
  #leave(waiter: QueuedRequest): void {
    const { queue, wanted } = waiter
    this.#shared.waiting -= 1
    queue!.remove(waiter)
    waiter.close()
    const workerId = insistsOn(wanted)?.workerId
    if (workerId === undefined || queue!.size > 0) return
    this.#named.delete(workerId)
    this.#resuming.drop(workerId)
  }

  #refuse(waiter: QueuedRequest, reason: unknown): void {
    if (waiter.queue === null) return
    this.#leave(waiter)
    waiter.reject(reason)
    this.#news.within(IDLE_NEWS_MS)
    this.#tidy()
    // It may have been in the way of somebody who does not want the same workers.
    if (this.#anyone.picky > 0) this.#handOut()
  }

  #refuseAllOf(queue: WaitQueue | undefined, reason: unknown): void {
    for (const waiter of queue?.all() ?? []) this.#refuse(waiter, reason)
  }

  /** Gives out all places that somebody waits for, to whoever was there first. */
  #handOut(): void {
    for (let next = this.#next(); next !== null; next = this.#next()) {
      const { waiter, slot } = next
      this.#leave(waiter)
      waiter.resolve(this.#claim(slot, this.#shared.ports.clock.monotonic() - waiter.sinceMs))
    }
  }

  #next(): { readonly waiter: QueuedRequest; readonly slot: TrackedTarget } | null {
    if (this.#endpoint === null) return null
    let next = this.#nextOfAnyone(this.#endpoint)
    for (const { first } of this.#named.values()) {
      if (first === null || (next !== null && next.waiter.place < first.place)) continue
      const slot = choose(this.#slots, this.#endpoint, first.wanted)
      if (typeof slot !== 'string') next = { waiter: first, slot }
    }
    return next
  }

  #nextOfAnyone(endpoint: BalancedEndpoint): { readonly waiter: QueuedRequest; readonly slot: TrackedTarget } | null {
    for (let waiter = this.#anyone.first; waiter !== null; waiter = waiter.after) {
      const slot = choose(this.#slots, endpoint, waiter.wanted)
      if (typeof slot !== 'string') return { waiter, slot }
      // What keeps it from being served keeps all behind it, unless it does not want some workers.
      if (!waiter.isPicky) return null
    }
    return null
  }

  /** Workers have changed: some that requests insist on may be there again, or gone. */
  #lookAtNamed(): void {
    for (const [workerId, queue] of [...this.#named]) {
      const slot = this.#slotOf(workerId)
      if (slot !== undefined) this.#resuming.drop(workerId)
      if (slot !== undefined && slot.state !== 'draining') continue
      for (const waiter of queue.all()) {
        if (insistsOn(waiter.wanted)?.kind === 'strict') this.#refuse(waiter, refusal.workerGone())
      }
      this.#resuming.ask(workerId)
    }
  }

  #measure(): void {
    const nowMs = this.#shared.ports.clock.monotonic()
    if (this.#freedMs !== null) this.#pace = throughputAfter(this.#pace, nowMs - this.#freedMs)
    this.#freedMs = nowMs
  }

  /** Nothing is kept of an endpoint that is not there, once its last request is over. */
  #tidy(): void {
    if (this.#endpoint !== null || this.#size() > 0 || this.#ended.size > 0) return
    this.#news.close()
    this.#shared.emptied(this.#id)
  }

  #slotOf(workerId: WorkerId): TrackedTarget | undefined {
    return this.#slots.find(slot => slot.workerId === workerId)
  }

  #openCount(): number {
    return this.#slots.filter(isOpen).length
  }

  #size(): number {
    let size = this.#anyone.size
    for (const queue of this.#named.values()) size += queue.size
    return size
  }
}

function insistsOn({ affinity }: WorkerRequest): Affinity | null {
  return affinity === null || affinity.kind === 'soft' ? null : affinity
}

function tooLong(affinity: Affinity | null): AppError {
  return affinity === null ? refusal.noWorkers() : refusal.workerTimeout()
}
