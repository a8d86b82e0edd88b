import type { JobId, WorkerId } from '../../src/core/ids.ts'
import { fractionOfGpus, type Placement } from '../../src/core/workers/placement.ts'
import { isPaused, type WorkerState } from '../../src/core/workers/worker.ts'
import type { Database } from '../store.ts'
import { LastingProblems } from './lasting-problems.ts'

interface Row {
  readonly id: WorkerId
  readonly state: WorkerState
  readonly placement: string | null
  readonly pausedMs: number
}

interface Placed {
  readonly placement: string | null
}

interface Paused {
  readonly id: JobId
}

const PAUSED = `SELECT id, state, placement, paused_at_ms AS pausedMs FROM workers
  WHERE paused_at_ms IS NOT NULL AND state <> 'EXITED' ORDER BY id`
const AWAKE = `SELECT placement FROM workers WHERE state <> 'EXITED' AND asleep_at_ms IS NULL`
/** Jobs whose clocks stand still although their worker runs, and those whose clocks run although it is paused. */
const STOPPED = `SELECT jobs.id FROM jobs JOIN workers ON workers.id = jobs.worker_id
  WHERE jobs.status = 'IN_PROGRESS' AND jobs.unbegun IS NULL
    AND (jobs.paused_at_ms IS NULL) <> (workers.paused_at_ms IS NULL) AND workers.state IN ('READY', 'FROZEN')`
const IS_PAUSED = 'SELECT id FROM workers WHERE id = ? AND paused_at_ms IS NOT NULL'

/** Longest pause in the simulator; see `sim/app-run.ts`. */
export const MAX_PAUSE_MS = 30_000
/** Time after the longest pause in which a worker whose card is free has to go on: a copy, and a failed try. */
const GOES_ON_MS = 60_000
/** Time between two changes of one pause, and of the recovery after a kill. */
const BETWEEN_MS = 60_000

/** The parts of the machine that the checker sees. */
export interface PauseView {
  /** The time of the server. */
  readonly nowMs: () => number
  /** GPUs that the only account may have at once. */
  readonly maxGpus: number
  /** True if programs that are not workers use this card. */
  readonly isUsed: (card: string) => boolean
}

/**
 * Reports clocks of jobs that run in a pause or stand still without one, workers that stay between two states, and
 * those that are paused for too long although their card is free and their account is below its limit of GPUs.
 */
export class PauseChecker {
  readonly #report
  readonly #database: Pick<Database, 'query'>
  readonly #view
  readonly #lasting

  /** @param report receives one sentence per problem */
  constructor(report: (problem: string) => void, database: Pick<Database, 'query'>, view: PauseView) {
    this.#report = report
    this.#lasting = new LastingProblems(report)
    this.#database = database
    this.#view = view
  }

  /** A job ran longer than its execution timeout. */
  timedOut(jobId: JobId, workerId: WorkerId): void {
    const [worker] = this.#database.query<Paused>(IS_PAUSED, workerId)
    if (worker !== undefined) this.#report(`job ${jobId} timed out while worker ${workerId} was paused`)
  }

  /** Reports what lasts longer than allowed. Call it while the server is up and no operation is under way. */
  inspect(nowMs: number): void {
    const wrong = new Map<string, number>()
    for (const { id } of this.#database.query<Paused>(STOPPED))
      wrong.set(`the clock of job ${id} does not agree with the pause of its worker`, BETWEEN_MS)
    const awake = this.#database.query<Placed>(AWAKE)
    const taken = new Set(awake.flatMap(cardsOf))
    const inUse = awake.reduce((sum, worker) => sum + gpusOf(worker), 0)
    for (const { id, state, placement, pausedMs } of this.#database.query<Row>(PAUSED)) {
      if (!isPaused({ state, pause: { sinceMs: pausedMs, for: '' as never } })) continue
      if (state === 'READY') wrong.set(`worker ${id} is about to go on after a pause`, BETWEEN_MS)
      const cards = cardsOf({ placement })
      const isFree = cards.length > 0 && cards.every(card => !taken.has(card) && !this.#view.isUsed(card))
      const isOverdue = this.#view.nowMs() - pausedMs > MAX_PAUSE_MS
      const isAtLimit = inUse + gpusOf({ placement }) > this.#view.maxGpus + 0.001
      if (isFree && isOverdue && !isAtLimit)
        wrong.set(`worker ${id} is paused for too long, and its card is free`, GOES_ON_MS)
    }
    this.#lasting.note(nowMs, wrong)
  }

  /** After a crash or while the server is down: restarts the times of {@link inspect}. */
  resync(): void {
    this.#lasting.clear()
  }
}

function gpusOf({ placement }: Placed): number {
  return placement === null ? 0 : fractionOfGpus(JSON.parse(placement) as Placement)
}

function cardsOf({ placement }: Placed): string[] {
  const { gpus = [] } = JSON.parse(placement ?? '{}') as { gpus?: readonly { uuid: string | null }[] }
  return gpus.flatMap(({ uuid }) => uuid ?? [])
}
