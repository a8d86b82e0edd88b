/** Statements and rows of batches, and of their requests before these become jobs. */
import type { BatchId, EndpointId, JobId, OwnerId } from '../../core/ids.ts'
import type { Batch, BatchRequest, StoredBatchStatus } from '../../core/jobs/batch.ts'
import type { BatchDraftRequest } from '../../ports/store/batch-store.ts'
import { guard, mayHave, RUNNING, STARTED_AT, SUSPECT_QUEUE, TAKES_TURNS } from './guards.ts'
import { payload, SMALL_BYTES } from './jobs.ts'
import { largeText } from './large-texts.ts'
import type { SqlValue } from './statement.ts'
import { changedText, readSummed, SUM_LENGTH, summed } from './summed-text.ts'

/** The columns of a batch; see batches.ts. */
export const BATCH_COLUMNS =
  'id, owner, endpoint_id, status, name, webhook, total, completed, failed, created_at_ms, finalized_at_ms, ' +
  'finished_at_ms, expires_at_ms, ' +
  `(SELECT COUNT(*) FROM jobs WHERE batch_id = batches.id AND ${RUNNING}) AS in_progress`

/** A batch that is not gone. @param now the parameter with the instant */
const unexpired = (now: string) => `(expires_at_ms IS NULL OR expires_at_ms > ${now})`

/** A batch that still has something to do, drafts included. Written like the partial index, so that it serves it. */
const UNFINISHED = 'finished_at_ms IS NULL'

/** $1 id, $2 owner, $3 endpoint, $4 name, $5 webhook, $6 now, $7 expiry. A draft without requests. */
export const insertBatch = `
  INSERT INTO batches (id, owner, endpoint_id, status, name, webhook, total, completed, failed, last_seq, position,
    turn_at_ms, created_at_ms, expires_at_ms)
  SELECT $1, $2, $3, 'DRAFT', $4, $5, 0, 0, 0, 0, 0, $6, $6, $7 WHERE EXISTS (SELECT 1 FROM endpoints WHERE id = $3)
  RETURNING id`

/** $1 endpoint, $2 batch, $3 now. */
export const findBatch = `
  SELECT ${BATCH_COLUMNS} FROM batches WHERE id = $2 AND endpoint_id = $1 AND ${unexpired('$3')}`

/** $1 batch. */
export const lockBatch = 'SELECT id FROM batches WHERE id = $1 {{lock}}'

/** $1 endpoint, $2 now, $3 limit, $4 number of skipped ones. Newest first. */
export const listBatches = `
  SELECT ${BATCH_COLUMNS} FROM batches WHERE endpoint_id = $1 AND ${unexpired('$2')}
  ORDER BY created_at_ms DESC, id DESC LIMIT $3 OFFSET $4`

const olderBatches = (whose: 'owner' | 'endpoint_id') => `
  SELECT ${BATCH_COLUMNS} FROM batches WHERE ${whose} = $1 AND ${unexpired('$2')} AND (created_at_ms, id) < ($3, $4)
    AND EXISTS (SELECT 1 FROM endpoints WHERE id = batches.endpoint_id)
  ORDER BY created_at_ms DESC, id DESC LIMIT $5`

/** $1 account, $2 now, $3 and $4 the instant and the id before which they come, $5 limit. Newest first. */
export const listBatchesOfOwner = olderBatches('owner')

/** $1 endpoint, and as above. */
export const listBatchesBefore = olderBatches('endpoint_id')

/** $1 endpoint, $2 now. */
export const countBatches = `SELECT COUNT(*) AS total FROM batches WHERE endpoint_id = $1 AND ${unexpired('$2')}`

/** $1 endpoint, $2 now. Numbers of batches and requests that count for the limits of the endpoint. */
export const batchLoad = `
  SELECT CAST(COALESCE(SUM(CASE WHEN status = 'CANCELLED' THEN 0 ELSE 1 END), 0) AS {{integer}}) AS active,
    CAST(COALESCE(SUM(total - completed - failed), 0) AS {{integer}}) AS unfinished
  FROM batches WHERE endpoint_id = $1 AND ${UNFINISHED} AND ${unexpired('$2')}`

