/**
 * The cards of a machine and a driver that suspends the processes of workers, for tests and the simulator. Each worker
 * has one process, which outlives the server. It models what `docs/internals/gpu-proof.md` records.
 */

import { type CardReading, withOwners } from '../src/core/hardware/gpu-memory.ts'
import type { ResumeOutcome, SuspendOutcome, SuspendReadiness } from '../src/core/hardware/gpu-suspension.ts'
import type { WorkerId } from '../src/core/ids.ts'
import { type Clock, pause } from '../src/ports/clock.ts'
import type { GpuMeter } from '../src/ports/gpu-meter.ts'
import type { GpuSuspender, ProcessFamily, SuspendState, SuspendSteps } from '../src/ports/gpu-suspender.ts'

/** A step of a suspend or a resume that can fail. */
export type PlayedStep = 'lock' | 'hold' | 'checkpoint' | 'empty' | 'restore' | 'unlock'

/** Options of {@link PlayedGpus}. */
export interface PlayedGpuOptions {
  readonly clock: Clock
  /** True while the process of a worker stands still, so that it does not answer the driver. */
  readonly isFrozen: (worker: WorkerId) => boolean
  /** True for a worker that has not ended. */
  readonly isAlive: (worker: WorkerId) => boolean
  /** True if this call of the driver fails; no call fails when left out. */
  readonly fails?: (step: PlayedStep, worker: WorkerId) => boolean
  /** Duration of the copy of a step, in milliseconds; 100 when left out. */
  readonly copyMs?: (worker: WorkerId, step: 'checkpoint' | 'restore') => number
  /** The threads of a worker stand still from now on, or may run again. */
  readonly onHold?: (worker: WorkerId, isHeld: boolean) => void
  /** Called after each change of the memory of a card. */
  readonly onChange?: () => void
}

interface PlayedProcess {
  readonly worker: WorkerId
  readonly pid: number
  /** Its cards; only a process on one card can be suspended. */
  readonly cards: readonly string[]
  /** Its memory on each card. */
  bytes: number
  state: 'running' | 'locked' | 'checkpointed' | 'failed'
  isHeld: boolean
}

const CALL_MS = 5
const GIB = 2 ** 30

/** See the file. */
export class PlayedGpus {
  /** Memory of each card, in bytes. */
  readonly totalBytes
  readonly #options
  readonly #processes = new Map<WorkerId, PlayedProcess>()
  /** Memory of other programs, by card. */
  readonly foreign = new Map<string, number>()
  readiness: SuspendReadiness = { lack: null, driver: '580.1', cuda: 13_000 }
  #pids = 1_000

  constructor(options: PlayedGpuOptions, cardGib = 24) {
    this.#options = options
    this.totalBytes = cardGib * GIB
  }

  /** A worker has memory of cards from now on. */
  start(worker: WorkerId, cards: readonly string[], gib: number): void {
    if (cards.length === 0) return
    this.#pids += 1
    const state = { state: 'running', isHeld: false } as const
    this.#processes.set(worker, { worker, pid: this.#pids, cards, bytes: gib * GIB, ...state })
    this.#options.onChange?.()
  }

  /**
   * A program uses this much memory of its card from now on, unless it uses more.
   * @returns `full` without that much memory, `stands` for a program that stands still, `over` for one that has ended
   */
  grow(worker: WorkerId, gib: number): 'grown' | 'full' | 'stands' | 'over' {
    const process = this.#find(worker)
    if (process === undefined) return 'over'
    if (!this.runs(worker) || this.#options.isFrozen(worker)) return 'stands'
    const more = gib * GIB - process.bytes
    if (more <= 0) return 'grown'
    if (process.cards.some(card => this.freeBytes(card) < more)) return 'full'
    process.bytes += more
    this.#options.onChange?.()
    return 'grown'
  }

  /** The workers with memory on a card. */
  usersOf(card: string): { readonly worker: WorkerId; readonly bytes: number }[] {
    return this.#living().filter(
      ({ cards, state }) => cards.includes(card) && (state === 'running' || state === 'locked'),
    )
  }

  /** Another program takes memory of a card, as far as it is free, instead of what it had. */
  takeForeign(card: string, bytes: number): void {
    this.foreign.delete(card)
    this.foreign.set(card, Math.min(bytes, Math.max(0, this.freeBytes(card))))
  }

