/** Statements and rows of endpoints and their counters. */
import {
  ENDPOINT_DEFAULTS,
  ENDPOINT_FIELDS,
  type Endpoint,
  type EndpointConfig,
  type EndpointCounters,
  MEASURED_JOBS,
} from '../../core/endpoints/endpoint.ts'
import { namesIn, picked } from '../../core/endpoints/field.ts'
import type { EndpointId, OwnerId, TemplateId } from '../../core/ids.ts'
import { earliest } from '../../core/scaling/plan.ts'
import type { QueueLoad, WorkerCondition } from '../../core/scaling/scale.ts'
import type { WorkerState } from '../../core/workers/worker.ts'
import type { ListedKind } from '../../ports/store/store.ts'
import { ALIVE, RUNNING, SUSPECT_QUEUE, TAKES_TURNS } from './guards.ts'
import type { SqlValue } from './statement.ts'

/** The columns of an endpoint; see endpoints.ts. */
export const ENDPOINT_COLUMNS =
  'id, owner, name, template_id, version, workers_min, workers_max, created_at_ms, config, runs_once, started_by, task_root'

/** $1 endpoint, $2 owner. References to an endpoint are to this row; no row when the id is taken. */
export const insertEndpointId = `
  INSERT INTO endpoint_ids (id, owner) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING RETURNING id`

/** $1 id. A row when an endpoint has it, or something is left of one that had it. */
export const findEndpointId = 'SELECT id FROM endpoint_ids WHERE id = $1'

/** A new endpoint. */
export const insertEndpoint = `
  INSERT INTO endpoints (${ENDPOINT_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`

/** The row that has the average of an endpoint, and no counts: its changes hold up no transaction that counts. */
const AVERAGE = -1

/** $1 endpoint, $2 owner. */
export const insertCounters = `
  INSERT INTO endpoint_counters (endpoint_id, shard, owner, completed, failed, retried) VALUES ($1, ${AVERAGE}, $2, 0, 0, 0)`

/** $1 endpoint, $2 to $7 its new values. */
export const replaceEndpoint = `
  UPDATE endpoints SET name = $2, template_id = $3, version = $4, workers_min = $5, workers_max = $6, config = $7
  WHERE id = $1`

/** $1 template. */
export const usersOfTemplate = `
  SELECT ${ENDPOINT_COLUMNS} FROM endpoints WHERE template_id = $1 ORDER BY id`

/** As {@link usersOfTemplate}, and they stay as they are. */
export const lockUsersOfTemplate = 'SELECT id FROM endpoints WHERE template_id = $1 ORDER BY id {{lock}}'

/** $1 endpoint. */
export const newVersion = 'UPDATE endpoints SET version = version + 1 WHERE id = $1'

/** $1 endpoint. */
export const findEndpoint = `SELECT ${ENDPOINT_COLUMNS} FROM endpoints WHERE id = $1`

/** $1 endpoint. */
export const lockEndpoint = 'SELECT id FROM endpoints WHERE id = $1 {{lock}}'

/** $1 endpoint. No new reference to it is possible. */
export const lockEndpointId = 'SELECT id FROM endpoint_ids WHERE id = $1 {{lock_key}}'

const endpointsWhere = (condition: string, columns = ENDPOINT_COLUMNS) => `
  SELECT ${columns} FROM endpoints WHERE owner = $1 AND (created_at_ms, id) > ($2, $3)${condition}
  ORDER BY created_at_ms, id LIMIT $4`

/** $1 owner, $2 name, $3 limit. */
export const endpointsByName = `
  SELECT ${ENDPOINT_COLUMNS} FROM endpoints WHERE owner = $1 AND name = $2 AND runs_once = 0 ORDER BY created_at_ms, id LIMIT $3`

/** $1 owner, $2 the first name, $3 a name behind the last one, $4 limit. */
export const endpointsBetweenNames = `
  SELECT ${ENDPOINT_COLUMNS} FROM endpoints WHERE owner = $1 AND name >= $2 AND name < $3 AND runs_once = 0
  ORDER BY name, created_at_ms, id LIMIT $4`

/** By which of them are listed: $1 owner, $2 and $3 the end of the previous page, $4 limit. */
export const listEndpoints: Readonly<Record<ListedKind, string>> = {
  endpoints: endpointsWhere(' AND runs_once = 0'),
  tasks: endpointsWhere(' AND runs_once = 1'),
  all: endpointsWhere(''),
}

