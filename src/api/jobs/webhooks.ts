import type { Context } from 'hono'
import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { invalidRequest } from '../../core/errors.ts'
import { problemSentence } from '../../core/field-problem.ts'
import type { JobId } from '../../core/ids.ts'
import {
  DELIVERY_STATES,
  type DeliveryState,
  shownAddress,
  type WebhookDelivery,
  type WebhookTry,
} from '../../core/jobs/webhook.ts'
import { type PageRequest, pageProblems } from '../../core/pages.ts'
import { MAX_DELIVERIES } from '../../services/jobs/webhooks.ts'
import type { ApiParts } from '../parts.ts'
import { jsonText, type SurfaceEnv } from '../surface.ts'

type Call = Context<{ Bindings: SurfaceEnv }>

/** `/webhook-key`: GET reads the key that signs the endpoint's deliveries, POST creates a new one. */
export async function webhookKey({ webhooks }: ApiParts, call: Call, endpoint: Endpoint): Promise<Response> {
  const { id, owner } = endpoint
  const rotate = call.req.method === 'POST'
  const { key, createdAtMs } = await (rotate ? webhooks.rotateKey(id, owner) : webhooks.key(id, owner))
  const body = JSON.stringify({ key, createdAt: instant(createdAtMs) })
  return jsonText(body, 200, { 'cache-control': 'no-store' })
}

/** `/webhooks/{job_id}`: delivery state of the job's webhook. */
export async function listWebhooks({ webhooks }: ApiParts, endpoint: Endpoint, jobId: JobId): Promise<Response> {
  const deliveries = await webhooks.list(endpoint.id, jobId)
  return jsonText(JSON.stringify({ id: jobId, deliveries: deliveries.map(deliveryView) }))
}

/** `/webhooks`: the newest deliveries of the endpoint, all or those in one state. */
export async function listEndpointWebhooks({ webhooks }: ApiParts, call: Call, endpoint: Endpoint): Promise<Response> {
  const { state, page } = deliveryListing(call.req.query())
  const { items, nextCursor } = await webhooks.page(endpoint.id, state, page)
  const deliveries = items.map(delivery => ({ jobId: delivery.jobId, ...deliveryView(delivery) }))
  return jsonText(JSON.stringify({ deliveries, pagination: { nextCursor, hasNextPage: nextCursor !== null } }))
}

/** `/webhooks/{job_id}/send`: sends the newest message about the job again. */
export async function sendWebhookAgain({ webhooks }: ApiParts, endpoint: Endpoint, jobId: JobId): Promise<Response> {
  const deliveries = await webhooks.sendAgain(endpoint.id, jobId)
  return jsonText(JSON.stringify({ id: jobId, deliveries: deliveries.map(deliveryView) }))
}

/** The requested page of deliveries. @throws AppError `invalid` with all problems of the query */
export function deliveryListing({ limit, state, cursor }: Readonly<Record<string, string>>): {
  readonly state: DeliveryState | null
  readonly page: PageRequest
} {
  const page = { limit: limit === undefined ? MAX_DELIVERIES : wholeNumber(limit), cursor }
  const wanted = DELIVERY_STATES.find(known => known === state?.toUpperCase()) ?? null
  const failures = pageProblems(page, MAX_DELIVERIES).map(problem => problemSentence(problem))
  if (state !== undefined && wanted === null) failures.push('"state" must be pending, delivered or failed')
  if (failures.length > 0) throw invalidRequest(failures)
  return { state: wanted, page }
}

function wholeNumber(text: string): number {
  return /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN
}

/** A delivery as lists show it. */
export function deliveryView({ id, state, jobStatus, url, createdAtMs, dueAtMs, tries }: WebhookDelivery): object {
  const next = dueAtMs === null ? {} : { nextTryAt: instant(dueAtMs) }
  const address = url === null ? null : shownAddress(url)
  return { id, state, jobStatus, address, createdAt: instant(createdAtMs), ...next, tries: tries.map(tryView) }
}

function tryView({ atMs, tookMs, status, error }: WebhookTry): object {
  return { at: instant(atMs), tookMs, ...(status === null ? { error } : { status }) }
}

function instant(ms: number): string {
  return new Date(ms).toISOString()
}
