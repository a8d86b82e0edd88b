/**
 * A driver without processes, for tests and the simulator. The workers are in a {@link MockFleet}, which stands for
 * the machine: it outlives the server, and the driver of a server that starts again adopts from it.
 */
import type { EndpointType } from '../../core/endpoints/endpoint.ts'
import { AppError } from '../../core/errors.ts'
import type { WorkerId } from '../../core/ids.ts'
import type { Capacity } from '../../core/scaling/plan.ts'
import { type Isolation, NO_ISOLATION } from '../../core/workers/isolation.ts'
import type { Reclaim, ReportedPlace, WaitForPlace } from '../../core/workers/platform-report.ts'
import type { ServedAt } from '../../core/workers/socket-address.ts'
import { type StartFailure, WorkerStartError } from '../../core/workers/start-failure.ts'
import type { ObservedExit } from '../../core/workers/worker-exit.ts'
import type { Driver, Observation, WorkerSpec } from '../../ports/driver.ts'
import type { ProcessFamily } from '../../ports/gpu-suspender.ts'
import type { Notifier } from '../../ports/notifier.ts'

/** Listeners to the calls of a driver. All are optional. */
export interface MockFleetHooks {
  /** A worker was started. `start` returns when this does; a server may be taken for dead in between. */
  readonly onStart?: (spec: WorkerSpec) => void | Promise<void>
  /** A worker was frozen: nothing of it runs until it is thawed. */
  readonly onFreeze?: (worker: WorkerId) => void
  /** A frozen worker was thawed. */
  readonly onThaw?: (worker: WorkerId) => void
  /** A worker was asked to end; a frozen one is thawed just after. Without this hook it ends at once with code 0. */
  readonly onTerminate?: (worker: WorkerId) => void
  /** A worker was killed; it has ended already. */
  readonly onKill?: (worker: WorkerId) => void
  /** The processes of a worker, to suspend them; none are known without this hook. */
  readonly processes?: (worker: WorkerId) => ProcessFamily | null
  /**
   * The place of a worker at its start. With it the fleet is a platform that places workers by itself, and not a
   * machine.
   */
  readonly arrival?: (spec: WorkerSpec) => MockArrival
}

/** Options of a driver over a {@link MockFleet}. */
export interface MockDriverOptions {
  readonly notifier: Notifier
  /** Room for workers by the number of those that run; as many as wanted unless given. */
  readonly capacity?: (running: number) => Capacity
  /** The failure of an image and arguments that can never be started; none has one unless given. */
  readonly check?: (image: string, args: string, type?: EndpointType) => StartFailure | null
  /** The reason why workers of different accounts are not kept apart; null, as when left out, when they are. */
  readonly sharing?: string | null
}

interface MockWorker {
  readonly handle: string
  /** Null on a machine. */
  readonly place: MockPlace | null
  exit: ObservedExit | null
}

/** The workers of a machine, and the hand of fate over them. */
export class MockFleet {
  /** Every worker that was ever started, in order. */
  readonly started: WorkerSpec[] = []
  /** Those that were asked to end, and those that were killed. */
  readonly terminated = new Set<WorkerId>()
  readonly killed = new Set<WorkerId>()
  /** Those that are frozen now. */
  readonly frozen = new Set<WorkerId>()
  readonly workers = new Map<WorkerId, MockWorker>()
  readonly listeners = new Set<() => void>()
  readonly #hooks
  #failure: StartFailure | null = null
  #failsFreeze = false
  #failsThaw = false
  #heldFreeze: Promise<void> | null = null

  constructor(hooks: MockFleetHooks = {}) {
    this.#hooks = hooks
  }

  /** Those that run, frozen ones too, in the order of their start. */
  running(): WorkerId[] {
    return [...this.workers].flatMap(([worker, { exit }]) => (exit === null ? [worker] : []))
  }

  /** Those that have ended and were not released: what they left behind is still there. */
  left(): WorkerId[] {
    return [...this.workers].flatMap(([worker, { exit }]) => (exit === null ? [] : [worker]))
  }

  /** The next start, and only that, fails for this reason; null for a start that does not fail. */
  failNextStart(failure: StartFailure | null): void {
    this.#failure = failure
  }

