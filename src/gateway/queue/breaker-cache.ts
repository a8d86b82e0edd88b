import type { Outage } from '../../core/balancing/circuit-breaker.ts'
import type { Clock } from '../../ports/clock.ts'

/** So long who comes is refused without asking anew whether a worker can start. */
const BELIEVED_MS = 1_000

/** Why no worker of an endpoint can start, as it was told last. It is believed for a moment. */
export class BreakerCache {
  readonly #clock: Pick<Clock, 'monotonic'>
  #why: Outage | null = null
  #untilMs = 0

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  /** Null where nothing is known against a start any more. */
  get current(): Outage | null {
    return this.#clock.monotonic() < this.#untilMs ? this.#why : null
  }

  begin(why: Outage): void {
    this.#why = why
    this.#untilMs = this.#clock.monotonic() + BELIEVED_MS
  }

  end(): void {
    this.#why = null
    this.#untilMs = 0
  }
}
