import type { EndpointId, JobId, OwnerId, WorkerId } from '../../../core/ids.ts'
import type { Job } from '../../../core/jobs/job.ts'
import type { JobNote } from '../../../core/jobs/job-record.ts'
import type { Claim, ClaimRequest } from '../../../ports/store/claims.ts'
import type { BegunJob, JobStore, RunningJob } from '../../../ports/store/store.ts'
import { anyQueuedBatch, lockQueuedBatches } from '../../tables/batches.ts'
import { findStops } from '../../tables/job-outcomes.ts'
import * as sql from '../../tables/jobs.ts'
import {
  type ClaimedRow,
  claimedJobFromRow,
  inputColumns,
  type JobRow,
  jobFromRow,
  newJobColumns,
  newJobParams,
  payloadColumns,
  type RunningRow,
} from '../../tables/jobs.ts'
import type { Row } from '../../tables/statement.ts'
import { lockWorker, workerBusy } from '../../tables/workers.ts'
import {
  lock,
  type PortOperations,
  perform,
  query,
  queryAll,
  queryOne,
  read,
  type Steps,
  write,
  writeUnflushed,
} from '../operation.ts'
import { beginNext } from './job-begins.ts'
import { takeText } from './large-texts.ts'
import { type BesideSuspects, byPosition, claimFrom, claimInTurns } from './turns.ts'

const NOTHING: Claim = { jobs: [], holdsBack: false, leavesSuspect: false }
const HELD_BACK: Claim = { ...NOTHING, holdsBack: true }

/** Time for which a suspect waits until a worker starts or becomes free, before one is let run empty for it. */
const MAX_SUSPECT_WAIT_MS = 30_000

