/**
 * Suspends CUDA processes by the driver's checkpoint API, each call in a helper that is killed when it takes too
 * long. Locks can be undone; the first checkpoint is the point of no return, after which a process either continues
 * by a restore or has to end. A call that was given up may still have taken effect: the state of its process decides.
 */
import type { ChildProcess } from 'node:child_process'
import type { CardMemory, GpuMemory } from '../../core/hardware/gpu-memory.ts'
import type {
  ProcessStart,
  ResumeOutcome,
  SuspendedProcess,
  SuspendOutcome,
  SuspendReadiness,
} from '../../core/hardware/gpu-suspension.ts'
import { readProcess } from '../../drivers/base/process-table.ts'
import { type Clock, pause } from '../../ports/clock.ts'
import type { GpuMeter } from '../../ports/gpu-meter.ts'
import type { GpuSuspender, ProcessFamily, SuspendState } from '../../ports/gpu-suspender.ts'
import type { ToolOptions } from '../hardware/vendor-tool.ts'
import type { HelperRequest } from './helper-messages.ts'
import { askHelper, Helpers, type Reply, replyProblem } from './helper-process.ts'
import { familyLack, isHeld, readReadiness } from './suspend-readiness.ts'

/** Time for calls that do not copy. A helper takes tenths of a second to start, more on a busy machine. */
const CALL_MS = 10_000
/** Fixed part of the time for a copy; the rest is three times that of the slowest known machine for each byte. */
const COPY_MS = 30_000
const SLOWEST_BYTES_PER_MS = 300_000
/** Time within which the driver must list no memory of suspended processes. */
const EMPTY_MS = 10_000
const LOOK_MS = 100
/** Memory of a restore beyond that listed by the driver. */
const ROOM_BYTES = 256 * 2 ** 20
/** CUDA_ERROR_NOT_INITIALIZED. */
const NOT_INITIALIZED = 3
/** Limit of rounds that suspend processes which appeared in the meantime. */
const ROUNDS = 3

/** Options of {@link createGpuSuspender}. */
export interface GpuSuspenderOptions {
  readonly clock: Clock
  /** Environment for the search of tool and library, and of helpers. */
  readonly env: NodeJS.ProcessEnv
  readonly meter: GpuMeter
  /** Time for a call that does not copy, and the least for one that does; for tests. */
  readonly callMs?: number
}

/** @returns the suspender of this machine */
export function createGpuSuspender(options: GpuSuspenderOptions): GpuSuspender {
  return new DriverSuspender(options)
}

/** The state of one suspend. */
interface Work {
  readonly family: ProcessFamily
  /** The cards of its processes, as measured before the suspend. */
  readonly cards: readonly CardMemory[]
  readonly lockMs: number
  readonly helpers: Helpers
  readonly suspended: SuspendedProcess[]
  readonly times: { lockMs: number; checkpointMs: number }
}

/** A step that failed. `undone`: true if the processes are as they were before the suspend. */
interface Failure {
  readonly problem: string
  readonly undone: boolean
}

/** Processes; a problem where they could not be listed, and may be more. */
interface ListedProcesses {
  readonly processes: readonly ProcessStart[]
  readonly problem: string | null
}

class DriverSuspender implements GpuSuspender {
  readonly #clock
  readonly #meter
  readonly #tool: ToolOptions
  readonly #callMs: number
  readonly #copyMs: number

  constructor({ clock, env, meter, callMs }: GpuSuspenderOptions) {
    this.#clock = clock
    this.#meter = meter
    this.#callMs = callMs ?? CALL_MS
    this.#copyMs = callMs ?? COPY_MS
    this.#tool = { clock, env, timeoutMs: CALL_MS, hung: new Map<string, ChildProcess>() }
  }

