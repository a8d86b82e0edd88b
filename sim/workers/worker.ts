import type { JobId, WorkerId } from '../../src/core/ids.ts'
import type { WorkerSpec } from '../../src/ports/driver.ts'
import type { RunChecker } from '../checks/run-checker.ts'
import { Life } from '../life.ts'
import type { Network, Reply } from '../network.ts'
import type { SeededRandom } from '../random.ts'
import type { World } from '../world.ts'
import { type Behaviour, drawBehaviour } from './behaviour.ts'
import { Handler, type HeldJob, type JobInput } from './handler.ts'
import { Protocol } from './protocol.ts'

/** What a worker can do to the world around it. */
export interface Surroundings {
  readonly world: World
  readonly network: Network
  readonly runs: RunChecker
  readonly serverRun: () => number
  /** Its process ends by itself. */
  readonly exit: (worker: WorkerId, code: number) => void
  readonly print: (worker: WorkerId, line: string, jobId: JobId) => void
}

/** After this time somebody has had enough of a worker that does nothing. */
const PATIENCE_MS = 150_000
const ORPHAN_MS = 60_000

/** A worker that speaks the real protocol. */
export class SimWorker {
  readonly id: WorkerId
  readonly behaviour: Behaviour
  readonly life: Life
  readonly #around: Surroundings
  readonly #env: Readonly<Record<string, string>>
  readonly #protocol: Protocol
  readonly #handler: Handler
  readonly #random: SeededRandom
  readonly #jobs = new Map<JobId, HeldJob>()
  readonly #taken = new Set<JobId>()
  /** Jobs of an answer that has come and is not read yet. */
  #inbox: readonly TakenJob[] = []
  /** Resolves when the job that blocks the loop is over. */
  #blockedBy: Promise<void> = Promise.resolve()
  #terminated = false
  #loops = 0
  #finished = 0

