import { type App, createApp } from '../src/app.ts'
import { DEFAULT_OWNER } from '../src/core/ids.ts'
import type { MockDriver, MockFleet } from '../src/drivers/mock/mock.ts'
import type { Emit } from '../src/events.ts'
import type { RequestQueueLimits } from '../src/gateway/queue/request-queue.ts'
import type { Driver } from '../src/ports/driver.ts'
import type { Notifier } from '../src/ports/notifier.ts'
import type { Ports } from '../src/ports/ports.ts'
import type { Store } from '../src/ports/store/store.ts'
import type { Targets, Traffic } from '../src/ports/targets.ts'
import { fencedDriver, fencedStore } from '../src/system/coordination/leader-fence.ts'
import {
  type BalancedRequestQueues,
  REQUEST_QUEUE_LIMITS,
  type RequestQueueChecker,
} from './checks/request-queue-checker.ts'
import { createFaultyLeader } from './faults/leader.ts'
import { createFaultyNotifier } from './faults/notifier.ts'
import type { Receiver } from './faults/receiver.ts'
import { type CrashPoint, StoreGate } from './faults/store-gate.ts'
import { inlineBodies } from './inline-bodies.ts'
import { Life } from './life.ts'
import { MACHINE_WORKERS, type SimMachine } from './machine.ts'
import type { Network } from './network.ts'
import type { Programs } from './programs.ts'
import { isForApplication, SimGateway } from './sim-gateway.ts'
import type { World } from './world.ts'

/** The API key of all clients. */
export const API_KEY = 'rpa_simulated'
/** Drain timeout of the server, in milliseconds. */
const DRAIN_MS = 8_000
/** How long a ready worker stays before it is evicted for others; short, so that evictions happen within a run. */
const DWELL_MS = 5_000

/** A mistake in the request queues, to test the checkers. */
export interface RequestQueueMutation {
  readonly limits?: Partial<RequestQueueLimits>
  readonly wrap?: (requestQueues: BalancedRequestQueues) => BalancedRequestQueues
}

/** What a server uses; it outlives each run of the server. */
export interface ServerParts {
  readonly store: Store
  readonly fleet: MockFleet
  readonly machine: SimMachine
  readonly network: Network
  readonly random: Ports['random']
  readonly vault: Ports['vault']
  readonly logs: Ports['logs']
  readonly receiver: Receiver
  readonly programs: Programs
  readonly requestQueues: RequestQueueChecker
  readonly mutateRequestQueues: RequestQueueMutation | undefined
  readonly emit: Emit
  /** Called when the server has ended. */
  readonly crashed: () => void
}

interface Run {
  readonly life: Life
  readonly app: App
  readonly gate: StoreGate
  readonly driver: MockDriver
  readonly notifier: Notifier
  readonly requestQueues: BalancedRequestQueues
}

/** The server: the real application, started again on the same store after each end. */
export class Server {
  readonly #world: World
  readonly #parts: ServerParts
  #run: Run | null = null
  /** Whether it has finished starting. */
  ready = false
  starts = 0
  /** The origin that workers call. */
  workerUrl = 'http://server-1.sim'

  constructor(world: World, parts: ServerParts) {
    this.#world = world
    this.#parts = parts
  }

  /** Whether it runs or is stopping. */
  get up(): boolean {
    return this.#run !== null
  }

  /** Starts it. Returns false when the start failed or the server ended meanwhile. */
  async start(): Promise<boolean> {
    const run = this.#open()
    this.#run = run
    this.starts += 1
    this.#world.trace.add('server', `start ${this.starts} at ${this.workerUrl}`)
    try {
      await run.app.services.access.ensureKey(DEFAULT_OWNER, 'main', API_KEY)
      const surface = run.app.fetch()
      const { programs, network } = this.#parts
      const gateway = new SimGateway({
        reservations: run.requestQueues,
        life: run.life,
        at: address => programs.at(address),
      })
      network.connect(
        (request, env) => (isForApplication(request.url) ? gateway.serve(request) : surface(request, env)),
        run.life,
      )
      await run.app.start({ publicUrl: 'http://server.sim', queueUrl: 'http://server.sim', workerUrl: this.workerUrl })
      this.ready = true
      return true
    } catch (error) {
      this.#world.trace.add('server', `start failed: ${error}`)
      this.#end(run)
      // The director starts it again.
      return false
    }
  }

  /** Crashes it at a later change of the store. */
  crashAt(point: CrashPoint): void {
    this.#run?.gate.crashAt(point)
  }

  /** Notifies the server that the parts of the machine changed. */
  machineChanged(): void {
    this.#run?.notifier.publish('machine')
  }

