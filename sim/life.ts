import type { VirtualClock } from './clock.ts'

/**
 * The time between the start and the end of a process. What it waits for when it ends never comes: its timers do not
 * fire and its promises do not settle, as if its code had stopped in the middle of a line.
 */
export class Life {
  readonly #clock: VirtualClock
  readonly #endings = new Set<() => void>()
  #over = false

  constructor(clock: VirtualClock) {
    this.#clock = clock
  }

  /** Whether it has ended. */
  get over(): boolean {
    return this.#over
  }

  /** A timer that fires only while the process lives. */
  after(ms: number, callback: () => void): () => void {
    if (this.#over) return () => {}
    const cancel = this.#clock.after(ms, () => {
      forget()
      callback()
    })
    const forget = this.onEnd(cancel)
    return () => {
      cancel()
      forget()
    }
  }

  /** Waits; never returns in a process that has ended. */
  sleep(ms: number): Promise<void> {
    return new Promise(resolve => this.after(ms, resolve))
  }

  /** What the promise gives, as long as the process lives. */
  async guard<Value>(promise: Promise<Value>): Promise<Value> {
    const never = () => new Promise<never>(() => {})
    try {
      const value = await promise
      return this.#over ? await never() : value
    } catch (error) {
      if (this.#over) return never()
      throw error
    }
  }

  /** Calls back when the process ends, unless the returned function was called before. */
  onEnd(callback: () => void): () => void {
    if (this.#over) callback()
    else this.#endings.add(callback)
    return () => this.#endings.delete(callback)
  }

  /** Ends the process; once. */
  end(): void {
    if (this.#over) return
    this.#over = true
    const endings = [...this.#endings]
    this.#endings.clear()
    for (const ending of endings) ending()
  }
}
