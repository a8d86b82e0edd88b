import type { BatchId, DeliveryId, EndpointId, JobId, OwnerId } from '../../../core/ids.ts'
import type { Job, JobStatus } from '../../../core/jobs/job.ts'
import { jobView, linkedJobView } from '../../../core/jobs/job-view.ts'
import {
  afterTry,
  type DeliveryState,
  receiverNumber,
  type SentAgain,
  UNKNOWN_RECEIVER,
  WEBHOOK,
  type WebhookDelivery,
  type WebhookTry,
} from '../../../core/jobs/webhook.ts'
import { isSealedPayload } from '../../../core/secrets/seals.ts'
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
import { payload } from '../../tables/jobs.ts'
import { readSummed } from '../../tables/summed-text.ts'
import { type PortOperations, perform, query, queryAll, queryOne, read, type Steps, write } from '../operation.ts'

/** A delivery that waits for a try. Written like the partial indexes, so that they serve it. */
const PENDING = `state = 'PENDING'`

/** $1 job. The number of its latest delivery. */
export const lastDelivery = 'SELECT MAX(seq) AS seq FROM webhook_deliveries WHERE job_id = $1'

/**
 * $1 id, $2 owner, $3 endpoint, $4 job, $5 number, $6 status of the job, $7 URL, $8 now, $9 payload, $10 context of
 * the trace, $11 receiver. Due at once.
 */
export const insertDelivery = `
  INSERT INTO webhook_deliveries (id, owner, endpoint_id, job_id, seq, job_status, state, url, created_at_ms, due_at_ms,
    payload, traceparent, receiver)
  VALUES ($1, $2, $3, $4, $5, $6, 'PENDING', $7, $8, $8, $9, $10, $11)`

/** $1 the account before the first, $2 limit. Accounts with a waiting delivery, and the instant of their first one. */
export const waitingAccounts = `
  WITH RECURSIVE accounts(owner, number) AS (
    SELECT (SELECT MIN(owner) FROM webhook_deliveries WHERE ${PENDING} AND owner > $1), 1
    UNION ALL
    SELECT (SELECT MIN(owner) FROM webhook_deliveries WHERE ${PENDING} AND owner > accounts.owner), number + 1
    FROM accounts WHERE accounts.owner IS NOT NULL AND number < $2)
  SELECT owner AS name,
    (SELECT MIN(due_at_ms) FROM webhook_deliveries WHERE ${PENDING} AND owner = accounts.owner) AS due_at_ms
  FROM accounts WHERE owner IS NOT NULL`

/**
 * $1 account, $2 the receiver before the first, $3 limit. Receivers with a waiting delivery, and the instant at which
 * their first one is due.
 */
export const waitingReceivers = `
  WITH RECURSIVE receivers(receiver, number) AS (
    SELECT (SELECT MIN(receiver) FROM webhook_deliveries WHERE ${PENDING} AND owner = $1 AND receiver > $2), 1
    UNION ALL
    SELECT (SELECT MIN(receiver) FROM webhook_deliveries WHERE ${PENDING} AND owner = $1 AND receiver > receivers.receiver),
      number + 1
    FROM receivers WHERE receivers.receiver IS NOT NULL AND number < $3)
  SELECT receiver AS name,
    (SELECT MIN(due_at_ms) FROM webhook_deliveries
      WHERE ${PENDING} AND owner = $1 AND receiver = receivers.receiver) AS due_at_ms
  FROM receivers WHERE receiver IS NOT NULL`

/** $1 account, $2 now, $3 limit. */
export const dueDeliveries = `
  SELECT id, owner, endpoint_id, receiver, due_at_ms FROM webhook_deliveries
  WHERE ${PENDING} AND owner = $1 AND due_at_ms <= $2 ORDER BY due_at_ms, id LIMIT $3`