/** $1 batch, $2 number of added requests, $3 the expiry of the draft. */
export const growBatch = `
  UPDATE batches SET total = total + $2, last_seq = last_seq + $2, expires_at_ms = $3
  WHERE id = $1 AND status = 'DRAFT'
  RETURNING last_seq`

/** Numbers of requests that one statement adds: a statement for each would cost PostgreSQL a round trip. */
export const REQUESTS_AT_ONCE = [100, 10, 1] as const

const REQUEST_COLUMNS =
  'batch_id, owner, seq, id, execution_timeout_ms, ttl_ms, low_priority, bytes, webhook, s3_config, policy, input'

/**
 * $1 batch, $2 owner, then for each request the other columns in their order.
 * @param count see {@link REQUESTS_AT_ONCE}
 */
export function insertRequests(count: number): string {
  const columnCount = REQUEST_COLUMNS.split(', ').length - 2
  const row = (index: number) => {
    const places = Array.from({ length: columnCount }, (_, place) => `$${3 + index * columnCount + place}`)
    return `($1, $2, ${places.join(', ')})`
  }
  return `INSERT INTO batch_requests (${REQUEST_COLUMNS}) VALUES ${Array.from({ length: count }, (_, index) => row(index)).join(', ')}`
}

/** $1 batch, $2 request. */
export const deleteRequest = 'DELETE FROM batch_requests WHERE id = $2 AND batch_id = $1 RETURNING id'

/** $1 batch. */
export const shrinkBatch = `UPDATE batches SET total = total - 1 WHERE id = $1 AND status = 'DRAFT'`

/** $1 endpoint, $2 batch, $3 now, $4 name. */
export const renameBatch = `
  UPDATE batches SET name = $4 WHERE id = $2 AND endpoint_id = $1 AND ${unexpired('$3')}
  RETURNING ${BATCH_COLUMNS}`

/** $1 endpoint, $2 batch, $3 now. It joins the queue of its endpoint behind all that wait. */
export const finalizeBatch = `
  UPDATE batches SET status = 'FINALIZED', finalized_at_ms = $3, turn_at_ms = $3, expires_at_ms = NULL,
    position = 1 + COALESCE((SELECT MAX(position) FROM (
      SELECT MAX(position) AS position FROM jobs
        WHERE endpoint_id = $1 AND status = 'IN_QUEUE' AND queue = '' AND low_priority = 0
      UNION ALL SELECT MAX(position) FROM jobs
        WHERE endpoint_id = $1 AND status = 'IN_QUEUE' AND queue = '' AND low_priority = 1
      UNION ALL SELECT MAX(position) FROM batches WHERE endpoint_id = $1 AND ${TAKES_TURNS}) AS tails), 0)
  WHERE id = $2 AND endpoint_id = $1 AND status = 'DRAFT' AND total > 0 AND ${unexpired('$3')}
  RETURNING ${BATCH_COLUMNS}`

/** $1 endpoint, $2 batch, $3 now, $4 expiry of a draft. A draft ends at once; else requests end one by one. */
export const cancelBatch = `
  UPDATE batches SET status = 'CANCELLED',
    failed = CASE WHEN finalized_at_ms IS NULL THEN total ELSE failed END,
    finished_at_ms = CASE WHEN finalized_at_ms IS NULL THEN CAST($3 AS {{integer}}) ELSE NULL END,
    expires_at_ms = CASE WHEN finalized_at_ms IS NULL THEN CAST($4 AS {{integer}}) ELSE NULL END
  WHERE id = $2 AND endpoint_id = $1 AND status IN ('DRAFT', 'FINALIZED') AND ${UNFINISHED} AND ${unexpired('$3')}
  RETURNING ${BATCH_COLUMNS}`

