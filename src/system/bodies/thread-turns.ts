/** Turns of accounts at a few threads. */
import { mayHavePlace } from '../../core/fair-share.ts'

/** A waiting reading. */
interface Waiting<Item> {
  readonly item: Item
  readonly bytes: number
}

interface Account<Item> {
  readonly waiting: Waiting<Item>[]
  waitingBytes: number
  /** Number of threads that read for it now. */
  threads: number
}

/** The last free thread is for accounts without one. */
const LAST_THREAD = { kept: 1, few: 1 } as const

/** Limits of {@link ThreadTurns}. */
export interface ThreadTurnsLimits {
  /** Number of threads, at least 2. */
  readonly threads: number
  /** Limit of waiting readings of one account. */
  readonly waiting: number
  /** Limit of bytes of the waiting readings of one account; a single larger one may wait. */
  readonly waitingBytes: number
  /** Limit of waiting readings of all accounts. */
  readonly waitingOfAll: number
}

/** Reason why a reading cannot wait: its account has too many, or all accounts together. */
export type TurnsFull = 'account' | 'all'

/**
 * Chooses the next reading for a free thread: that of the account with the fewest threads, and among those the one
 * whose last turn is longest ago. The last free thread is for accounts without one, so no account waits for the
 * readings of a single other one.
 */
export class ThreadTurns<Item> {
  readonly #limits
  /** In the order of their turns. An account without readings has no entry. */
  readonly #accounts = new Map<string, Account<Item>>()
  #waiting = 0
  #threads = 0

  constructor(limits: ThreadTurnsLimits) {
    this.#limits = limits
  }

  /** Adds a reading. @returns null when it waits, else the reason why it cannot */
  add(name: string, item: Item, bytes: number): TurnsFull | null {
    const { waiting, waitingBytes, waitingOfAll } = this.#limits
    if (this.#waiting >= waitingOfAll) return 'all'
    const account = this.#accounts.get(name) ?? { waiting: [], waitingBytes: 0, threads: 0 }
    const fits = account.waitingBytes === 0 || account.waitingBytes + bytes <= waitingBytes
    if (account.waiting.length >= waiting || !fits) return 'account'
    this.#accounts.set(name, account)
    account.waiting.push({ item, bytes })
    account.waitingBytes += bytes
    this.#waiting += 1
    return null
  }

  /** Takes the next reading, for a thread of its account. Null when no account may have a thread now. */
  take(): Item | null {
    const name = this.#next()
    if (name === null) return null
    const account = this.#accounts.get(name)!
    const { item, bytes } = account.waiting.shift()!
    account.waitingBytes -= bytes
    account.threads += 1
    this.#waiting -= 1
    this.#threads += 1
    this.#accounts.delete(name)
    this.#accounts.set(name, account)
    return item
  }

  /** Gives back the thread of a reading of this account. */
  leave(name: string): void {
    const account = this.#accounts.get(name)!
    account.threads -= 1
    this.#threads -= 1
    if (account.threads === 0 && account.waiting.length === 0) this.#accounts.delete(name)
  }

  #next(): string | null {
    const free = this.#limits.threads - this.#threads
    if (free <= 0 || this.#waiting === 0) return null
    let next: string | null = null
    let fewest = Number.POSITIVE_INFINITY
    for (const [name, { waiting, threads }] of this.#accounts) {
      if (waiting.length === 0 || threads >= fewest || !mayHavePlace(free, threads, LAST_THREAD)) continue
      next = name
      fewest = threads
      if (threads === 0) break
    }
    return next
  }
}