/** $1 account, $2 now, $3 limit, $4 receiver. */
export const dueDeliveriesTo = `
  SELECT id, owner, endpoint_id, receiver, due_at_ms FROM webhook_deliveries
  WHERE ${PENDING} AND owner = $1 AND receiver = $4 AND due_at_ms <= $2 ORDER BY due_at_ms, id LIMIT $3`

/** $1 account, $2 receiver, $3 now, $4 limit. */
export const dueUrls = `
  SELECT id, job_id, url FROM webhook_deliveries
  WHERE ${PENDING} AND owner = $1 AND receiver = $2 AND due_at_ms <= $3 ORDER BY due_at_ms, id LIMIT $4`

/** $1 delivery, $2 receiver. */
export const setReceiver = `UPDATE webhook_deliveries SET receiver = $2 WHERE id = $1 AND ${PENDING}`

/** $1 now. */
export const nextDue = `SELECT MIN(due_at_ms) AS at_ms FROM webhook_deliveries WHERE ${PENDING} AND due_at_ms > $1`

/** $1 delivery, $2 maximum size of an input. */
export const openDelivery = `
  SELECT id, owner, endpoint_id, receiver, job_id, url, due_at_ms, payload, traceparent,
    COALESCE((SELECT ${payload('input')} FROM jobs WHERE jobs.id = webhook_deliveries.job_id AND input_bytes <= $2),
      (SELECT input FROM job_records WHERE job_records.id = webhook_deliveries.job_id AND input_bytes <= $2)) AS input,
    (SELECT COUNT(*) FROM webhook_tries WHERE delivery_id = $1) AS tries
  FROM webhook_deliveries WHERE id = $1 AND ${PENDING}`

/** $1 delivery. */
export const findTries = `
  SELECT number, at_ms, took_ms, status, error FROM webhook_tries WHERE delivery_id = $1 ORDER BY number`

/**
 * $1 delivery, $2 number, $3 instant, $4 duration in ms, $5 status, $6 error. No row unless the delivery waits for it.
 */
export const insertTry = `
  INSERT INTO webhook_tries (delivery_id, number, owner, at_ms, took_ms, status, error)
  SELECT id, $2, owner, $3, $4, $5, $6 FROM webhook_deliveries
  WHERE id = $1 AND ${PENDING} AND $2 = 1 + (SELECT COUNT(*) FROM webhook_tries WHERE delivery_id = $1)
  RETURNING number`

/** $1 delivery, $2 the instant at which it is due again. */
export const postponeDelivery = `UPDATE webhook_deliveries SET due_at_ms = $2 WHERE id = $1 AND ${PENDING}`

/** The message of a delivery that is given up, unless it is large: a person may send it again. */
const KEPT_PAYLOAD = `CASE WHEN LENGTH(payload) <= ${WEBHOOK.keptCharacters} THEN payload END`

/** $1 delivery, $2 its last state, $3 now. */
export const endDelivery = `
  UPDATE webhook_deliveries SET state = $2, over_at_ms = $3, due_at_ms = NULL,
    payload = CASE WHEN $2 = 'FAILED' THEN ${KEPT_PAYLOAD} END
  WHERE id = $1 AND ${PENDING}`

/** $1 endpoint, $2 job. Its newest delivery. */
export const newestDelivery = `
  SELECT id, state, CASE WHEN payload IS NULL THEN 0 ELSE 1 END AS kept,
    (SELECT COUNT(*) FROM webhook_tries WHERE delivery_id = webhook_deliveries.id) AS tries
  FROM webhook_deliveries WHERE job_id = $2 AND endpoint_id = $1 ORDER BY seq DESC LIMIT 1`

/** $1 delivery, $2 now. */
export const makeDue = `
  UPDATE webhook_deliveries SET state = 'PENDING', due_at_ms = $2, over_at_ms = NULL
  WHERE id = $1 AND state <> 'DELIVERED' AND payload IS NOT NULL RETURNING id`

