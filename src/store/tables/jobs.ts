/** Statements and rows of the queue of jobs, their chunks and their diagnostics. */
import type { UsageSpan } from '../../core/billing/usage.ts'
import type { BatchId, EndpointId, JobId, OwnerId, WorkerId } from '../../core/ids.ts'
import type { ClaimedJob, Job, JobKind, JobStatus } from '../../core/jobs/job.ts'
import { ALIVE, ENDPOINT_EXISTS, guard, mayHave, RUNNING, STARTED_AT, SUSPECT_QUEUE, TAKES_TURNS } from './guards.ts'
import { largeText } from './large-texts.ts'
import type { SqlValue } from './statement.ts'
import { changedText, readSummed, summed } from './summed-text.ts'

/**
 * The columns of a job in its own table. Its input only goes to workers: a call that waits for a job, or asks for its
 * status, would read and hold up to 20 MB for nothing.
 */
const OWN_COLUMNS =
  "id, owner, endpoint_id, kind, status, '' AS input, policy, webhook, s3_config, execution_timeout_ms, low_priority, " +
  `position, ttl_ms, retention_ms, queued_at_ms, ${STARTED_AT}, finished_at_ms, expires_at_ms, attempt, lost_attempts, ` +
  'worker_id, error, warning, batch_id, traceparent'

/**
 * To this size a text stays beside the state of its job. A larger one would be written again whenever the job moves.
 */
export const SMALL_BYTES = 2_048

/** A text of the job of a row, which is beside its state or in `job_payloads`. */
export function payload(kind: 'input' | 'progress' | 'output'): string {
  return `CASE WHEN ${kind} IS NOT NULL OR ${kind}_bytes IS NULL THEN ${kind}
      ELSE (SELECT text FROM job_payloads WHERE job_id = jobs.id AND kind = '${kind}') END`
}

/** The columns of a job, see jobs.ts. */
export const JOB_COLUMNS = `${OWN_COLUMNS}, ${payload('output')} AS output, ${payload('progress')} AS progress,
    output_bytes, ${largeText('output')}`

/**
 * The columns of a job that was just moved, and a flag for a large progress of its attempt that is still stored. Its
 * only output is one that came with the move.
 */
export const MOVED_COLUMNS = `${OWN_COLUMNS}, NULL AS output, NULL AS progress,
    (SELECT COUNT(*) FROM job_payloads WHERE job_id = jobs.id AND kind = 'progress') AS has_progress`

/** A new job; no row when its endpoint is gone. */
export const insertJob = `
  INSERT INTO jobs (id, owner, endpoint_id, kind, status, input, policy, webhook, s3_config, execution_timeout_ms,
    low_priority, position, ttl_ms, retention_ms, queued_at_ms, expires_at_ms, input_bytes, traceparent, attempt, lost_attempts, streamed_seq)
  SELECT $1, $2, $3, $4, 'IN_QUEUE', $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, CAST($16 AS {{integer}}), $17, 0, 0, 0
  WHERE EXISTS (SELECT 1 FROM endpoints WHERE id = $3)
  RETURNING id`

const NEW_JOB_COLUMNS = `id, owner, endpoint_id, kind, input, policy, webhook, s3_config, execution_timeout_ms, low_priority, position,
    ttl_ms, retention_ms, queued_at_ms, expires_at_ms, input_bytes, traceparent`

/** As `insertJob` for several jobs, in PostgreSQL: each parameter is the list of their values. */
export const insertJobs = `
  INSERT INTO jobs (${NEW_JOB_COLUMNS}, status, attempt, lost_attempts, streamed_seq)
  SELECT ${NEW_JOB_COLUMNS}, 'IN_QUEUE', 0, 0, 0
  FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[],
    $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[], $17::text[]) AS given (${NEW_JOB_COLUMNS})
  WHERE EXISTS (SELECT 1 FROM endpoints WHERE endpoints.id = given.endpoint_id)
  RETURNING id`

/** Writes the job $1 as it is. No index and no trigger has the column. */
export const keepJob = 'UPDATE jobs SET retention_ms = retention_ms WHERE id = $1'

