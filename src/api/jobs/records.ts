import type { Context } from 'hono'
import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { AppError, invalidRequest } from '../../core/errors.ts'
import type { JobId } from '../../core/ids.ts'
import { readJobFilter, readJobListing, readManyJobs } from '../../core/jobs/job-list.ts'
import { jobRecordViewParts, jobSummaryView } from '../../core/jobs/job-view.ts'
import { readTraceparent } from '../../core/jobs/trace-context.ts'
import type { BulkChange } from '../../services/jobs/job-records.ts'
import { inputUrl, statusUrl } from '../addresses.ts'
import { bodyRequest } from '../body.ts'
import { largeText } from '../large-text.ts'
import type { ApiParts } from '../parts.ts'
import { jsonText, type SurfaceEnv } from '../surface.ts'
import { withSubmission } from './submitted.ts'

/** Maximum body of a filter, in bytes. */
const FILTER_BYTES = 16_384

type Call = Context<{ Bindings: SurfaceEnv }>

/** `GET /requests`: jobs by state, worker, error and time, page by page. */
export async function listRecords(parts: ApiParts, call: Call, endpoint: Endpoint): Promise<Response> {
  const listing = readJobListing(call.req.query())
  if ('failures' in listing) throw invalidRequest(listing.failures)
  const { items, nextCursor } = await parts.jobRecords.list(endpoint.id, listing)
  const nowMs = parts.ports.clock.now()
  const pagination = { nextCursor, hasNextPage: nextCursor !== null }
  return jsonText(JSON.stringify({ requests: items.map(job => jobSummaryView(job, nowMs)), pagination }))
}

/** `GET /errors`: failed jobs, grouped by the common part of their errors. */
export async function groupErrors(parts: ApiParts, call: Call, endpoint: Endpoint): Promise<Response> {
  const { from, to } = call.req.query()
  const filter = readJobFilter({ from, to })
  if ('failures' in filter) throw invalidRequest(filter.failures)
  const { groups, looked, isComplete } = await parts.jobRecords.errorGroups(endpoint.id, filter)
  const shown = groups.map(({ firstAtMs, lastAtMs, sampleJobId, ...group }) => {
    return { ...group, firstAt: firstAtMs, lastAt: lastAtMs, sampleJobId }
  })
  return jsonText(JSON.stringify({ groups: shown, looked, complete: isComplete }))
}

/** `/requests/{job_id}`: GET reads one job with its stored data, DELETE removes that. */
export async function oneRecord(
  parts: ApiParts,
  call: Call,
  endpoint: Endpoint,
  { jobId }: { readonly jobId: JobId },
): Promise<Response> {
  if (call.req.method === 'DELETE') {
    await parts.jobRecords.remove(endpoint.id, jobId)
    return jsonText(JSON.stringify({ id: jobId, removed: true }))
  }
  const record = await parts.jobRecords.find(endpoint.id, jobId)
  const urls = {
    input: inputUrl(parts.addresses, endpoint.id, jobId),
    output: statusUrl(parts.addresses, endpoint.id, jobId),
  }
  return jsonText(jobRecordViewParts(record, parts.ports.clock.now(), urls))
}

/** `GET /requests/{job_id}/input`: the kept input of a job, of any size. */
export async function jobInput(
  parts: ApiParts,
  call: Call,
  endpoint: Endpoint,
  jobId: JobId,
  held: () => AbortSignal,
): Promise<Response> {
  const { input, largeInput } = await parts.jobRecords.find(endpoint.id, jobId)
  if (largeInput !== null) return largeText(parts, call.env, [largeInput], { what: 'the input', ended: held() })
  if (input === null) throw new AppError('not_found', `the input of job ${jobId} is no longer kept`)
  return jsonText([input])
}

/** `GET /requests/{job_id}/story`: the events of one job. */
export async function jobStory(
  { stories }: ApiParts,
  _call: Call,
  endpoint: Endpoint,
  { jobId }: { readonly jobId: JobId },
): Promise<Response> {
  const { id, endpointId, status, events } = await stories.of(endpoint.id, jobId)
  const shown = events.map(({ kind, atMs, untilMs, text, workerId, attempt, cause }) => {
    return { kind, at: atMs, until: untilMs, text, workerId, attempt, cause }
  })
  return jsonText(JSON.stringify({ id, endpointId, status, events: shown }))
}

/**
 * `POST /requests/{job_id}/replay`: a new job like an old one. A body is one of `/run`, and replaces the old input.
 */
export async function replay(
  parts: ApiParts,
  call: Call,
  endpoint: Endpoint,
  target: { readonly jobId: JobId; readonly key: string | undefined; readonly held: () => AbortSignal },
): Promise<Response> {
  const { jobId, key, held } = target
  const origin = { idempotencyKey: key, traceparent: readTraceparent(call.req.header('traceparent')) }
  const { id, status } = await withSubmission(parts, call, endpoint, { kind: 'run', held }, async (reading, body) => {
    if (body !== null && /^\s*(?:\{\s*\}\s*)?$/.test(body)) return parts.jobRecords.replay(endpoint, jobId, origin)
    // A job that never existed is an error even if its input is not needed.
    await parts.jobRecords.find(endpoint.id, jobId)
    if ('failures' in reading) throw invalidRequest(reading.failures)
    return parts.jobs.submit(endpoint, reading.submission, { kind: 'run', ...origin })
  })
  return jsonText(JSON.stringify({ id, status }))
}

/** `POST /requests/cancel` and `/requests/retry`: the jobs that a filter means, or which they are in a dry run. */
export function changeMany(parts: ApiParts, call: Call, endpoint: Endpoint, change: BulkChange): Promise<Response> {
  return parts.room.of(endpoint.owner).body(bodyRequest(call), FILTER_BYTES, async body => {
    const reading = readManyJobs(String(body))
    if ('failures' in reading) throw invalidRequest(reading.failures)
    const { filter, cursor, dryRun } = reading
    const result = await parts.jobRecords.changeMany(endpoint.id, change, filter, { cursor, dryRun })
    return jsonText(JSON.stringify({ dryRun, ...result }))
  })
}
