import { AppError, toAppError } from '../../core/errors.ts'
import { CLOCK_DOUBT_MS, clockDifference, resumedTime } from '../../core/server-time.ts'
import type { Emit } from '../../events.ts'
import type { ClockReading, ClockStep, ServerTime } from '../../ports/clock.ts'
import type { StoreLayer } from '../../ports/store/operations.ts'
import type { Store } from '../../ports/store/store.ts'

/** Ports that maintain the server's time. */
export interface TimePorts {
  readonly store: Pick<Store, 'clock'>
  readonly time: ServerTime
  readonly emit: Emit
}

/** Both clocks, for people and programs. */
export interface TimeView {
  /** The server's time, in epoch milliseconds. */
  readonly nowMs: number
  /** The machine's clock, in epoch milliseconds. */
  readonly machineMs: number
  /** Lead of the machine's clock, below zero where it is behind; 0 while both agree. */
  readonly stepMs: number
  /** Time at which the server accepts the machine's clock by itself; null while both agree. */
  readonly takenAtMs: number | null
  /**
   * End of the pause in which retention removes nothing, because much time passed before the start; null without a
   * pause.
   */
  readonly heldUntilMs: number | null
  /** The difference as a sentence; null while both clocks agree. */
  readonly note: string | null
}

/**
 * Continues the time of the previous server, before anything else is done with the store. Takes the time of the
 * machine's clock where that was accepted. When more than a day passed, retention waits for another day.
 */
export async function resumeTime({ store, time, emit }: TimePorts): Promise<void> {
  const storedMark = await store.clock.read()
  if (storedMark !== null) {
    const { boot, sinceBootMs } = time.mark()
    const { machineMs } = time.read()
    const nowMs = Math.round(resumedTime(storedMark, { boot, sinceBootMs, machineMs }))
    time.resume(nowMs, storedMark.stepSinceMs)
    const { step } = time.read()
    if (storedMark.isAccepted && step !== null) {
      if (await adopt({ store, time, emit }, step)) return
      time.resume(nowMs, storedMark.stepSinceMs)
    }
    if (storedMark.isAccepted && step === null) await store.clock.accept(false)
    const gapMs = nowMs - storedMark.nowMs
    if (gapMs > CLOCK_DOUBT_MS) {
      const untilMs = nowMs + CLOCK_DOUBT_MS
      await store.clock.hold(untilMs)
      emit('clock.held', { gapMs, untilMs })
    }
  }
  await store.clock.keep(time.mark())
}

/** @returns false when the store failed: then the old time is kept, which is better than no start */
async function adopt({ store, time, emit }: TimePorts, { byMs }: ClockStep): Promise<boolean> {
  time.resume(time.read().nowMs + byMs, null)
  try {
    await store.clock.adopt(byMs, time.mark())
  } catch (error) {
    emit('clock.not_adopted', { byMs, problem: toAppError(error).message })
    return false
  }
  emit('clock.adopted', { byMs })
  return true
}

/** The sentence about a step, for people; null while both clocks agree. */
function stepNote({ step }: ClockReading): string | null {
  if (step === null) return null
  return (
    `the clock of this machine is ${clockDifference(step.byMs)} the time of the server, which goes on as before: no limit has moved and nothing was removed; ` +
    'set the clock right, or take its time with runyard clock accept'
  )
}

/** Time between two writes of the time, the most that a kill of the server can lose. */
const KEEP_MS = 60_000
/** Longest time for a write of the time. */
const LATE_MS = 500
/** Time between two comparisons of the clocks. */
const LOOK_MS = 2_000

/**
 * Maintains the server's time: reports steps of the machine's clock, writes the time to the store, and takes that of
 * the machine's clock when it is accepted.
 */
export class TimeKeeper {
  readonly #ports
  /** Begins a new term, which resumes with {@link resumeTime}. */
  readonly #renew
  #keptAtMs = Number.NEGATIVE_INFINITY
  /** Time since which the last reported step exists; null for no step. */
  #reportedSinceMs: number | null = null
  /** Undefined before the first read. */
  #heldUntilMs: number | null | undefined
  #isAccepted = false

