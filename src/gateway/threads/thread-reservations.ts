import { choose } from '../../core/balancing/balance.ts'
import type { Ejection, RequestOutcome } from '../../core/balancing/outlier-ejection.ts'
import type { EndpointId, WorkerId } from '../../core/ids.ts'
import type { BalancedEndpoint, ServedAt, Target, TargetState } from '../../core/workers/socket-address.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Notifier } from '../../ports/notifier.ts'
import { serverStopping } from '../entrance/refusal.ts'
import { LoadNotifier, MIN_IDLE_NOTICE_MS } from '../queue/load-notifier.ts'
import type { Reservation, Reservations, WorkerRequest } from '../queue/reservation.ts'
import type { PackedError, SentReservation, ThreadMessage } from './messages.ts'
import { unpackError } from './messages.ts'
import type { SharedEndpoint } from './queue-sharing.ts'
import type { WaitingWords, WorkerSlot, WorkerSlots } from './worker-slots.ts'

/** Number of choices, each after another thread took the last place, before the deciding thread decides. */
const TRIES = 8

/** An endpoint whose workers this thread chooses itself. */
interface KnownEndpoint {
  readonly endpoint: BalancedEndpoint
  readonly waitingWord: number
  readonly targets: readonly SlotTarget[]
  readonly load: LoadNotifier
}

interface Asked {
  readonly resolve: (reservation: Reservation) => void
  readonly reject: (error: unknown) => void
  readonly close: () => void
}

/**
 * Claims workers in a thread that reads HTTP: by the counts in shared memory where a worker has a place and no request
 * waits, else by a question to the deciding thread.
 */
export class ThreadReservations implements Reservations {
  readonly #clock
  readonly #notifier
  readonly #slots
  readonly #waiting
  readonly #post
  readonly #endpoints = new Map<EndpointId, KnownEndpoint>()
  readonly #asked = new Map<number, Asked>()
  #numbers = 0
  #isClosed = false

  constructor(parts: {
    readonly clock: Clock
    readonly notifier: Pick<Notifier, 'publish'>
    readonly slots: WorkerSlots
    readonly waiting: WaitingWords
    readonly post: (message: ThreadMessage) => void
  }) {
    this.#clock = parts.clock
    this.#notifier = parts.notifier
    this.#slots = parts.slots
    this.#waiting = parts.waiting
    this.#post = parts.post
  }

