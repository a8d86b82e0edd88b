import { billedFlavor, WAITING_FLAVOR } from '../../../core/billing/usage.ts'
import type { Compute } from '../../../core/endpoints/endpoint.ts'
import type { EndpointId, JobId, OwnerId, WorkerId } from '../../../core/ids.ts'
import { pauseNote } from '../../../core/jobs/job-note.ts'
import { countsAgainstRelease } from '../../../core/scaling/rollout.ts'
import type { PlatformReport } from '../../../core/workers/platform-report.ts'
import {
  type StopReason,
  WORKER_STATES,
  type Worker,
  type WorkerLoad,
  type WorkerState,
} from '../../../core/workers/worker.ts'
import type { WorkerExit } from '../../../core/workers/worker-exit.ts'
import type { WorkerProblem } from '../../../core/workers/worker-problem.ts'
import type { WorkerSuspension } from '../../../core/workers/worker-suspension.ts'
import type { EndedPause, RecordedWorker, WorkerMove, WorkerStore, WorkerToken } from '../../../ports/store/store.ts'
import type { ServedTime } from '../../../ports/store/usage-store.ts'
import { type EndpointRow, endpointFromRow, endTask, findEndpoint, lockEndpoint } from '../../tables/endpoints.ts'
import { goOnWithJobs, pauseJobs } from '../../tables/job-outcomes.ts'
import { addDiagnostic, MAX_DIAGNOSTICS } from '../../tables/jobs.ts'
import { deleteQueuedWorker } from '../../tables/queued-workers.ts'
import {
  findRelease,
  type KeptReleaseRow,
  keptReleaseFromRow,
  releaseCrashed,
  releaseNeverReady,
  releaseReady,
} from '../../tables/releases.ts'
import * as sql from '../../tables/workers.ts'
import { newWorkerParams, type WorkerRow, workerFromRow } from '../../tables/workers.ts'
import { countEnd, countFlavor } from '../accounts/usage.ts'
import {
  lock,
  type PortOperations,
  perform,
  query,
  queryOne,
  read,
  type Steps,
  write,
  writeUnflushed,
} from '../operation.ts'

const MAX_LISTED = 1_000
/** No hardware of an endpoint: the wish of a worker has the same facts. */
const NO_COMPUTE: Compute = { kind: 'cpu', configs: [] }

