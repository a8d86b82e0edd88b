import type { BatchId, EndpointId, JobId } from '../../src/core/ids.ts'
import type { SeenJob } from '../checks/client-checker.ts'
import type { Reply } from '../network.ts'
import { JobScenario } from './job-scenario.ts'
import { drawPlan, type JobPlan, type ScenarioParts } from './plan.ts'

/** Minimum retention of a request without a ttl; the server keeps it longer. */
const RETENTION_MS = 24 * 3_600_000

interface SeenBatch {
  readonly status: 'DRAFT' | 'FINALIZED' | 'CANCELLED' | 'FAILED'
  readonly requestTotal: number
  readonly requestCompleted: number
  readonly requestFailed: number
}

type OkReply = Reply & { readonly ok: true }

/** All calls of a client for one batch, from its draft until all of its jobs have ended and are counted. */
export class BatchScenario {
  readonly #parts: ScenarioParts
  readonly #tag: string
  readonly #endpoint: EndpointId
  readonly #plans: readonly JobPlan[]
  /** True if an earlier attempt of the call may have taken effect without a response. */
  #isUncertain = false

  /** @param tag identifies the batch; part of the inputs of its requests */
  constructor(parts: ScenarioParts, tag: string) {
    this.#parts = parts
    this.#tag = tag
    this.#endpoint = parts.endpoint()
    const count = parts.random.int(2, 12)
    this.#plans = Array.from({ length: count }, (_, n) => drawRequest(parts, `${tag}-${n + 1}`))
  }

