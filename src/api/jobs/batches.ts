import type { Context } from 'hono'
import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { invalidRequest, notFound } from '../../core/errors.ts'
import { type BatchId, isJobId, type JobId } from '../../core/ids.ts'
import { type Batch, batchRequestView, batchStatus, batchView } from '../../core/jobs/batch.ts'
import { type BatchReading, readBatchName, readMoreRequests, readNewBatch } from '../../core/jobs/batch-reading.ts'
import type { PageBounds } from '../../services/jobs/batches.ts'
import { statusUrl } from '../addresses.ts'
import { bodyRequest } from '../body.ts'
import type { ApiParts } from '../parts.ts'
import { jsonText, type SurfaceEnv } from '../surface.ts'

/** Maximum body of one request, in bytes. */
const CALL_BYTES = 10_485_760
const PAGE = { limit: 100, most: 1_000 } as const

type Call = Context<{ Bindings: SurfaceEnv }>

/** `/batch`: GET lists the endpoint's batches, POST makes a draft. */
export async function listBatches(
  parts: ApiParts,
  call: Call,
  endpoint: Endpoint,
  key: string | undefined,
): Promise<Response> {
  if (call.req.method === 'POST') {
    return parts.room.of(endpoint.owner).body(bodyRequest(call), CALL_BYTES, async body => {
      const name = call.req.query('name')
      const reading =
        typeof body === 'string'
          ? readNewBatch(body, name)
          : await parts.ports.bodies.read(endpoint.owner, 'newBatch', body, name)
      return created(await parts.batches.create(endpoint, checked(reading), key))
    })
  }
  const page = readPage(call)
  const { items, total } = await parts.batches.list(endpoint.id, page)
  return pageText('batches', items.map(batchView), total, page)
}

/** `/batch/{batch_id}`: GET reads the batch, PUT renames it. */
export async function oneBatch(parts: ApiParts, call: Call, endpoint: Endpoint): Promise<Response> {
  const { id } = endpoint
  const batchId = batchParameter(call)
  if (call.req.method !== 'PUT') return jsonText(batchView(await parts.batches.find(id, batchId)))
  return parts.room.of(endpoint.owner).body(bodyRequest(call), CALL_BYTES, async body => {
    const reading =
      typeof body === 'string' ? readBatchName(body) : await parts.ports.bodies.read(endpoint.owner, 'batchName', body)
    return jsonText(batchView(await parts.batches.rename(id, batchId, checked(reading))))
  })
}

/** `/batch/{batch_id}/requests`: GET lists requests with their results, POST adds requests to a draft. */
export async function listBatchRequests(
  parts: ApiParts,
  call: Call,
  endpoint: Endpoint,
  key: string | undefined,
): Promise<Response> {
  const batchId = batchParameter(call)
  if (call.req.method === 'POST') {
    return parts.room.of(endpoint.owner).body(bodyRequest(call), CALL_BYTES, async body => {
      const reading =
        typeof body === 'string'
          ? readMoreRequests(body)
          : await parts.ports.bodies.read(endpoint.owner, 'moreRequests', body)
      return changed(await parts.batches.add(endpoint, batchId, checked(reading), key))
    })
  }
  const page = readPage(call)
  const { id } = endpoint
  const { items, total } = await parts.batches.requests(id, batchId, page)
  const url = (jobId: JobId) => statusUrl(parts.addresses, id, jobId)
  return pageText(
    'requests',
    items.map(item => batchRequestView(item, url)),
    total,
    page,
  )
}

/** `/batch/{batch_id}/requests/{request_id}`: DELETE removes a request from a draft. */
export async function deleteBatchRequest(parts: ApiParts, call: Call, { id }: Endpoint): Promise<Response> {
  const requestId = call.req.param('job') ?? ''
  if (!isJobId(requestId)) throw notFound('request', requestId)
  return changed(await parts.batches.drop(id, batchParameter(call), requestId as JobId))
}

/** `/batch/{batch_id}/finalize`. */
export async function finalizeBatch(parts: ApiParts, call: Call, { id }: Endpoint): Promise<Response> {
  return changed(await parts.batches.finalize(id, batchParameter(call)))
}

/** `/batch/{batch_id}/cancel`. */
export async function cancelBatch(parts: ApiParts, call: Call, { id }: Endpoint): Promise<Response> {
  return changed(await parts.batches.cancel(id, batchParameter(call)))
}

function created(batch: Batch): Response {
  return jsonText(JSON.stringify({ id: batch.id, status: batchStatus(batch) }))
}

function changed(batch: Batch): Response {
  return jsonText(JSON.stringify({ id: batch.id, status: batchStatus(batch), requestTotal: batch.total }))
}

function batchParameter(call: Call): BatchId {
  const id = call.req.param('batch') ?? ''
  // Both have the same characters.
  if (!isJobId(id)) throw notFound('batch', id)
  return id as string as BatchId
}

function checked<Value>(reading: BatchReading<Value>): Value {
  if ('failures' in reading) throw invalidRequest(reading.failures)
  return reading.value
}

function readPage(call: Call): PageBounds {
  const offset = wholeNumber(call, 'offset', 0, Number.MAX_SAFE_INTEGER, 0)
  const limit = wholeNumber(call, 'limit', 1, PAGE.most, PAGE.limit)
  const failures = [offset, limit].filter(value => typeof value === 'string')
  if (failures.length > 0) throw invalidRequest(failures)
  return { offset: offset as number, limit: limit as number }
}

function wholeNumber(call: Call, name: string, min: number, max: number, fallback: number): number | string {
  const text = call.req.query(name)
  if (text === undefined) return fallback
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (value >= min && value <= max) return value
  return name === 'offset'
    ? '"offset" must be a whole number'
    : `"${name}" must be a whole number from ${min} to ${max}`
}

function pageText(name: string, items: readonly string[], total: number, { offset, limit }: PageBounds): Response {
  const hasMore = offset + items.length < total
  const rest = `"total":${total},"offset":${offset},"limit":${limit},"hasMore":${hasMore}`
  return jsonText(`{"${name}":[${items.join(',')}],${rest}}`)
}