/** Workers and their states. */
export const workers = {
  insert: write(function* (worker: Worker, tokenHash: string): Steps<boolean> {
    yield* lock(lockEndpoint, [worker.endpointId])
    const endpoint = yield* queryOne<EndpointRow>(findEndpoint, [worker.endpointId])
    if (endpoint === null) return false
    const compute = worker.version === endpoint.version ? null : yield* findCompute(worker)
    const isWaiting = worker.placement?.asked !== undefined && worker.placedAtMs === null
    const flavor = isWaiting
      ? WAITING_FLAVOR
      : billedFlavor(worker.placement, compute ?? endpointFromRow(endpoint).compute)
    const added = yield* query(sql.insertWorker, newWorkerParams(worker, tokenHash, flavor))
    if (added.length > 0) yield* perform(deleteQueuedWorker, [worker.id])
    return added.length > 0
  }),

  loads: read(function* (): Steps<WorkerLoad[]> {
    const rows = yield* query<WorkerRow & { held: number }>(sql.allWorkerLoads)
    return rows.map(row => ({ ...workerFromRow(row), held: row.held }))
  }),

  evict: write(function* (id: WorkerId, nowMs: number): Steps<WorkerMove | null> {
    const previous = yield* queryOne<{ state: WorkerState }>(sql.workerState, [id])
    if (previous === null) return null
    const row = yield* queryOne<WorkerRow>(sql.evictWorker, [id, previous.state, nowMs])
    return row === null ? null : { worker: workerFromRow(row), from: previous.state }
  }),

  freeze: write(function* (id: WorkerId, nowMs: number): Steps<WorkerMove | null> {
    // Locked before the check for its jobs: a claim locks it too.
    if ((yield* queryOne(sql.workerState, [id])) === null) return null
    const row = yield* queryOne<WorkerRow>(sql.freezeWorker, [id, nowMs])
    return row === null ? null : { worker: workerFromRow(row), from: 'READY' }
  }),

  thaw: writeUnflushed(function* (
    id: WorkerId,
    nowMs: number,
    endpointVersion: number | null,
    hasGpus = false,
  ): Steps<WorkerMove | null> {
    const row = yield* queryOne<WorkerRow>(sql.thawWorker, [id, nowMs, endpointVersion, hasGpus ? 1 : 0])
    return row === null ? null : { worker: workerFromRow(row), from: 'FROZEN' }
  }),

  // Flushed before the GPUs are given to another worker.
  asleep: write(function* (id: WorkerId, frozenAtMs: number, nowMs: number): Steps<boolean> {
    return (yield* query(sql.workerAsleep, [id, frozenAtMs, nowMs])).length > 0
  }),

  // Flushed before a process is locked.
  suspending: write(function* (id: WorkerId, frozenAtMs: number, suspension: WorkerSuspension): Steps<boolean> {
    return (yield* query(sql.workerSuspending, [id, frozenAtMs, JSON.stringify(suspension)])).length > 0
  }),

  // Flushed before the card is given to another worker.
  suspended: write(function* (id: WorkerId, frozenAtMs: number, nowMs: number): Steps<boolean> {
    return (yield* query(sql.workerSuspended, [id, frozenAtMs, nowMs])).length > 0
  }),

  suspensionOver: write(function* (id: WorkerId, nowMs: number): Steps<boolean> {
    return (yield* query(sql.suspensionOver, [id, nowMs])).length > 0
  }),

  sleepsOn: write(function* (id: WorkerId, reason: string, nowMs: number): Steps<WorkerMove | null> {
    const row = yield* queryOne<WorkerRow>(sql.workerSleepsOn, [id, nowMs, reason])
    return row === null ? null : { worker: workerFromRow(row), from: 'READY' }
  }),

  // Flushed before another worker gets its room.
  pause: write(function* (id: WorkerId, by: EndpointId, nowMs: number): Steps<WorkerMove | null> {
    // Locked before the check for its jobs: a claim locks it too.
    if ((yield* queryOne(sql.workerState, [id])) === null) return null
    const row = yield* queryOne<WorkerRow>(sql.pauseWorker, [id, nowMs, by])
    if (row === null) return null
    yield* perform(pauseJobs, [id, nowMs])
    return { worker: workerFromRow(row), from: 'READY' }
  }),

  endPause: write(function* (id: WorkerId, nowMs: number, pausableAtMs: number | null): Steps<EndedPause | null> {
    const previous = yield* queryOne<WorkerRow>(sql.findWorker, [id])
    if (previous?.paused_at_ms == null) return null
    const row = yield* queryOne<WorkerRow>(sql.endPause, [id, nowMs, pausableAtMs])
    if (row === null) return null
    const jobs = yield* query<{ id: JobId; attempt: number }>(goOnWithJobs, [id, nowMs])
    const pausedMs = Math.max(0, nowMs - previous.paused_at_ms)
    const by = yield* queryOne<EndpointRow>(findEndpoint, [previous.paused_for])
    const name = by !== null && by.owner === previous.owner ? by.name : null
    for (const { id: jobId, attempt } of jobs) {
      yield* perform(addDiagnostic, [jobId, nowMs, id, pauseNote(attempt, pausedMs, name), MAX_DIAGNOSTICS])
    }
    return { worker: workerFromRow(row), pausedMs, jobs: jobs.map(job => job.id).sort() }
  }),

  withLowPriorityOnly: read(function* (): Steps<WorkerId[]> {
    return (yield* query<{ worker_id: WorkerId }>(sql.withLowPriorityOnly)).map(row => row.worker_id)
  }),

  waitsToWake: write(function* (id: WorkerId, reason: string): Steps<void> {
    yield* perform(sql.workerWaitsToWake, [id, reason])
  }),

  // Flushed before the rest of the card is given to another worker.
  setShare: write(function* (id: WorkerId, shareMb: number, nowMs: number): Steps<boolean> {
    // Locked, so that its time is counted once under each flavor.
    if ((yield* queryOne(sql.workerState, [id])) === null) return false
    const row = yield* queryOne<WorkerRow>(sql.findWorker, [id])
    const worker = row === null ? null : workerFromRow(row)
    const [gpu, ...others] = worker?.placement?.gpus ?? []
    if (worker === null || gpu === undefined || others.length > 0 || worker.state === 'EXITED') return false
    const placement = { ...worker.placement!, gpus: [{ ...gpu, shareMb }] }
    const flavor = billedFlavor(placement, NO_COMPUTE)
    yield* countFlavor(id, flavor, nowMs)
    yield* perform(sql.workerPlacement, [id, JSON.stringify(placement), flavor])
    return true
  }),

  find: read(function* (id: WorkerId): Steps<Worker | null> {
    const row = yield* queryOne<WorkerRow>(sql.findWorker, [id])
    return row === null ? null : workerFromRow(row)
  }),

  findByToken: read(function* (tokenHash: string): Steps<Worker | null> {
    const row = yield* queryOne<WorkerRow>(sql.findWorkerByToken, [tokenHash])
    return row === null ? null : workerFromRow(row)
  }),

  liveTokens: read(function* (after: string, limit: number): Steps<WorkerToken[]> {
    return (yield* query<TokenRow>(sql.liveWorkerTokens, [after, limit])).map(tokenFromRow)
  }),

  tokensOf: read(function* (ids: readonly WorkerId[]): Steps<WorkerToken[]> {
    if (ids.length === 0) return []
    return (yield* query<TokenRow>(sql.workerTokens, [JSON.stringify(ids)])).map(tokenFromRow)
  }),

  alive: read(function* (): Steps<Worker[]> {
    return (yield* query<WorkerRow>(sql.aliveWorkers)).map(workerFromRow)
  }),

  known: read(function* (after: string, limit: number): Steps<RecordedWorker[]> {
    return (yield* query<RecordedRow>(sql.keptWorkers, [after, limit])).map(recordedFromRow)
  }),

  endedSince: read(function* (sinceMs: number): Steps<RecordedWorker[]> {
    return (yield* query<RecordedRow>(sql.workersEndedSince, [sinceMs])).map(recordedFromRow)
  }),

  list: read(function* (endpointId: EndpointId): Steps<Worker[]> {
    return (yield* query<WorkerRow>(sql.listWorkers, [endpointId, MAX_LISTED])).map(workerFromRow)
  }),

  reported: write(function* (id: WorkerId, report: PlatformReport, nowMs: number): Steps<boolean> {
    // Locked, so that its time is counted once under each flavor.
    if ((yield* queryOne(sql.workerState, [id])) === null) return false
    const row = yield* queryOne<WorkerRow>(sql.findWorker, [id])
    if (row === null || row.state === 'EXITED') return false
    const { placement, placedAtMs } = workerFromRow(row)
    const isPlaced = report.waits === null || placedAtMs !== null
    const flavor = isPlaced ? billedFlavor(placement, NO_COMPUTE, report.place) : WAITING_FLAVOR
    yield* countFlavor(id, flavor, nowMs)
    yield* perform(sql.workerReported, [id, JSON.stringify(report), isPlaced ? nowMs : null, flavor])
    return true
  }),

  started: write(function* (id: WorkerId, handle: string | null, nowMs: number): Steps<void> {
    yield* perform(sql.workerStarted, [id, handle, nowMs])
  }),

  pulling: write(function* (id: WorkerId, event: 'started' | 'ended', nowMs: number): Steps<void> {
    yield* perform(event === 'started' ? sql.pullStarted : sql.pullEnded, [id, nowMs])
  }),

  seen: write(function* (id: WorkerId, capacity: number, sdk: string | null, nowMs: number): Steps<WorkerMove | null> {
    const row = yield* queryOne<WorkerRow>(sql.workerReady, [id, capacity, sdk, nowMs])
    if (row !== null) {
      yield* perform(releaseReady, [row.endpoint_id, row.version, nowMs])
      return { worker: workerFromRow(row), from: 'STARTING' }
    }
    yield* perform(sql.workerSeen, [id, capacity, sdk, nowMs])
    return null
  }),

  served: write(function* (times: readonly ServedTime[], nowMs: number): Steps<void> {
    for (const { id, idleMs, isBusy } of [...times].sort((a, b) => (a.id < b.id ? -1 : 1))) {
      yield* perform(sql.workerServed, [id, idleMs, isBusy ? null : nowMs])
    }
  }),

  retire: write(function* (
    id: WorkerId,
    to: 'DRAINING' | 'STOPPING',
    reason: StopReason,
    nowMs: number,
  ): Steps<WorkerMove | null> {
    const from = yield* previousState(id, to)
    if (from === null) return null
    if (to === 'DRAINING' && (yield* queryOne(sql.drainPaused, [id, reason, nowMs])) !== null) return null
    const row = yield* queryOne<WorkerRow>(sql.retireWorker, [id, from, to, reason, nowMs])
    return row === null ? null : { worker: workerFromRow(row), from }
  }),

  noteProblem: write(function* (id: WorkerId, problem: WorkerProblem, nowMs: number): Steps<boolean> {
    return (yield* query(sql.noteProblem, [id, JSON.stringify(problem), nowMs])).length > 0
  }),

  exited: write(function* (id: WorkerId, exit: WorkerExit, nowMs: number, seen = true): Steps<WorkerMove | null> {
    const from = yield* previousState(id, 'EXITED')
    if (from === null) return null
    yield* countEnd(id, nowMs, seen)
    yield* withdrawReadiness(id)
    const row = yield* queryOne<WorkerRow>(sql.workerExited, [id, from, JSON.stringify(exit), nowMs])
    if (row === null) return null
    const worker = workerFromRow(row)
    if (worker.serves?.once === true) yield* perform(endTask, [row.endpoint_id])
    if (countsAgainstRelease(worker)) yield* perform(releaseCrashed, [row.endpoint_id, row.version])
    return { worker, from }
  }),

  lastExited: read(function* (limit: number): Steps<WorkerId[]> {
    return (yield* query<{ id: WorkerId }>(sql.lastExited, [limit])).map(row => row.id)
  }),

  removeExited: write(function* (beforeMs: number, limit: number): Steps<WorkerId[]> {
    const rows = yield* query<{ id: WorkerId }>(sql.deleteExitedWorkers, [beforeMs, limit])
    return rows.map(row => row.id).sort()
  }),
} satisfies PortOperations<WorkerStore>

