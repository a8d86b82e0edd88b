/**
 * Suspends CUDA processes by the driver's checkpoint API, each call in a helper that is killed when it takes too
 * long. Locks can be undone; the first checkpoint is the point of no return, after which a process either continues
 * by a restore or has to end. A call that was given up may still have taken effect: the state of its process decides.
 * From the locks until after the unlocks all threads but those of the driver are held, since a call of CUDA that
 * begins in between may end its process.
 */
import type { ChildProcess } from 'node:child_process'
import type { CardMemory, GpuMemory } from '../../core/hardware/gpu-memory.ts'
import {
  describeLack,
  type FamilyLack,
  type ProcessStart,
  RESTORE_BYTES,
  type RecoverOutcome,
  type ResumeOutcome,
  type SuspendedProcess,
  type SuspendOutcome,
  type SuspendReadiness,
} from '../../core/hardware/gpu-suspension.ts'
import { type Clock, pause } from '../../ports/clock.ts'
import type { GpuMeter } from '../../ports/gpu-meter.ts'
import type { GpuSuspender, ProcessFamily, SuspendState, SuspendSteps } from '../../ports/gpu-suspender.ts'
import { anonymousBytes } from '../hardware/memory.ts'
import type { ToolOptions } from '../hardware/vendor-tool.ts'
import { lives, ProcessCalls } from './process-calls.ts'
import { type CudaProcess, familyLack, isHeld, readReadiness } from './suspend-readiness.ts'

const TOOL_MS = 10_000
/** Time within which the driver must list no memory of suspended processes. */
const EMPTY_MS = 10_000
const LOOK_MS = 100
/** Limit of rounds that suspend processes which appeared in the meantime. */
const ROUNDS = 3
/** Time for the running work on the card of a process whose suspend is finished by a later run of the server. */
const LATE_LOCK_MS = 10_000
/** Tries to release a family. */
const RELEASES = 3

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
  /** See `SuspendSteps.proceed`. */
  readonly proceed: () => Promise<boolean>
  readonly calls: ProcessCalls
  /** The processes that were locked, suspended or not. */
  readonly locked: CudaProcess[]
  readonly suspended: SuspendedProcess[]
  readonly times: { lockMs: number; holdMs: number; checkpointMs: number }
  holdProblem: string | null
}

/** A step that failed. `undone`: true if the processes are as they were before the suspend. */
interface Failure {
  readonly problem: string
  readonly undone: boolean
}

class DriverSuspender implements GpuSuspender {
  readonly #clock
  readonly #meter
  readonly #tool: ToolOptions
  readonly #callMs: number | undefined

  constructor({ clock, env, meter, callMs }: GpuSuspenderOptions) {
    this.#clock = clock
    this.#meter = meter
    this.#callMs = callMs
    this.#tool = { clock, env, timeoutMs: TOOL_MS, hung: new Map<string, ChildProcess>() }
  }

