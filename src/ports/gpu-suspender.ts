import type {
  FamilyLack,
  ProcessStart,
  RecoverOutcome,
  ResumeOutcome,
  SuspendedProcess,
  SuspendOutcome,
  SuspendReadiness,
} from '../core/hardware/gpu-suspension.ts'

/**
 * State of a process at the driver: `none` for a process without CUDA or that ended, `unknown` when the driver does
 * not answer in time.
 */
export type SuspendState = 'running' | 'locked' | 'checkpointed' | 'failed' | 'changing' | 'none' | 'unknown'

/** The processes of a worker, from its driver. */
export interface ProcessFamily {
  /** All living processes; read several times, since a worker may start another one in the meantime. */
  members(): Promise<readonly ProcessStart[]>
  /**
   * Holds all threads of all processes until {@link release}, through freezes and thaws of the worker. Until then none
   * of them can begin a call of CUDA. After a failure all threads run.
   * @param exceptThreads ids of the threads that run on, which are those of the driver
   * @returns null when they are held; else the reason why they are not, as a clause
   */
  hold(exceptThreads: readonly number[]): Promise<string | null>
  /**
   * Lets all held threads run again, as far as the worker is not frozen. Does nothing where none are held.
   * @throws an error of the system; some of them may still be held, and another call tries again
   */
  release(): Promise<void>
}

/** The part of a caller in a suspend. */
export interface SuspendSteps {
  /**
   * Called with the card and all processes, and their memory there, before the first lock; again where more have
   * appeared after that. A reason not to suspend them is the outcome: nothing was tried, or what was done is undone.
   */
  readonly begin?: (card: string, processes: readonly SuspendedProcess[]) => Promise<FamilyLack | null>
  /**
   * Called when all is locked and held, right before the first copy, which cannot be broken off. False undoes what was
   * done.
   */
  readonly proceed?: () => Promise<boolean>
  /** Called as soon as all is copied; it freezes the family. When it rejects, the suspend is undone. */
  readonly freeze?: () => Promise<void>
}

/**
 * Takes the memory of CUDA processes from their card and gives it back. Never rejects: a failure is a value, also of
 * the family and of the functions that it is given.
 */
export interface GpuSuspender {
  /** Tests if this machine can suspend processes, with the reason if not. Takes some tenths of a second. */
  readiness(): Promise<SuspendReadiness>
  /** The state of a process. Takes seconds where it is stopped. */
  state(pid: number): Promise<SuspendState>
  /**
   * Suspends all CUDA processes of a family, which must not be stopped or frozen: a stopped process does not answer
   * the driver. A call of CUDA that runs, or begins before the family is held, waits until {@link resume}. Takes a
   * second for each GB or two.
   *
   * The family stays held until it is resumed. Where it cannot be held, a call that begins after the copy may end its
   * process until {@link SuspendSteps.freeze} is done.
   * @param lockMs time for the running work on the card, in milliseconds
   */
  suspend(family: ProcessFamily, lockMs: number, steps?: SuspendSteps): Promise<SuspendOutcome>
  /**
   * Gives the processes of a family their memory on the card back, resumes them and releases the family. Where the
   * family could not be held, a call of CUDA may end its process between `thaw` and the end.
   * @param card the card and the processes, as {@link suspend} returned them
   * @param thaw called right before, when everything is ready and the card has room; it continues stopped and frozen
   * processes, which would not answer the driver
   */
  resume(
    card: string,
    processes: readonly SuspendedProcess[],
    family: ProcessFamily,
    thaw?: () => Promise<void>,
  ): Promise<ResumeOutcome>
  /**
   * Finishes what an earlier run of the server began with a family: a suspend or a resume that it did not end. Does
   * nothing to processes that run or are suspended as a whole.
   * @param card the card of the worker, for those that have to get their memory back
   * @param thaw continues stopped and frozen processes, which would not answer the driver
   */
  recover(card: string, family: ProcessFamily, thaw?: () => Promise<void>): Promise<RecoverOutcome>
}