/** The queue of jobs. */
export const jobs = {
  insert: write<[job: Job, mayBeUndone?: boolean | undefined], boolean>(
    function* (job) {
      return yield* insert(job)
    },
    {
      // A lone surrogate would fail the statement of all.
      size: job => (isAlone(job) ? null : job.input.length),
      statement: {
        of: calls => ({ sql: sql.insertJobs, params: newJobColumns(calls.map(([job]) => job)) }),
        results: (calls, rows) => {
          const inserted = new Set(rows.map(({ id }) => id))
          return calls.map(([job]) => inserted.has(job.id))
        },
      },
    },
    (_job, mayBeUndone) => mayBeUndone === true,
  ),

  insertOnce: write(function* (job: Job, key: string, keyExpiresAtMs: number): Steps<JobId | null> {
    const { endpointId, owner, id, queuedAtMs } = job
    const claimed = yield* query(sql.claimKey, [endpointId, key, owner, id, keyExpiresAtMs, queuedAtMs])
    if (claimed.length === 0) {
      return (yield* queryOne<{ job_id: JobId }>(sql.findKey, [endpointId, key]))?.job_id ?? null
    }
    return (yield* insert(job)) ? id : null
  }),

  // Each change is flushed with all before it, and a commit without one is not: so the job is written again.
  keep: write(function* (jobId: JobId): Steps<void> {
    yield* perform(sql.keepJob, [jobId])
  }),

  find: read(function* (endpointId: EndpointId, jobId: JobId, nowMs: number): Steps<Job | null> {
    const row = yield* queryOne<JobRow>(sql.findJob, [endpointId, jobId, nowMs])
    return row === null ? null : jobFromRow(row)
  }),

  locate: read(function* (owner: OwnerId, jobId: JobId, nowMs: number): Steps<Job | null> {
    const row = yield* queryOne<JobRow>(sql.locateJob, [owner, jobId, nowMs])
    return row === null ? null : jobFromRow(row)
  }),

  // Workers of the embedded store end with their machine, so a claim that a failure of the machine undoes leaves
  // no worker with the job.
  claim: writeUnflushed(function* (request: ClaimRequest): Steps<Claim> {
    const { workerId, limit, nowMs } = request
    if (limit < 1) return NOTHING
    const { inTurns, mustLetGo } = yield* beginClaim(request)
    if (mustLetGo) return HELD_BACK
    const { rows: claimed, ...how } = yield* claimFromQueue(request, inTurns)
    if (claimed.length === 0) return { ...how, jobs: [] }
    const rows = request.beginsByMs === undefined ? claimed : yield* claimAhead(claimed, request.beginsByMs)
    yield* perform(workerBusy, [workerId, nowMs])
    for (const { id, attempt } of rows) {
      // Releases drop the chunks themselves, so a first attempt has none to drop.
      if (attempt > 1) yield* perform(sql.dropChunks, [id])
    }
    return { ...NOTHING, jobs: rows.map(claimedJobFromRow) }
  }),

  // As a claim: what a failure of the machine undoes ends with the workers.
  begin: writeUnflushed(function* (workerId: WorkerId, shown: JobId, nowMs: number): Steps<BegunJob | null> {
    return yield* beginNext(workerId, shown, nowMs)
  }),

  heldBy: read(function* (workerId: WorkerId): Steps<JobId[]> {
    return (yield* query<{ id: JobId }>(sql.heldJobs, [workerId])).map(({ id }) => id)
  }),

  running: read(function* (endpointId: EndpointId, limit: number): Steps<RunningJob[]> {
    const rows = yield* query<RunningRow>(sql.runningJobs, [endpointId, limit])
    return rows.map(row => ({ id: row.id, workerId: row.worker_id, startedAtMs: row.started_at_ms }))
  }),

  setExpiry: write(function* (
    endpointId: EndpointId,
    jobId: JobId,
    expiresAtMs: number,
    nowMs: number,
  ): Steps<Job | null> {
    const row = yield* queryOne<JobRow>(sql.setJobExpiry, [endpointId, jobId, expiresAtMs, nowMs])
    return row === null ? null : jobFromRow(row)
  }),

  setProgress: write(function* (jobId: JobId, workerId: WorkerId, output: string): Steps<boolean> {
    const { small, large, bytes } = payloadColumns(output)
    const job = yield* queryOne<{ owner: OwnerId }>(sql.setProgress, [jobId, workerId, small, bytes])
    if (job !== null && large !== null) yield* perform(sql.replaceProgress, [jobId, job.owner, large])
    return job !== null
  }),

  addDiagnostic: write(function* (jobId: JobId, atMs: number, workerId: WorkerId, text: string): Steps<void> {
    yield* lock(sql.lockJob, [jobId])
    yield* perform(sql.addDiagnostic, [jobId, atMs, workerId, text, sql.MAX_DIAGNOSTICS])
  }),

  diagnostics: read(function* (jobId: JobId): Steps<JobNote[]> {
    const rows = yield* query<{ at_ms: number; worker_id: WorkerId; text: string }>(sql.listDiagnostics, [jobId])
    return rows.map(({ at_ms, worker_id, text }) => ({ atMs: at_ms, workerId: worker_id, text }))
  }),
} satisfies PortOperations<JobStore>

/** True for a job whose insert takes more than one statement, or may fail. */
function isAlone({ input, largeInput }: Job): boolean {
  return largeInput !== undefined || payloadColumns(input).large !== null || !input.isWellFormed()
}

/**
 * True where the endpoint exists, so that it has the job now.
 * @throws AppError `unavailable` when parts of a large input are missing
 */
function* insert(job: Job): Steps<boolean> {
  const input = inputColumns(job)
  if ((yield* query(sql.insertJob, newJobParams(job, input))).length === 0) return false
  if (input.large !== null) yield* perform(sql.insertInput, [job.id, job.owner, input.large])
  if (job.largeInput !== undefined) yield* takeText(job.id, 'input', job.largeInput)
  return true
}

/**
 * Locks the worker of a claim, in one message with the reads that decide how it claims. It is locked before the jobs:
 * a worker that is retired in that time gets none. Jobs that others have locked are not waited for. Batches that take
 * turns are locked before the worker, as where jobs are counted in them.
 */
