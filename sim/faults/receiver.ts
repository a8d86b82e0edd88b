import type { Outbound, OutboundRequest, OutboundResult } from '../../src/ports/outbound.ts'
import type { Life } from '../life.ts'
import type { SeededRandom } from '../random.ts'
import type { World } from '../world.ts'

/** One request to the receiver. */
export interface Received {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** True where the receiver responded with success, even if the response was lost. */
  readonly accepted: boolean
  /** True if its server is no longer active and may not have the outcome of the delivery. */
  readonly isLate: boolean
}

/** The receiver of webhooks. It fails, hangs, loses responses, and recovers. */
export class Receiver {
  readonly #world: World
  readonly #random: SeededRandom
  readonly #received: (call: Received) => void

  /** @param received called for each request that arrives */
  constructor(world: World, received: (call: Received) => void) {
    this.#world = world
    this.#random = world.random('receiver')
    this.#received = received
  }

  /** The outbound port of one run of the server. @param isActive true if the server is active */
  outbound(life: Life, isActive = () => true): Outbound {
    return { post: request => this.#post(life, isActive, request) }
  }

  async #post(life: Life, isActive: () => boolean, { url, headers, body }: OutboundRequest): Promise<OutboundResult> {
    const random = this.#random
    this.#world.activity += 1
    await life.sleep(random.int(1, 50))
    const fault = random.chance(this.#world.faults.receiver) ? random.pick(RECEIVER_FAULTS) : 'well'
    if (fault !== 'well') this.#world.count(`receivers: ${fault}`)
    this.#world.trace.add('webhook', `${headers['webhook-id']} ${fault}`)
    if (fault === 'refuses') return { problem: 'connect ECONNREFUSED' }
    const accepted = fault === 'well' || fault === 'slow' || fault === 'loses its answer'
    this.#received({ url, headers, body, accepted, isLate: !isActive() })
    if (fault === 'hangs') return new Promise(() => {})
    await life.sleep(fault === 'slow' ? random.int(1_000, 9_000) : random.int(1, 50))
    this.#world.activity += 1
    if (fault === 'loses its answer') return { problem: 'socket hang up' }
    return { status: fault === 'fails' ? random.pick([500, 404, 301, 400]) : 200 }
  }
}

const RECEIVER_FAULTS = ['refuses', 'hangs', 'fails', 'slow', 'loses its answer'] as const
