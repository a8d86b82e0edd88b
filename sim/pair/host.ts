import type { Emit } from '../../src/events.ts'
import type { Driver } from '../../src/ports/driver.ts'
import type { Leader } from '../../src/ports/leader.ts'
import type { Ports } from '../../src/ports/ports.ts'
import type { Store } from '../../src/ports/store/store.ts'
import { LeasedCandidate } from '../../src/system/coordination/lease-candidate.ts'
import type { FencedTerm } from '../../src/system/coordination/lease-term.ts'
import { ServerClock } from '../../src/system/server-clock.ts'
import { type AppRun, type AppRunParts, openAppRun, startApp } from '../app-run.ts'
import type { TermChecker } from '../checks/term-checker.ts'
import type { Receiver } from '../faults/receiver.ts'
import { Life } from '../life.ts'
import type { Network, Surface } from '../network.ts'
import type { Database } from '../store.ts'
import type { World } from '../world.ts'
import type { DatabaseClock } from './database-clock.ts'
import { HostClock } from './host-clock.ts'
import { LEASE_MS, type LeaseRow } from './lease-row.ts'
import { LinkedStore, type StrikePoint } from './linked-store.ts'
import { deposedError, linkError, StoreLink } from './store-link.ts'

/** Origin that workers call; the same for both servers. */
const WORKER_URL = 'http://servers.sim'
/** Wait of a deposed server for the work that it began. */
const LET_GO_MS = 2_000
/** Pause of a server whose term could not begin before it tries again. */
const AGAIN_MS = 1_000

/** A mistake in how servers take turns, to test the checkers. */
export interface PairMutation {
  /** False for changes of the store that do not assert their epoch. */
  readonly isFenced?: false
  /** False for a lease that is taken before it has run out. */
  readonly checksExpiry?: false
  /** Mistake of a server that is deposed. */
  readonly term?: 'keeps its loops' | 'ends its workers'
}

/** Parts that both servers use. */
export interface HostParts extends AppRunParts {
  readonly world: World
  readonly database: Database
  readonly network: Network
  readonly receiver: Receiver
  readonly mutate: PairMutation | undefined
  readonly mutateStore: ((database: Database) => Store) | undefined
}

/** The lease over which the servers compete, and who watches. */
export interface Lease {
  readonly row: LeaseRow
  readonly terms: TermChecker
  /** The clock of the database. */
  readonly clock: DatabaseClock
  /** The application of an epoch published an event. */
  readonly emit: (epoch: number, ...event: Parameters<Emit>) => void
  /** The process of the active server has ended. */
  readonly ended: () => void
  /** The application of the active server has started. */
  readonly started: (server: string) => void
  /** Run time of the process of a server at the beginning of the epoch after this one; null before it. */
  readonly ranAtNext: (server: string, epoch: number) => number | null
}

/** The time in which a server is active. */
interface RunningTerm {
  readonly term: FencedTerm
  readonly run: AppRun
  readonly linked: LinkedStore
  /** Run time of the process at which it noticed that it is deposed; null before that. */
  deposedAtRanMs: number | null
}

/** One process of a server, from its start to its end. */
interface Process {
  readonly life: Life
  readonly random: Ports['random']
  surface: Surface
  current: RunningTerm | null
  /** Total time in which it stood still. */
  stoodMs: number
  stoodSinceMs: number | null
  readonly startMs: number
  stopping: boolean
}

/**
 * One of two servers: a machine with clocks of its own, and a process that stands by, becomes active, and is deposed.
 */
export class Host {
  readonly name: string
  readonly clock: HostClock
  readonly link: StoreLink
  /** True if its application has started in the present term. */
  ready = false
  readonly #parts: HostParts
  readonly #lease: Lease
  #process: Process | null = null
  #starts = 0

  constructor(parts: HostParts, lease: Lease, name: string) {
    this.name = name
    this.#parts = parts
    this.#lease = lease
    this.clock = new HostClock(parts.world.clock, `machine ${name}`)
    this.link = new StoreLink(parts.world, name)
  }

  /** True if its process exists. */
  get up(): boolean {
    return this.#process !== null
  }

  /** True if its process is paused. */
  get paused(): boolean {
    return this.#process?.life.frozen === true
  }

  /** True if its process stops in order. */
  get stopping(): boolean {
    return this.#process?.stopping === true
  }

  /** True if it runs and reaches the store. */
  get well(): boolean {
    return this.up && !this.paused && this.link.state === 'whole' && !this.link.losesAnswers
  }

  /** Epoch in which it believes to act; null without one. */
  get epoch(): number | null {
    return this.#process?.current?.term.epoch ?? null
  }

