import type { BatchId, EndpointId, JobId } from '../../src/core/ids.ts'
import type { SeenJob } from '../checks/client-checker.ts'
import type { Reply } from '../network.ts'
import { JobStory } from './job-story.ts'
import { drawPlan, type JobPlan, type StoryParts } from './plan.ts'

/** So long a request without a ttl may be relied on; the server keeps it for longer. */
const KEPT_MS = 24 * 3_600_000

interface SeenBatch {
  readonly status: 'DRAFT' | 'FINALIZED' | 'CANCELLED' | 'FAILED'
  readonly requestTotal: number
  readonly requestCompleted: number
  readonly requestFailed: number
}

type Answer = Reply & { readonly ok: true }

/** All that a client does with one batch, from its draft until all of its jobs have ended and are counted. */
export class BatchStory {
  readonly #parts: StoryParts
  readonly #tag: string
  readonly #endpoint: EndpointId
  readonly #plans: readonly JobPlan[]
  /** Whether an earlier try of a call may have been made without an answer. */
  #doubted = false

  /** @param tag stands in the inputs of its requests */
  constructor(parts: StoryParts, tag: string) {
    this.#parts = parts
    this.#tag = tag
    this.#endpoint = parts.endpoint()
    const count = parts.random.int(2, 12)
    this.#plans = Array.from({ length: count }, (_, n) => drawRequest(parts, `${tag}-${n + 1}`))
  }

