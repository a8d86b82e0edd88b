import type { JobId, WorkerId } from '../../../core/ids.ts'
import type { StreamPart, StreamStore } from '../../../ports/store/store.ts'
import * as sql from '../../tables/chunks.ts'
import { lockJob } from '../../tables/jobs.ts'
import { lock, type OperationsOf, perform, query, queryOne, read, type Steps, write } from '../operation.ts'

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
      const rows = yield* query(sql.appendChunk, [jobId, workerId, Buffer.byteLength(chunk), chunk, maxBytes])
      if (rows.length === 0) return false
    }
    return true
  }),

  read: read(function* (jobId: JobId, afterSeq: number, maxBytes: number): Steps<StreamPart | null> {
    const job = yield* queryOne<PositionRow>(sql.findPosition, [jobId])
    if (job === null) return null
    const after = Math.max(afterSeq, job.streamed_seq)
    const chunks = yield* query<{ seq: number; chunk: string }>(sql.readChunks, [jobId, after, maxBytes, MAX_CHUNKS])
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
    yield* perform(sql.setPosition, [jobId, attempt, seq, workerId])
  }),
} satisfies OperationsOf<StreamStore>

function* areLast(jobId: JobId, chunks: readonly string[], copies: number): Steps<boolean> {
  const rows = yield* query<{ chunk: string }>(sql.lastChunks, [jobId, chunks.length * copies])
  const last = rows.map(({ chunk }) => chunk).reverse()
  return last.length === chunks.length * copies && last.every((chunk, at) => chunk === chunks[at % chunks.length])
}
