import type { BatchId, DeliveryId, EndpointId, JobId, OwnerId } from '../../../core/ids.ts'
import type { Job } from '../../../core/jobs/job.ts'
import { jobView } from '../../../core/jobs/job-view.ts'
import {
  afterTry,
  receiverOf,
  UNKNOWN_RECEIVER,
  WEBHOOK,
  type WebhookDelivery,
  type WebhookTry,
} from '../../../core/jobs/webhook.ts'
import { isSealedPayload } from '../../../core/secrets/payload-seal.ts'
import type {
  DeliveryListPart,
  DeliveryListRequest,
  DeliveryReceiver,
  DeliveryUrl,
  DueWebhook,
  DueWebhooksRequest,
  GivenUpWebhook,
  OpenWebhook,
  ReceiversRequest,
  WaitingAccounts,
  WaitingReceivers,
  WebhookKey,
  WebhookStore,
} from '../../../ports/store/store.ts'
import * as sql from '../../tables/webhooks.ts'
import {
  type DeliveryRow,
  type DueRow,
  type FirstDueRow,
  type GivenUpRow,
  type OpenRow,
  type TryRow,
  toDelivery,
  toDue,
  toOpen,
  toWebhookKey,
  type UrlRow,
  type WebhookKeyRow,
} from '../../tables/webhooks.ts'
import { type OperationsOf, perform, query, queryOne, read, type Steps, write } from '../operation.ts'

/** Deliveries of webhooks and the keys that sign them. */
export const webhooks = {
  accountsDue: read(function* (nowMs: number, after: string, limit: number): Steps<WaitingAccounts> {
    const rows = yield* query<FirstDueRow<OwnerId>>(sql.waitingAccounts, [after, limit])
    return {
      accounts: rows.filter(row => row.due_at_ms <= nowMs).map(row => row.name),
      readUntil: rows.length < limit ? null : rows.at(-1)!.name,
    }
  }),

  receiversDue: read(function* ({ owner, nowMs, after, maxRead }: ReceiversRequest): Steps<WaitingReceivers> {
    const rows = yield* query<FirstDueRow<number>>(sql.waitingReceivers, [owner, after, maxRead])
    return {
      receivers: rows.filter(row => row.due_at_ms <= nowMs).map(row => row.name),
      readUntil: rows.length < maxRead ? null : rows.at(-1)!.name,
    }
  }),

  due: read(function* ({ owner, receiver, nowMs, limit }: DueWebhooksRequest): Steps<DueWebhook[]> {
    const rows =
      receiver === undefined
        ? yield* query<DueRow>(sql.dueDeliveries, [owner, nowMs, limit])
        : yield* query<DueRow>(sql.dueDeliveriesTo, [owner, nowMs, limit, receiver])
    return rows.map(toDue)
  }),

  unnamed: read(function* (owner: OwnerId, nowMs: number, limit: number): Steps<DeliveryUrl[]> {
    const rows = yield* query<UrlRow>(sql.dueUrls, [owner, UNKNOWN_RECEIVER, nowMs, limit])
    return rows.map(({ id, job_id, url }) => ({ id, jobId: job_id, url }))
  }),

  setReceivers: write(function* (receivers: readonly DeliveryReceiver[]): Steps<void> {
    for (const { id, receiver } of receivers) yield* perform(sql.setReceiver, [id, receiver])
  }),

  nextDue: read(function* (nowMs: number): Steps<number | null> {
    return (yield* queryOne<{ at_ms: number | null }>(sql.nextDue, [nowMs]))?.at_ms ?? null
  }),

  open: read(function* (id: DeliveryId): Steps<OpenWebhook | null> {
    const row = yield* queryOne<OpenRow>(sql.openDelivery, [id, WEBHOOK.inputBytes])
    return row === null ? null : toOpen(row)
  }),

  recordTry: write(function* (id: DeliveryId, entry: WebhookTry): Steps<boolean> {
    const { number, atMs, tookMs, status, error } = entry
    if ((yield* query(sql.insertTry, [id, number, atMs, tookMs, status, error])).length === 0) {
      const known = yield* query<TryRow>(sql.findTries, [id])
      return known.some(row => row.number === number && row.at_ms === atMs)
    }
    const { state, dueAtMs } = afterTry(entry)
    if (dueAtMs !== null) yield* perform(sql.postponeDelivery, [id, dueAtMs])
    else yield* perform(sql.endDelivery, [id, state, atMs + tookMs])
    return true
  }),

  list: read(function* (endpointId: EndpointId, jobId: JobId): Steps<WebhookDelivery[]> {
    return yield* withTries(yield* query<DeliveryRow>(sql.listDeliveries, [endpointId, jobId]))
  }),

  page: read(function* ({ endpointId, state, slice, maxRead }: DeliveryListRequest): Steps<DeliveryListPart> {
    const before = [slice.after?.createdAtMs ?? Number.MAX_SAFE_INTEGER, slice.after?.id ?? '']
    const last = yield* queryOne<PlaceRow>(sql.deliveryByAge, [endpointId, ...before, maxRead - 1])
    const until = last === null ? [-1, ''] : [last.created_at_ms, last.id]
    const asked = [endpointId, ...before, ...until, state, slice.limit]
    const rows = yield* query<DeliveryRow>(sql.pageOfDeliveries, asked)
    return {
      deliveries: yield* withTries(rows),
      readUntil: last === null ? null : { createdAtMs: last.created_at_ms, id: last.id },
    }
  }),

  giveUp: write(function* (beforeMs: number, nowMs: number, limit: number): Steps<GivenUpWebhook[]> {
    const rows = yield* query<GivenUpRow>(sql.giveUpDeliveries, [beforeMs, nowMs, limit])
    return rows.map(({ endpoint_id, job_id, tries }) => ({ endpointId: endpoint_id, jobId: job_id, tries }))
  }),

  removeOver: write(function* (beforeMs: number, limit: number): Steps<number> {
    const removed = yield* query(sql.deleteOver, [beforeMs, limit])
    yield* perform(sql.deleteUnusedKeys)
    return removed.length
  }),

  key: read(function* (endpointId: EndpointId): Steps<WebhookKey | null> {
    const row = yield* queryOne<WebhookKeyRow>(sql.findWebhookKey, [endpointId])
    return row === null ? null : toWebhookKey(row)
  }),

  ensureKey: write(function* (endpointId: EndpointId, owner: OwnerId, key: WebhookKey): Steps<WebhookKey> {
    yield* perform(sql.insertWebhookKey, [endpointId, owner, key.sealed, key.createdAtMs])
    const row = yield* queryOne<WebhookKeyRow>(sql.findWebhookKey, [endpointId])
    return row === null ? key : toWebhookKey(row)
  }),

  replaceKey: write(function* (endpointId: EndpointId, owner: OwnerId, key: WebhookKey): Steps<void> {
    yield* perform(sql.replaceWebhookKey, [endpointId, owner, key.sealed, key.createdAtMs])
  }),
} satisfies OperationsOf<WebhookStore>

