import { type App, createApp } from '../src/app.ts'
import { FULL_SCOPE } from '../src/core/accounts/permission.ts'
import { DEFAULT_OWNER } from '../src/core/ids.ts'
import type { PlacementRules } from '../src/core/placement/placement-input.ts'
import type { FreezeRules } from '../src/core/scaling/frozen-plan.ts'
import type { Emit } from '../src/events.ts'
import type { RequestQueueLimits } from '../src/gateway/queue/request-queue.ts'
import type { Clock, ServerTime } from '../src/ports/clock.ts'
import type { Driver } from '../src/ports/driver.ts'
import type { Leader } from '../src/ports/leader.ts'
import type { Notifier } from '../src/ports/notifier.ts'
import type { Outbound } from '../src/ports/outbound.ts'
import type { Ports } from '../src/ports/ports.ts'
import type { Store } from '../src/ports/store/store.ts'
import type { Targets, Traffic } from '../src/ports/targets.ts'
import { resumeTime } from '../src/services/observing/server-time.ts'
import { fencedDriver } from '../src/system/coordination/leader.ts'
import { createNotifier } from '../src/system/coordination/notifier.ts'
import { MAX_PAUSE_MS } from './checks/pause-checker.ts'
import {
  type BalancedRequestQueues,
  REQUEST_QUEUE_LIMITS,
  type RequestQueueChecker,
} from './checks/request-queue-checker.ts'
import { inlineBodies } from './inline-bodies.ts'
import type { Life } from './life.ts'
import type { SimMachine } from './machine.ts'
import type { Surface } from './network.ts'
import type { Platform } from './platform.ts'
import type { Programs } from './programs.ts'
import { isForApplication, SimGateway } from './sim-gateway.ts'
import type { World } from './world.ts'

/** The API key of all clients. */
export const API_KEY = 'rpa_simulated'
/** Drain timeout of the server, in milliseconds. */
const DRAIN_MS = 8_000
/** Shortest stay of a ready worker before it is evicted for others, unless a run has rules of its own. */
const DWELL_MS = 5_000

/** A mistake in the request queues, to test the checkers. */
export interface RequestQueueMutation {
  readonly limits?: Partial<RequestQueueLimits>
  readonly wrap?: (requestQueues: BalancedRequestQueues) => BalancedRequestQueues
}

/** Parts that the runs of the application share; they outlive each run. */
export interface AppRunParts {
  readonly platform: Platform
  readonly machine: Pick<SimMachine, 'parts' | 'memory' | 'gpus'>
  readonly vault: Ports['vault']
  readonly logs: Ports['logs']
  readonly programs: Programs
  readonly requestQueues: RequestQueueChecker
  readonly mutateRequestQueues: RequestQueueMutation | undefined
  /** Rules of placement; a short dwell when left out, so that evictions happen within a run. */
  readonly placing?: Partial<PlacementRules>
  /** Rules of frozen workers; the defaults when left out. */
  readonly freezing?: Partial<FreezeRules>
}

/** Parts of one run of the application. */
export interface AppRunOptions {
  /** The process in which it runs. */
  readonly life: Life
  readonly clock: Clock & ServerTime
  readonly random: Ports['random']
  readonly store: Store
  readonly leader: Leader
  readonly outbound: Outbound
  readonly emit: Emit
  /** Number of the run. */
  readonly number: number
  /** Origin that its workers call. */
  readonly workerUrl: string
  /** Goes around the driver, inside and outside of the fence of the leader. */
  readonly around?: { readonly inside: (driver: Driver) => Driver; readonly outside: (driver: Driver) => Driver }
}

/** One run of the real application. */
export interface AppRun {
  readonly app: App
  readonly driver: Driver
  /** Stops observing the workers, as a server that has ended does. */
  readonly close: () => void
  readonly notifier: Notifier
  /** All that listens at the address of the server. */
  readonly surface: Surface
  /** Goes on with the time of the server before. */
  readonly resume: () => Promise<void>
}

