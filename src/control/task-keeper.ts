import { TASK_TOKEN } from '../core/endpoints/runtime-image.ts'
import { saysRunning, taskIdleMs } from '../core/endpoints/task.ts'
import type { WorkerId } from '../core/ids.ts'
import type { Ports } from '../ports/ports.ts'
import type { BalancedWorker, LoadBalancer } from '../services/balancing/load-balancer.ts'
import type { Fleet } from '../services/workers/fleet.ts'

/** Interval of looks at tasks. */
const STEP_MS = 15_000
/** Programs that are asked at once. */
const MAX_ASKED = 32
/** Longest wait for an answer of a program. */
const ASK_MS = 2_000
/** Largest answer of a program whose function runs. A result is larger, and means that it does not. */
const MAX_BYTES = 64 * 1024

/** The parts of the template of a task that concern its end. */
interface Asked {
  readonly idleMs: number
  readonly token: string
}

/**
 * Ends tasks for whose result nobody asks any more: their program should end itself, but that of a custom image may
 * not, or not reach the server. A task whose function runs, or whose program does not answer, goes on.
 */
export class TaskKeeper {
  readonly #ports
  readonly #parts
  /** These parts of running tasks, by worker. */
  readonly #asked = new Map<WorkerId, Asked>()
  /** Time of the last look at a program, by worker. */
  readonly #lookedMs = new Map<WorkerId, number>()
  /** Programs that are being asked. */
  readonly #judged = new Set<WorkerId>()
  #nextMs = 0

  constructor(ports: Ports, parts: { readonly balancing: LoadBalancer; readonly fleet: Fleet }) {
    this.#ports = ports
    this.#parts = parts
  }

  /**
   * Asks programs of tasks that are due, a bounded number, and does not wait for their answers.
   * @returns time of the next step; null without tasks, until there is a new worker
   */
  async step(nowMs: number): Promise<number | null> {
    if (nowMs < this.#nextMs && nowMs >= this.#nextMs - STEP_MS) return this.#nextMs
    const tasks = this.#parts.balancing
      .workers()
      .filter(({ worker, isLeaving }) => worker.serves?.once === true && worker.state === 'READY' && !isLeaving)
    this.#forgetOthers(new Set(tasks.map(({ worker }) => worker.id)))
    if (tasks.length === 0) return null
    this.#nextMs = nowMs + STEP_MS
    for (const task of tasks) {
      if (this.#judged.size >= MAX_ASKED || this.#judged.has(task.worker.id)) continue
      const [{ idleSinceMs } = { idleSinceMs: null }] = this.#parts.balancing.loaded([task.worker])
      if (idleSinceMs === null) continue
      const asked = await this.#read(task)
      const sinceMs = Math.max(idleSinceMs, this.#lookedMs.get(task.worker.id) ?? 0)
      if (asked === null || nowMs - sinceMs < asked.idleMs) continue
      this.#judged.add(task.worker.id)
      void this.#judge(task, asked, nowMs - idleSinceMs, nowMs)
        .catch(error => this.#ports.emit('loop.failed', { loop: 'tasks', problem: String(error) }))
        .finally(() => this.#judged.delete(task.worker.id))
    }
    return this.#nextMs
  }

  #forgetOthers(running: ReadonlySet<WorkerId>): void {
    for (const known of [this.#asked, this.#lookedMs]) {
      for (const id of known.keys()) if (!running.has(id)) known.delete(id)
    }
  }

  async #read({ worker }: BalancedWorker): Promise<Asked | null> {
    const known = this.#asked.get(worker.id)
    if (known !== undefined) return known
    const { endpoints, templates } = this.#ports.store
    const endpoint = await endpoints.find(worker.endpointId)
    const template = endpoint === null ? null : await templates.find(worker.owner, endpoint.templateId)
    if (template === null) return null
    const asked = { idleMs: taskIdleMs(template.env), token: template.env[TASK_TOKEN] ?? '' }
    this.#asked.set(worker.id, asked)
    return asked
  }

  async #judge({ worker, servedAt }: BalancedWorker, { token }: Asked, forMs: number, nowMs: number): Promise<void> {
    const { clock, probes } = this.#ports
    this.#lookedMs.set(worker.id, nowMs)
    if (servedAt === null) return
    const askedMs = clock.monotonic()
    const result = await probes.read(servedAt.traffic, '/result', ASK_MS, MAX_BYTES, token)
    // A function may keep its process from answering, for a while or all the time.
    const isLate = result === null && clock.monotonic() - askedMs >= ASK_MS / 2
    if (isLate || saysRunning(result)) return
    const answer = await probes.probe(servedAt.traffic, '/ping', ASK_MS)
    if ('problem' in answer && !answer.refused) return
    await this.#parts.fleet.noteProblem(worker, { kind: 'task_unasked', forS: Math.floor(forMs / 1_000) })
    await this.#parts.fleet.stop(worker.id, 'idle')
  }
}
