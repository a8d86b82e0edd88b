import type { GivenLimits } from '../../src/core/accounts/quotas.ts'
import type { EndpointId, JobId, WorkerId } from '../../src/core/ids.ts'
import type { MockFleet } from '../../src/drivers/mock/mock.ts'
import type { EventName, Events } from '../../src/events.ts'
import type { Commit } from '../ledger.ts'
import { MACHINE_WORKERS, type SimMachine } from '../machine.ts'
import type { Answered, Call } from '../network.ts'
import type { Programs } from '../programs.ts'
import type { Database } from '../store.ts'
import type { World } from '../world.ts'
import { AloneChecker } from './alone-checker.ts'
import { BatchChecker, type BatchRow } from './batch-checker.ts'
import { ClientChecker } from './client-checker.ts'
import { CounterChecker, type Counters } from './counter-checker.ts'
import { type EndpointRow, FleetChecker, type StrandedRow, type WorkerRow } from './fleet-checker.ts'
import { HoldChecker } from './hold-checker.ts'
import { JobChecker } from './job-checker.ts'
import { queuedWorkers, remains, strayWorkers } from './leftovers.ts'
import { OrderChecker } from './order-checker.ts'
import { PlaceChecker } from './place-checker.ts'
import { PurgeChecker } from './purge-checker.ts'
import { QuotaChecker } from './quota-checker.ts'
import { REQUEST_QUEUE_LIMITS, RequestQueueChecker } from './request-queue-checker.ts'
import { RunChecker, type WorkerSight } from './run-checker.ts'
import { WebhookChecker } from './webhook-checker.ts'
import { WhyChecker } from './why-checker.ts'

/** Within this time after the last fault the world must come to rest: the longest pause after crashes, and work after it. */
const LIVENESS_MS = 600_000
/** So long it must stay at rest. */
const REST_MS = 40_000
/** Within this time the director must be through with the faults. */
const LONGEST_MS = 1_200_000
/** So far the clock on the wall is set forward in the end, when all that is kept must have run out. */
const DAYS_MS = 50 * 3_600_000
/** The server looks for old records once a minute. */
const CLEAN_MS = 70_000

/** How far the play is. */
export interface Scene {
  /** Whether the server has started and does not stop. */
  readonly serverReady: boolean
  /** Whether nothing goes wrong any more. */
  readonly calm: boolean
  /** Whether all clients have seen the ends of their jobs. */
  readonly clientsDone: boolean
  /** Requests that have no answer yet. */
  readonly open: readonly { readonly call: Call; readonly fromMs: number }[]
}

const WORKERS = `SELECT id, state FROM workers WHERE state <> 'EXITED' ORDER BY created_at_ms, id`
const ENDPOINTS = `SELECT id, workers_min, workers_max,
  (SELECT COUNT(*) FROM workers WHERE endpoint_id = endpoints.id AND state <> 'EXITED') AS alive
  FROM endpoints ORDER BY id`
const STOPS = 'SELECT job_id, worker_id FROM stops ORDER BY since_ms, worker_id, job_id'
const STOP = 'SELECT job_id FROM stops WHERE worker_id = ? AND job_id = ?'
const STRANDED = `SELECT id, worker_id FROM jobs WHERE status = 'IN_PROGRESS'
  AND NOT EXISTS (SELECT 1 FROM workers WHERE id = jobs.worker_id AND state <> 'EXITED') ORDER BY id`
const BATCHES = 'SELECT id, status, total, completed, failed FROM batches ORDER BY id'
const COUNTERS = 'SELECT endpoint_id AS id, completed, failed, retried FROM endpoint_counters'

/** All checkers: on commits, events and answers as they come, on the store at quiet moments, and on what is true in the end. */
export class Checks {
  readonly jobs: JobChecker
  readonly runs: RunChecker
  readonly order: OrderChecker
  readonly counters: CounterChecker
  readonly batches: BatchChecker
  readonly fleet: FleetChecker
  readonly clients: ClientChecker
  readonly purges: PurgeChecker
  readonly webhooks: WebhookChecker
  readonly places: PlaceChecker
  readonly lines: RequestQueueChecker
  /** Whether the account has limits. */
  readonly isLimited: boolean
  /** The number of the last change of a job. */
  lastChange = 0
  readonly #quotas: QuotaChecker
  readonly #alone: AloneChecker
  readonly #why: WhyChecker
  readonly #holds: HoldChecker
  readonly #world: World
  readonly #database: Database
  readonly #machine: MockFleet
  readonly #programs: Programs
  #resync = false
  #calmSinceMs: number | null = null
  #restSinceMs: number | null = null
  #aftermathSinceMs: number | null = null

