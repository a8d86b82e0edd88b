import { NO_JOB_USAGE, usageFromMove } from '../../../core/billing/usage.ts'
import { MEASURED_JOBS } from '../../../core/endpoints/endpoint.ts'
import type { EndpointId, JobId, WorkerId } from '../../../core/ids.ts'
import {
  type Job,
  type JobOutcome,
  type JobStatus,
  lostReason,
  MAX_LOST_ATTEMPTS,
  SUSPECT_LOST_ATTEMPTS,
  type Transition,
} from '../../../core/jobs/job.ts'
import { lossNote, retryNote } from '../../../core/jobs/job-note.ts'
import type { JobRecordRules } from '../../../core/jobs/job-record.ts'
import { earliest } from '../../../core/scaling/plan.ts'
import type {
  Finish,
  FinishRequest,
  JobMove,
  JobOutcomeStore,
  PurgedPart,
  QueuePart,
  RemovedJobs,
} from '../../../ports/store/store.ts'
import { addToCounters, moveAverage } from '../../tables/endpoints.ts'
import * as sql from '../../tables/job-outcomes.ts'
import {
  addDiagnostic,
  deleteExpiredKeys,
  deleteOutput,
  deleteProgress,
  dropChunks,
  type EndedRow,
  findJob,
  insertOutput,
  type JobRow,
  jobFromRow,
  MAX_DIAGNOSTICS,
  type MovedRow,
  type Payload,
  type RemovedRow,
  type SpanRow,
  spanFromRow,
  summedColumns,
} from '../../tables/jobs.ts'
import { giveUpOutput } from '../../tables/large-texts.ts'
import { expiredJobs } from '../../tables/removed-jobs.ts'
import type { SqlValue, Statement } from '../../tables/statement.ts'
import { lockWorker, workerFinished } from '../../tables/workers.ts'
import { countJobUsage } from '../accounts/usage.ts'
import { lock, type PortOperations, perform, query, queryOne, read, type Steps, write } from '../operation.ts'
import { settle, stopWork } from '../workers/stops.ts'
import { countInBatches } from './batch-counts.ts'
import { beginNextOfEach } from './job-begins.ts'
import { takeText } from './large-texts.ts'
import { cancelWaiting, waitingParts } from './purges.ts'
import { removeJobs } from './removed-jobs.ts'
import { addDeliveries } from './webhooks.ts'

