/** Statements that end jobs or return them to the queue. Each is one guarded change that returns the moved jobs. */
import { ENDPOINT_EXISTS, guard, RUNNING, STEP_BACK, SUSPECT_QUEUE, UNPAUSED } from './guards.ts'
import { MOVED_COLUMNS } from './jobs.ts'

/** Bytes of the chunks that an attempt has sent. */
export const STREAM_COLUMNS =
  '(SELECT total_bytes FROM chunks WHERE job_id = jobs.id ORDER BY seq DESC LIMIT 1) AS stream_bytes'

/** The columns of an ended job, with those of its usage. */
const ENDED_COLUMNS = `${MOVED_COLUMNS}, waiting_since_ms, input_bytes, output_bytes, ${STREAM_COLUMNS}`

/** The pauses of an attempt until an instant. @param now the parameter with it */
const pausedUntil = (now: string) => `paused_ms + CASE WHEN paused_at_ms < ${now} THEN ${now} - paused_at_ms ELSE 0 END`

/**
 * Changes of each end. The begin of the attempt moves by its pauses, so that they count as a wait, not as execution.
 * @param now the parameter with the instant of the end
 */
function end(now: string): string {
  return `progress = NULL, progress_bytes = NULL, finished_at_ms = ${now},
    started_at_ms = CASE WHEN unbegun = 1 THEN ${now} ELSE started_at_ms + ${pausedUntil(now)} END, unbegun = NULL,
    paused_at_ms = NULL, paused_ms = 0, expires_at_ms =
      CASE WHEN ${now} + retention_ms < expires_at_ms THEN ${now} + retention_ms ELSE expires_at_ms END`
}

/**
 * $1 job, $2 worker, $3 the final status, $4 the output if it is small, $5 error, $6 warning, $7 now, $8 bytes
 * of the output. The worker of a job in the queue is its last holder, so one condition serves the result in
 * time and the late one.
 */
export const finishJob = `
  UPDATE jobs SET status = $3, output = $4, output_bytes = $8, error = $5, warning = $6, ${end('$7')}
  WHERE id = $1 AND worker_id = $2 AND ${guard('finish')} AND expires_at_ms > $7 AND ${ENDPOINT_EXISTS}
  RETURNING ${ENDED_COLUMNS}`

/**
 * As {@link finishJob} for several jobs, in PostgreSQL: each parameter is the list of their values. No two may be of
 * one job.
 */
export const finishJobs = `
  UPDATE jobs SET status = ended_status, output = ended_output, output_bytes = ended_bytes, error = ended_error,
    warning = ended_warning, ${end('ended_at_ms')}
  FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[])
    AS ended (ended_job, ended_by, ended_status, ended_output, ended_error, ended_warning, ended_at_ms, ended_bytes)
  WHERE id = ended_job AND worker_id = ended_by AND ${guard('finish')} AND expires_at_ms > ended_at_ms AND ${ENDPOINT_EXISTS}
  RETURNING ${ENDED_COLUMNS}`

/** $1 endpoint, $2 job, $3 now. */
export const cancelJob = `
  UPDATE jobs SET status = 'CANCELLED', ${end('$3')}
  WHERE id = $2 AND endpoint_id = $1 AND ${guard('cancel')} AND expires_at_ms > $3 AND ${ENDPOINT_EXISTS}
  RETURNING ${ENDED_COLUMNS}`

/** $1 now, $2 limit. */
export const timeOutJobs = `
  UPDATE jobs SET status = 'TIMED_OUT', ${end('$1')},
    error = 'the job ran longer than its execution timeout of ' || execution_timeout_ms || ' ms'
  WHERE id IN (
    SELECT id FROM jobs WHERE ${guard('timeOut')} AND unbegun IS NULL AND paused_at_ms IS NULL AND deadline_ms <= $1 AND expires_at_ms > $1 AND ${ENDPOINT_EXISTS}
    ORDER BY deadline_ms, id LIMIT $2 {{skip_locked}})
  RETURNING ${ENDED_COLUMNS}`

