import type { Span } from '../../core/observing/span.ts'
import type { Clock } from '../../ports/clock.ts'

/** Sends spans. Rejects when they did not arrive; may never settle. */
export type SendSpans = (spans: readonly Span[]) => Promise<void>

/** Interval of reports about drops. */
const QUIET_MS = 60_000
/** Limit of characters of a problem, which may be a collector's text. */
const MAX_PROBLEM = 200

/** Spans that wait to be sent, in groups and one call after another. Adding one never waits and never throws. */
export class SpanQueue {
  readonly #clock
  readonly #limits
  readonly #send
  readonly #reports
  #waiting: Span[] = []
  #sending: Promise<void> | null = null
  #cancelTimer: (() => void) | null = null
  #isClosed = false
  #unreported = 0
  #reportedAtMs: number | null = null

  constructor(
    clock: Pick<Clock, 'monotonic' | 'after'>,
    limits: {
      /** Limit of waiting spans; further ones are dropped. */
      readonly maxQueueSize: number
      /** Limit of spans of one call. */
      readonly maxExportBatchSize: number
      /** Longest time in which spans wait for others, in milliseconds. */
      readonly scheduleDelayMs: number
      /** Longest time of one call. */
      readonly exportTimeoutMs: number
    },
    send: SendSpans,
    reports: {
      readonly sent: (count: number) => void
      readonly dropped: (count: number) => void
      /**
       * Called at most once a minute.
       * @param problem reason of dropped spans
       * @param count number since the last report
       */
      readonly failing: (problem: string, count: number) => void
    },
  ) {
    this.#clock = clock
    this.#limits = limits
    this.#send = send
    this.#reports = reports
  }

  add(spans: readonly Span[]): void {
    for (const span of spans) {
      if (this.#isClosed || this.#waiting.length >= this.#limits.maxQueueSize) this.#drop(1, 'too many spans wait')
      else this.#waiting.push(span)
    }
    if (this.#waiting.length >= this.#limits.maxExportBatchSize) this.#begin()
    else if (this.#waiting.length > 0) this.#arm()
  }

  /** Sends the waiting spans, then no more. @param forMs longest duration in milliseconds; the rest is dropped */
  async close(forMs: number): Promise<void> {
    this.#isClosed = true
    let isLate = false
    let cancelTimer = () => {}
    const late = new Promise<void>(resolve => {
      cancelTimer = this.#clock.after(forMs, () => {
        isLate = true
        resolve()
      })
    })
    while (!isLate && (this.#waiting.length > 0 || this.#sending !== null)) {
      this.#begin()
      await Promise.race([this.#sending, late])
    }
    cancelTimer()
    this.#cancelTimer?.()
    if (this.#waiting.length > 0) this.#drop(this.#waiting.length, 'the server has ended')
    this.#waiting = []
  }

  #arm(): void {
    this.#cancelTimer ??= this.#clock.after(this.#limits.scheduleDelayMs, () => {
      this.#cancelTimer = null
      this.#begin()
    })
  }

  #begin(): void {
    if (this.#sending !== null || this.#waiting.length === 0) return
    const group = this.#waiting.splice(0, this.#limits.maxExportBatchSize)
    this.#sending = this.#try(group).finally(() => {
      this.#sending = null
      if (this.#waiting.length >= this.#limits.maxExportBatchSize) this.#begin()
      else if (this.#waiting.length > 0 && !this.#isClosed) this.#arm()
    })
  }

  async #try(group: readonly Span[]): Promise<void> {
    const timeoutMs = this.#limits.exportTimeoutMs
    let cancelTimer = () => {}
    const late = new Promise<never>((_, reject) => {
      cancelTimer = this.#clock.after(timeoutMs, () => reject(new Error(`no answer within ${timeoutMs / 1_000} s`)))
    })
    try {
      await Promise.race([this.#send(group), late])
      this.#reports.sent(group.length)
    } catch (error) {
      this.#drop(group.length, error instanceof Error ? error.message : String(error))
    } finally {
      cancelTimer()
    }
  }

  #drop(count: number, problem: string): void {
    this.#reports.dropped(count)
    this.#unreported += count
    const nowMs = this.#clock.monotonic()
    if (this.#reportedAtMs !== null && nowMs - this.#reportedAtMs < QUIET_MS) return
    this.#reportedAtMs = nowMs
    this.#reports.failing(problem.slice(0, MAX_PROBLEM), this.#unreported)
    this.#unreported = 0
  }
}
