import type { Emit } from '../../src/events.ts'
import { TermChecker } from '../checks/term-checker.ts'
import { Life } from '../life.ts'
import type { SeededRandom } from '../random.ts'
import { DatabaseClock } from './database-clock.ts'
import { Host, type HostParts, type Lease } from './host.ts'
import { LeaseRow, type LeaseState } from './lease-row.ts'

/** Maximum age of a renewal that a server relies on when it acts outside of the store. */
const FRESH_MS = 1_000

/** Parts that a pair of servers uses. */
export interface PairParts extends HostParts {
  readonly emit: Emit
  /**
   * Called when another server has become active, or the active one has ended: it publishes no
   * events for its last commits.
   */
  readonly over: () => void
}

/** Two servers over one store, of which one is active at a time, and the faults that only they have. */
export class Pair {
  readonly terms: TermChecker
  readonly #parts: PairParts
  readonly #row: LeaseRow
  readonly #hosts: readonly [Host, Host]
  readonly #random: SeededRandom
  readonly #routes: SeededRandom
  readonly #life: Life
  /** Run times of the processes at the beginning of each epoch, by server. */
  readonly #ranAtTake = new Map<number, ReadonlyMap<string, number>>()
  /** Server that requests reach, as a load balancer noticed it. */
  #target = 'a'
  #storeSetByMs = 0
  #areFaultsOver = false

