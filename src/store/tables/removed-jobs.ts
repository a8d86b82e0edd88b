/** Statements that find jobs which are removed, and remove them. */
import { ENDPOINT_EXISTS, RUNNING, STARTED_AT } from './guards.ts'
import { STREAM_COLUMNS } from './job-outcomes.ts'

/** A job without its texts, which may be large, with the columns of its usage. */
const REMOVED_COLUMNS = `id, owner, endpoint_id, kind, status, webhook, execution_timeout_ms, low_priority, position,
    ttl_ms, retention_ms, queued_at_ms, ${STARTED_AT}, paused_at_ms, paused_ms, finished_at_ms, expires_at_ms, attempt, lost_attempts, worker_id,
    error, warning, batch_id, traceparent, COALESCE(waiting_since_ms, queued_at_ms) AS waiting_since_ms, input_bytes,
    COALESCE(output_bytes, 0) AS output_bytes, ${STREAM_COLUMNS},
    (SELECT MAX(seq) FROM chunks WHERE job_id = jobs.id) AS last_chunk,
    (SELECT COUNT(*) FROM diagnostics WHERE job_id = jobs.id) AS notes,
    CASE WHEN ${ENDPOINT_EXISTS} THEN 0 ELSE 1 END AS endpoint_gone`

/**
 * $1 now, $2 limit. The oldest first. By this alone, as the index has them: there may be very many of one instant.
 */
export const expiredJobs = `
  SELECT ${REMOVED_COLUMNS} FROM jobs WHERE expires_at_ms <= $1 ORDER BY expires_at_ms LIMIT $2 {{skip_locked}}`

/** $1 endpoint, $2 job. */
export const jobToRemove = `
  SELECT ${REMOVED_COLUMNS} FROM jobs WHERE endpoint_id = $1 AND id = $2 AND ${ENDPOINT_EXISTS} {{lock}}`

/** $1 ids, as a JSON list. Payloads, chunks and diagnostics go with their job. */
export const deleteJobs = 'DELETE FROM jobs WHERE id IN ({{id_list}})'

/** $1 endpoint, $2 limit. */
export const runningJobsLeft = `
  SELECT ${REMOVED_COLUMNS} FROM jobs WHERE endpoint_id = $1 AND ${RUNNING}
  ORDER BY queue, low_priority, position, id LIMIT $2 {{skip_locked}}`

/** $1 endpoint, $2 limit. In the order of the index. */
export const jobsLeft = `
  SELECT ${REMOVED_COLUMNS} FROM jobs WHERE endpoint_id = $1
  ORDER BY status, queue, low_priority, position, id LIMIT $2 {{skip_locked}}`
