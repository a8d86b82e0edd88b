import type { Alert } from '../../../core/alerts/alert.ts'
import type { AlertMessage } from '../../../core/alerts/alert-message.ts'
import type { AlertReceiver } from '../../../core/alerts/alert-receiver.ts'
import type { EndpointId, OwnerId, ReceiverId } from '../../../core/ids.ts'
import type { AlertStore, DueMessage } from '../../../ports/store/alert-store.ts'
import { type PortOperations, perform, query, queryOne, read, type Steps, write } from '../operation.ts'

/** The columns of a receiver without its sealed address. */
const RECEIVER_COLUMNS = 'id, owner, name, kind, shown, created_at_ms, sent_at_ms, problem'
const ALERT_COLUMNS = 'owner, endpoint_id, name, cause, text, first_seen_at_ms, last_seen_at_ms, raised_at_ms'

/** A new receiver. */
export const insertReceiver = `
  INSERT INTO alert_receivers (${RECEIVER_COLUMNS}, sealed) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

/** $1 owner. */
export const listReceivers = `
  SELECT ${RECEIVER_COLUMNS} FROM alert_receivers WHERE owner = $1 ORDER BY created_at_ms, id LIMIT 1000`

/** $1 owner, $2 receiver. */
export const findReceiver = `SELECT ${RECEIVER_COLUMNS} FROM alert_receivers WHERE id = $2 AND owner = $1`

/** $1 owner, $2 receiver. */
export const deleteReceiver = 'DELETE FROM alert_receivers WHERE id = $2 AND owner = $1 RETURNING id'

/** $1 owner. */
export const deleteAlertsUnread = `
  DELETE FROM alerts WHERE owner = $1 AND NOT EXISTS (SELECT 1 FROM alert_receivers WHERE owner = $1)`

/** $1 the owner after which they come, $2 limit. */
export const receiverOwners = `
  SELECT DISTINCT owner FROM alert_receivers WHERE owner > $1 ORDER BY owner LIMIT $2`

/** $1 owner. */
export const openAlerts = `SELECT ${ALERT_COLUMNS} FROM alerts WHERE owner = $1 ORDER BY endpoint_id LIMIT 1000`

/** $1 owner. */
export const deleteAlerts = 'DELETE FROM alerts WHERE owner = $1'

/** An alert. */
export const insertAlert = `INSERT INTO alerts (${ALERT_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`

/** $1 id, $2 owner, $3 receiver, $4 content, $5 attempts, $6 due. Nothing when the receiver is gone. */
export const insertMessage = `
  INSERT INTO alert_messages (id, owner, receiver_id, content, attempts, due_at_ms)
  SELECT $1, $2, id, $4, $5, $6 FROM alert_receivers WHERE id = $3`

/** $1 now, $2 limit: the first message of each receiver. */
export const dueMessages = `
  SELECT m.id AS message_id, m.content, m.attempts, m.due_at_ms, r.id, r.owner, r.name, r.kind, r.shown,
    r.created_at_ms, r.sent_at_ms, r.problem, r.sealed
  FROM alert_messages m JOIN alert_receivers r ON r.id = m.receiver_id
  WHERE m.due_at_ms <= $1 AND NOT EXISTS (
    SELECT 1 FROM alert_messages e
    WHERE e.receiver_id = m.receiver_id AND (e.due_at_ms, e.id) < (m.due_at_ms, m.id))
  ORDER BY m.due_at_ms, m.id LIMIT $2`

/** The time of the first message. */
export const nextDueMessage = 'SELECT MIN(due_at_ms) AS due_at_ms FROM alert_messages'

/** $1 receiver. */
export const waitingMessages = 'SELECT COUNT(*) AS messages FROM alert_messages WHERE receiver_id = $1'

/** $1 message. */
export const deleteMessage = 'DELETE FROM alert_messages WHERE id = $1'

/** $1 message, $2 attempts, $3 due. */
export const putOffMessage = 'UPDATE alert_messages SET attempts = $2, due_at_ms = $3 WHERE id = $1'

/** $1 receiver, $2 time of a message that was taken, NULL for none, $3 the problem, NULL without one. */
export const noteOutcome = `
  UPDATE alert_receivers SET sent_at_ms = COALESCE($2, sent_at_ms), problem = $3 WHERE id = $1`

interface ReceiverRow {
  readonly id: ReceiverId
  readonly owner: OwnerId
  readonly name: string
  readonly kind: AlertReceiver['kind']
  readonly shown: string
  readonly created_at_ms: number
  readonly sent_at_ms: number | null
  readonly problem: string | null
}

interface AlertRow {
  readonly owner: OwnerId
  readonly endpoint_id: EndpointId
  readonly name: string
  readonly cause: Alert['cause']
  readonly text: string
  readonly first_seen_at_ms: number
  readonly last_seen_at_ms: number
  readonly raised_at_ms: number | null
}

interface DueRow extends ReceiverRow {
  readonly message_id: string
  readonly content: string
  readonly attempts: number
  readonly due_at_ms: number
  readonly sealed: string
}

function receiverFromRow(row: ReceiverRow): AlertReceiver {
  const { id, owner, name, kind, shown, problem } = row
  return { id, owner, name, kind, shown, createdAtMs: row.created_at_ms, sentAtMs: row.sent_at_ms, problem }
}

function alertFromRow(row: AlertRow): Alert {
  const { owner, name, cause, text } = row
  const times = { firstSeenAtMs: row.first_seen_at_ms, lastSeenAtMs: row.last_seen_at_ms, raisedAtMs: row.raised_at_ms }
  return { owner, endpointId: row.endpoint_id, name, cause, text, ...times }
}

function dueFromRow(row: DueRow): DueMessage {
  const { id: receiverId, owner, message_id: id, attempts, sealed } = row
  const message = { id, owner, receiverId, content: JSON.parse(row.content), attempts, dueAtMs: row.due_at_ms }
  return { message, receiver: receiverFromRow(row), sealed }
}

function* addMessages(messages: readonly AlertMessage[]): Steps<void> {
  for (const { id, owner, receiverId, content, attempts, dueAtMs } of messages) {
    yield* perform(insertMessage, [id, owner, receiverId, JSON.stringify(content), attempts, dueAtMs])
  }
}

/** Alerts, their receivers, and the messages that were not taken. */
export const alerts = {
  insertReceiver: write(function* (receiver: AlertReceiver, sealed: string): Steps<void> {
    const { id, owner, name, kind, shown, createdAtMs, sentAtMs, problem } = receiver
    yield* perform(insertReceiver, [id, owner, name, kind, shown, createdAtMs, sentAtMs, problem, sealed])
  }),

  receivers: read(function* (owner: OwnerId): Steps<AlertReceiver[]> {
    return (yield* query<ReceiverRow>(listReceivers, [owner])).map(receiverFromRow)
  }),

  findReceiver: read(function* (owner: OwnerId, id: ReceiverId): Steps<AlertReceiver | null> {
    const row = yield* queryOne<ReceiverRow>(findReceiver, [owner, id])
    return row === null ? null : receiverFromRow(row)
  }),

  removeReceiver: write(function* (owner: OwnerId, id: ReceiverId): Steps<boolean> {
    const removed = yield* queryOne(deleteReceiver, [owner, id])
    if (removed !== null) yield* perform(deleteAlertsUnread, [owner])
    return removed !== null
  }),

  owners: read(function* (after: string, limit: number): Steps<OwnerId[]> {
    return (yield* query<{ owner: OwnerId }>(receiverOwners, [after, limit])).map(({ owner }) => owner)
  }),

  open: read(function* (owner: OwnerId): Steps<Alert[]> {
    return (yield* query<AlertRow>(openAlerts, [owner])).map(alertFromRow)
  }),

  save: write(function* (owner: OwnerId, open: readonly Alert[], messages: readonly AlertMessage[]): Steps<void> {
    yield* perform(deleteAlerts, [owner])
    for (const { endpointId, name, cause, text, firstSeenAtMs, lastSeenAtMs, raisedAtMs } of open) {
      yield* perform(insertAlert, [owner, endpointId, name, cause, text, firstSeenAtMs, lastSeenAtMs, raisedAtMs])
    }
    yield* addMessages(messages)
  }),

  addMessages: write(addMessages),

  due: read(function* (nowMs: number, limit: number): Steps<DueMessage[]> {
    return (yield* query<DueRow>(dueMessages, [nowMs, limit])).map(dueFromRow)
  }),

  nextDue: read(function* (): Steps<number | null> {
    return (yield* queryOne<{ due_at_ms: number | null }>(nextDueMessage))?.due_at_ms ?? null
  }),

  waiting: read(function* (id: ReceiverId): Steps<number> {
    return (yield* queryOne<{ messages: number }>(waitingMessages, [id]))!.messages
  }),

  settle: write(function* (message: AlertMessage, nowMs: number, problem: string | null): Steps<void> {
    yield* perform(deleteMessage, [message.id])
    yield* perform(noteOutcome, [message.receiverId, problem === null ? nowMs : null, problem])
  }),

  putOff: write(function* (message: AlertMessage, dueAtMs: number, problem: string): Steps<void> {
    yield* perform(putOffMessage, [message.id, message.attempts + 1, dueAtMs])
    yield* perform(noteOutcome, [message.receiverId, null, problem])
  }),
} satisfies PortOperations<AlertStore>
