import type { EndpointId } from '../../core/ids.ts'
import type { MetricResult } from '../../core/observing/metric-bucket.ts'
import { METRIC_SPANS, spanStart } from '../../core/observing/metric-series.ts'
import {
  addResults,
  oneResult,
  RECENT_MINUTES,
  type RequestRate,
  type ResultCounts,
  requestRate,
} from '../../core/observing/recent-results.ts'
import type { Ports } from '../../ports/ports.ts'

const MINUTE_MS = METRIC_SPANS.minute.lengthMs
/** Limit of stored minutes that the first query reads. */
const MAX_READ = 100_000

/**
 * Results of the requests of all endpoints in the last hour, in memory, since lists of endpoints are read often.
 * Results from before the start of the server are read from the store, once.
 */
export class RecentResults {
  readonly #ports
  readonly #startMs: number
  /** By the beginning of the minute. */
  readonly #minutes = new Map<number, Map<EndpointId, ResultCounts>>()
  #earlier: Promise<void> | null = null

  constructor(ports: Ports) {
    this.#ports = ports
    this.#startMs = spanStart(ports.clock.now(), MINUTE_MS)
  }

  /** Counts a request that ended now. */
  note(endpointId: EndpointId, result: MetricResult): void {
    this.#add(spanStart(this.#ports.clock.now(), MINUTE_MS), endpointId, oneResult(result))
  }

  /** The rates of endpoints, by their ids. */
  async rates(ids: readonly EndpointId[]): Promise<ReadonlyMap<EndpointId, RequestRate>> {
    this.#earlier ??= this.#readEarlier()
    await this.#earlier
    const nowMs = this.#ports.clock.now()
    const lastMs = spanStart(nowMs, MINUTE_MS)
    this.#dropOlder(lastMs - (RECENT_MINUTES - 1) * MINUTE_MS)
    const minutes = Array.from({ length: RECENT_MINUTES }, (_, index) =>
      this.#minutes.get(lastMs - (RECENT_MINUTES - 1 - index) * MINUTE_MS),
    )
    const rate = (id: EndpointId) =>
      requestRate(
        minutes.map(minute => minute?.get(id)),
        nowMs,
      )
    return new Map(ids.map(id => [id, rate(id)]))
  }

  async #readEarlier(): Promise<void> {
    const fromMs = this.#startMs - RECENT_MINUTES * MINUTE_MS
    try {
      const rows = await this.#ports.store.metrics.results(fromMs, this.#startMs, MAX_READ)
      for (const { endpointId, minuteMs, results } of rows) this.#add(minuteMs, endpointId, results)
    } catch (error) {
      this.#earlier = null
      throw error
    }
  }

  #add(minuteMs: number, endpointId: EndpointId, counts: ResultCounts): void {
    let ofMinute = this.#minutes.get(minuteMs)
    if (ofMinute === undefined) {
      ofMinute = new Map()
      this.#minutes.set(minuteMs, ofMinute)
      this.#dropOlder(spanStart(this.#ports.clock.now(), MINUTE_MS) - RECENT_MINUTES * MINUTE_MS)
    }
    const previous = ofMinute.get(endpointId)
    ofMinute.set(endpointId, previous === undefined ? counts : addResults(previous, counts))
  }

  #dropOlder(minuteMs: number): void {
    for (const atMs of this.#minutes.keys()) if (atMs < minuteMs) this.#minutes.delete(atMs)
  }
}