/** True once all requests have ended. */
const ENDED = 'completed + failed + $2 + $3 >= total'

/** $1 batch, $2 more completed, $3 more failed, $4 now, $5 expiry if all have ended. */
export const countInBatch = `
  UPDATE batches SET completed = completed + $2, failed = failed + $3,
    finished_at_ms = CASE WHEN ${ENDED} THEN CAST($4 AS {{integer}}) ELSE NULL END,
    expires_at_ms = CASE WHEN ${ENDED} THEN CAST($5 AS {{integer}}) ELSE NULL END
  WHERE id = $1
  RETURNING ${BATCH_COLUMNS}`

/** $1 batch, $2 limit. The first of its requests that are no jobs yet. */
export const firstRequests = 'SELECT seq, bytes FROM batch_requests WHERE batch_id = $1 ORDER BY seq LIMIT $2'

/** $1 batch, $2 the last request, $3 retention of results in ms. Requests become jobs in the queue of their batch. */
export const releaseRequests = `
  INSERT INTO jobs (id, owner, endpoint_id, kind, status, input, input_bytes, policy, webhook, s3_config,
    execution_timeout_ms, low_priority, position, ttl_ms, retention_ms, queued_at_ms, expires_at_ms, attempt, lost_attempts, streamed_seq,
    batch_id, batch_seq, queue)
  SELECT own.id, own.owner, batches.endpoint_id, 'run', 'IN_QUEUE',
    CASE WHEN octet_length(own.input) <= ${SMALL_BYTES} THEN own.input ELSE NULL END,
    octet_length(own.input) - CASE WHEN substr(own.input, 1, 1) = '#' THEN ${SUM_LENGTH} ELSE 0 END, own.policy, own.webhook, own.s3_config,
    own.execution_timeout_ms, own.low_priority, own.seq, own.ttl_ms, CAST($3 AS {{integer}}), batches.finalized_at_ms,
    batches.finalized_at_ms + own.ttl_ms, 0, 0, 0, own.batch_id, own.seq, own.batch_id
  FROM batch_requests AS own JOIN batches ON batches.id = own.batch_id
  WHERE own.batch_id = $1 AND own.seq <= $2 AND batches.finalized_at_ms IS NOT NULL
    AND EXISTS (SELECT 1 FROM endpoints WHERE id = batches.endpoint_id)
  RETURNING id, endpoint_id, batch_seq`

/** $1 batch, $2 the last request. The large inputs of requests that have just become jobs. */
export const releaseInputs = `
  INSERT INTO job_payloads (job_id, kind, owner, text)
  SELECT id, 'input', owner, input FROM batch_requests
  WHERE batch_id = $1 AND seq <= $2 AND octet_length(input) > ${SMALL_BYTES}`

/** $1 batch, $2 the last request. */
export const deleteRequests = 'DELETE FROM batch_requests WHERE batch_id = $1 AND seq <= $2'

/**
 * $1 limit. Finalized batches with requests that are no jobs yet, and cancelled batches with jobs that still wait.
 */
export const unsettledBatches = `
  SELECT id, endpoint_id FROM batches WHERE ${UNFINISHED} AND status <> 'DRAFT'
    AND EXISTS (SELECT 1 FROM endpoints WHERE id = batches.endpoint_id) AND (
    EXISTS (SELECT 1 FROM batch_requests WHERE batch_id = batches.id)
    OR (status = 'CANCELLED' AND EXISTS (
      SELECT 1 FROM jobs WHERE endpoint_id = batches.endpoint_id AND ${guard('purge')}
        AND (queue = batches.id OR (queue = '${SUSPECT_QUEUE}' AND batch_id = batches.id)))))
  ORDER BY endpoint_id, position, id LIMIT $1`

/** $1 batch. */
export const batchState = 'SELECT endpoint_id, status FROM batches WHERE id = $1'

