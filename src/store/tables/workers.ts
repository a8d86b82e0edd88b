/** Statements and rows of workers. Their states only move forward, but for the thaw of a frozen one. */
import type { Serving } from '../../core/endpoints/serving.ts'
import type { EndpointId, OwnerId, WorkerId } from '../../core/ids.ts'
import type { Placement } from '../../core/workers/placement.ts'
import type { PlatformReport } from '../../core/workers/platform-report.ts'
import type { StopReason, Worker, WorkerState } from '../../core/workers/worker.ts'
import type { WorkerExit } from '../../core/workers/worker-exit.ts'
import type { WorkerProblem } from '../../core/workers/worker-problem.ts'
import type { WorkerSuspension } from '../../core/workers/worker-suspension.ts'
import { ALIVE, RUNNING } from './guards.ts'
import type { SqlValue } from './statement.ts'

/** The columns of a worker; see workers.ts. */
export const WORKER_COLUMNS =
  'id, owner, endpoint_id, version, state, driver, handle, base_url, created_at_ms, started_at_ms, ready_at_ms, ' +
  'problem_at_ms, stopping_at_ms, serves, ' +
  'idle_since_ms, stop_requested_at_ms, exited_at_ms, stop_reason, exit, capacity, jobs_finished, sdk, problem, ' +
  'placement, placed_at_ms, download_started_at_ms, download_ended_at_ms, pull_started_at_ms, pull_ended_at_ms, frozen_at_ms, thawed_at_ms, ' +
  'asleep_at_ms, wake_waits_for, suspension, paused_at_ms, paused_for, pausable_at_ms, platform'

/** A worker holds jobs. @param worker the parameter with its id */
const holdsJobs = (worker: string) => `EXISTS (SELECT 1 FROM jobs WHERE worker_id = ${worker} AND ${RUNNING})`

/** Changes of a record that begins again: the columns of a new one, and nothing of the previous worker. */
const BEGUN_AGAIN = [
  ...[
    ...['owner', 'version', 'state', 'driver', 'handle', 'base_url', 'created_at_ms', 'token_hash', 'capacity', 'sdk'],
    ...['jobs_finished', 'flavor', 'counted_until_ms', 'placement', 'placed_at_ms', 'serves'],
    ...['download_started_at_ms', 'download_ended_at_ms'],
  ].map(name => `${name} = excluded.${name}`),
  ...[
    ...['started_at_ms', 'ready_at_ms', 'idle_since_ms', 'stop_requested_at_ms', 'stopping_at_ms', 'exited_at_ms'],
    ...['stop_reason', 'exit', 'problem', 'problem_at_ms', 'pull_started_at_ms', 'pull_ended_at_ms'],
    ...['frozen_at_ms', 'thawed_at_ms', 'asleep_at_ms', 'wake_waits_for', 'suspension', 'platform'],
    ...['paused_at_ms', 'paused_for', 'pausable_at_ms'],
  ].map(name => `${name} = NULL`),
  ...['idle_ms = 0', 'counted_idle_ms = 0', 'frozen_ms = 0', 'counted_frozen_ms = 0'],
].join(', ')

/**
 * A new worker; no row when its endpoint is gone or has as many as it may, those that wait for a place included. $10
 * is the hash of its token, $13 its flavor. Its time counts from when it was placed. The record of one that has ended
 * under the same id begins again.
 */
export const insertWorker = `
  INSERT INTO workers (id, owner, endpoint_id, version, state, driver, handle, base_url, created_at_ms, token_hash,
    capacity, jobs_finished, sdk, flavor, counted_until_ms, placement, placed_at_ms, serves,
    download_started_at_ms, download_ended_at_ms)
  SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0, $12, $13, COALESCE(CAST($15 AS {{integer}}), CAST($9 AS {{integer}})), $14, $15, $16, $17, $18
  FROM endpoints WHERE id = $3
    AND (SELECT COUNT(*) FROM workers WHERE endpoint_id = $3 AND ${ALIVE})
      + (SELECT COUNT(*) FROM queued_workers WHERE endpoint_id = $3 AND id <> $1 AND version = endpoints.version) < workers_max
  ON CONFLICT (id) DO UPDATE SET ${BEGUN_AGAIN}
    WHERE workers.state = 'EXITED' AND workers.endpoint_id = excluded.endpoint_id
  RETURNING id`

/** $1 worker. */
export const findWorker = `SELECT ${WORKER_COLUMNS} FROM workers WHERE id = $1`