/** $1 instant, $2 now, $3 limit. */
export const giveUpDeliveries = `
  UPDATE webhook_deliveries SET state = 'FAILED', over_at_ms = $2, due_at_ms = NULL, payload = ${KEPT_PAYLOAD}
  WHERE id IN (
    SELECT id FROM webhook_deliveries WHERE ${PENDING} AND due_at_ms <= $1 ORDER BY due_at_ms LIMIT $3 {{skip_locked}})
  RETURNING endpoint_id, job_id, (SELECT COUNT(*) FROM webhook_tries WHERE delivery_id = webhook_deliveries.id) AS tries`

/** $1 endpoint, $2 job. */
export const listDeliveries = `
  SELECT id, endpoint_id, job_id, job_status, state, url, created_at_ms, due_at_ms FROM webhook_deliveries
  WHERE job_id = $2 AND endpoint_id = $1 ORDER BY seq`

/** Columns by which deliveries are listed. */
export type DeliveryColumn = 'endpoint_id' | 'owner'

/**
 * $1 endpoint or owner, $2 and $3 the instant and the id before which they come, $4 number of skipped ones.
 */
export const deliveryByAge = (column: DeliveryColumn) => `
  SELECT created_at_ms, id FROM webhook_deliveries WHERE ${column} = $1 AND (created_at_ms, id) < ($2, $3)
  ORDER BY created_at_ms DESC, id DESC LIMIT 1 OFFSET $4`

/**
 * $1 endpoint or owner, $2 and $3 the instant and the id before which they come, $4 and $5 those of the last one that
 * matters, $6 the state, null for all, $7 limit.
 */
export const pageOfDeliveries = (column: DeliveryColumn) => `
  SELECT id, endpoint_id, job_id, job_status, state, url, created_at_ms, due_at_ms FROM webhook_deliveries
  WHERE ${column} = $1 AND (created_at_ms, id) < ($2, $3) AND (created_at_ms, id) >= ($4, $5)
    AND (CAST($6 AS TEXT) IS NULL OR (state || '') = $6)
  ORDER BY created_at_ms DESC, id DESC LIMIT $7`

/** $1 instant, $2 limit. Tries go with their delivery. */
export const deleteOver = `
  DELETE FROM webhook_deliveries WHERE id IN (
    SELECT id FROM webhook_deliveries WHERE state <> 'PENDING' AND over_at_ms <= $1 ORDER BY over_at_ms LIMIT $2 {{skip_locked}})
  RETURNING id`

/** Keys of endpoints of which nothing is left, unless a delivery still waits. */
export const deleteUnusedKeys = `
  DELETE FROM webhook_keys
  WHERE NOT EXISTS (SELECT 1 FROM endpoint_ids WHERE id = webhook_keys.endpoint_id)
    AND NOT EXISTS (
      SELECT 1 FROM webhook_deliveries WHERE ${PENDING} AND webhook_deliveries.endpoint_id = webhook_keys.endpoint_id)`

/** $1 endpoint. */
export const findWebhookKey = 'SELECT sealed, created_at_ms FROM webhook_keys WHERE endpoint_id = $1'

/** $1 endpoint, $2 owner, $3 sealed key, $4 now. */
export const insertWebhookKey = `
  INSERT INTO webhook_keys (endpoint_id, owner, sealed, created_at_ms) VALUES ($1, $2, $3, $4)
  ON CONFLICT (endpoint_id) DO NOTHING`

/** $1 endpoint, $2 owner, $3 sealed key, $4 now. */
export const replaceWebhookKey = `
  INSERT INTO webhook_keys (endpoint_id, owner, sealed, created_at_ms) VALUES ($1, $2, $3, $4)
  ON CONFLICT (endpoint_id) DO UPDATE SET sealed = excluded.sealed, created_at_ms = excluded.created_at_ms`

/** A row of `webhook_deliveries` as the queue has it. */
interface DueRow {
  readonly id: DeliveryId
  readonly owner: OwnerId
  readonly endpoint_id: EndpointId
  readonly receiver: number
  readonly due_at_ms: number
}