  /** @param shared null if the deciding thread chooses the workers of the endpoint */
  keep(id: EndpointId, shared: SharedEndpoint | null): void {
    const previous = this.#endpoints.get(id)
    if (shared === null) {
      previous?.load.close()
      this.#endpoints.delete(id)
      return
    }
    const { endpoint, waitingWord } = shared
    const load = previous?.load ?? new LoadNotifier({ clock: this.#clock, notifier: this.#notifier }, id)
    const targets = shared.targets.map(target => new SlotTarget(target, target.slot, this.#slots))
    this.#endpoints.set(id, { endpoint, waitingWord, targets, load })
  }

  /** Refuses new requests, since the server stops. The deciding thread refuses those that wait. */
  stop(): void {
    this.#isClosed = true
  }

  /** Refuses those that wait as well, since the deciding thread answers no more. */
  close(): void {
    this.stop()
    for (const [id, { reject, close }] of this.#asked) {
      this.#asked.delete(id)
      close()
      reject(serverStopping())
    }
    for (const { load } of this.#endpoints.values()) load.close()
    this.#endpoints.clear()
  }

  reserve(request: WorkerRequest): Promise<Reservation> {
    if (this.#isClosed) return Promise.reject(serverStopping())
    const known = this.#endpoints.get(request.endpointId)
    const claimed = known === undefined ? null : this.#claim(known, request)
    return claimed === null ? this.#ask(request) : Promise.resolve(claimed)
  }

  /** The deciding thread has a worker for a request that waited. */
  reserved(id: number, reservation: SentReservation): void {
    const asked = this.#asked.get(id)
    this.#asked.delete(id)
    const { slot } = reservation
    const release = (outcome: RequestOutcome) => {
      if (slot === null) this.#post({ kind: 'release', id, outcome })
      else this.#end(reservation.endpointId, reservation.workerId, slot, outcome)
    }
    if (asked === undefined) {
      release('aborted')
      return
    }
    asked.close()
    asked.resolve(new ThreadReservation(reservation, release))
  }

  /** The deciding thread refused a request. False for a number of another question. */
  refused(id: number, error: PackedError): boolean {
    const asked = this.#asked.get(id)
    if (asked === undefined) return false
    this.#asked.delete(id)
    asked.close()
    asked.reject(unpackError(error))
    return true
  }

  /** A number that no other question of this thread has. */
  nextNumber(): number {
    this.#numbers += 1
    return this.#numbers
  }

  /** Null if the deciding thread has to decide. */
  #claim(known: KnownEndpoint, request: WorkerRequest): Reservation | null {
    const { affinity, avoid } = request
    if (avoid.length > 0 || (affinity !== null && affinity.kind !== 'soft')) return null
    const { endpoint, waitingWord, targets, load } = known
    for (let tries = 0; tries < TRIES && this.#waiting.get(waitingWord) === 0; tries += 1) {
      const target = choose(targets, endpoint, request)
      if (typeof target === 'string') return null
      const { workerId, slot } = target
      if (!this.#slots.begin(slot, this.#clock.monotonic(), true)) {
        // Its trial, or another rule, is for the deciding thread.
        if (target.ejection.state !== 'in_rotation') return null
        continue
      }
      load.notifyAbove(target.inFlight, endpoint.requestCount)
      const reservation = { workerId, servedAt: target.servedAt!, waitedMs: 0 }
      return new ThreadReservation(reservation, outcome => this.#end(endpoint.id, workerId, slot, outcome))
    }
    return null
  }

  #ask(request: WorkerRequest): Promise<Reservation> {
    const { endpointId, affinity, avoid, maxWaitMs, waitedMs, isAnonymous = false, signal } = request
    if (signal.aborted) return Promise.reject(signal.reason)
    const id = this.nextNumber()
    return new Promise((resolve, reject) => {
      const leave = () => {
        // A worker that comes all the same is released at once.
        if (!this.#asked.delete(id)) return
        this.#post({ kind: 'leave', id })
        reject(signal.reason)
      }
      signal.addEventListener('abort', leave, { once: true })
      const close = () => signal.removeEventListener('abort', leave)
      this.#asked.set(id, { resolve, reject, close })
      this.#post({ kind: 'reserve', id, endpointId, affinity, avoid, maxWaitMs, waitedMs, isAnonymous })
    })
  }

  #end(endpointId: EndpointId, workerId: WorkerId, slot: WorkerSlot, outcome: RequestOutcome): void {
    const left = this.#slots.end(slot, this.#clock.monotonic())
    const known = this.#endpoints.get(endpointId)
    const isFailure = outcome !== 'answered' && outcome !== 'aborted'
    const isAwaited = known === undefined || this.#waiting.get(known.waitingWord) > 0
    if (isFailure || isAwaited || this.#slots.isWatched(slot)) {
      this.#post({ kind: 'released', endpointId, workerId, slot, outcome })
    } else if (left === 0) known.load.notifyWithin(MIN_IDLE_NOTICE_MS)
  }
}

/** A worker with its counts in shared memory. */
class SlotTarget implements Target {
  readonly workerId: WorkerId
  readonly version: number
  readonly state: TargetState
  readonly servedAt: ServedAt | null
  readonly slot: WorkerSlot
  readonly #slots

  constructor({ workerId, version, state, servedAt }: Target, slot: WorkerSlot, slots: WorkerSlots) {
    this.workerId = workerId
    this.version = version
    this.state = state
    this.servedAt = servedAt
    this.slot = slot
    this.#slots = slots
  }

  get inFlight(): number {
    return this.#slots.inFlight(this.slot)
  }

  get usedAt(): number {
    return this.#slots.usedAt(this.slot)
  }

  get ejection(): Ejection {
    return this.#slots.ejection(this.slot)
  }
}

class ThreadReservation implements Reservation {
  readonly workerId: WorkerId
  readonly servedAt: ServedAt
  readonly waitedMs: number
  readonly #released
  #isOver = false

  constructor(
    { workerId, servedAt, waitedMs }: Omit<Reservation, 'release'>,
    released: (outcome: RequestOutcome) => void,
  ) {
    this.workerId = workerId
    this.servedAt = servedAt
    this.waitedMs = waitedMs
    this.#released = released
  }

  release(outcome: RequestOutcome): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#released(outcome)
  }
}
