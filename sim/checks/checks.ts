import type { GivenLimits } from '../../src/core/accounts/quotas.ts'
import type { EndpointId, JobId, WorkerId } from '../../src/core/ids.ts'
import type { EventName, Events } from '../../src/events.ts'
import type { Commit } from '../ledger.ts'
import { MACHINE_WORKERS, type SimMachine } from '../machine.ts'
import type { Call, Exchange } from '../network.ts'
import type { Platform } from '../platform.ts'
import type { Programs } from '../programs.ts'
import type { Database } from '../store.ts'
import type { World } from '../world.ts'
import { BatchChecker, type BatchRow } from './batch-checker.ts'
import { ClientChecker } from './client-checker.ts'
import { ClusterChecker } from './cluster-checker.ts'
import { CounterChecker, type Counters } from './counter-checker.ts'
import { ExplainChecker } from './explain-checker.ts'
import { type EndpointRow, FleetChecker, type StrandedRow, type WorkerRow } from './fleet-checker.ts'
import { JobChecker } from './job-checker.ts'
import { LimitChecker } from './limit-checker.ts'
import { OrderChecker } from './order-checker.ts'
import { PauseChecker } from './pause-checker.ts'
import { PlacementChecker } from './placement-checker.ts'
import { PurgeChecker } from './purge-checker.ts'
import { QuotaChecker } from './quota-checker.ts'
import { REQUEST_QUEUE_LIMITS, RequestQueueChecker } from './request-queue-checker.ts'
import { ResponseTimeChecker } from './response-time-checker.ts'
import { RunChecker, type WorkerView } from './run-checker.ts'
import { ShareChecker } from './share-checker.ts'
import { SuspectChecker } from './suspect-checker.ts'
import { SuspendChecker } from './suspend-checker.ts'
import { WebhookChecker } from './webhook-checker.ts'

/**
 * Maximum time from the last fault until all work is done: the longest pause after crashes, plus the work after it.
 */
const LIVENESS_MS = 600_000
/** Time for which all work must stay done. */
const REST_MS = 40_000
/** Maximum time until the director has ended the faults. */
const LONGEST_MS = 1_200_000
/** Step of the wall clock at the end of a run, after which all retention is over. */
const RETENTION_OVER_MS = 50 * 3_600_000
/** Longest time until the server removes expired records; it does so once a minute. */
const CLEANUP_MS = 70_000

/** Longest delay of a change in a cluster that loses events: until the server lists all pods again, and some slack. */
const CLUSTER_NOTICE_MS = 330_000
/** A lock is given up after 10 s. */
const SUSPEND_NOTICE_MS = 20_000

/** The stage of a run. */
export interface RunState {
  /** True if the server has started and is not stopping. */
  readonly serverReady: boolean
  /** True if the faults are over. */
  readonly calm: boolean
  /** True if every client received the end of each of its jobs. */
  readonly clientsDone: boolean
  /** Requests without a response so far. */
  readonly open: readonly { readonly call: Call; readonly fromMs: number }[]
}

const WORKERS = `SELECT id, state FROM workers WHERE state <> 'EXITED' ORDER BY created_at_ms, id`
const ENDPOINTS = `SELECT id, workers_min, workers_max,
  (SELECT COUNT(*) FROM workers WHERE endpoint_id = endpoints.id AND state <> 'EXITED') AS alive,
  (SELECT COUNT(*) FROM workers WHERE endpoint_id = endpoints.id AND state = 'FROZEN') AS frozen
  FROM endpoints ORDER BY id`
const STATE = 'SELECT id, state FROM workers WHERE id = ?'
const STOPS = 'SELECT job_id, worker_id FROM stops ORDER BY since_ms, worker_id, job_id'
/** A request of a cancelled batch gets no turn when its worker is lost, and is cancelled soon. */
const CANCELLED = `SELECT 1 FROM jobs JOIN batches ON batches.id = jobs.queue
  WHERE jobs.id = ? AND batches.status = 'CANCELLED'`
