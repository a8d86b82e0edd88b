import type { VirtualClock } from './clock.ts'

/**
 * The lifetime of a simulated process. After its end its timers do not
 * fire and its promises do not settle, as if its code had stopped.
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

  /** Sets a timer that fires only while the process is alive. */
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

  /** Waits. Never resolves once the process has ended. */
  sleep(ms: number): Promise<void> {
    return new Promise(resolve => this.after(ms, resolve))
  }

  /** The result of the promise. Never settles once the process has ended. */
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

  /** Calls `callback` when the process ends. The returned function removes it. */
  onEnd(callback: () => void): () => void {
    if (this.#over) callback()
    else this.#endings.add(callback)
    return () => this.#endings.delete(callback)
  }

  /** Ends the process. */
  end(): void {
    if (this.#over) return
    this.#over = true
    const endings = [...this.#endings]
    this.#endings.clear()
    for (const ending of endings) ending()
  }
}
