import type { EndpointId, JobId, WorkerId } from '../../core/ids.ts'
import { expiredJob, isFinal, type Job, type JobStatus, lostReason, MAX_LOST_ATTEMPTS } from '../../core/job.ts'
import { earliest } from '../../core/plan.ts'
import type { FinishRequest, JobMove, JobOutcomeStore } from '../../ports/store.ts'
import { type JobRow, toJob } from '../rows/jobs.ts'
import { addToCounters, countCompletion } from '../sql/endpoints.ts'
import * as sql from '../sql/job-outcomes.ts'
import { deleteExpiredKeys, dropChunks, findJob } from '../sql/jobs.ts'
import { lockWorker, workerFinished, workerSettled } from '../sql/workers.ts'
import { lock, type OperationsOf, query, queryOne, read, type Steps, write } from './operation.ts'
import { addDeliveries } from './webhooks.ts'

/** Ends and steps back of jobs. */
export const jobOutcomes = {
  finish: write(function* ({ jobId, workerId, outcome, nowMs }: FinishRequest): Steps<JobMove | null> {
    const { status, output, error, warning } = outcome
    const row = yield* queryOne<JobRow>(sql.finishJob, [jobId, workerId, status, output, error, warning, nowMs])
    if (row === null) return null
    if (status === 'COMPLETED' && row.started_at_ms !== null) {
      yield* query(countCompletion, [row.endpoint_id, Math.max(0, nowMs - row.started_at_ms)])
    } else {
      const completed = status === 'COMPLETED' ? 1 : 0
      yield* query(addToCounters, [row.endpoint_id, completed, 1 - completed, 0])
    }
    yield* lock(lockWorker, [workerId])
    yield* query(workerFinished, [workerId, nowMs])
    const job = toJob(row)
    yield* addDeliveries([job], nowMs)
    return { job, from: statusBeforeEnd(row) }
  }),

  cancel: write(function* (endpointId: EndpointId, jobId: JobId, nowMs: number): Steps<JobMove | null> {
    const rows = yield* query<JobRow>(sql.cancelJob, [endpointId, jobId, nowMs])
    const moves = rows.map(row => ({ job: toJob(row), from: statusBeforeEnd(row) }))
    yield* stopWork(moves, nowMs)
    yield* addDeliveries(jobsOf(moves), nowMs)
    return moves[0] ?? null
  }),

  timeOutOverdue: write(function* (nowMs: number, limit: number): Steps<JobMove[]> {
    const rows = yield* query<JobRow>(sql.timeOutJobs, [nowMs, limit])
    const moves = inOrder(rows.map(row => ({ job: toJob(row), from: 'IN_PROGRESS' })))
    yield* count(moves, 'failed')
    yield* addDeliveries(jobsOf(moves), nowMs)
    yield* stopWork(moves, nowMs)
    return moves
  }),

  requeueLost: write(function* (workerId: WorkerId, cause: string, nowMs: number): Steps<JobMove[]> {
    const reason = lostReason(MAX_LOST_ATTEMPTS, cause)
    const failed = yield* query<JobRow>(sql.failLostJobs, [workerId, nowMs, reason, MAX_LOST_ATTEMPTS])
    const queued = yield* query<JobRow>(sql.requeueLostJobs, [workerId])
    const toMoves = (rows: readonly JobRow[]): JobMove[] =>
      rows.map(row => ({ job: toJob(row), from: 'IN_PROGRESS' }) as const)
    yield* count(toMoves(failed), 'failed')
    yield* count(toMoves(queued), 'retried')
    yield* addDeliveries(failed.map(toJob), nowMs)
    const moves = inOrder(toMoves([...failed, ...queued]))
    if (moves.length > 0) yield* settle(workerId, nowMs)
    return moves
  }),

  release: write(function* (workerId: WorkerId, attempt: { jobId: JobId; attempt: number } | 'all'): Steps<JobMove[]> {
    const first = yield* queryOne<{ at_ms: number | null }>(sql.firstClaim, [workerId])
    const rows =
      attempt === 'all'
        ? yield* query<JobRow>(sql.releaseJobs, [workerId])
        : yield* query<JobRow>(sql.releaseJob, [workerId, attempt.jobId, attempt.attempt])
    if (rows.length === 0) return []
    for (const { id } of rows) yield* query(dropChunks, [id])
    yield* settle(workerId, first?.at_ms ?? null)
    return inOrder(rows.map(row => ({ job: toJob(row), from: 'IN_PROGRESS' })))
  }),

  retry: write(function* (
    endpointId: EndpointId,
    jobId: JobId,
    position: number,
    nowMs: number,
  ): Steps<JobMove | null> {
    const before = yield* queryOne<JobRow>(findJob, [endpointId, jobId, nowMs])
    const row = yield* queryOne<JobRow>(sql.retryJob, [endpointId, jobId, nowMs, position])
    if (before === null || row === null) return null
    yield* query(dropChunks, [jobId])
    const move = { job: toJob(row), from: before.status }
    yield* count([move], 'retried')
    return move
  }),

  purge: write(function* (endpointId: EndpointId, nowMs: number, limit: number): Steps<JobMove[]> {
    const rows = yield* query<JobRow>(sql.purgeJobs, [endpointId, nowMs, limit])
    const moves = inOrder(rows.map(row => ({ job: toJob(row), from: 'IN_QUEUE' })))
    yield* addDeliveries(jobsOf(moves), nowMs)
    return moves
  }),

  removeExpired: write(function* (nowMs: number, limit: number): Steps<Job[]> {
    const rows = yield* query<JobRow>(sql.deleteExpiredJobs, [nowMs, limit])
    yield* query(deleteExpiredKeys, [nowMs, limit])
    const removed = rows.map(toJob).sort((a, b) => a.expiresAtMs - b.expiresAtMs || (a.id < b.id ? -1 : 1))
    yield* stopWork(
      removed.filter(job => job.status === 'IN_PROGRESS').map(job => ({ job, from: 'IN_PROGRESS' })),
      nowMs,
    )
    const undone = removed.filter(job => !isFinal(job.status))
    yield* addDeliveries(
      undone.map(job => expiredJob(job, nowMs)),
      nowMs,
    )
    return removed
  }),

  nextDeadline: read(function* (): Steps<number | null> {
    const row = yield* queryOne<{ timeout_at_ms: number | null; expires_at_ms: number | null }>(sql.nextDeadlines)
    return row === null ? null : earliest([row.timeout_at_ms, row.expires_at_ms])
  }),
} satisfies OperationsOf<JobOutcomeStore>