  /** Crashes it now. */
  crash(): void {
    if (this.#run === null) return
    this.#world.trace.add('server', 'crash')
    this.#world.disturb('crashes')
    this.#end(this.#run)
    this.#parts.crashed()
  }

  /** Stops it gracefully. */
  async stop(): Promise<void> {
    const run = this.#run
    if (run === null) return
    this.ready = false
    this.#world.trace.add('server', 'stop')
    this.#world.disturb('stops')
    try {
      await run.life.guard(run.app.stop(new AbortController().signal))
      this.#world.trace.add('server', 'stopped')
    } catch (error) {
      this.#world.trace.add('server', `stop failed: ${error}`)
    }
    this.#world.disturbances += 1
    this.#end(run)
    this.#parts.crashed()
  }

  #end(run: Run): void {
    this.#run = null
    this.ready = false
    run.life.end()
    run.driver.close()
    this.#parts.network.disconnect()
    this.#parts.requestQueues.serverEnded()
  }

  #open(): Run {
    const { store, fleet, machine, random, vault, logs, receiver, emit, programs } = this.#parts
    const { requestQueues: checker, mutateRequestQueues } = this.#parts
    const { clock } = this.#world
    const life = new Life(clock)
    const gate = new StoreGate(this.#world, store, life, () => this.crash())
    const notifier = createFaultyNotifier(this.#world, life, this.starts)
    const driver = fleet.driver({
      notifier,
      capacity: running => ({ freeWorkers: Math.max(0, MACHINE_WORKERS - running), bound: 'the simulated machine' }),
    })
    const leader = createFaultyLeader(this.#world)
    const ports: Ports = {
      clock: { now: () => clock.now(), monotonic: () => clock.monotonic(), after: life.after.bind(life) },
      random,
      vault,
      logs,
      notifier,
      leader,
      store: fencedStore(gate.store, leader),
      driver: fencedDriver(gatedDriver(driver, life), leader),
      outbound: receiver.outbound(life),
      bodies: inlineBodies,
      probes: {
        probe: (...args) => life.guard(programs.probe(...args)),
        post: () => life.guard(programs.post()),
      },
      metrics: { expose: async () => ({ contentType: 'text/plain', text: '' }) },
      machine: {
        parts: async () => machine.parts,
        gpuUse: () => new Map(),
        memory: () => machine.memory,
        disk: async () => null,
      },
      spill: null,
      consoleFiles: null,
      models: null,
      volumes: { create: async () => {}, remove: async () => {}, path: id => `/volumes/${id}` },
      emit: (name, fields) => {
        if (!life.over) emit(name, fields)
      },
    }
    // The checker observes the calls of the control loops to the request queues.
    const loops: Targets & Traffic = {
      keep: (endpoint, targets) => requestQueues.keep(endpoint, targets),
      setCircuit: (id, circuit) => requestQueues.setCircuit(id, circuit),
      forget: id => requestQueues.forget(id),
      load: id => requestQueues.load(id),
      busyMs: (id, worker) => requestQueues.busyMs(id, worker),
    }
    const limits = { ...REQUEST_QUEUE_LIMITS, ...mutateRequestQueues?.limits }
    const placing = { dwellMs: DWELL_MS }
    const config = { rateWindows: [], drainTimeoutMs: DRAIN_MS, placing, requestQueueLimits: limits }
    const app = createApp(ports, config, loops)
    const requestQueues: BalancedRequestQueues = checker.watch(
      mutateRequestQueues?.wrap?.(app.requestQueues) ?? app.requestQueues,
    )
    return { life, app, gate, driver, notifier, requestQueues }
  }
}

function gatedDriver(driver: MockDriver, life: Life): Driver {
  const never = () => new Promise<never>(() => {})
  const call = <Value>(run: () => Promise<Value>): Promise<Value> => (life.over ? never() : life.guard(run()))
  return {
    name: driver.name,
    readsModels: image => driver.readsModels(image),
    placedBy: image => driver.placedBy(image),
    nameOf: () => driver.nameOf(),
    savedImage: image => driver.savedImage(image),
    check: (image, args) => call(() => driver.check(image, args)),
    start: spec => call(() => driver.start(spec)),
    adopt: (worker, handle) => call(() => driver.adopt(worker, handle)),
    observe: worker => call(() => driver.observe(worker)),
    address: worker => call(() => driver.address(worker)),
    freeze: worker => call(() => driver.freeze(worker)),
    thaw: worker => call(() => driver.thaw(worker)),
    terminate: worker => call(() => driver.terminate(worker)),
    kill: worker => call(() => driver.kill(worker)),
    release: worker => call(() => driver.release(worker)),
    capacity: () => call(() => driver.capacity()),
    keepsApart: () => driver.keepsApart(),
    isolation: (handle, recorded) => driver.isolation(handle, recorded),
    tidy: () => call(() => driver.tidy()),
  }
}