  /** A driver over this fleet, as a server makes one when it starts. */
  driver(options: MockDriverOptions): MockDriver {
    return new MockDriver(this, options)
  }

  /** Ends a worker by itself, with code 0 unless given. Does nothing when it has ended. */
  exit(worker: WorkerId, how: { readonly code?: number | null; readonly signal?: string | null } = {}): void {
    const tracked = this.workers.get(worker)
    if (tracked === undefined || tracked.exit !== null) return
    const signal = how.signal ?? null
    const code = signal === null ? (how.code ?? 0) : null
    this.#end(worker, tracked, { code, signal, cause: { kind: 'ended' } })
  }

  /** The processes of a worker that has not ended; null while they are not known. */
  processes(worker: WorkerId): ProcessFamily | null {
    return this.workers.get(worker)?.exit === null ? (this.#hooks.processes?.(worker) ?? null) : null
  }

  get isPlatform(): boolean {
    return this.#hooks.arrival !== undefined
  }

  /** True where the program of a worker that has not ended can run: on a platform, once it has a place. */
  isPlaced(worker: WorkerId): boolean {
    const tracked = this.workers.get(worker)
    return tracked?.exit === null && tracked.place?.isWaiting !== true
  }

  /** Gives a worker that waits its place on the platform. */
  place(worker: WorkerId, place: ReportedPlace): void {
    this.#livePlace(worker)?.arrive(place)
    this.#notify()
  }

  /** A worker without a place waits for something else now. */
  wait(worker: WorkerId, reason: WaitForPlace): void {
    this.#livePlace(worker)?.wait(reason)
    this.#notify()
  }

  /** The platform announces that it takes a worker away. */
  leave(worker: WorkerId, why: Reclaim): void {
    this.#livePlace(worker)?.leave(why)
    this.#notify()
  }

  /** The platform takes a worker away. */
  reclaim(worker: WorkerId, why: Reclaim): void {
    const tracked = this.workers.get(worker)
    if (tracked === undefined || tracked.exit !== null) return
    this.#end(worker, tracked, { code: null, signal: null, cause: { kind: 'reclaimed', why } })
  }

  #livePlace(worker: WorkerId): MockPlace | null {
    const tracked = this.workers.get(worker)
    return tracked?.exit === null ? tracked.place : null
  }

  #end(worker: WorkerId, tracked: MockWorker, exit: ObservedExit): void {
    tracked.exit = exit
    this.frozen.delete(worker)
    tracked.place?.end()
    this.#notify()
  }

  #notify(): void {
    for (const listener of [...this.listeners]) listener()
  }

  async start(spec: WorkerSpec): Promise<string> {
    const existing = this.workers.get(spec.workerId)
    if (existing !== undefined) return existing.handle
    const failure = this.#failure
    this.#failure = null
    if (failure !== null) throw new WorkerStartError(failure)
    const handle = `mock ${this.started.length}`
    this.started.push(spec)
    const arrival = this.#hooks.arrival?.(spec)
    const worker: MockWorker = { handle, place: arrival === undefined ? null : new MockPlace(arrival), exit: null }
    this.workers.set(spec.workerId, worker)
    if (worker.place?.isWaiting === true) {
      await worker.place.whenSettled()
      if (worker.exit !== null) throw new AppError('conflict', 'it ended before it had a place')
    }
    await this.#hooks.onStart?.(spec)
    return handle
  }

  terminate(worker: WorkerId): void {
    if (this.workers.get(worker)?.exit !== null) return
    this.terminated.add(worker)
    // A program that has no place does not run, so it cannot take its time.
    const isWaiting = this.workers.get(worker)?.place?.isWaiting === true
    if (isWaiting || this.#hooks.onTerminate === undefined) this.exit(worker)
    else this.#hooks.onTerminate(worker)
    this.thaw(worker)
  }

  /** The next call that freezes a worker, and only that, fails. */
  failNextFreeze(): void {
    this.#failsFreeze = true
  }

  /** The next call of the driver that thaws a worker, and only that, fails. */
  failNextThaw(): void {
    this.#failsThaw = true
  }

  /** True if the thaw that begins now has to fail. */
  takeThawFailure(): boolean {
    const fails = this.#failsThaw
    this.#failsThaw = false
    return fails
  }

  /** The next call that freezes a worker, and only that, takes until the returned function is called. */
  holdNextFreeze(): () => void {
    const hold = Promise.withResolvers<void>()
    this.#heldFreeze = hold.promise
    return hold.resolve
  }

  /** The end of the hold on the freeze that begins now; null where it may be done at once. */
  takeHold(): Promise<void> | null {
    const hold = this.#heldFreeze
    this.#heldFreeze = null
    return hold
  }

  freeze(worker: WorkerId): void {
    const fails = this.#failsFreeze
    this.#failsFreeze = false
    if (fails) throw new AppError('unavailable', 'it cannot be frozen now')
    if (this.workers.get(worker)?.exit !== null || this.frozen.has(worker)) return
    this.frozen.add(worker)
    this.#hooks.onFreeze?.(worker)
  }

  thaw(worker: WorkerId): void {
    if (this.frozen.delete(worker)) this.#hooks.onThaw?.(worker)
  }

  kill(worker: WorkerId): void {
    if (this.workers.get(worker)?.exit !== null) return
    this.killed.add(worker)
    this.exit(worker, { signal: 'SIGKILL' })
    this.#hooks.onKill?.(worker)
  }
}

