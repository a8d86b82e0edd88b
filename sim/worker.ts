import type { JobId, WorkerId } from '../src/core/ids.ts'
import type { WorkerSpec } from '../src/ports/driver.ts'
import { type Behaviour, drawBehaviour } from './behaviour.ts'
import { Life } from './life.ts'
import type { Network, Reply } from './network.ts'
import type { SeededRandom } from './random.ts'
import type { World } from './world.ts'

/** What a worker can do to the world around it. */
export interface Surroundings {
  readonly world: World
  readonly network: Network
  /** Its process ends by itself. */
  readonly exit: (worker: WorkerId, code: number) => void
  readonly print: (worker: WorkerId, line: string, jobId: JobId) => void
}

interface HeldJob {
  readonly id: JobId
  readonly input: { readonly ms: number; readonly fail?: boolean; readonly chunks?: number }
  dropped: boolean
}

const TAKE_TIMEOUT_MS = 90_000
const POST_TIMEOUT_MS = 600_000

/** A worker that speaks the real protocol, in the manner of one of the SDKs. */
export class SimWorker {
  readonly id: WorkerId
  readonly behaviour: Behaviour
  readonly life: Life
  readonly #around: Surroundings
  readonly #env: Readonly<Record<string, string>>
  readonly #random: SeededRandom
  readonly #jobs = new Map<JobId, HeldJob>()
  readonly #taken = new Set<JobId>()
  #terminated = false
  #loops = 0
  #finished = 0

  constructor(around: Surroundings, spec: WorkerSpec) {
    const { world } = around
    this.id = spec.workerId
    this.#around = around
    this.#env = spec.protocolEnv
    this.#random = world.random(`worker ${spec.workerId}`)
    const drawn = drawBehaviour(this.#random, world.faults.worker)
    this.behaviour = world.crashLoop ? { ...drawn, name: 'broken', crash: 'at start' } : drawn
    this.life = new Life(world.clock)
    world.count(`workers: ${this.behaviour.name}`)
    world.trace.add('worker', `${this.id} starts as ${this.behaviour.name}`)
    void this.#main()
  }

  /** It is asked to end. */
  terminate(): void {
    if (!this.behaviour.obeysTerm || this.#terminated) return
    this.#terminated = true
    void this.#endWhenDone()
  }

  /** Whether this job has ever reached it. */
  hasTaken(job: JobId): boolean {
    return this.#taken.has(job)
  }

  /** It has been killed. */
  die(): void {
    this.life.end()
  }

  async #main(): Promise<void> {
    const { bootMs, crash } = this.behaviour
    await this.life.sleep(bootMs)
    if (crash === 'at start') return this.#exit(1)
    this.#loops = 2
    void this.#pingLoop()
    void this.#stopLoop()
    await this.#takeLoop()
  }

  async #takeLoop(): Promise<void> {
    while (!this.#terminated) {
      const free = this.behaviour.concurrency - this.#jobs.size
      if (free <= 0) {
        await this.life.sleep(this.behaviour.sdk === 'python' ? 1_000 : 50)
        continue
      }
      const reply = await this.#get(this.#takeUrl(free), TAKE_TIMEOUT_MS)
      if (reply.ok && reply.status === 200) this.#accept(reply.text)
      else await this.life.sleep(pauseAfter(reply))
    }
    this.#loops -= 1
  }