/** $1 hash of a token. */
export const findWorkerByToken = `SELECT ${WORKER_COLUMNS} FROM workers WHERE token_hash = $1`

const TOKEN_COLUMNS = 'id, owner, token_hash, state'

/** $1 the id before, $2 limit. Tokens of workers that have not ended, by id. */
export const liveWorkerTokens = `
  SELECT ${TOKEN_COLUMNS} FROM workers WHERE ${ALIVE} AND id > $1 ORDER BY id LIMIT $2`

/** $1 ids, as a JSON list. Their tokens, by id. */
export const workerTokens = `SELECT ${TOKEN_COLUMNS} FROM workers WHERE id IN ({{id_list}}) ORDER BY id`

/** Workers that have not ended, oldest first. */
export const aliveWorkers = `SELECT ${WORKER_COLUMNS} FROM workers WHERE ${ALIVE} ORDER BY created_at_ms, id`

/** $1 ids, as a JSON list. */
export const workersOfThese = `SELECT ${WORKER_COLUMNS} FROM workers WHERE id IN ({{id_list}})`

/** $1 the id before, $2 limit. Ended ones too, by id. */
export const keptWorkers = 'SELECT id, owner, exited_at_ms FROM workers WHERE id > $1 ORDER BY id LIMIT $2'

/** $1 instant. Workers that ended then or later. */
export const workersEndedSince = `
  SELECT id, owner, exited_at_ms FROM workers WHERE state = 'EXITED' AND exited_at_ms >= $1`

/** $1 endpoint, $2 limit. */
export const listWorkers = `
  SELECT ${WORKER_COLUMNS} FROM workers WHERE endpoint_id = $1 ORDER BY created_at_ms DESC, id DESC LIMIT $2`

/** $1 endpoint. Workers that have not ended, oldest first. */
export const aliveWorkersOfEndpoint = `
  SELECT ${WORKER_COLUMNS} FROM workers WHERE endpoint_id = $1 AND ${ALIVE} ORDER BY created_at_ms, id`

/** $1 endpoint. As {@link aliveWorkersOfEndpoint}, with what each holds or has yet to let go of. */
export const workerLoads = `
  SELECT ${WORKER_COLUMNS},
    (SELECT COUNT(*) FROM jobs WHERE worker_id = workers.id AND ${RUNNING})
      + (SELECT COUNT(*) FROM stops WHERE worker_id = workers.id) AS held
  FROM workers WHERE endpoint_id = $1 AND ${ALIVE} ORDER BY created_at_ms, id`

/** $1 endpoint, $2 limit. Workers that have ended, newest first. */
export const exitsOfEndpoint = `
  SELECT ${WORKER_COLUMNS} FROM workers WHERE endpoint_id = $1 AND state = 'EXITED'
  ORDER BY exited_at_ms DESC, created_at_ms DESC, id DESC LIMIT $2`

/** $1 ids of endpoints, as a JSON list. As {@link workerLoads}. */
export const workerLoadsOfThese = `
  SELECT ${WORKER_COLUMNS},
    (SELECT COUNT(*) FROM jobs WHERE worker_id = workers.id AND ${RUNNING})
      + (SELECT COUNT(*) FROM stops WHERE worker_id = workers.id) AS held
  FROM workers WHERE endpoint_id IN ({{id_list}}) AND ${ALIVE} ORDER BY created_at_ms, id`

/** $1 ids of endpoints, as a JSON list. The worker of each that ended last. */
export const lastExitsOfThese = `
  SELECT ${WORKER_COLUMNS} FROM workers WHERE id IN (
    SELECT (SELECT ended.id FROM workers AS ended WHERE ended.endpoint_id = endpoints.id AND ended.state = 'EXITED'
      ORDER BY ended.exited_at_ms DESC, ended.created_at_ms DESC, ended.id DESC LIMIT 1)
    FROM endpoints WHERE endpoints.id IN ({{id_list}}))`

/** As {@link workerLoads}, of all endpoints. */
export const allWorkerLoads = `
  SELECT ${WORKER_COLUMNS},
    (SELECT COUNT(*) FROM jobs WHERE worker_id = workers.id AND ${RUNNING})
      + (SELECT COUNT(*) FROM stops WHERE worker_id = workers.id) AS held
  FROM workers WHERE ${ALIVE} ORDER BY created_at_ms, id`

