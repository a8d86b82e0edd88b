import type { JobId, WorkerId } from '../../../core/ids.ts'
import type { StreamPart, StreamStore } from '../../../ports/store/store.ts'
import { RUNNING } from '../../tables/guards.ts'
import { lockJob } from '../../tables/jobs.ts'
import { lock, type PortOperations, perform, query, queryOne, read, type Steps, write } from '../operation.ts'

/** $1 job, $2 worker, $3 bytes of the chunk, $4 the chunk, $5 maximum bytes of all chunks together. */
export const appendChunk = `
  INSERT INTO chunks (job_id, seq, owner, total_bytes, chunk)
  SELECT jobs.id, COALESCE(last.seq, 0) + 1, jobs.owner, COALESCE(last.total_bytes, 0) + $3, $4
  FROM jobs LEFT JOIN (
      SELECT job_id, seq, total_bytes FROM chunks WHERE job_id = $1 ORDER BY seq DESC LIMIT 1
    ) AS last ON last.job_id = jobs.id
  WHERE jobs.id = $1 AND jobs.worker_id = $2 AND jobs.${RUNNING} AND COALESCE(last.total_bytes, 0) + $3 <= $5
  RETURNING seq`

/** $1 job, $2 limit; the last one first. */
export const lastChunks = 'SELECT chunk FROM chunks WHERE job_id = $1 ORDER BY seq DESC LIMIT $2'

/**
 * $1 job, $2 the chunk before the part, $3 maximum bytes, $4 maximum number of chunks. Bytes are counted up, so a
 * part is a range of them.
 */
export const readChunks = `
  SELECT seq, chunk FROM chunks
  WHERE job_id = $1 AND seq > $2 AND (seq = $2 + 1 OR total_bytes <= $3 +
    COALESCE((SELECT total_bytes FROM chunks WHERE job_id = $1 AND seq = $2), 0))
  ORDER BY seq LIMIT $4`

/** $1 job. */
export const findPosition = 'SELECT attempt, worker_id, streamed_seq FROM jobs WHERE id = $1'

/** $1 job, $2 attempt, $3 the chunk up to which a client has all, $4 worker. */
export const setPosition = `
  UPDATE jobs SET streamed_seq = $3 WHERE id = $1 AND attempt = $2 AND worker_id = $4 AND streamed_seq < $3`

const MAX_CHUNKS = 1_000

interface PositionRow {
  readonly attempt: number
  readonly worker_id: WorkerId | null
  readonly streamed_seq: number
}

/** The chunks of jobs. */
export const streams = {
  append: write(function* (
    jobId: JobId,
    workerId: WorkerId,
    chunks: readonly string[],
    maxBytes: number,
    copies: number,
  ): Steps<boolean> {
    yield* lock(lockJob, [jobId])
    if (copies > 0 && (yield* areLast(jobId, chunks, copies))) return true
    for (const chunk of chunks) {
      const rows = yield* query(appendChunk, [jobId, workerId, Buffer.byteLength(chunk), chunk, maxBytes])
      if (rows.length === 0) return false
    }
    return true
  }),

  read: read(function* (jobId: JobId, afterSeq: number, maxBytes: number): Steps<StreamPart | null> {
    const job = yield* queryOne<PositionRow>(findPosition, [jobId])
    if (job === null) return null
    const after = Math.max(afterSeq, job.streamed_seq)
    const chunks = yield* query<{ seq: number; chunk: string }>(readChunks, [jobId, after, maxBytes, MAX_CHUNKS])
    return {
      attempt: job.attempt,
      workerId: job.worker_id,
      streamedSeq: job.streamed_seq,
      chunks: chunks.map(({ seq, chunk }) => ({ seq, chunk })),
    }
  }),

  streamed: write(function* (
    jobId: JobId,
    { attempt, workerId }: Pick<StreamPart, 'attempt' | 'workerId'>,
    seq: number,
  ): Steps<void> {
    yield* perform(setPosition, [jobId, attempt, seq, workerId])
  }),
} satisfies PortOperations<StreamStore>

function* areLast(jobId: JobId, chunks: readonly string[], copies: number): Steps<boolean> {
  const rows = yield* query<{ chunk: string }>(lastChunks, [jobId, chunks.length * copies])
  const last = rows.map(({ chunk }) => chunk).reverse()
  return last.length === chunks.length * copies && last.every((chunk, at) => chunk === chunks[at % chunks.length])
}