  /** Measures these cards. */
  meter(cards: () => readonly { readonly uuid: string | null; readonly index: number }[]): GpuMeter {
    return {
      measure: async own => ({
        cards: cards().flatMap(({ uuid, index }) => (uuid === null ? [] : withOwners(this.#read(uuid, index), own))),
        problem: null,
      }),
    }
  }

  #find(worker: WorkerId): PlayedProcess | undefined {
    return this.#options.isAlive(worker) ? this.#processes.get(worker) : undefined
  }

  #living(): PlayedProcess[] {
    return [...this.#processes.values()].filter(({ worker }) => this.#options.isAlive(worker))
  }

  #read(uuid: string, index: number): CardReading {
    const usedBytes = this.usedBytes(uuid)
    return {
      uuid,
      index,
      totalBytes: this.totalBytes,
      usedBytes,
      freeBytes: this.totalBytes - usedBytes,
      processes: this.#living()
        .filter(({ cards, state }) => cards.includes(uuid) && state !== 'checkpointed' && state !== 'failed')
        .map(({ pid, bytes }) => ({ pid, name: null, bytes })),
    }
  }

  /** The state of the process of a worker; `none` for one without CUDA. */
  stateOf(worker: WorkerId): SuspendState {
    return this.#find(worker)?.state ?? 'none'
  }

  /** The pid of a worker. */
  pidOf(worker: WorkerId): number | null {
    return this.#find(worker)?.pid ?? null
  }

  /** Used memory of a card, in bytes. */
  usedBytes(card: string): number {
    return this.workerBytes(card) + (this.foreign.get(card) ?? 0)
  }

  /** Memory of workers on a card, in bytes. */
  workerBytes(card: string): number {
    let used = 0
    for (const { cards, state, bytes } of this.#living())
      if (cards.includes(card) && (state === 'running' || state === 'locked')) used += bytes
    return used
  }

  /** True if a worker may do its work: its memory is on its card, and nothing blocks it. */
  runs(worker: WorkerId): boolean {
    const process = this.#find(worker)
    return process === undefined || (process.state === 'running' && !process.isHeld)
  }

  /** The processes of a worker; null for one that has ended. */
  family(worker: WorkerId): ProcessFamily | null {
    const process = this.#find(worker)
    if (process === undefined) return null
    const setHeld = (isHeld: boolean) => {
      if (process.isHeld === isHeld) return
      process.isHeld = isHeld
      this.#options.onHold?.(worker, isHeld)
    }
    return {
      members: async () => [{ pid: process.pid, startTime: '1' }],
      hold: async () => {
        setHeld(true)
        return null
      },
      release: async () => setHeld(false),
    }
  }

  /**
   * The driver as one run of the server calls it.
   * @param isOver true once this run has ended: it does nothing more
   */
  suspender(isOver: () => boolean = () => false): GpuSuspender {
    return new PlayedSuspender(this, this.#options, isOver)
  }

  /** The process of a family; undefined when it has ended. */
  async processOf(family: ProcessFamily): Promise<PlayedProcess | undefined> {
    const [member] = await family.members()
    return this.#living().find(({ pid }) => pid === member?.pid)
  }

  /** The process with this pid. */
  byPid(wanted: number): PlayedProcess | undefined {
    return this.#living().find(({ pid }) => pid === wanted)
  }

  /** True while the threads of a worker stand still. */
  isHeld(worker: WorkerId): boolean {
    return this.#find(worker)?.isHeld === true
  }

  /** Free memory of a card, in bytes. */
  freeBytes(card: string): number {
    return this.totalBytes - this.usedBytes(card)
  }
}

class PlayedSuspender implements GpuSuspender {
  readonly #gpus
  readonly #options
  readonly #isOver

  constructor(gpus: PlayedGpus, options: PlayedGpuOptions, isOver: () => boolean) {
    this.#gpus = gpus
    this.#options = options
    this.#isOver = isOver
  }

  async readiness(): Promise<SuspendReadiness> {
    return this.#gpus.readiness
  }

  async state(pid: number): Promise<SuspendState> {
    await this.#after(CALL_MS)
    return this.#gpus.byPid(pid)?.state ?? 'none'
  }

  async suspend(family: ProcessFamily, lockMs: number, steps: SuspendSteps = {}): Promise<SuspendOutcome> {
    const { lack } = this.#gpus.readiness
    if (lack !== null) return { outcome: 'refused', lack }
    await this.#after(CALL_MS)
    const process = await this.#gpus.processOf(family)
    if (process === undefined) return { outcome: 'nothing' }
    const { worker, pid, cards, bytes } = process
    if (cards.length > 1) return { outcome: 'refused', lack: { why: 'several_cards', count: cards.length } }
    const [card = ''] = cards
    const processes = [{ pid, startTime: '1', bytes }]
    const refusal = (await steps.begin?.(card, processes)) ?? null
    if (refusal !== null) return { outcome: 'refused', lack: refusal }
    await this.#after(CALL_MS)
    if (this.#fails('lock', worker)) {
      await this.#after(lockMs)
      return { outcome: 'undone', problem: 'lock: NOT_READY' }
    }
    process.state = 'locked'
    await this.#after(CALL_MS)
    await family.hold([])
    await this.#after(CALL_MS)
    if (this.#fails('hold', worker)) {
      process.state = 'running'
      await family.release()
      return { outcome: 'undone', problem: 'another process began to use CUDA' }
    }
    if ((await steps.proceed?.()) === false) {
      process.state = 'running'
      await family.release()
      return { outcome: 'undone', problem: 'it got work' }
    }
    await this.#copy(worker, 'checkpoint')
    if (this.#fails('checkpoint', worker)) {
      process.state = 'failed'
      return { outcome: 'lost', problem: 'checkpoint: NOT_SUPPORTED' }
    }
    process.state = 'checkpointed'
    await this.#after(CALL_MS)
    await steps.freeze?.()
    await this.#after(CALL_MS)
    const times = { lockMs: 1, holdMs: 1, checkpointMs: 1, emptyMs: 1 }
    return { outcome: 'suspended', card, processes, isEmpty: !this.#fails('empty', worker), holdProblem: null, times }
  }

  async resume(
    card: string,
    [suspended]: readonly { readonly pid: number; readonly bytes: number }[],
    family: ProcessFamily,
    thaw: () => Promise<void> = async () => {},
  ): Promise<ResumeOutcome> {
    await this.#after(CALL_MS)
    const process = this.#gpus.byPid(suspended?.pid ?? 0)
    if (process === undefined) return { outcome: 'lost', problem: 'the process has ended' }
    const freeBytes = this.#gpus.freeBytes(card)
    if (freeBytes < process.bytes) return { outcome: 'no_room', neededBytes: process.bytes, freeBytes }
    try {
      await thaw()
    } catch (error) {
      return { outcome: 'not_thawed', problem: (error as Error).message }
    }
    await this.#after(CALL_MS)
    if (this.#options.isFrozen(process.worker)) return { outcome: 'stopped', pid: process.pid }
    await this.#copy(process.worker, 'restore')
    if (this.#fails('restore', process.worker) || this.#gpus.freeBytes(card) < process.bytes) {
      process.state = 'failed'
      return { outcome: 'lost', problem: 'restore: OUT_OF_MEMORY' }
    }
    process.state = 'locked'
    this.#options.onChange?.()
    await this.#after(CALL_MS)
    if (this.#fails('unlock', process.worker)) return { outcome: 'lost', problem: 'unlock: ILLEGAL_STATE' }
    process.state = 'running'
    await this.#after(CALL_MS)
    await family.release()
    return { outcome: 'resumed', restoreMs: 1, unlockMs: 1 }
  }

  async recover(_card: string, family: ProcessFamily, thaw: () => Promise<void> = async () => {}) {
    await this.#after(CALL_MS)
    const process = await this.#gpus.processOf(family)
    if (process === undefined) return { outcome: 'running' } as const
    if (this.#options.isFrozen(process.worker)) {
      try {
        await thaw()
      } catch (error) {
        return { outcome: 'unknown', problem: (error as Error).message } as const
      }
    }
    await this.#after(CALL_MS)
    const { pid, bytes, state } = process
    if (state === 'failed') return { outcome: 'lost', problem: 'FAILED' } as const
    if (state === 'checkpointed')
      return { outcome: 'suspended', processes: [{ pid, startTime: '1', bytes: bytes * 2 }] } as const
    process.state = 'running'
    await family.release()
    return { outcome: 'running' } as const
  }

  #fails(step: PlayedStep, worker: WorkerId): boolean {
    return this.#options.fails?.(step, worker) === true
  }

  #copy(worker: WorkerId, step: 'checkpoint' | 'restore'): Promise<void> {
    return this.#after(this.#options.copyMs?.(worker, step) ?? 100)
  }

  /** Never resolves for a run of the server that has ended. */
  async #after(ms: number): Promise<void> {
    await pause(this.#options.clock, ms)
    if (this.#isOver()) await new Promise<never>(() => {})
  }
}
