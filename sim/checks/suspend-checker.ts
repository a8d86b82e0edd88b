import type { WorkerId } from '../../src/core/ids.ts'
import type { PlayedGpus } from '../played-gpus.ts'
import type { Database } from '../store.ts'
import { LastingProblems } from './lasting-problems.ts'

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
  readonly #lasting

  /** @param report receives one sentence per problem */
  constructor(report: (problem: string) => void, database: Pick<Database, 'query'>, gpus: PlayedGpus) {
    this.#report = report
    this.#lasting = new LastingProblems(report)
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
    this.#lasting.note(nowMs, new Map([...wrong].map(problem => [problem, LONGEST_MS])))
  }

  /** After a crash or while the server is down: restarts the times of {@link inspect}. */
  resync(): void {
    this.#lasting.clear()
  }
}