interface RecordedRow {
  readonly id: WorkerId
  readonly owner: OwnerId
  readonly exited_at_ms: number | null
}

function recordedFromRow({ id, owner, exited_at_ms: exitedAtMs }: RecordedRow): RecordedWorker {
  return { id, owner, exitedAtMs }
}

interface TokenRow {
  readonly id: WorkerId
  readonly owner: OwnerId
  readonly token_hash: string
  readonly state: WorkerState
}

function tokenFromRow({ id, owner, token_hash, state }: TokenRow): WorkerToken {
  return { id, owner, tokenHash: token_hash, ended: state === 'EXITED' }
}

/** The hardware of the release of a worker; null where it is not kept. */
function* findCompute({ endpointId, version }: Worker): Steps<Compute | null> {
  const row = yield* queryOne<KeptReleaseRow>(findRelease, [endpointId, version])
  return row === null ? null : (keptReleaseFromRow(row).configuration?.endpoint.compute ?? null)
}

/** Forgets that a worker was ready that has not started, and what was concluded from it. */
function* withdrawReadiness(id: WorkerId): Steps<void> {
  const row = yield* queryOne<WorkerRow>(sql.workerNeverReady, [id])
  if (row !== null) yield* perform(releaseNeverReady, [row.endpoint_id, row.version, row.created_at_ms, id])
}

/** The worker's state when it comes before `to` in a worker's life; else null. */
function* previousState(id: WorkerId, to: WorkerState): Steps<WorkerState | null> {
  const row = yield* queryOne<{ state: WorkerState }>(sql.workerState, [id])
  if (row === null) return null
  return WORKER_STATES.indexOf(row.state) < WORKER_STATES.indexOf(to) ? row.state : null
}