/** $1 now, $2 limit. */
export const expiredBatches = `
  SELECT id FROM batches WHERE expires_at_ms <= $1 ORDER BY expires_at_ms LIMIT $2`

/** $1 batch, $2 limit, $3 now. */
export const deleteJobsOfBatch = `
  DELETE FROM jobs WHERE id IN (
    SELECT id FROM jobs WHERE batch_id = $1 ORDER BY batch_seq LIMIT $2 {{skip_locked}})
    AND EXISTS (SELECT 1 FROM batches WHERE id = $1 AND expires_at_ms <= $3)
  RETURNING id, endpoint_id, status, worker_id, batch_seq`

/** $1 batch, $2 now. It goes once nothing is left of it. */
export const deleteBatch = `
  DELETE FROM batches WHERE id = $1 AND expires_at_ms <= $2
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE batch_id = $1)
    AND NOT EXISTS (SELECT 1 FROM batch_requests WHERE batch_id = $1)
  RETURNING id`

/** $1 batch. */
export const countRequests = `
  SELECT (SELECT COUNT(*) FROM jobs WHERE batch_id = $1)
    + (SELECT COUNT(*) FROM batch_requests WHERE batch_id = $1) AS total`

/** $1 batch, $2 limit, $3 number of skipped ones. In the order in which they were added. */
export const placesOfRequests = `
  SELECT seq FROM (
    SELECT batch_seq AS seq FROM jobs WHERE batch_id = $1
    UNION ALL SELECT seq FROM batch_requests WHERE batch_id = $1) AS places
  ORDER BY seq LIMIT $2 OFFSET $3`

/** $1 batch, $2 the first place, $3 the last. Sizes of the results. */
export const sizesOfRequests = `
  SELECT batch_seq AS seq, COALESCE(output_bytes, 0) + octet_length(COALESCE(error, '')) AS bytes
  FROM jobs WHERE batch_id = $1 AND batch_seq BETWEEN $2 AND $3 ORDER BY batch_seq`

/** $1 batch, $2 the first place, $3 the last. */
export const readRequests = `
  SELECT id, status, ${payload('output')} AS output, ${largeText('output')}, error, ${STARTED_AT}, finished_at_ms, batch_seq AS seq FROM jobs
    WHERE batch_id = $1 AND batch_seq BETWEEN $2 AND $3
  UNION ALL
  SELECT own.id, CASE WHEN batches.finalized_at_ms IS NOT NULL THEN 'IN_QUEUE' ELSE batches.status END, NULL, NULL,
    NULL, NULL, NULL, own.seq FROM batch_requests AS own JOIN batches ON batches.id = own.batch_id
    WHERE own.batch_id = $1 AND own.seq BETWEEN $2 AND $3
  ORDER BY seq`

/** $1 endpoint. A row when a batch takes turns in its queue. */
export const anyQueuedBatch = `SELECT 1 AS found FROM batches WHERE endpoint_id = $1 AND ${TAKES_TURNS} LIMIT 1`

/** $1 endpoint. */
export const lockQueuedBatches = `SELECT id FROM batches WHERE endpoint_id = $1 AND ${TAKES_TURNS} ORDER BY id {{lock}}`

/**
 * $1 endpoint, $2 priority, $3 now, $4 limit of the count, $5 worker. The batches in the queue, each with the number
 * of its waiting requests that the worker may have.
 */
export const queuedBatches = `
  SELECT id, position, (SELECT COUNT(*) FROM (
      SELECT 1 FROM jobs WHERE endpoint_id = $1 AND ${guard('claim')} AND queue = batches.id AND low_priority = $2
        AND expires_at_ms > $3 AND ${mayHave('$5')} LIMIT $4) AS few) AS waiting
  FROM batches WHERE endpoint_id = $1 AND ${TAKES_TURNS} ORDER BY position, id`

/**
 * $1 endpoint, $2 priority, $3 now, $4 limit, $5 worker. The places of the first jobs that stand in the queue by
 * themselves, of those that it may have.
 */