  readiness(): Promise<SuspendReadiness> {
    return readReadiness(this.#tool)
  }

  async state(pid: number): Promise<SuspendState> {
    using calls = this.#calls()
    return await calls.state({ pid })
  }

  async suspend(family: ProcessFamily, lockMs: number, steps: SuspendSteps = {}): Promise<SuspendOutcome> {
    const { begin = async () => null, proceed = async () => true, freeze = async () => {} } = steps
    const { lack } = await this.readiness()
    if (lack !== null) return { outcome: 'refused', lack }
    using calls = this.#calls()
    const { processes, problem: listProblem, lacksHelper } = await calls.find(family)
    if (listProblem !== null && lacksHelper)
      return { outcome: 'refused', lack: { why: 'no_helper', problem: listProblem } }
    if (listProblem !== null) return { outcome: 'undone', problem: listProblem }
    if (processes.length === 0) return { outcome: 'nothing' }
    calls.start(processes)
    const { cards, problem } = await this.#measureCards(processes)
    if (problem !== null) return { outcome: 'refused', lack: { why: 'no_reading', problem } }
    const ownLack = await familyLack(processes, cards)
    if (ownLack !== null) return { outcome: 'refused', lack: ownLack }
    const work: Work = { ...newWork(family, calls), cards, lockMs, proceed }
    for (let round = 1; round <= ROUNDS; round += 1) {
      const batch = round === 1 ? { processes, problem: null } : await calls.find(family, work.suspended)
      if (batch.problem !== null) return await this.#giveUp({ problem: batch.problem, undone: true }, work)
      if (batch.processes.length === 0) break
      const begun = await this.#begin(begin, work, batch.processes)
      if (begun !== null && round === 1) return { outcome: 'refused', lack: begun }
      if (begun !== null) return await this.#giveUp({ problem: describeLack(begun), undone: true }, work)
      const failure = await this.#suspendAll(work, batch.processes)
      if (failure !== null) return await this.#giveUp(failure, work)
    }
    const frozen = await attempt(freeze)
    if (frozen !== null) return await this.#giveUp({ problem: `it cannot be frozen: ${frozen}`, undone: true }, work)
    const emptyMs = await this.#untilEmpty(work.suspended)
    return {
      outcome: 'suspended',
      card: cards[0]?.uuid ?? '',
      processes: work.suspended,
      isEmpty: emptyMs !== null,
      holdProblem: work.holdProblem,
      times: { ...work.times, emptyMs: emptyMs ?? EMPTY_MS },
    }
  }

  async resume(
    card: string,
    processes: readonly SuspendedProcess[],
    family: ProcessFamily,
    thaw = async () => {},
  ): Promise<ResumeOutcome> {
    const ended = processes.find(candidate => !lives(candidate))
    if (ended !== undefined) return { outcome: 'lost', problem: `process ${ended.pid} has ended` }
    using calls = this.#calls()
    const ready = calls.ready(processes)
    const found = calls.findAmong(processes)
    const neededBytes = processes.reduce((sum, { bytes }) => sum + bytes + RESTORE_BYTES, 0)
    const { cards, problem } = await this.#meter.measure(new Set())
    const cardMemory = cards.find(({ uuid }) => uuid === card)
    if (cardMemory === undefined) return { outcome: 'unknown_room', problem: problem ?? `GPU ${card} is not listed` }
    if (cardMemory.freeBytes < neededBytes) return { outcome: 'no_room', neededBytes, freeBytes: cardMemory.freeBytes }
    await ready
    const threads = new Map((await found).processes.map(({ pid, thread }) => [pid, thread]))
    const notThawed = await attempt(thaw)
    if (notThawed !== null) return { outcome: 'not_thawed', problem: notThawed }
    const heldProcess = processes.find(({ pid }) => isHeld(threads.get(pid) ?? pid))
    if (heldProcess !== undefined) return { outcome: 'stopped', pid: heldProcess.pid }
    const begunMs = this.#clock.monotonic()
    const restores = await Promise.all(processes.map(suspended => calls.restore(suspended, suspended.bytes)))
    const restoreMs = this.#clock.monotonic() - begunMs
    const unrestored = restores.find(each => each !== null)
    if (unrestored != null) return { outcome: 'lost', problem: unrestored }
    const unlocks = await Promise.all(processes.map(suspended => calls.unlock(suspended)))
    const stuck = unlocks.find(each => each !== null) ?? (await this.#release(family))
    if (stuck !== null) return { outcome: 'lost', problem: stuck }
    return { outcome: 'resumed', restoreMs, unlockMs: this.#clock.monotonic() - begunMs - restoreMs }
  }

  async recover(card: string, family: ProcessFamily, thaw = async () => {}): Promise<RecoverOutcome> {
    using calls = this.#calls()
    const { processes, problem } = await calls.find(family)
    if (problem !== null) return { outcome: 'unknown', problem }
    calls.start(processes)
    if (processes.some(({ thread }) => isHeld(thread))) {
      const notThawed = await attempt(thaw)
      if (notThawed !== null) return { outcome: 'unknown', problem: notThawed }
    }
    const states = new Map<CudaProcess, SuspendState>()
    // A copy that its caller left is finished by the driver, and the state is known afterwards.
    for (const target of processes) states.set(target, await calls.state(target))
    const having = (...wanted: readonly SuspendState[]) =>
      processes.filter(target => wanted.includes(states.get(target) ?? 'unknown'))
    const [unclear] = having('unknown', 'changing')
    if (unclear !== undefined)
      return { outcome: 'unknown', problem: `the driver does not report the state of process ${unclear.pid}` }
    const [broken] = having('failed', 'none')
    if (broken !== undefined) return { outcome: 'lost', problem: `the driver lost process ${broken.pid}` }
    if (having('checkpointed').length === 0) return await this.#undo(calls, family, processes)
    const { cards } = await this.#meter.measure(new Set())
    return await this.#finish(
      card,
      { ...newWork(family, calls), cards, lockMs: LATE_LOCK_MS, proceed: async () => true },
      states,
    )
  }

  /** Ends a suspend before its first copy, or a resume after its last one. */
  async #undo(calls: ProcessCalls, family: ProcessFamily, processes: readonly CudaProcess[]): Promise<RecoverOutcome> {
    const undone = await Promise.all(processes.map(target => calls.undoLock(target)))
    const stuck = processes.find((_, index) => undone[index] === false)
    if (stuck !== undefined) return { outcome: 'lost', problem: `process ${stuck.pid} cannot be unlocked` }
    const problem = await this.#release(family)
    return problem === null ? { outcome: 'running' } : { outcome: 'unknown', problem }
  }

  /** Suspends all of a family of which some processes are suspended: that needs no room on the card. */
  async #finish(card: string, work: Work, states: ReadonlyMap<CudaProcess, SuspendState>): Promise<RecoverOutcome> {
    const totalBytes = work.cards.find(({ uuid }) => uuid === card)?.totalBytes ?? Number.POSITIVE_INFINITY
    for (const [target, state] of states) if (state !== 'running') work.locked.push(target)
    for (const [{ pid, startTime }, state] of states)
      if (state === 'checkpointed') work.suspended.push({ pid, startTime, bytes: 0 })
    const isDone = ({ pid }: ProcessStart) => work.suspended.some(each => each.pid === pid)
    const batch = [...states.keys()].filter(target => !isDone(target))
    const failure = await this.#suspendAll(work, batch)
    if (failure !== null) return { outcome: 'lost', problem: failure.problem }
    const processes = work.suspended.map(({ pid, startTime }) => {
      const bytes = Math.min(anonymousBytes(pid), Math.max(0, totalBytes / states.size - RESTORE_BYTES))
      return { pid, startTime, bytes }
    })
    return { outcome: 'suspended', processes }
  }