/** An account or a receiver with deliveries that wait. */
interface FirstDueRow<Name> {
  readonly name: Name
  readonly due_at_ms: number
}

/** A row of `webhook_deliveries` for a try. */
interface OpenRow extends DueRow {
  readonly job_id: JobId
  readonly url: string
  readonly payload: string
  readonly input: string | null
  readonly traceparent: string | null
  readonly tries: number
}

/** The URL of a delivery. */
type UrlRow = Pick<OpenRow, 'id' | 'job_id' | 'url'>

/** The columns of a row that was given up. */
type GivenUpRow = Pick<OpenRow, 'endpoint_id' | 'job_id' | 'tries'>

/** A row of `webhook_deliveries` as lists show it. */
interface DeliveryRow {
  readonly id: DeliveryId
  readonly endpoint_id: EndpointId
  readonly job_id: JobId
  readonly job_status: JobStatus
  readonly state: DeliveryState
  readonly url: string
  readonly created_at_ms: number
  readonly due_at_ms: number | null
}

/** A row of `newestDelivery`. */
interface NewestRow extends Pick<DeliveryRow, 'id' | 'state'> {
  /** 1 if its message is kept. */
  readonly kept: number
  readonly tries: number
}

/** A row of `webhook_tries`. */
interface TryRow {
  readonly number: number
  readonly at_ms: number
  readonly took_ms: number
  readonly status: number | null
  readonly error: string | null
}

/** A row of `webhook_keys`. */
interface WebhookKeyRow {
  readonly sealed: string
  readonly created_at_ms: number
}

/** A row as a delivery that is due. */
function dueWebhookFromRow({ id, owner, endpoint_id, receiver, due_at_ms }: DueRow): DueWebhook {
  return { id, owner, endpointId: endpoint_id, receiver, dueAtMs: due_at_ms }
}

/** A row as what a try needs. */
function openWebhookFromRow(row: OpenRow): OpenWebhook {
  const { job_id, url, payload, traceparent, tries } = row
  const { text, isWhole } = readSummed(row.input)
  return { ...dueWebhookFromRow(row), jobId: job_id, url, payload, input: isWhole ? text : null, traceparent, tries }
}

/** A row, with the rows of its tries, as a delivery. */
function deliveryFromRow(row: DeliveryRow, tries: readonly TryRow[]): WebhookDelivery {
  const { id, endpoint_id, job_id, job_status, state, url, created_at_ms, due_at_ms } = row
  return {
    id,
    endpointId: endpoint_id,
    jobId: job_id,
    jobStatus: job_status,
    state,
    url,
    createdAtMs: created_at_ms,
    dueAtMs: due_at_ms,
    tries: tries.map(tryFromRow),
  }
}

/** A row as a try. */
function tryFromRow({ number, at_ms, took_ms, status, error }: TryRow): WebhookTry {
  return { number, atMs: at_ms, tookMs: took_ms, status, error }
}

/** A row as a key. */
function webhookKeyFromRow({ sealed, created_at_ms }: WebhookKeyRow): WebhookKey {
  return { sealed, createdAtMs: created_at_ms }
}

