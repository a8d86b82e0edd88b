import { AppError, toAppError } from '../../core/errors.ts'
import { CLOCK_DOUBT_MS, clockDifference, resumedTime } from '../../core/server-time.ts'
import type { Emit } from '../../events.ts'
import type { ClockReading, ClockStep, ServerTime } from '../../ports/clock.ts'
import type { StoreLayer } from '../../ports/store/operations.ts'
import type { Store } from '../../ports/store/store.ts'

/** What the care of the server's time needs. */
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
  /** By how much the machine's clock is ahead, below zero where it is behind; 0 while both agree. */
  readonly stepMs: number
  /** When the server takes the time of the machine's clock by itself; null while both agree. */
  readonly takenAtMs: number | null
  /** Until when retention removes nothing, because much time had passed before the start; null unless it waits. */
  readonly heldUntilMs: number | null
  /** The difference in a sentence; null while there is nothing to say. */
  readonly note: string | null
}

/**
 * Goes on with the time of the server before: to be awaited before anything else is done with the store. Takes the
 * time of the machine's clock where that was accepted. Where more than a day has passed, retention waits for another
 * one.
 */
export async function resumeTime({ store, time, emit }: TimePorts): Promise<void> {
  const kept = await store.clock.read()
  if (kept !== null) {
    const { boot, sinceBootMs } = time.mark()
    const { machineMs } = time.read()
    const nowMs = Math.round(resumedTime(kept, { boot, sinceBootMs, machineMs }))
    time.resume(nowMs, kept.stepSinceMs)
    const { step } = time.read()
    if (kept.isAccepted && step !== null) {
      if (await adopt({ store, time, emit }, step)) return
      time.resume(nowMs, kept.stepSinceMs)
    }
    if (kept.isAccepted && step === null) await store.clock.accept(false)
    const gapMs = nowMs - kept.nowMs
    if (gapMs > CLOCK_DOUBT_MS) {
      const untilMs = nowMs + CLOCK_DOUBT_MS
      await store.clock.hold(untilMs)
      emit('clock.held', { gapMs, untilMs })
    }
  }
  await store.clock.keep(time.mark())
}

/** @returns false when the store could not do it: then a server had better go on with the old time than not at all */
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
export function stepNote({ step }: ClockReading): string | null {
  if (step === null) return null
  return (
    `the clock of this machine is ${clockDifference(step.byMs)} the time of the server, which goes on as before: no limit has moved and nothing was removed; ` +
    'set the clock right, or take its time with runyard clock accept'
  )
}

/** Time between two writes of the time, of which as much may be lost to an end without order. */
const KEEP_MS = 60_000
/** How long a write of the time may take. */
const LATE_MS = 500
/** Time between two comparisons of the clocks. */
const LOOK_MS = 2_000

/**
 * Looks after the server's time: reports steps of the machine's clock, keeps the time in the store, and has the
 * machine's clock taken when that is accepted.
 */
export class TimeKeeper {
  readonly #ports: TimePorts
  /** Begins a new term, which resumes with {@link resumeTime}. */
  readonly #renew: () => void
  #keptAtMs = Number.NEGATIVE_INFINITY
  /** Since when there is the step that was reported last; null for none. */
  #toldMs: number | null = null
  /** Undefined until it has been read. */
  #heldUntilMs: number | null | undefined
  #isAccepted = false

  /** @param renew begins a new term, soon; where there is none the next start takes an accepted time */
  constructor(ports: TimePorts, renew: () => void = () => {}) {
    this.#ports = ports
    this.#renew = renew
  }

  /**
   * Compares, and does what is due.
   * @returns when to step again
   */
  async step(nowMs: number): Promise<number> {
    const { store, time } = this.#ports
    const { step } = time.read()
    const isNews = this.#tell(step)
    if (isNews || nowMs - this.#keptAtMs >= KEEP_MS) {
      await store.clock.keep(time.mark())
      // A time that was long on its way is not that of the instant at which the database has dated it.
      const isLate = time.read().nowMs - nowMs > LATE_MS
      this.#keptAtMs = isLate ? Number.NEGATIVE_INFINITY : nowMs
    }
    const heldUntilMs = await this.#readHold()
    if (heldUntilMs !== null && heldUntilMs <= nowMs) await this.#endHold()
    if (step !== null && nowMs - step.sinceMs >= CLOCK_DOUBT_MS && !this.#isAccepted) await this.#accept()
    return nowMs + LOOK_MS
  }

  /** Whether retention removes nothing now; true until it is known. */
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

  /** What people should know of the clocks; null for nothing. */
  note(): string | null {
    return stepNote(this.#ports.time.read())
  }

  /**
   * Has the time of the machine's clock taken, and ends the wait of retention.
   * @throws AppError `conflict` when there is nothing to accept
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

  /** @returns whether the step is another one than before; one of a clock that stands still grows and is the same */
  #tell(step: ClockStep | null): boolean {
    const { emit, time } = this.#ports
    const sinceMs = step?.sinceMs ?? null
    if (this.#toldMs === sinceMs) return false
    this.#toldMs = sinceMs
    if (step === null) emit('clock.agrees', {})
    else {
      const { nowMs, machineMs } = time.read()
      emit('clock.stepped', { byMs: step.byMs, nowMs, machineMs })
    }
    return true
  }
}

/**
 * Layer around the store from which nothing is removed for its age while retention waits; limits of size hold all the
 * same. Jobs, batches and their keys need no layer: `clock.hold` puts off their expiry in the store.
 * @param keeper reports whether retention waits
 */
export function holdingRemovals(keeper: Pick<TimeKeeper, 'isHeld'>): StoreLayer {
  return (call, _, { removesBefore: place }) => {
    if (place === undefined) return call
    // Nothing is older than the beginning of time.
    return (...args) => call(...(keeper.isHeld() ? args.with(place, 0) : args))
  }
}