  /** @param renew begins a new term soon; without it the next start takes an accepted time */
  constructor(ports: TimePorts, renew: () => void = () => {}) {
    this.#ports = ports
    this.#renew = renew
  }

  /**
   * Compares the clocks, and does the work that is due.
   * @returns the time of the next step
   */
  async step(nowMs: number): Promise<number> {
    const { store, time } = this.#ports
    const { step } = time.read()
    const isNews = this.#report(step)
    if (isNews || nowMs - this.#keptAtMs >= KEEP_MS) {
      await store.clock.keep(time.mark())
      // A late read does not belong to the instant at which the database dated it.
      const isLate = time.read().nowMs - nowMs > LATE_MS
      this.#keptAtMs = isLate ? Number.NEGATIVE_INFINITY : nowMs
    }
    const heldUntilMs = await this.#readHold()
    if (heldUntilMs !== null && heldUntilMs <= nowMs) await this.#endHold()
    if (step !== null && nowMs - step.sinceMs >= CLOCK_DOUBT_MS && !this.#isAccepted) await this.#accept()
    return nowMs + LOOK_MS
  }

  /** True while retention removes nothing, and before that is known. */
  isHeld(): boolean {
    return this.#heldUntilMs !== null
  }

  /** Both clocks. */
  async view(): Promise<TimeView> {
    const reading = this.#ports.time.read()
    const { nowMs, machineMs, step } = reading
    const heldUntilMs = await this.#readHold()
    const takenAtMs = step === null ? null : this.#isAccepted ? nowMs : step.sinceMs + CLOCK_DOUBT_MS
    return { nowMs, machineMs, stepMs: step?.byMs ?? 0, takenAtMs, heldUntilMs, note: this.note() }
  }

  /** Note about the clocks for people; null for no note. */
  note(): string | null {
    return stepNote(this.#ports.time.read())
  }

  /**
   * Takes the time of the machine's clock, and ends the pause of retention.
   * @throws AppError `conflict` while both clocks agree and retention does not wait
   */
  async accept(): Promise<TimeView> {
    const { step } = this.#ports.time.read()
    const heldUntilMs = await this.#readHold()
    if (step === null && heldUntilMs === null)
      throw new AppError(
        'conflict',
        'the clock of this machine and the time of the server agree: there is nothing to accept',
      )
    if (heldUntilMs !== null) await this.#endHold()
    if (step !== null) await this.#accept()
    return await this.view()
  }

  async #accept(): Promise<void> {
    await this.#ports.store.clock.accept(true)
    this.#isAccepted = true
    this.#renew()
  }

  async #readHold(): Promise<number | null> {
    if (this.#heldUntilMs === undefined) this.#heldUntilMs = (await this.#ports.store.clock.read())?.heldUntilMs ?? null
    return this.#heldUntilMs
  }

  async #endHold(): Promise<void> {
    await this.#ports.store.clock.endHold()
    this.#heldUntilMs = null
  }

  /**
   * @returns true for a step that differs from the last reported one; that of a clock that stands still grows and is
   *   the same
   */
  #report(step: ClockStep | null): boolean {
    const { emit, time } = this.#ports
    const sinceMs = step?.sinceMs ?? null
    if (this.#reportedSinceMs === sinceMs) return false
    this.#reportedSinceMs = sinceMs
    if (step === null) emit('clock.agrees', {})
    else {
      const { nowMs, machineMs } = time.read()
      emit('clock.stepped', { byMs: step.byMs, nowMs, machineMs })
    }
    return true
  }
}

/**
 * Layer around the store that removes nothing by age while retention waits; limits of size hold all the same. Jobs,
 * batches and their keys need no layer: `clock.hold` delays their expiry in the store.
 * @param keeper reports if retention waits
 */
export function holdingRemovals(keeper: Pick<TimeKeeper, 'isHeld'>): StoreLayer {
  return (call, _, { removesBefore: place }) => {
    if (place === undefined) return call
    // Nothing is older than the beginning of time.
    return (...args) => call(...(keeper.isHeld() ? args.with(place, 0) : args))
  }
}