/** A job in the line has no start, so an ended job without one came from there. */
export function statusBeforeEnd(row: JobRow): JobStatus {
  return row.started_at_ms === null ? 'IN_QUEUE' : 'IN_PROGRESS'
}

/** For running jobs that ended without their worker: it is to stop them, and is idle unless it holds others. */
export function* stopWork(moves: readonly JobMove[], nowMs: number): Steps<void> {
  const stopped = new Set<WorkerId>()
  for (const { job, from } of moves) {
    if (from !== 'IN_PROGRESS' || job.workerId === null) continue
    yield* query(sql.insertStop, [job.workerId, job.id, nowMs])
    stopped.add(job.workerId)
  }
  for (const workerId of [...stopped].sort()) yield* settle(workerId, nowMs)
}

/** The worker is idle since then unless it holds other jobs. */
function* settle(workerId: WorkerId, sinceMs: number | null): Steps<void> {
  yield* lock(lockWorker, [workerId])
  yield* query(workerSettled, [workerId, sinceMs])
}

/** Counts moves at the endpoints of their jobs. */
function* count(moves: readonly JobMove[], as: 'failed' | 'retried'): Steps<void> {
  const counts = new Map<EndpointId, number>()
  for (const { job } of moves) counts.set(job.endpointId, (counts.get(job.endpointId) ?? 0) + 1)
  for (const [endpointId, n] of counts) {
    yield* query(addToCounters, [endpointId, 0, as === 'failed' ? n : 0, as === 'retried' ? n : 0])
  }
}

function jobsOf(moves: readonly JobMove[]): Job[] {
  return moves.map(({ job }) => job)
}

/** RETURNING keeps no order; the line's is as good as any and always the same. */
function inOrder(moves: readonly JobMove[]): JobMove[] {
  return [...moves].sort((a, b) => a.job.position - b.job.position || (a.job.id < b.job.id ? -1 : 1))
}
