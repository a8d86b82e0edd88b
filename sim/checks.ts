import type { MockFleet } from '../src/drivers/mock.ts'
import type { EventName, Events } from '../src/events.ts'
import { ClientChecker } from './client-checker.ts'
import { type EndpointRow, FleetChecker, type StrandedRow, type WorkerRow } from './fleet-checker.ts'
import { JobChecker, type JobRow } from './job-checker.ts'
import type { Database } from './store.ts'
import type { World } from './world.ts'

/** Within this time after the last fault the world must come to rest. */
const LIVENESS_MS = 300_000
/** So long it must stay at rest. */
const REST_MS = 40_000
/** Within this time the director must be through with the faults. */
const LONGEST_MS = 1_200_000

/** How far the play is. */
export interface Scene {
  /** Whether the server has started and does not stop. */
  readonly serverReady: boolean
  /** Whether nothing goes wrong any more. */
  readonly calm: boolean
  /** Whether all clients have seen the ends of their jobs. */
  readonly clientsDone: boolean
}

const JOBS = 'SELECT id, endpoint_id, status, worker_id, attempt FROM jobs ORDER BY position, id'
const WORKERS = `SELECT id, state FROM workers WHERE state <> 'EXITED' ORDER BY created_at_ms, id`
const ENDPOINTS = `SELECT id, workers_min, workers_max,
  (SELECT COUNT(*) FROM workers WHERE endpoint_id = endpoints.id AND state <> 'EXITED') AS alive
  FROM endpoints ORDER BY id`
const STOPS = 'SELECT job_id, worker_id FROM stops ORDER BY since_ms, worker_id, job_id'
const STRANDED = `SELECT id, worker_id FROM jobs WHERE status = 'IN_PROGRESS'
  AND NOT EXISTS (SELECT 1 FROM workers WHERE id = jobs.worker_id AND state <> 'EXITED') ORDER BY id`

/** All checkers: on the events as they come, on the store at quiet moments, and on what has to be true in the end. */
export class Checks {
  readonly jobs: JobChecker
  readonly fleet: FleetChecker
  readonly clients: ClientChecker
  readonly #world: World
  readonly #database: Database
  readonly #machine: MockFleet
  #resync = false
  #calmSinceMs: number | null = null
  #restSinceMs: number | null = null

  constructor(world: World, database: Database, machine: MockFleet) {
    const report = (problem: string) => world.report(problem)
    this.jobs = new JobChecker(report)
    this.fleet = new FleetChecker(report)
    this.clients = new ClientChecker(report)
    this.#world = world
    this.#database = database
    this.#machine = machine
  }

  /** Something has happened. */
  event<Name extends EventName>(name: Name, fields: Events[Name]): void {
    this.#world.trace.add(name, JSON.stringify(fields))
    const told = { name, fields } as Told
    if (told.name === 'job.accepted') this.jobs.accepted(told.fields)
    else if (told.name === 'job.moved') this.#moved(told.fields)
    else if (told.name === 'job.expired') this.#expired(told.fields)
    else if (told.name === 'worker.created' || told.name === 'endpoint.saved') this.#countWorkers()
    else if (told.name === 'worker.moved') this.fleet.moved(told.fields)
    else if (told.name === 'worker.exited') this.fleet.exited(told.fields)
    else if (told.name === 'loop.failed' || told.name === 'request.failed') this.#failed(name, told.fields.problem)
  }

  /** A server has ended in the middle of things: the store says what has happened. */
  serverGone(): void {
    this.#resync = true
  }