const UNKNOWN_EXIT: ObservedExit = { code: null, signal: null, cause: { kind: 'unseen', when: 'server_away' } }

/** A scripted driver. */
export class MockDriver implements Driver {
  readonly name = 'mock'
  readonly fleet: MockFleet
  readonly #options
  /** Those that this driver started or adopted: it tracks no others. */
  readonly #tracked = new Map<WorkerId, MockWorker>()
  /** Those that this driver has asked to end. */
  readonly #asked = new WeakSet<MockWorker>()
  readonly #listener: () => void
  #isClosed = false

  constructor(fleet: MockFleet, options: MockDriverOptions) {
    this.fleet = fleet
    this.#options = options
    this.#listener = () => options.notifier.publish('fleet')
    fleet.listeners.add(this.#listener)
  }

  savedImage(image: string): string {
    return image
  }

  placedBy(): 'machine' | 'platform' {
    return this.fleet.isPlatform ? 'platform' : 'machine'
  }

  /** A platform has machines of its own. */
  readsModels(): boolean {
    return !this.fleet.isPlatform
  }

  nameFor(_image: string): string {
    return this.name
  }

  async check(image: string, args: string, type?: EndpointType): Promise<StartFailure | null> {
    return this.#options.check?.(image, args, type) ?? null
  }

  async start(spec: WorkerSpec): Promise<string> {
    const failure = await this.check(spec.image, spec.args)
    if (failure !== null) throw new WorkerStartError(failure)
    const starting = this.fleet.start(spec)
    this.#track(spec.workerId)
    if (this.#tracked.get(spec.workerId)?.place?.isWaiting === true) this.#listener()
    try {
      return await starting
    } finally {
      // A server that has died does not go on.
      if (this.#isClosed) await new Promise<never>(() => {})
    }
  }

  async adopt(worker: WorkerId, handle: string | null): Promise<boolean> {
    const running = this.fleet.workers.get(worker)
    if (running === undefined || running.exit !== null || (handle !== null && handle !== running.handle)) return false
    this.#track(worker)
    return true
  }

  /** Worker number n is said to serve at port 20,000 + 2n, and the next where it has two; nothing listens there. */
  async address(worker: WorkerId): Promise<ServedAt | null> {
    const number = this.fleet.started.findIndex(({ workerId }) => workerId === worker)
    const serves = this.fleet.started[number]?.serves ?? null
    const tracked = this.#tracked.get(worker)
    if (tracked?.exit !== null || tracked.place?.isWaiting === true || serves === null) return null
    const traffic = { host: '127.0.0.1', port: 20_000 + 2 * number }
    return { traffic, health: serves.port === serves.healthPort ? traffic : { ...traffic, port: traffic.port + 1 } }
  }

  async observe(worker: WorkerId): Promise<Observation> {
    const tracked = this.#tracked.get(worker)
    if (tracked === undefined) return { state: 'exited', exit: UNKNOWN_EXIT }
    if (tracked.exit !== null) return { state: 'exited', exit: tracked.exit }
    return tracked.place?.observation() ?? { state: 'running' }
  }

  async freeze(worker: WorkerId): Promise<void> {
    const hold = this.fleet.takeHold()
    // Without a hold it is done before the call returns, in the order of the calls.
    if (hold !== null) await hold
    const tracked = this.#tracked.get(worker)
    if (tracked !== undefined && !this.#asked.has(tracked)) this.fleet.freeze(worker)
  }

  async thaw(worker: WorkerId): Promise<void> {
    if (this.fleet.takeThawFailure()) throw new AppError('unavailable', 'it cannot be thawed now')
    if (this.#tracked.has(worker)) this.fleet.thaw(worker)
  }

  async processes(worker: WorkerId): Promise<ProcessFamily | null> {
    return this.#tracked.has(worker) ? this.fleet.processes(worker) : null
  }

  async terminate(worker: WorkerId): Promise<void> {
    const tracked = this.#tracked.get(worker)
    if (tracked === undefined || this.#asked.has(tracked)) return
    this.#asked.add(tracked)
    this.fleet.terminate(worker)
  }

  async kill(worker: WorkerId): Promise<void> {
    if (this.#tracked.has(worker)) this.fleet.kill(worker)
  }

  async release(worker: WorkerId): Promise<void> {
    if (this.#tracked.get(worker)?.exit === null) throw new AppError('conflict', `worker ${worker} still runs`)
    this.#tracked.delete(worker)
    if (this.fleet.workers.get(worker)?.exit !== null) this.fleet.workers.delete(worker)
  }

  keepsApart(): string | null {
    return this.#options.sharing ?? null
  }

  isolation(): Isolation {
    return NO_ISOLATION
  }

  async capacity(): Promise<Capacity> {
    const unlimited = { freeWorkers: null, bound: 'nothing' }
    return this.#options.capacity?.(this.fleet.running().length) ?? unlimited
  }

  async tidy(): Promise<void> {}

  /** Stops reporting the fleet, as a server that has died does. */
  close(): void {
    this.#isClosed = true
    this.fleet.listeners.delete(this.#listener)
  }

  #track(worker: WorkerId): void {
    const existing = this.fleet.workers.get(worker)
    if (existing !== undefined) this.#tracked.set(worker, existing)
  }
}

/** The place of a worker of a mock platform at its start, or its wait for one. */
export type MockArrival = ReportedPlace | WaitForPlace

/** The place of a worker, and the announcement that its platform takes it away. */
export class MockPlace {
  #waits: WaitForPlace | null
  #place: ReportedPlace | null
  #leaves: Reclaim | null = null
  readonly #placed = Promise.withResolvers<void>()

  constructor(arrival: MockArrival) {
    this.#place = 'node' in arrival ? arrival : null
    this.#waits = 'node' in arrival ? null : arrival
    if (this.#place !== null) this.#placed.resolve()
  }

  /** True while it has no place. */
  get isWaiting(): boolean {
    return this.#place === null
  }

  /** Resolves when it has a place, or has ended without one. */
  whenSettled(): Promise<void> {
    return this.#placed.promise
  }

  /** Replaces the reason of its wait. Does nothing once it has a place. */
  wait(reason: WaitForPlace): void {
    if (this.isWaiting) this.#waits = reason
  }

  /** Gives it a place. */
  arrive(place: ReportedPlace): void {
    this.#place ??= place
    this.#waits = null
    this.#placed.resolve()
  }

  /** Its platform is about to take it away. */
  leave(why: Reclaim): void {
    this.#leaves = why
  }

  /** Ends the wait for its place: the worker has ended. */
  end(): void {
    this.#placed.resolve()
  }

  /** The observation of it while it has not ended. */
  observation(): Observation {
    const place = this.#place === null ? {} : { place: this.#place }
    if (this.#leaves !== null) return { state: 'leaving', why: this.#leaves, ...place }
    return this.#waits === null ? { state: 'running', ...place } : { state: 'unplaced', reason: this.#waits }
  }
}
