import type { AccessLogEntry } from '../../core/balancing/access-log-entry.ts'
import type { Clock } from '../../ports/clock.ts'

/** Limits of the steps of an exchange, in milliseconds. */
export interface ExchangeLimits {
  /** Until the connection to a worker is open. */
  readonly connectMs: number
  /** From the last byte of the request until the head of the response. */
  readonly headersMs: number
  /** Of a body on which nothing moves. */
  readonly streamIdleMs: number
  /** Of a tunnel on which nothing moves. */
  readonly socketIdleMs: number
}

/** Times of the steps of one exchange, and the duration of silence. Milliseconds. */
export class ExchangeTimings {
  readonly #clock
  readonly #startMs: number
  /** Start of the current step: the wait for a worker, the connection, or the response. */
  #stepMs: number
  #waitMs = 0
  #connectMs: number | null = null
  #firstByteMs: number | null = null
  #moved = false
  #quietSinceMs = 0

  /** The wait for the first worker begins here. */
  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
    this.#startMs = clock.monotonic()
    this.#stepMs = this.#startMs
  }

  /** Time of the request in the request queue so far. */
  get waitMs(): number {
    return this.#waitMs
  }

  /** The wait for another worker begins. */
  retry(): void {
    this.#stepMs = this.#clock.monotonic()
  }

  /** The wait ended without a worker. */
  stopWaiting(): void {
    this.#waitMs += this.#clock.monotonic() - this.#stepMs
  }

  /** @param waitedMs time of the request in the request queue */
  claim(waitedMs: number): void {
    this.#waitMs += waitedMs
  }

  /** A connection was taken, which may not be open yet. */
  connect(): void {
    this.#stepMs = this.#clock.monotonic()
    this.#quietSinceMs = this.#stepMs
  }

  /** A new connection is open. */
  connected(): void {
    const nowMs = this.#clock.monotonic()
    this.#connectMs = nowMs - this.#stepMs
    this.#stepMs = nowMs
    this.#quietSinceMs = nowMs
  }

  /** The head of the response has arrived. */
  respond(): void {
    this.#firstByteMs = this.#clock.monotonic() - this.#stepMs
    this.#moved = true
  }

  /** Some bytes of a body moved. */
  move(): void {
    this.#moved = true
  }

  /** Duration of the silence; null if something moved since the last call. */
  quietMs(nowMs: number): number | null {
    if (!this.#moved) return nowMs - this.#quietSinceMs
    this.#moved = false
    this.#quietSinceMs = nowMs
    return null
  }

  /** The times of the access log entry of an exchange that is over. */
  summary(): Pick<AccessLogEntry, 'waitMs' | 'connectMs' | 'firstByteMs' | 'totalMs'> {
    const totalMs = this.#clock.monotonic() - this.#startMs
    return { waitMs: this.#waitMs, connectMs: this.#connectMs, firstByteMs: this.#firstByteMs, totalMs }
  }
}
