/**
 * Requests in flight of each worker, in memory that all threads share: one slot a worker. The deciding thread gives
 * slots to workers and takes them back. Each thread begins and ends requests.
 */
import { type Ejection, NOT_EJECTED } from '../../core/balancing/outlier-ejection.ts'
import { lock, unlock } from './shared-lock.ts'

/** The number of a slot, and how often it had another worker before. */
export interface WorkerSlot {
  readonly at: number
  readonly generation: number
}

/** Rules of a slot, as the deciding thread has them. */
export interface SlotRules {
  /** True if new requests may begin. */
  readonly isOpen: boolean
  /** Maximum number of requests in flight; null for no limit. */
  readonly limit: number | null
  /** True if the deciding thread needs a message at the end of each request. */
  readonly isWatched: boolean
  readonly ejection: Ejection
}

/** The words of a slot. Times are in the same 64 bytes, as floating-point numbers. */
const LOCK = 0
const GENERATION = 1
const IN_FLIGHT = 2
const IS_OPEN = 3
const LIMIT = 4
const IS_WATCHED = 5
const ROTATION = 6
const WORDS = 16
const USED_AT = 4
const BUSY_SINCE = 5
const BUSY_MS = 6
const IDLE_SINCE = 7
const TIMES = 8

const NO_LIMIT = -1
/** The ejections by the word of a slot. */
const EJECTIONS: readonly Ejection[] = [
  NOT_EJECTED,
  { ...NOT_EJECTED, state: 'ejected' },
  { ...NOT_EJECTED, state: 'refusing' },
  { ...NOT_EJECTED, state: 'trial_due' },
  { ...NOT_EJECTED, state: 'on_trial' },
]

/** Size of the memory for a number of workers, in bytes. */
export function workerSlotBytes(workers: number): number {
  return HEAD_BYTES + workers * WORDS * 4
}

/** Bytes before the slots, with the number of uses of all workers. */
const HEAD_BYTES = 64

/** All slots. Times are monotonic milliseconds, which are the same in all threads of a process. */
export class WorkerSlots {
  readonly #uses
  readonly #words
  readonly #times
  readonly #free: number[] = []
  #used = 0

  constructor(memory: SharedArrayBuffer) {
    this.#uses = new BigInt64Array(memory, 0, 1)
    this.#words = new Int32Array(memory, HEAD_BYTES)
    this.#times = new Float64Array(memory, HEAD_BYTES)
  }