/** Deliveries of webhooks and the keys that sign them. */
export const webhooks = {
  accountsDue: read(function* (nowMs: number, after: string, limit: number): Steps<WaitingAccounts> {
    const rows = yield* query<FirstDueRow<OwnerId>>(waitingAccounts, [after, limit])
    return {
      accounts: rows.filter(row => row.due_at_ms <= nowMs).map(row => row.name),
      readUntil: rows.length < limit ? null : rows.at(-1)!.name,
    }
  }),

  receiversDue: read(function* ({ owner, nowMs, after, maxRead }: ReceiversRequest): Steps<WaitingReceivers> {
    const rows = yield* query<FirstDueRow<number>>(waitingReceivers, [owner, after, maxRead])
    return {
      receivers: rows.filter(row => row.due_at_ms <= nowMs).map(row => row.name),
      readUntil: rows.length < maxRead ? null : rows.at(-1)!.name,
    }
  }),

  due: read(function* ({ owner, receiver, nowMs, limit }: DueWebhooksRequest): Steps<DueWebhook[]> {
    const rows =
      receiver === undefined
        ? yield* query<DueRow>(dueDeliveries, [owner, nowMs, limit])
        : yield* query<DueRow>(dueDeliveriesTo, [owner, nowMs, limit, receiver])
    return rows.map(dueWebhookFromRow)
  }),

  unnamed: read(function* (owner: OwnerId, nowMs: number, limit: number): Steps<DeliveryUrl[]> {
    const rows = yield* query<UrlRow>(dueUrls, [owner, UNKNOWN_RECEIVER, nowMs, limit])
    return rows.map(({ id, job_id, url }) => ({ id, jobId: job_id, url }))
  }),

  setReceivers: write(function* (receivers: readonly DeliveryReceiver[]): Steps<void> {
    for (const { id, receiver } of receivers) yield* perform(setReceiver, [id, receiver])
  }),

  nextDue: read(function* (nowMs: number): Steps<number | null> {
    return (yield* queryOne<{ at_ms: number | null }>(nextDue, [nowMs]))?.at_ms ?? null
  }),

  open: read(function* (id: DeliveryId): Steps<OpenWebhook | null> {
    const row = yield* queryOne<OpenRow>(openDelivery, [id, WEBHOOK.inputBytes])
    return row === null ? null : openWebhookFromRow(row)
  }),

  recordTry: write(function* (id: DeliveryId, entry: WebhookTry): Steps<boolean> {
    const { number, atMs, tookMs, status, error } = entry
    if ((yield* query(insertTry, [id, number, atMs, tookMs, status, error])).length === 0) {
      const tries = yield* query<TryRow>(findTries, [id])
      return tries.some(row => row.number === number && row.at_ms === atMs)
    }
    const { state, dueAtMs } = afterTry(entry)
    if (dueAtMs !== null) yield* perform(postponeDelivery, [id, dueAtMs])
    else yield* perform(endDelivery, [id, state, atMs + tookMs])
    return true
  }),

  list: read(function* (endpointId: EndpointId, jobId: JobId): Steps<WebhookDelivery[]> {
    return yield* withTries(yield* query<DeliveryRow>(listDeliveries, [endpointId, jobId]))
  }),

  page: read(function* ({ of, state, slice, maxRead }: DeliveryListRequest): Steps<DeliveryListPart> {
    const start = [slice.after?.createdAtMs ?? Number.MAX_SAFE_INTEGER, slice.after?.id ?? '']
    const [column, value] = 'owner' in of ? (['owner', of.owner] as const) : (['endpoint_id', of.endpointId] as const)
    const last = yield* queryOne<PlaceRow>(deliveryByAge(column), [value, ...start, maxRead - 1])
    const until = last === null ? [-1, ''] : [last.created_at_ms, last.id]
    const params = [value, ...start, ...until, state, slice.limit]
    const rows = yield* query<DeliveryRow>(pageOfDeliveries(column), params)
    return {
      deliveries: yield* withTries(rows),
      readUntil: last === null ? null : { createdAtMs: last.created_at_ms, id: last.id },
    }
  }),

  sendAgain: write(function* (endpointId: EndpointId, jobId: JobId, nowMs: number): Steps<SentAgain | null> {
    const row = yield* queryOne<NewestRow>(newestDelivery, [endpointId, jobId])
    if (row === null) return null
    const { id, state, kept, tries } = row
    if (state === 'DELIVERED') return 'delivered'
    if (tries >= WEBHOOK.triesAgain) return 'tried_often'
    if (kept === 0) return 'not_kept'
    return (yield* query(makeDue, [id, nowMs])).length === 0 ? 'delivered' : 'due'
  }),

  giveUp: write(function* (beforeMs: number, nowMs: number, limit: number): Steps<GivenUpWebhook[]> {
    const rows = yield* query<GivenUpRow>(giveUpDeliveries, [beforeMs, nowMs, limit])
    return rows.map(({ endpoint_id, job_id, tries }) => ({ endpointId: endpoint_id, jobId: job_id, tries }))
  }),

  removeOver: write(function* (beforeMs: number, limit: number): Steps<number> {
    const removed = yield* query(deleteOver, [beforeMs, limit])
    yield* perform(deleteUnusedKeys)
    return removed.length
  }),

  key: read(function* (endpointId: EndpointId): Steps<WebhookKey | null> {
    const row = yield* queryOne<WebhookKeyRow>(findWebhookKey, [endpointId])
    return row === null ? null : webhookKeyFromRow(row)
  }),

  ensureKey: write(function* (endpointId: EndpointId, owner: OwnerId, key: WebhookKey): Steps<WebhookKey> {
    yield* perform(insertWebhookKey, [endpointId, owner, key.sealed, key.createdAtMs])
    const row = yield* queryOne<WebhookKeyRow>(findWebhookKey, [endpointId])
    return row === null ? key : webhookKeyFromRow(row)
  }),

  replaceKey: write(function* (endpointId: EndpointId, owner: OwnerId, key: WebhookKey): Steps<void> {
    yield* perform(replaceWebhookKey, [endpointId, owner, key.sealed, key.createdAtMs])
  }),
} satisfies PortOperations<WebhookStore>