/** $1 worker. The jobs that it holds, locked, with the columns from which the usage of the attempts is counted. */
export const heldJobs = `
  SELECT id, started_at_ms + paused_ms AS started_at_ms, COALESCE(waiting_since_ms, queued_at_ms) AS waiting_since_ms,
    input_bytes, ${STREAM_COLUMNS}
  FROM jobs WHERE worker_id = $1 AND ${RUNNING} AND ${ENDPOINT_EXISTS} ORDER BY id {{lock}}`

/** $1 jobs as a JSON list, $2 now, $3 the reason, $4 number of lost attempts that fail a job, $5 worker. */
export const failLostJobs = `
  UPDATE jobs SET status = 'FAILED', lost_attempts = lost_attempts + 1, error = $3, ${end('$2')}
  WHERE id IN ({{id_list}}) AND worker_id = $5 AND ${guard('requeue')} AND lost_attempts + 1 >= $4
  RETURNING ${MOVED_COLUMNS}`

/**
 * $1 jobs as a JSON list, $2 now, $3 worker, $4 number of lost attempts that make a job a suspect. The worker stays
 * with the job as its last holder.
 */
export const requeueLostJobs = `
  UPDATE jobs SET ${STEP_BACK}, lost_attempts = lost_attempts + 1, waiting_since_ms = $2,
    queue = CASE WHEN lost_attempts + 1 >= $4 THEN '${SUSPECT_QUEUE}' ELSE queue END
  WHERE id IN ({{id_list}}) AND worker_id = $3 AND ${guard('requeue')}
  RETURNING ${MOVED_COLUMNS}`

/** $1 worker. Claim of the first of its jobs; the worker is idle since then if all are given back. */
export const firstClaim = `SELECT MIN(started_at_ms) AS at_ms FROM jobs WHERE worker_id = $1 AND ${RUNNING}`

/** $1 worker, $2 job, $3 attempt. */
export const releaseJob = `
  UPDATE jobs SET ${STEP_BACK}, attempt = attempt - 1, worker_id = NULL
  WHERE id = $2 AND worker_id = $1 AND attempt = $3 AND ${guard('release')} AND ${ENDPOINT_EXISTS}
  RETURNING ${MOVED_COLUMNS}`

/** $1 worker. */
export const releaseJobs = `
  UPDATE jobs SET ${STEP_BACK}, attempt = attempt - 1, worker_id = NULL
  WHERE worker_id = $1 AND ${guard('release')} AND ${ENDPOINT_EXISTS}
  RETURNING ${MOVED_COLUMNS}`

/** Changes of a job that its worker has not begun, and that goes back. The worker stays with it as its last holder. */
const TAKEN_BACK = `${STEP_BACK}, attempt = attempt - 1`

/** $1 worker. */
export const takeBackJobs = `
  UPDATE jobs SET ${TAKEN_BACK}
  WHERE worker_id = $1 AND ${guard('release')} AND unbegun = 1 AND ${ENDPOINT_EXISTS}
  RETURNING ${MOVED_COLUMNS}`

/** $1 now, $2 limit. A job that has not begun is never paused: the index by deadlines has no paused ones. */
export const takeBackOverdue = `
  UPDATE jobs SET ${TAKEN_BACK}
  WHERE id IN (
    SELECT id FROM jobs WHERE ${guard('release')} AND unbegun = 1 AND paused_at_ms IS NULL AND deadline_ms <= $1 AND expires_at_ms > $1 AND ${ENDPOINT_EXISTS}
    ORDER BY deadline_ms, id LIMIT $2 {{skip_locked}})
  RETURNING ${MOVED_COLUMNS}`

/**
 * $1 endpoint, $2 job, $3 now, $4 the new place in the queue. The worker of the last attempt loses all claim to it. A
 * job of a batch waits by itself from now on.
 */
