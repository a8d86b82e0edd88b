/** Statements and rows of the use of jobs and workers. */
import { JOB_FIGURES, type JobUsage, type WorkerMeter, type WorkerUsage } from '../../core/billing/usage.ts'
import type { EndpointId, KeyId, OwnerId, WorkerId } from '../../core/ids.ts'
import { TOKEN_FIGURES, type TokenDay, type TokenFigures } from '../../core/openai/token-sums.ts'
import { ALIVE } from './guards.ts'
import type { SqlValue } from './statement.ts'

const columnName = (name: string) => name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)

/** The columns of the figures of jobs, in the order of core/usage. */
export const JOB_FIGURE_COLUMNS: readonly string[] = JOB_FIGURES.map(columnName)

const WORKER_FIGURE_COLUMNS = ['starting_ms', 'running_ms', 'idle_ms', 'frozen_ms']

const added = (table: string, columns: readonly string[]) =>
  columns.map(name => `${name} = ${table}.${name} + excluded.${name}`).join(', ')

/** Sums of integers, as integers: in PostgreSQL a sum of integers has another type. */
const summed = (columns: readonly string[]) =>
  columns.map(name => `CAST(SUM(${name}) AS {{integer}}) AS ${name}`).join(', ')

/** $1 endpoint, $2 hour, $3 owner, $4 and further: the figures. */
export const addJobUsage = `
  INSERT INTO job_hours (endpoint_id, hour_ms, shard, owner, ${JOB_FIGURE_COLUMNS.join(', ')})
  VALUES ($1, $2, {{shard}}, $3, ${JOB_FIGURE_COLUMNS.map((_, index) => `$${index + 4}`).join(', ')})
  ON CONFLICT (endpoint_id, hour_ms, shard) DO UPDATE SET ${added('job_hours', JOB_FIGURE_COLUMNS)}`

/** $1 endpoint, $2 hour, $3 flavor, $4 owner, $5 starting, $6 running, $7 idle, $8 frozen. */
export const addWorkerUsage = `
  INSERT INTO worker_hours (endpoint_id, hour_ms, flavor, owner, ${WORKER_FIGURE_COLUMNS.join(', ')})
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
  ON CONFLICT (endpoint_id, hour_ms, flavor) DO UPDATE SET ${added('worker_hours', WORKER_FIGURE_COLUMNS)}`

const JOB_SUMS = `SELECT endpoint_id, ${summed(JOB_FIGURE_COLUMNS)} FROM job_hours`
const WORKER_SUMS = `SELECT endpoint_id, flavor, ${summed(WORKER_FIGURE_COLUMNS)} FROM worker_hours`
const WITHIN = 'hour_ms >= $2 AND hour_ms < $3'

/** $1 owner, $2 from when, $3 before when. */
export const jobSumsOfOwner = `
  ${JOB_SUMS} WHERE owner = $1 AND ${WITHIN} GROUP BY endpoint_id ORDER BY endpoint_id`

/** As {@link jobSumsOfOwner}, $4 endpoint. Found by it: the index of the owner has the hours of all its endpoints. */
export const jobSumsOfEndpoint = `
  ${JOB_SUMS} WHERE endpoint_id = $4 AND ${WITHIN} AND (owner || '') = $1 GROUP BY endpoint_id`

/** $1 owner, $2 from when, $3 before when. */
export const workerSumsOfOwner = `
  ${WORKER_SUMS} WHERE owner = $1 AND ${WITHIN} GROUP BY endpoint_id, flavor ORDER BY endpoint_id, flavor`

/** As {@link workerSumsOfOwner}, $4 endpoint, by which it is found. */
export const workerSumsOfEndpoint = `
  ${WORKER_SUMS} WHERE endpoint_id = $4 AND ${WITHIN} AND (owner || '') = $1 GROUP BY endpoint_id, flavor ORDER BY flavor`

/** $1 owner, $2 from when, $3 before when, $4 number. The hour of the row behind that many. */
const hourBehind = (table: string, found: string) => `
  SELECT hour_ms FROM ${table} WHERE ${found} AND ${WITHIN} ORDER BY hour_ms LIMIT 1 OFFSET $4`

/** As {@link hourBehind}. */
export const jobHourOfOwner = hourBehind('job_hours', 'owner = $1')
/** As {@link hourBehind}. */
export const workerHourOfOwner = hourBehind('worker_hours', 'owner = $1')
/** As {@link hourBehind}, $5 endpoint, by which it is found. */
export const jobHourOfEndpoint = hourBehind('job_hours', `endpoint_id = $5 AND (owner || '') = $1`)
/** As {@link hourBehind}, $5 endpoint, by which it is found. */
export const workerHourOfEndpoint = hourBehind('worker_hours', `endpoint_id = $5 AND (owner || '') = $1`)