const STOP = 'SELECT job_id FROM stops WHERE worker_id = ? AND job_id = ?'
const STRANDED = `SELECT id, worker_id FROM jobs WHERE status = 'IN_PROGRESS'
  AND NOT EXISTS (SELECT 1 FROM workers WHERE id = jobs.worker_id AND state <> 'EXITED') ORDER BY id`
// The jobs of deleted endpoints are removed in steps, and their batches last.
const BATCHES = `SELECT id, status, total, completed, failed FROM batches
  WHERE EXISTS (SELECT 1 FROM endpoints WHERE id = batches.endpoint_id) ORDER BY id`
const COUNTERS = `SELECT endpoint_id AS id, SUM(completed) AS completed, SUM(failed) AS failed, SUM(retried) AS retried
  FROM endpoint_counters GROUP BY endpoint_id`

/** Tables that must be empty once the retention of all jobs is over. */
const EMPTY = [
  ...['jobs', 'chunks', 'diagnostics', 'stops', 'idempotency_keys', 'batches', 'batch_requests'],
  ...['webhook_deliveries', 'webhook_tries'],
] as const

const OF_NO_ENDPOINT = `SELECT id, state FROM workers WHERE state <> 'EXITED'
  AND NOT EXISTS (SELECT 1 FROM endpoints WHERE id = workers.endpoint_id) ORDER BY id`

