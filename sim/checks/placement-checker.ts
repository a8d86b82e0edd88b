import type { EndpointConfig } from '../../src/core/endpoints/endpoint.ts'
import { cataloged, type MachineParts } from '../../src/core/hardware/inventory.ts'
import type { EndpointId, WorkerId } from '../../src/core/ids.ts'
import { FAULT_REASONS } from '../../src/core/workers/worker.ts'
import type { Events } from '../../src/events.ts'
import type { WorkerSpec } from '../../src/ports/driver.ts'
import type { Database } from '../store.ts'
import { LastingProblems } from './lasting-problems.ts'

/** A worker in the store that waits for a placement. */
interface QueuedRow {
  readonly id: WorkerId
  readonly endpoint_id: EndpointId
  readonly resource: string
  readonly current: 0 | 1
}

interface EndpointRow {
  readonly id: EndpointId
  readonly workers_min: number
  readonly workers_max: number
  readonly config: string
  /** 1 if its newest release is a canary, else 0. */
  readonly canary: number
  readonly waiting: number
  readonly busy: number
  readonly alive: number
  /** Workers of another version than the newest one. */
  readonly old: number
  readonly queued: number
  readonly last_reason: string | null
  readonly has_exits: number
  /** Number of ready workers that run a job. */
  readonly working: number
  /** First job in the queue; null for an empty queue. */
  readonly head: string | null
}

/** State that the checker reads besides the store. */
export interface PlacementView {
  readonly parts: () => MachineParts
  /** The workers that have a running process. */
  readonly running: () => readonly WorkerId[]
  readonly maxWorkers: number
  /** True for a worker whose memory is not on its card now. */
  readonly isAway?: (worker: WorkerId) => boolean
  /** True for a card of which some memory is in use. */
  readonly isUsed?: (card: string) => boolean
  /** Requests of a load-balancing endpoint: those that wait for any worker, and all that wait or are in flight. */
  readonly requests: (endpoint: EndpointId) => { readonly waiting: number; readonly all: number }
}

const QUEUED = `SELECT id, endpoint_id, resource,
  version = (SELECT version FROM endpoints WHERE id = queued_workers.endpoint_id) AS current
  FROM queued_workers ORDER BY id`
const ENDPOINTS = `SELECT id, workers_min, workers_max, config,
  EXISTS (SELECT 1 FROM releases WHERE endpoint_id = endpoints.id AND version = endpoints.version AND canary IS NOT NULL) AS canary,
  (SELECT COUNT(*) FROM jobs WHERE endpoint_id = endpoints.id AND status = 'IN_QUEUE' AND low_priority = 0) AS waiting,
  (SELECT COUNT(*) FROM jobs WHERE endpoint_id = endpoints.id AND status = 'IN_PROGRESS') AS busy,
  (SELECT COUNT(*) FROM workers WHERE endpoint_id = endpoints.id AND state <> 'EXITED') AS alive,
  (SELECT COUNT(*) FROM workers WHERE endpoint_id = endpoints.id AND state <> 'EXITED' AND version <> endpoints.version) AS old,
  (SELECT COUNT(*) FROM queued_workers WHERE endpoint_id = endpoints.id) AS queued,
  (SELECT COUNT(*) FROM workers WHERE endpoint_id = endpoints.id AND state = 'EXITED') AS has_exits,
  (SELECT stop_reason FROM workers WHERE endpoint_id = endpoints.id AND state = 'EXITED'
    ORDER BY exited_at_ms DESC, created_at_ms DESC, id DESC LIMIT 1) AS last_reason,
  (SELECT COUNT(*) FROM workers WHERE endpoint_id = endpoints.id AND state = 'READY'
    AND EXISTS (SELECT 1 FROM jobs WHERE worker_id = workers.id AND status = 'IN_PROGRESS')) AS working,
  (SELECT id FROM jobs WHERE endpoint_id = endpoints.id AND status = 'IN_QUEUE' AND low_priority = 0 AND queue = ''
    ORDER BY position LIMIT 1) AS head
  FROM endpoints ORDER BY id`