/** $1 job, $2 owner, $3 the input. */
export const insertInput = `INSERT INTO job_payloads (job_id, kind, owner, text) VALUES ($1, 'input', $2, $3)`

/** $1 job, $2 owner, $3 the output. */
export const insertOutput = `INSERT INTO job_payloads (job_id, kind, owner, text) VALUES ($1, 'output', $2, $3)`

/** $1 job, $2 owner, $3 the progress. */
export const replaceProgress = `
  INSERT INTO job_payloads (job_id, kind, owner, text) VALUES ($1, 'progress', $2, $3)
  ON CONFLICT (job_id, kind) DO UPDATE SET text = excluded.text`

/** $1 job. */
export const deleteProgress = `DELETE FROM job_payloads WHERE job_id = $1 AND kind = 'progress'`

/** $1 job. */
export const deleteOutput = `DELETE FROM job_payloads WHERE job_id = $1 AND kind = 'output'`

/**
 * $1 endpoint, $2 key, $3 owner, $4 job, $5 expiry of the key, $6 now. No row when the key belongs to an earlier job.
 */
export const claimKey = `
  INSERT INTO idempotency_keys (endpoint_id, key, owner, job_id, expires_at_ms)
  SELECT $1, $2, $3, $4, $5 WHERE EXISTS (SELECT 1 FROM endpoints WHERE id = $1)
  ON CONFLICT (endpoint_id, key) DO UPDATE SET job_id = excluded.job_id, expires_at_ms = excluded.expires_at_ms
    WHERE idempotency_keys.expires_at_ms <= $6
  RETURNING job_id`

/** $1 endpoint, $2 key. */
export const findKey = 'SELECT job_id, expires_at_ms FROM idempotency_keys WHERE endpoint_id = $1 AND key = $2'

/** $1 now, $2 limit. */
export const deleteExpiredKeys = `
  DELETE FROM idempotency_keys WHERE (endpoint_id, key) IN (
    SELECT endpoint_id, key FROM idempotency_keys WHERE expires_at_ms <= $1 ORDER BY expires_at_ms LIMIT $2 {{skip_locked}})
  RETURNING endpoint_id`

/** $1 endpoint, $2 job, $3 now. */
export const findJob = `
  SELECT ${JOB_COLUMNS} FROM jobs WHERE id = $2 AND endpoint_id = $1 AND expires_at_ms > $3 AND ${ENDPOINT_EXISTS}`

/** $1 owner, $2 job, $3 now. */
export const locateJob = `
  SELECT ${JOB_COLUMNS} FROM jobs WHERE id = $2 AND owner = $1 AND expires_at_ms > $3 AND ${ENDPOINT_EXISTS}`

/**
 * $1 endpoint. No worker of its newest release has been ready, or it is a canary, or stopped, so older ones go on;
 * see core/scaling/rollout.ts.
 */
const OLDER_GO_ON = `EXISTS (
        SELECT 1 FROM endpoints AS present JOIN releases ON releases.endpoint_id = present.id AND releases.version = present.version
        WHERE present.id = $1 AND (releases.ready_at_ms IS NULL OR releases.canary IS NOT NULL OR releases.stopped_for IS NOT NULL))`

/**
 * Hands jobs to the worker.
 * @param which the condition that finds the head of the queue
 * @param unless more that has to hold
 */
const claim = (which: string, unless = '') => `
  UPDATE jobs SET status = 'IN_PROGRESS', attempt = attempt + 1, worker_id = $2, started_at_ms = $3,
    deadline_ms = $3 + execution_timeout_ms, streamed_seq = 0
  WHERE ${which}
    AND EXISTS (SELECT 1 FROM workers WHERE id = $2 AND endpoint_id = $1 AND state IN ('STARTING', 'READY') AND suspension IS NULL
      AND (version = (SELECT version FROM endpoints WHERE id = $1) OR ${OLDER_GO_ON}))${unless}
  RETURNING id, attempt, ${payload('input')} AS input, input_bytes, ${largeText('input')}, policy, webhook, s3_config, low_priority, position, batch_id, traceparent, queued_at_ms,
    $3 - COALESCE(waiting_since_ms, queued_at_ms) AS waited_ms`