/** Ends and steps back of jobs. */
export const jobOutcomes = {
  finish: write(
    function* (request: FinishRequest): Steps<Finish | null> {
      const row = yield* queryOne<EndedRow>(sql.finishJob, finishParams(request))
      const [finish = null] = yield* finished([{ request, row }])
      return finish
    },
    {
      // The end that takes a large output may fail, and with it all others.
      size: ({ outcome }) => (outcome.largeOutput === undefined ? (outcome.output?.length ?? 0) : null),
      // Ends of the jobs of one worker would wait for each other at its row, each for a commit.
      steps: finishAll,
    },
  ),

  cancel: write(function* (endpointId: EndpointId, jobId: JobId, nowMs: number): Steps<JobMove | null> {
    const rows = yield* query<EndedRow>(sql.cancelJob, [endpointId, jobId, nowMs])
    yield* dropProgress(rows)
    const moves = rows.map(row => endMove('cancel', row, nowMs))
    yield* countJobUsage(moves, nowMs)
    yield* countInBatches(moves, nowMs)
    yield* stopWork(moves, nowMs)
    yield* addDeliveries(movedJobs(moves), nowMs)
    return moves[0] ?? null
  }),

  timeOutOverdue: write(function* (nowMs: number, limit: number): Steps<JobMove[]> {
    const rows = yield* query<EndedRow>(sql.timeOutJobs, [nowMs, limit])
    yield* dropProgress(rows)
    const moves = inOrder(rows.map(row => endMove('timeOut', row, nowMs)))
    yield* count(moves, 'failed')
    yield* countJobUsage(moves, nowMs)
    yield* countInBatches(moves, nowMs)
    yield* addDeliveries(movedJobs(moves), nowMs)
    yield* stopWork(moves, nowMs)
    return moves
  }),

  requeueLost: write(function* (workerId: WorkerId, cause: string, nowMs: number, only?: JobId): Steps<JobMove[]> {
    const heldJobs = yield* query<SpanRow & { id: JobId }>(sql.heldJobs, [workerId])
    const lostJobs = only === undefined ? heldJobs : heldJobs.filter(({ id }) => id === only)
    if (lostJobs.length === 0) return []
    const ids = JSON.stringify(lostJobs.map(({ id }) => id))
    const reason = lostReason(MAX_LOST_ATTEMPTS, cause)
    const failed = yield* query<MovedRow>(sql.failLostJobs, [ids, nowMs, reason, MAX_LOST_ATTEMPTS, workerId])
    const queued = yield* query<MovedRow>(sql.requeueLostJobs, [ids, nowMs, workerId, SUSPECT_LOST_ATTEMPTS])
    yield* dropProgress([...failed, ...queued])
    for (const { id, attempt } of [...failed, ...queued]) {
      yield* perform(addDiagnostic, [id, nowMs, workerId, lossNote(attempt, cause), MAX_DIAGNOSTICS])
    }
    const spans = new Map(lostJobs.map(row => [row.id, row]))
    const toMoves = (rows: readonly MovedRow[]): JobMove[] =>
      rows.map(row => endMove('requeue', { ...row, output_bytes: null, ...spans.get(row.id)! }, nowMs, jobFromRow(row)))
    yield* count(toMoves(failed), 'failed')
    yield* count(toMoves(queued), 'retried')
    const moves = inOrder(toMoves([...failed, ...queued]))
    yield* countJobUsage(moves, nowMs)
    yield* countInBatches(toMoves(failed), nowMs)
    yield* addDeliveries(failed.map(jobFromRow), nowMs)
    if (moves.length > 0) yield* settle(workerId, nowMs)
    return moves
  }),

  release: write(function* (workerId: WorkerId, attempt: { jobId: JobId; attempt: number } | 'all'): Steps<JobMove[]> {
    const first = yield* queryOne<{ at_ms: number | null }>(sql.firstClaim, [workerId])
    const rows =
      attempt === 'all'
        ? yield* query<MovedRow>(sql.releaseJobs, [workerId])
        : yield* query<MovedRow>(sql.releaseJob, [workerId, attempt.jobId, attempt.attempt])
    if (rows.length === 0) return []
    yield* dropProgress(rows)
    for (const { id } of rows) yield* perform(dropChunks, [id])
    yield* settle(workerId, first?.at_ms ?? null)
    return inOrder(rows.map(row => ({ job: jobFromRow(row), from: 'IN_PROGRESS', usage: NO_JOB_USAGE })))
  }),

  takeBack: write(function* (workerId: WorkerId, nowMs: number): Steps<JobMove[]> {
    return yield* takenBack(yield* query<MovedRow>(sql.takeBackJobs, [workerId]), nowMs)
  }),

  takeBackOverdue: write(function* (nowMs: number, limit: number): Steps<JobMove[]> {
    return yield* takenBack(yield* query<MovedRow>(sql.takeBackOverdue, [nowMs, limit]), nowMs)
  }),

  retry: write(function* (
    endpointId: EndpointId,
    jobId: JobId,
    position: number,
    nowMs: number,
  ): Steps<JobMove | null> {
    const previous = yield* queryOne<JobRow>(findJob, [endpointId, jobId, nowMs])
    const row = yield* queryOne<JobRow>(sql.retryJob, [endpointId, jobId, nowMs, position])
    if (previous === null || row === null) return null
    yield* perform(deleteOutput, [jobId])
    yield* perform(giveUpOutput, [jobId])
    yield* perform(dropChunks, [jobId])
    yield* perform(addDiagnostic, [
      jobId,
      nowMs,
      previous.worker_id ?? '',
      retryNote(previous.attempt, previous.status, previous.error),
      MAX_DIAGNOSTICS,
    ])
    const move = { job: jobFromRow(row), from: previous.status, usage: { ...NO_JOB_USAGE, retried: 1 } }
    yield* count([move], 'retried')
    yield* countJobUsage([move], nowMs)
    yield* countInBatches([move], nowMs)
    return move
  }),

  waiting: read(waitingParts),

  purge: write(function* (
    endpointId: EndpointId,
    nowMs: number,
    limit: number,
    parts: readonly QueuePart[],
  ): Steps<PurgedPart> {
    const { rows, left } = yield* cancelWaiting(endpointId, nowMs, limit, parts)
    const moves = inOrder(rows.map(row => endMove('purge', row, nowMs)))
    yield* countJobUsage(moves, nowMs)
    yield* countInBatches(moves, nowMs)
    yield* addDeliveries(movedJobs(moves), nowMs)
    return { moves, left }
  }),

  removeExpired: write(function* (nowMs: number, limit: number, records?: JobRecordRules): Steps<RemovedJobs> {
    const expiredRows = yield* query<RemovedRow>(expiredJobs, [nowMs, limit])
    const { expired, cancelled, rows } = yield* removeJobs(expiredRows, nowMs, records)
    const keys = yield* query(deleteExpiredKeys, [nowMs, limit])
    const hasMore = rows < expiredRows.length || expiredRows.length === limit || keys.length === limit
    return { jobs: expired, canceled: cancelled, more: hasMore }
  }),

  nextDeadline: read(function* (): Steps<number | null> {
    const row = yield* queryOne<{ timeout_at_ms: number | null; expires_at_ms: number | null }>(sql.nextDeadlines)
    return row === null ? null : earliest([row.timeout_at_ms, row.expires_at_ms])
  }),
} satisfies PortOperations<JobOutcomeStore>

