/**
 * The checks of `runyard doctor --gpu`: the working functions of each free card and their speed, by the same ports
 * that a server uses and a small program of its own. Two minutes at most.
 */
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CardMemory } from '../core/hardware/gpu-memory.ts'
import { describeLack, type ProcessStart, type SuspendOutcome } from '../core/hardware/gpu-suspension.ts'
import type { GpuCheck } from '../core/observing/gpu-check.ts'
import { readProcess, signal } from '../drivers/base/process-table.ts'
import { findLimits } from '../drivers/cage/limits.ts'
import { pause } from '../ports/clock.ts'
import type { GpuMeter } from '../ports/gpu-meter.ts'
import type { GpuSuspender, ProcessFamily } from '../ports/gpu-suspender.ts'
import { systemClock } from '../system/clock.ts'
import { createGpuMeter } from '../system/gpu/gpu-meter.ts'
import { createGpuSuspender } from '../system/gpu/gpu-suspender.ts'
import { CardWorker, CheckFailed } from './gpu-programs.ts'

const GIB = 2 ** 30
const MIB = 2 ** 20
/** Time for all cards. */
const BUDGET_MS = 120_000
/** Time that one more check may take. */
const LONGEST_CHECK_MS = 30_000
/** Memory in use from which a card counts as used by others. */
const FREE_CARD_BYTES = 2 * GIB
/** The largest memory that is suspended: some seconds of copies. */
const LARGEST_BYTES = 4 * GIB
const LOCK_MS = 10_000
const REST_MS = 2_000
const LOOK_MS = 10
/** Time for which a program should stand still in its freeze or pause. */
const PAUSE_MS = 500
/** Work that is frozen, paused, and shared. */
const WORK_MS = { frozen: 1_000, paused: 3_000, shared: 1_000 }

type Figures = GpuCheck['figures']
type Outcome = Pick<GpuCheck, 'result' | 'message'> & { readonly figures?: Figures }

/** The reason why the driver cannot suspend processes here, as a clause; null if it can. */
export async function suspendLack(env: NodeJS.ProcessEnv): Promise<string | null> {
  const suspender = createGpuSuspender({ clock: systemClock, env, meter: createGpuMeter(systemClock, env) })
  const { lack } = await suspender.readiness()
  return lack === null ? null : describeLack(lack)
}

/** Checks all cards in turn, and yields the outcome of each check. Leaves nothing changed. */
export async function* checkGpus(env: NodeJS.ProcessEnv, budgetMs = BUDGET_MS): AsyncGenerator<GpuCheck> {
  const untilMs = systemClock.monotonic() + budgetMs
  const meter = createGpuMeter(systemClock, env)
  const suspender = createGpuSuspender({ clock: systemClock, env, meter })
  const { driver, cuda, lack } = await suspender.readiness()
  const figures = { ...(driver === null ? {} : { driver }), ...(cuda === null ? {} : { cuda }) }
  const message = lack === null ? `driver ${driver} can suspend processes` : describeLack(lack)
  yield { gpu: null, check: 'driver', result: lack === null ? 'works' : 'untested', message, figures }
  const { cards, problem } = await meter.measure(new Set())
  if (cards.length === 0)
    yield { gpu: null, check: 'cards', result: 'fails', message: problem ?? 'there is no card', figures: {} }
  for (const card of cards) {
    if (card.processes.length > 0 || card.usedBytes > FREE_CARD_BYTES) yield usedCard(card)
    else yield* new CardChecks({ env, meter, suspender, card, untilMs, canSuspend: lack === null }).run()
  }
}

function usedCard({ index, usedBytes, processes }: CardMemory): GpuCheck {
  const pids = processes.map(({ pid }) => pid).join(', ')
  const message = `not free: ${gib(usedBytes)} are in use${pids === '' ? '' : ` by pid ${pids}`}`
  return { gpu: index, check: 'card', result: 'untested', message, figures: { usedMib: mib(usedBytes) } }
}

/** The checks of one card. */
class CardChecks {
  readonly #options
  readonly #workers = new Set<CardWorker>()

  constructor(options: {
    readonly env: NodeJS.ProcessEnv
    readonly meter: GpuMeter
    readonly suspender: GpuSuspender
    readonly card: CardMemory
    readonly untilMs: number
    readonly canSuspend: boolean
  }) {
    this.#options = options
  }