const head = (
  queue: string,
) => `SELECT id FROM jobs WHERE endpoint_id = $1 AND ${guard('claim')} AND queue = ${queue} AND expires_at_ms > $3
      AND ${mayHave('$2')}`
const HEAD = `${head('$4')}
      ORDER BY low_priority, position, id`
const ONE = `id = (${HEAD} LIMIT 1 {{skip_locked}})`
const SOME = `id IN (${HEAD} LIMIT $5 {{skip_locked}})`

/** One step into an index for each state. A list of states would cost SQLite more than that. */
const noSuspectIn = (status: JobStatus) => `NOT EXISTS (SELECT 1 FROM jobs AS suspect
      WHERE suspect.endpoint_id = $1 AND suspect.status = '${status}' AND suspect.queue = '${SUSPECT_QUEUE}')`

/** No suspect waits or runs. With one, more is checked before a worker gets jobs. */
const NO_SUSPECT = `
    AND ${noSuspectIn('IN_QUEUE')}
    AND ${noSuspectIn('IN_PROGRESS')}`

/** $1 endpoint. A row when it has no suspects that wait or run. */
export const noSuspect = `SELECT id FROM endpoints WHERE id = $1${NO_SUSPECT}`

/**
 * $1 endpoint, $2 worker, $3 now, $4 queue. A list, even of one, costs SQLite three times as much as the claim
 * itself.
 */
export const claimJob = claim(ONE, NO_SUSPECT)

/** $1 endpoint, $2 worker, $3 now, $4 queue, $5 limit. */
export const claimJobs = claim(SOME, NO_SUSPECT)

/** As {@link claimJob}, where there are suspects and this worker may have others. */
export const claimJobBesideSuspects = claim(ONE)

/** As {@link claimJobs}, where there are suspects and this worker may have others. */
export const claimJobsBesideSuspects = claim(SOME)

/** Those of low priority come after all other jobs, as they do where no job is a suspect. */
const SUSPECTS_TURN = `(low_priority = 0 OR NOT (
        EXISTS (SELECT 1 FROM jobs AS other
          WHERE other.endpoint_id = $1 AND other.${guard('claim')} AND other.queue = '' AND other.low_priority = 0)
        OR EXISTS (SELECT 1 FROM batches WHERE batches.endpoint_id = $1 AND ${TAKES_TURNS}
          AND EXISTS (SELECT 1 FROM jobs AS other WHERE other.endpoint_id = $1 AND other.${guard('claim')}
            AND other.queue = batches.id AND other.low_priority = 0))))`

const NEXT_SUSPECT = `${head(`'${SUSPECT_QUEUE}'`)} AND ${SUSPECTS_TURN}
      ORDER BY low_priority, position, id LIMIT 1`

/** $1 endpoint, $2 worker, $3 now. Hands a suspect to a worker that holds nothing. */
export const claimSuspect = claim(`id = (${NEXT_SUSPECT} {{skip_locked}})`)

/**
 * $1 endpoint, $2 worker, $3 now. Number of jobs that the worker holds or must still stop, number of suspects among
 * them, and the instant since which the next suspect waits; null without one.
 */
export const besideSuspects = `
  SELECT (SELECT COUNT(*) FROM jobs WHERE worker_id = $2 AND ${RUNNING})
      + (SELECT COUNT(*) FROM stops WHERE worker_id = $2) AS held,
    (SELECT COUNT(*) FROM jobs WHERE endpoint_id = $1 AND ${RUNNING} AND queue = '${SUSPECT_QUEUE}' AND worker_id = $2) AS suspects,
    (SELECT COALESCE(waiting_since_ms, queued_at_ms) FROM jobs WHERE id = (${NEXT_SUSPECT})) AS waiting_since_ms`

/**
 * $1 endpoint, $2 worker, $3 1 if the suspect waits for too long, else 0. A row when this is the worker that runs
 * empty for it: the oldest one, where no worker can be started for it or no worker came, and no worker runs a suspect
 * and will be free after it.
 */