/** Ends of several jobs. Of two for one job the second one comes after the first. */
function* finishAll(calls: readonly (readonly [FinishRequest])[]): Steps<(Finish | null)[]> {
  const rows = new Map<FinishRequest, EndedRow>()
  for (let left = calls.map(([request]) => request); left.length > 0; ) {
    const firstOnes = new Map(left.toReversed().map(request => [request.jobId, request]))
    for (const row of yield* finishRows([...firstOnes.values()])) rows.set(firstOnes.get(row.id)!, row)
    left = left.filter(request => firstOnes.get(request.jobId) !== request)
  }
  return yield* finished(calls.map(([request]) => ({ request, row: rows.get(request) ?? null })))
}

function* finishRows(requests: readonly FinishRequest[]): Steps<readonly EndedRow[]> {
  const each = requests.map((request): Statement => ({ sql: sql.finishJob, params: finishParams(request) }))
  const columns = finishParams(requests[0]!).map((_, column) => each.map(({ params }) => params[column] as SqlValue))
  const all = each.length === 1 ? each[0]! : { sql: sql.finishJobs, params: columns, inTurn: each }
  return (yield all) as unknown as readonly EndedRow[]
}

/** The parameters of `finishJob`. */
function finishParams({ jobId, workerId, outcome, nowMs }: FinishRequest): SqlValue[] {
  const { status, error, warning } = outcome
  const { small, bytes } = storedOutput(outcome)
  return [jobId, workerId, status, small, error, warning, nowMs, bytes]
}

function storedOutput({ output, largeOutput }: JobOutcome): Payload {
  return largeOutput === undefined ? summedColumns(output) : { small: null, large: null, bytes: largeOutput.bytes }
}

/**
 * Does all that follows from ends of jobs. Those of several jobs have no large outputs.
 * @param all the ends with their rows, null for a job that did not end
 * @returns the results in the same order
 */
function* finished(
  all: readonly { readonly request: FinishRequest; readonly row: EndedRow | null }[],
): Steps<(Finish | null)[]> {
  const ends = all.flatMap(({ request, row }) => {
    if (row === null) return []
    const { output, largeOutput } = request.outcome
    const ended = { ...row, output, large_output: largeOutput?.id ?? null }
    return [{ request, row: ended, move: endMove('finish', ended, request.nowMs) }]
  })
  if (ends.length === 0) return all.map(() => null)
  const nowMs = Math.max(...ends.map(({ request }) => request.nowMs))
  yield* dropProgress(ends.map(({ row }) => row))
  for (const { request, row } of ends) {
    const { large } = storedOutput(request.outcome)
    if (large !== null) yield* perform(insertOutput, [row.id, row.owner, large])
    if (request.outcome.largeOutput !== undefined) yield* takeText(row.id, 'output', request.outcome.largeOutput)
  }
  const begins = ends.filter(({ request }) => request.beginsNext === true).map(({ request }) => request)
  const begun = yield* beginNextOfEach(begins.map(request => ({ ...request, shown: request.jobId })))
  yield* countEnds(ends, nowMs)
  const moves = ends.map(({ move }) => move)
  yield* countJobUsage(moves, nowMs)
  yield* countInBatches(moves, nowMs)
  for (const [workerId, own] of inKeyOrder(Map.groupBy(ends, ({ request }) => request.workerId))) {
    yield* lock(lockWorker, [workerId])
    yield* perform(workerFinished, [workerId, Math.max(...own.map(({ request }) => request.nowMs)), own.length])
  }
  yield* addDeliveries(movedJobs(moves), nowMs, ends[0]!.request.outcome.largeOutput?.url)
  const finishes = new Map(
    ends.map(({ request, move }) => [request, { ...move, begun: begun[begins.indexOf(request)] ?? null }]),
  )
  return all.map(({ request }) => finishes.get(request) ?? null)
}