/**
 * For jobs that have just become final: a delivery for each that names a receiver.
 * @param largeAt the address of a large output, which is not in the message
 */
export function* addDeliveries(jobs: readonly Job[], nowMs: number, largeAt?: string): Steps<void> {
  const named = jobs.filter(({ webhook }) => webhook !== null)
  const payloadOf = (job: Job) => (largeAt === undefined ? jobView(job, nowMs) : linkedJobView(job, nowMs, largeAt))
  yield* addMessages(
    named.map(job => ({ ...job, payload: payloadOf(job) })),
    nowMs,
  )
}

/** The message for a receiver, about a job or a batch. */
type Message = Pick<Job, 'owner' | 'endpointId' | 'status' | 'webhook'> & {
  readonly id: JobId | BatchId
  readonly payload: string
  readonly traceparent: string | null
}

/** Adds a delivery if there is a receiver. */
export function* addDelivery(message: Message, nowMs: number): Steps<void> {
  if (message.webhook !== null) yield* addMessages([message], nowMs)
}

/** Adds deliveries of messages about different jobs or batches, which have receivers. */
function* addMessages(messages: readonly Message[], nowMs: number): Steps<void> {
  const lastOnes = yield* queryAll<{ seq: number | null }[]>(
    ...messages.map(({ id }) => ({ sql: lastDelivery, params: [id] })),
  )
  for (const [index, { id: about, owner, endpointId, status, webhook, payload, traceparent }] of messages.entries()) {
    // Numbers grow with time, so one is never given again after the deliveries before it were removed.
    const seq = Math.max(nowMs, (lastOnes[index]?.[0]?.seq ?? 0) + 1)
    const id = `msg_${about}_${seq}`
    const receiver = isSealedPayload(webhook!) ? UNKNOWN_RECEIVER : receiverNumber(webhook!)
    const of = [id, owner, endpointId, about, seq, status, webhook]
    yield* perform(insertDelivery, [...of, nowMs, payload, traceparent, receiver])
  }
}

function* withTries(rows: readonly DeliveryRow[]): Steps<WebhookDelivery[]> {
  const deliveries: WebhookDelivery[] = []
  for (const row of rows) deliveries.push(deliveryFromRow(row, yield* query<TryRow>(findTries, [row.id])))
  return deliveries
}

/** Place of a delivery in a list. */
type PlaceRow = Pick<DeliveryRow, 'created_at_ms' | 'id'>