/** As {@link listEndpoints}, of endpoints. */
export const endpointNames = endpointsWhere(' AND runs_once = 0', 'id, name')

/** $1 endpoint. A task starts no worker again. */
export const endTask = 'UPDATE endpoints SET workers_min = 0, workers_max = 0 WHERE id = $1 AND runs_once = 1'

/** $1 instant, $2 limit. Tasks whose worker ended before it, in the order of the index that has tasks alone. */
export const endedTasks = `
  SELECT id FROM endpoints WHERE runs_once = 1 AND workers_max = 0 AND created_at_ms < $1 AND NOT EXISTS (
    SELECT 1 FROM workers WHERE endpoint_id = endpoints.id AND (${ALIVE} OR exited_at_ms >= $1))
  ORDER BY owner, created_at_ms, id LIMIT $2`

/** $1 root. Tasks that its workers, and the tasks of these, started. */
export const countStartedTasks = `
  SELECT CAST(COALESCE(SUM(CASE WHEN workers_max > 0 THEN 1 ELSE 0 END), 0) AS {{integer}}) AS running,
    CAST(COALESCE(SUM(CASE WHEN workers_max > 0 THEN 0 ELSE 1 END), 0) AS {{integer}}) AS ended
  FROM endpoints WHERE task_root = $1`

/** $1 limit. Tasks whose starter was removed, in the order of the index that has started ones alone. */
export const orphanedTasks = `
  SELECT id FROM endpoints AS task WHERE task_root IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM endpoints WHERE id = task.started_by)
  ORDER BY task_root, id LIMIT $1`

/** All ids. */
export const endpointIds = 'SELECT id FROM endpoints ORDER BY id'

/** $1 endpoint. It is gone with these; its jobs, batches and idempotency keys are left, and are removed in steps. */
export const deleteEndpoint = [
  ...[
    'app_endpoints',
    'endpoint_counters',
    'endpoint_domains',
    'endpoint_volumes',
    'queued_workers',
    'releases',
    'served_models',
    'api_keys',
  ].map(table => `DELETE FROM ${table} WHERE endpoint_id = $1`),
  'DELETE FROM endpoints WHERE id = $1',
]

/** $1 endpoint, $2 now. */
export const noteDeletion = 'UPDATE endpoint_ids SET deleted_at_ms = $2 WHERE id = $1'

const COUNTERS = `${['completed', 'failed', 'retried'].map(name => `CAST(COALESCE(SUM(${name}), 0) AS {{integer}}) AS ${name}`).join(', ')},
    MAX(average_execution_ms) AS average_execution_ms`

/** $1 endpoint. */
export const findCounters = `SELECT ${COUNTERS} FROM endpoint_counters WHERE endpoint_id = $1`

/** $1 ids, as a JSON list. */
export const countersOfThese = `
  SELECT endpoint_id, ${COUNTERS} FROM endpoint_counters WHERE endpoint_id IN ({{id_list}}) GROUP BY endpoint_id`

/** $1 endpoint, $2 more completed, $3 more failed, $4 more retried. Nothing where the endpoint is gone. */
export const addToCounters = `
  INSERT INTO endpoint_counters (endpoint_id, shard, owner, completed, failed, retried)
  SELECT id, {{shard}}, owner, CAST($2 AS {{integer}}), CAST($3 AS {{integer}}), CAST($4 AS {{integer}}) FROM endpoints WHERE id = $1
  ON CONFLICT (endpoint_id, shard) DO UPDATE SET completed = endpoint_counters.completed + excluded.completed,
    failed = endpoint_counters.failed + excluded.failed, retried = endpoint_counters.retried + excluded.retried`

const MEASURED_THEN = `(CASE WHEN measured + $3 < ${MEASURED_JOBS} THEN measured + $3 ELSE ${MEASURED_JOBS} END)`

/**
 * $1 endpoint, $2 average execution time of some jobs in ms, $3 their number, at most {@link MEASURED_JOBS}. Moves the
 * average, unless other jobs move it at the same time.
 */
export const moveAverage = `
  UPDATE endpoint_counters
  SET measured = ${MEASURED_THEN},
    average_execution_ms = COALESCE(average_execution_ms, 0) + (CAST($2 AS {{real}}) - COALESCE(average_execution_ms, 0))
      * $3 / ${MEASURED_THEN}
  WHERE shard = ${AVERAGE} AND endpoint_id IN (
    SELECT endpoint_id FROM endpoint_counters WHERE endpoint_id = $1 AND shard = ${AVERAGE} {{skip_locked}})`