  #calls(): ProcessCalls {
    return new ProcessCalls(this.#tool, this.#callMs)
  }

  /**
   * Locks all processes of a batch that are not locked yet, holds the family, looks for new ones, and checkpoints all;
   * adds suspended processes to the work.
   */
  async #suspendAll(work: Work, batch: readonly CudaProcess[]): Promise<Failure | null> {
    const { family, cards, calls, locked, suspended, times } = work
    const lockingMs = this.#clock.monotonic()
    const targets = batch.filter(target => !locked.includes(target))
    const locks = await Promise.all(targets.map(target => calls.lock(target, work.lockMs)))
    const holdingMs = this.#clock.monotonic()
    times.lockMs += holdingMs - lockingMs
    locked.push(...targets)
    const failedLock = locks.find(problem => problem !== null)
    if (failedLock != null) return unlocked(calls, batch, failedLock)
    work.holdProblem = await holdFamily(family, locked)
    times.holdMs += this.#clock.monotonic() - holdingMs
    const newcomers = await calls.find(family, [...suspended, ...batch])
    if (newcomers.problem !== null) return unlocked(calls, batch, newcomers.problem)
    const [newcomer] = newcomers.processes
    if (newcomer !== undefined)
      return unlocked(calls, batch, `process ${newcomer.pid} began to use CUDA in the meantime`)
    if (suspended.length === 0 && !(await isWished(work.proceed))) return unlocked(calls, batch, 'it got work')
    const copyingMs = this.#clock.monotonic()
    const sizes = batch.map(target => processBytes(target, cards))
    const checkpoints = await Promise.all(batch.map((target, index) => calls.checkpoint(target, sizes[index] ?? 0)))
    times.checkpointMs += this.#clock.monotonic() - copyingMs
    batch.forEach(({ pid, startTime }, index) => {
      if (checkpoints[index] === null) suspended.push({ pid, startTime, bytes: sizes[index] ?? 0 })
    })
    const failed = checkpoints.find(problem => problem !== null)
    return failed == null ? null : { problem: failed, undone: false }
  }

  /** @returns the reason of the caller not to suspend a batch, beside those that are suspended; null to do it */
  async #begin(
    begin: Required<SuspendSteps>['begin'],
    { cards, suspended }: Work,
    batch: readonly CudaProcess[],
  ): Promise<FamilyLack | null> {
    const further = batch.map(target => {
      const { pid, startTime } = target
      return { pid, startTime, bytes: processBytes(target, cards) }
    })
    try {
      return await begin(cards[0]?.uuid ?? '', [...suspended, ...further])
    } catch (error) {
      return { why: 'not_begun', problem: (error as Error).message }
    }
  }

  /** Resumes the suspended processes after a failure, if the others are as before, and releases the family. */
  async #giveUp({ problem, undone }: Failure, { suspended, cards, family }: Work): Promise<SuspendOutcome> {
    if (!undone) return { outcome: 'lost', problem }
    if (suspended.length > 0) {
      const { outcome } = await this.resume(cards[0]?.uuid ?? '', suspended, family)
      return { outcome: outcome === 'resumed' ? 'undone' : 'lost', problem }
    }
    const stuck = await this.#release(family)
    return stuck === null ? { outcome: 'undone', problem } : { outcome: 'lost', problem: `${problem}; ${stuck}` }
  }

  /** @returns the problem after which threads of the family may still be held; null without one */
  async #release(family: ProcessFamily): Promise<string | null> {
    for (let left = RELEASES; ; left -= 1) {
      const problem = await attempt(() => family.release())
      if (problem === null) return null
      if (left <= 1) return `its threads cannot be released: ${problem}`
      await pause(this.#clock, LOOK_MS)
    }
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

function newWork(family: ProcessFamily, calls: ProcessCalls): Omit<Work, 'cards' | 'lockMs' | 'proceed'> {
  const times = { lockMs: 0, holdMs: 0, checkpointMs: 0 }
  return { family, calls, locked: [], suspended: [], times, holdProblem: null }
}

/** A caller that fails does not stop the suspend. */
async function isWished(proceed: Work['proceed']): Promise<boolean> {
  return proceed().catch(() => true)
}

/** Unlocks the locked ones of some processes after a failure, by the state of each. */
async function unlocked(calls: ProcessCalls, batch: readonly ProcessStart[], problem: string): Promise<Failure> {
  const undone = await Promise.all(batch.map(target => calls.undoLock(target)))
  return { problem, undone: undone.every(Boolean) }
}

/** @returns the reason why the family is not held; null when it is */
async function holdFamily(family: ProcessFamily, locked: readonly CudaProcess[]): Promise<string | null> {
  try {
    return await family.hold(locked.map(({ thread }) => thread))
  } catch (error) {
    return (error as Error).message
  }
}

/** @returns the problem of a function that rejects; null when it resolves */
async function attempt(act: () => Promise<void>): Promise<string | null> {
  try {
    await act()
    return null
  } catch (error) {
    return (error as Error).message
  }
}

/** The memory of a process on its cards, as listed before it was suspended. */
function processBytes({ pid }: ProcessStart, cards: readonly CardMemory[]): number {
  const listed = cards.flatMap(({ processes }) => processes).filter(each => each.pid === pid)
  return listed.reduce((sum, { bytes }) => sum + (bytes ?? 0), 0)
}