/** $1 worker, $2 handle, null to keep the one that it has, $3 now. */
export const workerStarted = `
  UPDATE workers SET handle = COALESCE($2, handle), started_at_ms = COALESCE(started_at_ms, $3) WHERE id = $1 AND ${ALIVE}`

/**
 * $1 worker, $2 what its platform reports, as JSON, $3 now where it has a place, else null, $4 flavor. Its first
 * place counts.
 */
export const workerReported = `
  UPDATE workers SET platform = $2, placed_at_ms = COALESCE(placed_at_ms, $3), flavor = $4 WHERE id = $1 AND ${ALIVE}`

/** $1 worker, $2 now. The download of its image has begun. */
export const pullStarted = `
  UPDATE workers SET pull_started_at_ms = $2 WHERE id = $1 AND pull_started_at_ms IS NULL AND ${ALIVE}`

/** $1 worker, $2 now. The download of its image has ended. */
export const pullEnded = `
  UPDATE workers SET pull_ended_at_ms = $2 WHERE id = $1 AND pull_started_at_ms IS NOT NULL AND pull_ended_at_ms IS NULL`

/** $1 worker, $2 capacity, $3 SDK, $4 now. */
export const workerReady = `
  UPDATE workers SET state = 'READY', ready_at_ms = COALESCE(ready_at_ms, $4), sdk = COALESCE($3, sdk),
    capacity = $2,
    idle_since_ms = CASE WHEN ${holdsJobs('$1')} THEN idle_since_ms ELSE $4 END
  WHERE id = $1 AND state = 'STARTING'
  RETURNING ${WORKER_COLUMNS}`

/** $1 worker, $2 capacity, $3 SDK, $4 now. Touches nothing when nothing is new. */
export const workerSeen = `
  UPDATE workers SET ready_at_ms = COALESCE(ready_at_ms, $4), sdk = COALESCE($3, sdk),
    capacity = $2
  WHERE id = $1 AND ${ALIVE} AND (ready_at_ms IS NULL OR capacity <> $2 OR COALESCE($3, sdk) IS DISTINCT FROM sdk)`

/** $1 worker. If its start failed, its takes did not mean that it was ready. */
export const workerNeverReady = `
  UPDATE workers SET ready_at_ms = NULL WHERE id = $1 AND stop_reason = 'failed_start' AND ready_at_ms IS NOT NULL AND jobs_finished = 0
  RETURNING ${WORKER_COLUMNS}`

/** The idle time of a worker when `idle_since_ms` gets another value. @param now the parameter with the instant */
const idleUntil = (now: string) => `idle_ms + CASE WHEN idle_since_ms < ${now} THEN ${now} - idle_since_ms ELSE 0 END`

/** $1 worker, $2 now. It was handed jobs. */
export const workerBusy = `
  UPDATE workers SET state = 'READY', ready_at_ms = COALESCE(ready_at_ms, $2), idle_ms = ${idleUntil('$2')},
    idle_since_ms = NULL
  WHERE id = $1 AND (state = 'STARTING' OR idle_since_ms IS NOT NULL)`

/** $1 worker, $2 now. A job of its ended; it is idle since now unless it holds others. */
export const workerSettled = `
  UPDATE workers SET idle_ms = ${idleUntil('$2')}, idle_since_ms = $2 WHERE id = $1 AND NOT ${holdsJobs('$1')}`

/** $1 worker, $2 now, $3 number of jobs. As {@link workerSettled}, for jobs that it finished itself. */
export const workerFinished = `
  UPDATE workers SET jobs_finished = jobs_finished + $3, idle_ms = ${idleUntil('$2')},
    idle_since_ms = CASE WHEN ${holdsJobs('$1')} THEN idle_since_ms ELSE $2 END
  WHERE id = $1`

/** $1 worker, $2 recent time without requests, in ms, $3 instant since which it has none; null while it has some. */
export const workerServed = `
  UPDATE workers SET idle_ms = idle_ms + $2, idle_since_ms = $3
  WHERE id = $1 AND ready_at_ms IS NOT NULL AND state <> 'FROZEN' AND ${ALIVE}`

/** $1 worker. */
export const lockWorker = 'SELECT id FROM workers WHERE id = $1 {{lock}}'

/** $1 worker. Its state, kept from changing until the end of the transaction. */
export const workerState = 'SELECT state FROM workers WHERE id = $1 {{lock}}'

