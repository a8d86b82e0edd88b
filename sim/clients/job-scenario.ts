import type { EndpointId, JobId } from '../../src/core/ids.ts'
import { isFinal } from '../../src/core/jobs/job.ts'
import { JOB_TIMES, retentionMs } from '../../src/core/jobs/retention.ts'
import type { SeenJob } from '../checks/client-checker.ts'
import { readNonce } from '../checks/run-checker.ts'
import { type Chunk, StreamChecker } from '../checks/stream-checker.ts'
import type { Reply } from '../network.ts'
import type { JobPlan, ScenarioParts } from './plan.ts'
import { StreamReader } from './stream-reader.ts'

/** A job that the server acknowledged. */
export interface Accepted {
  readonly endpoint: EndpointId
  readonly job: SeenJob
}

/** All calls of a client for one job, from its submission until its final state has been read again. */
export class JobScenario {
  readonly #parts: ScenarioParts
  readonly #plan: JobPlan

  constructor(parts: ScenarioParts, plan: JobPlan) {
    this.#parts = parts
    this.#plan = plan
  }

  /** Runs the scenario to its end. */
  async run(): Promise<void> {
    if (this.#plan.kind === 'openai') return askOpenAi(this.#parts, this.#plan)
    await this.follow(await this.#submit())
  }

  /** Like {@link run}, for a job that exists. Returns the last state that it received; null if the job was removed. */
  async follow({ endpoint, job }: Accepted): Promise<SeenJob | null> {
    const changes = [this.#cancel(endpoint, job.id), this.#setTtl(endpoint, job.id)]
    const { checks, world } = this.#parts
    const stream = new StreamChecker(
      job.id,
      problem => world.report(problem),
      nonce => checks.runs.find(nonce),
    )
    let final = isFinal(job.status) ? job : await this.#read(endpoint, job.id, stream)
    for (let retries = this.#plan.retries; retries > 0 && final !== null; retries -= 1) {
      if (final.status !== 'FAILED' && final.status !== 'TIMED_OUT') break
      if (!(await this.#retry(endpoint, job.id))) break
      stream.retried()
      final = await this.#read(endpoint, job.id, stream)
    }
    await this.#watch(endpoint, job.id)
    await Promise.all(changes)
    return final
  }

  /**
   * Submits the job until it is acknowledged. An attempt without a response may make a further
   * job that no client follows.
   */
  async #submit(): Promise<Accepted> {
    const { world, checks, calls, life, random } = this.#parts
    const { kind, tag, body, ttlMs, waitMs } = this.#plan
    let { key } = this.#plan
    let endpoint = this.#parts.endpoint()
    const wait = kind === 'runsync' && waitMs !== undefined ? `?wait=${waitMs}` : ''
    let sinceMs = world.clock.now()
    for (;;) {
      // With a key an earlier attempt may have created the job.
      if (key === null) sinceMs = world.clock.now()
      checks.clients.submits(endpoint, tag, key)
      const headers: Record<string, string> = key === null ? {} : { 'idempotency-key': key }
      const reply = await calls.post(endpoint, `${kind}${wait}`, { body, headers })
      if (reply.ok && reply.status === 200) {
        const job = JSON.parse(reply.text) as SeenJob
        const retentionPeriodMs = Math.min(
          ttlMs ?? JOB_TIMES.ttlMs.default,
          retentionMs(kind === 'run' ? 'run' : 'runsync'),
        )
        checks.clients.follow(job.id, endpoint, sinceMs + retentionPeriodMs, tag)
        // The response of `run` has no result, even when its key belongs to a job that has ended.
        if (kind === 'runsync') checks.clients.saw(job, reply.order)
        return { endpoint, job }
      }
      if (reply.ok && reply.status === 404 && checks.clients.deleted.has(endpoint)) endpoint = this.#parts.endpoint()
      else if (reply.ok && reply.status === 409 && key !== null) {
        // The job of its key has expired, perhaps at each endpoint.
        endpoint = this.#parts.endpoint()
        key = `${key} again`
      } else if (reply.ok && reply.status === 429 && checks.isLimited)
        world.count('submissions over the limit of the account')
      else if (reply.ok && reply.status < 500) world.report(`a ${kind} got ${reply.status} ${reply.text}`)
      await life.sleep(random.int(500, 3_000))
    }
  }

  /** Follows the job to its final state as planned; null when it was removed. */
  async #read(endpoint: EndpointId, id: JobId, checker: StreamChecker): Promise<SeenJob | null> {
    const { world, calls, life, random } = this.#parts
    const { follow } = this.#plan
    if (follow === 'status' || follow === 'status-sync') return this.#poll(endpoint, id)
    const reader = new StreamReader({ world, calls, life, random, checker }, endpoint, id, follow)
    let outcome = await reader.read()
    for (;;) {
      const job = await this.#readJob(endpoint, id, 'status')
      if (job === null || outcome === 'gone') return null
      const isOver = job !== 'no response' && isFinal(job.status)
      if (outcome === 'empty') {
        // This form has no status: once the job has ended, an empty response means that all chunks came.
        outcome = await reader.read()
        if (!isOver || outcome !== 'empty') continue
      }
      if (job === 'no response' || !isOver) {
        if (job !== 'no response') world.report(`the stream of job ${id} ended while the job is ${job.status}`)
        await life.sleep(500)
        continue
      }
      if (job.status === 'COMPLETED') checker.completed(readNonce(JSON.stringify(job.output) ?? null))
      return job
    }
  }

  async #poll(endpoint: EndpointId, id: JobId): Promise<SeenJob | null> {
    const { life, random } = this.#parts
    const isLongPoll = this.#plan.follow === 'status-sync'
    for (;;) {
      await life.sleep(isLongPoll ? random.int(0, 100) : random.int(1_000, 8_000))
      const wait = random.chance(0.5) ? `?wait=${random.int(100, 20_000)}` : ''
      const job = await this.#readJob(endpoint, id, isLongPoll ? 'status-sync' : 'status', isLongPoll ? wait : '')
      if (job === null) return null
      if (job !== 'no response' && isFinal(job.status)) return job
    }
  }

  /** Reads the final state again, so that the checker sees whether it stays. */
  async #watch(endpoint: EndpointId, id: JobId): Promise<void> {
    const { life, random } = this.#parts
    for (let reads = 0; reads < 2; ) {
      await life.sleep(random.int(1_000, 15_000))
      const job = await this.#readJob(endpoint, id, 'status')
      if (job === null) return
      if (job !== 'no response') reads += 1
    }
  }

  /** Reads the job once; null when it was removed. */
  async #readJob(
    endpoint: EndpointId,
    id: JobId,
    operation: string,
    query = '',
  ): Promise<SeenJob | null | 'no response'> {
    const { calls, checks, world } = this.#parts
    const reply = await calls.get(endpoint, `${operation}/${id}${query}`)
    if (!reply.ok || reply.status >= 500) {
      await this.#parts.life.sleep(200)
      return 'no response'
    }
    if (reply.status === 404) {
      checks.clients.missed(id, world.clock)
      return null
    }
    if (reply.status !== 200) {
      world.report(`a ${operation} got ${reply.status} ${reply.text}`)
      return null
    }
    const job = JSON.parse(reply.text) as SeenJob
    checks.clients.saw(job, reply.order)
    if (operation === 'status' && isFinal(job.status)) checks.webhooks.saw(id, reply.text)
    return job
  }

