import type { WorkerId } from '../src/core/ids.ts'
import type { Checks } from './checks/checks.ts'
import { Life } from './life.ts'
import type { SimMachine } from './machine.ts'
import type { Operator } from './operator.ts'
import type { SeededRandom } from './random.ts'
import type { Server } from './server.ts'
import { NO_FAULTS, type World } from './world.ts'

/** Whom a director directs. */
export interface Cast {
  readonly server: Server
  readonly operator: Operator
  readonly checks: Checks
  readonly machine: SimMachine
  /** The workers whose processes run. */
  readonly running: () => WorkerId[]
  readonly kill: (worker: WorkerId) => void
}

/** Says when what goes wrong: first all is well, then faults and restarts come, then all is well again and must become so. */
export class Director {
  /** Whether the faults are over and everything that the director has disturbed is as it was. */
  calm = false
  readonly #world: World
  readonly #cast: Cast
  readonly #random: SeededRandom
  /** Apart, so that all else stays as it is for a seed. */
  readonly #leads: SeededRandom
  readonly #life: Life
  #faultsOver = false

  constructor(world: World, cast: Cast) {
    this.#world = world
    this.#cast = cast
    this.#random = world.random('director')
    this.#leads = world.random('leads')
    this.#life = new Life(world.clock)
  }

  /** The whole play. @param curtain called when the endpoints are there and the clients may come */
  async play(curtain: () => void): Promise<void> {
    const { server, operator } = this.#cast
    const random = this.#random
    if (!(await server.start())) throw new Error('the server does not start in a world without faults')
    await operator.setUp(random.int(2, 4))
    await operator.setUpBalanced(random.int(0, 2))
    this.#unleash()
    curtain()
    const playMs = random.int(150_000, 230_000)
    for (let n = random.int(1, 2); n > 0; n -= 1) {
      this.#life.after(random.int(10_000, playMs - 20_000), () => this.#endServer())
    }
    for (let n = random.int(1, 4); n > 0; n -= 1) {
      this.#life.after(random.int(5_000, playMs - 40_000), () => void operator.disturb())
    }
    if (random.chance(0.4)) this.#life.after(random.int(5_000, playMs - 60_000), () => void this.#breakImages())
    for (let n = random.int(0, 2); n > 0; n -= 1) {
      this.#life.after(random.int(5_000, playMs - 30_000), () => void this.#troubleStore())
    }
    for (let n = random.int(0, 2); n > 0; n -= 1) this.#life.after(random.int(5_000, playMs), () => this.#setClock())
    if (random.chance(0.4)) this.#life.after(random.int(5_000, playMs - 60_000), () => void this.#breakCard())
    if (this.#leads.chance(0.5)) this.#life.after(this.#leads.int(5_000, playMs - 40_000), () => void this.#loseLead())
    await this.#life.sleep(playMs)
    this.#faultsOver = true
    this.#world.faults = NO_FAULTS
    this.#world.trace.add('director', 'the faults are over')
    while (!server.ready || !operator.idle) await this.#life.sleep(500)
    this.calm = true
  }

  /** The server has ended; somebody will start it again. */
  restartLater(): void {
    const random = this.#random
    this.#cast.checks.serverGone()
    const downMs = random.chance(0.2) ? random.int(10_000, 40_000) : random.int(300, 5_000)
    this.#life.after(downMs, () => void this.#startServer())
    if (random.chance(0.3)) this.#life.after(Math.floor(downMs / 2), () => this.#loseWorkers())
  }

  async #startServer(): Promise<void> {
    const { server } = this.#cast
    if (server.up) return
    if (!this.#faultsOver && this.#random.chance(0.15)) server.workerUrl = `http://server-${server.starts + 1}.sim`
    const started = server.start()
    // Sometimes it falls again on its first steps.
    if (!this.#faultsOver && this.#random.chance(0.2))
      server.crashAt({ writes: this.#random.int(1, 12), when: 'after' })
    if (!(await started)) this.#life.after(1_000, () => void this.#startServer())
  }

  #unleash(): void {
    const random = this.#random
    const harshness = random.chance(0.2) ? 4 : 1
    const upTo = (most: number) => (random.chance(0.3) ? 0 : Math.min(0.9, harshness * random.fraction() * most))
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
    const { server } = this.#cast
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

  /** A busy disk, or one that fails for a while. */
  async #troubleStore(): Promise<void> {
    const random = this.#random
    const isBroken = random.chance(0.4)
    this.#world.count(isBroken ? 'failures of the disk' : 'busy disks')
    this.#world.troubleStore(isBroken ? 0 : random.int(5, 30), isBroken)
    await this.#life.sleep(isBroken ? random.int(500, 6_000) : random.int(3_000, 10_000))
    this.#world.troubleStore(0, false)
  }

  /** The connection that holds the lead breaks, and is made again. */
  async #loseLead(): Promise<void> {
    this.#world.count('losses of the lead')
    this.#world.lead(false)
    await this.#life.sleep(this.#leads.int(200, 15_000))
    this.#world.lead(true)
  }

  /** A card falls off, and comes back after a restart of its driver. */
  async #breakCard(): Promise<void> {
    const { machine, server } = this.#cast
    machine.breakCard()
    server.machineChanged()
    await this.#life.sleep(this.#random.int(5_000, 40_000))
    machine.mend()
    server.machineChanged()
  }

  /** Somebody sets the clock of the machine: forwards by minutes, or backwards by a little. */
  #setClock(): void {
    const random = this.#random
    const byMs = random.chance(0.5) ? random.int(10_000, 300_000) : -random.int(50, 20_000)
    this.#world.count('set clocks')
    this.#world.trace.add('director', `the clock is set by ${byMs} ms`)
    this.#world.clock.jump(byMs)
  }

  /** While nobody looks. */
  #loseWorkers(): void {
    for (const worker of this.#cast.running()) {
      if (!this.#random.chance(0.5)) continue
      this.#world.count('workers lost while the server was away')
      this.#cast.kill(worker)
    }
  }
}