  async *run(): AsyncGenerator<GpuCheck> {
    const { card, canSuspend } = this.#options
    const checks: readonly [name: string, needsSuspend: boolean, check: () => Promise<Outcome>][] = [
      ['assigned', false, () => this.#assigned()],
      ['memory', false, () => this.#memory()],
      ['signals', false, () => this.#frozenBySignals()],
      ['group', false, () => this.#frozenByGroup()],
      ['suspend', true, () => this.#suspended()],
      ['pause', true, () => this.#paused()],
      ['share', false, () => this.#shared()],
    ]
    for (const [check, needsSuspend, make] of checks) {
      const outcome =
        needsSuspend && !canSuspend
          ? untested('the driver cannot suspend processes here')
          : systemClock.monotonic() + LONGEST_CHECK_MS > this.#options.untilMs
            ? untested('there is no time left')
            : await this.#runCheck(make)
      yield { gpu: card.index, check, figures: {}, ...outcome }
    }
  }

  async #runCheck(make: () => Promise<Outcome>): Promise<Outcome> {
    try {
      return await make()
    } catch (error) {
      const isExpected = error instanceof CheckFailed || (error as NodeJS.ErrnoException).code !== undefined
      if (!isExpected) throw error
      return { result: 'fails', message: (error as Error).message }
    } finally {
      for (const worker of this.#workers) await worker.end()
      this.#workers.clear()
    }
  }

  async #worker(bytes: number): Promise<CardWorker> {
    const worker = await CardWorker.start(systemClock, this.#options.env, this.#options.card.uuid)
    this.#workers.add(worker)
    if (bytes > 0) await worker.allocate(bytes)
    return worker
  }

  /** A program sees the card that it was given, and no other; kernels run. */
  async #assigned(): Promise<Outcome> {
    const worker = await this.#worker(64 * MIB)
    const { uuids = [], initMs = 0, kernelProblem = null } = worker.entered
    const { uuid } = this.#options.card
    if (uuids.length !== 1 || uuids[0] !== uuid)
      throw new CheckFailed(`a program that gets ${uuid} sees ${uuids.join(', ')}`)
    await worker.checksum()
    const figures = { startMs: round(initMs) }
    if (kernelProblem !== null) throw new CheckFailed(`the card is seen, and no kernel runs: ${kernelProblem}`)
    return works('a program sees this card alone, and its kernels run', figures)
  }

  /** The driver lists the memory of a program, under its pid. */
  async #memory(): Promise<Outcome> {
    const bytes = this.#size(1)
    const worker = await this.#worker(bytes)
    const { card } = await this.#measure(worker)
    const contextBytes = card.ownBytes - bytes
    const figures = { allocatedMib: mib(bytes), listedMib: mib(card.ownBytes), contextMib: mib(contextBytes) }
    if (contextBytes < 0) throw new CheckFailed(`${gib(card.ownBytes)} are listed of ${gib(bytes)} in use`)
    return works(`${gib(bytes)} in use are listed as ${gib(card.ownBytes)} of its process`, {
      ...figures,
      foreignMib: mib(card.foreignBytes),
    })
  }

  async #frozenBySignals(): Promise<Outcome> {
    const stop = (worker: CardWorker) => {
      signal(worker.pid, 'SIGSTOP')
      return () => signal(worker.pid, 'SIGCONT')
    }
    return this.#frozen('SIGSTOP', stop, ({ pid }) => readProcess(pid)?.stopped === true)
  }

  async #frozenByGroup(): Promise<Outcome> {
    const { freezer } = findLimits()
    if (freezer === null) return untested('this user may make no control group of version 2 here')
    const group = new FrozenGroup(join(freezer, `runyard-doctor-${process.pid}`))
    const hold = ({ pid }: CardWorker) => {
      group.hold(pid)
      return () => group.release()
    }
    try {
      return await this.#frozen('the freezer of control groups', hold, () => group.isHeld)
    } finally {
      for (const worker of this.#workers) await worker.end()
      await waitUntil(() => group.remove(), REST_MS)
    }
  }

  /** A program stands still in the middle of its work, keeps its memory on the card, and goes on. */
  async #frozen(
    how: string,
    freeze: (worker: CardWorker) => () => void,
    isStill: (worker: CardWorker) => boolean,
  ): Promise<Outcome> {
    const worker = await this.#worker(256 * MIB)
    const work = worker.work(WORK_MS.frozen)
    await this.#waitForWork(worker, work)
    const begunMs = systemClock.monotonic()
    const goOn = freeze(worker)
    try {
      if (!(await waitUntil(() => isStill(worker), REST_MS))) throw new CheckFailed(`${how} does not stop a program`)
      const freezeMs = systemClock.monotonic() - begunMs
      // The last line that it wrote may be on its way.
      await pause(systemClock, LOOK_MS)
      const launches = worker.launches
      await pause(systemClock, PAUSE_MS)
      if (worker.launches !== launches) throw new CheckFailed(`a program goes on after ${how}`)
      const { card } = await this.#measure(worker)
      goOn()
      await work
      await worker.checksum()
      const figures = { freezeMs: round(freezeMs), heldMib: mib(card.ownBytes) }
      return works(`${how} stops a program at its work; it keeps ${gib(card.ownBytes)} and goes on`, figures)
    } finally {
      goOn()
    }
  }

  /**
   * A program is suspended, another one uses the whole card, and the first one continues with its memory intact.
   */
  async #suspended(): Promise<Outcome> {
    const bytes = this.#size(LARGEST_BYTES / GIB)
    const worker = await this.#worker(bytes)
    const previousSum = await worker.checksum()
    const suspended = await this.#suspend(worker)
    const other = await this.#worker(0)
    const whole = Math.floor(((other.entered.freeBytes ?? 0) * 0.9) / MIB) * MIB
    await other.allocate(whole)
    await other.checksum()
    await other.end()
    const resumed = await this.#resume(suspended)
    const after = await worker.checksum()
    if (after !== previousSum) throw new CheckFailed('its memory has other contents after the resume')
    const { checkpointMs, lockMs, emptyMs } = suspended.times
    const figures = {
      mib: mib(bytes),
      lockMs: round(lockMs),
      checkpointMs: round(checkpointMs),
      checkpointGbPerS: perSecond(bytes, checkpointMs),
      emptyMs: round(emptyMs),
      otherMib: mib(whole),
      restoreMs: round(resumed),
      restoreGbPerS: perSecond(bytes, resumed),
    }
    const speeds = `out at ${figures.checkpointGbPerS} GB/s, back at ${figures.restoreGbPerS} GB/s`
    return works(
      `${gib(bytes)} left the card for another program of ${gib(whole)} and came back intact: ${speeds}`,
      figures,
    )
  }

  /** A program is suspended and stopped in the middle of its work, and ends it with the right result. */
  async #paused(): Promise<Outcome> {
    const worker = await this.#worker(256 * MIB)
    const previousSum = await worker.checksum()
    const work = worker.work(WORK_MS.paused)
    await this.#waitForWork(worker, work)
    const suspended = await this.#suspend(worker)
    const pausedAfter = worker.launches
    signal(worker.pid, 'SIGSTOP')
    try {
      await waitUntil(() => readProcess(worker.pid)?.stopped === true, REST_MS)
      await pause(systemClock, PAUSE_MS)
    } catch (error) {
      signal(worker.pid, 'SIGCONT')
      throw error
    }
    const restoreMs = await this.#resume(suspended, async () => {
      signal(worker.pid, 'SIGCONT')
      await waitUntil(() => readProcess(worker.pid)?.stopped === false, REST_MS)
    })
    const launches = await work
    if ((await worker.checksum()) !== previousSum)
      throw new CheckFailed('its memory has other contents after the pause')
    if (pausedAfter === launches) throw new CheckFailed('the work ended before it was paused')
    const figures = {
      launches,
      pausedAfter,
      suspendMs: round(suspended.times.lockMs + suspended.times.checkpointMs),
      resumeMs: round(restoreMs),
    }
    return works(
      `work was paused after ${pausedAfter} of ${launches} launches and ended with the right result`,
      figures,
    )
  }

  /** Two programs use the card at once. */
  async #shared(): Promise<Outcome> {
    const sizes = [this.#size(2), this.#size(1)] as const
    const workers = [await this.#worker(sizes[0]), await this.#worker(sizes[1])] as const
    const begunMs = systemClock.monotonic()
    await Promise.all(workers.map(worker => worker.work(WORK_MS.shared)))
    const bothMs = systemClock.monotonic() - begunMs
    const sums = await Promise.all(workers.map(worker => worker.checksum()))
    const { card } = await this.#measure(...workers)
    const listed = workers.map(({ pid }) => card.processes.find(each => each.pid === pid)?.bytes ?? 0)
    if (sums.includes('') || listed.some((bytes, index) => bytes < sizes[index]!))
      throw new CheckFailed(`two programs of ${gib(sizes[0])} and ${gib(sizes[1])} are listed with ${listed.map(gib)}`)
    const figures = { firstMib: mib(listed[0]!), secondMib: mib(listed[1]!), bothMs: round(bothMs) }
    return works(`two programs worked at once, listed with ${gib(listed[0]!)} and ${gib(listed[1]!)}`, figures)
  }

  async #suspend(worker: CardWorker): Promise<SuspendOutcome & { outcome: 'suspended' }> {
    const outcome = await this.#options.suspender.suspend(familyOf([worker.process]), LOCK_MS)
    if (outcome.outcome === 'suspended' && outcome.isEmpty) return outcome
    if (outcome.outcome === 'suspended') throw new CheckFailed('the card lists memory of a suspended program')
    if (outcome.outcome === 'refused') throw new CheckFailed(`it cannot be suspended: ${describeLack(outcome.lack)}`)
    const why = 'problem' in outcome ? outcome.problem : 'it is not found to use CUDA'
    throw new CheckFailed(`suspend failed (${outcome.outcome}): ${why}`)
  }

  /** @returns milliseconds of the restore */
  async #resume(
    { card, processes }: SuspendOutcome & { outcome: 'suspended' },
    thaw?: () => Promise<void>,
  ): Promise<number> {
    const outcome = await this.#options.suspender.resume(card, processes, familyOf(processes), thaw)
    if (outcome.outcome === 'resumed') return outcome.restoreMs
    const why =
      outcome.outcome === 'no_room'
        ? `it needs ${gib(outcome.neededBytes)} of ${gib(outcome.freeBytes)} free`
        : outcome.outcome === 'stopped'
          ? `process ${outcome.pid} is stopped`
          : outcome.problem
    throw new CheckFailed(`resume failed (${outcome.outcome}): ${why}`)
  }

  async #waitForWork(worker: CardWorker, work: Promise<unknown>): Promise<void> {
    let failure: unknown = null
    work.catch(error => {
      failure = error
    })
    const isAtWork = await waitUntil(() => worker.launches > 2 || failure !== null, REST_MS * 5)
    if (failure !== null) throw failure
    if (!isAtWork) throw new CheckFailed('a program does not get on with its work')
  }

  async #measure(...workers: readonly CardWorker[]): Promise<{ readonly card: CardMemory }> {
    const { cards, problem } = await this.#options.meter.measure(new Set(workers.map(({ pid }) => pid)))
    const card = cards.find(({ uuid }) => uuid === this.#options.card.uuid)
    if (card === undefined) throw new CheckFailed(problem ?? 'the card is no longer listed')
    return { card }
  }

  /** Bytes for a program: this many GiB, or the part of a small card that leaves room for others. */
  #size(wanted: number): number {
    const part = Math.floor((this.#options.card.freeBytes * 0.25) / MIB) * MIB
    return Math.min(wanted * GIB, part)
  }
}

