import { type AppRunParts, openAppRun, startApp } from '../../sim/app-run.ts'
import { RequestQueueChecker } from '../../sim/checks/request-queue-checker.ts'
import { Receiver } from '../../sim/faults/receiver.ts'
import { Life } from '../../sim/life.ts'
import { SimLogs } from '../../sim/logs.ts'
import { Network } from '../../sim/network.ts'
import type { Platform } from '../../sim/platform.ts'
import { Programs } from '../../sim/programs.ts'
import { type Database, openDatabase } from '../../sim/store.ts'
import { createSimVault } from '../../sim/vault.ts'
import type { World } from '../../sim/world.ts'
import type { MockFleet } from '../../src/drivers/mock/mock.ts'
import { singleLeader } from '../../src/system/coordination/leader.ts'
import { ServerClock } from '../../src/system/server-clock.ts'

/** Parts of the server that its benchmark chooses. */
export interface SimulatedServerParts extends Pick<AppRunParts, 'machine' | 'placing' | 'freezing'> {
  readonly network: Network
  /** The workers. */
  readonly fleet: MockFleet
  /** Maximum number of workers, and the name of what limits them. */
  readonly room: { readonly workers: number; readonly bound: string }
}

/** A server in virtual time, whose workers are programs of the simulator. */
export interface SimulatedServer {
  readonly database: Database
  /** The process of the server. */
  readonly life: Life
}

/** A network without faults. */
export function quietNetwork(world: World): Network {
  return new Network(world, { arrived() {}, answered() {} })
}

/** Starts the whole control plane over a mock fleet, with a new database. */
export async function startSimulatedServer(world: World, parts: SimulatedServerParts): Promise<SimulatedServer> {
  const { fleet, network, machine, room, placing, freezing } = parts
  const database = openDatabase(world)
  const life = new Life(world.clock)
  const exit: Platform['exit'] = (worker, how) => fleet.exit(worker, how)
  const programs = new Programs({ world, exit: (worker, code) => exit(worker, { code }) }, () => undefined)
  const { clock } = world
  const monotonic = () => clock.monotonic()
  const requestQueues = new RequestQueueChecker(problem => world.report(problem), {
    nowMs: monotonic,
    program: worker => programs.find(worker),
    limits: { perEndpoint: 1, inAll: 1, waitMs: 1, namedWaitMs: 1 },
    count() {},
  })
  const platform: Platform = {
    running: () => fleet.running(),
    present: () => fleet.running(),
    frozen: fleet.frozen,
    exit,
    driver: ({ notifier }) => {
      const driver = fleet.driver({
        notifier,
        capacity: running => ({ freeWorkers: Math.max(0, room.workers - running), bound: room.bound }),
      })
      return { driver, close: () => driver.close() }
    },
  }
  const logs = new SimLogs(() => clock.now())
  const shared = { platform, machine, vault: createSimVault(), logs, programs, requestQueues }
  const clocks = { wall: () => clock.wall(), monotonic, sinceBoot: monotonic, boot: 'sim' }
  const run = openAppRun(
    world,
    { ...shared, mutateRequestQueues: undefined, ...(placing && { placing }), ...(freezing && { freezing }) },
    {
      life,
      clock: new ServerClock(clocks, life.after.bind(life)),
      random: world.random('server'),
      store: database.store,
      leader: singleLeader,
      outbound: new Receiver(world, () => {}).outbound(life),
      emit() {
        world.activity += 1
      },
      number: 1,
      workerUrl: 'http://server.sim',
    },
  )
  await startApp(run, () => network.connect(run.surface, life))
  return { database, life }
}
