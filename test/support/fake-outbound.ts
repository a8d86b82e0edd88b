import type { Clock } from '../../src/ports/clock.ts'
import type { Outbound, OutboundRequest, OutboundResult } from '../../src/ports/outbound.ts'

/** A request and its time. */
export interface OutboundCall extends OutboundRequest {
  readonly atMs: number
}

/** An outbound port that records each request and responds as the test sets, with 200 by default. */
export class FakeOutbound implements Outbound {
  readonly calls: OutboundCall[] = []
  /** The result of a request; null for a receiver that never responds. */
  answer: (call: OutboundCall) => OutboundResult | null = () => ({ status: 200 })
  /** Time that a receiver takes to answer, in ms. */
  take: (call: OutboundCall) => number = () => 0
  /** True when the address of a receiver is public. */
  isPublic: (url: string) => boolean = () => true
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  post(request: OutboundRequest): Promise<OutboundResult> {
    const call = { ...request, atMs: this.#clock.now() }
    this.calls.push(call)
    request.onTarget?.(this.isPublic(request.url))
    const result = this.answer(call)
    if (result === null) return new Promise(() => {})
    const tookMs = this.take(call)
    return tookMs === 0
      ? Promise.resolve(result)
      : new Promise(resolve => this.#clock.after(tookMs, () => resolve(result)))
  }
}