/** Longest time for which placements of queued workers may be out of date: the server plans them every few seconds. */
const NOTICE_MS = 8_000
/** Longest wait for a free GPU: the server has to see twice, in ten seconds, that another program has left it. */
const FREE_GPU_MS = 12_000
/** Maximum time until the server corrects the loss of a notification. */
const LOST_NOTIFICATION_MS = 40_000
/**
 * Maximum time without any worker for an endpoint that needs one: longer than the turns of all other endpoints take.
 */
const STARVED_MS = 240_000

/** Reports GPUs that two workers have, workers that wait although they fit, and endpoints that get no worker. */
export class PlacementChecker {
  readonly #report: (problem: string) => void
  readonly #database: Pick<Database, 'query'>
  readonly #view: PlacementView
  /** The worker of each GPU, by the id of the GPU. */
  readonly #holders = new Map<string, WorkerId>()
  readonly #lasting
  readonly #unplaced = new Map<EndpointId, number>()

  /** @param report receives one sentence per problem */
  constructor(report: (problem: string) => void, database: Pick<Database, 'query'>, view: PlacementView) {
    this.#report = report
    this.#lasting = new LastingProblems(report)
    this.#database = database
    this.#view = view
  }

  /** The process of a worker starts. */
  started({ workerId, placement: { gpus, pool } }: WorkerSpec): void {
    const running = new Set(this.#view.running())
    for (const gpu of gpus) {
      // See ShareChecker.
      if (gpu.shareMb !== undefined) continue
      const key = gpu.uuid ?? String(gpu.index)
      const holder = this.#holders.get(key)
      const isThere = holder !== undefined && running.has(holder) && this.#view.isAway?.(holder) !== true
      if (holder !== workerId && isThere)
        this.#report(`worker ${workerId} was placed on GPU ${gpu.index}, which worker ${holder} has`)
      this.#holders.set(key, workerId)
    }
    const sql =
      'SELECT config FROM endpoints WHERE id = (SELECT endpoint_id FROM workers WHERE id = ? AND version = endpoints.version)'
    const [row] = this.#database.query<{ config: string }>(sql, workerId)
    const compute = row === undefined ? null : (JSON.parse(row.config) as EndpointConfig).compute
    if (compute === null) return
    const isRight =
      compute.kind === 'cpu'
        ? gpus.length === 0
        : gpus.length === compute.count && pool !== null && compute.pools.includes(pool)
    if (!isRight)
      this.#report(
        `worker ${workerId} was placed on ${gpus.length} GPUs of pool ${pool}, which is not what its endpoint requires`,
      )
  }

  /** The server published how many workers of an endpoint have no placement. */
  unplaced({ endpointId, count }: Events['worker.unplaced']): void {
    this.#unplaced.set(endpointId, count)
  }

