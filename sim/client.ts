import type { EndpointId, JobId } from '../src/core/ids.ts'
import { isFinal } from '../src/core/job.ts'
import { JOB_TIMES, retentionMs } from '../src/core/retention.ts'
import type { ClientChecker, SeenJob } from './client-checker.ts'
import { Life } from './life.ts'
import type { Network, Reply } from './network.ts'
import type { SeededRandom } from './random.ts'
import { API_KEY } from './server.ts'
import type { World } from './world.ts'

/** What a client needs. */
export interface ClientParts {
  readonly world: World
  readonly network: Network
  readonly checker: ClientChecker
  readonly endpoints: readonly EndpointId[]
}

const TIMEOUT_MS = 100_000

interface Submitted {
  readonly job: SeenJob
  /** When the request that succeeded was sent; the job cannot be older. */
  readonly sinceMs: number
}

/** An application that uses the public job operations: it submits jobs and follows each to its end. */
export class SimClient {
  readonly #parts: ClientParts
  readonly #name: string
  readonly #random: SeededRandom
  readonly #life: Life
  #left: number
  #following = 0

  /** @param jobs how many jobs it submits */
  constructor(parts: ClientParts, name: string, jobs: number) {
    this.#parts = parts
    this.#name = name
    this.#random = parts.world.random(name)
    this.#life = new Life(parts.world.clock)
    this.#left = jobs
    void this.#main()
  }

  /** Whether all its jobs are submitted, and their ends seen. */
  get done(): boolean {
    return this.#left === 0 && this.#following === 0
  }

  async #main(): Promise<void> {
    while (this.#left > 0) {
      await this.#life.sleep(this.#random.chance(0.4) ? this.#random.int(0, 50) : this.#random.int(500, 30_000))
      this.#following += 1
      this.#left -= 1
      void this.#oneJob()
      if (this.#random.chance(0.1)) void this.#ask(this.#random.pick(this.#parts.endpoints), 'GET', 'health')
    }
  }

  async #oneJob(): Promise<void> {
    const { checker, endpoints } = this.#parts
    const endpoint = this.#random.pick(endpoints)
    const kind = this.#random.chance(0.3) ? 'runsync' : 'run'
    const ttlMs = this.#random.chance(0.12) ? this.#random.int(10_000, 90_000) : undefined
    const body = JSON.stringify(this.#submission(ttlMs))
    const cancelled = this.#random.chance(0.12)
    const { job, sinceMs } = await this.#submit(endpoint, kind, body)
    checker.follow(job.id, sinceMs + Math.min(ttlMs ?? JOB_TIMES.ttlMs.default, retentionMs(kind)))
    checker.saw(job)
    if (cancelled) void this.#cancel(endpoint, job.id)
    if (!isFinal(job.status)) await this.#follow(endpoint, job.id)
    this.#following -= 1
  }

  #submission(ttl: number | undefined): object {
    const random = this.#random
    const ms = random.chance(0.15) ? random.int(4_000, 9_000) : random.int(20, 2_500)
    const input = { ms, fail: random.chance(0.08), chunks: random.chance(0.1) ? 2 : 0 }
    const lowPriority = ttl !== undefined && random.chance(0.3)
    const executionTimeout = random.int(12_000, 30_000)
    return {
      input,
      policy: { executionTimeout, ...(ttl === undefined ? {} : { ttl }), ...(lowPriority ? { lowPriority } : {}) },
    }
  }

  /** Sends it again until somebody says yes; what was accepted without an answer becomes a job without an owner. */
  async #submit(endpoint: EndpointId, kind: 'run' | 'runsync', body: string): Promise<Submitted> {
    for (;;) {
      const sinceMs = this.#parts.world.clock.monotonic()
      const wait = kind === 'runsync' && this.#random.chance(0.5) ? `?wait=${this.#random.int(1_000, 50_000)}` : ''
      const reply = await this.#ask(endpoint, 'POST', `${kind}${wait}`, body)
      if (reply.ok && reply.status === 200) return { job: JSON.parse(reply.text) as SeenJob, sinceMs }
      if (reply.ok && reply.status < 500)
        this.#parts.world.report(`a ${kind} was answered with ${reply.status} ${reply.text}`)
      await this.#life.sleep(this.#random.int(500, 3_000))
    }
  }

  async #follow(endpoint: EndpointId, id: JobId): Promise<void> {
    const { checker, world } = this.#parts
    let looks = 0
    for (;;) {
      await this.#life.sleep(this.#random.int(1_000, 8_000))
      const reply = await this.#ask(endpoint, 'GET', `status/${id}`)
      if (!reply.ok || reply.status >= 500) continue
      if (reply.status === 404) return checker.missed(id, world.clock.monotonic())
      if (reply.status !== 200) return world.report(`a status was answered with ${reply.status} ${reply.text}`)
      const job = JSON.parse(reply.text) as SeenJob
      checker.saw(job)
      if (isFinal(job.status)) looks += 1
      // Once more, and after a while, whether a final state stays.
      if (looks === 3) return
      if (looks > 0) await this.#life.sleep(this.#random.int(1_000, 20_000))
    }
  }

  async #cancel(endpoint: EndpointId, id: JobId): Promise<void> {
    await this.#life.sleep(this.#random.int(0, 12_000))
    const reply = await this.#ask(endpoint, 'POST', `cancel/${id}`)
    if (reply.ok && reply.status === 200) this.#parts.checker.cancelled(id)
  }

  #ask(endpoint: EndpointId, method: 'GET' | 'POST', operation: string, body?: string): Promise<Reply> {
    const headers = { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' }
    const url = `http://server.sim/v2/${endpoint}/${operation}`
    const call = { who: this.#name, method, url, headers, life: this.#life, timeoutMs: TIMEOUT_MS } as const
    return this.#parts.network.send(body === undefined ? call : { ...call, body })
  }
}
