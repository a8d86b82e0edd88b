import type { Clock } from '../../ports/clock.ts'

/** Pauses of one loop. Each ends after its time, or earlier when the loop is woken. */
export class LoopPause {
  readonly #clock
  #isClosed = false
  #end: () => void = () => {}

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Waits so many milliseconds, less when {@link wake} is called, and not at all after {@link close}. */
  wait(ms: number): Promise<void> {
    if (this.#isClosed) return Promise.resolve()
    return new Promise(resolve => {
      const cancel = this.#clock.after(ms, resolve)
      this.#end = () => {
        cancel()
        resolve()
      }
    })
  }

  /** Ends the present pause. */
  wake(): void {
    this.#end()
  }

  /** Ends the present pause and all later ones. */
  close(): void {
    this.#isClosed = true
    this.#end()
  }
}
