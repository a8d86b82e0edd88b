/**
 * A process of the helper program, from the side of the server: it gets one request after another, and is killed when
 * it takes too long.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { programFile } from '../../disk/package-files.ts'
import type { Clock } from '../../ports/clock.ts'
import { quoteFirstLine } from '../hardware/vendor-tool.ts'
import type { HelperAnswer, HelperRequest } from './helper-messages.ts'
import { withLibraryFolders } from './library-folders.ts'

/**
 * Result of a request: an answer, or the end of the helper, which was killed for lack of an answer, or ended by
 * itself.
 */
export type Reply = HelperAnswer & { readonly silent?: true; readonly ended?: string }

const NODE_OPTIONS = ['--disable-warning=ExperimentalWarning']
const MAX_ERROR_BYTES = 4096

/** Options of a helper's start. */
export interface HelperOptions {
  readonly clock: Clock
  readonly env: NodeJS.ProcessEnv
}

/** One process. It ends with its parent, and by {@link end}. */
export class HelperProcess {
  readonly #clock
  /** Null without a process, as where no more of them may be started. */
  readonly #child: ChildProcess | null
  readonly #exit: Promise<string>
  #receive: ((answer: HelperAnswer) => void) | null = null
  #hasEnded = false

  constructor({ clock, env }: HelperOptions) {
    this.#clock = clock
    const { promise, resolve } = Promise.withResolvers<string>()
    this.#exit = promise
    void promise.then(() => {
      this.#hasEnded = true
    })
    this.#child = this.#start(env, resolve)
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  /**
   * Sends one request, after the answer to the previous one.
   * @param withinMs time after which the helper is killed
   * @param progress called with the progress of `work`
   */
  async ask(request: HelperRequest, withinMs: number, progress: (launches: number) => void = () => {}): Promise<Reply> {
    const { promise, resolve } = Promise.withResolvers<Reply>()
    const cancel = this.#clock.after(withinMs, () => resolve({ silent: true }))
    this.#receive = answer => {
      if (answer.progress === undefined) resolve(answer)
      else progress(answer.progress)
    }
    void this.#exit.then(ended => resolve({ ended }))
    if (!this.#hasEnded) this.#child?.stdin?.write(`${JSON.stringify(request)}\n`)
    const reply = await promise
    cancel()
    this.#receive = null
    if (reply.silent === true) this.kill()
    return reply
  }

  /** Lets it end by itself, as a program that gives its card back; kills it after the time. */
  async end(withinMs: number): Promise<void> {
    const cancel = this.#clock.after(withinMs, () => this.kill())
    this.#child?.stdin?.end()
    await this.#exit
    cancel()
  }

  /** Kills it, also while it is stopped. */
  kill(): void {
    this.#child?.kill('SIGKILL')
  }

  /** @param ended receives the end of the process, also where it cannot be started */
  #start(env: NodeJS.ProcessEnv, ended: (words: string) => void): ChildProcess | null {
    const fail = (error: Error) => ended(`cannot be started: ${error.message}`)
    try {
      const child: ChildProcess = spawn(process.execPath, [...NODE_OPTIONS, programFile('system/gpu/helper-program')], {
        env: withLibraryFolders(env),
        stdio: ['pipe', 'pipe', 'pipe'],
      })
      let errors = ''
      child.on('error', fail)
      child.on('close', (code, signal) => ended(`ended with ${signal ?? `code ${code}`}${quoteFirstLine(errors)}`))
      // The process has no streams where the limit of open files is reached.
      child.stderr?.on('data', part => {
        if (errors.length < MAX_ERROR_BYTES) errors += String(part)
      })
      // Error of a write to an ended helper.
      child.stdin?.on('error', () => {})
      if (child.stdout) createInterface({ input: child.stdout }).on('line', line => this.#handleLine(line))
      return child
    } catch (error) {
      fail(error as Error)
      return null
    }
  }

  #handleLine(line: string): void {
    try {
      this.#receive?.(JSON.parse(line) as HelperAnswer)
    } catch {
      // Output of the driver itself is no answer.
    }
  }
}

/** Sends one request to a helper of its own. */
export async function askHelper(options: HelperOptions, request: HelperRequest, withinMs: number): Promise<Reply> {
  const helper = new HelperProcess(options)
  try {
    return await helper.ask(request, withinMs)
  } finally {
    helper.kill()
  }
}

/** One helper for each process that is suspended or resumed, since its calls block. */
export class Helpers implements Disposable {
  readonly #options
  readonly #byPid = new Map<number, HelperProcess>()

  constructor(options: HelperOptions) {
    this.#options = options
  }

  /** Starts the helpers of some processes, which takes a moment. */
  start(processes: readonly { readonly pid: number }[]): void {
    for (const { pid } of processes) this.#helper(pid)
  }

  /** Waits until the helper of a process runs. */
  async ready(pid: number, withinMs: number): Promise<void> {
    await this.#helper(pid).ask({ op: 'about' }, withinMs)
  }

  /**
   * Sends one request about a process, after the answer to the previous one. A helper that failed is then replaced.
   */
  async ask(request: HelperRequest & { readonly pid: number }, withinMs: number): Promise<Reply> {
    const reply = await this.#helper(request.pid).ask(request, withinMs)
    if (reply.silent === true || reply.ended !== undefined) this.#byPid.delete(request.pid)
    return reply
  }

  [Symbol.dispose](): void {
    for (const helper of this.#byPid.values()) helper.kill()
    this.#byPid.clear()
  }

  #helper(pid: number): HelperProcess {
    const helper = this.#byPid.get(pid) ?? new HelperProcess(this.#options)
    this.#byPid.set(pid, helper)
    return helper
  }
}

/** Result of a failed request, in words; null for a success. */
export function replyProblem(reply: Reply): string | null {
  if (reply.silent === true) return 'the driver did not answer in time'
  if (reply.ended !== undefined) return `the process that calls the driver ${reply.ended}`
  if (reply.missing !== undefined) return `the driver lacks ${reply.missing}`
  if (reply.problem !== undefined) return reply.problem
  return reply.result === undefined || reply.result === 0 ? null : (reply.name ?? String(reply.result))
}
