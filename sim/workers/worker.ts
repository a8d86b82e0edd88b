import type { JobId, WorkerId } from '../../src/core/ids.ts'
import type { WorkerSpec } from '../../src/ports/driver.ts'
import type { RunChecker } from '../checks/run-checker.ts'
import { Life } from '../life.ts'
import type { Network, Reply } from '../network.ts'
import type { SeededRandom } from '../random.ts'
import type { World } from '../world.ts'
import { type Behavior, drawBehavior } from './behavior.ts'
import { Handler, type HeldJob, type JobInput } from './handler.ts'
import { Protocol } from './protocol.ts'

/** Parts that a worker uses. */
export interface WorkerParts {
  readonly world: World
  readonly network: Network
  readonly runs: RunChecker
  readonly serverRun: () => number
  /** Ends its process. */
  readonly exit: (worker: WorkerId, code: number) => void
  readonly print: (worker: WorkerId, line: string, jobId: JobId | null) => void
}

/** Time after which a worker that takes no jobs exits. */
const IDLE_LIMIT_MS = 150_000
/** Time for which pings continue after the end of their worker. */
const ORPHAN_MS = 60_000

/** A simulated worker that uses the real worker protocol. */
export class SimWorker {
  readonly id: WorkerId
  readonly behavior: Behavior
  readonly life: Life
  readonly #parts: WorkerParts
  readonly #env: Readonly<Record<string, string>>
  readonly #protocol: Protocol
  readonly #handler: Handler
  readonly #random: SeededRandom
  readonly #jobs = new Map<JobId, HeldJob>()
  readonly #taken = new Set<JobId>()
  /** Jobs of a response that has arrived and is not read yet. */
  #inbox: readonly TakenJob[] = []
  /** Resolves when its hooks are over, with whether they have succeeded. */
  #hooks: Promise<boolean> = Promise.resolve(true)
  /** Resolves when the job that the next one waits for has ended. */
  #blockedBy: Promise<void> = Promise.resolve()
  #terminated = false
  /** True once its hooks failed: from then on it runs no job and only posts that error. */
  #hasFailed = false
  #loops = 0
  #finished = 0