/** All checkers. They see each commit, event and response, the store between events, and the state at the end. */
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
  readonly placements: PlacementChecker
  readonly requestQueues: RequestQueueChecker
  readonly cluster: ClusterChecker
  /** Null without shares of cards. */
  readonly shares: ShareChecker | null
  /** True if the account has limits. */
  readonly isLimited: boolean
  /** Sequence number of the last change of a job. */
  lastChange = 0
  readonly #quotas: QuotaChecker
  readonly #suspects: SuspectChecker
  readonly #explain: ExplainChecker
  readonly #responseTimes: ResponseTimeChecker
  readonly #world: World
  readonly #database: Database
  readonly #machine: Platform
  readonly #programs: Programs
  /** True if the active server is paused: it publishes its pending events later. */
  isPaused = () => false
  /** True if the clocks of all servers are right. */
  hasRightClocks = () => true
  /** Has the servers take the time of the wall clock. */
  acceptClock = (): void => {}
  /** Workers that the store had as ended when a server ended, and of which the platform still had something. */
  readonly #forgiven = new Set<WorkerId>()
  readonly #limits: LimitChecker
  readonly #suspends: SuspendChecker | null
  readonly #pauses: PauseChecker
  #resync = false
  #calmSinceMs: number | null = null
  #restSinceMs: number | null = null
  #acceptsClock = false
  #retentionOverSinceMs: number | null = null

  constructor(
    world: World,
    database: Database,
    machine: Platform,
    simMachine: SimMachine,
    view: WorkerView,
    programs: Programs,
    limits: GivenLimits,
  ) {
    const report = (problem: string) => world.report(problem)
    const { clock } = world
    this.batches = new BatchChecker(report, clock)
    this.jobs = new JobChecker(report, clock.latest.bind(clock), batch => this.batches.isOver(batch))
    this.runs = new RunChecker(report, view)
    const mayNotHave = (worker: WorkerId, job: JobId) =>
      database.query(STOP, worker, job).length > 0 || database.query(CANCELLED, job).length > 0
    this.order = new OrderChecker(report, clock, mayNotHave)
    this.#limits = new LimitChecker(report, database, clock)
    this.isLimited = Object.keys(limits).length > 0
    this.#quotas = new QuotaChecker(report, database, limits)
    this.#suspects = new SuspectChecker(report)
    this.counters = new CounterChecker(report)
    const storedState = (worker: WorkerId) => database.query<WorkerRow>(STATE, worker)[0]?.state ?? null
    this.cluster = new ClusterChecker(report, database, worker => machine.running().includes(worker))
    this.fleet = new FleetChecker(report, storedState, noticeMs(world))
    this.clients = new ClientChecker(report)
    this.purges = new PurgeChecker(report, clock.latest.bind(clock))
    this.webhooks = new WebhookChecker(report, database)
    this.placements = new PlacementChecker(report, database, {
      parts: () => simMachine.parts,
      running: () => machine.running(),
      maxWorkers: MACHINE_WORKERS,
      requests: endpoint => this.requestQueues.requests(endpoint),
      isAway: worker => simMachine.gpus?.stateOf(worker) === 'checkpointed',
      isUsed: card => (simMachine.gpus?.usedBytes(card) ?? 0) > 0,
    })
    const { gpus } = simMachine
    const cards = () => simMachine.parts.gpus
    this.shares = gpus === null || !world.shares ? null : new ShareChecker(report, database, { gpus, cards })
    this.#pauses = new PauseChecker(report, database, {
      nowMs: () => clock.now(),
      maxGpus: limits.gpus ?? Number.POSITIVE_INFINITY,
      isUsed: card => (simMachine.gpus?.foreign.get(card) ?? 0) > 0,
    })
    this.#suspends = simMachine.gpus === null ? null : new SuspendChecker(report, database, simMachine.gpus)
    this.requestQueues = new RequestQueueChecker(report, {
      nowMs: () => clock.monotonic(),
      program: worker => programs.find(worker),
      limits: REQUEST_QUEUE_LIMITS,
      count: name => world.count(name),
    })
    this.#programs = programs
    this.#explain = new ExplainChecker(report, database, {
      machineFull: () => machine.running().length >= MACHINE_WORKERS,
      nowMs: () => clock.now() - clock.slackMs,
    })
    this.#responseTimes = new ResponseTimeChecker(report, sinceMs => world.wasSlow(sinceMs))
    this.#world = world
    this.#database = database
    this.#machine = machine
  }

  /** The checkers that see workers at their start. */
  get ofWorkers() {
    const { runs, placements, cluster, shares } = this
    return { runs, placements, cluster, shares }
  }

  /** The store committed changes. */
  committed({ changes, acknowledged }: Commit): void {
    // A server that has ended publishes no events for commits that were under way.
    const commit = { changes, acknowledged: acknowledged && !this.#resync }
    for (const { kind, job, was, now } of commit.changes) {
      if (was !== now) this.#world.count(`moves: ${kind === 'insert' ? 'submission' : `${was} to ${now ?? 'nothing'}`}`)
      this.#world.trace.add('commit', `${kind} ${job} ${was} ${now} ${commit.acknowledged ? '' : 'unacknowledged'}`)
    }
    this.lastChange = commit.changes.at(-1)!.n
    this.jobs.committed(commit)
    this.runs.committed(commit)
    this.order.committed(commit)
    this.#limits.committed(commit)
    this.#quotas.committed(commit)
    this.#suspects.committed(commit)
    this.cluster.committed(commit)
    this.counters.committed(commit)
    this.batches.committed(commit)
    this.clients.committed(commit)
    this.purges.committed(commit)
    this.webhooks.committed(commit)
  }

  /** The server published an event. */
  event<Name extends EventName>(name: Name, fields: Events[Name]): void {
    this.#world.trace.add(name, JSON.stringify(fields))
    const event = { name, fields } as EventOf
    if (event.name === 'job.accepted') this.jobs.accepted(event.fields)
    else if (event.name === 'job.moved') this.#moved(event.fields)
    else if (event.name === 'job.expired') this.jobs.expired(event.fields)
    else if (event.name === 'worker.created' || event.name === 'endpoint.saved') {
      if (event.name === 'worker.created') this.fleet.created(event.fields)
      this.#countWorkers()
    } else if (event.name === 'worker.moved') {
      if (event.fields.reason === 'over_share' && event.fields.to === 'DRAINING')
        this.#world.count('workers that moved for a neighbor')
      this.fleet.moved(event.fields)
    } else if (event.name === 'worker.exited') this.fleet.exited(event.fields)
    else if (event.name === 'worker.evicted')
      this.#world.count(`evictions${event.fields.afterJob ? ' after a job' : ''}`)
    else if (event.name === 'worker.unplaced') {
      this.#world.count(`workers without a place: ${event.fields.resource}`)
      this.placements.unplaced(event.fields)
    } else if (event.name === 'worker.suspended') this.#world.count('suspends')
    else if (event.name === 'worker.share_learned') this.#world.count('learned shares')
    else if (event.name === 'worker.over_share') this.#world.count('workers beyond their share')
    else if (event.name === 'worker.resumed') this.#world.count('resumes')
    else if (event.name === 'worker.paused') this.#world.count('paused workers')
    else if (event.name === 'worker.pause_ended') this.#world.count('ended pauses of workers')
    else if (event.name === 'worker.pause_failed') this.#world.count('failed pauses of workers')
    else if (event.name === 'clock.adopted') this.#adopted(event.fields.byMs)
    else if (event.name === 'clock.stepped') this.#world.count('steps of clocks that were noticed')
    else if (event.name === 'loop.failed' || event.name === 'request.failed') this.#failed(name, event.fields.problem)
  }

  /** A server has taken the time of the wall clock, in which all retention is over. */
  #adopted(byMs: number): void {
    this.#world.clock.take(byMs)
    if (this.#acceptsClock) this.#retentionOverSinceMs = this.#world.clock.monotonic()
    else this.#world.report(`a server took the time of the wall clock, which nobody has accepted: ${byMs} ms`)
  }

  /** The server responded to a request. */
  answered(exchange: Exchange): void {
    this.#responseTimes.answered(exchange)
    if (this.#world.wasSlow(exchange.fromMs)) return
    if (this.hasRightClocks() && !this.#world.kubernetes) this.#explain.answered(exchange)
    this.#checkHealth(exchange)
  }

  /** The server ended. The store decides which of its operations took effect. */
  serverEnded(): void {
    this.#resync = true
    // The next server finds the workers that it does not manage during its cleanup.
    const alive = new Set(this.#database.query<WorkerRow>(WORKERS).map(({ id }) => id))
    for (const worker of this.#machine.present()) if (!alive.has(worker)) this.#forgiven.add(worker)
    this.cluster.serverEnded()
    this.jobs.serverEnded()
    this.placements.resync()
  }

  /** No operation is under way. */
  settled(): void {
    if (this.isPaused()) return
    this.jobs.settled()
    this.requestQueues.settled()
    if (!this.#resync) return
    this.#resync = false
    this.fleet.resync(this.#database.query<WorkerRow>(WORKERS))
    this.#countWorkers()
  }

  /** Checks the store and the machine. Call it while no operation is under way. */
  inspect(runState: RunState): 'go on' | 'enough' {
    const { query } = this.#database
    const workers = query<WorkerRow>(WORKERS)
    const nowMs = this.#world.clock.monotonic()
    const isSlow = this.#world.wasSlow(nowMs - 5_000)
    if (!runState.serverReady || isSlow) {
      // A paused server publishes its pending events before its next changes.
      if (!this.isPaused()) this.fleet.resync(workers)
      this.placements.resync()
      this.#suspends?.resync()
      this.#pauses.resync()
    }
    // Instants that a machine with another clock has stored may lie ahead.
    if (!this.hasRightClocks()) this.placements.resync()
    this.#quotas.inspect()
    this.#limits.inspect(runState.serverReady && !isSlow)
    const endpoints = this.#countWorkers()
    for (const row of query<Counters & { id: EndpointId }>(COUNTERS)) this.counters.compare(row.id, row, 'the store')
    for (const row of query<BatchRow>(BATCHES)) this.batches.compare(row)
    if (runState.serverReady && !isSlow) {
      this.#checkLeftovers(workers)
      if (!this.#world.kubernetes) this.placements.inspect(nowMs)
      this.requestQueues.inspect(this.#programs.all)
      this.#suspends?.inspect(nowMs)
      if (this.hasRightClocks()) this.#pauses.inspect(nowMs)
      this.shares?.inspect()
    }
    for (const { call, fromMs } of runState.open) this.#responseTimes.waiting(call, fromMs, nowMs)
    if (!runState.calm) return nowMs > LONGEST_MS ? this.#giveUp(['the faults are not over']) : 'go on'
    if (this.#acceptsClock && this.#retentionOverSinceMs === null) return 'go on'
    if (this.#retentionOverSinceMs !== null) return this.#checkAfterRetention(nowMs - this.#retentionOverSinceMs)
    return this.#checkRest(this.#left(runState, endpoints))
  }

  #checkLeftovers(workers: readonly WorkerRow[]): void {
    const running = new Set(this.#machine.running())
    const alive = new Set(workers.map(({ id }) => id))
    this.fleet.lingering(this.#world.clock.monotonic(), {
      // A pod may wait for a node for as long as it takes.
      ended: workers.filter(({ id, state }) => !running.has(id) && !(this.#world.kubernetes && state === 'STARTING')),
      stranded: this.#database.query<StrandedRow>(STRANDED),
      orphans: [...running].filter(id => !alive.has(id) && !this.#forgiven.has(id)),
      unsettled: workers.filter(
        ({ id, state }) =>
          running.has(id) &&
          (state === 'FROZEN' || state === 'READY') &&
          (state === 'FROZEN') !== this.#machine.frozen.has(id),
      ),
    })
  }

  #checkRest(unfinished: readonly string[]): 'go on' | 'enough' {
    const nowMs = this.#world.clock.monotonic()
    this.#calmSinceMs ??= nowMs
    if (unfinished.length > 0) {
      // A worker may still end by itself and be replaced.
      this.#restSinceMs = null
      return nowMs - this.#calmSinceMs > LIVENESS_MS ? this.#giveUp(unfinished) : 'go on'
    }
    this.#restSinceMs ??= nowMs
    if (nowMs - this.#restSinceMs < REST_MS) return 'go on'
    for (const id of this.clients.ids()) {
      if (!this.jobs.jobs.has(id)) this.#world.report(`job ${id} was acknowledged and never accepted`)
    }
    this.webhooks.atRest()
    this.#world.clock.show(RETENTION_OVER_MS)
    this.#acceptsClock = true
    this.acceptClock()
    return 'go on'
  }

  /** Checks that nothing is left once all retention is over. */
  #checkAfterRetention(passedMs: number): 'go on' | 'enough' {
    if (passedMs < CLEANUP_MS) return 'go on'
    const overByMs = this.#world.clock.now() - RETENTION_OVER_MS
    for (const remainder of remainingRows(this.#database, overByMs))
      this.#world.report(`after the retention period ${remainder}`)
    const alive = new Set(this.#database.query<WorkerRow>(WORKERS).map(({ id }) => id))
    for (const worker of this.#machine.present())
      if (!alive.has(worker)) this.#world.report(`something of worker ${worker} is left, which has ended`)
    return 'enough'
  }

  /** The work that is not done yet. */
  #left({ clientsDone }: RunState, endpoints: readonly EndpointRow[]): string[] {
    const unfinished = this.jobs.unfinished().map(job => `job ${job.id} is ${job.status} with ${job.worker}`)
    const wrong = endpoints.filter(({ alive, frozen, workers_min }) => alive - frozen !== workers_min)
    const stops = this.#database.query<{ job_id: string; worker_id: string }>(STOPS)
    return [
      ...(clientsDone ? [] : ['clients wait for responses']),
      ...unfinished,
      ...wrong.map(
        ({ id, alive, frozen, workers_min }) =>
          `endpoint ${id} has ${alive - frozen} workers that run, and its min is ${workers_min}`,
      ),
      ...stops.map(({ job_id, worker_id }) => `worker ${worker_id} has not stopped job ${job_id} yet`),
      ...strayWorkers(this.#database),
      ...queuedWorkers(this.#database),
      ...this.webhooks.pending(),
    ]
  }

  #giveUp(unfinished: readonly string[]): 'enough' {
    for (const remainder of unfinished.slice(0, 10))
      this.#world.report(`work is left long after the last fault: ${remainder}`)
    return 'enough'
  }

  #countWorkers(): EndpointRow[] {
    const endpoints = this.#database.query<EndpointRow>(ENDPOINTS)
    this.fleet.compare(endpoints)
    return endpoints
  }

  #checkHealth({ call, status, text }: Exchange): void {
    const [, , endpoint, operation] = new URL(call.url).pathname.split('/')
    if (operation !== 'health' || status !== 200) return
    this.counters.compare(endpoint as EndpointId, (JSON.parse(text) as { jobs: Counters }).jobs, '/health')
  }

  #moved(move: Events['job.moved']): void {
    const { transition, to, from, workerId, jobId } = move
    this.#world.count(`transitions: ${transition} ${from} to ${to}`)
    if (transition === 'claim' && workerId !== null) this.fleet.claimed(workerId, jobId)
    if (transition === 'claim' && workerId !== null) this.#suspends?.claimed(workerId, jobId)
    if (transition === 'timeOut' && workerId !== null) this.#pauses.timedOut(jobId, workerId)
    this.jobs.moved(move)
    if (transition === 'requeue' && workerId !== null && !this.#machine.running().includes(workerId)) {
      this.jobs.lost(workerId)
    }
  }

  /** Reports a failure that the server logs, unless an injected fault caused it. */
  #failed(name: string, problem: string): void {
    if (
      /simulated (disk|connection|server)|made durable|the server is stopping|lost its hold on the database/.test(
        problem,
      )
    )
      this.#world.count('failures reported by the server')
    else this.#world.report(`${name}: ${problem}`)
  }

  /** The queued jobs of an endpoint, by the changes that the simulator saw. */
  queuedJobs(endpoint: EndpointId): JobId[] {
    return this.order.queuedJobs(endpoint)
  }
}

type EventOf = { [Name in EventName]: { readonly name: Name; readonly fields: Events[Name] } }[EventName]

/** Running workers whose endpoint was removed. */
function strayWorkers({ query }: Pick<Database, 'query'>): string[] {
  const rows = query<{ id: string; state: string }>(OF_NO_ENDPOINT)
  return rows.map(({ id, state }) => `worker ${id} is ${state}, and its endpoint was removed`)
}

/** Workers that wait for a placement. */
function queuedWorkers({ query }: Pick<Database, 'query'>): string[] {
  const rows = query<{ id: string; reason: string }>('SELECT id, reason FROM queued_workers ORDER BY id')
  return rows.map(({ id, reason }) => `worker ${id} waits for a placement: ${reason}`)
}

/** The rows that are left once all retention is over. @param overByMs wall-clock time at which all work was done */
function remainingRows({ query }: Pick<Database, 'query'>, overByMs: number): string[] {
  const counts = EMPTY.map(table => ({
    table,
    number: query<{ n: number }>(`SELECT COUNT(*) AS n FROM ${table}`)[0]!.n,
  }))
  const [exited] = query<{ n: number }>('SELECT COUNT(*) AS n FROM workers WHERE exited_at_ms <= ?', overByMs)
  const [deleted] = query<{ n: number }>('SELECT COUNT(*) AS n FROM endpoint_ids WHERE deleted_at_ms IS NOT NULL')
  return [...counts, { table: 'ended workers', number: exited!.n }, { table: 'deleted endpoints', number: deleted!.n }]
    .filter(({ number }) => number > 0)
    .map(({ table, number }) => `${number} rows are left in ${table}`)
}

/** Maximum time until the server detects the end of a worker, and settles a freeze; a suspend takes some seconds. */
function noticeMs({ kubernetes, suspends }: World): number | undefined {
  if (kubernetes) return CLUSTER_NOTICE_MS
  return suspends ? SUSPEND_NOTICE_MS : undefined
}