  #accept(text: string): void {
    const parsed = JSON.parse(text) as HeldJob | HeldJob[]
    for (const { id, input } of Array.isArray(parsed) ? parsed : [parsed]) {
      // Where the server was told that its answer got lost, it may hand a job out again.
      if (this.#jobs.has(id)) continue
      this.#taken.add(id)
      const job = { id, input, dropped: false }
      this.#jobs.set(id, job)
      // The Python SDK never runs what comes after it was asked to end, and ends without a word about it.
      if (this.#terminated && this.behaviour.sdk === 'python') this.#jobs.delete(id)
      else void this.#runJob(job)
    }
  }

  async #runJob(job: HeldJob): Promise<void> {
    const { crash, slowness, posts } = this.behaviour
    await this.life.sleep(this.#random.int(0, 100))
    const durationMs = Math.round(job.input.ms * slowness)
    if (crash === 'in a job') {
      await this.life.sleep(Math.round(durationMs * this.#random.fraction()))
      return this.#exit(134)
    }
    for (let chunk = 1; chunk <= (job.input.chunks ?? 0); chunk += 1) {
      await this.#post('STREAM', job.id, JSON.stringify({ output: chunk }))
      if (chunk === 1) await this.#post('OUTPUT', job.id, '{"status":"IN_PROGRESS","output":"half way"}')
    }
    await this.life.sleep(durationMs)
    if (job.dropped && this.behaviour.obeysStops) return
    if (posts === 0) return
    await this.#report(job)
    this.#jobs.delete(job.id)
  }

  async #report(job: HeldJob): Promise<void> {
    this.#finished += 1
    const { refreshes, posts, crash } = this.behaviour
    const output = { job: job.id, worker: this.id, nth: this.#finished }
    const stopPod = refreshes && this.#finished % 3 === 0 ? { stopPod: true } : {}
    const result = job.input.fail ? { error: 'the handler has failed' } : { output }
    const body = JSON.stringify({ ...result, ...stopPod })
    this.#around.print(this.id, `finished ${job.id}`, job.id)
    if (crash === 'after a post') {
      void this.#postOnce('OUTPUT', job.id, body, this.#random.int(0, 15_000))
      return this.#exit(139)
    }
    for (let time = 0; time < posts; time += 1) await this.#post('OUTPUT', job.id, body)
  }

  async #stopLoop(): Promise<void> {
    const url = this.#env.RUNPOD_WEBHOOK_GET_JOB!.replace('/job-take/', '/job-stop/').replace('$ID', this.id)
    while (!this.#terminated) {
      const reply = await this.#get(url, TAKE_TIMEOUT_MS)
      if (!reply.ok || reply.status !== 200) {
        await this.life.sleep(reply.ok && reply.status === 429 ? 5_000 : 1_000)
        continue
      }
      for (const id of (JSON.parse(reply.text) as { jobsToStop: JobId[] }).jobsToStop) this.#drop(id)
    }
    this.#loops -= 1
  }

  #drop(id: JobId): void {
    const job = this.#jobs.get(id)
    if (job === undefined || !this.behaviour.obeysStops) return
    job.dropped = true
    this.#jobs.delete(id)
  }

  async #pingLoop(): Promise<void> {
    for (;;) {
      const ids = [...this.#jobs.keys()].join(',')
      const list = ids === '' ? '' : `&job_id=${encodeURIComponent(ids)}`
      const url = this.#env.RUNPOD_WEBHOOK_PING!.replace('$RUNPOD_POD_ID', this.id)
      await this.#get(`${url}${list}&runpod_version=1.12.0`, 20_000)
      await this.life.sleep(Number(this.#env.RUNPOD_PING_INTERVAL))
    }
  }

  /** It ends when its jobs are done and its polls have come back. */
  async #endWhenDone(): Promise<void> {
    while (this.#jobs.size > 0 || this.#loops > 0) await this.life.sleep(200)
    await this.life.sleep(this.#random.int(0, 1_000))
    this.#exit(0)
  }

  #exit(code: number): void {
    this.#around.world.trace.add('worker', `${this.id} exits with ${code}`)
    if (code !== 0) this.#around.world.count('worker crashes')
    this.life.end()
    this.#around.exit(this.id, code)
  }

  #takeUrl(free: number): string {
    const url = this.#env.RUNPOD_WEBHOOK_GET_JOB!.replace('$ID', this.id)
    const running = `&job_in_progress=${this.#jobs.size > 0 ? 1 : 0}`
    if (free === 1) return `${url}${running}`
    return `${url.replace('/job-take/', '/job-take-batch/')}&batch_size=${free}${running}`
  }

  #get(url: string, timeoutMs: number): Promise<Reply> {
    const headers = { authorization: this.#env.RUNPOD_AI_API_KEY!, 'user-agent': this.#userAgent() }
    return this.#around.network.send({ who: this.id, method: 'GET', url, headers, life: this.life, timeoutMs })
  }

  /** Tries as often as the SDK does. */
  async #post(kind: 'OUTPUT' | 'STREAM', job: JobId, body: string): Promise<void> {
    const python = this.behaviour.sdk === 'python'
    for (let attempt = 1; attempt <= (python ? 3 : 60); attempt += 1) {
      const reply = await this.#postOnce(kind, job, body, 0)
      if (reply.ok && reply.status < 500) return
      if (!reply.ok && python) return
      await this.life.sleep(Math.min(5_000, 1_000 * attempt + this.#random.int(0, 500)))
    }
  }

  #postOnce(kind: 'OUTPUT' | 'STREAM', job: JobId, body: string, extraMs: number): Promise<Reply> {
    const template = this.#env[`RUNPOD_WEBHOOK_POST_${kind}`]!
    const url = `${template.replace('$RUNPOD_POD_ID', this.id).replace('$ID', job)}&isStream=false`
    const headers = {
      ...{ authorization: this.#env.RUNPOD_AI_API_KEY!, 'user-agent': this.#userAgent() },
      ...{ 'content-type': 'application/x-www-form-urlencoded', charset: 'utf-8', 'x-request-id': job },
    }
    const call = {
      who: this.id,
      method: 'POST',
      url,
      headers,
      body,
      life: this.life,
      timeoutMs: POST_TIMEOUT_MS,
    } as const
    return this.#around.network.send({ ...call, outlives: true, extraMs })
  }

  #userAgent(): string {
    return this.behaviour.sdk === 'python'
      ? 'RunPod-Python-SDK/1.12.0 (Linux; x86_64) Language/Python 3.11.9'
      : 'Runyard-Worker-SDK/0.1.0 (linux; x64) Language/Node 26.10.0'
  }
}

/** The real loops ask again at once after most answers; a tenth of a second keeps the number of steps small. */
function pauseAfter(reply: Reply): number {
  if (!reply.ok) return 500
  if (reply.status === 429) return 5_000
  return reply.status === 204 ? 100 : 500
}
