import { AppError } from '../core/errors.ts'
import type { Clock } from '../ports/clock.ts'
import type { Notifier, Topic } from '../ports/notifier.ts'

/** Maximum number of calls that one {@link LongPoll} holds at once; one more is refused with 429. */
const MAX_HELD = 20_000

/** What a call waits for, and how long it may take. */
export interface Wait<Value> {
  /** Notifications that may end the wait. */
  readonly topics: readonly Topic[]
  /** Something else that may end the wait. It gets a function that wakes the wait, and returns one that takes it back. */
  readonly join?: (wake: () => void) => () => void
  /** Reads whether the wait is over: null while it is not. */
  readonly read: () => Promise<Value | null>
  readonly forMs: number
  /** End the wait early, with null: the client went away, or the server stops. */
  readonly signals: readonly AbortSignal[]
}

/** Holds calls until something is true. Subscribes first, then reads, then waits, so that no notification is missed. */
export class LongPoll {
  readonly #clock: Clock
  readonly #notifier: Notifier
  readonly #who: string
  #held = 0

  /** @param who is held, for the sentence that refuses one call too many */
  constructor(clock: Clock, notifier: Notifier, who: 'requests' | 'workers' = 'requests') {
    this.#clock = clock
    this.#notifier = notifier
    this.#who = who
  }

  /**
   * The first value that `read` gives, or null when the time is over or a signal came first.
   * @throws AppError `rate_limited` when too many calls are held already; what `read` throws
   */
  async until<Value>(wait: Wait<Value>): Promise<Value | null> {
    if (this.#held >= MAX_HELD) {
      throw new AppError('rate_limited', `too many ${this.#who} are waiting on this server`, { retryAfterSeconds: 5 })
    }
    this.#held += 1
    const alarm = new Alarm(this.#clock, wait.forMs, wait.signals)
    const subscriptions = wait.topics.map(topic => this.#notifier.subscribe(topic, alarm.ring))
    if (wait.join !== undefined) subscriptions.push(wait.join(alarm.ring))
    try {
      for (;;) {
        const value = await wait.read()
        if (value !== null || alarm.over) return value
        await alarm.next()
      }
    } finally {
      for (const unsubscribe of subscriptions) unsubscribe()
      alarm.close()
      this.#held -= 1
    }
  }
}

/**
 * Rings at a notification; is over after a time or at a signal. Lists of listeners may keep it in memory for a while after its end
 * (core/slots), so it holds nothing by then.
 */
class Alarm implements EventListenerObject {
  over = false
  #rung = false
  #waiter: (() => void) | null = null
  #cancelTimer: () => void
  #signals: readonly AbortSignal[]

  constructor(clock: Clock, forMs: number, signals: readonly AbortSignal[]) {
    this.over = forMs <= 0
    this.#cancelTimer = this.over ? nothing : clock.after(forMs, () => this.handleEvent())
    this.#signals = signals
    for (const signal of signals) {
      if (signal.aborted) this.over = true
      signal.addEventListener('abort', this, { once: true })
    }
  }

  /** Ends the present wait, or lets the next one return at once. */
  readonly ring = (): void => {
    this.#rung = true
    this.#waiter?.()
  }

  /** A signal came, or the time is over. */
  handleEvent(): void {
    this.over = true
    this.ring()
  }

  /** Resolves at the next ring, or at once when it rang since the last call or is over. */
  async next(): Promise<void> {
    if (!this.#rung && !this.over) await new Promise<void>(resolve => (this.#waiter = resolve))
    this.#rung = false
    this.#waiter = null
  }

  /** Removes the timer and the listeners. */
  close(): void {
    this.#cancelTimer()
    for (const signal of this.#signals) signal.removeEventListener('abort', this)
    this.#cancelTimer = nothing
    this.#signals = []
  }
}

const nothing = () => {}
