import { AppError, toAppError } from '../../core/errors.ts'
import { DEFAULT_OWNER, type EndpointId, type JobId, type OwnerId } from '../../core/ids.ts'
import {
  type DeliveryState,
  HIDDEN_PROBLEM,
  hasMessage,
  messageBody,
  receiverNumber,
  type SentAgain,
  WEBHOOK,
  type WebhookDelivery,
  type WebhookTry,
} from '../../core/jobs/webhook.ts'
import type { TracedTry } from '../../core/observing/job-spans.ts'
import { cursorAfter, type Page, type PageRequest, pageFromRows, readSlice } from '../../core/pages.ts'
import { webhookKeyPlace } from '../../core/secrets/seals.ts'
import type { Ports } from '../../ports/ports.ts'
import type { DueWebhook, OpenWebhook, WebhookKey } from '../../ports/store/store.ts'
import { SharingGuard } from '../accounts/sharing-guard.ts'
import { type CallResult, callOutbound } from '../outbound-call.ts'
import type { Jobs } from './jobs.ts'

/** Reasons why a message is not sent again. */
const NOT_AGAIN: Readonly<Record<Exclude<SentAgain, 'due'>, string>> = {
  delivered: 'was delivered; only one that was given up can be sent again',
  not_kept: `was given up, and its message is too large to be kept; read the job instead`,
  tried_often: `was tried ${WEBHOOK.triesAgain} times, the maximum`,
}

const KEY_BYTES = 32
const KEY_PREFIX = 'whsec_'
/** Maximum number of old deliveries that one call of {@link Webhooks.removeOld} removes. */
const SWEEP = 500
/** Maximum number of deliveries to which one call of {@link Webhooks.nameReceivers} gives a receiver. */
const MAX_NAMED = 256
/** Limit of deliveries of a page: the tries of each are read. */
export const MAX_DELIVERIES = 100
/** Limit of deliveries that one page reads. */
export const MAX_DELIVERIES_READ = 5_000

/** A signing key as its owner sees it. */
export interface ReadableKey {
  /** `whsec_` and the key in base64. */
  readonly key: string
  readonly createdAtMs: number
}

/** The part of a delivery that is kept until its outcome is stored: not its payload. */
type DeliveryReference = Pick<OpenWebhook, 'id' | 'endpointId' | 'jobId' | 'traceparent'>

/** The outcome of an attempt, before it is stored. */
export interface AttemptOutcome {
  readonly delivery: DeliveryReference
  readonly entry: WebhookTry
  /** Reason of a failure, for the operator's log; null after a success. */
  readonly problem: string | null
}

/** A call that was made. */
interface WebhookCall {
  /** Monotonic, in ms. */
  readonly startMs: number
  readonly tookMs: number
  /** True when its account may not see its outcome. */
  readonly isHidden: boolean
  readonly outcome: AttemptOutcome
}

/**
 * Delivers messages about the ends of jobs to the receivers that the jobs name, signed according to Standard Webhooks.
 */
export class Webhooks {
  readonly #ports
  readonly #jobs
  readonly #sharing

  /** @param sharing says which addresses receivers may have */
  constructor(ports: Ports, jobs: Jobs, sharing = new SharingGuard(ports)) {
    this.#ports = ports
    this.#jobs = jobs
    this.#sharing = sharing
  }

