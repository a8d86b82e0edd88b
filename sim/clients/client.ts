import type { EndpointId } from '../../src/core/ids.ts'
import type { Checks } from '../checks/checks.ts'
import { Life } from '../life.ts'
import type { Network } from '../network.ts'
import type { SeededRandom } from '../random.ts'
import type { World } from '../world.ts'
import { Calls } from './calls.ts'
import { JobScenario } from './job-scenario.ts'
import { drawPlan } from './plan.ts'

/** Parts that a client uses. */
export interface ClientParts {
  readonly world: World
  readonly network: Network
  readonly checks: Checks
  /** The queue endpoints that exist now. */
  readonly endpoints: () => readonly EndpointId[]
}

/** An application that submits jobs through the public operations and follows each to its end. */
export class SimClient {
  readonly #parts: ClientParts
  readonly #name: string
  readonly #random: SeededRandom
  readonly #life: Life
  readonly #calls: Calls
  #left: number
  #following = 0

  /** @param jobs number of jobs that it submits */
  constructor(parts: ClientParts, name: string, jobs: number) {
    this.#parts = parts
    this.#name = name
    this.#random = parts.world.random(name)
    this.#life = new Life(parts.world.clock)
    this.#calls = new Calls(parts.network, name, this.#life)
    this.#left = jobs
    void this.#main()
  }

  /** True if all its jobs are submitted and have ended. */
  get done(): boolean {
    return this.#left === 0 && this.#following === 0
  }

  async #main(): Promise<void> {
    for (let number = 1; this.#left > 0; number += 1) {
      const pauseMs = this.#random.chance(0.4) ? this.#random.int(0, 50) : this.#random.int(500, 25_000)
      // Short jobs come in bursts, so that they wait.
      await this.#life.sleep(this.#parts.world.hasShortJobs && number % 12 > 0 ? pauseMs % 50 : pauseMs)
      this.#left -= 1
      void this.#busy(this.#oneJob(number))
      if (this.#random.chance(0.03)) void this.#busy(this.#purge())
    }
  }

  async #busy(work: Promise<void>): Promise<void> {
    this.#following += 1
    await work
    this.#following -= 1
  }

  #oneJob(number: number): Promise<void> {
    const { world, checks, endpoints } = this.#parts
    const plan = drawPlan(this.#random, `${this.#name.replace(' ', '-')}-${number}`, world.hasShortJobs)
    const random = world.random(plan.tag)
    const endpoint = () => random.pick(endpoints())
    const scenario = new JobScenario({ world, checks, endpoint, calls: this.#calls, life: this.#life, random }, plan)
    return scenario.run()
  }

  /** Purges the queue of an endpoint. */
  async #purge(): Promise<void> {
    const { checks, endpoints, world } = this.#parts
    const endpoint = this.#random.pick(endpoints())
    const lastChange = checks.lastChange
    const reply = await this.#calls.post(endpoint, 'purge-queue')
    if (!reply.ok || reply.status !== 200) return
    world.count('purges')
    const { removed } = JSON.parse(reply.text) as { removed: number }
    checks.purges.answered(endpoint, lastChange, removed)
  }
}