  /** Nothing is on its way any more: what a server that has ended did last is in the store, told or not. */
  settled(): void {
    if (!this.#resync) return
    this.#resync = false
    this.jobs.resync(this.#database.query<JobRow>(JOBS))
    this.fleet.resync(this.#database.query<WorkerRow>(WORKERS))
    this.#countWorkers()
  }

  /** Looks at the store and the machine; to be called when nothing is on its way. */
  look(scene: Scene): 'go on' | 'enough' {
    const { query } = this.#database
    const workers = query<WorkerRow>(WORKERS)
    if (!scene.serverReady) this.fleet.resync(workers)
    this.jobs.compare(query<JobRow>(JOBS))
    const endpoints = this.#countWorkers()
    if (scene.serverReady) this.#lookForLeftovers(workers)
    if (!scene.calm) return this.#world.clock.monotonic() > LONGEST_MS ? this.#giveUp(['the play goes on']) : 'go on'
    return this.#lookAtRest(this.#left(scene, endpoints))
  }

  #lookForLeftovers(workers: readonly WorkerRow[]): void {
    const running = new Set(this.#machine.running())
    const alive = new Set(workers.map(({ id }) => id))
    this.fleet.lingering(this.#world.clock.monotonic(), {
      ended: workers.filter(({ id }) => !running.has(id)),
      stranded: this.#database.query<StrandedRow>(STRANDED),
      orphans: [...running].filter(id => !alive.has(id)),
    })
  }

  #lookAtRest(left: readonly string[]): 'go on' | 'enough' {
    const nowMs = this.#world.clock.monotonic()
    this.#calmSinceMs ??= nowMs
    if (left.length > 0) {
      if (this.#restSinceMs !== null) return this.#giveUp(['the rest did not last', ...left])
      return nowMs - this.#calmSinceMs > LIVENESS_MS ? this.#giveUp(left) : 'go on'
    }
    this.#restSinceMs ??= nowMs
    if (nowMs - this.#restSinceMs < REST_MS) return 'go on'
    for (const id of this.clients.ids()) {
      if (!this.jobs.jobs.has(id)) this.#world.report(`job ${id} was acknowledged and never accepted`)
    }
    return 'enough'
  }

  /** What is left to be done before the world is at rest. */
  #left({ clientsDone }: Scene, endpoints: readonly EndpointRow[]): string[] {
    const unfinished = this.jobs.unfinished().map(job => `job ${job.id} is ${job.status} with ${job.worker}`)
    const wrong = endpoints.filter(({ alive, workers_min }) => alive !== workers_min)
    const stops = this.#database.query<{ job_id: string; worker_id: string }>(STOPS)
    return [
      ...(clientsDone ? [] : ['clients wait for answers']),
      ...unfinished,
      ...wrong.map(
        ({ id, alive, workers_min }) => `endpoint ${id} has ${alive} workers, and its min is ${workers_min}`,
      ),
      ...stops.map(({ job_id, worker_id }) => `worker ${worker_id} has yet to stop job ${job_id}`),
    ]
  }

  #giveUp(left: readonly string[]): 'enough' {
    for (const what of left.slice(0, 10)) this.#world.report(`without faults it does not come to rest: ${what}`)
    return 'enough'
  }

  #countWorkers(): EndpointRow[] {
    const endpoints = this.#database.query<EndpointRow>(ENDPOINTS)
    this.fleet.compare(endpoints)
    return endpoints
  }

  #moved(move: Events['job.moved']): void {
    const { transition, to, from, workerId, jobId } = move
    this.#world.count(`moves: ${transition} ${from} to ${to}`)
    if (transition === 'claim' && workerId !== null) this.fleet.claimed(workerId, jobId)
    this.jobs.moved(move)
    if (transition === 'requeue' && workerId !== null && !this.#machine.running().includes(workerId)) {
      this.jobs.lost(workerId)
    }
  }

  #expired(job: Events['job.expired']): void {
    this.#world.count(`moves: expiry of ${job.from}`)
    this.jobs.expired(job)
  }

  /** What the server itself calls a failure is one, unless the store was made to fail. */
  #failed(name: string, problem: string): void {
    if (/simulated disk|made durable|the server is stopping/.test(problem))
      this.#world.count('failures reported by the server')
    else this.#world.report(`${name}: ${problem}`)
  }
}

type Told = { [Name in EventName]: { readonly name: Name; readonly fields: Events[Name] } }[EventName]
