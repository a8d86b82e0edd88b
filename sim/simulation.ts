import type { GivenLimits } from '../src/core/accounts/quotas.ts'
import { DEFAULT_OWNER, isJobId, type JobId, type WorkerId } from '../src/core/ids.ts'
import { readJoinedResults } from '../src/core/jobs/joined-results.ts'
import type { EventName, Events } from '../src/events.ts'
import type { Store } from '../src/ports/store/store.ts'
import type { RequestQueueMutation } from './app-run.ts'
import { Checks } from './checks/checks.ts'
import { readNonce } from './checks/run-checker.ts'
import { BatchClient } from './clients/batch-client.ts'
import { SimClient } from './clients/client.ts'
import { Inspector } from './clients/inspector.ts'
import { WebClient } from './clients/web-client.ts'
import { Director, type Servers } from './director.ts'
import { Receiver } from './faults/receiver.ts'
import { SimLogs } from './logs.ts'
import { SimMachine } from './machine.ts'
import { type Call, Network } from './network.ts'
import { Operator } from './operator.ts'
import type { PairMutation } from './pair/host.ts'
import { Pair } from './pair/pair.ts'
import type { Platform } from './platform.ts'
import { Programs } from './programs.ts'
import { Server } from './server.ts'
import { type Database, openDatabase } from './store.ts'
import { createSimVault } from './vault.ts'
import type { SimWorker } from './workers/worker.ts'
import { clusterFleet, freezeProgram, machineFleet } from './workforce.ts'
import { type Features, World } from './world.ts'

/** The result of a run. */
export interface SeedResult {
  readonly seed: number
  /** Hash of the trace; the same in each run of a seed. */
  readonly hash: string
  /** Number of timers that fired. */
  readonly steps: number
  /** Mistakes of the system under test. */
  readonly problems: readonly string[]
  readonly stats: {
    readonly jobs: number
    readonly acknowledged: number
    readonly faults: number
    readonly restarts: number
    readonly virtualS: number
    /** Times without an active server although one could be, until there was one again. */
    readonly takeoversMs: readonly number[]
    /** All counts, by name. */
    readonly counts: Readonly<Record<string, number>>
  }
}

/** Options of a run. */
export interface RunOptions extends Features {
  /** Resolves when all work is done that does not wait for the clock. @param activity grows with each piece of work */
  readonly settle: (activity: () => number) => Promise<void>
  /** Receives every line of the trace. */
  readonly listen?: (line: string) => void
  /** Puts a mistake into the store, to test the checkers. */
  readonly mutateStore?: (database: Database) => Store
  /** Has the server go by the wall clock of the machine, to test the checkers. */
  readonly goesByMachine?: boolean
  /** Puts a mistake into the request queues, to test the checkers. */
  readonly mutateRequestQueues?: RequestQueueMutation
  /** Puts a mistake into the turns of two servers, to test the checkers. */
  readonly mutatePair?: PairMutation
  /** Called with every event of the servers. @param atMs the time of the simulation */
  readonly onEvent?: (name: EventName, fields: Events[EventName], atMs: number) => void
  /** Ends the run when it returns true for the problems found so far. */
  readonly enough?: (problems: readonly string[]) => boolean
  /** Ends the run at this instant, in ms since its begin, although work is left; by default once all is done. */
  readonly endsAtMs?: number
}