  /** Starts the process, which stands by at first. */
  start(): void {
    if (this.#process !== null) return
    const { world, network } = this.#parts
    this.#starts += 1
    const process: Process = {
      life: new Life(world.clock),
      random: world.random(`server ${this.name} ${this.#starts}`),
      surface: standbySurface,
      current: null,
      stoodMs: 0,
      stoodSinceMs: null,
      startMs: world.clock.monotonic(),
      stopping: false,
    }
    this.#process = process
    world.trace.add('server', `${this.name} starts`)
    network.connect((request, env) => process.surface(request, env), process.life, this.name)
    void this.#live(process)
  }

  /** Kills the process. */
  crash(): void {
    if (this.#process === null) return
    this.#parts.world.trace.add('server', `${this.name} crashes`)
    this.#parts.world.disturb(`crashes of ${this.#role()}`)
    this.#end()
  }

  /** Ends the term of the active server and begins another one; here in another process. */
  async renew(): Promise<void> {
    await this.stop(true)
    this.start()
  }

  /** Stops the process. @param leaves true if the workers go on, for the server that takes over */
  async stop(leaves: boolean): Promise<void> {
    const process = this.#process
    if (process === null) return
    const { world } = this.#parts
    world.trace.add('server', `${this.name} ${leaves ? 'leaves' : 'stops'}`)
    world.disturb(`${leaves ? 'departures' : 'stops'} of ${this.#role()}`)
    const { current, life } = process
    this.ready = false
    process.stopping = true
    if (current !== null) {
      const { app } = current.run
      try {
        await life.guard(leaves ? app.abandon() : app.stop(new AbortController().signal))
        await current.term.close()
      } catch (error) {
        world.trace.add('server', `${this.name} did not stop in order: ${error}`)
      }
    }
    if (this.#process === process) this.#end()
  }

  /** The process stands still, as after SIGSTOP. */
  pause(): void {
    const process = this.#process
    if (process === null || process.life.frozen) return
    const { world } = this.#parts
    world.trace.add('server', `${this.name} stands still`)
    world.disturb(`pauses of ${this.#role()}`)
    process.stoodSinceMs = world.clock.monotonic()
    process.life.freeze()
  }

  /** The process goes on where it was. */
  resume(): void {
    const process = this.#process
    if (process === null || !process.life.frozen) return
    const { world } = this.#parts
    world.trace.add('server', `${this.name} goes on`)
    process.stoodMs += world.clock.monotonic() - (process.stoodSinceMs ?? 0)
    process.stoodSinceMs = null
    process.life.thaw()
  }

  /** Arms an action at one of the next changes of the store; null disarms it. */
  strikeAt(point: StrikePoint | null): void {
    this.#process?.current?.linked.strikeAt(point)
  }

  /** Notifies the application that the parts of the machine changed. */
  machineChanged(): void {
    this.#process?.current?.run.notifier.publish('machine')
  }

  #role(): string {
    return this.epoch === this.#lease.row.state.epoch ? 'the active server' : 'the other server'
  }

  #end(): void {
    const process = this.#process
    if (process === null) return
    const wasActive = this.epoch === this.#lease.row.state.epoch
    this.#process = null
    this.ready = false
    process.life.end()
    process.current?.run.close()
    this.#parts.network.disconnect(this.name)
    if (wasActive) this.#lease.ended()
  }

  async #live(process: Process): Promise<void> {
    const { life } = process
    const candidate = new LeasedCandidate({
      lease: this.#lease.row.over(this.link, life),
      server: { pid: 1, host: this.name, url: null, machine: 'sim', boundToMachine: true, instance: this.name },
      clock: this.#ports(process).clock,
      leaseMs: LEASE_MS,
      database: 'sim',
      unique: () => process.random.uuid(),
    })
    for (;;) {
      const term = await life.guard(candidate.lead(new AbortController().signal))
      // The answer that the lease was taken has its way back, too.
      await life.sleep(1)
      await this.#serve(process, term)
      await life.sleep(AGAIN_MS)
    }
  }

