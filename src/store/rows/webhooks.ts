import type { DeliveryId, EndpointId, JobId, OwnerId } from '../../core/ids.ts'
import type { JobStatus } from '../../core/jobs/job.ts'
import type { DeliveryState, WebhookDelivery, WebhookTry } from '../../core/jobs/webhook.ts'
import type { DueWebhook, OpenWebhook, WebhookKey } from '../../ports/store/store.ts'

/** A row of `webhook_deliveries` as the queue has it. */
export interface DueRow {
  readonly id: DeliveryId
  readonly endpoint_id: EndpointId
  readonly due_at_ms: number
}

/** A row of `webhook_deliveries` for a try. */
export interface OpenRow extends DueRow {
  readonly owner: OwnerId
  readonly job_id: JobId
  readonly url: string
  readonly payload: string
  readonly tries: number
}

/** What is left of a row that was given up. */
export type GivenUpRow = Pick<OpenRow, 'endpoint_id' | 'job_id' | 'tries'>

/** A row of `webhook_deliveries` to look at. */
export interface DeliveryRow {
  readonly id: DeliveryId
  readonly endpoint_id: EndpointId
  readonly job_id: JobId
  readonly job_status: JobStatus
  readonly state: DeliveryState
  readonly created_at_ms: number
  readonly due_at_ms: number | null
}

/** A row of `webhook_tries`. */
export interface TryRow {
  readonly number: number
  readonly at_ms: number
  readonly took_ms: number
  readonly status: number | null
  readonly error: string | null
}

/** A row of `webhook_keys`. */
export interface WebhookKeyRow {
  readonly sealed: string
  readonly created_at_ms: number
}

/** A row as a delivery that is due. */
export function toDue({ id, endpoint_id, due_at_ms }: DueRow): DueWebhook {
  return { id, endpointId: endpoint_id, dueAtMs: due_at_ms }
}

/** A row as what a try needs. */
export function toOpen(row: OpenRow): OpenWebhook {
  const { owner, job_id, url, payload, tries } = row
  return { ...toDue(row), owner, jobId: job_id, url, payload, tries }
}

/** A row, with the rows of its tries, as a delivery. */
export function toDelivery(row: DeliveryRow, tries: readonly TryRow[]): WebhookDelivery {
  const { id, endpoint_id, job_id, job_status, state, created_at_ms, due_at_ms } = row
  return {
    id,
    endpointId: endpoint_id,
    jobId: job_id,
    jobStatus: job_status,
    state,
    createdAtMs: created_at_ms,
    dueAtMs: due_at_ms,
    tries: tries.map(toTry),
  }
}

/** A row as a try. */
export function toTry({ number, at_ms, took_ms, status, error }: TryRow): WebhookTry {
  return { number, atMs: at_ms, tookMs: took_ms, status, error }
}

/** A row as a key. */
export function toWebhookKey({ sealed, created_at_ms }: WebhookKeyRow): WebhookKey {
  return { sealed, createdAtMs: created_at_ms }
}
