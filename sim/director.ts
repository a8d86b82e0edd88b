import type { WorkerId } from '../src/core/ids.ts'
import { CLOCK_STEP_MS } from '../src/core/server-time.ts'
import type { Checks } from './checks/checks.ts'
import type { Cluster } from './kubernetes/cluster.ts'
import { ClusterFaults } from './kubernetes/cluster-faults.ts'
import { Life } from './life.ts'
import type { SimMachine } from './machine.ts'
import type { Operator } from './operator.ts'
import type { Pair } from './pair/pair.ts'
import type { SeededRandom } from './random.ts'
import type { Server } from './server.ts'
import { NO_FAULTS, type World } from './world.ts'

/** The servers of a run, whether one or two. */
export interface Servers {
  /** True if one of them has started and serves. */
  readonly ready: boolean
  start(): Promise<boolean>
  machineChanged(): void
}

/** Parts that a director controls. */
export interface DirectorParts {
  readonly servers: Servers
  /** The only server, which the director ends and starts again; null where there are two. */
  readonly server: Server | null
  /** Two servers, which have faults of their own; null where there is one. */
  readonly pair: Pair | null
  /** The cluster of the workers, which has faults of its own; null without a cluster. */
  readonly cluster: Cluster | null
  readonly operator: Operator
  readonly checks: Checks
  readonly machine: SimMachine
  /** Ends the faults of starts. */
  readonly restoreStarts: () => void
  /** The workers whose processes run. */
  readonly running: () => WorkerId[]
  readonly kill: (worker: WorkerId) => void
}

/** Sizes of the settings of a wall clock. */
const CLOCK_STEPS_MS = [
  [50, CLOCK_STEP_MS],
  [10_000, 300_000],
  [3_600_000, 5 * 3_600_000],
  [365 * 86_400_000, 400 * 86_400_000],
] as const

/**
 * Schedules the faults of a run: first a calm phase, then faults and restarts, then a calm phase in
 * which all work must finish.
 */
export class Director {
  /** True if the faults are over and all that the director disturbed is restored. */
  calm = false
  readonly #world: World
  readonly #parts: DirectorParts
  readonly #random: SeededRandom
  /** Separate, so that the other draws of a seed stay the same. */
  readonly #leads: SeededRandom
  readonly #life: Life
  #faultsOver = false

  constructor(world: World, parts: DirectorParts) {
    this.#world = world
    this.#parts = parts
    this.#random = world.random('director')
    this.#leads = world.random('leads')
    this.#life = new Life(world.clock)
  }