  /** Returns when the client has seen enough. */
  async tell(): Promise<void> {
    const { random, world } = this.#parts
    const id = await this.#draft()
    if (id === null) return
    world.count('batches')
    if (random.chance(0.1)) return this.#cancelDraft(id)
    const sinceMs = world.clock.now()
    const finalized = await this.#insist('POST', `batch/${id}/finalize`, [200, 409])
    if (finalized === null) return
    if (finalized.status === 409 && !this.#doubted) world.report(`finalizing ${id} was answered ${finalized.text}`)
    const cancelling = random.chance(0.2) ? this.#cancel(id) : undefined
    const jobs = await this.#listed(id)
    const ends = await Promise.all(this.#plans.map((plan, n) => this.#follow(id, plan, jobs?.[n], sinceMs)))
    await cancelling
    await this.#count(id, ends)
  }

  /** Null when there can be no batch: the endpoint is gone or has enough of them. */
  async #draft(): Promise<BatchId | null> {
    const { checks, random, life, world } = this.#parts
    const key = { 'idempotency-key': `key of ${this.#tag}` }
    const first = random.int(0, this.#plans.length)
    for (const { tag } of this.#plans) checks.clients.submits(this.#endpoint, tag, key['idempotency-key'])
    const made = await this.#insist('POST', 'batch', [200, 429], bodyOf(this.#plans.slice(0, first)), key)
    if (made?.status !== 200) return null
    const { id } = JSON.parse(made.text) as { id: BatchId }
    await life.sleep(random.int(0, 4_000))
    if (first === this.#plans.length) return id
    const rest = `{"requests":${bodyOf(this.#plans.slice(first))}}`
    const added = await this.#insist('POST', `batch/${id}/requests`, [200, 429], rest, key)
    if (added?.status !== 200) return null
    const { requestTotal } = JSON.parse(added.text) as SeenBatch
    if (requestTotal !== this.#plans.length)
      world.report(`batch ${id} has ${requestTotal} requests of ${this.#plans.length}`)
    return id
  }

  /** Nothing of it becomes a job. */
  async #cancelDraft(id: BatchId): Promise<void> {
    if ((await this.#insist('POST', `batch/${id}/cancel`, [200])) === null) return
    this.#parts.world.count('cancelled drafts')
    const batch = await this.#look(id)
    if (batch !== null && (batch.status !== 'CANCELLED' || batch.requestFailed !== this.#plans.length))
      this.#parts.world.report(`batch ${id} was cancelled as a draft, and is ${JSON.stringify(batch)}`)
  }

  async #cancel(id: BatchId): Promise<void> {
    const { life, random, checks, world } = this.#parts
    await life.sleep(random.int(0, 15_000))
    const reply = await this.#insist('POST', `batch/${id}/cancel`, [200, 409])
    world.count(`cancels of batches: ${reply?.status}`)
    if (reply?.status === 200) checks.batches.cancelled(id)
  }

  /** Its requests in their order; null when the endpoint is gone. */
  async #listed(id: BatchId): Promise<readonly JobId[] | null> {
    const reply = await this.#insist('GET', `batch/${id}/requests`, [200])
    if (reply === null) return null
    return (JSON.parse(reply.text) as { requests: SeenJob[] }).requests.map(job => job.id)
  }

  /** From when it is a job on; null when nobody knows its end. */
  async #follow(batch: BatchId, plan: JobPlan, id: JobId | undefined, sinceMs: number): Promise<SeenJob | null> {
    const { checks, life } = this.#parts
    if (id === undefined) return null
    for (;;) {
      const reply = await this.#insist('GET', `status/${id}`, [200, 404])
      if (reply === null) return null
      if (reply.status === 200) {
        const job = JSON.parse(reply.text) as SeenJob
        checks.clients.follow(id, this.#endpoint, sinceMs + (plan.ttlMs ?? KEPT_MS), plan.tag)
        checks.clients.saw(job, reply.order)
        return new JobStory(this.#parts, plan).follow({ endpoint: this.#endpoint, job })
      }
      // After a kill requests become jobs a moment later, and until then they are in the list.
      const listed = await this.#listed(batch)
      if (listed === null || (plan.ttlMs !== undefined && !listed.includes(id))) return null
      if (!listed.includes(id)) this.#parts.world.report(`request ${id} of batch ${batch} has vanished`)
      await life.sleep(1_000)
    }
  }

  /** Its counts must be those of its jobs. */
  async #count(id: BatchId, ends: readonly (SeenJob | null)[]): Promise<void> {
    const { life, world } = this.#parts
    const completed = ends.filter(job => job?.status === 'COMPLETED').length
    const cancelled = ends.filter(job => job?.status === 'CANCELLED').length
    const unknown = ends.filter(job => job === null).length
    for (;;) {
      const batch = await this.#look(id)
      if (batch === null) return
      const { requestTotal, requestCompleted, requestFailed } = batch
      if (requestTotal !== ends.length || requestCompleted < completed || requestFailed < cancelled)
        world.report(`batch ${id} says ${JSON.stringify(batch)}, its jobs are ${ends.map(job => job?.status)}`)
      // A retry without an answer may still be on its way; without one nothing is left to end.
      if (requestCompleted + requestFailed === ends.length) {
        if (unknown === 0) world.count('batches with all ends seen')
        return
      }
      await life.sleep(1_000)
    }
  }

  async #look(id: BatchId): Promise<SeenBatch | null> {
    const reply = await this.#insist('GET', `batch/${id}`, [200])
    return reply === null ? null : (JSON.parse(reply.text) as SeenBatch)
  }

  /** Asks again until there is an answer; null when it is none of `statuses`, as it may be where the endpoint is deleted. */
  async #insist(
    method: 'GET' | 'POST',
    operation: string,
    statuses: readonly number[],
    body?: string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer | null> {
    const { calls, checks, life, random, world } = this.#parts
    if (method === 'POST') this.#doubted = false
    for (;;) {
      const asking = body === undefined ? { headers } : { headers, body }
      const reply = await calls[method === 'GET' ? 'get' : 'post'](this.#endpoint, operation, asking)
      if (reply.ok && reply.status < 500) {
        if (reply.status === 404 && checks.clients.deleted.has(this.#endpoint)) return null
        if (statuses.includes(reply.status)) return reply
        world.report(`${method} ${operation} was answered with ${reply.status} ${reply.text}`)
        return null
      }
      if (method === 'POST') this.#doubted = true
      await life.sleep(random.int(500, 3_000))
    }
  }
}

/** The whole of a request is drawn like that of a run. */
function drawRequest({ random }: StoryParts, tag: string): JobPlan {
  for (;;) {
    const plan = drawPlan(random, tag)
    if (plan.kind === 'run') return { ...plan, key: null }
  }
}

function bodyOf(plans: readonly JobPlan[]): string {
  return `[${plans.map(({ body }) => body).join(',')}]`
}