  async #cancel(endpoint: EndpointId, id: JobId): Promise<void> {
    const { life, calls, checks, world } = this.#parts
    if (this.#plan.cancelAfterMs === null) return
    await life.sleep(this.#plan.cancelAfterMs)
    const reply = await calls.post(endpoint, `cancel/${id}`)
    if (!reply.ok) return
    world.count(`cancels: ${reply.status}`)
    if (reply.status === 200) checks.clients.canceled(id, reply.order)
    this.#checkStatus('cancel', reply, [200, 404, 409])
  }

  async #setTtl(endpoint: EndpointId, id: JobId): Promise<void> {
    const { life, calls, checks, world } = this.#parts
    const { newTtl } = this.#plan
    if (newTtl === null) return
    await life.sleep(newTtl.afterMs)
    const untilMs = world.clock.now() + newTtl.ms
    checks.clients.keeps(id, untilMs, false)
    const reply = await calls.get(endpoint, `status/${id}?ttl=${newTtl.ms}`)
    if (!reply.ok) return
    world.count(`new ttls: ${reply.status}`)
    this.#checkStatus('status', reply, [200, 404])
  }

  /** Retries the job. Returns whether it was queued again or may have been. */
  async #retry(endpoint: EndpointId, id: JobId): Promise<boolean> {
    const { life, random, calls, checks, world } = this.#parts
    await life.sleep(random.int(0, 5_000))
    checks.clients.retries(id)
    const sinceMs = world.clock.now()
    const reply = await calls.post(endpoint, `retry/${id}`)
    if (!reply.ok) return true
    world.count(`retries: ${reply.status}`)
    this.#checkStatus('retry', reply, [200, 404, 409])
    const { kind, ttlMs } = this.#plan
    const retentionPeriodMs = Math.min(
      ttlMs ?? JOB_TIMES.ttlMs.default,
      retentionMs(kind === 'run' ? 'run' : 'runsync'),
    )
    if (reply.status === 200) checks.clients.retried(id, sinceMs + retentionPeriodMs, reply.order)
    return reply.status === 200
  }

  #checkStatus(operation: string, reply: Reply & { readonly ok: true }, statuses: readonly number[]): void {
    if (reply.status >= 500 || statuses.includes(reply.status)) return
    this.#parts.world.report(`a ${operation} got ${reply.status} ${reply.text}`)
  }
}

