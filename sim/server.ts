import type { Emit } from '../src/events.ts'
import type { Clock, ServerTime } from '../src/ports/clock.ts'
import type { Leader } from '../src/ports/leader.ts'
import type { Ports } from '../src/ports/ports.ts'
import { layered } from '../src/ports/store/operations.ts'
import type { Store } from '../src/ports/store/store.ts'
import { createFence } from '../src/system/coordination/leader.ts'
import { type MachineClocks, ServerClock } from '../src/system/server-clock.ts'
import { type AppRun, type AppRunParts, openAppRun, startApp } from './app-run.ts'
import type { Receiver } from './faults/receiver.ts'
import { type CrashPoint, StoreGate } from './faults/store-gate.ts'
import { Life } from './life.ts'
import type { Network } from './network.ts'
import type { World } from './world.ts'

/** Parts that a server uses; they outlive each run of the server. */
export interface ServerParts extends AppRunParts {
  readonly store: Store
  readonly network: Network
  readonly random: Ports['random']
  readonly receiver: Receiver
  readonly emit: Emit
  /** True if the server uses the wall clock of the machine, to test the checkers. */
  readonly goesByMachine: boolean
  /** Called when the server has ended. */
  readonly crashed: () => void
}

interface Run extends AppRun {
  readonly life: Life
  readonly gate: StoreGate
}

/** The server: the real application, started again on the same store after each end. */
export class Server {
  readonly #world: World
  readonly #parts: ServerParts
  #run: Run | null = null
  /** True if it has finished starting. */
  ready = false
  starts = 0
  /** The origin that workers call. */
  workerUrl = 'http://server-1.sim'

  constructor(world: World, parts: ServerParts) {
    this.#world = world
    this.#parts = parts
  }

  /** True if it runs or is stopping. */
  get up(): boolean {
    return this.#run !== null
  }

  /** Starts it. Returns false if the start failed or the server ended during it. */
  async start(): Promise<boolean> {
    const run = this.#open()
    this.#run = run
    this.starts += 1
    this.#world.trace.add('server', `start ${this.starts} at ${this.workerUrl}`)
    try {
      await startApp(run, () => this.#parts.network.connect(run.surface, run.life))
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

  /** Ends its term, which leaves the workers, and begins another one; here in another run. */
  async renew(): Promise<void> {
    const run = this.#run
    if (run === null) return
    this.ready = false
    this.#world.trace.add('server', 'renews its term')
    await run.life.guard(run.app.handOver(1_000, new AbortController().signal)).catch(() => {})
    this.#world.disturbances += 1
    this.#end(run)
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
    run.close()
    this.#parts.network.disconnect()
    this.#parts.requestQueues.serverEnded()
  }

  #open(): Run {
    const { store, random, receiver, emit } = this.#parts
    const { clock } = this.#world
    const life = new Life(clock)
    const gate = new StoreGate(this.#world, store, life, () => this.crash())
    const leader = createFaultyLeader(this.#world)
    const machine = {
      wall: () => clock.wall(),
      monotonic: () => clock.monotonic(),
      sinceBoot: () => clock.monotonic(),
      boot: 'the only one',
    }
    const run = openAppRun(this.#world, this.#parts, {
      life,
      clock: this.#parts.goesByMachine ? byMachine(machine, life) : new ServerClock(machine, life.after.bind(life)),
      random,
      store: layered(gate.store, createFence(leader)),
      leader,
      outbound: receiver.outbound(life),
      emit,
      number: this.starts,
      workerUrl: this.workerUrl,
    })
    return { ...run, life, gate }
  }
}

/** A time that follows every step, to test the checkers. */
function byMachine({ wall, monotonic }: MachineClocks, life: Life): Clock & ServerTime {
  const read = () => ({ nowMs: wall(), machineMs: wall(), step: null })
  const mark = () => ({ boot: '', sinceBootMs: 0, nowMs: wall(), step: null })
  return { now: wall, monotonic, after: life.after.bind(life), read, mark, resume: () => {} }
}

/** A leader that sometimes cannot confirm that it leads. No other server takes the lead in the meantime. */
function createFaultyLeader(world: World): Leader {
  return {
    isLeader: () => world.leading,
    async confirm() {
      // A change that belongs to something that has happened already is not made.
      if (!world.leading) world.disturbances += 1
      return world.leading
    },
    watch: changed => world.watchLead(leading => changed(leading ? 'active' : 'unsure', null)),
  }
}