  /** The key that signs the deliveries of an endpoint; created when it is first needed. */
  async key(endpointId: EndpointId, owner: OwnerId): Promise<ReadableKey> {
    const { store } = this.#ports
    const key = await store.webhooks.key(endpointId)
    return this.#readable(
      endpointId,
      key ?? (await store.webhooks.ensureKey(endpointId, owner, this.#newKey(endpointId))),
    )
  }

  /** Replaces the key; the new one signs from the next attempt on. */
  async rotateKey(endpointId: EndpointId, owner: OwnerId): Promise<ReadableKey> {
    const key = this.#newKey(endpointId)
    await this.#ports.store.webhooks.replaceKey(endpointId, owner, key)
    return this.#readable(endpointId, key)
  }

  /**
   * The deliveries of a job's webhook, oldest first. They are kept longer than the job.
   * @throws AppError `not_found` when there is neither a delivery nor a job
   */
  async list(endpointId: EndpointId, jobId: JobId): Promise<WebhookDelivery[]> {
    const deliveries = await this.#ports.store.webhooks.list(endpointId, jobId)
    if (deliveries.length === 0) await this.#jobs.find(endpointId, jobId)
    return deliveries
  }

  /**
   * The deliveries of an endpoint, newest first. A page of one state may have fewer than the limit without being the
   * last.
   * @throws AppError `invalid` for a cursor that no page had
   */
  async page(
    endpointId: EndpointId,
    state: DeliveryState | null,
    request: PageRequest,
  ): Promise<Page<WebhookDelivery>> {
    const slice = readSlice(request, MAX_DELIVERIES)
    const listRequest = { of: { endpointId }, state, slice, maxRead: MAX_DELIVERIES_READ }
    const { deliveries, readUntil } = await this.#ports.store.webhooks.page(listRequest)
    const { items, nextCursor } = pageFromRows(deliveries, slice)
    return { items, nextCursor: nextCursor ?? (readUntil === null ? null : cursorAfter(readUntil)) }
  }

  /**
   * Sends the newest message about a job again, now: one that waits for its next try, or that was given up.
   * @throws AppError `not_found` when there is no delivery, `conflict` when it was delivered, is not kept, or was
   * tried too often
   */
  async sendAgain(endpointId: EndpointId, jobId: JobId): Promise<WebhookDelivery[]> {
    const { store, clock, notifier } = this.#ports
    const result = await store.webhooks.sendAgain(endpointId, jobId, clock.now())
    if (result === null) throw new AppError('not_found', `job ${jobId} has no delivery of a webhook`)
    if (result !== 'due') throw new AppError('conflict', `the webhook of job ${jobId} ${NOT_AGAIN[result]}`)
    notifier.publish('webhooks')
    return await store.webhooks.list(endpointId, jobId)
  }

  /**
   * Calls the receiver once and stores nothing yet. Accounts other than the operator's do not see why a receiver
   * without a public address failed, not even by the time that it took: such an attempt ends when the slowest would.
   * @param signal gives the attempt up, as if it had not been made
   * @param onCalled called with the duration in ms when the call is over; the attempt may end later
   * @returns null when nothing has to be stored: the delivery is over, or the attempt was given up
   */
  async attempt(
    delivery: DueWebhook,
    signal: AbortSignal,
    onCalled: (tookMs: number) => void = () => {},
  ): Promise<AttemptOutcome | null> {
    const call = await this.#call(delivery, signal)
    if (call === null) return null
    onCalled(call.tookMs)
    if (!call.isHidden) return call.outcome
    await this.#until(call.startMs + WEBHOOK.timeoutMs, signal)
    return signal.aborted ? null : call.outcome
  }

  /** Says to which receivers due deliveries go whose URLs are sealed, a bounded number of one account. */
  async nameReceivers(owner: OwnerId, nowMs: number): Promise<void> {
    const { webhooks } = this.#ports.store
    const unnamed = await webhooks.unnamed(owner, nowMs, MAX_NAMED)
    if (unnamed.length > 0)
      await webhooks.setReceivers(unnamed.map(({ id, url }) => ({ id, receiver: receiverNumber(url) })))
  }

  async #call({ id }: DueWebhook, signal: AbortSignal): Promise<WebhookCall | null> {
    const { store, clock } = this.#ports
    const delivery = await store.webhooks.open(id)
    if (delivery === null || signal.aborted) return null
    const { key } = await this.#readKey(delivery)
    const atMs = clock.now()
    const startMs = clock.monotonic()
    const called = typeof key === 'string' ? await this.#post(delivery, key, atMs, signal) : { ...key, isPublic: true }
    if (signal.aborted) return null
    const answer = 'status' in called ? { status: called.status, error: null } : { status: null, error: called.problem }
    const problem = hasMessage(answer.status) ? null : (answer.error ?? `the receiver answered ${answer.status}`)
    const number = delivery.tries + 1
    const isHidden = problem !== null && !called.isPublic && delivery.owner !== DEFAULT_OWNER
    const tookMs = Math.max(0, Math.round(clock.monotonic() - startMs))
    const entry = isHidden
      ? { number, atMs, tookMs: WEBHOOK.timeoutMs, status: null, error: HIDDEN_PROBLEM }
      : { number, atMs, tookMs, ...answer }
    const { endpointId, jobId, traceparent } = delivery
    return { startMs, tookMs, isHidden, outcome: { delivery: { id, endpointId, jobId, traceparent }, entry, problem } }
  }