function* beginClaim(request: ClaimRequest): Steps<{ inTurns: boolean; mustLetGo: boolean }> {
  const { endpointId, workerId, letGoFirst = false } = request
  const [batches, , , stops] = yield* queryAll<Row[]>(
    { sql: anyQueuedBatch, params: [endpointId] },
    { sql: lockQueuedBatches, params: [endpointId], locks: true },
    { sql: lockWorker, params: [workerId], locks: true },
    ...(letGoFirst ? [{ sql: findStops, params: [workerId] }] : []),
  )
  return { inTurns: batches!.length > 0, mustLetGo: stops !== undefined && stops.length > 0 }
}

/** The claimed jobs in the order in which {@link sql.beginNext} begins them. All but the first are not begun. */
function* claimAhead(claimed: readonly ClaimedRow[], beginsByMs: number): Steps<readonly ClaimedRow[]> {
  const rows = claimed.toSorted(byPosition)
  const unbegun = rows.slice(1).map(({ id }) => id)
  if (unbegun.length > 0) yield* perform(sql.markUnbegun, [JSON.stringify(unbegun), beginsByMs])
  return rows
}

type ClaimedRows = Omit<Claim, 'jobs'> & { readonly rows: readonly ClaimedRow[] }

/**
 * The first jobs for a worker that is locked, so that no other claim of it is decided at the same time. With
 * suspects (core/jobs/job.ts) it gets one of them, other jobs, or nothing for now.
 */
function* claimFromQueue(request: ClaimRequest, inTurns: boolean): Steps<ClaimedRows> {
  // Turns take several statements, all useless where a suspect waits.
  if (inTurns && (yield* anySuspect(request))) return yield* claimAmongSuspects(request, inTurns)
  // This hands out nothing where there are suspects, so without them it is all that there is.
  const rows = yield* claimOthers(request, inTurns, false)
  if (rows.length > 0 || !(yield* anySuspect(request))) return claimedRows(rows)
  return yield* claimAmongSuspects(request, inTurns)
}

function* anySuspect({ endpointId }: ClaimRequest): Steps<boolean> {
  return (yield* queryOne(sql.noSuspect, [endpointId])) === null
}

function* claimAmongSuspects(request: ClaimRequest, inTurns: boolean): Steps<ClaimedRows> {
  const { endpointId, workerId, nowMs } = request
  const beside = yield* queryOne<BesideRow>(sql.besideSuspects, [endpointId, workerId, nowMs])
  if (beside === null || beside.suspects > 0) return claimedRows([], { holdsBack: true })
  const waitingSinceMs = beside.waiting_since_ms
  if (waitingSinceMs !== null && beside.held === 0) {
    const alone = yield* query<ClaimedRow>(sql.claimSuspect, [endpointId, workerId, nowMs])
    if (alone.length > 0) return claimedRows(alone)
  } else if (waitingSinceMs !== null) {
    const isLate = nowMs - waitingSinceMs >= MAX_SUSPECT_WAIT_MS ? 1 : 0
    const runsEmpty = (yield* queryOne(sql.runsEmpty, [endpointId, workerId, isLate])) !== null
    if (runsEmpty) return claimedRows([], { holdsBack: true, leavesSuspect: true })
  }
  return claimedRows(yield* claimOthers(request, inTurns, true), { leavesSuspect: waitingSinceMs !== null })
}

function claimOthers(request: ClaimRequest, inTurns: boolean, besideSuspects: BesideSuspects) {
  return inTurns ? claimInTurns(request, besideSuspects) : claimFrom('', request, besideSuspects)
}

function claimedRows(rows: readonly ClaimedRow[], how: Partial<Claim> = {}): ClaimedRows {
  return { holdsBack: false, leavesSuspect: false, ...how, rows }
}

interface BesideRow {
  readonly held: number
  readonly suspects: number
  readonly waiting_since_ms: number | null
}