const METER_COLUMNS =
  'id, owner, endpoint_id, flavor, ready_at_ms, idle_ms, idle_since_ms, counted_until_ms, counted_idle_ms, frozen_ms, ' +
  `CASE WHEN state = 'FROZEN' THEN frozen_at_ms END AS frozen_since_ms, counted_frozen_ms`

/** $1 worker. */
export const meterOfWorker = `SELECT ${METER_COLUMNS} FROM workers WHERE id = $1`

/** $1 owner. Workers that have not ended, in no order: in that of their ids all that ended would be read too. */
export const metersOfOwner = `SELECT ${METER_COLUMNS} FROM workers WHERE ${ALIVE} AND owner = $1`

/** $1 owner, $2 endpoint. */
export const metersOfEndpoint = `
  SELECT ${METER_COLUMNS} FROM workers WHERE ${ALIVE} AND endpoint_id = $2 AND owner = $1 ORDER BY id`

/** $1 owner. Numbers of workers that have not ended, by flavor and phase. */
export const runningWorkers = `
  SELECT flavor, CASE WHEN state = 'FROZEN' THEN 'frozen' WHEN ready_at_ms IS NULL THEN 'starting'
    WHEN idle_since_ms IS NULL THEN 'running' ELSE 'idle' END AS phase, COUNT(*) AS workers
  FROM workers WHERE ${ALIVE} AND owner = $1 GROUP BY 1, 2 ORDER BY 1, 2`

/** $1 instant, $2 limit. Workers that were not counted since. */
export const metersDue = `
  SELECT ${METER_COLUMNS} FROM workers WHERE ${ALIVE} AND counted_until_ms <= $1
  ORDER BY counted_until_ms, id LIMIT $2 {{skip_locked}}`

/** $1 worker, $2 instant until which its time is counted now, $3 idle ms of it, $4 frozen ms of it. */
export const setMeter =
  'UPDATE workers SET counted_until_ms = $2, counted_idle_ms = $3, counted_frozen_ms = $4 WHERE id = $1'

/** $1 instant, $2 limit. */
export const deleteJobHours = `
  DELETE FROM job_hours WHERE {{row}} IN (
    SELECT {{row}} FROM job_hours WHERE hour_ms < $1 ORDER BY hour_ms LIMIT $2 {{skip_locked}})
  RETURNING endpoint_id`

/** $1 instant, $2 limit. */
export const deleteWorkerHours = `
  DELETE FROM worker_hours WHERE {{row}} IN (
    SELECT {{row}} FROM worker_hours WHERE hour_ms < $1 ORDER BY hour_ms LIMIT $2 {{skip_locked}})
  RETURNING endpoint_id`

const TOKEN_COLUMNS = TOKEN_FIGURES.map(columnName)

/** $1 owner, $2 day, $3 model, $4 key, $5 endpoint, $6 and further: the figures. */
export const addTokenDay = `
  INSERT INTO token_days (owner, day_ms, model, key_id, endpoint_id, ${TOKEN_COLUMNS.join(', ')})
  VALUES ($1, $2, $3, $4, $5, ${TOKEN_COLUMNS.map((_, index) => `$${index + 6}`).join(', ')})
  ON CONFLICT (owner, day_ms, model, key_id, endpoint_id) DO UPDATE SET ${added('token_days', TOKEN_COLUMNS)}`

/** $1 owner, $2 from when, $3 before when, $4 key or nothing, $5 endpoint or nothing, $6 limit. */
export const tokenSums = `
  SELECT endpoint_id, key_id, model, ${summed(TOKEN_COLUMNS)} FROM token_days
  WHERE owner = $1 AND day_ms >= $2 AND day_ms < $3 AND ($4 = '' OR key_id = $4) AND ($5 = '' OR endpoint_id = $5)
  GROUP BY endpoint_id, key_id, model ORDER BY endpoint_id, key_id, model LIMIT $6`

/** As {@link tokenSums}, by endpoint alone. */
export const tokenSumsOfEndpoints = `
  SELECT endpoint_id, '' AS key_id, '' AS model, ${summed(TOKEN_COLUMNS)} FROM token_days
  WHERE owner = $1 AND day_ms >= $2 AND day_ms < $3 AND ($4 = '' OR key_id = $4) AND ($5 = '' OR endpoint_id = $5)
  GROUP BY endpoint_id ORDER BY endpoint_id LIMIT $6`

/** $1 owner, $2 day, $3 limit. */
export const modelsOfDay = `
  SELECT DISTINCT model FROM token_days WHERE owner = $1 AND day_ms = $2 AND model <> '' ORDER BY model LIMIT $3`

/** $1 instant, $2 limit. */
export const deleteTokenDays = `
  DELETE FROM token_days WHERE {{row}} IN (
    SELECT {{row}} FROM token_days WHERE day_ms < $1 ORDER BY day_ms LIMIT $2 {{skip_locked}})
  RETURNING endpoint_id`

