/** The due webhooks of one account, in the order in which they may be called. */
import { Holdings } from '../core/fair-share.ts'
import type { DeliveryId, OwnerId } from '../core/ids.ts'
import { UNKNOWN_RECEIVER } from '../core/jobs/webhook.ts'
import type { DueWebhook, WebhookStore } from '../ports/store/store.ts'
import type { Webhooks } from '../services/jobs/webhooks.ts'
import { CALLS, type WebhookReceiver, type WebhookSlots } from './webhook-slots.ts'

/** Number of due deliveries of an account that are read before its receivers are. */
const WINDOW = 64
/** Number of receivers that are read at once, and of such reads in one step. */
const LANES = { read: 256, times: 4 } as const
/** Deliveries that are read of one receiver. */
const PER_LANE = 4
/** Behind it is the first receiver. */
const FIRST_RECEIVER = UNKNOWN_RECEIVER - 1

/**
 * Deliveries that are due in the store and must not be called now: they are being called, wait, or were called
 * already.
 */
export class HeldWebhooks {
  readonly #ids = new Map<DeliveryId, WebhookReceiver>()
  readonly #counts = new Holdings<string>()

  /** Holds a delivery. */
  add(id: DeliveryId, called: WebhookReceiver): void {
    if (this.#ids.has(id)) return
    this.#ids.set(id, called)
    this.#change(called, 1)
  }

  /** Releases a delivery. */
  delete(id: DeliveryId): void {
    const called = this.#ids.get(id)
    if (called !== undefined && this.#ids.delete(id)) this.#change(called, -1)
  }

  has(id: DeliveryId): boolean {
    return this.#ids.has(id)
  }

  /** Number of held deliveries of an account, or of those to one receiver. */
  count({ owner, receiver }: { readonly owner: OwnerId; readonly receiver?: number }): number {
    return this.#counts.of(`${receiver ?? ''} ${owner}`)
  }

  #change({ owner, receiver }: WebhookReceiver, by: number): void {
    for (const name of [` ${owner}`, `${receiver} ${owner}`]) this.#counts.add(name, by)
  }
}

/**
 * The due deliveries of one account for one step. The oldest come first, but a receiver with fewer calls goes
 * before one with more. Where the oldest all go to receivers that may not be called now, the receivers are read in
 * turn, a bounded number in a step.
 */
export class DueWebhooks {
  readonly owner: OwnerId
  readonly #parts
  readonly #nowMs
  #rows: DueWebhook[] | null = null
  /** True when the store may have more than {@link #rows}. */
  #isMore = false
  #lanesRead = 0

  constructor(
    parts: {
      readonly store: WebhookStore
      readonly webhooks: Webhooks
      readonly slots: WebhookSlots
      readonly held: HeldWebhooks
      /** Receivers at which the last step stopped reading, by account. */
      readonly places: Map<OwnerId, number>
    },
    owner: OwnerId,
    nowMs: number,
  ) {
    this.#parts = parts
    this.owner = owner
    this.#nowMs = nowMs
  }

  /** The next delivery that may be called now; null without one. */
  async next(): Promise<DueWebhook | null> {
    this.#rows ??= await this.#oldest()
    for (;;) {
      const next = this.#take()
      if (next !== null || !this.#isMore) return next
      await this.#readLanes()
    }
  }

  #take(): DueWebhook | null {
    const { slots, held } = this.#parts
    const rows = this.#rows ?? []
    let best: DueWebhook | null = null
    for (const row of rows) {
      if (held.has(row.id) || !slots.mayCall(row)) continue
      if (best === null || slots.receiverCalls(row) < slots.receiverCalls(best)) best = row
    }
    if (best !== null) rows.splice(rows.indexOf(best), 1)
    return best
  }

  async #oldest(): Promise<DueWebhook[]> {
    const { store, webhooks, held } = this.#parts
    const request = { owner: this.owner, nowMs: this.#nowMs, limit: WINDOW + held.count(this) }
    let rows = await store.due(request)
    if (rows.some(({ receiver }) => receiver === UNKNOWN_RECEIVER)) {
      await webhooks.nameReceivers(this.owner, this.#nowMs)
      rows = await store.due(request)
    }
    this.#isMore = rows.length === request.limit
    return rows
  }

  async #readLanes(): Promise<void> {
    const { store, webhooks, slots, held, places } = this.#parts
    const { owner } = this
    this.#lanesRead += 1
    const after = places.get(owner) ?? FIRST_RECEIVER
    const request = { owner, nowMs: this.#nowMs, after, maxRead: LANES.read }
    const { receivers, readUntil } = await store.receiversDue(request)
    if (receivers.includes(UNKNOWN_RECEIVER)) await webhooks.nameReceivers(owner, this.#nowMs)
    // If the last step stopped in the middle, the receivers before that place are still to be read.
    if (readUntil === null) places.delete(owner)
    else places.set(owner, readUntil)
    if ((readUntil === null && after === FIRST_RECEIVER) || this.#lanesRead >= LANES.times) this.#isMore = false
    let rowCount = 0
    for (const receiver of receivers) {
      if (!slots.mayCall({ owner, receiver })) continue
      const limit = PER_LANE + held.count({ owner, receiver })
      const rows = await store.due({ owner, receiver, nowMs: this.#nowMs, limit })
      this.#rows!.push(...rows)
      rowCount += rows.length
      if (rowCount < CALLS.account) continue
      places.set(owner, receiver)
      return
    }
  }
}
