import { Life } from '../life.ts'
import type { SeededRandom } from '../random.ts'
import type { World } from '../world.ts'
import { NO_API_FAULTS } from './api-faults.ts'
import type { Cluster } from './cluster.ts'

const RECLAIMS = ['evicted', 'drained', 'deleted', 'preempted'] as const

/** Injects faults into a cluster until {@link restore} is called. */
export class ClusterFaults {
  readonly #world: World
  readonly #cluster: Cluster
  readonly #random: SeededRandom
  readonly #life: Life
  #areOver = false

  constructor(world: World, cluster: Cluster) {
    this.#world = world
    this.#cluster = cluster
    this.#random = world.random('faults of the cluster')
    this.#life = new Life(world.clock)
  }

  /** Schedules faults until some time before `untilMs` from now. */
  schedule(untilMs: number): void {
    const random = this.#random
    const harshness = random.chance(0.2) ? 4 : 1
    const upTo = (maximum: number) => (random.chance(0.3) ? 0 : harshness * random.fraction() * maximum)
    this.#cluster.faults = {
      refused: upTo(0.05),
      lostAnswer: upTo(0.03),
      forgotten: upTo(0.05),
      repeated: upTo(0.1),
      late: upTo(0.1),
      expired: upTo(0.01),
    }
    this.#world.trace.add('cluster', `faults ${JSON.stringify(this.#cluster.faults)}`)
    const later = (run: () => void) => void this.#life.after(random.int(4_000, untilMs - 40_000), run)
    for (let n = random.int(2, 8); n > 0; n -= 1) later(() => this.#reclaim())
    for (let n = random.int(0, 2); n > 0; n -= 1) later(() => void this.#loseNode())
    for (let n = random.int(0, 2); n > 0; n -= 1) later(() => void this.#drainNode())
    for (let n = random.int(0, 2); n > 0; n -= 1) later(() => void this.#beAway())
    for (let n = random.int(0, 3); n > 0; n -= 1) later(() => this.#cluster.objects.compact())
  }

  /** Ends all faults. */
  restore(): void {
    this.#areOver = true
    this.#cluster.faults = NO_API_FAULTS
    this.#cluster.isAway = false
    for (const node of this.#cluster.nodes) this.#cluster.restore(node)
  }

  #reclaim(): void {
    const workers = this.#cluster.running()
    if (workers.length > 0) this.#cluster.reclaim(this.#random.pick(workers), this.#random.pick(RECLAIMS))
  }

  async #loseNode(): Promise<void> {
    const node = this.#random.pick(this.#cluster.nodes)
    this.#cluster.lose(node)
    await this.#life.sleep(this.#random.int(2_000, 60_000))
    if (!this.#areOver) this.#cluster.restore(node)
  }

  async #drainNode(): Promise<void> {
    const node = this.#random.pick(this.#cluster.nodes)
    this.#world.count('kubernetes: drained nodes')
    node.isCordoned = true
    for (const worker of this.#cluster.on(node)) this.#cluster.reclaim(worker, 'drained')
    await this.#life.sleep(this.#random.int(2_000, 40_000))
    if (!this.#areOver) this.#cluster.restore(node)
  }

  async #beAway(): Promise<void> {
    this.#world.count('kubernetes: times without an API')
    this.#world.trace.add('cluster', 'the API is away')
    this.#cluster.isAway = true
    this.#world.unsettle(1)
    await this.#life.sleep(this.#random.int(2_000, 40_000))
    this.#world.unsettle(-1)
    this.#cluster.isAway = false
    this.#world.trace.add('cluster', 'the API is back')
  }
}