/** $1 endpoint, $2 owner, $3 name, $4 now. An id may come again. */
export const addFormerEndpoint = `
  INSERT INTO former_endpoints (endpoint_id, owner, name, deleted_at_ms) VALUES ($1, $2, $3, $4)
  ON CONFLICT (endpoint_id)
  DO UPDATE SET owner = excluded.owner, name = excluded.name, deleted_at_ms = excluded.deleted_at_ms`

/** $1 owner, $2 instant, $3 limit. Those that were deleted since then, the last one first. */
export const formerEndpointsOfOwner = `
  SELECT endpoint_id, name FROM former_endpoints WHERE owner = $1 AND deleted_at_ms >= $2
  ORDER BY deleted_at_ms DESC LIMIT $3`

/** $1 instant, $2 limit. */
export const deleteFormerEndpoints = `
  DELETE FROM former_endpoints WHERE {{row}} IN (
    SELECT {{row}} FROM former_endpoints WHERE deleted_at_ms < $1 ORDER BY deleted_at_ms LIMIT $2 {{skip_locked}})
  RETURNING endpoint_id`

/** A row of {@link formerEndpointsOfOwner}. */
export interface FormerEndpointRow {
  readonly endpoint_id: EndpointId
  readonly name: string
}

/** $1 instant, $2 limit. Windows that began before it; it lies further back than the longest window lasts. */
export const deleteOldWindows = `
  DELETE FROM rate_windows WHERE (owner, place) IN (
    SELECT owner, place FROM rate_windows WHERE start_ms < $1 ORDER BY start_ms LIMIT $2)
  RETURNING owner`

/** Numbers of free pages and of all pages of the file. */
export const pages = 'SELECT {{free_pages}} AS free, {{all_pages}} AS total'

/** Gives some free pages back to the disk. */
export const compact = '{{compact}}'

/** Sums of `job_hours`. */
export type JobSumRow = Readonly<Record<string, SqlValue>> & { readonly endpoint_id: EndpointId }

/** Sums as usage. */
export function jobUsageFromRow(row: JobSumRow): JobUsage {
  const figures = JOB_FIGURES.map((name, index) => [name, row[JOB_FIGURE_COLUMNS[index]!]])
  return Object.fromEntries(figures) as unknown as JobUsage
}

/** The figures in the order of their columns. */
export function jobUsageParams(usage: JobUsage): SqlValue[] {
  return JOB_FIGURES.map(name => usage[name])
}

/** Sums of `worker_hours`. */
export interface WorkerSumRow {
  readonly endpoint_id: EndpointId
  readonly flavor: string
  readonly starting_ms: number
  readonly running_ms: number
  readonly idle_ms: number
  readonly frozen_ms: number
}

/** Sums as usage. */
export function workerUsageFromRow(row: WorkerSumRow): WorkerUsage {
  return {
    startingMs: row.starting_ms,
    runningMs: row.running_ms,
    idleMs: row.idle_ms,
    frozenMs: row.frozen_ms,
  }
}

/** Sums of `token_days`. */
export type TokenSumRow = Readonly<Record<string, SqlValue>> & {
  readonly endpoint_id: EndpointId
  readonly key_id: KeyId | ''
  readonly model: string
}

/** Sums as figures. */
export function tokenFiguresFromRow(row: TokenSumRow): TokenFigures {
  const figures = TOKEN_FIGURES.map((name, index) => [name, row[TOKEN_COLUMNS[index]!]])
  return Object.fromEntries(figures) as unknown as TokenFigures
}

/** The parameters of {@link addTokenDay}. */
export function tokenDayParams({ owner, dayMs, model, keyId, endpointId, figures }: TokenDay): SqlValue[] {
  return [owner, dayMs, model ?? '', keyId ?? '', endpointId, ...TOKEN_FIGURES.map(name => figures[name])]
}

/** The instant until which a worker is counted, and its owner. */
export interface MeterRow {
  readonly id: WorkerId
  readonly owner: OwnerId
  readonly endpoint_id: EndpointId
  readonly flavor: string
  readonly ready_at_ms: number | null
  readonly idle_ms: number
  readonly idle_since_ms: number | null
  readonly counted_until_ms: number
  readonly counted_idle_ms: number
  readonly frozen_ms: number
  readonly frozen_since_ms: number | null
  readonly counted_frozen_ms: number
}

/** A row as a meter. */
export function meterFromRow(row: MeterRow): WorkerMeter {
  return {
    readyAtMs: row.ready_at_ms,
    idleMs: row.idle_ms,
    idleSinceMs: row.idle_since_ms,
    countedUntilMs: row.counted_until_ms,
    countedIdleMs: row.counted_idle_ms,
    frozenMs: row.frozen_ms,
    frozenSinceMs: row.frozen_since_ms,
    countedFrozenMs: row.counted_frozen_ms,
  }
}
