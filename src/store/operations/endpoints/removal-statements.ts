/** Statements that remove jobs, and what is left of deleted endpoints. */
import { ENDPOINT_THERE, RUNNING } from '../../tables/guards.ts'
import { STREAM_COLUMNS } from '../../tables/job-outcomes.ts'

/** A job without its texts, which may be large, and what its usage is counted from. */
const REMOVED_COLUMNS = `id, owner, endpoint_id, kind, status, webhook, execution_timeout_ms, low_priority, position,
    ttl_ms, retention_ms, queued_at_ms, started_at_ms, finished_at_ms, expires_at_ms, attempt, lost_attempts, worker_id,
    error, warning, batch_id, traceparent, COALESCE(waiting_since_ms, queued_at_ms) AS waiting_since_ms, input_bytes,
    COALESCE(output_bytes, 0) AS output_bytes, ${STREAM_COLUMNS},
    (SELECT MAX(seq) FROM chunks WHERE job_id = jobs.id) AS last_chunk,
    (SELECT COUNT(*) FROM diagnostics WHERE job_id = jobs.id) AS notes,
    CASE WHEN ${ENDPOINT_THERE} THEN 0 ELSE 1 END AS endpoint_gone`

/** $1 now, $2 how many. The oldest first. By this alone, as the index has them: there may be very many of one instant. */
export const expiredJobs = `
  SELECT ${REMOVED_COLUMNS} FROM jobs WHERE expires_at_ms <= $1 ORDER BY expires_at_ms LIMIT $2 {{skip_locked}}`

/** $1 endpoint, $2 job. */
export const jobToRemove = `
  SELECT ${REMOVED_COLUMNS} FROM jobs WHERE endpoint_id = $1 AND id = $2 AND ${ENDPOINT_THERE} {{lock}}`

/** $1 ids, as a JSON list. Payloads, chunks and diagnostics go with their job. */
export const deleteJobs = 'DELETE FROM jobs WHERE id IN ({{id_list}})'

/** $1 the endpoint after which they come, $2 how many. Deleted endpoints of which something is left. */
export const deletedEndpoints = `
  SELECT id FROM endpoint_ids WHERE deleted_at_ms IS NOT NULL AND id > $1 ORDER BY id LIMIT $2`

/** $1 endpoint. A row when it was deleted and something of it is left. */
export const deletedEndpoint = 'SELECT id FROM endpoint_ids WHERE id = $1 AND deleted_at_ms IS NOT NULL'

/** $1 endpoint, $2 how many. */
export const runningJobsLeft = `
  SELECT ${REMOVED_COLUMNS} FROM jobs WHERE endpoint_id = $1 AND ${RUNNING}
  ORDER BY queue, low_priority, position, id LIMIT $2 {{skip_locked}}`

/** $1 endpoint, $2 how many. In the order of the index. */
export const jobsLeft = `
  SELECT ${REMOVED_COLUMNS} FROM jobs WHERE endpoint_id = $1
  ORDER BY status, queue, low_priority, position, id LIMIT $2 {{skip_locked}}`

/** $1 endpoint. */
export const batchLeft = 'SELECT id FROM batches WHERE endpoint_id = $1 ORDER BY created_at_ms, id LIMIT 1'

/** $1 batch. */
export const deleteBatchLeft = 'DELETE FROM batches WHERE id = $1'

/** $1 endpoint, $2 how many. */
export const deleteKeysLeft = `
  DELETE FROM idempotency_keys WHERE endpoint_id = $1 AND key IN (
    SELECT key FROM idempotency_keys WHERE endpoint_id = $1 ORDER BY key LIMIT $2 {{skip_locked}})
  RETURNING key`

/** $1 endpoint. The last of it, once nothing refers to it. */
export const deleteEndpointId = `
  DELETE FROM endpoint_ids WHERE id = $1 AND deleted_at_ms IS NOT NULL
    AND (SELECT queued_at_ms FROM jobs WHERE endpoint_id = $1 ORDER BY queued_at_ms, id LIMIT 1) IS NULL
    AND NOT EXISTS (SELECT 1 FROM batches WHERE endpoint_id = $1)
    AND NOT EXISTS (SELECT 1 FROM idempotency_keys WHERE endpoint_id = $1)
    AND NOT EXISTS (SELECT 1 FROM metric_buckets WHERE endpoint_id = $1)
    AND NOT EXISTS (SELECT 1 FROM attempt_times WHERE endpoint_id = $1)
    AND (SELECT queued_at_ms FROM job_records WHERE endpoint_id = $1 ORDER BY queued_at_ms, id LIMIT 1) IS NULL
  RETURNING id`