  /** A slot for a worker that is idle since now; null if all are taken. For the deciding thread alone. */
  take(nowMs: number): WorkerSlot | null {
    const at = this.#free.pop() ?? this.#used
    if (at * WORDS >= this.#words.length) return null
    if (at === this.#used) this.#used += 1
    const generation = Atomics.load(this.#words, at * WORDS + GENERATION)
    this.#set(at, IN_FLIGHT, 0)
    this.restart({ at, generation }, nowMs)
    return { at, generation }
  }

  /** Takes a slot back once its worker is gone and has no requests. For the deciding thread alone. */
  giveBack(slot: WorkerSlot): void {
    lock(this.#words, slot.at * WORDS + LOCK)
    this.#set(slot.at, IS_OPEN, 0)
    this.#set(slot.at, GENERATION, slot.generation + 1)
    unlock(this.#words, slot.at * WORDS + LOCK)
    this.#free.push(slot.at)
  }

  /** The worker is a new process under its earlier id. */
  restart({ at }: WorkerSlot, nowMs: number): void {
    const times = at * TIMES
    this.#times[times + USED_AT] = 0
    this.#times[times + BUSY_MS] = 0
    this.#times[times + IDLE_SINCE] = nowMs
  }

  /** Sets the rules of a slot. */
  rule({ at }: WorkerSlot, { isOpen, limit, isWatched, ejection }: SlotRules): void {
    const words = at * WORDS
    lock(this.#words, words + LOCK)
    this.#set(at, IS_OPEN, isOpen ? 1 : 0)
    this.#set(at, LIMIT, limit ?? NO_LIMIT)
    this.#set(at, IS_WATCHED, isWatched ? 1 : 0)
    this.#set(
      at,
      ROTATION,
      EJECTIONS.findIndex(({ state }) => state === ejection.state),
    )
    unlock(this.#words, words + LOCK)
  }

  inFlight({ at }: WorkerSlot): number {
    return Atomics.load(this.#words, at * WORDS + IN_FLIGHT)
  }

  /** Grows with each use, over all workers; 0 before the first one. */
  usedAt({ at }: WorkerSlot): number {
    return this.#times[at * TIMES + USED_AT]!
  }

  /** The ejection without its numbers. */
  ejection({ at }: WorkerSlot): Ejection {
    return EJECTIONS[Atomics.load(this.#words, at * WORDS + ROTATION)] ?? NOT_EJECTED
  }

  /** True if the deciding thread needs a message at the end of each request. */
  isWatched({ at }: WorkerSlot): boolean {
    return Atomics.load(this.#words, at * WORDS + IS_WATCHED) === 1
  }

  /** Start of the idle time. */
  idleSince({ at }: WorkerSlot): number {
    return this.#times[at * TIMES + IDLE_SINCE]!
  }

  /** Moves the start of the idle time of an idle worker. */
  becameIdle({ at }: WorkerSlot, nowMs: number): void {
    this.#times[at * TIMES + IDLE_SINCE] = nowMs
  }

  /**
   * Counts one more request in flight. False if the slot has another worker, takes no requests, or is full.
   * @param isInRotation true to begin only at a worker in the rotation
   */
  begin({ at, generation }: WorkerSlot, nowMs: number, isInRotation: boolean): boolean {
    const words = at * WORDS
    const times = at * TIMES
    lock(this.#words, words + LOCK)
    const inFlight = this.#words[words + IN_FLIGHT]!
    const limit = this.#words[words + LIMIT]!
    const may =
      this.#words[words + GENERATION] === generation &&
      this.#words[words + IS_OPEN] === 1 &&
      (limit === NO_LIMIT || inFlight < limit) &&
      (!isInRotation || this.#words[words + ROTATION] === 0)
    if (may) {
      if (inFlight === 0) this.#times[times + BUSY_SINCE] = nowMs
      this.#times[times + USED_AT] = Number(Atomics.add(this.#uses, 0, 1n)) + 1
      this.#set(at, IN_FLIGHT, inFlight + 1)
    }
    unlock(this.#words, words + LOCK)
    return may
  }

  /** Counts one request less. @returns the number that is left */
  end({ at }: WorkerSlot, nowMs: number): number {
    const words = at * WORDS
    const times = at * TIMES
    lock(this.#words, words + LOCK)
    const left = this.#words[words + IN_FLIGHT]! - 1
    if (left === 0) {
      this.#times[times + BUSY_MS]! += Math.max(0, nowMs - this.#times[times + BUSY_SINCE]!)
      this.#times[times + IDLE_SINCE] = nowMs
    }
    this.#set(at, IN_FLIGHT, left)
    unlock(this.#words, words + LOCK)
    return left
  }

  /** Total time with requests in flight, in milliseconds. */
  busyMs({ at }: WorkerSlot, nowMs: number): number {
    const words = at * WORDS
    const times = at * TIMES
    lock(this.#words, words + LOCK)
    const isBusy = this.#words[words + IN_FLIGHT]! > 0
    const busyMs = this.#times[times + BUSY_MS]! + (isBusy ? Math.max(0, nowMs - this.#times[times + BUSY_SINCE]!) : 0)
    unlock(this.#words, words + LOCK)
    return busyMs
  }

  #set(at: number, word: number, value: number): void {
    Atomics.store(this.#words, at * WORDS + word, value)
  }
}

/** The number of waiting requests of each endpoint, in shared memory: one word an endpoint. */
export class WaitingWords {
  readonly #words
  readonly #free: number[] = []
  #used = 0

  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory)
  }

  /** A word that is 0; null if all are taken. For the deciding thread alone. */
  take(): number | null {
    const at = this.#free.pop() ?? this.#used
    if (at >= this.#words.length) return null
    if (at === this.#used) this.#used += 1
    Atomics.store(this.#words, at, 0)
    return at
  }

  /** Takes a word back. For the deciding thread alone. */
  giveBack(at: number): void {
    this.#free.push(at)
  }

  get(at: number): number {
    return Atomics.load(this.#words, at)
  }

  add(at: number, amount: number): void {
    Atomics.add(this.#words, at, amount)
  }
}