/**
 * Changes of a worker that is frozen no longer: its frozen time, and idle time that begins again if it has no job.
 * @param now the parameter with the instant
 */
const unfrozen = (now: string) => `
    frozen_ms = frozen_ms + CASE WHEN state = 'FROZEN' AND frozen_at_ms < ${now} THEN ${now} - frozen_at_ms ELSE 0 END,
    idle_since_ms = CASE WHEN state = 'FROZEN' AND paused_at_ms IS NULL THEN ${now} ELSE idle_since_ms END`

/** $1 worker, $2 reason, $3 now. A paused worker with jobs drains once it goes on. @see endPause */
export const drainPaused = `
  UPDATE workers SET stop_reason = COALESCE(stop_reason, $2), stop_requested_at_ms = COALESCE(stop_requested_at_ms, $3)
  WHERE id = $1 AND state IN ('READY', 'FROZEN') AND paused_at_ms IS NOT NULL AND ${holdsJobs('$1')}
  RETURNING id`

/** $1 worker, $2 the state it is in, $3 the state it gets, $4 reason, $5 now. */
export const retireWorker = `
  UPDATE workers SET state = $3, stop_reason = COALESCE(stop_reason, $4),
    stop_requested_at_ms = COALESCE(stop_requested_at_ms, $5),
    stopping_at_ms = CASE WHEN $3 = 'STOPPING' THEN $5 ELSE stopping_at_ms END,${unfrozen('$5')}
  WHERE id = $1 AND state = $2
  RETURNING ${WORKER_COLUMNS}`

/** A worker holds no job and has to let go of none. @param worker the parameter with its id */
const holdsNothing = (worker: string) =>
  `NOT ${holdsJobs(worker)} AND NOT EXISTS (SELECT 1 FROM stops WHERE worker_id = ${worker})`

/** $1 worker, $2 the state it is in, $3 now. It makes room, if it has no job. */
export const evictWorker = `
  UPDATE workers SET state = 'DRAINING', stop_reason = COALESCE(stop_reason, 'evicted'),
    stop_requested_at_ms = COALESCE(stop_requested_at_ms, $3),${unfrozen('$3')}
  WHERE id = $1 AND state = $2 AND state IN ('READY', 'FROZEN') AND paused_at_ms IS NULL AND ${holdsNothing('$1')}
  RETURNING ${WORKER_COLUMNS}`

/** $1 worker, $2 now. It is frozen, if it has no job, nothing is wrong with it, and it is not being resumed. */
export const freezeWorker = `
  UPDATE workers SET state = 'FROZEN', frozen_at_ms = $2, thawed_at_ms = NULL, idle_ms = ${idleUntil('$2')}, idle_since_ms = NULL
  WHERE id = $1 AND state = 'READY' AND problem IS NULL AND suspension IS NULL AND ${holdsNothing('$1')}
  RETURNING ${WORKER_COLUMNS}`

/**
 * $1 worker, $2 now, $3 the version that its endpoint has to have; null for any, $4 1 where its GPUs are its own
 * again. It is READY again, idle since now. One that is being suspended stays frozen; a suspended one is being resumed
 * from now on.
 */
export const thawWorker = `
  UPDATE workers SET state = 'READY', thawed_at_ms = $2, asleep_at_ms = NULL, wake_waits_for = NULL,${unfrozen('$2')}
  WHERE id = $1 AND state = 'FROZEN' AND (asleep_at_ms IS NULL OR CAST($4 AS BIGINT) = 1)
    AND (asleep_at_ms IS NOT NULL OR suspension IS NULL) AND (CAST($3 AS BIGINT) IS NULL
    OR EXISTS (SELECT 1 FROM endpoints WHERE endpoints.id = workers.endpoint_id AND endpoints.version = $3))
  RETURNING ${WORKER_COLUMNS}`

/** $1 worker, $2 now, $3 the endpoint that gets its room. It is paused, if it has jobs, and none that it must stop. */
export const pauseWorker = `
  UPDATE workers SET state = 'FROZEN', frozen_at_ms = $2, thawed_at_ms = NULL, paused_at_ms = $2, paused_for = $3
  WHERE id = $1 AND state = 'READY' AND problem IS NULL AND suspension IS NULL AND paused_at_ms IS NULL
    AND serves IS NULL AND ${holdsJobs('$1')} AND NOT EXISTS (SELECT 1 FROM stops WHERE worker_id = $1)
  RETURNING ${WORKER_COLUMNS}`