export const runsEmpty = `
  SELECT id FROM endpoints WHERE id = $1
    AND $2 = (SELECT workers.id FROM workers
      WHERE endpoint_id = $1 AND ${ALIVE} AND state = 'READY' AND (workers.version = endpoints.version OR ${OLDER_GO_ON}) ORDER BY created_at_ms, workers.id LIMIT 1)
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE endpoint_id = $1 AND ${RUNNING} AND queue = '${SUSPECT_QUEUE}')
    AND ($3 = 1 OR (
      NOT EXISTS (SELECT 1 FROM workers WHERE endpoint_id = $1 AND ${ALIVE} AND state = 'STARTING')
      AND (SELECT COUNT(*) FROM workers WHERE endpoint_id = $1 AND ${ALIVE}) >= workers_max))`

/** $1 jobs, as a JSON list, $2 instant at which they go back. Jobs that were just claimed, and are not begun. */
export const markUnbegun = `UPDATE jobs SET unbegun = 1, deadline_ms = $2 WHERE id IN ({{id_list}})`

const place = (table: string) => `(${table}.low_priority, ${table}.position, ${table}.id)`

/** A job that is not before the one with the id $3. */
const fromShown = (table: string) =>
  `NOT EXISTS (SELECT 1 FROM jobs AS shown WHERE shown.id = $3 AND ${place('shown')} > ${place(table)})`

/**
 * $1 worker, $2 now, $3 the job that it ran last, as its call shows. Begins the next job of a worker that runs none.
 * One before the shown job is over, although its result was lost. One that it has to stop still waits inside it, and
 * runs before those behind. Of a worker that was paused after it
 * had sent the result of the last job, the next one is paused from its begin.
 */
export const beginNext = `
  UPDATE jobs SET unbegun = NULL, started_at_ms = $2, deadline_ms = $2 + execution_timeout_ms,
    paused_at_ms = (SELECT CASE WHEN paused_at_ms IS NULL THEN NULL ELSE CAST($2 AS {{integer}}) END FROM workers WHERE id = $1)
  WHERE ${RUNNING} AND unbegun = 1
    AND id = (SELECT id FROM jobs WHERE worker_id = $1 AND ${RUNNING} AND unbegun = 1 AND ${fromShown('jobs')}
      ORDER BY low_priority, position, id LIMIT 1)
    AND NOT EXISTS (SELECT 1 FROM jobs AS other
      WHERE other.worker_id = $1 AND other.${RUNNING} AND other.unbegun IS NULL AND ${fromShown('other')})
    AND NOT EXISTS (SELECT 1 FROM stops JOIN jobs AS stopped ON stopped.id = stops.job_id
      WHERE stops.worker_id = $1 AND ${fromShown('stopped')} AND ${place('stopped')} < ${place('jobs')})
  RETURNING ${JOB_COLUMNS}, $2 - COALESCE(waiting_since_ms, queued_at_ms) AS waited_ms`

/** $1 worker. */
export const heldJobs = `SELECT id FROM jobs WHERE worker_id = $1 AND ${RUNNING} ORDER BY started_at_ms, position, id`

/** $1 endpoint, $2 limit. */
export const runningJobs = `
  SELECT id, worker_id, ${STARTED_AT} FROM jobs WHERE endpoint_id = $1 AND ${RUNNING} ORDER BY position, id LIMIT $2`

/** $1 endpoint, $2 job, $3 the new expiry, $4 now. */
export const setJobExpiry = `
  UPDATE jobs SET expires_at_ms = $3 WHERE id = $2 AND endpoint_id = $1 AND expires_at_ms > $4 AND ${ENDPOINT_EXISTS}
  RETURNING ${JOB_COLUMNS}`

/** $1 job, $2 worker, $3 the update if it is small, $4 its bytes. */
export const setProgress = `
  UPDATE jobs SET progress = $3, progress_bytes = $4 WHERE id = $1 AND worker_id = $2 AND ${RUNNING} RETURNING owner`

/** $1 job. */
export const lockJob = 'SELECT id FROM jobs WHERE id = $1 {{lock}}'

/** $1 job. */
export const dropChunks = 'DELETE FROM chunks WHERE job_id = $1'

/** $1 job. Its diagnostics, oldest first. */
export const listDiagnostics = 'SELECT at_ms, worker_id, text FROM diagnostics WHERE job_id = $1 ORDER BY seq'