/** Runs one seed from the first request to the end of the last worker. */
export async function runSeed(seed: number, options: RunOptions): Promise<SeedResult> {
  const world = new World(seed, options.listen, options)
  const database = openDatabase(world)
  const workers = new Map<WorkerId, SimWorker>()
  const logs = new SimLogs(() => world.clock.now())
  const machine = new SimMachine(world, {
    isFrozen: worker => platform.frozen.has(worker),
    isAlive: worker => platform.running().includes(worker),
    onHold: (worker, isHeld) => {
      if (isHeld || !platform.frozen.has(worker)) freezeProgram([workers.get(worker), programs.find(worker)], isHeld)
    },
  })
  const limits = drawLimits(world)
  const workforce = () => ({
    gpus: machine.gpus,
    programs,
    network,
    ...checks.ofWorkers,
    serverRun: () => servers.starts,
  })
  const cluster = options.kubernetes ? clusterFleet(world, workers, logs, machine, workforce) : null
  const fleet = cluster === null ? machineFleet(world, workers, logs, workforce) : null
  const platform: Platform = (cluster ?? fleet?.platform)!
  const programs: Programs = new Programs(
    { world, exit: (worker, code) => platform.exit(worker, { code }) },
    ({ host, port }) => cluster?.workerAt(host) ?? fleet?.workerAt(port),
  )
  const holds = (worker: WorkerId, job: JobId) => workers.get(worker)?.holds(job) === true
  const checks: Checks = new Checks(world, database, platform, machine, { holds }, programs, limits)
  database.onCommit = commit => checks.committed(commit)
  const network: Network = new Network(world, {
    arrived: call => noteResults(world, checks, call),
    answered: answered => checks.answered(answered),
  })
  const operator = new Operator(world, network, machine, endpoint => void checks.clients.deleted.add(endpoint))
  const parts = {
    platform,
    machine,
    network,
    logs,
    vault: createSimVault(),
    receiver: new Receiver(world, received => checks.webhooks.received(received)),
    programs,
    requestQueues: checks.requestQueues,
    mutateRequestQueues: options.mutateRequestQueues,
    emit: (name: EventName, fields: Events[EventName]) => {
      world.activity += 1
      checks.event(name, fields)
      options.onEvent?.(name, fields, world.clock.now())
      if (name === 'job.moved') countUndeliveredTimeOut(world, workers, fields as Events['job.moved'])
    },
  }
  const { mutateStore, mutatePair: mutate } = options
  const pair = options.pair
    ? new Pair({ ...parts, world, database, mutate, mutateStore, over: () => checks.serverEnded() })
    : null
  const server = pair
    ? null
    : new Server(world, {
        ...parts,
        random: world.random('server'),
        goesByMachine: options.goesByMachine === true,
        store: mutateStore?.(database) ?? database.store,
        crashed: () => director.restartLater(),
      })
  const servers: Servers & { readonly starts: number } = (pair ?? server)!
  if (pair !== null) Object.assign(checks, { isPaused: () => pair.paused, hasRightClocks: () => pair.agree })
  checks.acceptClock = () => {
    void database.store.clock.accept(true).then(() => (pair ?? server)!.renew())
  }
  const clients: { readonly done: boolean }[] = []
  const director = new Director(world, {
    servers,
    server,
    pair,
    cluster,
    operator,
    checks,
    machine,
    restoreStarts: () => fleet?.restore(),
    running: () => platform.running(),
    kill: worker => {
      workers.get(worker)?.die()
      programs.find(worker)?.die()
      platform.exit(worker, { signal: 'SIGKILL' })
    },
  })
  await limitAccount(database.store, limits)
  void director.run(() => {
    const endpoints = () => operator.queues
    const random = world.random('clients')
    const count = random.int(4, 7)
    const parts = { world, network, checks, endpoints }
    for (let n = 1; n <= count; n += 1)
      clients.push(new SimClient(parts, `client ${n}`, random.int(10, 20) * (world.hasShortJobs ? 2 : 1)))
    clients.push(new BatchClient(parts))
    if (operator.balanced.length > 0) clients.push(...webClients(world, network, checks, operator, director))
    new Inspector(world, network, checks, endpoints)
  })
  const runState = () => ({
    serverReady: servers.ready,
    calm: director.calm,
    clientsDone: clients.every(client => client.done),
    open: pair === null ? network.open() : network.open(pair.activeName ?? ''),
  })
  const inspect = () => {
    pair?.inspect()
    const isOver = world.clock.monotonic() >= (options.endsAtMs ?? Number.POSITIVE_INFINITY)
    return isOver || options.enough?.(world.problems) === true ? 'enough' : checks.inspect(runState())
  }
  await passTime(world, options.settle, checks, inspect)
  await database.store.close()
  return seedResult(world, checks, servers.starts, pair?.terms.takeoversMs ?? [])
}