/**
 * Sends a request like an OpenAI client, with retries while no server responds. When the client goes
 * away, its job is cancelled.
 */
async function askOpenAi(parts: ScenarioParts, plan: JobPlan): Promise<void> {
  const { world, checks, calls, life, random } = parts
  for (let attempts = 0; attempts < 5; attempts += 1) {
    const endpoint = parts.endpoint()
    const text: string[] = []
    checks.clients.submits(endpoint, plan.tag, null)
    const timeoutMs = random.chance(0.2) ? random.int(500, 10_000) : 100_000
    const options = { body: plan.body, timeoutMs, onPart: (part: string) => void text.push(part) }
    const reply = await calls.post(endpoint, 'openai/v1/completions', options)
    world.count(`openai: ${reply.ok ? reply.status : reply.why}`)
    if (reply.ok && reply.status === 200) {
      checkOpenAiResponse(parts, reply, plan.streamed ? text.join('') : null)
      return
    }
    // 499: the job was cancelled.
    const expected = [404, 499, ...(checks.isLimited ? [429] : [])]
    if (reply.ok && reply.status < 500 && !expected.includes(reply.status))
      world.report(`an OpenAI request got ${reply.status} ${reply.text}`)
    if (!reply.ok && reply.why === 'timeout') return
    await life.sleep(random.int(500, 5_000))
  }
}

/** Checks an OpenAI response. A complete stream has each chunk of one run once, then `[DONE]`. */
function checkOpenAiResponse(
  { world, checks }: ScenarioParts,
  reply: Reply & { readonly ok: true },
  stream: string | null,
): void {
  const id = reply.headers.get('x-runyard-job-id') as JobId
  if (stream === null || !reply.headers.get('content-type')!.startsWith('text/event-stream')) {
    if (!reply.text.includes(id)) world.report(`the OpenAI response of job ${id} is ${reply.text}`)
    return
  }
  const data = stream.split('\n\n').filter(event => event.startsWith('data: '))
  const texts = data.map(event => event.slice(6))
  const chunks = texts.filter(text => text.startsWith('{"job"')).map(text => JSON.parse(text) as Chunk)
  const checker = new StreamChecker(
    id,
    problem => world.report(problem),
    nonce => checks.runs.find(nonce),
  )
  checker.excuse({ missed: false, repeated: true })
  checker.got(chunks, null)
  if (new Set(chunks.map(({ nonce }) => nonce)).size > 1) world.report(`the OpenAI stream of job ${id} has two runs`)
  if (texts.at(-1) === '[DONE]') checker.completed(chunks[0]?.nonce ?? null)
}
