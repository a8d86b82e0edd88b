import type { WorkerId } from '../../src/core/ids.ts'
import type { PlayedGpus } from '../played-gpus.ts'
import type { Database } from '../store.ts'

interface Row {
  readonly id: WorkerId
  readonly state: string
  readonly suspension: string | null
  readonly asleep_at_ms: number | null
}

const SUSPENDED = `SELECT id, state, suspension, asleep_at_ms FROM workers
  WHERE state IN ('READY', 'FROZEN') ORDER BY id`
/** Maximum time of a suspend or a resume, and of the recovery after a kill. */
const LONGEST_MS = 60_000

/** Reports cards with more memory than they have, jobs for suspended workers, and sleepers that were forgotten. */
export class SuspendChecker {
  readonly #report
  readonly #database: Pick<Database, 'query'>
  readonly #gpus
  readonly #since = new Map<string, number>()

  /** @param report receives one sentence per problem */
  constructor(report: (problem: string) => void, database: Pick<Database, 'query'>, gpus: PlayedGpus) {
    this.#report = report
    this.#database = database
    this.#gpus = gpus
  }

  /** A job was dispatched to a worker. */
  claimed(worker: WorkerId, job: string): void {
    if (!this.#gpus.runs(worker))
      this.#report(`worker ${worker} got job ${job} while its process was ${this.#gpus.stateOf(worker)}`)
  }

  /** Reports what lasts longer than allowed. Call it while the server is up and no operation is under way. */
  inspect(nowMs: number): void {
    const wrong = new Set<string>()
    for (const { id, state, suspension, asleep_at_ms: asleepAtMs } of this.#database.query<Row>(SUSPENDED)) {
      const process = this.#gpus.stateOf(id)
      if (suspension === null && process !== 'running' && process !== 'none')
        wrong.add(`worker ${id} is ${state} and its process ${process}, and the store does not have it as suspended`)
      if (suspension !== null && asleepAtMs === null) wrong.add(`worker ${id} is ${state} and between two states`)
      if (suspension !== null && asleepAtMs !== null && process === 'running')
        wrong.add(`worker ${id} is suspended in the store, and its process runs`)
    }
    for (const problem of this.#since.keys()) if (!wrong.has(problem)) this.#since.delete(problem)
    for (const problem of wrong) {
      const sinceMs = this.#since.get(problem) ?? nowMs
      this.#since.set(problem, sinceMs)
      if (nowMs - sinceMs < LONGEST_MS) continue
      this.#report(`${problem}, since ${nowMs - sinceMs} ms`)
      this.#since.set(problem, Number.POSITIVE_INFINITY)
    }
  }

  /** After a crash or while the server is down: restarts the times of {@link inspect}. */
  resync(): void {
    this.#since.clear()
  }
}
