/** Sums over the connections of all threads that read HTTP, in shared memory where there are several. */
import { hash } from 'node:crypto'
import { Holdings } from '../core/fair-share.ts'
import { lock, unlock } from '../gateway/threads/shared-lock.ts'

/** A sum. */
export interface Total {
  /** @returns the new sum */
  add(amount: number): number
}

/** Sums by holder. */
export interface HolderTotals {
  /** @returns the new sum of the holder */
  add(holder: string, amount: number): number
}

/** The sums that limits are compared with. */
export interface ConnectionTotals {
  /** Open connections. */
  readonly connections: Total
  /** Requests that run or are held. */
  readonly places: Total
  /** Those of load-balancing endpoints. */
  readonly balanced: Total
  /** Those of each load-balancing endpoint. */
  readonly endpoints: HolderTotals
  /** Connections of each address. */
  readonly addresses: HolderTotals
  /**
   * Reports the bytes of unread responses of this thread.
   * @param limit of all threads
   * @returns the sum, of which at most the part above the limit is this thread's to end
   */
  unread(bytes: number, limit: number): number
}

/** The sums of a single thread. */
export function ownTotals(): ConnectionTotals {
  return {
    connections: new OwnTotal(),
    places: new OwnTotal(),
    balanced: new OwnTotal(),
    endpoints: new Holdings<string>(),
    addresses: new Holdings<string>(),
    unread: bytes => bytes,
  }
}

class OwnTotal implements Total {
  #sum = 0

  add(amount: number): number {
    this.#sum += amount
    return this.#sum
  }
}

/** Memory of the sums of several threads. */
export interface TotalsMemory {
  readonly words: SharedArrayBuffer
  readonly endpoints: SharedArrayBuffer
  readonly addresses: SharedArrayBuffer
  /** A secret of this run: nobody outside can find two holders with the same place. */
  readonly salt: string
}

const CONNECTIONS = 0
const PLACES = 1
const BALANCED = 2
/** First of the words with the unread kilobytes of each thread. */
const UNREAD = 3
const KILOBYTE = 1_024

/**
 * Memory for the sums of a number of threads.
 * @param holders maximum number of holders at once: each has a connection
 * @param salt a secret of this run
 */
export function totalsMemory(threads: number, holders: number, salt: string): TotalsMemory {
  // At most half of the places are taken, so that a free one is near.
  const places = 2 ** Math.ceil(Math.log2(2 * holders + 2))
  const table = () => new SharedArrayBuffer((1 + places * ENTRY_WORDS) * 4)
  const words = new SharedArrayBuffer((UNREAD + threads) * 4)
  return { words, endpoints: table(), addresses: table(), salt }
}

/** The sums of all threads, for one of them. @param thread its number, from 0 */
export function sharedTotals({ words, endpoints, addresses, salt }: TotalsMemory, thread: number): ConnectionTotals {
  const sums = new Int32Array(words)
  const at = (index: number): Total => ({ add: amount => Atomics.add(sums, index, amount) + amount })
  return {
    connections: at(CONNECTIONS),
    places: at(PLACES),
    balanced: at(BALANCED),
    endpoints: new SharedHoldings(endpoints, salt),
    addresses: new SharedHoldings(addresses, salt),
    unread(bytes, limit) {
      Atomics.store(sums, UNREAD + thread, Math.ceil(bytes / KILOBYTE))
      let sum = 0
      for (let other = UNREAD; other < sums.length; other += 1) sum += Atomics.load(sums, other) * KILOBYTE
      // At least one thread has more than an equal share. It alone cuts.
      const share = limit / (sums.length - UNREAD)
      return bytes <= share ? Math.min(sum, limit) : Math.min(sum, limit + bytes - share)
    },
  }
}

/** Words of an entry: two of the hash of its holder, and the sum. An entry with the sum 0 is free. */
const ENTRY_WORDS = 3
/** Hashes of holders that a thread keeps. */
const MAX_HASHES = 10_000

/** Sums by holder in shared memory: a table with linear probing, and one lock. */
export class SharedHoldings implements HolderTotals {
  readonly #words
  readonly #mask
  readonly #salt
  readonly #hashes = new Map<string, readonly [number, number]>()

  constructor(memory: SharedArrayBuffer, salt: string) {
    this.#words = new Int32Array(memory)
    this.#mask = (this.#words.length - 1) / ENTRY_WORDS - 1
    this.#salt = salt
  }

  add(holder: string, amount: number): number {
    const [high, low] = this.#hash(holder)
    lock(this.#words, 0)
    const sum = this.#add(high, low, amount)
    unlock(this.#words, 0)
    return sum
  }

  /** Sum of a holder; 0 by default. */
  of(holder: string): number {
    return this.add(holder, 0)
  }

  #add(high: number, low: number, amount: number): number {
    const words = this.#words
    let place = low & this.#mask
    for (let tries = 0; tries <= this.#mask; tries += 1) {
      const at = 1 + place * ENTRY_WORDS
      const sum = words[at + 2]!
      if (sum === 0) {
        if (amount <= 0) return 0
        words[at] = high
        words[at + 1] = low
        words[at + 2] = amount
        return amount
      }
      if (words[at] === high && words[at + 1] === low) {
        words[at + 2] = Math.max(0, sum + amount)
        if (sum + amount <= 0) this.#close(place)
        return Math.max(0, sum + amount)
      }
      place = (place + 1) & this.#mask
    }
    return 0
  }

  /** Moves the entries behind a freed place that would no longer be found. */
  #close(freed: number): void {
    const words = this.#words
    let hole = freed
    for (let place = (freed + 1) & this.#mask; ; place = (place + 1) & this.#mask) {
      const at = 1 + place * ENTRY_WORDS
      if (words[at + 2] === 0) return
      const first = words[at + 1]! & this.#mask
      // Stays if its first place lies between the hole and itself.
      if (((place - first) & this.#mask) < ((place - hole) & this.#mask)) continue
      words.copyWithin(1 + hole * ENTRY_WORDS, at, at + ENTRY_WORDS)
      words[at + 2] = 0
      hole = place
    }
  }

  #hash(holder: string): readonly [number, number] {
    const known = this.#hashes.get(holder)
    if (known !== undefined) return known
    const digest = Buffer.from(hash('sha256', `${this.#salt} ${holder}`, 'hex').slice(0, 16), 'hex')
    const words = [digest.readInt32LE(0), digest.readInt32LE(4)] as const
    if (this.#hashes.size >= MAX_HASHES) this.#hashes.clear()
    this.#hashes.set(holder, words)
    return words
  }
}