/** A control group of version 2 with one program in it, which the kernel can hold. A check makes and removes it. */
class FrozenGroup {
  readonly #folder

  /** @throws where this user may not make it */
  constructor(folder: string) {
    this.#folder = folder
    mkdirSync(folder)
  }

  /** Moves a process into the group, and asks the kernel to hold it. @throws where this user may not */
  hold(pid: number): void {
    writeFileSync(join(this.#folder, 'cgroup.procs'), String(pid))
    writeFileSync(join(this.#folder, 'cgroup.freeze'), '1')
  }

  /** Thaws the processes of the group. */
  release(): void {
    writeFileSync(join(this.#folder, 'cgroup.freeze'), '0')
  }

  /** True if all processes of the group are frozen. */
  get isHeld(): boolean {
    return readFileSync(join(this.#folder, 'cgroup.events'), 'utf8').includes('frozen 1')
  }

  /** Removes the group. @returns false while there are processes in it */
  remove(): boolean {
    try {
      rmdirSync(this.#folder)
      return true
    } catch {
      return false
    }
  }
}

/** Programs of a check, which begin no call of CUDA while they are suspended, so that they need not be held. */
function familyOf(processes: readonly ProcessStart[]): ProcessFamily {
  return {
    members: async () => processes,
    hold: async () => 'programs of a check are not held',
    release: async () => {},
  }
}

async function waitUntil(isSo: () => boolean, withinMs: number): Promise<boolean> {
  const endMs = systemClock.monotonic() + withinMs
  while (!isSo()) {
    if (systemClock.monotonic() > endMs) return false
    await pause(systemClock, LOOK_MS)
  }
  return true
}

function works(message: string, figures: Figures): Outcome {
  return { result: 'works', message, figures }
}

function untested(message: string): Outcome {
  return { result: 'untested', message }
}

function round(ms: number): number {
  return Math.round(ms * 10) / 10
}

function mib(bytes: number): number {
  return Math.round(bytes / MIB)
}

function gib(bytes: number): string {
  return `${(bytes / GIB).toFixed(1)} GiB`
}

function perSecond(bytes: number, ms: number): number {
  return Math.round(bytes / 1e5 / Math.max(ms, 0.1)) / 10
}
