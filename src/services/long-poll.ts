import { AppError } from '../core/errors.ts'
import type { Clock } from '../ports/clock.ts'
import type { Topic } from '../ports/notifier.ts'
import type { Ports } from '../ports/ports.ts'

/** Maximum number of calls that one {@link LongPoll} holds at once; one more is refused with 429. */
const MAX_HELD = 20_000

/** The bounds of a wait. */
export interface Wait {
  /** Topics whose notifications wake the call. */
  readonly topics: readonly Topic[]
  /** Maximum time of the wait, in ms. */
  readonly forMs: number
  /** End the wait early: the client went away, or the server stops. */
  readonly signals: readonly AbortSignal[]
}

/**
 * Holds calls until something is true. Subscribes first, then reads, then waits, so that no notification is missed.
 */
export class LongPoll {
  readonly #ports
  readonly #who
  #held = 0

  /** @param callers the callers, for the sentence that refuses one too many */
  constructor(ports: Ports, callers: 'requests' | 'workers' = 'requests') {
    this.#ports = ports
    this.#who = callers
  }

  /**
   * Holds a call until the block ends that declares it with `using`. The caller reads, then waits for
   * {@link HeldCall.next}, in a loop.
   * @throws AppError `rate_limited` when too many calls are held already
   */
  hold({ topics, forMs, signals }: Wait): HeldCall {
    if (this.#held >= MAX_HELD) {
      throw new AppError('rate_limited', `too many ${this.#who} are waiting on this server`, { retryAfterSeconds: 5 })
    }
    this.#held += 1
    const { clock, notifier } = this.#ports
    const call = new HeldCall(clock, forMs, signals)
    call.atEnd(() => {
      this.#held -= 1
    })
    for (const topic of topics) call.atEnd(notifier.subscribe(topic, call.wake))
    return call
  }

  /**
   * The first value that `read` gives, or null when the time is over or a signal came first.
   * @param read reads the value; null while there is none. It runs again after each notification and at the end of the
   * time
   * @throws AppError `rate_limited` as {@link hold}; errors of `read`
   */
  async until<Value>(wait: Wait, read: () => Promise<Value | null>): Promise<Value | null> {
    using call = this.hold(wait)
    for (;;) {
      const value = await read()
      if (value !== null || call.isOver) return value
      await call.next()
    }
  }
}

/**
 * A call that is held: a notification wakes it, its time or a signal ends it. Lists of listeners may keep it in memory
 * for a while after its end (core/slots), so it holds nothing by then.
 */
export class HeldCall implements EventListenerObject, Disposable {
  readonly #clock
  #isOver: boolean
  #isWoken = false
  #waiter: (() => void) | null = null
  #ends: (() => void)[] = []
  #signals: readonly AbortSignal[]

  constructor(clock: Clock, forMs: number, signals: readonly AbortSignal[]) {
    this.#clock = clock
    this.#isOver = forMs <= 0
    if (!this.#isOver) this.#ends.push(clock.after(forMs, () => this.handleEvent()))
    this.#signals = signals
    for (const signal of signals) {
      if (signal.aborted) this.#isOver = true
      signal.addEventListener('abort', this, { once: true })
    }
  }

  /** True when the time is over or a signal came: the caller reads once more and waits no longer. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Adds an action that runs at the end of the call. */
  atEnd(end: () => void): void {
    this.#ends.push(end)
  }

  /** Ends the present wait, or lets the next one return at once. */
  readonly wake = (): void => {
    this.#isWoken = true
    this.#waiter?.()
  }

  /** A signal came, or the time is over. */
  handleEvent(): void {
    this.#isOver = true
    this.wake()
  }

  /**
   * Resolves when the call is woken; at once when it was woken since the last wait, or is over.
   * @param forMs maximum time of this one wait, in ms; no other than that of the call unless given
   */
  async next(forMs?: number): Promise<void> {
    if (!this.#isWoken && !this.#isOver) {
      const cancelTimer = forMs === undefined ? null : this.#clock.after(forMs, this.wake)
      await new Promise<void>(resolve => {
        this.#waiter = resolve
      })
      cancelTimer?.()
    }
    this.#isWoken = false
    this.#waiter = null
  }

  /** Removes the timer, the subscriptions and the listeners, in the order in which they came. */
  [Symbol.dispose](): void {
    for (const end of this.#ends) end()
    for (const signal of this.#signals) signal.removeEventListener('abort', this)
    this.#ends = []
    this.#signals = []
  }
}
