import type { VirtualClock } from './clock.ts'

/**
 * The lifetime of a simulated process. After its end its timers do not
 * fire and its promises do not settle, as if its code had stopped. While
 * it is frozen they wait: as it thaws, first the timers that are due fire,
 * then everything that arrived in the meantime is processed, as in the loop of a real program.
 */
export class Life {
  readonly #clock: VirtualClock
  readonly #endings = new Set<() => void>()
  #over = false
  #frozen = false
  #dueTimers: (() => void)[] = []
  #arrivals: (() => void)[] = []

  constructor(clock: VirtualClock) {
    this.#clock = clock
  }

  /** True if it has ended. */
  get over(): boolean {
    return this.#over
  }

  /** True if it is frozen. */
  get frozen(): boolean {
    return this.#frozen
  }

  /** Freezes the process. */
  freeze(): void {
    this.#frozen = true
  }

  /** Lets a frozen process go on. */
  thaw(): void {
    if (!this.#frozen || this.#over) return
    this.#frozen = false
    for (const waiting of [this.#dueTimers.splice(0), this.#arrivals.splice(0)]) {
      for (const callback of waiting) {
        // One of them may end the process.
        if (this.#over) return
        callback()
      }
    }
  }

  /** Lets the process see what has arrived: now, or as it thaws. Never after its end. */
  deliver(callback: () => void): void {
    if (this.#over) return
    if (this.#frozen) this.#arrivals.push(callback)
    else callback()
  }

  /** Sets a timer that fires only while the process is alive. */
  after(ms: number, callback: () => void): () => void {
    if (this.#over) return () => {}
    let cancelled = false
    const fire = () => {
      if (cancelled) return
      if (this.#frozen) this.#dueTimers.push(fire)
      else {
        forget()
        callback()
      }
    }
    const cancel = this.#clock.after(ms, fire)
    const forget = this.onEnd(cancel)
    return () => {
      cancelled = true
      cancel()
      forget()
    }
  }

  /** Waits. Never resolves once the process has ended. */
  sleep(ms: number): Promise<void> {
    return new Promise(resolve => this.after(ms, resolve))
  }

  /** The result of the promise. Never settles once the process has ended. */
  async guard<Value>(promise: Promise<Value>): Promise<Value> {
    const never = () => new Promise<never>(() => {})
    try {
      const value = await promise
      if (this.#frozen) await this.#thawed()
      return this.#over ? await never() : value
    } catch (error) {
      if (this.#frozen) await this.#thawed()
      if (this.#over) return never()
      throw error
    }
  }

  /**
   * Calls something outside of the process and returns its result; a frozen process makes the call as it
   * thaws, one that has ended never.
   */
  call<Value>(run: () => Promise<Value>): Promise<Value> {
    if (this.#over) return new Promise(() => {})
    return this.#frozen ? this.#thawed().then(() => this.call(run)) : this.guard(run())
  }

  /** Calls `callback` when the process ends. The returned function removes it. */
  onEnd(callback: () => void): () => void {
    if (this.#over) callback()
    else this.#endings.add(callback)
    return () => void this.#endings.delete(callback)
  }

  /** Ends the process, also a frozen one. */
  end(): void {
    if (this.#over) return
    this.#over = true
    this.#dueTimers = []
    this.#arrivals = []
    const endings = [...this.#endings]
    this.#endings.clear()
    for (const ending of endings) ending()
  }

  async #thawed(): Promise<void> {
    while (this.#frozen && !this.#over) await new Promise<void>(resolve => this.deliver(resolve))
  }
}
