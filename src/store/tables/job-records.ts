/** Statements and rows of lists of jobs and of job records. */
import type { EndpointId, JobId, OwnerId, WorkerId } from '../../core/ids.ts'
import { ERROR_READ, errorFingerprint } from '../../core/jobs/error-fingerprint.ts'
import { JOB_STATUSES, type JobStatus } from '../../core/jobs/job.ts'
import type { JobNote, JobRecord, JobSummary } from '../../core/jobs/job-record.ts'
import { ENDPOINT_EXISTS, STARTED_AT } from './guards.ts'
import { payload } from './jobs.ts'
import { largeText, recordedInput } from './large-texts.ts'
import { changedText, readSummed } from './summed-text.ts'

/** Sources of the jobs of a list: those that are kept, and the records of others. */
export type ListedTable = 'jobs' | 'job_records'

/** The owner of the listed jobs: an endpoint or an account. */
export type ListedBy = 'endpoint_id' | 'owner'

const WHEN = 'id, endpoint_id, queued_at_ms, attempt, lost_attempts, worker_id, input_bytes, output_bytes'

/**
 * The parameter with the instant of a read. A job past its expiry is removed soon after; until then it is shown as
 * its record will be.
 */
const NOW = '$4'
const EXPIRED = `expires_at_ms <= ${NOW}`
const UNDONE = `(${EXPIRED} AND status IN ('IN_QUEUE', 'IN_PROGRESS'))`

/** The columns of a list, each as in `JobSummary`. */
const COLUMNS: Readonly<Record<ListedTable, { readonly status: string; readonly all: string }>> = {
  jobs: {
    status: `CASE WHEN ${UNDONE} THEN 'TIMED_OUT' ELSE status END`,
    all: `${WHEN}, ${STARTED_AT}, CASE WHEN ${UNDONE} THEN 'TIMED_OUT' ELSE status END AS status,
    CASE WHEN ${UNDONE} THEN expires_at_ms ELSE finished_at_ms END AS finished_at_ms,
    CASE WHEN ${EXPIRED} THEN NULL ELSE expires_at_ms END AS expires_at_ms,
    substr(error, 1, ${ERROR_READ}) AS error, NULL AS fingerprint`,
  },
  job_records: {
    status: `(status || '')`,
    all: `${WHEN}, started_at_ms, status, finished_at_ms, NULL AS expires_at_ms, error, fingerprint`,
  },
}

/** Read in the order of the index with any filter: another index would lead to a sort of many. */
const BY_AGE = 'ORDER BY queued_at_ms DESC, id DESC'

/** $1 endpoint or account, $2 and $3 the instant and the id before which they come, $4 number of skipped ones. */
export const jobByAge = (table: ListedTable, by: ListedBy) => `
  SELECT queued_at_ms, id FROM ${table} WHERE ${by} = $1 AND (queued_at_ms, id) < ($2, $3) ${BY_AGE} LIMIT 1 OFFSET $4`

const optional = (parameter: string, condition: string) => `(CAST(${parameter} AS TEXT) IS NULL OR ${condition})`

/**
 * $1 endpoint or account, $2 and $3 the instant and the id before which they come, $4 now, $5 and $6 instant and id
 * of the last one that matters, $7 the instant up to which expired jobs are hidden, $8 limit, $9 worker, $10
 * pattern of the error, $11 fingerprint, $12 and further: the states. Newest first. Of jobs that are kept, all with
 * an error match a fingerprint: it is made of the error where they are read.
 */
export const listJobs = (table: ListedTable, by: ListedBy) => `
  SELECT ${COLUMNS[table].all} FROM ${table}
  WHERE ${by} = $1 AND (queued_at_ms, id) < ($2, $3) AND (queued_at_ms, id) >= ($5, $6)
    ${by === 'owner' ? `AND ${ENDPOINT_EXISTS.replaceAll('jobs.', `${table}.`)}` : ''}
    AND ${table === 'jobs' ? 'expires_at_ms > $7' : `(CAST($7 AS {{integer}}) <= 0 AND CAST(${NOW} AS {{integer}}) > 0)`}
    AND ${optional('$9', 'worker_id = $9')} AND ${optional('$10', `lower(substr(error, 1, ${ERROR_READ})) LIKE $10 ESCAPE '!'`)}
    AND ${optional('$11', table === 'jobs' ? 'error IS NOT NULL' : 'fingerprint = $11')}
    AND ${COLUMNS[table].status} IN (${JOB_STATUSES.map((_, index) => `$${index + 12}`).join(', ')})
  ${BY_AGE} LIMIT $8`

