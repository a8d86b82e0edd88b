/**
 * Costs of many workers that a platform places, under virtual time: zero workers, then as many as given, each with a
 * job, then zero again. Prints the duration of each stage in virtual and in real time, and the memory of the process,
 * which holds the workers and the database too: `./bin/node bench/simulated-fleet.ts [workers]`, 10,000 unless given.
 */
import { Calls } from '../sim/clients/calls.ts'
import { Life } from '../sim/life.ts'
import { SimMachine } from '../sim/machine.ts'
import type { Network } from '../sim/network.ts'
import { Operator } from '../sim/operator.ts'
import { settle } from '../sim/run.ts'
import type { Database } from '../sim/store.ts'
import { Protocol } from '../sim/workers/protocol.ts'
import { World } from '../sim/world.ts'
import { MAX_WORKERS } from '../src/core/endpoints/endpoint.ts'
import type { EndpointId, JobId, WorkerId } from '../src/core/ids.ts'
import { MockFleet } from '../src/drivers/mock/mock.ts'
import type { WorkerSpec } from '../src/ports/driver.ts'
import { quietNetwork, startSimulatedServer } from './harness/simulated-server.ts'

/** Duration of each job, so long that all workers exist at once. */
const JOB_MS = 120_000
const IDLE_S = 5
/** Limit of a stage, in virtual time. */
const STAGE_MS = 1_800_000

interface Fleet {
  readonly world: World
  readonly database: Database
  readonly fleet: MockFleet
  readonly network: Network
  readonly workers: Map<WorkerId, Poller>
  readonly life: Life
}

/** A worker with its protocol alone, so that the costs are those of the server. */
class Poller {
  readonly #life
  readonly #protocol
  readonly #spec
  readonly #exit
  #isTerminated = false
  #job: JobId | null = null

  constructor(world: World, network: Network, spec: WorkerSpec, exit: (worker: WorkerId, code: number) => void) {
    const { workerId: id, protocolEnv: env } = spec
    this.#life = new Life(world.clock)
    this.#protocol = new Protocol({ id, sdk: 'python', env, life: this.#life, network })
    this.#spec = spec
    this.#exit = exit
    void this.#takes()
    void this.#pings()
  }

  /** Ends the worker once its job is done and its poll has returned. */
  terminate(): void {
    this.#isTerminated = true
  }

  /** Kills the worker. */
  die(): void {
    this.#life.end()
  }

  async #takes(): Promise<void> {
    while (!this.#isTerminated) {
      const reply = await this.#protocol.take(1, false)
      if (!reply.ok || reply.status !== 200) {
        await this.#life.sleep(reply.ok && reply.status === 204 ? 10 : 1_000)
        continue
      }
      const { id, input } = JSON.parse(reply.text) as { id: JobId; input: { ms: number } }
      this.#job = id
      await this.#life.sleep(input.ms)
      await this.#protocol.post('OUTPUT', id, JSON.stringify({ output: 'done' }))
      this.#job = null
    }
    this.#life.end()
    this.#exit(this.#spec.workerId, 0)
  }

  async #pings(): Promise<void> {
    for (;;) {
      await this.#protocol.ping(this.#job === null ? [] : [this.#job], this.#life)
      await this.#life.sleep(Number(this.#spec.protocolEnv.RUNPOD_PING_INTERVAL))
    }
  }
}

/** A server on a platform with room for all workers. A new worker waits for its node for some seconds. */
async function openFleet(maxWorkers: number): Promise<Fleet> {
  const world = new World(1)
  const workers = new Map<WorkerId, Poller>()
  const random = world.random('platform')
  const life = new Life(world.clock)
  const network = quietNetwork(world)
  const exit = (worker: WorkerId, code: number) => fleet.exit(worker, { code })
  const fleet: MockFleet = new MockFleet({
    arrival: ({ workerId }) => {
      const node = `node-${random.int(1, Math.ceil(maxWorkers / 50))}`
      life.after(random.int(500, 5_000), () => fleet.place(workerId, { node, gpuType: null, gpuCount: 0 }))
      return { kind: 'no_room', said: 'no node yet' }
    },
    onStart: async spec => void workers.set(spec.workerId, new Poller(world, network, spec, exit)),
    onTerminate: worker => workers.get(worker)?.terminate(),
    onKill: worker => workers.get(worker)?.die(),
  })
  const room = { workers: maxWorkers, bound: 'the platform' }
  const { database, life: server } = await startSimulatedServer(world, {
    network,
    fleet,
    machine: new SimMachine(world),
    room,
  })
  return { world, database, fleet, network, workers, life: server }
}

