import type { Context } from 'hono'
import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import type { JobId } from '../../core/ids.ts'
import type { WebhookDelivery, WebhookTry } from '../../core/jobs/webhook.ts'
import type { Webhooks } from '../../services/jobs/webhooks.ts'
import { jsonText, type SurfaceEnv } from '../surface.ts'

/** Dependencies of the webhook operations. */
export interface WebhookParts {
  readonly webhooks: Webhooks
}

type Call = Context<{ Bindings: SurfaceEnv }>

/** `/webhook-key`: GET reads the key that signs the endpoint's deliveries, POST creates a new one. */
export async function webhookKey({ webhooks }: WebhookParts, call: Call, endpoint: Endpoint): Promise<Response> {
  const { id, owner } = endpoint
  const rotate = call.req.method === 'POST'
  const { key, createdAtMs } = await (rotate ? webhooks.rotateKey(id, owner) : webhooks.key(id, owner))
  const body = JSON.stringify({ key, createdAt: instant(createdAtMs) })
  return jsonText(body, 200, { 'cache-control': 'no-store' })
}

/** `/webhooks/{job_id}`: delivery state of the job's webhook. */
export async function listWebhooks({ webhooks }: WebhookParts, endpoint: Endpoint, jobId: JobId): Promise<Response> {
  const deliveries = await webhooks.list(endpoint.id, jobId)
  return jsonText(JSON.stringify({ id: jobId, deliveries: deliveries.map(viewOf) }))
}

function viewOf({ id, state, jobStatus, createdAtMs, dueAtMs, tries }: WebhookDelivery): object {
  const next = dueAtMs === null ? {} : { nextTryAt: instant(dueAtMs) }
  return { id, state, jobStatus, createdAt: instant(createdAtMs), ...next, tries: tries.map(tryView) }
}

function tryView({ atMs, tookMs, status, error }: WebhookTry): object {
  return { at: instant(atMs), tookMs, ...(status === null ? { error } : { status }) }
}

function instant(ms: number): string {
  return new Date(ms).toISOString()
}
