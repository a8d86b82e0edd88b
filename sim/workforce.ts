import type { WorkerId } from '../src/core/ids.ts'
import { MockFleet } from '../src/drivers/mock/mock.ts'
import type { ClusterChecker } from './checks/cluster-checker.ts'
import type { PlacementChecker } from './checks/placement-checker.ts'
import type { ShareChecker } from './checks/share-checker.ts'
import { Cluster } from './kubernetes/cluster.ts'
import type { SimLogs } from './logs.ts'
import { MACHINE_WORKERS, type SimMachine } from './machine.ts'
import type { Platform } from './platform.ts'
import type { PlayedGpus } from './played-gpus.ts'
import type { Programs } from './programs.ts'
import { WorkerMemory } from './worker-memory.ts'
import type { WebProgram } from './workers/web-program.ts'
import { SimWorker, type WorkerParts } from './workers/worker.ts'
import type { World } from './world.ts'

/** First of the ports of the mock driver, which gives two to each worker. */
const FIRST_PORT = 20_000

/** Memory of a worker on each of its cards, in GiB, without shares. */
const WORKER_GIB = 20

/** Parts that workers need besides the platform on which they run. */
export interface WorkforceParts extends Pick<WorkerParts, 'network' | 'runs' | 'serverRun'> {
  /** The driver of the cards; null where it suspends nothing. */
  readonly gpus: PlayedGpus | null
  readonly placements: PlacementChecker
  readonly cluster: ClusterChecker
  /** Null without shares of cards. */
  readonly shares: ShareChecker | null
  readonly programs: Programs
}

/** Workers as processes of the simulated machine. */
export function machineFleet(
  world: World,
  workers: Map<WorkerId, SimWorker>,
  logs: SimLogs,
  parts: () => WorkforceParts,
): {
  readonly platform: Platform
  readonly workerAt: (port: number) => WorkerId | undefined
  /** The faults are over: no start fails any more. */
  readonly restore: () => void
} {
  const random = world.random('machine')
  const memory = new WorkerMemory(world)
  const fail = (worker: WorkerId, line: string) => {
    logs.append(worker, line)
    workers.get(worker)?.die()
    fleet.exit(worker, { code: 1 })
  }
  const setFrozen = (worker: WorkerId, isFrozen: boolean) => {
    freezeProgram([workers.get(worker), parts().programs.find(worker)], isFrozen)
  }
  const fleet: MockFleet = new MockFleet({
    onStart: async spec => {
      const { placements, programs, gpus, shares, ...rest } = parts()
      placements.started(spec)
      const cards = spec.placement.gpus.map(({ uuid }) => uuid ?? '')
      if (gpus !== null && shares !== null) memory.start(spec, { gpus, shares, fail })
      else gpus?.start(spec.workerId, cards, WORKER_GIB)
      if (spec.serves === null)
        workers.set(spec.workerId, new SimWorker(workerParts(world, platform, logs, rest), spec))
      else programs.start(spec)
      if (random.chance(world.faults.start)) {
        world.count('failed starts')
        fleet.failNextStart({ kind: 'other', problem: 'the simulated machine has no room left' })
      }
      await new Promise<void>(resolve => world.clock.after(random.int(5, 300), resolve))
    },
    onFreeze: worker => {
      world.count('freezes')
      setFrozen(worker, true)
    },
    onThaw: worker => {
      if (parts().gpus?.isHeld(worker) !== true) setFrozen(worker, false)
    },
    processes: worker => parts().gpus?.family(worker) ?? null,
    onTerminate: worker => {
      workers.get(worker)?.terminate()
      parts().programs.find(worker)?.terminate()
    },
    onKill: worker => {
      workers.get(worker)?.die()
      parts().programs.find(worker)?.die()
    },
  })
  const platform: Platform = {
    running: () => fleet.running(),
    present: () => fleet.running(),
    frozen: fleet.frozen,
    exit: (worker, how) => fleet.exit(worker, how),
    driver: ({ notifier }) => {
      const driver = fleet.driver({
        notifier,
        capacity: running => ({ freeWorkers: Math.max(0, MACHINE_WORKERS - running), bound: 'the simulated machine' }),
      })
      return { driver, close: () => driver.close() }
    },
  }
  return {
    platform,
    workerAt: port => fleet.started[Math.floor((port - FIRST_PORT) / 2)]?.workerId,
    restore: () => fleet.failNextStart(null),
  }
}

/** Freezes or thaws the program of a worker. */
export function freezeProgram(programs: readonly (SimWorker | WebProgram | undefined)[], isFrozen: boolean): void {
  for (const program of programs)
    if (isFrozen) program?.freeze()
    else program?.thaw()
}

/** Workers as pods of the simulated cluster. */
export function clusterFleet(
  world: World,
  workers: Map<WorkerId, SimWorker>,
  logs: SimLogs,
  machine: SimMachine,
  parts: () => WorkforceParts,
): Cluster {
  const gpus = { ada: machine.countGpus('ADA_24'), ampere: machine.countGpus('AMPERE_24') }
  const cluster: Cluster = new Cluster(
    world,
    {
      start: ({ workerId, endpointId, env, serves }) => {
        const { programs, ...rest } = parts()
        if (serves) return programs.start({ workerId, endpointId })
        const spec = { workerId, protocolEnv: env }
        workers.set(workerId, new SimWorker(workerParts(world, cluster, logs, rest), spec))
      },
      terminate: worker => {
        workers.get(worker)?.terminate()
        parts().programs.find(worker)?.terminate()
      },
      die: worker => {
        workers.get(worker)?.die()
        parts().programs.find(worker)?.die()
      },
      reclaimed: worker => parts().cluster.reclaimed(worker),
    },
    gpus,
  )
  return cluster
}

function workerParts(
  world: World,
  platform: Pick<Platform, 'exit'>,
  logs: SimLogs,
  { network, runs, serverRun }: Pick<WorkerParts, 'network' | 'runs' | 'serverRun'>,
): WorkerParts {
  const exit = (worker: WorkerId, code: number) => platform.exit(worker, { code })
  return { world, network, runs, serverRun, exit, print: logs.append.bind(logs) }
}
