import type {
  ProcessStart,
  ResumeOutcome,
  SuspendedProcess,
  SuspendOutcome,
  SuspendReadiness,
} from '../core/hardware/gpu-suspension.ts'

/** How a process stands with the driver; `none` for one without CUDA or that has ended, `unknown` where the driver does not answer in time. */
export type SuspendState = 'running' | 'locked' | 'checkpointed' | 'failed' | 'changing' | 'none' | 'unknown'

/** The processes of a worker. */
export interface ProcessFamily {
  /** All that live now; asked several times, since a worker may start another one meanwhile. */
  members(): Promise<readonly ProcessStart[]>
}

/** Takes the memory of CUDA processes from their card and gives it back. Never rejects: what fails is a value. */
export interface GpuSuspender {
  /** Whether this machine can suspend processes, and why not. Takes some tenths of a second. */
  readiness(): Promise<SuspendReadiness>
  /** The state of a process. Takes seconds where it is stopped. */
  state(pid: number): Promise<SuspendState>
  /**
   * Suspends all CUDA processes of a family, which must not be stopped or frozen: a stopped process does not answer the driver. A call of CUDA that has
   * begun waits until {@link resume}; one that begins meanwhile may end its process, so the caller freezes the family afterwards. Takes a second for
   * each GB or two.
   * @param lockMs time for the work on the card that has begun
   */
  suspend(family: ProcessFamily, lockMs: number): Promise<SuspendOutcome>
  /**
   * Gives processes their memory on the card back, and lets them go on. Until then a call of CUDA that one of them begins may end it.
   * @param thaw called right before, once all is ready and there is room; lets go on what is stopped or frozen, which would not answer the driver
   */
  resume(card: string, processes: readonly SuspendedProcess[], thaw?: () => Promise<void>): Promise<ResumeOutcome>
}
