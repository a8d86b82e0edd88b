/** Calls of the driver about processes, each in a helper that is killed when it takes too long. */
import type { ProcessStart } from '../../core/hardware/gpu-suspension.ts'
import { readProcess } from '../../drivers/base/process-table.ts'
import type { ProcessFamily, SuspendState } from '../../ports/gpu-suspender.ts'
import type { HelperRequest } from './helper-messages.ts'
import { askHelper, type HelperOptions, Helpers, type Reply, replyProblem } from './helper-process.ts'
import type { CudaProcess } from './suspend-readiness.ts'

/** Fixed part of the time for a copy; the rest is three times that of the slowest known machine for each byte. */
const COPY_MS = 30_000
const SLOWEST_BYTES_PER_MS = 300_000
/** Time for calls that do not copy. A helper takes tenths of a second to start, more on a busy machine. */
const CALL_MS = 10_000
/** CUDA_ERROR_NOT_INITIALIZED. */
const NOT_INITIALIZED = 3

/** Processes; a problem where they could not be listed, and may be more. */
export interface ListedProcesses {
  readonly processes: readonly CudaProcess[]
  readonly problem: string | null
  /** True where the problem is that of the helper, and not of the family. */
  readonly lacksHelper: boolean
}

/** The calls of one suspend, resume or recovery. A failed call returns its problem, without a full stop. */
export class ProcessCalls implements Disposable {
  readonly callMs: number
  readonly #options: HelperOptions
  readonly #copyMs: number
  readonly #helpers

  /** @param callMs time for a call that does not copy, and the least for one that does; for tests */
  constructor(options: HelperOptions, callMs?: number) {
    this.callMs = callMs ?? CALL_MS
    this.#options = options
    this.#copyMs = callMs ?? COPY_MS
    this.#helpers = new Helpers(options)
  }

  [Symbol.dispose](): void {
    this.#helpers[Symbol.dispose]()
  }

  /** Starts the helpers of some processes, which takes a moment. */
  start(processes: readonly ProcessStart[]): void {
    this.#helpers.start(processes)
  }

  /** Waits until the helpers of some processes run. */
  async ready(processes: readonly ProcessStart[]): Promise<void> {
    await Promise.all(processes.map(({ pid }) => this.#helpers.ready(pid, this.callMs)))
  }

  /**
   * The processes of a family that use CUDA, without the given ones. The driver answers this for stopped ones, too.
   */
  async find(family: ProcessFamily, without: readonly ProcessStart[] = []): Promise<ListedProcesses> {
    try {
      const pids = new Set(without.map(({ pid }) => pid))
      const members = await family.members()
      return await this.findAmong(members.filter(({ pid }) => !pids.has(pid)))
    } catch (error) {
      const problem = `its processes cannot be listed: ${(error as Error).message}`
      return { processes: [], problem, lacksHelper: false }
    }
  }

  /** The ones of some processes that use CUDA. */
  async findAmong(members: readonly ProcessStart[]): Promise<ListedProcesses> {
    if (members.length === 0) return { processes: [], problem: null, lacksHelper: false }
    const request = { op: 'find', pids: members.map(({ pid }) => pid) } as const
    const reply = await askHelper(this.#options, request, this.callMs)
    const threads = new Map((reply.found ?? []).map(({ pid, thread }) => [pid, thread]))
    const processes = members.flatMap(({ pid, startTime }) => {
      const thread = threads.get(pid)
      return thread !== undefined && lives({ pid, startTime }) ? [{ pid, startTime, thread }] : []
    })
    const problem = replyProblem(reply)
    return { processes, problem, lacksHelper: problem !== null }
  }

  async state({ pid }: { readonly pid: number }): Promise<SuspendState> {
    const reply = await this.#helpers.ask({ op: 'state', pid }, this.callMs)
    if (reply.result === undefined) return 'unknown'
    if (reply.result !== 0) return 'none'
    const { state = 'failed' } = reply
    return state === 'checkpointing' || state === 'restoring' ? 'changing' : state
  }

  /** @param lockMs time for the running work on the card */
  async lock(target: ProcessStart, lockMs: number): Promise<string | null> {
    const request = { op: 'lock', pid: target.pid, timeoutMs: lockMs } as const
    const problem = await this.#step(request, lockMs + this.callMs)
    return problem === null || lives(target) ? problem : `the lock ended process ${target.pid}`
  }

  /** A call with an error, or without an answer, may have succeeded: then the state shows it. */
  async checkpoint(target: ProcessStart, bytes: number): Promise<string | null> {
    const problem = await this.#step({ op: 'checkpoint', pid: target.pid }, this.#timeToCopy(bytes))
    return problem === null || (await this.state(target)) === 'checkpointed' ? null : problem
  }

  /**
   * Restores a process. Without persistence mode the driver is initialized first, which takes seconds with many
   * cards.
   */
  async restore({ pid }: ProcessStart, bytes: number): Promise<string | null> {
    const withinMs = this.#timeToCopy(bytes)
    const reply = await this.#helpers.ask({ op: 'restore', pid, init: false }, withinMs)
    if (reply.result !== NOT_INITIALIZED) return problemIn('restore', pid, reply)
    return this.#step({ op: 'restore', pid, init: true }, withinMs)
  }

  unlock({ pid }: ProcessStart): Promise<string | null> {
    return this.#step({ op: 'unlock', pid }, this.callMs)
  }

  /** Unlocks a process that may be locked. @returns true if it runs on */
  async undoLock(target: ProcessStart): Promise<boolean> {
    if (!lives(target)) return false
    const state = await this.state(target)
    if (state === 'running') return true
    if (state !== 'locked') return false
    await this.unlock(target)
    return lives(target) && (await this.state(target)) === 'running'
  }

  async #step(request: HelperRequest & { readonly pid: number }, withinMs: number): Promise<string | null> {
    return problemIn(request.op, request.pid, await this.#helpers.ask(request, withinMs))
  }

  #timeToCopy(bytes: number): number {
    return this.#copyMs + bytes / SLOWEST_BYTES_PER_MS
  }
}

/** True while this very process lives. */
export function lives({ pid, startTime }: ProcessStart): boolean {
  const current = readProcess(pid)
  return current?.living === true && current.startTime === startTime
}

function problemIn(step: string, pid: number, reply: Reply): string | null {
  const problem = replyProblem(reply)
  return problem === null ? null : `${step} of process ${pid}: ${problem}`
}