export const retryJob = `
  UPDATE jobs SET ${STEP_BACK}, attempt = 0, lost_attempts = 0, worker_id = NULL, output = NULL, output_bytes = NULL,
    error = NULL,
    warning = NULL, finished_at_ms = NULL, streamed_seq = 0, queue = '', position = $4, queued_at_ms = $3,
    waiting_since_ms = NULL,
    expires_at_ms = $3 + ttl_ms
  WHERE id = $2 AND endpoint_id = $1 AND ${guard('retry')} AND expires_at_ms > $3 AND ${ENDPOINT_EXISTS}
  RETURNING ${MOVED_COLUMNS}`

/** $1 ids, as a JSON list, $2 now. */
export const purgeJobs = `
  UPDATE jobs SET status = 'CANCELLED', ${end('$2')}
  WHERE id IN ({{id_list}}) AND ${guard('purge')}
  RETURNING ${ENDED_COLUMNS}`

/** $1 endpoint, $2 now, $3 limit, $4 batch. */
export const dropJobsOfBatch = `
  UPDATE jobs SET status = 'CANCELLED', ${end('$2')}
  WHERE id IN (
    SELECT id FROM jobs WHERE endpoint_id = $1 AND ${guard('purge')} AND queue = $4 AND expires_at_ms > $2
    ORDER BY low_priority, position, id LIMIT $3 {{skip_locked}})
  RETURNING ${ENDED_COLUMNS}`

/** As {@link dropJobsOfBatch}, of its requests that have become suspects. */
export const dropSuspectsOfBatch = `
  UPDATE jobs SET status = 'CANCELLED', ${end('$2')}
  WHERE id IN (
    SELECT id FROM jobs WHERE endpoint_id = $1 AND ${guard('purge')} AND queue = '${SUSPECT_QUEUE}' AND batch_id = $4
      AND expires_at_ms > $2
    ORDER BY low_priority, position, id LIMIT $3 {{skip_locked}})
  RETURNING ${ENDED_COLUMNS}`

/** The next execution timeout and the next expiry. */
export const nextDeadlines = `
  SELECT (SELECT MIN(deadline_ms) FROM jobs WHERE ${UNPAUSED}) AS timeout_at_ms,
    (SELECT MIN(expires_at_ms) FROM jobs) AS expires_at_ms`

/** $1 worker, $2 now. The clocks of its jobs stop. */
export const pauseJobs = `
  UPDATE jobs SET paused_at_ms = $2 WHERE worker_id = $1 AND ${UNPAUSED} AND unbegun IS NULL RETURNING id`

/** $1 worker, $2 now. The clocks of its jobs go on. */
export const goOnWithJobs = `
  UPDATE jobs SET paused_ms = ${pausedUntil('$2')},
    deadline_ms = deadline_ms + CASE WHEN paused_at_ms < $2 THEN $2 - paused_at_ms ELSE 0 END, paused_at_ms = NULL
  WHERE worker_id = $1 AND ${RUNNING} AND paused_at_ms IS NOT NULL RETURNING id, attempt`

/** $1 worker, $2 job, $3 instant since which it should stop the job. Nothing when the worker is unknown. */
export const insertStop = `
  INSERT INTO stops (worker_id, job_id, owner, since_ms)
  SELECT id, $2, owner, $3 FROM workers WHERE id = $1
  ON CONFLICT (worker_id, job_id) DO NOTHING`

/** $1 worker. */
export const findStops = 'SELECT job_id FROM stops WHERE worker_id = $1 ORDER BY since_ms, job_id'

/** $1 limit. */
export const listStops = 'SELECT worker_id, job_id, since_ms FROM stops ORDER BY since_ms, worker_id, job_id LIMIT $1'

/** $1 worker, $2 job. */
export const deleteStop = 'DELETE FROM stops WHERE worker_id = $1 AND job_id = $2'

/** $1 worker. */
export const deleteStops = 'DELETE FROM stops WHERE worker_id = $1'