/** Advances the time until the condition holds, and prints the duration. */
async function stage({ world, database, workers }: Fleet, name: string, isOver: () => boolean): Promise<void> {
  const { clock } = world
  const activity = () => world.activity + clock.timers
  const [fromMs, fromVirtualMs, fromSteps] = [performance.now(), clock.monotonic(), clock.fired]
  for (let untilMs = fromVirtualMs + 1_000; !isOver(); untilMs += 1_000) {
    if (untilMs > fromVirtualMs + STAGE_MS) throw new Error(`${name}: not over after ${STAGE_MS} ms`)
    while (clock.advance(untilMs)) await settle(activity)
  }
  const { rss, heapUsed } = process.memoryUsage()
  const mb = (bytes: number) => `${Math.round(bytes / 1e6)} MB`
  const virtual = `${Math.round((clock.monotonic() - fromVirtualMs) / 1_000)} s of virtual time`
  const real = `${((performance.now() - fromMs) / 1_000).toFixed(1)} s of real time`
  const steps = `${clock.fired - fromSteps} timers`
  console.log(`${name}: ${virtual} in ${real}, ${steps}; ${mb(rss)} resident, ${mb(heapUsed)} heap`)
  const [alive] = database.query<{ n: number }>(`SELECT COUNT(*) AS n FROM workers WHERE state <> 'EXITED'`)
  console.log(`  ${alive!.n} workers in the store, ${workers.size} ever started`)
}

async function main(wanted: number): Promise<number> {
  const rig = await openFleet(wanted)
  const { world, database, fleet, network, life } = rig
  const operator = new Operator(world, network, new SimMachine(world), () => {})
  const endpoints = Math.ceil(wanted / MAX_WORKERS)
  let isSetUp = false
  const perEndpoint = Math.ceil(wanted / endpoints)
  void operator.setUpLarge(endpoints, perEndpoint, IDLE_S).then(() => {
    isSetUp = true
  })
  await stage(rig, 'set up', () => isSetUp)
  const calls = new Calls(network, 'client', life)
  let remaining = wanted
  const body = JSON.stringify({ input: { ms: JOB_MS }, policy: { executionTimeout: 2 * JOB_MS } })
  const submit = async (endpoint: EndpointId) => {
    const reply = await calls.post(endpoint, 'run', { body })
    if (reply.ok && reply.status === 200) remaining -= 1
    else throw new Error(`a job was refused: ${JSON.stringify(reply)}`)
  }
  for (let n = 0; n < wanted; n += 1) void submit(operator.queues[n % endpoints]!)
  await stage(rig, `${wanted} jobs submitted`, () => remaining === 0)
  const busy = () => database.query<{ n: number }>(`SELECT COUNT(*) AS n FROM jobs WHERE status = 'IN_PROGRESS'`)[0]!.n
  await stage(rig, `0 to ${fleet.running().length || wanted} workers, all jobs begun`, () => busy() === wanted)
  console.log(`  ${fleet.running().length} workers run`)
  const done = () => database.query<{ n: number }>(`SELECT COUNT(*) AS n FROM jobs WHERE status = 'COMPLETED'`)[0]!.n
  await stage(rig, 'all jobs done', () => done() === wanted)
  await stage(rig, 'back to 0 workers', () => fleet.running().length === 0 && fleet.left().length === 0)
  for (const problem of world.problems) console.log(`PROBLEM ${problem}`)
  return world.problems.length === 0 ? 0 : 1
}

process.exitCode = await main(Number(process.argv[2] ?? 10_000))
