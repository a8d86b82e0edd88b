/** Small programs on a card, for the checks of `runyard doctor --gpu`. */
import type { ProcessStart } from '../core/hardware/gpu-suspension.ts'
import { readProcess } from '../drivers/base/process-table.ts'
import type { Clock } from '../ports/clock.ts'
import type { CardAnswer } from '../system/gpu/helper-messages.ts'
import { HelperProcess, replyProblem } from '../system/gpu/helper-process.ts'

const ENTER_MS = 30_000
const ANSWER_MS = 30_000
const END_MS = 10_000

/** A failed check, with its problem as a clause. */
export class CheckFailed extends Error {}

/** A program that has a card. */
export class CardWorker {
  readonly #helper
  readonly process: ProcessStart
  /** State of the card when the program took it. */
  readonly entered: CardAnswer
  #launches = 0

  private constructor(helper: HelperProcess, entered: CardAnswer) {
    this.#helper = helper
    this.entered = entered
    this.process = { pid: helper.pid, startTime: readProcess(helper.pid)?.startTime ?? '' }
  }

  /** Starts one that sees one card only, as a worker does. @throws CheckFailed */
  static async start(clock: Clock, env: NodeJS.ProcessEnv, uuid: string): Promise<CardWorker> {
    const helper = new HelperProcess({ clock, env: { ...env, CUDA_VISIBLE_DEVICES: uuid } })
    const reply = await helper.ask({ op: 'enter' }, ENTER_MS)
    const problem = replyProblem(reply)
    if (problem === null) return new CardWorker(helper, reply.card ?? {})
    helper.kill()
    throw new CheckFailed(`a program cannot use the card: ${problem}`)
  }

  get pid(): number {
    return this.process.pid
  }

  /** Launches of `work` that have ended. */
  get launches(): number {
    return this.#launches
  }

  /** Takes memory and fills it. @throws CheckFailed */
  async allocate(bytes: number): Promise<void> {
    await this.#ask({ op: 'allocate', bytes })
  }

  /** A sum over all of its memory. @throws CheckFailed, also where its contents are wrong */
  async checksum(): Promise<string> {
    const { checksum = '', isRight } = await this.#ask({ op: 'checksum' })
    if (isRight !== true) throw new CheckFailed('the memory of the card has other contents than were written')
    return checksum
  }

  /**
   * Launches a kernel again and again for this time.
   * @returns the number of launches
   * @throws CheckFailed, also where the result is wrong
   */
  async work(forMs: number): Promise<number> {
    this.#launches = 0
    const { launches = 0, isRight } = await this.#ask({ op: 'work', forMs }, done => {
      this.#launches = done
    })
    if (isRight !== true) throw new CheckFailed('the work on the card had a wrong result')
    return launches
  }

  /** Gives the card back and ends. */
  end(): Promise<void> {
    return this.#helper.end(END_MS)
  }

  async #ask(request: Parameters<HelperProcess['ask']>[0], progress?: (launches: number) => void): Promise<CardAnswer> {
    const reply = await this.#helper.ask(request, ANSWER_MS, progress)
    const problem = replyProblem(reply)
    if (problem !== null) throw new CheckFailed(problem)
    return reply.card ?? {}
  }
}