/** The instant at which the head of a queue began to wait; one step into an index. */
const headQueuedAt = (endpoint: string, queue: string) => `(SELECT queued_at_ms FROM jobs
      WHERE endpoint_id = ${endpoint} AND status = 'IN_QUEUE' AND queue = ${queue} AND low_priority = 0
      ORDER BY position, id LIMIT 1)`

const sumColumn = (name: string) => `CAST(COALESCE(SUM(${name}), 0) AS {{integer}}) AS ${name}`

/**
 * The queue as the autoscaler sees it. Its counts are kept, see schema/initial/queue-counts.ts.
 * @param endpoint SQL of the id of the endpoint
 */
const loadColumns = (endpoint: string) => `counts.*,
    ${headQueuedAt(endpoint, `'${SUSPECT_QUEUE}'`)} AS suspect_queued_at_ms,
    ${headQueuedAt(endpoint, `''`)} AS head_queued_at_ms,
    (SELECT MIN(turn_at_ms) FROM batches WHERE endpoint_id = ${endpoint} AND ${TAKES_TURNS} AND EXISTS (
      SELECT 1 FROM jobs
      WHERE endpoint_id = ${endpoint} AND status = 'IN_QUEUE' AND queue = batches.id AND low_priority = 0)) AS batch_turn_at_ms`

const COUNT_SUMS = [
  'queued',
  'queued_low_priority',
  'queued_of_batches',
  'suspects_queued',
  'in_progress',
  'suspects_in_progress',
]
  .map(sumColumn)
  .join(', ')

/** $1 endpoint. */
export const queueLoad = `
  SELECT ${loadColumns('$1')} FROM (SELECT ${COUNT_SUMS} FROM queue_counts WHERE endpoint_id = $1) AS counts`

/** A row of counts of one connection may be below zero; that of another makes up for it. */
export const activeEndpoints = `
  SELECT id FROM endpoints WHERE workers_min > 0
  UNION SELECT endpoint_id FROM queue_counts WHERE queued <> 0 OR queued_low_priority <> 0 OR in_progress <> 0
  UNION SELECT endpoint_id FROM workers WHERE ${ALIVE}
  UNION SELECT endpoint_id FROM queued_workers`

/** A row of {@link queueDemand}. */
export interface DemandRow {
  readonly queued: number
  readonly takers: number
  readonly taker_state: WorkerState | null
}

/** $1 id, $2 id of one of its workers, $3 number of jobs that count besides those of the queue. */
export const queueDemand = `
  SELECT queued,
    CASE WHEN queued > 0 THEN (SELECT COUNT(*) FROM workers WHERE endpoint_id = $1 AND state IN ('STARTING', 'READY')) ELSE 0 END AS takers,
    (SELECT state FROM workers WHERE id = $2) AS taker_state
  FROM (SELECT CAST(COALESCE(SUM(queued + queued_low_priority), 0) + CAST($3 AS {{integer}}) AS {{integer}}) AS queued FROM queue_counts WHERE endpoint_id = $1) AS counts`

/** $1 id, $2 limit. The queues of the endpoints after that id. */
export const queueLoads = `
  SELECT ${loadColumns('counts.id')} FROM (
    SELECT page.id, ${COUNT_SUMS}
    FROM (SELECT id FROM endpoints WHERE id > $1 ORDER BY id LIMIT $2) AS page
    LEFT JOIN queue_counts ON queue_counts.endpoint_id = page.id GROUP BY page.id) AS counts
  ORDER BY counts.id`

/** $1 ids, as a JSON list. The queues of these endpoints. */
export const queueLoadsOfThese = `
  SELECT ${loadColumns('counts.id')} FROM (
    SELECT page.id, ${COUNT_SUMS}
    FROM (SELECT id FROM endpoints WHERE id IN ({{id_list}})) AS page
    LEFT JOIN queue_counts ON queue_counts.endpoint_id = page.id GROUP BY page.id) AS counts`

/** $1 first id, $2 last id. The workers of these endpoints by state, with jobs and without. */
export const workerCounts = `
  SELECT endpoint_id, state, busy, COUNT(*) AS workers FROM (
    SELECT endpoint_id, state,
      CASE WHEN EXISTS (SELECT 1 FROM jobs WHERE worker_id = workers.id AND ${RUNNING})
        OR EXISTS (SELECT 1 FROM stops WHERE worker_id = workers.id) THEN 1 ELSE 0 END AS busy
    FROM workers WHERE endpoint_id >= $1 AND endpoint_id <= $2 AND ${ALIVE}) AS each_worker
  GROUP BY endpoint_id, state, busy`