/** Maximum number of diagnostics of one job. */
export const MAX_DIAGNOSTICS = 20

/** $1 job, $2 instant, $3 worker, $4 the text, $5 maximum number of diagnostics of one job. */
export const addDiagnostic = `
  INSERT INTO diagnostics (job_id, seq, owner, at_ms, worker_id, text)
  SELECT id, (SELECT COUNT(*) FROM diagnostics WHERE job_id = $1) + 1, owner, $2, $3, $4
  FROM jobs WHERE id = $1 AND (SELECT COUNT(*) FROM diagnostics WHERE job_id = $1) < $5`

/** A job with its payloads as statements return it. Its input only goes to workers. */
export interface JobRow {
  readonly id: JobId
  readonly owner: OwnerId
  readonly endpoint_id: EndpointId
  readonly kind: JobKind
  readonly status: JobStatus
  readonly input: string
  readonly policy: string | null
  readonly webhook: string | null
  readonly s3_config: string | null
  readonly execution_timeout_ms: number
  readonly low_priority: number
  readonly position: number
  readonly ttl_ms: number
  readonly retention_ms: number
  readonly queued_at_ms: number
  readonly started_at_ms: number | null
  readonly finished_at_ms: number | null
  readonly expires_at_ms: number
  readonly attempt: number
  readonly lost_attempts: number
  readonly worker_id: WorkerId | null
  readonly output: string | null
  readonly output_bytes?: number | null
  /** The id of an output that is too large for one row. */
  readonly large_output?: string | null
  readonly error: string | null
  readonly progress: string | null
  readonly warning: string | null
  readonly batch_id: BatchId | null
  readonly traceparent: string | null
}

/** A row of a claim. */
export interface ClaimedRow
  extends Pick<
    JobRow,
    | 'id'
    | 'attempt'
    | 'policy'
    | 'webhook'
    | 's3_config'
    | 'low_priority'
    | 'position'
    | 'batch_id'
    | 'traceparent'
    | 'queued_at_ms'
  > {
  /** Null for an input that is too large for one row, or whose row is missing. */
  readonly input: string | null
  readonly input_bytes: number
  /** The id of an input that is too large for one row. */
  readonly large_input: string | null
  readonly waited_ms: number
}

/** Columns from which the usage of an attempt is counted. */
export interface SpanRow {
  readonly started_at_ms: number | null
  readonly waiting_since_ms: number
  readonly input_bytes: number
  readonly stream_bytes: number | null
}

/** A row of a job that was just moved. */
export interface MovedRow extends JobRow {
  /** 1 where a large progress of its attempt is still kept, else 0. */
  readonly has_progress: number
}

/** A row of an ended job, with the columns of its usage. */
export interface EndedRow extends MovedRow {
  readonly waiting_since_ms: number | null
  readonly input_bytes: number
  readonly output_bytes: number | null
  readonly stream_bytes: number | null
}

/** A row of a job that is removed, without its texts. */
export interface RemovedRow extends SpanRow, Omit<JobRow, 'input' | 'output' | 'policy' | 's3_config' | 'progress'> {
  readonly started_at_ms: number | null
  readonly paused_at_ms: number | null
  readonly paused_ms: number
  readonly input_bytes: number
  readonly output_bytes: number
  readonly last_chunk: number | null
  readonly notes: number
  readonly endpoint_gone: number
}

/** A row as a job. One whose result was changed on the disk has failed for whoever reads it. */
export function jobFromRow(row: JobRow): Job {
  const { text: output, isWhole } = readSummed(row.output)
  const job = jobWithOutput(row, output)
  const { large_output: id, output_bytes: bytes } = row
  if (id != null && bytes != null) return { ...job, largeOutput: { id, bytes } }
  return isWhole ? job : { ...job, status: 'FAILED', output: null, error: changedText('result') }
}

