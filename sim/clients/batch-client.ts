import { Life } from '../life.ts'
import type { SeededRandom } from '../random.ts'
import { BatchScenario } from './batch-scenario.ts'
import { Calls } from './calls.ts'
import type { ClientParts } from './client.ts'

/** An application that submits its requests in batches. */
export class BatchClient {
  readonly #parts: ClientParts
  readonly #random: SeededRandom
  readonly #life: Life
  readonly #calls: Calls
  #left: number
  #following = 0

  constructor(parts: ClientParts) {
    this.#parts = parts
    this.#random = parts.world.random('batches')
    this.#life = new Life(parts.world.clock)
    this.#calls = new Calls(parts.network, 'batches', this.#life)
    this.#left = this.#random.int(1, 5)
    void this.#main()
  }

  /** True if all its batches are over. */
  get done(): boolean {
    return this.#left === 0 && this.#following === 0
  }

  async #main(): Promise<void> {
    for (let number = 1; this.#left > 0; number += 1) {
      await this.#life.sleep(this.#random.int(1_000, 45_000))
      this.#left -= 1
      this.#following += 1
      void this.#follow(number)
    }
  }

  async #follow(number: number): Promise<void> {
    const { world, checks, endpoints } = this.#parts
    const tag = `batch-${number}`
    const random = world.random(tag)
    const endpoint = () => random.pick(endpoints())
    await new BatchScenario({ world, checks, endpoint, calls: this.#calls, life: this.#life, random }, tag).run()
    this.#following -= 1
  }
}