/** A row of `endpoints`: what statements compare has columns, the rest of the configuration is one JSON text. */
export interface EndpointRow {
  readonly id: EndpointId
  readonly owner: OwnerId
  readonly name: string
  readonly template_id: TemplateId
  readonly version: number
  readonly workers_min: number
  readonly workers_max: number
  readonly created_at_ms: number
  readonly config: string
  readonly runs_once: number
}

type Config = Omit<EndpointConfig, 'name' | 'workersMin' | 'workersMax' | 'runsOnce'>

const IN_CONFIG = namesIn(ENDPOINT_FIELDS).filter(
  (name): name is keyof Config => !['name', 'workersMin', 'workersMax', 'runsOnce'].includes(name),
)

/** A row as an endpoint. A field that the row of an older version lacks has its default. */
export function endpointFromRow(row: EndpointRow): Endpoint {
  return {
    ...ENDPOINT_DEFAULTS,
    ...(JSON.parse(row.config) as Config),
    id: row.id,
    owner: row.owner,
    name: row.name,
    templateId: row.template_id,
    version: row.version,
    workersMin: row.workers_min,
    workersMax: row.workers_max,
    runsOnce: row.runs_once === 1,
    createdAtMs: row.created_at_ms,
  }
}

/** An endpoint's values in the order of its columns. */
export function endpointParams(endpoint: Endpoint): SqlValue[] {
  const { id, owner, name, templateId, version, workersMin, workersMax, createdAtMs, runsOnce, starters } = endpoint
  const config = configText(endpoint)
  const started = [starters.at(-1) ?? null, starters[0] ?? null]
  return [
    id,
    owner,
    name,
    templateId,
    version,
    workersMin,
    workersMax,
    createdAtMs,
    config,
    runsOnce ? 1 : 0,
    ...started,
  ]
}

/** The parameters of `replaceEndpoint`. */
export function changedEndpointParams(endpoint: Endpoint): SqlValue[] {
  const { id, name, templateId, version, workersMin, workersMax } = endpoint
  return [id, name, templateId, version, workersMin, workersMax, configText(endpoint)]
}

function configText(endpoint: Endpoint): string {
  return JSON.stringify(picked(endpoint, IN_CONFIG))
}

/** The sums of `endpoint_counters`. */
export interface CountersRow {
  readonly completed: number
  readonly failed: number
  readonly retried: number
  readonly average_execution_ms: number | null
}

/** A row as counters; of an endpoint that is gone, nothing was counted. */
export function countersFromRow(row: CountersRow | null): EndpointCounters {
  if (row === null) return { completed: 0, failed: 0, retried: 0, averageExecutionMs: null }
  const { completed, failed, retried } = row
  return { completed, failed, retried, averageExecutionMs: row.average_execution_ms }
}

/** A row of `queueLoad`. */
export interface QueueRow {
  readonly queued: number
  readonly queued_low_priority: number
  readonly queued_of_batches: number
  readonly in_progress: number
  readonly suspects_queued: number
  readonly suspects_in_progress: number
  readonly suspect_queued_at_ms: number | null
  readonly head_queued_at_ms: number | null
  readonly batch_turn_at_ms: number | null
}

/** A row as the load of a queue. */
export function queueLoadFromRow(row: QueueRow): QueueLoad {
  return {
    queued: row.queued,
    queuedLowPriority: row.queued_low_priority,
    queuedInBatches: row.queued_of_batches,
    inProgress: row.in_progress,
    suspectsQueued: row.suspects_queued,
    suspectsInProgress: row.suspects_in_progress,
    headQueuedAtMs: earliest([row.head_queued_at_ms, row.batch_turn_at_ms]) ?? row.suspect_queued_at_ms,
  }
}

/** A row of `workerCounts`. */
export interface WorkerCountRow {
  readonly endpoint_id: EndpointId
  readonly state: Exclude<WorkerState, 'EXITED'>
  readonly busy: number
  readonly workers: number
}

/** Condition of the workers of a row. */
export function workerCondition({ state, busy }: WorkerCountRow): WorkerCondition {
  if (state === 'READY') return busy === 1 ? 'running' : 'idle'
  return ({ STARTING: 'starting', FROZEN: 'frozen', DRAINING: 'draining', STOPPING: 'stopping' } as const)[state]
}