/**
 * $1 worker, $2 now, $3 the instant before which it is not paused again; null for none. It runs again. One that was
 * asked to drain in the meantime does.
 */
export const endPause = `
  UPDATE workers SET paused_at_ms = NULL, paused_for = NULL, pausable_at_ms = $3,
    state = CASE WHEN stop_reason IS NULL THEN state ELSE 'DRAINING' END,
    idle_since_ms = CASE WHEN ${holdsJobs('$1')} THEN NULL ELSE CAST($2 AS {{integer}}) END
  WHERE id = $1 AND state = 'READY' AND paused_at_ms IS NOT NULL
  RETURNING ${WORKER_COLUMNS}`

/**
 * Workers that hold jobs of low priority and no others. In no order: in that of their ids all that ended would be
 * read.
 */
export const withLowPriorityOnly = `
  SELECT id AS worker_id FROM workers WHERE ${ALIVE}
    AND EXISTS (SELECT 1 FROM jobs WHERE worker_id = workers.id AND ${RUNNING} AND low_priority = 1)
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE worker_id = workers.id AND ${RUNNING} AND low_priority = 0)`

/** $1 worker, $2 when it was frozen, $3 now. Its GPUs are free. */
export const workerAsleep = `
  UPDATE workers SET asleep_at_ms = $3 WHERE id = $1 AND state = 'FROZEN' AND frozen_at_ms = $2 RETURNING id`

/** $1 worker, $2 when it was frozen, $3 the suspension that begins, as JSON. */
export const workerSuspending = `
  UPDATE workers SET suspension = $3
  WHERE id = $1 AND state = 'FROZEN' AND frozen_at_ms = $2 AND asleep_at_ms IS NULL RETURNING id`

/** $1 worker, $2 when it was frozen, $3 now. Its card is free. */
export const workerSuspended = `
  UPDATE workers SET asleep_at_ms = $3
  WHERE id = $1 AND state = 'FROZEN' AND frozen_at_ms = $2 AND suspension IS NOT NULL RETURNING id`

/** $1 worker, $2 now. Its processes run; one that is READY is idle since now. */
export const suspensionOver = `
  UPDATE workers SET suspension = NULL,
    idle_since_ms = CASE WHEN state = 'READY' AND paused_at_ms IS NULL THEN $2 ELSE idle_since_ms END
  WHERE id = $1 AND suspension IS NOT NULL AND asleep_at_ms IS NULL RETURNING id`

/** $1 worker, $2 now, $3 the reason. It could not be resumed, and sleeps on. */
export const workerSleepsOn = `
  UPDATE workers SET state = 'FROZEN', frozen_at_ms = $2, thawed_at_ms = NULL, asleep_at_ms = $2, wake_waits_for = $3,
    idle_ms = ${idleUntil('$2')}, idle_since_ms = NULL
  WHERE id = $1 AND state = 'READY' AND suspension IS NOT NULL
  RETURNING ${WORKER_COLUMNS}`

/** $1 worker, $2 the reason for which its wake waits. */
export const workerWaitsToWake = `
  UPDATE workers SET wake_waits_for = $2
  WHERE id = $1 AND asleep_at_ms IS NOT NULL AND wake_waits_for IS DISTINCT FROM $2`

/** $1 worker, $2 placement, as JSON, $3 flavor. */
export const workerPlacement = `UPDATE workers SET placement = $2, flavor = $3 WHERE id = $1 AND ${ALIVE}`

/** $1 worker, $2 what is wrong with it, as JSON, $3 now. The first problem is the one that is kept. */
export const noteProblem = `
  UPDATE workers SET problem = $2, problem_at_ms = $3 WHERE id = $1 AND problem IS NULL AND ${ALIVE} RETURNING id`

/** $1 worker, $2 the state it is in, $3 how it ended, $4 now. */
export const workerExited = `
  UPDATE workers SET state = 'EXITED', exit = $3, exited_at_ms = $4
  WHERE id = $1 AND state = $2
  RETURNING ${WORKER_COLUMNS}`

/** $1 limit. Workers of all endpoints that ended last, the last one first. */
export const lastExited = `
  SELECT id FROM workers WHERE state = 'EXITED' ORDER BY exited_at_ms DESC, id DESC LIMIT $1`

/** $1 the instant before which they ended, $2 limit. */
export const deleteExitedWorkers = `
  DELETE FROM workers WHERE id IN (
    SELECT id FROM workers WHERE state = 'EXITED' AND exited_at_ms < $1 ORDER BY exited_at_ms, id LIMIT $2 {{skip_locked}})
  RETURNING id`