  constructor(parts: WorkerParts, spec: Pick<WorkerSpec, 'workerId' | 'protocolEnv'>) {
    const { world, network, runs, serverRun } = parts
    this.id = spec.workerId
    this.#parts = parts
    this.#env = spec.protocolEnv
    this.#random = world.random(`worker ${spec.workerId}`)
    const drawn = drawBehavior(this.#random, world.faults.worker)
    this.behavior = world.crashLoop ? { ...drawn, name: 'broken', crash: 'at start', bootMs: 500 } : drawn
    this.life = new Life(world.clock)
    const { life, behavior, id: worker } = this
    this.#protocol = new Protocol({ id: worker, sdk: behavior.sdk, env: this.#env, life, network })
    this.#handler = new Handler({
      worker,
      behavior,
      protocol: this.#protocol,
      life,
      random: this.#random,
      runs,
      serverRun,
      calm: () => world.faults.worker === 0,
      print: (line, job) => parts.print(worker, line, job),
      count: event => world.count(event),
      exit: code => this.#exit(code),
    })
    world.count(`workers: ${behavior.name}`)
    world.trace.add('worker', `${worker} starts as ${behavior.name}`)
    void this.#main()
  }

  /** Freezes the worker. */
  freeze(): void {
    this.#parts.world.trace.add('worker', `${this.id} is frozen`)
    this.life.freeze()
  }

  /** Thaws the worker. */
  thaw(): void {
    this.#parts.world.trace.add('worker', `${this.id} is thawed`)
    this.life.thaw()
  }

  /** Sends SIGTERM, which the worker receives when it is not frozen. */
  terminate(): void {
    this.life.deliver(() => this.#terminate())
  }

  #terminate(): void {
    if (!this.behavior.obeysTerm || this.#terminated) return
    this.#terminated = true
    // Before its loops run, the default action of the signal ends it.
    if (this.#loops === 0) this.#exit(143)
    else void this.#endWhenDone()
  }

  /** True if it ever received this job. */
  hasTaken(job: JobId): boolean {
    return this.#taken.has(job)
  }

  /** True if it runs this job, and the server has no reason to assume otherwise. */
  holds(job: JobId): boolean {
    if (this.life.over || this.#hasFailed) return false
    return this.#jobs.get(job)?.maybeUnknown === false || this.#inbox.some(({ id }) => id === job)
  }

  /** Kills the worker. */
  die(): void {
    this.life.end()
  }

  async #main(): Promise<void> {
    const { bootMs, crash } = this.behavior
    await this.life.sleep(Math.min(bootMs, IDLE_LIMIT_MS))
    if (crash === 'at start' || bootMs > IDLE_LIMIT_MS) return this.#exit(1)
    this.#loops = this.behavior.sdk === 'old python' ? 1 : 2
    void this.#pingLoop(this.life)
    if (this.#loops === 2) void this.#stopLoop()
    if (this.behavior.hooks !== 'none') this.#hooks = this.#runHooks()
    await this.#takeLoop()
  }

  async #takeLoop(): Promise<void> {
    while (!this.#terminated) {
      if (this.#finished >= this.behavior.zombieAfter) return this.#onlyPing()
      const free = this.behavior.concurrency - this.#jobs.size
      if (free <= 0) {
        await this.life.sleep(this.behavior.sdk === 'runyard' ? 50 : 1_000)
        continue
      }
      const reply = await this.#protocol.take(free, this.#jobs.size > 0)
      const takenJobs = reply.ok && reply.status === 200 ? readJobs(reply.text) : []
      const maybeUnknown = reply.loss === 'doubted'
      if (free === 1 && takenJobs.length > 1) this.#parts.world.count('takes that got several short jobs')
      if (!maybeUnknown) this.#inbox = takenJobs
      if (this.behavior.blocks) await this.#unblocked()
      this.#inbox = []
      if (takenJobs.length > 0) this.#accept(takenJobs, maybeUnknown)
      else await this.life.sleep(pauseAfter(reply))
    }
    this.#loops -= 1
  }

  /**
   * Runs its hooks beside its loops. If they fail it posts the error in place of each result, takes one job to report
   * it if it holds no job, and exits.
   */
  async #runHooks(): Promise<boolean> {
    const { hooks } = this.behavior
    const print = (line: string) => this.#parts.print(this.id, line, null)
    if (hooks !== 'fail in silence') print('INFO Prestart | phase started')
    await this.life.sleep(this.#random.int(0, 5_000))
    if (hooks === 'succeed') {
      print('INFO Prestart | ready')
      return true
    }
    this.#terminated = true
    this.#hasFailed = true
    if (hooks === 'fail') print(`ERROR prestart_failed | ${this.#failure()}`)
    const reply = this.#jobs.size === 0 ? await this.#protocol.take(1, false) : null
    if (reply?.ok === true && reply.status === 200)
      for (const job of readJobs(reply.text)) this.#jobs.set(job.id, heldJob(job))
    for (const id of this.#jobs.keys())
      await this.#protocol.post('OUTPUT', id, JSON.stringify({ error: this.#failure() }))
    this.#parts.world.count('workers that did not start')
    this.#exit(1)
    return false
  }

  #failure(): string {
    const error = { error_type: 'RuntimeError', error_message: 'no weights', worker_id: this.id, hook: 'load' }
    return JSON.stringify({ event: 'prestart_failed', ...error })
  }

  /** Only its ping process goes on. */
  async #onlyPing(): Promise<void> {
    await this.life.sleep(IDLE_LIMIT_MS)
    this.#exit(1)
  }

  #accept(takenJobs: readonly TakenJob[], maybeUnknown: boolean): void {
    for (const takenJob of takenJobs) {
      const { id } = takenJob
      // A server that counts its response as lost may dispatch a job twice.
      if (this.#jobs.has(id)) continue
      this.#taken.add(id)
      const job = heldJob(takenJob, maybeUnknown)
      this.#jobs.set(id, job)
      // The Python SDK does not run jobs that arrive after SIGTERM, and does not report them.
      if (this.#terminated && this.behavior.sdk !== 'runyard') this.#jobs.delete(id)
      else void this.#work(job)
    }
  }

  async #work(job: HeldJob): Promise<void> {
    const { blocks, forgets, posts, concurrency } = this.behavior
    const isInRow = blocks || concurrency === 1
    // A real worker forgets a job that it could not report. It does not go on with it, except for a late result.
    if (forgets && (job.input.chunks ?? 0) === 0)
      this.life.after(this.#random.int(0, 2 * job.input.ms), () => this.#forget(job))
    const previousRun = this.#blockedBy
    const run = async () => {
      if (!(await this.#hooks)) return
      if (isInRow) await previousRun
      await this.#handler.run(job)
    }
    const over = run()
    if (isInRow) this.#blockedBy = over
    await over
    this.#finished += 1
    if (posts > 0 && this.#jobs.get(job.id) === job) this.#jobs.delete(job.id)
  }

  async #unblocked(): Promise<void> {
    for (let latest: Promise<void> | null = null; latest !== this.#blockedBy; ) {
      latest = this.#blockedBy
      await latest
    }
  }

  #forget(job: HeldJob): void {
    if (this.#jobs.get(job.id) === job) this.#jobs.delete(job.id)
  }

  async #stopLoop(): Promise<void> {
    while (!this.#terminated) {
      const reply = await this.#protocol.stops()
      if (this.behavior.blocks) await this.#unblocked()
      if (!reply.ok || reply.status !== 200) {
        await this.life.sleep(reply.ok && reply.status === 429 ? 5_000 : 1_000)
        continue
      }
      for (const id of (JSON.parse(reply.text) as { jobsToStop: JobId[] }).jobsToStop) this.#stop(id)
    }
    this.#loops -= 1
  }

  #stop(id: JobId): void {
    const job = this.#jobs.get(id)
    if (job === undefined || !this.behavior.obeysStops) return
    if (!job.begun && this.behavior.sdk === 'python') {
      this.#parts.world.count('stops that arrive too early')
      return
    }
    job.stopped = true
    this.#jobs.delete(id)
  }

  /** Pings with the current jobs, or with `stale` ones. */
  async #pingLoop(life: Life, stale?: readonly JobId[]): Promise<void> {
    for (;;) {
      await this.#protocol.ping(stale ?? [...this.#jobs.keys()], life)
      await life.sleep(Number(this.#env.RUNPOD_PING_INTERVAL))
    }
  }

  /** Ends when its jobs are done and its polls have returned. */
  async #endWhenDone(): Promise<void> {
    while (this.#jobs.size > 0 || this.#loops > 0) await this.life.sleep(200)
    await this.life.sleep(this.#random.int(0, 1_000))
    this.#exit(0)
  }

  #exit(code: number): void {
    const { world } = this.#parts
    if (this.life.over) return
    world.trace.add('worker', `${this.id} exits with ${code}`)
    if (code !== 0) world.count('worker crashes')
    this.life.end()
    if (this.behavior.orphanPings) {
      const orphan = new Life(world.clock)
      void this.#pingLoop(orphan, [...this.#jobs.keys()])
      orphan.after(ORPHAN_MS, () => orphan.end())
    }
    this.#parts.exit(this.id, code)
  }
}

interface TakenJob {
  readonly id: JobId
  readonly input: JobInput & { readonly openai_input?: JobInput }
}

function heldJob({ id, input }: TakenJob, maybeUnknown = false): HeldJob {
  return { id, input: input.openai_input ?? input, begun: false, stopped: false, maybeUnknown }
}

function readJobs(text: string): TakenJob[] {
  const parsed = JSON.parse(text) as TakenJob | TakenJob[]
  return Array.isArray(parsed) ? parsed : [parsed]
}

/**
 * Pause after a take. The real loops take again at once after most responses; a pause keeps
 * the number of steps small.
 */
function pauseAfter(reply: Reply): number {
  if (!reply.ok) return 500
  if (reply.status === 429) return 5_000
  return reply.status === 204 ? 100 : 500
}