/** For jobs that have just become final: a delivery for each that names a receiver. */
export function* addDeliveries(jobs: readonly Job[], nowMs: number): Steps<void> {
  for (const job of jobs) {
    if (job.webhook === null) continue
    yield* addDelivery({ ...job, payload: jobView(job, nowMs) }, nowMs)
  }
}

/** The message for a receiver, about a job or a batch. */
type Message = Pick<Job, 'owner' | 'endpointId' | 'status' | 'webhook'> & {
  readonly id: JobId | BatchId
  readonly payload: string
  readonly traceparent: string | null
}

/** Adds a delivery if there is a receiver. */
export function* addDelivery(
  { id: about, owner, endpointId, status, webhook, payload, traceparent }: Message,
  nowMs: number,
): Steps<void> {
  if (webhook === null) return
  const last = yield* queryOne<{ seq: number | null }>(sql.lastDelivery, [about])
  // Numbers grow with time, so one is never given again after the deliveries before it were removed.
  const seq = Math.max(nowMs, (last?.seq ?? 0) + 1)
  const id = `msg_${about}_${seq}`
  const receiver = isSealedPayload(webhook) ? UNKNOWN_RECEIVER : receiverOf(webhook)
  const of = [id, owner, endpointId, about, seq, status, webhook]
  yield* perform(sql.insertDelivery, [...of, nowMs, payload, traceparent, receiver])
}

function* withTries(rows: readonly DeliveryRow[]): Steps<WebhookDelivery[]> {
  const deliveries: WebhookDelivery[] = []
  for (const row of rows) deliveries.push(toDelivery(row, yield* query<TryRow>(sql.findTries, [row.id])))
  return deliveries
}

/** Where a delivery stands in a list. */
type PlaceRow = Pick<DeliveryRow, 'created_at_ms' | 'id'>
