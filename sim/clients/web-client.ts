import type { EndpointId } from '../../src/core/ids.ts'
import type { RequestQueueChecker } from '../checks/request-queue-checker.ts'
import { Life } from '../life.ts'
import type { Network, Reply } from '../network.ts'
import type { SeededRandom } from '../random.ts'
import { API_KEY } from '../server.ts'
import type { World } from '../world.ts'

/** What a client of applications needs. */
export interface WebClientParts {
  readonly world: World
  readonly network: Network
  readonly lines: RequestQueueChecker
  /** The load-balancing endpoints that there are at the moment. */
  readonly endpoints: () => readonly EndpointId[]
  /** Whether nothing goes wrong any more. */
  readonly calm: () => boolean
}

const TIMEOUT_MS = 40_000
/** Longer than it may wait in line. */
const PATIENT_MS = 150_000

/** Somebody who uses the applications behind load-balancing endpoints, now and then many at once. */
export class WebClient {
  readonly #parts: WebClientParts
  readonly #name: string
  readonly #random: SeededRandom
  readonly #life: Life
  /** Workers that have answered. */
  readonly #known: string[] = []
  #count = 0
  #open = 0
  #left: number
  #satisfied = false

  /** @param rounds how often it comes */
  constructor(parts: WebClientParts, name: string, rounds: number) {
    this.#parts = parts
    this.#name = name
    this.#random = parts.world.random(name)
    this.#life = new Life(parts.world.clock)
    this.#left = rounds
    void this.#main()
  }

  /** Whether all its requests are over, and one was answered by a worker after the faults. */
  get done(): boolean {
    return this.#left === 0 && this.#open === 0 && this.#satisfied
  }

  async #main(): Promise<void> {
    const random = this.#random
    for (; this.#left > 0; this.#left -= 1) {
      await this.#life.sleep(random.chance(0.3) ? random.int(15_000, 40_000) : random.int(200, 8_000))
      const endpoint = random.pick(this.#parts.endpoints())
      const most = random.chance(0.15) ? 20 : 3
      for (let n = random.int(1, most); n > 0; n -= 1) void this.#ask(endpoint)
    }
    while (!this.#parts.calm()) await this.#life.sleep(1_000)
    // By then all workers of this endpoint may have ended.
    await this.#life.sleep(random.int(0, 40_000))
    while (!this.#satisfied) {
      const status = await this.#ask(random.pick(this.#parts.endpoints()), PATIENT_MS)
      this.#satisfied = status === 200
      if (!this.#satisfied) await this.#life.sleep(1_000)
    }
  }

  /** One request. Returns the status of its answer; null when there was none. */
  async #ask(endpoint: EndpointId, patienceMs?: number): Promise<number | null> {
    const { world, network } = this.#parts
    const random = this.#random
    this.#count += 1
    this.#open += 1
    const nonce = `${this.#name.replace(' ', '-')}-${this.#count}`
    const ms = random.chance(0.1) ? random.int(3_000, 8_000) : random.int(5, 800)
    const timeoutMs = patienceMs ?? (random.chance(0.1) ? random.int(10, 5_000) : TIMEOUT_MS)
    const affinity = patienceMs === undefined ? this.#drawAffinity() : null
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
    if (this.#known.length === 0 || !random.chance(0.25)) return null
    const worker = random.pick(this.#known.slice(-4))
    return random.pick([worker, `strict ${worker}`, `strict-resume ${worker}`])
  }

  #check(reply: Extract<Reply, { ok: true }>, nonce: string, affinity: string | null): void {
    const { world, lines } = this.#parts
    const { status, text, headers } = reply
    const worker = headers.get('x-runpod-worker-id')
    if (status === 200 || status === 500) {
      const answer = JSON.parse(text) as { readonly nonce: string; readonly worker: string }
      if (answer.nonce !== nonce || answer.worker !== worker)
        world.report(`request ${nonce} was answered with ${text}, and worker ${worker} is said to have done so`)
      if (!this.#known.includes(answer.worker)) this.#known.push(answer.worker)
      if (affinity?.startsWith('strict') === true && !affinity.endsWith(answer.worker))
        world.report(`request ${nonce} insists on '${affinity}' and was answered by ${answer.worker}`)
      return
    }
    if (status === 502 || status === 499) return
    lines.refused(status, text, headers.get('retry-after'), nonce)
  }
}
