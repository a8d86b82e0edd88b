import type { EndpointId } from '../../src/core/ids.ts'
import type { Checks } from '../checks/checks.ts'
import { Life } from '../life.ts'
import type { Network } from '../network.ts'
import type { SeededRandom } from '../random.ts'
import type { World } from '../world.ts'
import { Calls } from './calls.ts'

/** A client that polls the health of endpoints and why jobs wait. The checkers see the responses in the network. */
export class Inspector {
  readonly #random: SeededRandom
  readonly #life: Life
  readonly #calls: Calls
  readonly #checks: Checks
  readonly #endpoints: () => readonly EndpointId[]

  constructor(world: World, network: Network, checks: Checks, endpoints: () => readonly EndpointId[]) {
    this.#random = world.random('inspector')
    this.#life = new Life(world.clock)
    this.#calls = new Calls(network, 'inspector', this.#life)
    this.#checks = checks
    this.#endpoints = endpoints
    void this.#main()
  }

  async #main(): Promise<void> {
    for (;;) {
      await this.#life.sleep(this.#random.int(500, 4_000))
      const endpoint = this.#random.pick(this.#endpoints())
      const [job] = this.#checks.queuedJobs(endpoint)
      if (job !== undefined) await this.#calls.get(endpoint, `explain/${job}`)
      else
        await this.#calls.get(
          endpoint,
          this.#random.pick(['health', 'explain', 'requests', 'requests?status=IN_PROGRESS,FAILED&limit=3']),
        )
    }
  }
}
