import type { Outbound, OutboundRequest, OutboundResult } from '../../src/ports/outbound.ts'
import type { Life } from '../life.ts'
import type { SeededRandom } from '../random.ts'
import type { World } from '../world.ts'

/** What came of one call: whether the receiver has answered 200, whatever of it came back. */
export interface Received {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly accepted: boolean
}

/** Where webhooks go: it fails, hangs, loses answers, and comes back. */
export class Receiver {
  readonly #world: World
  readonly #random: SeededRandom
  readonly #received: (call: Received) => void

  /** @param received is told of each call that gets there */
  constructor(world: World, received: (call: Received) => void) {
    this.#world = world
    this.#random = world.random('receiver')
    this.#received = received
  }

  /** The way there of one run of the server. */
  outbound(life: Life): Outbound {
    return { post: request => this.#post(life, request) }
  }

  async #post(life: Life, { url, headers, body }: OutboundRequest): Promise<OutboundResult> {
    const random = this.#random
    this.#world.activity += 1
    await life.sleep(random.int(1, 50))
    const mood = random.chance(this.#world.faults.receiver) ? random.pick(MOODS) : 'well'
    if (mood !== 'well') this.#world.count(`receivers: ${mood}`)
    this.#world.trace.add('webhook', `${headers['webhook-id']} ${mood}`)
    if (mood === 'refuses') return { problem: 'connect ECONNREFUSED' }
    const accepted = mood === 'well' || mood === 'slow' || mood === 'loses its answer'
    this.#received({ url, headers, body, accepted })
    if (mood === 'hangs') return new Promise(() => {})
    await life.sleep(mood === 'slow' ? random.int(1_000, 9_000) : random.int(1, 50))
    this.#world.activity += 1
    if (mood === 'loses its answer') return { problem: 'socket hang up' }
    return { status: mood === 'fails' ? random.pick([500, 404, 301, 201]) : 200 }
  }
}

const MOODS = ['refuses', 'hangs', 'fails', 'slow', 'loses its answer'] as const