  /** One term. Resolves when it is over. */
  async #serve(process: Process, term: FencedTerm): Promise<void> {
    const { world, mutate } = this.#parts
    const { life } = process
    const current = this.#openTerm(process, term)
    process.current = current
    const deposed = new Promise<void>(resolve => {
      term.watch(now => {
        world.trace.add('server', `${this.name} is ${now} in epoch ${term.epoch}`)
        if (now !== 'deposed') return
        current.deposedAtRanMs = this.#ranMs(process)
        resolve()
      })
    })
    const { run } = current
    try {
      const started = startApp(run, () => {
        process.surface = run.surface
      }).then(() => {
        if (process.current === current && current.deposedAtRanMs === null) this.#started()
      })
      await life.guard(Promise.race([started, deposed]))
      await life.guard(deposed)
    } catch (error) {
      world.trace.add('server', `${this.name} could not begin epoch ${term.epoch}: ${error}`)
      this.#lease.terms.startFailed()
      await term.close().catch(() => {})
    }
    this.ready = false
    process.surface = standbySurface
    if (mutate?.term === 'keeps its loops') return
    if (mutate?.term === 'ends its workers') {
      for (const worker of this.#parts.platform.running()) {
        this.#acts(process, current, `stops worker ${worker}`)
        await run.driver.terminate(worker)
      }
    }
    process.current = null
    run.close()
    await Promise.race([run.app.abandon(), life.sleep(LET_GO_MS)])
  }

  #started(): void {
    this.ready = true
    this.#parts.world.trace.add('server', `${this.name} is active in epoch ${this.epoch}`)
    this.#lease.started(this.name)
  }

  #openTerm(process: Process, term: FencedTerm): RunningTerm {
    const { world, database, receiver, mutate, mutateStore } = this.#parts
    const { row, terms } = this.#lease
    const { life } = process
    const epoch = term.epoch
    const isCurrent = () => row.state.epoch === epoch
    const store = this.#lease.clock.over(
      database.connect({
        enter: () => {
          if (isCurrent() || mutate?.isFenced === false) return terms.wrote(this.name, epoch, row.state)
          world.disturbances += 1
          // The process learns it with the answer.
          queueMicrotask(() => life.deliver(() => term.fence.lost()))
          throw deposedError()
        },
        isReported: () => !life.over && this.link.state === 'whole' && !this.link.losesAnswers,
        lostResult: linkError,
      }),
    )
    const linked = new LinkedStore(world, life, this.link, mutateStore?.({ ...database, store }) ?? store, isRead => {
      if (!isRead) this.#asks(process, current, 'changes the store')
    })
    const emit: Emit = (...event) => this.#lease.emit(epoch, ...event)
    const run = openAppRun(world, this.#parts, {
      ...this.#ports(process),
      random: process.random,
      store: linked.store,
      leader: mutate?.term === 'keeps its loops' ? careless(term) : term,
      outbound: receiver.outbound(life, isCurrent),
      emit,
      number: epoch,
      workerUrl: WORKER_URL,
      around: {
        inside: driver => onChange(driver, act => this.#acts(process, current, act)),
        outside: driver => onChange(driver, act => this.#asks(process, current, act)),
      },
    })
    const current: RunningTerm = { term, run, linked, deposedAtRanMs: null }
    return current
  }

  /** The clock and life of a process. */
  #ports({ life }: Process) {
    const { clock } = this
    return {
      life,
      // The lease has a clock of its own: a takeover sets that of the application.
      clock: new ServerClock(clock, life.after.bind(life)),
    }
  }

  #acts(process: Process, current: RunningTerm, act: string): void {
    const atNextMs = this.#lease.ranAtNext(this.name, current.term.epoch)
    const ranMs = atNextMs === null ? null : this.#ranMs(process) - atNextMs
    this.#lease.terms.acted(this.name, act, ranMs, current.deposedAtRanMs !== null)
  }

  #asks(process: Process, current: RunningTerm, act: string): void {
    if (current?.deposedAtRanMs == null) return
    this.#lease.terms.asked(this.name, act, this.#ranMs(process) - current.deposedAtRanMs)
  }

  /** Run time of a process, without the time in which it was paused. */
  #ranMs({ startMs, stoodMs, stoodSinceMs }: Process): number {
    const nowMs = this.#parts.world.clock.monotonic()
    return nowMs - startMs - stoodMs - (stoodSinceMs === null ? 0 : nowMs - stoodSinceMs)
  }

  /** Run time of the present process; 0 without a process. */
  get ranMs(): number {
    return this.#process === null ? 0 : this.#ranMs(this.#process)
  }
}

/** The calls of a driver that do something to a worker. */
function onChange(driver: Driver, called: (act: string) => void): Driver {
  return {
    ...driver,
    start: (spec, watch) => {
      called(`starts worker ${spec.workerId}`)
      return driver.start(spec, watch)
    },
    freeze: worker => {
      called(`freezes worker ${worker}`)
      return driver.freeze(worker)
    },
    terminate: worker => {
      called(`stops worker ${worker}`)
      return driver.terminate(worker)
    },
    kill: worker => {
      called(`kills worker ${worker}`)
      return driver.kill(worker)
    },
  }
}

/** A term that does not report its end, to test the checkers. */
function careless(term: FencedTerm): Leader {
  return { isLeader: () => true, confirm: async () => true, watch: changed => term.watch(changed) }
}

/** Response of a standby server to every request. */
const standbySurface: Surface = async () =>
  Response.json({ error: 'this server stands by; try again' }, { status: 503, headers: { 'retry-after': '2' } })