/** Makes the application over simulated ports. It does nothing before it is started. */
export function openAppRun(world: World, parts: AppRunParts, options: AppRunOptions): AppRun {
  const { platform, machine, vault, logs, programs, requestQueues: checker, mutateRequestQueues } = parts
  const { placing = { dwellMs: DWELL_MS }, freezing } = parts
  const { life, clock, random, store, leader, outbound, emit, around } = options
  const notifier = createFaultyNotifier(world, life, options.number)
  const { driver, close } = platform.driver({ life, clock, notifier, leader })
  const gated = gatedDriver(driver, life)
  const fenced = fencedDriver(around?.inside(gated) ?? gated, leader)
  const ports: Ports = {
    clock,
    random,
    vault,
    logs,
    notifier,
    leader,
    store,
    driver: around?.outside(fenced) ?? fenced,
    outbound,
    registries: { isAllowed: () => true, reach: async () => 'allowed' },
    bodies: inlineBodies,
    probes: {
      probe: (...args) => life.guard(programs.probe(...args)),
      post: () => life.guard(programs.post()),
      read: () => life.guard(programs.read()),
    },
    metrics: { expose: async () => ({ contentType: 'text/plain', text: '' }) },
    machine: {
      parts: async () => machine.parts,
      gpuUse: () => new Map(),
      memory: () => machine.memory,
      disk: async () => null,
    },
    gpuMeter: machine.gpus?.meter(() => machine.parts.gpus),
    gpuSuspender: machine.gpus?.suspender(() => life.over),
    spill: null,
    consoleFiles: null,
    models: null,
    volumes: { create: async () => {}, remove: async () => {}, path: id => `/volumes/${id}` },
    emit: (name, fields) => {
      if (!life.over) emit(name, fields)
    },
    time: clock,
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
  const pausing = { maxPauseMs: MAX_PAUSE_MS, maxPaused: 3 }
  const config = { rateWindows: [], drainTimeoutMs: DRAIN_MS, placing, pausing, freezing, requestQueueLimits: limits }
  const addresses = { publicUrl: 'http://server.sim', queueUrl: 'http://server.sim', workerUrl: options.workerUrl }
  const app = createApp(ports, config, addresses, loops)
  const requestQueues: BalancedRequestQueues = checker.watch(
    mutateRequestQueues?.wrap?.(app.requestQueues) ?? app.requestQueues,
  )
  const gateway = new SimGateway({ reservations: requestQueues, life, at: address => programs.at(address) })
  const offered = app.fetch()
  const surface: Surface = (request, env) =>
    isForApplication(request.url) ? gateway.serve(request) : offered(request, env)
  return { app, driver, close, notifier, surface, resume: () => resumeTime({ store, time: clock, emit: ports.emit }) }
}

/** Makes the key of all clients valid, and starts the application. @param listen called once requests may arrive */
export async function startApp({ app, resume }: AppRun, listen: () => void): Promise<void> {
  await resume()
  await app.services.access.ensureKeys(DEFAULT_OWNER, [{ name: 'main', key: API_KEY, scope: FULL_SCOPE }])
  listen()
  await app.start()
}

function gatedDriver(driver: Driver, life: Life): Driver {
  const call = life.call.bind(life)
  return {
    name: driver.name,
    readsModels: image => driver.readsModels(image),
    placedBy: image => driver.placedBy(image),
    nameFor: image => driver.nameFor(image),
    savedImage: image => driver.savedImage(image),
    check: (...args) => call(() => driver.check(...args)),
    start: (...args) => call(() => driver.start(...args)),
    adopt: (...args) => call(() => driver.adopt(...args)),
    observe: worker => call(() => driver.observe(worker)),
    address: worker => call(() => driver.address(worker)),
    freeze: worker => call(() => driver.freeze(worker)),
    thaw: worker => call(() => driver.thaw(worker)),
    processes: worker => call(() => driver.processes(worker)),
    terminate: worker => call(() => driver.terminate(worker)),
    kill: worker => call(() => driver.kill(worker)),
    release: worker => call(() => driver.release(worker)),
    capacity: () => call(() => driver.capacity()),
    keepsApart: () => driver.keepsApart(),
    isolation: (handle, recorded) => driver.isolation(handle, recorded),
    tidy: (...args) => call(() => driver.tidy(...args)),
  }
}

/**
 * The notifier of one run of the server. Notifications are lost, late or doubled with the
 * probabilities of the world's faults.
 */
function createFaultyNotifier(world: World, life: Life, run: number): Notifier {
  const notifier = createNotifier({ onError: error => world.report(`a listener threw ${error}`) })
  const random = world.random(`notifier ${run}`)
  return {
    subscribe: (topic, listener) => notifier.subscribe(topic, listener),
    publish(topic) {
      const { lostWake, lateWake, doubledWake } = world.faults
      const roll = random.fraction()
      if (roll < lostWake) {
        world.count('lost wake-ups')
        return
      }
      if (roll < lostWake + lateWake) {
        world.count('late wake-ups')
        life.after(random.int(1, 3_000), () => notifier.publish(topic))
        return
      }
      notifier.publish(topic)
      if (roll < lostWake + lateWake + doubledWake) life.after(random.int(0, 500), () => notifier.publish(topic))
    },
  }
}