  readiness(): Promise<SuspendReadiness> {
    return readReadiness(this.#tool)
  }

  async state(pid: number): Promise<SuspendState> {
    using helpers = new Helpers(this.#tool)
    return await this.#state(helpers, pid)
  }

  async suspend(family: ProcessFamily, lockMs: number): Promise<SuspendOutcome> {
    const { lack } = await this.readiness()
    if (lack !== null) return { outcome: 'refused', lack }
    const members = await listMembers(family)
    if (members.problem !== null) return { outcome: 'undone', problem: members.problem }
    const { processes, problem: helperProblem } = await this.#withCuda(members.processes)
    if (helperProblem !== null) return { outcome: 'refused', lack: { why: 'no_helper', problem: helperProblem } }
    if (processes.length === 0) return { outcome: 'nothing' }
    using helpers = new Helpers(this.#tool)
    helpers.start(processes)
    const { cards, problem } = await this.#measureCards(processes)
    if (problem !== null) return { outcome: 'refused', lack: { why: 'no_reading', problem } }
    const ownLack = await familyLack(processes, cards)
    if (ownLack !== null) return { outcome: 'refused', lack: ownLack }
    const work: Work = { family, cards, lockMs, helpers, suspended: [], times: { lockMs: 0, checkpointMs: 0 } }
    for (let round = 1; round <= ROUNDS; round += 1) {
      const batch = round === 1 ? { processes, problem: null } : await this.#newcomers(family, work.suspended)
      if (batch.problem !== null) return await this.#giveUp({ problem: batch.problem, undone: true }, work)
      if (batch.processes.length === 0) break
      const failure = await this.#suspendAll(work, batch.processes)
      if (failure !== null) return await this.#giveUp(failure, work)
    }
    const emptyMs = await this.#untilEmpty(work.suspended)
    return {
      outcome: 'suspended',
      card: cards[0]?.uuid ?? '',
      processes: work.suspended,
      isEmpty: emptyMs !== null,
      times: { ...work.times, emptyMs: emptyMs ?? EMPTY_MS },
    }
  }

  async resume(card: string, processes: readonly SuspendedProcess[], thaw = async () => {}): Promise<ResumeOutcome> {
    const ended = processes.find(candidate => !lives(candidate))
    if (ended !== undefined) return { outcome: 'lost', problem: `process ${ended.pid} has ended` }
    using helpers = new Helpers(this.#tool)
    const ready = Promise.all(processes.map(({ pid }) => helpers.ready(pid, this.#callMs)))
    const neededBytes = processes.reduce((sum, { bytes }) => sum + bytes + ROOM_BYTES, 0)
    const { cards, problem } = await this.#meter.measure(new Set())
    const cardMemory = cards.find(({ uuid }) => uuid === card)
    if (cardMemory === undefined) return { outcome: 'unknown_room', problem: problem ?? `GPU ${card} is not listed` }
    if (cardMemory.freeBytes < neededBytes) return { outcome: 'no_room', neededBytes, freeBytes: cardMemory.freeBytes }
    await ready
    await thaw()
    const heldProcess = processes.find(({ pid }) => isHeld(pid))
    if (heldProcess !== undefined) return { outcome: 'stopped', pid: heldProcess.pid }
    const begunMs = this.#clock.monotonic()
    const restores = await Promise.all(processes.map(suspended => this.#restore(helpers, suspended)))
    const restoreMs = this.#clock.monotonic() - begunMs
    const failed = restores.find(each => each !== null)
    if (failed != null) return { outcome: 'lost', problem: failed }
    const unlocks = await Promise.all(processes.map(({ pid }) => this.#step(helpers, { op: 'unlock', pid })))
    const stuck = unlocks.find(each => each !== null)
    if (stuck != null) return { outcome: 'lost', problem: stuck }
    return { outcome: 'resumed', restoreMs, unlockMs: this.#clock.monotonic() - begunMs - restoreMs }
  }

  /** Locks all processes, looks for new ones, and checkpoints all; adds suspended processes to the work. */
  async #suspendAll(work: Work, batch: readonly ProcessStart[]): Promise<Failure | null> {
    const { family, cards, helpers, suspended, times } = work
    const begunMs = this.#clock.monotonic()
    const locks = await Promise.all(batch.map(target => this.#lock(work, target)))
    times.lockMs += this.#clock.monotonic() - begunMs
    const failedLock = locks.find(problem => problem !== null)
    if (failedLock != null) return this.#unlocked(helpers, batch, failedLock)
    const newcomers = await this.#newcomers(family, [...suspended, ...batch])
    if (newcomers.problem !== null) return this.#unlocked(helpers, batch, newcomers.problem)
    const [newcomer] = newcomers.processes
    if (newcomer !== undefined)
      return this.#unlocked(helpers, batch, `process ${newcomer.pid} began to use CUDA in the meantime`)
    const copyMs = this.#clock.monotonic()
    const checkpoints = await Promise.all(batch.map(target => this.#checkpoint(work, target)))
    times.checkpointMs += this.#clock.monotonic() - copyMs
    batch.forEach((target, index) => {
      if (checkpoints[index] === null) suspended.push({ ...target, bytes: processBytes(target, cards) })
    })
    const failed = checkpoints.find(problem => problem !== null)
    return failed == null ? null : { problem: failed, undone: false }
  }

  /** Resumes the suspended processes after a failure, if the others are as before. */
  async #giveUp({ problem, undone }: Failure, { suspended, cards }: Work): Promise<SuspendOutcome> {
    if (!undone) return { outcome: 'lost', problem }
    if (suspended.length === 0) return { outcome: 'undone', problem }
    const { outcome } = await this.resume(cards[0]?.uuid ?? '', suspended)
    return { outcome: outcome === 'resumed' ? 'undone' : 'lost', problem }
  }

  /** Unlocks the locked ones of some processes after a failure, by the state of each. */
  async #unlocked(helpers: Helpers, batch: readonly ProcessStart[], problem: string): Promise<Failure> {
    const undone = await Promise.all(batch.map(target => this.#unlock(helpers, target)))
    return { problem, undone: undone.every(Boolean) }
  }

  /** @returns true if the process runs on */
  async #unlock(helpers: Helpers, target: ProcessStart): Promise<boolean> {
    if (!lives(target)) return false
    const state = await this.#state(helpers, target.pid)
    if (state === 'running') return true
    if (state !== 'locked') return false
    await helpers.ask({ op: 'unlock', pid: target.pid }, this.#callMs)
    return lives(target) && (await this.#state(helpers, target.pid)) === 'running'
  }

  async #lock({ helpers, lockMs }: Work, target: ProcessStart): Promise<string | null> {
    const request = { op: 'lock', pid: target.pid, timeoutMs: lockMs } as const
    const problem = await this.#step(helpers, request, lockMs + this.#callMs)
    return problem === null || lives(target) ? problem : `the lock ended process ${target.pid}`
  }

  /** A call with an error, or without an answer, may have succeeded: then the state shows it. */
  async #checkpoint({ helpers, cards }: Work, target: ProcessStart): Promise<string | null> {
    const withinMs = this.#timeToCopy(processBytes(target, cards))
    const problem = await this.#step(helpers, { op: 'checkpoint', pid: target.pid }, withinMs)
    return problem === null || (await this.#state(helpers, target.pid)) === 'checkpointed' ? null : problem
  }

  /**
   * Restores a process. Without persistence mode the driver is initialized first, which takes seconds with many
   * cards.
   */
  async #restore(helpers: Helpers, { pid, bytes }: SuspendedProcess): Promise<string | null> {
    const withinMs = this.#timeToCopy(bytes)
    const reply = await helpers.ask({ op: 'restore', pid, init: false }, withinMs)
    if (reply.result !== NOT_INITIALIZED) return problemIn('restore', pid, reply)
    return this.#step(helpers, { op: 'restore', pid, init: true }, withinMs)
  }

  async #state(helpers: Helpers, pid: number): Promise<SuspendState> {
    const reply = await helpers.ask({ op: 'state', pid }, this.#callMs)
    if (reply.result === undefined) return 'unknown'
    if (reply.result !== 0) return 'none'
    const { state = 'failed' } = reply
    return state === 'checkpointing' || state === 'restoring' ? 'changing' : state
  }

  async #step(
    helpers: Helpers,
    request: HelperRequest & { readonly pid: number },
    withinMs = this.#callMs,
  ): Promise<string | null> {
    return problemIn(request.op, request.pid, await helpers.ask(request, withinMs))
  }

  #timeToCopy(bytes: number): number {
    return this.#copyMs + bytes / SLOWEST_BYTES_PER_MS
  }

  /** The ones of some processes that use CUDA. The driver answers this for stopped ones, too. */
  async #withCuda(members: readonly ProcessStart[]): Promise<ListedProcesses> {
    if (members.length === 0) return { processes: [], problem: null }
    const request = { op: 'find', pids: members.map(({ pid }) => pid) } as const
    const reply = await askHelper(this.#tool, request, this.#callMs)
    const { pids = [] } = reply
    const processes = members.filter(member => pids.includes(member.pid) && lives(member))
    return { processes, problem: replyProblem(reply) }
  }

  /** The ones of a family that use CUDA, without the given processes. */
  async #newcomers(family: ProcessFamily, listed: readonly ProcessStart[]): Promise<ListedProcesses> {
    const members = await listMembers(family)
    if (members.problem !== null) return members
    const pids = new Set(listed.map(({ pid }) => pid))
    return this.#withCuda(members.processes.filter(({ pid }) => !pids.has(pid)))
  }

  /** The cards on which some processes have memory. */
  async #measureCards(processes: readonly ProcessStart[]): Promise<GpuMemory> {
    const pids = new Set(processes.map(({ pid }) => pid))
    const { cards, problem } = await this.#meter.measure(pids)
    return { cards: cards.filter(card => card.processes.some(({ pid }) => pids.has(pid))), problem }
  }

  /** Milliseconds until the driver lists no memory of some processes; null after the limit. */
  async #untilEmpty(processes: readonly ProcessStart[]): Promise<number | null> {
    const begunMs = this.#clock.monotonic()
    while (this.#clock.monotonic() - begunMs < EMPTY_MS) {
      const { cards, problem } = await this.#measureCards(processes)
      if (cards.length === 0 && problem === null) return this.#clock.monotonic() - begunMs
      await pause(this.#clock, LOOK_MS)
    }
    return null
  }
}

async function listMembers(family: ProcessFamily): Promise<ListedProcesses> {
  try {
    return { processes: await family.members(), problem: null }
  } catch (error) {
    return { processes: [], problem: `its processes cannot be listed: ${(error as Error).message}` }
  }
}

function problemIn(step: string, pid: number, reply: Reply): string | null {
  const problem = replyProblem(reply)
  return problem === null ? null : `${step} of process ${pid}: ${problem}`
}

function lives({ pid, startTime }: ProcessStart): boolean {
  const current = readProcess(pid)
  return current?.living === true && current.startTime === startTime
}

/** The memory of a process on its cards, as listed before it was suspended. */
function processBytes({ pid }: ProcessStart, cards: readonly CardMemory[]): number {
  const listed = cards.flatMap(({ processes }) => processes).filter(each => each.pid === pid)
  return listed.reduce((sum, { bytes }) => sum + (bytes ?? 0), 0)
}