/** Creates the account that the server would create itself, with limits. */
async function limitAccount(store: Store, limits: GivenLimits): Promise<void> {
  const settings = { deleteRunningEndpoints: false, limits }
  await store.accounts.insert({ id: DEFAULT_OWNER, name: 'operator', createdAtMs: 0, ...settings })
}

/** Advances the clock until the checks end the run. */
async function passTime(
  world: World,
  settle: RunOptions['settle'],
  checks: Checks,
  inspect: () => 'go on' | 'enough',
): Promise<void> {
  const activity = () => world.activity + world.clock.timers
  await settle(activity)
  for (let second = 1; ; second += 1) {
    while (world.clock.advance(second * 1_000)) {
      await settle(activity)
      checks.settled()
    }
    if (inspect() === 'enough') return
  }
}

/** The clients of the applications. */
function webClients(
  world: World,
  network: Network,
  checks: Checks,
  operator: Operator,
  director: Director,
): WebClient[] {
  const random = world.random('clients of applications')
  const parts = {
    world,
    network,
    requestQueues: checks.requestQueues,
    endpoints: () => operator.balanced,
    calm: () => director.calm,
  }
  return Array.from(
    { length: random.int(2, 4) },
    (_, n) => new WebClient(parts, `web client ${n + 1}`, random.int(8, 20)),
  )
}

/** Tells the checkers which worker posted final results for which jobs. */
function noteResults(world: World, checks: Checks, { url, body }: Call): void {
  const [, , , call, worker, job] = new URL(url).pathname.split('/')
  if (body === undefined) return
  if (call === 'job-done' && isJobId(job ?? '')) noteResult(checks, worker as WorkerId, job as JobId, body)
  if (call !== 'job-done-batch') return
  world.count('calls with several results')
  for (const { jobId, text } of readJoinedResults(body)) noteResult(checks, worker as WorkerId, jobId, text)
}

function noteResult(checks: Checks, worker: WorkerId, job: JobId, body: string): void {
  if ((JSON.parse(body) as { status?: string }).status === 'IN_PROGRESS') return
  checks.jobs.posted(worker, job)
  const run = checks.runs.find(readNonce(body))
  if (run !== undefined) run.posted = true
}

/** Counts time-outs of jobs whose claim never arrived at a worker. */
function countUndeliveredTimeOut(world: World, workers: Map<WorkerId, SimWorker>, move: Events['job.moved']): void {
  const { transition, workerId, jobId } = move
  if (transition !== 'timeOut' || workerId === null) return
  if (workers.get(workerId)?.hasTaken(jobId) !== true) world.count('time-outs of jobs that no worker had')
}

function seedResult(world: World, checks: Checks, starts: number, takeoversMs: readonly number[]): SeedResult {
  const counts = Object.fromEntries([...world.counts].sort(([a], [b]) => (a < b ? -1 : 1)))
  const isFault = (name: string) =>
    /lost|answers|fail|crash|^stops|pauses|new |clocks|disk|wake|receivers|deleted|broken/.test(name)
  const faults = Object.entries(counts).reduce((sum, [name, count]) => sum + (isFault(name) ? count : 0), 0)
  return {
    seed: world.seed,
    hash: world.trace.hash,
    steps: world.clock.fired,
    problems: world.problems,
    stats: {
      jobs: checks.jobs.jobs.size,
      acknowledged: checks.clients.acknowledged,
      faults,
      restarts: starts - 1,
      takeoversMs,
      virtualS: Math.round(world.clock.monotonic() / 1_000),
      counts,
    },
  }
}

/**
 * Draws the limits of the account of all clients: no limits, or limits that they reach but can
 * still finish all jobs under.
 */
function drawLimits(world: World): GivenLimits {
  const random = world.random('limits of the account')
  if (!random.chance(0.4)) return {}
  return { workers: random.int(4, 5), gpus: 2, queuedJobs: random.int(4, 10) }
}