  /** Runs all stages. @param onReady called when the endpoints exist and the clients may start */
  async run(onReady: () => void): Promise<void> {
    const { servers, operator, pair, cluster } = this.#parts
    const random = this.#random
    if (!(await servers.start())) throw new Error('the server does not start in a world without faults')
    await operator.setUp(random.int(2, 4))
    await operator.setUpBalanced(random.int(0, 2))
    this.#drawFaults()
    onReady()
    const faultsMs = random.int(150_000, 230_000)
    for (let n = random.int(1, 2); n > 0; n -= 1) {
      this.#life.after(random.int(10_000, faultsMs - 20_000), () => this.#endServer())
    }
    for (let n = random.int(1, 4); n > 0; n -= 1) {
      this.#life.after(random.int(5_000, faultsMs - 40_000), () => void operator.disturb())
    }
    if (random.chance(0.4)) this.#life.after(random.int(5_000, faultsMs - 60_000), () => void this.#breakImages())
    for (let n = random.int(0, 2); n > 0; n -= 1) {
      this.#life.after(random.int(5_000, faultsMs - 30_000), () => void this.#degradeStore())
    }
    for (let n = random.int(0, 3); n > 0; n -= 1) this.#life.after(random.int(5_000, faultsMs), () => this.#setClock())
    if (random.chance(0.4)) this.#life.after(random.int(5_000, faultsMs - 60_000), () => void this.#breakGpu())
    for (let n = this.#world.suspends ? random.int(1, 4) : 0; n > 0; n -= 1)
      this.#life.after(random.int(5_000, faultsMs - 40_000), () => void this.#useForeign())
    if (pair === null && this.#leads.chance(0.5))
      this.#life.after(this.#leads.int(5_000, faultsMs - 40_000), () => void this.#loseLead())
    pair?.schedule(faultsMs)
    const clusterFaults = cluster === null ? null : new ClusterFaults(this.#world, cluster)
    clusterFaults?.schedule(faultsMs)
    await this.#life.sleep(faultsMs)
    this.#faultsOver = true
    this.#world.faults = NO_FAULTS
    pair?.restore()
    this.#parts.restoreStarts()
    this.#parts.machine.endForeign()
    clusterFaults?.restore()
    this.#world.trace.add('director', 'the faults are over')
    while (!servers.ready || !operator.idle) await this.#life.sleep(500)
    this.calm = true
  }

  /** The server ended. Starts it again later. */
  restartLater(): void {
    const random = this.#random
    this.#parts.checks.serverEnded()
    const downMs = random.chance(0.2) ? random.int(10_000, 40_000) : random.int(300, 5_000)
    this.#life.after(downMs, () => void this.#startServer())
    if (random.chance(0.3)) this.#life.after(Math.floor(downMs / 2), () => this.#loseWorkers())
  }

  async #startServer(): Promise<void> {
    const { server } = this.#parts
    if (server === null || server.up) return
    if (!this.#faultsOver && this.#random.chance(0.15)) server.workerUrl = `http://server-${server.starts + 1}.sim`
    const started = server.start()
    // Sometimes it crashes again while it starts.
    if (!this.#faultsOver && this.#random.chance(0.2))
      server.crashAt({ writes: this.#random.int(1, 12), when: 'after' })
    if (!(await started)) this.#life.after(1_000, () => void this.#startServer())
  }

  #drawFaults(): void {
    const random = this.#random
    const harshness = random.chance(0.2) ? 4 : 1
    const upTo = (maximum: number) => (random.chance(0.3) ? 0 : Math.min(0.9, harshness * random.fraction() * maximum))
    this.#world.faults = {
      lostRequest: upTo(0.03),
      lostAnswer: upTo(0.03),
      vanishedAnswer: upTo(0.008),
      doubtedAnswer: upTo(0.01),
      delay: upTo(0.03),
      commit: upTo(0.01),
      commitAfter: upTo(0.01),
      start: upTo(0.1),
      worker: upTo(0.6),
      lostWake: upTo(0.02),
      lateWake: upTo(0.03),
      doubledWake: upTo(0.1),
      receiver: upTo(0.6),
    }
    this.#world.trace.add('director', `faults ${JSON.stringify(this.#world.faults)}`)
  }

  #endServer(): void {
    const { server } = this.#parts
    if (server === null) return
    const roll = this.#random.fraction()
    if (roll < 0.25) void server.stop()
    else if (roll < 0.4) server.crash()
    else server.crashAt({ writes: this.#random.int(1, 25), when: this.#random.pick(['before', 'after']) })
  }

  async #breakImages(): Promise<void> {
    this.#world.count('crash loops')
    this.#world.crashLoop = true
    await this.#life.sleep(this.#random.int(5_000, 25_000))
    this.#world.crashLoop = false
  }

  /** Makes the disk slow or broken for a while. */
  async #degradeStore(): Promise<void> {
    const random = this.#random
    const isBroken = random.chance(0.4)
    this.#world.count(isBroken ? 'failures of the disk' : 'busy disks')
    this.#world.degradeStore(isBroken ? 0 : random.int(5, 30), isBroken)
    await this.#life.sleep(isBroken ? random.int(500, 6_000) : random.int(3_000, 10_000))
    this.#world.degradeStore(0, false)
  }

  /** Breaks the connection that holds the lead, and restores it. */
  async #loseLead(): Promise<void> {
    this.#world.count('losses of the lead')
    this.#world.lead(false)
    await this.#life.sleep(this.#leads.int(200, 15_000))
    this.#world.lead(true)
  }

  /** Makes a GPU fail, and restores it later. */
  async #breakGpu(): Promise<void> {
    const { machine, servers } = this.#parts
    machine.breakGpu()
    servers.machineChanged()
    await this.#life.sleep(this.#random.int(5_000, 40_000))
    machine.repair()
    servers.machineChanged()
  }

  /** Another program uses a card for a while. */
  async #useForeign(): Promise<void> {
    const { machine } = this.#parts
    machine.useForeign(this.#random.int(2, 20))
    await this.#life.sleep(this.#random.int(2_000, 40_000))
    machine.endForeign()
  }

  /**
   * Sets the wall clock in either direction: by less than servers follow, by minutes, hours or a year.
   * Sometimes it is set right again, but not after the faults: the checks then set the clock themselves.
   */
  #setClock(): void {
    const random = this.#random
    const [least, most] = random.pick(CLOCK_STEPS_MS)
    const byMs = random.int(least, most) * (random.chance(0.5) ? 1 : -1)
    this.#setWall(byMs)
    if (!random.chance(0.3)) return
    this.#life.after(random.int(1_000, 60_000), () => {
      if (!this.#faultsOver) this.#setWall(-byMs)
    })
  }

  #setWall(byMs: number): void {
    this.#world.count(`clocks set by ${Math.abs(byMs) > CLOCK_STEP_MS ? 'a step' : 'a little'}`)
    this.#world.trace.add('director', `the clock is set by ${byMs} ms`)
    this.#world.clock.set(byMs)
  }

  /** Kills workers while the server is down. */
  #loseWorkers(): void {
    for (const worker of this.#parts.running()) {
      if (!this.#random.chance(0.5)) continue
      this.#world.count('workers lost while the server was away')
      this.#parts.kill(worker)
    }
  }
}
