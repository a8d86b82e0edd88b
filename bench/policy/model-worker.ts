import { Life } from '../../sim/life.ts'
import type { Network } from '../../sim/network.ts'
import { Protocol } from '../../sim/workers/protocol.ts'
import type { World } from '../../sim/world.ts'
import type { JobId } from '../../src/core/ids.ts'
import type { WorkerSpec } from '../../src/ports/driver.ts'
import type { BusyCard } from './busy-card.ts'
import type { ModelRequest } from './model-requests.ts'
import { BATCH, type PolicyRecorder } from './policy-outcome.ts'

/** Time between two takes of a worker that is full. */
const FULL_MS = 20
/** Pause of an SDK after a take without a job. */
const NO_JOB_MS = 10
const FAILED_TAKE_MS = 1_000

/** Parts of a {@link ModelWorker}. */
export interface ModelWorkerParts {
  readonly world: World
  readonly network: Network
  readonly recorder: PolicyRecorder
  readonly requests: readonly ModelRequest[]
  readonly card: BusyCard
  /** Duration of its start. */
  readonly startMs: number
  /** Called when it has ended by itself. */
  readonly exit: () => void
}

/** A worker with a model on a card, which uses the worker protocol as RunPod's SDK for Python does. */
export class ModelWorker {
  readonly life: Life
  readonly #parts
  readonly #spec
  readonly #protocol
  readonly #jobs = new Set<JobId>()
  #readyAtMs = 0
  #isTerminated = false

  constructor(parts: ModelWorkerParts, spec: WorkerSpec) {
    this.#parts = parts
    this.#spec = spec
    this.life = new Life(parts.world.clock)
    const { workerId: id, protocolEnv: env } = spec
    this.#protocol = new Protocol({ id, sdk: 'python', env, life: this.life, network: parts.network })
    void this.#takes()
    void this.#pings()
  }

  /** Sends SIGTERM: it ends once its jobs are done. */
  terminate(): void {
    this.life.deliver(() => {
      this.#isTerminated = true
      this.#endWhenDone()
    })
  }

  /** Kills it. */
  die(): void {
    this.life.end()
    this.#parts.card.drop(this.#spec.workerId)
  }

  async #takes(): Promise<void> {
    const { world, startMs } = this.#parts
    await this.life.sleep(startMs)
    this.#readyAtMs = world.clock.monotonic()
    while (!this.#isTerminated) {
      const free = BATCH - this.#jobs.size
      if (free === 0) {
        await this.life.sleep(FULL_MS)
        continue
      }
      const reply = await this.#protocol.take(free, this.#jobs.size > 0)
      if (!reply.ok || reply.status !== 200) {
        await this.life.sleep(reply.ok && reply.status === 204 ? NO_JOB_MS : FAILED_TAKE_MS)
        continue
      }
      const taken = JSON.parse(reply.text) as TakenJob | readonly TakenJob[]
      for (const job of [taken].flat()) void this.#work(job)
    }
  }

  async #work({ id, input }: TakenJob): Promise<void> {
    const { requests, recorder, card } = this.#parts
    const request = requests[input.n]!
    this.#jobs.add(id)
    recorder.began(request, this.#readyAtMs)
    await this.life.guard(card.run(this.#spec.workerId, request.workMs))
    recorder.ended(request)
    await this.#protocol.post('OUTPUT', id, JSON.stringify({ output: 'done' }))
    this.#jobs.delete(id)
    if (this.#isTerminated) this.#endWhenDone()
  }

  #endWhenDone(): void {
    if (this.#jobs.size > 0 || this.life.over) return
    this.life.end()
    this.#parts.exit()
  }

  async #pings(): Promise<void> {
    for (;;) {
      await this.#protocol.ping([...this.#jobs], this.life)
      await this.life.sleep(Number(this.#spec.protocolEnv.RUNPOD_PING_INTERVAL))
    }
  }
}

interface TakenJob {
  readonly id: JobId
  /** Index of its request. */
  readonly input: { readonly n: number }
}