  /** Runs the scenario to its end. */
  async run(): Promise<void> {
    const { random, world } = this.#parts
    const id = await this.#draft()
    if (id === null) return
    world.count('batches')
    if (random.chance(0.1)) return this.#cancelDraft(id)
    const sinceMs = world.clock.now()
    const finalized = await this.#sendUntilResponse('POST', `batch/${id}/finalize`, [200, 409])
    if (finalized === null) return
    if (finalized.status === 409 && !this.#isUncertain) world.report(`finalizing ${id} got ${finalized.text}`)
    const cancelling = random.chance(0.2) ? this.#cancel(id) : undefined
    const jobs = this.#checkedIds(id, await this.#listed(id))
    const ends = await Promise.all(this.#plans.map((plan, n) => this.#follow(id, plan, jobs?.[n], sinceMs)))
    await cancelling
    await this.#count(id, ends)
  }

  /** Creates the draft. Null if the endpoint was deleted or has too many batches. */
  async #draft(): Promise<BatchId | null> {
    const { checks, random, life, world } = this.#parts
    const key = { 'idempotency-key': `key of ${this.#tag}` }
    const first = random.int(0, this.#plans.length)
    for (const { tag } of this.#plans) checks.clients.submits(this.#endpoint, tag, key['idempotency-key'])
    const draftReply = await this.#sendUntilResponse(
      'POST',
      'batch',
      [200, 429],
      bodyFromPlans(this.#plans.slice(0, first)),
      key,
    )
    if (draftReply?.status !== 200) return null
    const { id } = JSON.parse(draftReply.text) as { id: BatchId }
    await life.sleep(random.int(0, 4_000))
    if (first === this.#plans.length) return id
    const rest = `{"requests":${bodyFromPlans(this.#plans.slice(first))}}`
    const requestsReply = await this.#sendUntilResponse('POST', `batch/${id}/requests`, [200, 429], rest, key)
    if (requestsReply?.status === 429) {
      // A draft that is left alone counts towards the limit that refused it until it expires.
      await this.#sendUntilResponse('POST', `batch/${id}/cancel`, [200])
      return null
    }
    if (requestsReply === null) return null
    const { requestTotal } = JSON.parse(requestsReply.text) as SeenBatch
    if (requestTotal !== this.#plans.length)
      world.report(`batch ${id} has ${requestTotal} requests of ${this.#plans.length}`)
    return id
  }

  /** Cancels the draft: its requests never become jobs. */
  async #cancelDraft(id: BatchId): Promise<void> {
    if ((await this.#sendUntilResponse('POST', `batch/${id}/cancel`, [200])) === null) return
    this.#parts.world.count('cancelled drafts')
    const batch = await this.#readBatch(id)
    if (batch !== null && (batch.status !== 'CANCELLED' || batch.requestFailed !== this.#plans.length))
      this.#parts.world.report(`batch ${id} was cancelled as a draft, and is ${JSON.stringify(batch)}`)
  }

  async #cancel(id: BatchId): Promise<void> {
    const { life, random, checks, world } = this.#parts
    await life.sleep(random.int(0, 15_000))
    const reply = await this.#sendUntilResponse('POST', `batch/${id}/cancel`, [200, 409])
    world.count(`cancels of batches: ${reply?.status}`)
    if (reply?.status === 200) checks.batches.canceled(id)
  }

  /** Ids of its requests in order; null if the endpoint was deleted. */
  async #listed(id: BatchId): Promise<readonly JobId[] | null> {
    const reply = await this.#sendUntilResponse('GET', `batch/${id}/requests`, [200])
    if (reply === null) return null
    return (JSON.parse(reply.text) as { requests: SeenJob[] }).requests.map(job => job.id)
  }

  /**
   * The ids of all its requests; null if some are gone. Requests whose ttl is over before they begin leave the list,
   * so that the place of the others says no longer which they are.
   */
  #checkedIds(id: BatchId, jobs: readonly JobId[] | null): readonly JobId[] | null {
    if (jobs === null || jobs.length === this.#plans.length) return jobs
    const mayLeave = this.#plans.filter(({ ttlMs }) => ttlMs !== undefined).length
    if (jobs.length > this.#plans.length || jobs.length < this.#plans.length - mayLeave)
      this.#parts.world.report(`batch ${id} lists ${jobs.length} requests of ${this.#plans.length}`)
    this.#parts.world.count('batches whose first list lacked requests')
    return null
  }

  /** Follows a request from the time when it is a job. Returns its end; null when that is unknown. */
  async #follow(batch: BatchId, plan: JobPlan, id: JobId | undefined, sinceMs: number): Promise<SeenJob | null> {
    const { checks, life } = this.#parts
    if (id === undefined) return null
    for (;;) {
      const reply = await this.#sendUntilResponse('GET', `status/${id}`, [200, 404])
      if (reply === null) return null
      if (reply.status === 200) {
        const job = JSON.parse(reply.text) as SeenJob
        checks.clients.follow(id, this.#endpoint, sinceMs + (plan.ttlMs ?? RETENTION_MS), plan.tag)
        checks.clients.saw(job, reply.order)
        return new JobScenario(this.#parts, plan).follow({ endpoint: this.#endpoint, job })
      }
      // After a crash requests become jobs a moment later. Until then they are in the list.
      const listed = await this.#listed(batch)
      if (listed === null || (plan.ttlMs !== undefined && !listed.includes(id))) return null
      if (!listed.includes(id)) this.#parts.world.report(`request ${id} of batch ${batch} has vanished`)
      await life.sleep(1_000)
    }
  }

  /** Compares its counts with the ends of its jobs. */
  async #count(id: BatchId, ends: readonly (SeenJob | null)[]): Promise<void> {
    const { life, world } = this.#parts
    const completed = ends.filter(job => job?.status === 'COMPLETED').length
    const cancelled = ends.filter(job => job?.status === 'CANCELLED').length
    const unknown = ends.filter(job => job === null).length
    for (;;) {
      const batch = await this.#readBatch(id)
      if (batch === null) return
      const { requestTotal, requestCompleted, requestFailed } = batch
      if (requestTotal !== ends.length || requestCompleted < completed || requestFailed < cancelled)
        world.report(`batch ${id} says ${JSON.stringify(batch)}, its jobs are ${ends.map(job => job?.status)}`)
      // A retry without a response may still be under way.
      if (requestCompleted + requestFailed === ends.length) {
        if (unknown === 0) world.count('batches with all ends seen')
        return
      }
      await life.sleep(1_000)
    }
  }

  async #readBatch(id: BatchId): Promise<SeenBatch | null> {
    const reply = await this.#sendUntilResponse('GET', `batch/${id}`, [200])
    return reply === null ? null : (JSON.parse(reply.text) as SeenBatch)
  }

  /**
   * Sends a request until it gets a response. Null when its status is not one of `statuses`:
   * the endpoint may be deleted.
   */
  async #sendUntilResponse(
    method: 'GET' | 'POST',
    operation: string,
    statuses: readonly number[],
    body?: string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<OkReply | null> {
    const { calls, checks, life, random, world } = this.#parts
    if (method === 'POST') this.#isUncertain = false
    for (;;) {
      const options = body === undefined ? { headers } : { headers, body }
      const reply = await calls[method === 'GET' ? 'get' : 'post'](this.#endpoint, operation, options)
      if (reply.ok && reply.status < 500) {
        if (reply.status === 404 && checks.clients.deleted.has(this.#endpoint)) return null
        if (statuses.includes(reply.status)) return reply
        world.report(`${method} ${operation} got ${reply.status} ${reply.text}`)
        return null
      }
      if (method === 'POST') this.#isUncertain = true
      await life.sleep(random.int(500, 3_000))
    }
  }
}

/** Draws a request of a batch like the body of a `run`. */
function drawRequest({ random, world }: ScenarioParts, tag: string): JobPlan {
  for (;;) {
    const plan = drawPlan(random, tag, world.hasShortJobs)
    if (plan.kind === 'run') return { ...plan, key: null }
  }
}

function bodyFromPlans(plans: readonly JobPlan[]): string {
  return `[${plans.map(({ body }) => body).join(',')}]`
}