/** A row of `workers`. */
export interface WorkerRow {
  readonly id: WorkerId
  readonly owner: OwnerId
  readonly endpoint_id: EndpointId
  readonly version: number
  readonly state: WorkerState
  readonly driver: string
  readonly handle: string | null
  readonly base_url: string
  readonly created_at_ms: number
  readonly started_at_ms: number | null
  readonly ready_at_ms: number | null
  readonly idle_since_ms: number | null
  readonly stop_requested_at_ms: number | null
  readonly stopping_at_ms: number | null
  readonly exited_at_ms: number | null
  readonly stop_reason: StopReason | null
  readonly exit: string | null
  readonly problem: string | null
  readonly problem_at_ms: number | null
  readonly capacity: number
  readonly jobs_finished: number
  readonly sdk: string | null
  readonly serves: string | null
  readonly placement: string | null
  readonly placed_at_ms: number | null
  readonly download_started_at_ms: number | null
  readonly download_ended_at_ms: number | null
  readonly pull_started_at_ms: number | null
  readonly pull_ended_at_ms: number | null
  readonly frozen_at_ms: number | null
  readonly thawed_at_ms: number | null
  readonly asleep_at_ms: number | null
  readonly wake_waits_for: string | null
  readonly suspension: string | null
  readonly paused_at_ms: number | null
  readonly paused_for: EndpointId | null
  readonly pausable_at_ms: number | null
  readonly platform: string | null
}

/** A row as a worker. */
export function workerFromRow(row: WorkerRow): Worker {
  return {
    id: row.id,
    owner: row.owner,
    endpointId: row.endpoint_id,
    version: row.version,
    state: row.state,
    driver: row.driver,
    handle: row.handle,
    serves: row.serves === null ? null : (JSON.parse(row.serves) as Serving),
    baseUrl: row.base_url,
    createdAtMs: row.created_at_ms,
    startedAtMs: row.started_at_ms,
    readyAtMs: row.ready_at_ms,
    idleSinceMs: row.idle_since_ms,
    stopRequestedAtMs: row.stop_requested_at_ms,
    stoppingAtMs: row.stopping_at_ms,
    exitedAtMs: row.exited_at_ms,
    stopReason: row.stop_reason,
    problem: row.problem === null ? null : (JSON.parse(row.problem) as WorkerProblem),
    problemAtMs: row.problem_at_ms,
    exit: row.exit === null ? null : (JSON.parse(row.exit) as WorkerExit),
    capacity: row.capacity,
    jobsFinished: row.jobs_finished,
    sdk: row.sdk,
    placement: row.placement === null ? null : (JSON.parse(row.placement) as Placement),
    placedAtMs: row.placed_at_ms,
    downloadStartedAtMs: row.download_started_at_ms,
    downloadEndedAtMs: row.download_ended_at_ms,
    pullStartedAtMs: row.pull_started_at_ms,
    pullEndedAtMs: row.pull_ended_at_ms,
    frozenAtMs: row.frozen_at_ms,
    thawedAtMs: row.thawed_at_ms,
    asleepAtMs: row.asleep_at_ms,
    wakeWaitsFor: row.wake_waits_for,
    suspension: row.suspension === null ? null : (JSON.parse(row.suspension) as WorkerSuspension),
    pause:
      row.paused_at_ms === null || row.paused_for === null ? null : { sinceMs: row.paused_at_ms, for: row.paused_for },
    pausableAtMs: row.pausable_at_ms,
    platform: row.platform === null ? null : (JSON.parse(row.platform) as PlatformReport),
  }
}

/** The parameters of `insertWorker`. A new worker is STARTING in any case. */
export function newWorkerParams(worker: Worker, tokenHash: string, flavor: string): SqlValue[] {
  return [
    worker.id,
    worker.owner,
    worker.endpointId,
    worker.version,
    'STARTING',
    worker.driver,
    worker.handle,
    worker.baseUrl,
    worker.createdAtMs,
    tokenHash,
    worker.capacity,
    worker.sdk,
    flavor,
    worker.placement === null ? null : JSON.stringify(worker.placement),
    worker.placedAtMs,
    worker.serves === null ? null : JSON.stringify(worker.serves),
    worker.downloadStartedAtMs,
    worker.downloadEndedAtMs,
  ]
}