  /** Stores the outcome of an attempt. May be called again after the store has failed. */
  async record({ delivery, entry, problem }: AttemptOutcome): Promise<void> {
    const { store, emit } = this.#ports
    const { id, endpointId, jobId } = delivery
    if (!(await store.webhooks.recordTry(id, entry))) return
    const { number, atMs, tookMs, status } = entry
    if (isOfJob(delivery)) emit('webhook.tried', { ...tracedTry(delivery, number), atMs, tookMs, status })
    if (problem === null) emit('webhook.delivered', { endpointId, jobId, tries: entry.number })
    else if (entry.number >= WEBHOOK.tries) {
      emit('webhook.failed', { endpointId, jobId, tries: entry.number, problem, shown: entry.error ?? problem })
    }
  }

  /** Gives up deliveries that are overdue for too long, and removes old ones. True when there may be more. */
  async removeOld(nowMs: number): Promise<boolean> {
    const { store, emit } = this.#ports
    const overdue = await store.webhooks.giveUp(nowMs - WEBHOOK.overdueMs, nowMs, SWEEP)
    const problem = 'its next try was overdue for too long'
    for (const delivery of overdue) emit('webhook.failed', { ...delivery, problem, shown: problem })
    const removed = await store.webhooks.removeOver(nowMs - WEBHOOK.retentionMs, SWEEP)
    return overdue.length === SWEEP || removed === SWEEP
  }

  /** A key that cannot be opened fails the attempt, so that its owner sees why. */
  async #readKey({ endpointId, owner }: OpenWebhook): Promise<{ key: string | { problem: string } }> {
    try {
      return { key: (await this.key(endpointId, owner)).key }
    } catch (thrown) {
      const { code, message } = toAppError(thrown)
      if (code === 'unavailable') throw thrown
      return { key: { problem: `the endpoint's key cannot be read, make a new one: ${message}` } }
    }
  }

  async #post(delivery: OpenWebhook, key: string, atMs: number, signal: AbortSignal): Promise<CallResult> {
    const { vault, tracing } = this.#ports
    const rules = this.#sharing.webhookRules(delivery.owner)
    const { id, url } = delivery
    const body = isOfJob(delivery) ? messageBody(delivery.payload, delivery) : delivery.payload
    const traceparent =
      tracing !== undefined && isOfJob(delivery)
        ? tracing.webhook(tracedTry(delivery, delivery.tries + 1))
        : delivery.traceparent
    const timestamp = String(Math.floor(atMs / 1000))
    const signature = await vault.sign(key.slice(KEY_PREFIX.length), [`${id}.${timestamp}.`, body])
    const headers = {
      'content-type': 'application/json',
      'user-agent': 'runyard',
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${signature}`,
      ...(traceparent === null ? {} : { traceparent }),
    }
    const request = { url, headers, body, ...rules }
    return callOutbound(this.#ports, request, { timeoutMs: WEBHOOK.timeoutMs, signal })
  }

  /** Waits until the monotonic time `atMs`, or until the signal comes. */
  #until(atMs: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#ports
    return new Promise(resolve => {
      const cancelTimer = clock.after(Math.max(0, atMs - clock.monotonic()), resolve)
      const giveUp = () => {
        cancelTimer()
        resolve()
      }
      if (signal.aborted) giveUp()
      signal.addEventListener('abort', giveUp, { once: true })
    })
  }

  #newKey(endpointId: EndpointId): WebhookKey {
    const { vault, random, clock } = this.#ports
    const key = `${KEY_PREFIX}${Buffer.from(random.bytes(KEY_BYTES)).toString('base64')}`
    return { sealed: vault.seal(key, webhookKeyPlace(endpointId)), createdAtMs: clock.now() }
  }

  #readable(endpointId: EndpointId, { sealed, createdAtMs }: WebhookKey): ReadableKey {
    return { key: this.#ports.vault.open(sealed, webhookKeyPlace(endpointId)), createdAtMs }
  }
}

/** A batch is in no trace. */
function isOfJob({ jobId }: DeliveryReference): boolean {
  return !jobId.startsWith('batch-')
}

function tracedTry({ id: deliveryId, endpointId, jobId, traceparent }: DeliveryReference, number: number): TracedTry {
  return { endpointId, jobId, traceparent, deliveryId, number }
}