  constructor(
    world: World,
    database: Database,
    machine: MockFleet,
    hardware: SimMachine,
    sight: WorkerSight,
    programs: Programs,
    limits: GivenLimits,
  ) {
    const report = (problem: string) => world.report(problem)
    const { clock } = world
    this.batches = new BatchChecker(report, clock)
    this.jobs = new JobChecker(report, clock.latest.bind(clock), batch => this.batches.isOver(batch))
    this.runs = new RunChecker(report, sight)
    const mayNotHave = (worker: WorkerId, job: JobId) => database.query(STOP, worker, job).length > 0
    this.order = new OrderChecker(report, clock, mayNotHave)
    this.isLimited = Object.keys(limits).length > 0
    this.#quotas = new QuotaChecker(report, database, limits)
    this.#alone = new AloneChecker(report)
    this.counters = new CounterChecker(report)
    this.fleet = new FleetChecker(report)
    this.clients = new ClientChecker(report)
    this.purges = new PurgeChecker(report, clock.latest.bind(clock))
    this.webhooks = new WebhookChecker(report, database)
    this.places = new PlaceChecker(report, database, {
      parts: () => hardware.parts,
      running: () => machine.running(),
      maxWorkers: MACHINE_WORKERS,
      requests: endpoint => this.lines.requests(endpoint),
    })
    this.lines = new RequestQueueChecker(report, {
      nowMs: () => clock.monotonic(),
      program: worker => programs.find(worker),
      limits: REQUEST_QUEUE_LIMITS,
      count: name => world.count(name),
    })
    this.#programs = programs
    this.#why = new WhyChecker(report, database, {
      machineFull: () => machine.running().length >= MACHINE_WORKERS,
      nowMs: () => clock.now(),
    })
    this.#holds = new HoldChecker(report, sinceMs => world.wasSlow(sinceMs))
    this.#world = world
    this.#database = database
    this.#machine = machine
  }

  /** The store has committed something. */
  committed({ changes, told }: Commit): void {
    // A server that has ended tells nobody of what was on its way to the store.
    const commit = { changes, told: told && !this.#resync }
    for (const { kind, job, was, now } of commit.changes) {
      if (was !== now) this.#world.count(`moves: ${kind === 'insert' ? 'submission' : `${was} to ${now ?? 'nothing'}`}`)
      this.#world.trace.add('commit', `${kind} ${job} ${was} ${now} ${commit.told ? '' : 'untold'}`)
    }
    this.lastChange = commit.changes.at(-1)!.n
    this.jobs.committed(commit)
    this.runs.committed(commit)
    this.order.committed(commit)
    this.#quotas.committed(commit)
    this.#alone.committed(commit)
    this.counters.committed(commit)
    this.batches.committed(commit)
    this.clients.committed(commit)
    this.purges.committed(commit)
    this.webhooks.committed(commit)
  }

  /** Something has happened. */
  event<Name extends EventName>(name: Name, fields: Events[Name]): void {
    this.#world.trace.add(name, JSON.stringify(fields))
    const told = { name, fields } as Told
    if (told.name === 'job.accepted') this.jobs.accepted(told.fields)
    else if (told.name === 'job.moved') this.#moved(told.fields)
    else if (told.name === 'job.expired') this.jobs.expired(told.fields)
    else if (told.name === 'worker.created' || told.name === 'endpoint.saved') {
      if (told.name === 'worker.created') this.fleet.created(told.fields)
      this.#countWorkers()
    } else if (told.name === 'worker.moved') this.fleet.moved(told.fields)
    else if (told.name === 'worker.exited') this.fleet.exited(told.fields)
    else if (told.name === 'worker.evicted') this.#world.count(`evictions${told.fields.afterJob ? ' after a job' : ''}`)
    else if (told.name === 'worker.unplaced') {
      this.#world.count(`workers without a place: ${told.fields.resource}`)
      this.places.unplaced(told.fields)
    } else if (told.name === 'loop.failed' || told.name === 'request.failed') this.#failed(name, told.fields.problem)
  }

  /** A request has its answer. */
  answered(answered: Answered): void {
    this.#holds.answered(answered)
    if (this.#world.wasSlow(answered.fromMs)) return
    this.#why.answered(answered)
    this.#checkHealth(answered)
  }

  /** A server has ended in the middle of things: the store says what has happened. */
  serverGone(): void {
    this.#resync = true
    this.jobs.serverGone()
    this.places.resync()
  }

  /** Nothing is on its way any more. */
  settled(): void {
    this.jobs.settled()
    this.lines.settled()
    if (!this.#resync) return
    this.#resync = false
    this.fleet.resync(this.#database.query<WorkerRow>(WORKERS))
    this.#countWorkers()
  }

  /** Looks at the store and the machine; to be called when nothing is on its way. */
  look(scene: Scene): 'go on' | 'enough' {
    const { query } = this.#database
    const workers = query<WorkerRow>(WORKERS)
    const nowMs = this.#world.clock.monotonic()
    const isSlow = this.#world.wasSlow(nowMs - 5_000)
    if (!scene.serverReady || isSlow) {
      this.fleet.resync(workers)
      this.places.resync()
    }
    this.#quotas.look()
    const endpoints = this.#countWorkers()
    for (const row of query<Counters & { id: EndpointId }>(COUNTERS)) this.counters.compare(row.id, row, 'the store')
    for (const row of query<BatchRow>(BATCHES)) this.batches.compare(row)
    if (scene.serverReady && !isSlow) {
      this.#lookForLeftovers(workers)
      this.places.look(nowMs)
      this.lines.look(this.#programs.all)
    }
    for (const { call, fromMs } of scene.open) this.#holds.waiting(call, fromMs, nowMs)
    if (!scene.calm) return nowMs > LONGEST_MS ? this.#giveUp(['the play goes on']) : 'go on'
    if (this.#aftermathSinceMs !== null) return this.#lookAtAftermath(nowMs - this.#aftermathSinceMs)
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
      // A worker may still end by itself, and is replaced.
      this.#restSinceMs = null
      return nowMs - this.#calmSinceMs > LIVENESS_MS ? this.#giveUp(left) : 'go on'
    }
    this.#restSinceMs ??= nowMs
    if (nowMs - this.#restSinceMs < REST_MS) return 'go on'
    for (const id of this.clients.ids()) {
      if (!this.jobs.jobs.has(id)) this.#world.report(`job ${id} was acknowledged and never accepted`)
    }
    this.webhooks.atRest()
    this.#world.clock.jump(DAYS_MS)
    this.#aftermathSinceMs = nowMs
    return 'go on'
  }

  /** Two days later. */
  #lookAtAftermath(passedMs: number): 'go on' | 'enough' {
    if (passedMs < CLEAN_MS) return 'go on'
    const overByMs = this.#world.clock.now() - DAYS_MS
    for (const what of remains(this.#database, overByMs)) this.#world.report(`two days later ${what}`)
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
      ...strayWorkers(this.#database),
      ...queuedWorkers(this.#database),
      ...this.webhooks.pending(),
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

  #checkHealth({ call, status, text }: Answered): void {
    const [, , endpoint, operation] = new URL(call.url).pathname.split('/')
    if (operation !== 'health' || status !== 200) return
    this.counters.compare(endpoint as EndpointId, (JSON.parse(text) as { jobs: Counters }).jobs, 'its health')
  }

  #moved(move: Events['job.moved']): void {
    const { transition, to, from, workerId, jobId } = move
    this.#world.count(`transitions: ${transition} ${from} to ${to}`)
    if (transition === 'claim' && workerId !== null) this.fleet.claimed(workerId, jobId)
    this.jobs.moved(move)
    if (transition === 'requeue' && workerId !== null && !this.#machine.running().includes(workerId)) {
      this.jobs.lost(workerId)
    }
  }

  /** What the server itself calls a failure is one, unless the store was made to fail. */
  #failed(name: string, problem: string): void {
    if (/simulated disk|made durable|the server is stopping|lost its hold on the database/.test(problem))
      this.#world.count('failures reported by the server')
    else this.#world.report(`${name}: ${problem}`)
  }

  /** Jobs that wait at an endpoint, by the simulator's own knowledge. */
  waiting(endpoint: EndpointId): JobId[] {
    return this.order.waiting(endpoint)
  }
}

type Told = { [Name in EventName]: { readonly name: Name; readonly fields: Events[Name] } }[EventName]
