import type { DeliveryId, EndpointId } from '../core/ids.ts'
import type { Ports } from '../ports/ports.ts'
import type { DueWebhook } from '../ports/store/store.ts'
import type { Tried, Webhooks } from '../services/jobs/webhooks.ts'

/** Maximum number of calls at once. */
export const MAX_CALLS = 16
/** Maximum number of calls at once for one endpoint, so that a receiver that hangs does not delay other endpoints. */
export const MAX_CALLS_PER_ENDPOINT = 2
/** Time within which due webhooks are found without a notification. */
const TICK_MS = 5_000
const REMOVE_MS = 60_000

/** Calls the receivers of due webhooks, a few at a time, and stores the outcomes. */
export class WebhookDispatcher {
  readonly #ports: Pick<Ports, 'store' | 'clock'>
  readonly #webhooks: Webhooks
  readonly #wake: () => void
  readonly #calls = new Map<DeliveryId, { readonly endpointId: EndpointId; readonly over: Promise<void> }>()
  /** Outcomes that the store has not stored yet. Their deliveries are not called again. */
  readonly #unstored = new Map<DeliveryId, Tried>()
  readonly #stop = new AbortController()
  #removeAtMs = 0

  /** @param wake asks for a step soon */
  constructor(ports: Pick<Ports, 'store' | 'clock'>, webhooks: Webhooks, wake: () => void) {
    this.#ports = ports
    this.#webhooks = webhooks
    this.#wake = wake
  }

  /**
   * Does what is due.
   * @returns when to step again if nothing wakes it before
   */
  async step(nowMs: number): Promise<number> {
    for (const tried of [...this.#unstored.values()]) await this.#store(tried)
    const { webhooks } = this.#ports.store
    if (this.#calls.size < MAX_CALLS) {
      // Webhooks that are being called are still due and come first.
      const due = await webhooks.due(nowMs, MAX_CALLS_PER_ENDPOINT, 2 * MAX_CALLS)
      for (const delivery of due) this.#startIfFree(delivery)
    }
    let more = false
    if (nowMs >= this.#removeAtMs) {
      more = await this.#webhooks.removeOld(nowMs)
      if (!more) this.#removeAtMs = nowMs + REMOVE_MS
    }
    const next = await webhooks.nextDue(nowMs)
    return more ? nowMs : Math.min(nowMs + TICK_MS, next ?? Number.POSITIVE_INFINITY)
  }

  /** Waits at most this time for calls to end, then gives them up; they are made again after the next start. */
  async end(forMs: number): Promise<void> {
    const over = Promise.all([...this.#calls.values()].map(call => call.over))
    if (forMs > 0) {
      let cancelTimer = () => {}
      const late = new Promise<void>(resolve => {
        cancelTimer = this.#ports.clock.after(forMs, resolve)
      })
      await Promise.race([over, late])
      cancelTimer()
    }
    this.#stop.abort()
    await over
  }

  #startIfFree(delivery: DueWebhook): void {
    const { id, endpointId } = delivery
    if (this.#stop.signal.aborted || this.#calls.size >= MAX_CALLS) return
    if (this.#calls.has(id) || this.#unstored.has(id)) return
    const ofEndpoint = [...this.#calls.values()].filter(call => call.endpointId === endpointId)
    if (ofEndpoint.length >= MAX_CALLS_PER_ENDPOINT) return
    this.#calls.set(id, { endpointId, over: this.#call(delivery) })
  }

  async #call(delivery: DueWebhook): Promise<void> {
    try {
      const tried = await this.#webhooks.attempt(delivery, this.#stop.signal)
      if (tried === null) return
      this.#unstored.set(delivery.id, tried)
      await this.#store(tried)
      this.#wake()
    } catch {
      // The store has failed: a later step stores the outcome, or finds the delivery, which is still due.
    } finally {
      this.#calls.delete(delivery.id)
    }
  }

  async #store(tried: Tried): Promise<void> {
    await this.#webhooks.record(tried)
    this.#unstored.delete(tried.delivery.id)
  }
}