/** Counts ends at the endpoints of their jobs, and moves the averages by those that were completed. */
function* countEnds(ends: readonly { readonly row: EndedRow; readonly move: JobMove }[], nowMs: number): Steps<void> {
  for (const [endpointId, own] of inKeyOrder(Map.groupBy(ends, ({ row }) => row.endpoint_id))) {
    const completed = own.filter(({ move }) => move.job.status === 'COMPLETED')
    yield* perform(addToCounters, [endpointId, completed.length, own.length - completed.length, 0])
    const times = completed.flatMap(({ row: { started_at_ms, finished_at_ms } }) =>
      started_at_ms === null ? [] : [Math.max(0, (finished_at_ms ?? nowMs) - started_at_ms)],
    )
    if (times.length === 0) continue
    const average = times.reduce((sum, ms) => sum + ms, 0) / times.length
    yield* perform(moveAverage, [endpointId, average, Math.min(times.length, MEASURED_JOBS)])
  }
}

/** In an order in which no two transactions wait for each other. */
function inKeyOrder<Key, Value>(map: ReadonlyMap<Key, Value>): [Key, Value][] {
  return [...map].sort(([a], [b]) => (a < b ? -1 : 1))
}

/** A job in the queue has no start, so an ended job without one came from there. */
function previousStatus(row: JobRow): JobStatus {
  return row.started_at_ms === null ? 'IN_QUEUE' : 'IN_PROGRESS'
}

/** A job that the transition has moved, as its row was before the end or the step back. */
export function endMove(transition: Transition, row: EndedRow, nowMs: number, job = jobFromRow(row)): JobMove {
  return { job, from: previousStatus(row), usage: usageFromMove(transition, job.status, spanFromRow(row), nowMs) }
}

/** Counts moves at the endpoints of their jobs. */
function* count(moves: readonly JobMove[], as: 'failed' | 'retried'): Steps<void> {
  const counts = new Map<EndpointId, number>()
  for (const { job } of moves) counts.set(job.endpointId, (counts.get(job.endpointId) ?? 0) + 1)
  for (const [endpointId, n] of counts) {
    yield* perform(addToCounters, [endpointId, 0, as === 'failed' ? n : 0, as === 'retried' ? n : 0])
  }
}

/** Jobs that their workers had not begun. A worker is idle unless it holds another. */
function* takenBack(rows: readonly MovedRow[], nowMs: number): Steps<JobMove[]> {
  yield* dropProgress(rows)
  for (const { id } of rows) yield* perform(dropChunks, [id])
  for (const workerId of new Set(rows.map(row => row.worker_id!).sort())) yield* settle(workerId, nowMs)
  return inOrder(rows.map(row => ({ job: jobFromRow(row), from: 'IN_PROGRESS', usage: NO_JOB_USAGE })))
}

/** Removes the progress of attempts that are over. */
function* dropProgress(rows: readonly Pick<MovedRow, 'id' | 'has_progress'>[]): Steps<void> {
  for (const { id, has_progress } of rows) if (has_progress > 0) yield* perform(deleteProgress, [id])
}

function movedJobs(moves: readonly JobMove[]): Job[] {
  return moves.map(({ job }) => job)
}

/** RETURNING keeps no order; the queue's is as good as any and always the same. */
function inOrder(moves: readonly JobMove[]): JobMove[] {
  return [...moves].sort((a, b) => a.job.position - b.job.position || (a.job.id < b.job.id ? -1 : 1))
}
