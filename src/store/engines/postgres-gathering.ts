import type { Together } from '../operations/operation.ts'
import { unavailable } from './sqlite-errors.ts'

/**
 * Limit of transactions under way for one operation. Calls that come in that time share the next one. Steps lock the
 * rows of several calls, and two of them could wait for each other.
 */
const MAX_UNDER_WAY = { statement: 3, steps: 1 } as const
/**
 * Number of calls that wait before a transaction begins beside another one: a transaction costs as much as several
 * calls in it.
 */
const CALLS_BESIDE = 32
const MAX_CALLS = 256
const MAX_CHARACTERS = 1024 * 1024
/** Limit of the wait of a call for a transaction, as for a connection: seconds, counted one by one. */
const MAX_WAIT_S = 5

interface GatheredCall {
  readonly args: readonly unknown[]
  readonly size: number
  secondsLeft: number
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/**
 * Gathers calls of one operation while others of it are under way, and runs them in one transaction: as many as come
 * in the time of a flush. If that fails, each of them runs alone, so that one that fails does not fail others.
 */
export class CallGatherer {
  readonly #together
  readonly #runs
  #waiting: GatheredCall[] = []
  #underWay = 0
  #second: NodeJS.Timeout | null = null

  constructor(
    together: Together,
    runs: {
      /** Runs some calls in one transaction and gives their results. */
      readonly together: (calls: readonly (readonly unknown[])[]) => Promise<readonly unknown[]>
      /** Runs one call by itself. */
      readonly alone: (args: readonly unknown[]) => Promise<unknown>
      /** True for an error of a database that could not be reached: the calls may have happened. */
      readonly isUnavailable: (error: unknown) => boolean
    },
  ) {
    this.#together = together
    this.#runs = runs
  }

  /** Number of calls that wait for a transaction. */
  get waiting(): number {
    return this.#waiting.length
  }

  /** Runs a call. @throws AppError `unavailable` for one that waits too long; then it has not been begun */
  call(args: readonly unknown[]): Promise<unknown> {
    const size = this.#together.size(...args)
    if (size === null) return this.#runs.alone(args)
    return new Promise((resolve, reject) => {
      this.#waiting.push({ args, size, secondsLeft: MAX_WAIT_S, resolve, reject })
      this.#begin()
      this.#watch()
    })
  }

  /** @param least number of waiting calls for which a transaction begins */
  #begin(least = this.#underWay === 0 ? 1 : CALLS_BESIDE): void {
    const most = MAX_UNDER_WAY[this.#together.statement === undefined ? 'steps' : 'statement']
    if (this.#underWay >= most || this.#waiting.length < least) return
    this.#underWay += 1
    void this.#run(this.#next()).finally(() => {
      this.#underWay -= 1
      this.#begin()
    })
  }

  /** Counts the seconds of the calls that wait. After one they wait no longer for a transaction that hangs. */
  #watch(): void {
    if (this.#second !== null || this.#waiting.length === 0) return
    this.#second = setTimeout(() => {
      this.#second = null
      for (const call of this.#waiting) call.secondsLeft -= 1
      const late = this.#waiting.filter(({ secondsLeft }) => secondsLeft <= 0)
      this.#waiting = this.#waiting.filter(({ secondsLeft }) => secondsLeft > 0)
      for (const { reject } of late) reject(unavailable('PostgreSQL does not answer in time'))
      this.#begin(1)
      this.#watch()
    }, 1_000).unref()
  }

  #next(): GatheredCall[] {
    let characters = 0
    let count = 0
    for (const { size } of this.#waiting) {
      characters += size
      if (count > 0 && (characters > MAX_CHARACTERS || count >= MAX_CALLS)) break
      count += 1
    }
    const calls = this.#waiting.slice(0, count)
    this.#waiting = this.#waiting.slice(count)
    return calls
  }

  async #run(calls: readonly GatheredCall[]): Promise<void> {
    try {
      const results = await this.#runs.together(calls.map(({ args }) => args))
      for (const [index, { resolve }] of calls.entries()) resolve(results[index])
    } catch (error) {
      if (this.#runs.isUnavailable(error)) for (const { reject } of calls) reject(error)
      else for (const { args, resolve, reject } of calls) await this.#runs.alone(args).then(resolve, reject)
    }
  }
}
