import type { DeliveryId, OwnerId } from '../core/ids.ts'
import type { Ports } from '../ports/ports.ts'
import type { DueWebhook } from '../ports/store/store.ts'
import type { AttemptOutcome, Webhooks } from '../services/jobs/webhooks.ts'
import { DueWebhooks, HeldWebhooks } from './due-webhooks.ts'
import { type CallPlace, WebhookSlots } from './webhook-slots.ts'

/** Maximum number of accounts that one step looks at; the next step continues. */
const MAX_ACCOUNTS = 1_000
/** Maximum number of outcomes of one account that wait until they may be stored, without a place for calls. */
export const MAX_WAITING_OUTCOMES = 256
/** Time within which due webhooks are found without a notification. */
const TICK_MS = 5_000
const REMOVE_MS = 60_000

/**
 * Calls the receivers of due webhooks, a few at a time in turns of accounts and receivers, and stores the outcomes.
 */
export class WebhookDispatcher {
  readonly #ports
  readonly #webhooks
  readonly #wake
  readonly #slots = new WebhookSlots()
  readonly #held = new HeldWebhooks()
  /** Attempts that have not ended. */
  readonly #attempts = new Set<Promise<void>>()
  /** Outcomes by account that wait without a place for calls. */
  readonly #waiting = new Map<OwnerId, number>()
  /** Outcomes that the store has refused once, for a later step. Their deliveries are not called again. */
  readonly #unstored = new Map<DeliveryId, AttemptOutcome>()
  /** Receivers at which the last step stopped reading, by account. */
  readonly #places = new Map<OwnerId, number>()
  /** Accounts by their last call, the longest ago first. */
  readonly #served = new Map<OwnerId, number>()
  readonly #stop = new AbortController()
  #afterAccount = ''
  #turn = 0
  #removeAtMs = 0

  /** @param wake asks for a step soon */
  constructor(ports: Ports, webhooks: Webhooks, wake: () => void) {
    this.#ports = ports
    this.#webhooks = webhooks
    this.#wake = wake
  }

  /**
   * Does the due work.
   * @returns time of the next step without a wake
   */
  async step(nowMs: number): Promise<number> {
    for (const tried of [...this.#unstored.values()]) await this.#store(tried)
    await this.#startDue(nowMs)
    let hasMore = false
    if (nowMs >= this.#removeAtMs) {
      hasMore = await this.#webhooks.removeOld(nowMs)
      if (!hasMore) this.#removeAtMs = nowMs + REMOVE_MS
    }
    const next = await this.#ports.store.webhooks.nextDue(nowMs)
    return hasMore ? nowMs : Math.min(nowMs + TICK_MS, next ?? Number.POSITIVE_INFINITY)
  }

  /** Waits at most this time for calls to end, then gives them up; they are made again after the next start. */
  async end(forMs: number): Promise<void> {
    const over = Promise.all(this.#attempts)
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

  /** Starts calls, one at a time for the account with the fewest, until all places are taken or no call is due. */
  async #startDue(nowMs: number): Promise<void> {
    if (!this.#slots.hasPlace()) return
    const { webhooks: store } = this.#ports.store
    const { accounts, readUntil } = await store.accountsDue(nowMs, this.#afterAccount, MAX_ACCOUNTS)
    this.#afterAccount = readUntil ?? ''
    const parts = {
      store,
      webhooks: this.#webhooks,
      slots: this.#slots,
      held: this.#held,
      places: this.#places,
    }
    let open = accounts.map(owner => new DueWebhooks(parts, owner, nowMs))
    while (open.length > 0 && !this.#stop.signal.aborted) {
      open = open.filter(({ owner }) => this.#slots.mayCallFor(owner))
      const account = this.#chooseNext(open)
      if (account === null) return
      const delivery = await account.next()
      if (delivery === null) open.splice(open.indexOf(account), 1)
      else this.#start(delivery)
    }
  }

  #chooseNext(accounts: readonly DueWebhooks[]): DueWebhooks | null {
    let next: DueWebhooks | null = null
    let least: readonly [number, number] = [0, 0]
    for (const account of accounts) {
      const { owner } = account
      const rank = [this.#slots.accountCalls(owner), this.#served.get(owner) ?? 0] satisfies [number, number]
      if (next !== null && (rank[0] - least[0] || rank[1] - least[1]) >= 0) continue
      next = account
      least = rank
    }
    return next
  }

  #start(delivery: DueWebhook): void {
    if (this.#stop.signal.aborted) return
    const { owner } = delivery
    this.#served.delete(owner)
    this.#served.set(owner, ++this.#turn)
    const [longestAgo] = this.#served.keys()
    if (this.#served.size > MAX_ACCOUNTS) this.#served.delete(longestAgo!)
    this.#held.add(delivery.id, delivery)
    const attempt = this.#call(delivery, this.#slots.take(delivery)).finally(() => this.#attempts.delete(attempt))
    this.#attempts.add(attempt)
  }

  async #call(delivery: DueWebhook, slot: CallPlace): Promise<void> {
    const { id, owner } = delivery
    let waits = false
    const onCalled = (tookMs: number) => {
      const waiting = this.#waiting.get(owner) ?? 0
      if (waiting >= MAX_WAITING_OUTCOMES) return
      this.#waiting.set(owner, waiting + 1)
      waits = true
      slot.free(tookMs)
      this.#wake()
    }
    try {
      const tried = await this.#webhooks.attempt(delivery, this.#stop.signal, onCalled)
      if (tried === null) return
      // A step that stored it at the same time would report it twice.
      await this.#store(tried).catch(() => this.#unstored.set(id, tried))
      this.#wake()
    } catch {
      // The store has failed: a later step finds the delivery, which is still due.
    } finally {
      slot.free(null)
      if (waits) this.#ends(owner)
      if (!this.#unstored.has(id)) this.#held.delete(id)
    }
  }

  #ends(owner: OwnerId): void {
    const waiting = (this.#waiting.get(owner) ?? 0) - 1
    if (waiting > 0) this.#waiting.set(owner, waiting)
    else this.#waiting.delete(owner)
  }

  async #store(tried: AttemptOutcome): Promise<void> {
    await this.#webhooks.record(tried)
    this.#unstored.delete(tried.delivery.id)
    this.#held.delete(tried.delivery.id)
  }
}