export const queueHeads = `
  SELECT position FROM jobs WHERE endpoint_id = $1 AND ${guard('claim')} AND queue = '' AND low_priority = $2
    AND expires_at_ms > $3 AND ${mayHave('$5')} ORDER BY position, id LIMIT $4`

/** $1 endpoint, $2 priority. The place of the last of them. */
export const queueTail = `
  SELECT MAX(position) AS position FROM jobs
  WHERE endpoint_id = $1 AND ${guard('claim')} AND queue = '' AND low_priority = $2`

/** $1 batch, $2 its new place, $3 now. */
export const passTurn = 'UPDATE batches SET position = $2, turn_at_ms = $3 WHERE id = $1'

const OF_QUEUE = `endpoint_id = job.endpoint_id AND ${guard('claim')} AND queue = job.queue`

/**
 * $1 job, $2 limit. Number of requests of its batch that wait before it; no row when it does not wait for a turn of
 * its batch.
 */
export const requestsBefore = `
  SELECT job.queue AS batch_id, (SELECT COUNT(*) FROM (
    SELECT 1 FROM jobs WHERE ${OF_QUEUE} AND low_priority = job.low_priority AND position < job.position
    UNION ALL SELECT 1 FROM jobs WHERE ${OF_QUEUE} AND low_priority < job.low_priority LIMIT $2) AS few) AS before
  FROM jobs AS job WHERE job.id = $1 AND job.${guard('claim')} AND job.queue NOT IN ('', '${SUSPECT_QUEUE}')`

/** A row of `batches`. */
export interface BatchRow {
  readonly id: BatchId
  readonly owner: OwnerId
  readonly endpoint_id: EndpointId
  readonly status: StoredBatchStatus
  readonly name: string | null
  readonly webhook: string | null
  readonly total: number
  readonly in_progress: number
  readonly completed: number
  readonly failed: number
  readonly created_at_ms: number
  readonly finalized_at_ms: number | null
  readonly finished_at_ms: number | null
  readonly expires_at_ms: number | null
}

/** A row of a list of requests, from `jobs` or `batch_requests`. */
export interface BatchRequestRow {
  readonly id: JobId
  readonly status: BatchRequest['status']
  readonly output: string | null
  readonly large_output: string | null
  readonly error: string | null
  readonly started_at_ms: number | null
  readonly finished_at_ms: number | null
}

/** A row as a batch. */
export function batchFromRow(row: BatchRow): Batch {
  return {
    id: row.id,
    owner: row.owner,
    endpointId: row.endpoint_id,
    status: row.status,
    name: row.name,
    webhook: row.webhook,
    total: row.total,
    inProgress: row.in_progress,
    completed: row.completed,
    failed: row.failed,
    createdAtMs: row.created_at_ms,
    finalizedAtMs: row.finalized_at_ms,
    finishedAtMs: row.finished_at_ms,
    expiresAtMs: row.expires_at_ms,
  }
}

/** A row as a request. */
export function batchRequestFromRow(row: BatchRequestRow): BatchRequest {
  const { id, started_at_ms, finished_at_ms } = row
  const { text, isWhole } = readSummed(row.output)
  const { status, output, error } = isWhole
    ? { ...row, output: text }
    : { status: 'FAILED' as const, output: null, error: changedText('result') }
  const hasLargeOutput = row.large_output !== null
  return { id, status, output, hasLargeOutput, error, startedAtMs: started_at_ms, finishedAtMs: finished_at_ms }
}

/** The parameters of a request in `insertRequests`. */
export function requestParams(request: BatchDraftRequest, seq: number): SqlValue[] {
  const { id, executionTimeoutMs, ttlMs, lowPriority, webhook, s3Config, policy, input } = request
  const bytes = input.length + (policy?.length ?? 0) + (s3Config?.length ?? 0)
  return [seq, id, executionTimeoutMs, ttlMs, lowPriority ? 1 : 0, bytes, webhook, s3Config, policy, summed(input)]
}
