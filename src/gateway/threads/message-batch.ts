import type { Clock } from '../../ports/clock.ts'

/** Messages of one turn of the loop, which travel together. */
export class MessageBatch<Message> {
  readonly #clock
  readonly #send
  #messages: Message[] = []
  /** True if {@link flush} is due at the end of this turn. */
  #isSoon = false
  #cancelLater: (() => void) | null = null

  /** @param send gets the messages, which may be none after {@link wake} */
  constructor(clock: Pick<Clock, 'after'>, send: (messages: readonly Message[]) => void) {
    this.#clock = clock
    this.#send = send
  }

  /** Sends a message at the end of the turn, with all that were added before. */
  add(message: Message): void {
    this.#messages.push(message)
    if (this.#isSoon) return
    this.#isSoon = true
    this.#clock.after(0, () => this.flush())
  }

  /** Sends within a time, in milliseconds, what there is by then. */
  wake(ms: number): void {
    this.#cancelLater ??= this.#clock.after(ms, () => this.flush())
  }

  /** Sends all now. */
  flush(): void {
    const isDue = this.#messages.length > 0 || this.#cancelLater !== null
    this.#cancelLater?.()
    this.#cancelLater = null
    this.#isSoon = false
    if (!isDue) return
    const messages = this.#messages
    this.#messages = []
    this.#send(messages)
  }

  /** Drops all. */
  close(): void {
    this.#cancelLater?.()
    this.#cancelLater = null
    this.#messages = []
  }
}