  /** Reports problems that last longer than allowed. Call it while the server is up and no operation is under way. */
  inspect(nowMs: number): void {
    const wrong = new Map<string, number>()
    const queued = this.#database.query<QueuedRow>(QUEUED)
    const endpoints = this.#database.query<EndpointRow>(ENDPOINTS)
    for (const endpoint of endpoints) {
      for (const [problem, limitMs] of this.#endpointProblems(endpoint, queued)) wrong.set(problem, limitMs)
    }
    this.#lasting.note(nowMs, wrong)
  }

  /** After a crash or while the server is down: restarts the times of {@link inspect}. */
  resync(): void {
    this.#lasting.clear()
    this.#unplaced.clear()
  }

  #endpointProblems(endpoint: EndpointRow, all: readonly QueuedRow[]): [problem: string, limitMs: number][] {
    const { id, workers_min, workers_max: max, alive, queued, has_exits: exits, last_reason: reason } = endpoint
    const { scaler, type } = JSON.parse(endpoint.config) as EndpointConfig
    const requests = this.#view.requests(id)
    const waiting = endpoint.waiting + requests.waiting
    // Workers of a load balancer are replaced while the old ones serve.
    const isServing = type === 'LOAD_BALANCER' && (requests.all > 0 || alive > 0)
    // A canary has its share while workers are busy or kept.
    const isCanaryWanted = endpoint.canary === 1 && (endpoint.busy > 0 || workers_min > 0)
    // Workers of an old version that are in use are replaced, and the new ones wait a while for room beside them.
    const isReplaced = endpoint.old > 0 && max > 0
    // The scaler REQUEST_COUNT counts running jobs, too.
    const isWanted =
      isServing ||
      isCanaryWanted ||
      isReplaced ||
      waiting > 0 ||
      alive < workers_min ||
      (scaler.type === 'REQUEST_COUNT' && endpoint.busy > 0)
    const ownRows = all.filter(row => row.endpoint_id === id)
    const wrong: [string, number][] = []
    if (queued > 0 && !isWanted)
      wrong.push([`a worker of endpoint ${id} waits for a placement, and is not needed`, NOTICE_MS])
    if (alive + queued > Math.max(max, alive))
      wrong.push([`endpoint ${id} has ${alive} workers and ${queued} queued ones, and its max is ${max}`, NOTICE_MS])
    for (const row of ownRows) {
      if (row.current === 0) wrong.push([`worker ${row.id} waits for a placement for an old version`, NOTICE_MS])
    }
    const hasCrashed = exits > 0 && (reason === null || (FAULT_REASONS as readonly string[]).includes(reason))
    if (waiting > 0 && alive === 0 && max > 0 && queued === 0 && !hasCrashed)
      wrong.push([`endpoint ${id} has neither a worker nor one that waits for a placement`, LOST_NOTIFICATION_MS])
    if (
      endpoint.head !== null &&
      scaler.type === 'QUEUE_DELAY' &&
      alive > 0 &&
      alive < max &&
      endpoint.working === alive
    ) {
      if (queued === 0 && !hasCrashed) {
        // Each queue delay adds one worker; those that started since then count.
        const limitMs = LOST_NOTIFICATION_MS + (alive + 1) * scaler.queueDelayS * 1000
        wrong.push([
          `job ${endpoint.head} waits for one of ${alive} workers, all busy, and no other one starts`,
          limitMs,
        ])
      }
    }
    if (queued === 0 && (this.#unplaced.get(id) ?? 0) > 0)
      wrong.push([
        `endpoint ${id} has an event about workers without a placement, and the store has no such workers`,
        NOTICE_MS,
      ])
    if (queued > 0 && alive === 0) wrong.push([`endpoint ${id} gets no worker`, STARVED_MS])
    if (ownRows.some(row => row.resource === 'gpu') && this.#fits(endpoint, all))
      wrong.push([`a worker of endpoint ${id} waits for a GPU, and one is free`, FREE_GPU_MS])
    return wrong
  }

  /** True if the GPUs that the endpoint waits for are free, and no other endpoint waits. */
  #fits({ id, config }: EndpointRow, all: readonly QueuedRow[]): boolean {
    const { compute } = JSON.parse(config) as EndpointConfig
    const running = this.#view.running()
    if (compute.kind !== 'gpu' || running.length >= this.#view.maxWorkers) return false
    if (all.some(row => row.endpoint_id !== id)) return false
    const alive = new Set(running)
    const free = this.#view.parts().gpus.filter(gpu => {
      const key = gpu.uuid ?? String(gpu.index)
      const holder = this.#holders.get(key)
      return gpu.problem === null && this.#view.isUsed?.(key) !== true && (holder === undefined || !alive.has(holder))
    })
    return compute.pools.some(pool => free.filter(gpu => cataloged(gpu).pool === pool).length >= compute.count)
  }
}