function jobWithOutput(row: JobRow, output: string | null): Job {
  return {
    id: row.id,
    owner: row.owner,
    endpointId: row.endpoint_id,
    kind: row.kind,
    status: row.status,
    input: row.input,
    policy: row.policy,
    webhook: row.webhook,
    s3Config: row.s3_config,
    executionTimeoutMs: row.execution_timeout_ms,
    lowPriority: row.low_priority === 1,
    position: row.position,
    ttlMs: row.ttl_ms,
    retentionMs: row.retention_ms,
    queuedAtMs: row.queued_at_ms,
    startedAtMs: row.started_at_ms,
    finishedAtMs: row.finished_at_ms,
    expiresAtMs: row.expires_at_ms,
    attempt: row.attempt,
    lostAttempts: row.lost_attempts,
    workerId: row.worker_id,
    output,
    error: row.error,
    progress: row.progress,
    warning: row.warning,
    batchId: row.batch_id,
    traceparent: row.traceparent,
  }
}

/** The job for a worker from its row. */
export function claimedJobFromRow(row: ClaimedRow): ClaimedJob {
  const { id, attempt, policy, webhook, traceparent, position } = row
  const { text, isWhole } = readSummed(row.large_input === null ? row.input : '')
  const { s3_config: s3Config, batch_id: batchId, queued_at_ms: queuedAtMs } = row
  const waitedMs = Math.max(0, row.waited_ms)
  const largeInput = row.large_input === null ? null : { id: row.large_input, bytes: row.input_bytes }
  const inputProblem = isWhole && text !== null ? null : changedText('input')
  const texts = { input: text ?? '', largeInput, inputProblem }
  return { id, attempt, ...texts, policy, webhook, s3Config, batchId, traceparent, waitedMs, queuedAtMs, position }
}

/** A removed job from its row, without its texts. */
export function removedJobFromRow(row: RemovedRow): Job {
  return jobFromRow({ ...row, input: '{}', output: null, policy: null, s3_config: null, progress: null })
}

/** The values from which the usage of a job is counted. */
export function spanFromRow(row: EndedRow): UsageSpan {
  return {
    waitingSinceMs: row.waiting_since_ms ?? row.queued_at_ms,
    startedAtMs: row.started_at_ms,
    inputBytes: row.input_bytes,
    outputBytes: row.output_bytes ?? 0,
    streamBytes: row.stream_bytes ?? 0,
  }
}

/** A text of a job as it is stored: small ones beside its state, large ones apart. */
export interface Payload {
  readonly small: string | null
  readonly large: string | null
  readonly bytes: number | null
}

/** A text as it is stored. */
export function payloadColumns(text: string | null): Payload {
  return columnsBySize(text, text)
}

/** The input of a new job as it is stored. */
export function inputColumns({ input, largeInput }: Job): Payload {
  return largeInput === undefined ? summedColumns(input) : { small: null, large: null, bytes: largeInput.bytes }
}

/** An input or a result as it is stored, with its checksum. */
export function summedColumns(text: string | null): Payload {
  return columnsBySize(text, summed(text))
}

function columnsBySize(text: string | null, stored: string | null): Payload {
  if (text === null) return { small: null, large: null, bytes: null }
  const bytes = Buffer.byteLength(text)
  return bytes <= SMALL_BYTES ? { small: stored, large: null, bytes } : { small: null, large: stored, bytes }
}

/** The parameters of `insertJob`, without the columns that a job gets with its first attempt. */
export function newJobParams(job: Job, input: Payload): SqlValue[] {
  return [
    job.id,
    job.owner,
    job.endpointId,
    job.kind,
    input.small,
    job.policy,
    job.webhook,
    job.s3Config,
    job.executionTimeoutMs,
    job.lowPriority ? 1 : 0,
    job.position,
    job.ttlMs,
    job.retentionMs,
    job.queuedAtMs,
    job.expiresAtMs,
    input.bytes,
    job.traceparent,
  ]
}

/** The parameters of `insertJobs`. */
export function newJobColumns(jobs: readonly Job[]): SqlValue[][] {
  const rows = jobs.map(job => newJobParams(job, inputColumns(job)))
  return rows[0]!.map((_, column) => rows.map(row => row[column]!))
}

/** The columns of a job that a worker holds. */
export interface RunningRow {
  readonly id: JobId
  readonly worker_id: WorkerId
  readonly started_at_ms: number | null
}

/** A row of a job that its worker has begun. */
export interface BegunRow extends JobRow {
  readonly waited_ms: number
}
