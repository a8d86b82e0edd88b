import type { EndpointId } from '../../src/core/ids.ts'
import { API_KEY } from '../app-run.ts'
import type { RequestQueueChecker } from '../checks/request-queue-checker.ts'
import { Life } from '../life.ts'
import type { Network, Reply } from '../network.ts'
import type { SeededRandom } from '../random.ts'
import type { World } from '../world.ts'

/** Parts that a client of applications uses. */
export interface WebClientParts {
  readonly world: World
  readonly network: Network
  readonly requestQueues: RequestQueueChecker
  /** The load-balancing endpoints that exist now. */
  readonly endpoints: () => readonly EndpointId[]
  /** True if the faults are over. */
  readonly calm: () => boolean
}

const TIMEOUT_MS = 40_000
/** Timeout that is longer than a request may wait in the request queue. */
const LONG_TIMEOUT_MS = 150_000

/** A client of the applications behind load-balancing endpoints. Sometimes it sends many requests at once. */
export class WebClient {
  readonly #parts: WebClientParts
  readonly #name: string
  readonly #random: SeededRandom
  readonly #life: Life
  /** Workers that responded. */
  readonly #responders: string[] = []
  #count = 0
  #open = 0
  #left: number
  #servedAfterFaults = false

  /** @param rounds number of times that it sends requests */
  constructor(parts: WebClientParts, name: string, rounds: number) {
    this.#parts = parts
    this.#name = name
    this.#random = parts.world.random(name)
    this.#life = new Life(parts.world.clock)
    this.#left = rounds
    void this.#main()
  }

  /** True if all its requests are over, and a worker served one of them after the faults. */
  get done(): boolean {
    return this.#left === 0 && this.#open === 0 && this.#servedAfterFaults
  }

  async #main(): Promise<void> {
    const random = this.#random
    for (; this.#left > 0; this.#left -= 1) {
      await this.#life.sleep(random.chance(0.3) ? random.int(15_000, 40_000) : random.int(200, 8_000))
      const endpoint = random.pick(this.#parts.endpoints())
      const maximum = random.chance(0.15) ? 20 : 3
      for (let n = random.int(1, maximum); n > 0; n -= 1) void this.#send(endpoint)
    }
    while (!this.#parts.calm()) await this.#life.sleep(1_000)
    // Give all workers of the endpoint the time to end.
    await this.#life.sleep(random.int(0, 40_000))
    while (!this.#servedAfterFaults) {
      const status = await this.#send(random.pick(this.#parts.endpoints()), LONG_TIMEOUT_MS)
      this.#servedAfterFaults = status === 200
      if (!this.#servedAfterFaults) await this.#life.sleep(1_000)
    }
  }

  /** Sends one request. Returns the status of the response; null without a response. */
  async #send(endpoint: EndpointId, maxWaitMs?: number): Promise<number | null> {
    const { world, network } = this.#parts
    const random = this.#random
    this.#count += 1
    this.#open += 1
    const nonce = `${this.#name.replace(' ', '-')}-${this.#count}`
    const ms = random.chance(0.1) ? random.int(3_000, 8_000) : random.int(5, 800)
    const timeoutMs = maxWaitMs ?? (random.chance(0.1) ? random.int(10, 5_000) : TIMEOUT_MS)
    const affinity = maxWaitMs === undefined ? this.#drawAffinity() : null
    const reply = await network.send({
      who: this.#name,
      method: random.chance(0.7) ? 'GET' : 'POST',
      life: this.#life,
      timeoutMs,
      url: `http://server.sim/lb/${endpoint}/work?nonce=${nonce}&ms=${ms}`,
      headers: { authorization: `Bearer ${API_KEY}`, ...(affinity === null ? {} : { 'x-runpod-worker-id': affinity }) },
    })
    this.#open -= 1
    world.count(`applications: ${reply.ok ? reply.status : reply.why}`)
    if (reply.ok) this.#check(reply, nonce, affinity)
    return reply.ok ? reply.status : null
  }

  #drawAffinity(): string | null {
    const random = this.#random
    if (this.#responders.length === 0 || !random.chance(0.25)) return null
    const worker = random.pick(this.#responders.slice(-4))
    return random.pick([worker, `strict ${worker}`, `strict-resume ${worker}`])
  }

  #check(reply: Extract<Reply, { ok: true }>, nonce: string, affinity: string | null): void {
    const { world, requestQueues } = this.#parts
    const { status, text, headers } = reply
    const worker = headers.get('x-runpod-worker-id')
    if (status === 200 || status === 500) {
      const body = JSON.parse(text) as { readonly nonce: string; readonly worker: string }
      if (body.nonce !== nonce || body.worker !== worker)
        world.report(`request ${nonce} got ${text}, and the header names worker ${worker}`)
      if (!this.#responders.includes(body.worker)) this.#responders.push(body.worker)
      if (affinity?.startsWith('strict') === true && !affinity.endsWith(body.worker))
        world.report(`request ${nonce} requires '${affinity}' and was served by ${body.worker}`)
      return
    }
    if (status === 502 || status === 499) return
    requestQueues.refused(status, text, headers.get('retry-after'), nonce)
  }
}