  constructor(around: Surroundings, spec: WorkerSpec) {
    const { world, network, runs, serverRun } = around
    this.id = spec.workerId
    this.#around = around
    this.#env = spec.protocolEnv
    this.#random = world.random(`worker ${spec.workerId}`)
    const drawn = drawBehaviour(this.#random, world.faults.worker)
    this.behaviour = world.crashLoop ? { ...drawn, name: 'broken', crash: 'at start', bootMs: 500 } : drawn
    this.life = new Life(world.clock)
    const { life, behaviour, id: worker } = this
    this.#protocol = new Protocol({ id: worker, sdk: behaviour.sdk, env: this.#env, life, network })
    this.#handler = new Handler({
      worker,
      behaviour,
      protocol: this.#protocol,
      life,
      random: this.#random,
      runs,
      serverRun,
      calm: () => world.faults.worker === 0,
      print: (line, job) => around.print(worker, line, job),
      count: what => world.count(what),
      exit: code => this.#exit(code),
    })
    world.count(`workers: ${behaviour.name}`)
    world.trace.add('worker', `${worker} starts as ${behaviour.name}`)
    void this.#main()
  }

  /** It is asked to end. */
  terminate(): void {
    if (!this.behaviour.obeysTerm || this.#terminated) return
    this.#terminated = true
    // Before its loops run the default of the signal ends it.
    if (this.#loops === 0) this.#exit(143)
    else void this.#endWhenDone()
  }

  /** Whether this job has ever reached it. */
  hasTaken(job: JobId): boolean {
    return this.#taken.has(job)
  }

  /** Whether it works on this job, and the server has no reason to believe otherwise. */
  holds(job: JobId): boolean {
    if (this.life.over) return false
    return this.#jobs.get(job)?.excused === false || this.#inbox.some(({ id }) => id === job)
  }

  /** It has been killed. */
  die(): void {
    this.life.end()
  }

  async #main(): Promise<void> {
    const { bootMs, crash } = this.behaviour
    await this.life.sleep(Math.min(bootMs, PATIENCE_MS))
    if (crash === 'at start' || bootMs > PATIENCE_MS) return this.#exit(1)
    this.#loops = this.behaviour.sdk === 'old python' ? 1 : 2
    void this.#pingLoop(this.life)
    if (this.#loops === 2) void this.#stopLoop()
    await this.#takeLoop()
  }

  async #takeLoop(): Promise<void> {
    while (!this.#terminated) {
      if (this.#finished >= this.behaviour.zombieAfter) return this.#haunt()
      const free = this.behaviour.concurrency - this.#jobs.size
      if (free <= 0) {
        await this.life.sleep(this.behaviour.sdk === 'runyard' ? 50 : 1_000)
        continue
      }
      const reply = await this.#protocol.take(free, this.#jobs.size > 0)
      const handed = reply.ok && reply.status === 200 ? jobsOf(reply.text) : []
      const excused = reply.loss === 'doubted'
      if (!excused) this.#inbox = handed
      if (this.behaviour.blocks) await this.#unblocked()
      this.#inbox = []
      if (handed.length > 0) this.#accept(handed, excused)
      else await this.life.sleep(pauseAfter(reply))
    }
    this.#loops -= 1
  }

  /** Its ping process lives on, and nothing else. */
  async #haunt(): Promise<void> {
    await this.life.sleep(PATIENCE_MS)
    this.#exit(1)
  }

  #accept(handed: readonly TakenJob[], excused: boolean): void {
    for (const { id, input } of handed) {
      // Where the server was told that its answer got lost, it may hand a job out again.
      if (this.#jobs.has(id)) continue
      this.#taken.add(id)
      const job = { id, input: input.openai_input ?? input, dropped: false, excused }
      this.#jobs.set(id, job)
      // The Python SDK never runs what comes after it was asked to end, and ends without a word about it.
      if (this.#terminated && this.behaviour.sdk !== 'runyard') this.#jobs.delete(id)
      else void this.#work(job)
    }
  }

  async #work(job: HeldJob): Promise<void> {
    const { blocks, forgets, posts } = this.behaviour
    // A real one forgets what it could not report; it does not go on with it, but for a result that comes late.
    if (forgets && (job.input.chunks ?? 0) === 0)
      this.life.after(this.#random.int(0, 2 * job.input.ms), () => this.#forget(job))
    const before = this.#blockedBy
    const run = async () => {
      if (blocks) await before
      await this.#handler.run(job)
    }
    const over = run()
    if (blocks) this.#blockedBy = over
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
      if (this.behaviour.blocks) await this.#unblocked()
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

  /** While the loop is blocked the list stays as it was. */
  async #pingLoop(life: Life, stale?: readonly JobId[]): Promise<void> {
    for (;;) {
      await this.#protocol.ping(stale ?? [...this.#jobs.keys()], life)
      await life.sleep(Number(this.#env.RUNPOD_PING_INTERVAL))
    }
  }

  /** It ends when its jobs are done and its polls have come back. */
  async #endWhenDone(): Promise<void> {
    while (this.#jobs.size > 0 || this.#loops > 0) await this.life.sleep(200)
    await this.life.sleep(this.#random.int(0, 1_000))
    this.#exit(0)
  }

  #exit(code: number): void {
    const { world } = this.#around
    if (this.life.over) return
    world.trace.add('worker', `${this.id} exits with ${code}`)
    if (code !== 0) world.count('worker crashes')
    this.life.end()
    if (this.behaviour.orphanPings) {
      const orphan = new Life(world.clock)
      void this.#pingLoop(orphan, [...this.#jobs.keys()])
      orphan.after(ORPHAN_MS, () => orphan.end())
    }
    this.#around.exit(this.id, code)
  }
}

interface TakenJob {
  readonly id: JobId
  readonly input: JobInput & { readonly openai_input?: JobInput }
}

function jobsOf(text: string): TakenJob[] {
  const parsed = JSON.parse(text) as TakenJob | TakenJob[]
  return Array.isArray(parsed) ? parsed : [parsed]
}

/** The real loops ask again at once after most answers; a tenth of a second keeps the number of steps small. */
function pauseAfter(reply: Reply): number {
  if (!reply.ok) return 500
  if (reply.status === 429) return 5_000
  return reply.status === 204 ? 100 : 500
}