const DETAILS = 'owner, execution_timeout_ms, ttl_ms, low_priority'

/** $1 endpoint, $2 job, $3 the instant up to which expired ones are hidden, $4 now. */
export const findKept = `
  SELECT ${COLUMNS.jobs.all}, ${DETAILS}, ${payload('input')} AS input, ${payload('output')} AS output,
    ${largeText('input')}, ${largeText('output')}, NULL AS notes,
    (SELECT COALESCE(MAX(seq), 0) FROM chunks WHERE job_id = jobs.id) AS chunks
  FROM jobs WHERE id = $2 AND endpoint_id = $1 AND expires_at_ms > $3 AND ${ENDPOINT_EXISTS}`

/** $1 endpoint, $2 job. */
export const findRecord = `
  SELECT ${COLUMNS.job_records.all}, ${DETAILS}, input, output, ${recordedInput()}, NULL AS large_output, notes, NULL AS chunks
  FROM job_records WHERE id = $2 AND endpoint_id = $1 AND ${ENDPOINT_EXISTS.replaceAll('jobs.', 'job_records.')}`

/** $1 owner, $2 job. */
export const endpointOfRecord = `
  SELECT endpoint_id FROM job_records WHERE id = $2 AND owner = $1 AND ${ENDPOINT_EXISTS.replaceAll('jobs.', 'job_records.')}`

/**
 * $1 job, $2 state, $3 end, $4 error, $5 fingerprint, $6 notes, $7 bytes that it counts as, $8 1 with its payloads,
 * else 0, $9 bytes of its input that is kept for a while, 0 without it. The record of a job that is removed.
 */
export const insertRecord = `
  INSERT INTO job_records (id, owner, endpoint_id, status, low_priority, execution_timeout_ms, ttl_ms, queued_at_ms, started_at_ms,
    finished_at_ms, attempt, lost_attempts, worker_id, input_bytes, output_bytes, bytes, failed_input_bytes, fingerprint, error, notes, input, output)
  SELECT id, owner, endpoint_id, $2, low_priority, execution_timeout_ms, ttl_ms, queued_at_ms, ${STARTED_AT},
    CAST($3 AS {{integer}}), attempt, lost_attempts, worker_id, input_bytes, output_bytes, CAST($7 AS {{integer}}), CAST($9 AS {{integer}}), $5, $4, $6,
    CASE WHEN CAST($8 AS {{integer}}) = 1 OR CAST($9 AS {{integer}}) > 0 THEN ${payload('input')} END, CASE WHEN CAST($8 AS {{integer}}) = 1 THEN ${payload('output')} END
  FROM jobs WHERE id = $1
  ON CONFLICT (id) DO NOTHING`

/**
 * $1 owner, $2 added records, $3 added bytes, $4 added bytes of inputs that are kept for a while. Returns the new
 * sizes.
 */
export const addToSizes = `
  INSERT INTO job_record_sizes (owner, records, bytes, failed_input_bytes) VALUES ($1, $2, $3, $4)
  ON CONFLICT (owner) DO UPDATE SET records = job_record_sizes.records + excluded.records,
    bytes = job_record_sizes.bytes + excluded.bytes,
    failed_input_bytes = job_record_sizes.failed_input_bytes + excluded.failed_input_bytes
  RETURNING records, bytes, failed_input_bytes`

/** $1 owner. */
export const dropEmptySizes = 'DELETE FROM job_record_sizes WHERE owner = $1 AND records <= 0'

/** $1 owner, $2 limit. The records to remove first, with the bytes that this frees. */
export const oldestRecords = `
  SELECT id, finished_at_ms, bytes, failed_input_bytes FROM job_records WHERE owner = $1 ORDER BY finished_at_ms, id LIMIT $2`

/** $1 owner, $2 limit. The inputs to remove first of those that are kept for a while. */
export const oldestFailedInputs = `
  SELECT id, finished_at_ms, failed_input_bytes FROM job_records WHERE owner = $1 AND failed_input_bytes > 0
  ORDER BY finished_at_ms, id LIMIT $2`

/** $1 ids, as a JSON list. */
export const dropFailedInputs = `
  UPDATE job_records SET input = NULL, failed_input_bytes = 0 WHERE id IN ({{id_list}}) AND failed_input_bytes > 0 RETURNING id`

/** $1 ids, as a JSON list. */
export const deleteRecords = 'DELETE FROM job_records WHERE id IN ({{id_list}})'