  constructor(parts: PairParts) {
    const { world, network, mutate } = parts
    this.#parts = parts
    this.#random = world.random('pair')
    this.#routes = world.random('load balancer')
    this.#life = new Life(world.clock)
    this.terms = new TermChecker(problem => world.report(problem), FRESH_MS)
    this.#row = new LeaseRow(() => this.#storeMs(), this.#taken.bind(this), mutate?.checksExpiry ?? true)
    const lease: Lease = {
      row: this.#row,
      terms: this.terms,
      clock: new DatabaseClock(world.clock, () => this.#storeMs()),
      emit: this.#emit.bind(this),
      ended: this.#over.bind(this),
      started: server => {
        this.#target = server
      },
      ranAtNext: (server, epoch) => this.#ranAtTake.get(epoch + 1)?.get(server) ?? null,
    }
    this.#hosts = [new Host(parts, lease, 'a'), new Host(parts, lease, 'b')]
    network.route = () => (this.#routes.chance(0.1) ? this.#routes.pick(['a', 'b']) : this.#target)
  }

  /** True if an active server has started and is not stopping. */
  get ready(): boolean {
    const active = this.#active
    return active?.ready === true && active.well
  }

  /** True if the process of the active server is paused, so that it publishes nothing. */
  get paused(): boolean {
    return this.#active?.paused === true
  }

  /** True if the wall clocks of both machines are right. */
  get agree(): boolean {
    return this.#hosts.every(({ clock }) => clock.isRight)
  }

  /** Number of times that a server became active. */
  get starts(): number {
    return this.#row.state.epoch
  }

  /** Active server that requests reach; null without one. */
  get activeName(): string | null {
    return this.#active?.name ?? null
  }

  /** Starts both, and waits until one of them is active. */
  async start(): Promise<boolean> {
    for (const host of this.#hosts) host.start()
    while (!this.ready) await this.#life.sleep(100)
    return true
  }

  /** Notifies the servers that the parts of the machine changed. */
  machineChanged(): void {
    for (const host of this.#hosts) host.machineChanged()
  }

  /** The active server begins another term. */
  renew(): void {
    void this.#active?.renew()
  }

  /** Compares what the servers do with what must be true. */
  inspect(): void {
    // A server that stops in order has the lease until its workers have ended.
    const isStopping = this.#active?.well === true && this.#active.stopping
    const mayBeServed = !isStopping && this.#hosts.some(({ well }) => well)
    this.terms.inspect(this.#parts.world.clock.monotonic(), { isServed: this.ready, mayBeServed })
  }

  /** Schedules faults until some time before `untilMs` from now. */
  schedule(untilMs: number): void {
    const random = this.#random
    const later = (run: () => void) => void this.#life.after(random.int(4_000, untilMs - 45_000), run)
    for (let n = random.int(1, 3); n > 0; n -= 1) later(() => void this.#pause(this.#one()))
    for (let n = random.int(0, 2); n > 0; n -= 1) later(() => void this.#cut(this.#one()))
    for (let n = random.int(0, 2); n > 0; n -= 1) later(() => void this.#end(this.#one()))
    for (let n = random.int(0, 2); n > 0; n -= 1) later(() => void this.#disturbClock(random.pick(this.#hosts)))
    if (random.chance(0.4)) later(() => void this.#failOver())
    if (random.chance(0.2)) later(() => this.#hosts.forEach(host => void this.#end(host)))
  }

  /** Ends all faults. */
  restore(): void {
    this.#areFaultsOver = true
    for (const host of this.#hosts) {
      host.strikeAt(null)
      host.resume()
      host.link.state = 'whole'
      host.link.losesAnswers = false
      host.clock.correct()
      host.start()
    }
    this.#storeSetByMs = 0
  }

  get #active(): Host | null {
    return this.#hosts.find(({ epoch }) => epoch === this.#row.state.epoch) ?? null
  }

  /** A server for a fault: mostly the active one. */
  #one(): Host {
    const active = this.#active
    return active !== null && this.#random.chance(0.8) ? active : this.#random.pick(this.#hosts)
  }

  #storeMs(): number {
    return this.#parts.world.clock.monotonic() + this.#storeSetByMs
  }

  #taken(previous: LeaseState, now: LeaseState): void {
    const { world } = this.#parts
    world.trace.add('lease', `epoch ${now.epoch} is of server ${now.server?.instance}`)
    this.terms.taken(previous, now, this.#storeMs())
    this.#ranAtTake.set(now.epoch, new Map(this.#hosts.map(host => [host.name, host.ranMs])))
    if (now.epoch > 1) world.disturb('takeovers')
    world.unsettle(0)
    this.#over()
  }

  /** The memory of the active server is lost, or counts no longer. */
  #over(): void {
    this.#parts.requestQueues.serverEnded()
    this.#parts.over()
  }

  /** Events of a server that is no longer active are not checked. */
  #emit(epoch: number, ...event: Parameters<Emit>): void {
    const { world, emit } = this.#parts
    world.activity += 1
    if (epoch === this.#row.state.epoch) emit(...event)
    else world.trace.add('late', `${event[0]} ${JSON.stringify(event[1])}`)
  }

  /** Something lasts for a while, in which the store seems slow to clients. */
  async #lasts(ms: number): Promise<void> {
    const { world } = this.#parts
    world.unsettle(1)
    await this.#life.sleep(ms)
    world.unsettle(-1)
  }

  /** A process stands still for a while: now, or in the middle of a change. */
  async #pause(host: Host): Promise<void> {
    const random = this.#random
    const forMs = random.chance(0.7) ? random.int(6_000, 40_000) : random.int(500, 6_000)
    const strike = () => {
      if (!host.up || host.paused) return
      // The monotonic clock of a machine stands still while it sleeps.
      const sleeps = random.chance(0.3)
      if (sleeps) host.clock.stopMonotonic()
      host.pause()
      void this.#lasts(forMs).then(() => {
        host.clock.go()
        host.resume()
      })
    }
    this.#strike(host, strike, forMs)
  }

  /** The connection of a server to the store breaks. */
  async #cut(host: Host): Promise<void> {
    const random = this.#random
    const { world } = this.#parts
    const forMs = random.int(500, 30_000)
    const state = random.pick(['refusing', 'hanging'] as const)
    this.#strike(
      host,
      () => {
        if (host.link.state !== 'whole') return
        world.disturb(`cut connections to the store: ${state}`)
        world.trace.add('server', `${host.name} is cut from the store (${state})`)
        host.link.state = state
        void this.#lasts(forMs).then(() => {
          world.trace.add('server', `${host.name} reaches the store again`)
          host.link.state = 'whole'
        })
      },
      forMs,
      true,
    )
  }

  #strike(host: Host, strike: () => void, forMs: number, loses = false): void {
    const random = this.#random
    if (random.chance(0.4)) {
      strike()
      return
    }
    const moment = random.pick(['before', 'under way', 'after'] as const)
    host.strikeAt({ writes: random.int(1, 12), when: moment, arrivesMs: random.int(0, forMs), loses, strike })
  }

  /** A process ends, and starts again later. */
  async #end(host: Host): Promise<void> {
    if (this.#areFaultsOver) return
    const random = this.#random
    const roll = random.fraction()
    if (roll < 0.25) await host.stop(random.chance(0.5))
    else if (roll < 0.6) host.crash()
    else {
      const moment = random.pick(['before', 'under way', 'after'] as const)
      const arrivesMs = random.int(0, 2_000)
      const strike = () => this.#crash(host)
      host.strikeAt({ writes: random.int(1, 20), when: moment, arrivesMs, loses: false, strike })
      return
    }
    await this.#again(host)
  }

  #crash(host: Host): void {
    host.crash()
    void this.#again(host)
  }

  async #again(host: Host): Promise<void> {
    this.#parts.world.unsettle(0)
    await this.#life.sleep(this.#random.chance(0.3) ? this.#random.int(8_000, 40_000) : this.#random.int(300, 5_000))
    host.start()
  }

  /** One of the clocks of a machine is set, or stands still. */
  async #disturbClock({ clock, name }: Host): Promise<void> {
    const random = this.#random
    const { world } = this.#parts
    const roll = random.fraction()
    world.count('clocks that are wrong')
    world.trace.add('server', `the clock of ${name} is wrong`)
    if (roll < 0.4)
      return clock.jump((random.pick([20_000, 3_600_000, 370 * 86_400_000]) * random.int(-100, 100)) / 100)
    if (roll < 0.7) clock.stopWall()
    else clock.stopMonotonic()
    // A poll is as long as the clocks say.
    await this.#lasts(random.int(2_000, 20_000))
    clock.go()
  }

  /** The database changes to its standby: nobody reaches it for a while, and its clock is another. */
  async #failOver(): Promise<void> {
    const random = this.#random
    const { world } = this.#parts
    const reached = this.#hosts.filter(({ link }) => link.state === 'whole')
    world.disturb('databases that failed over')
    world.trace.add('server', 'the database fails over')
    for (const { link } of reached) link.state = random.pick(['refusing', 'hanging'])
    await this.#lasts(random.int(500, 6_000))
    const setByMs = random.int(-300, 300)
    world.clock.disagree(Math.abs(setByMs))
    this.#storeSetByMs += setByMs
    for (const { link } of reached) link.state = 'whole'
    world.trace.add('server', 'the database is back')
  }
}