/**
 * $1 the instant of the oldest end that is kept, $2 limit of records, $3 limit of bytes, $4 limit of accounts,
 * $5 and $6 the same instant and limit of inputs that are kept for a while. Accounts that have too much.
 */
export const ownersOverLimit = `
  SELECT owner FROM job_record_sizes
  WHERE records > $2 OR bytes > $3 OR failed_input_bytes > $6
    OR (SELECT MIN(finished_at_ms) FROM job_records WHERE job_records.owner = job_record_sizes.owner) < $1
    OR (SELECT MIN(finished_at_ms) FROM job_records
        WHERE job_records.owner = job_record_sizes.owner AND failed_input_bytes > 0) < $5
  ORDER BY owner LIMIT $4`

/** $1 endpoint, $2 job. */
export const recordToRemove = `
  SELECT id, owner, bytes, failed_input_bytes FROM job_records WHERE endpoint_id = $1 AND id = $2 {{lock}}`

/** $1 endpoint, $2 limit. */
export const recordsLeft = `
  SELECT id, owner, bytes, failed_input_bytes FROM job_records WHERE endpoint_id = $1 ORDER BY queued_at_ms, id LIMIT $2`

/** A row of {@link listJobs}. */
export interface ListedRow {
  readonly id: JobId
  readonly endpoint_id: EndpointId
  readonly status: JobStatus
  readonly queued_at_ms: number
  readonly started_at_ms: number | null
  readonly finished_at_ms: number | null
  readonly expires_at_ms: number | null
  readonly attempt: number
  readonly lost_attempts: number
  readonly worker_id: WorkerId | null
  readonly input_bytes: number
  readonly output_bytes: number | null
  readonly error: string | null
  readonly fingerprint: string | null
}

/** A row of {@link findKept} and {@link findRecord}. */
export interface RecordRow extends ListedRow {
  readonly owner: OwnerId
  readonly execution_timeout_ms: number
  readonly ttl_ms: number
  readonly low_priority: number
  readonly input: string | null
  readonly output: string | null
  readonly large_input: string | null
  readonly large_output: string | null
  readonly notes: string | null
  readonly chunks: number | null
}

/** Place of a job in a list. */
export type PlaceRow = Pick<ListedRow, 'queued_at_ms' | 'id'>

/** A row of {@link oldestRecords} and {@link recordsLeft}. */
export interface SizeRow {
  readonly id: JobId
  readonly owner: OwnerId
  readonly finished_at_ms: number
  readonly bytes: number
  readonly failed_input_bytes: number
}

/** A row of {@link addToSizes}. */
export type SumRow = Pick<SizeRow, 'bytes' | 'failed_input_bytes'> & { readonly records: number }

/** A row as an item of a list. */
export function summaryFromRow(row: ListedRow): JobSummary {
  return {
    id: row.id,
    endpointId: row.endpoint_id,
    status: row.status,
    createdAtMs: row.queued_at_ms,
    queuedAtMs: row.queued_at_ms,
    startedAtMs: row.started_at_ms,
    finishedAtMs: row.finished_at_ms,
    expiresAtMs: row.expires_at_ms,
    attempt: row.attempt,
    lostAttempts: row.lost_attempts,
    workerId: row.worker_id,
    inputBytes: row.input_bytes,
    outputBytes: row.output_bytes,
    error: row.error,
    fingerprint: row.fingerprint ?? (row.error === null ? null : errorFingerprint(row.error)),
  }
}

/** All facts of a job from its row. @param notes those of a job that is kept */
export function recordFromRow(row: RecordRow, notes: readonly JobNote[]): JobRecord {
  const input = readSummed(row.input)
  const output = readSummed(row.output)
  const changed = !input.isWhole ? changedText('input') : !output.isWhole ? changedText('result') : null
  return {
    ...summaryFromRow(row),
    ...(changed === null ? {} : { error: row.error ?? changed }),
    owner: row.owner,
    executionTimeoutMs: row.execution_timeout_ms,
    ttlMs: row.ttl_ms,
    lowPriority: row.low_priority === 1,
    input: input.isWhole ? input.text : null,
    largeInput: row.large_input === null ? null : { id: row.large_input, bytes: row.input_bytes },
    output: output.isWhole ? output.text : null,
    hasLargeOutput: row.large_output !== null,
    chunks: row.chunks,
    notes: row.notes === null ? notes : (JSON.parse(row.notes) as JobNote[]),
  }
}
