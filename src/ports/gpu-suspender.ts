import type {
  ProcessStart,
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

/** The processes of a worker. */
export interface ProcessFamily {
  /** All living processes; read several times, since a worker may start another one in the meantime. */
  members(): Promise<readonly ProcessStart[]>
}

/** Takes the memory of CUDA processes from their card and gives it back. Never rejects: a failure is a value. */
export interface GpuSuspender {
  /** Tests if this machine can suspend processes, with the reason if not. Takes some tenths of a second. */
  readiness(): Promise<SuspendReadiness>
  /** The state of a process. Takes seconds where it is stopped. */
  state(pid: number): Promise<SuspendState>
  /**
   * Suspends all CUDA processes of a family, which must not be stopped or frozen: a stopped process does not answer
   * the driver. A running call of CUDA waits until {@link resume}; a call that begins in the meantime may end its
   * process, so the caller freezes the family afterwards. Takes a second for each GB or two.
   * @param lockMs time for the running work on the card, in milliseconds
   */
  suspend(family: ProcessFamily, lockMs: number): Promise<SuspendOutcome>
  /**
   * Gives processes their memory on the card back and resumes them. Until then a call of CUDA may end its process.
   * @param thaw called right before, when everything is ready and the card has room; it continues stopped and frozen
   * processes, which would not answer the driver
   */
  resume(card: string, processes: readonly SuspendedProcess[], thaw?: () => Promise<void>): Promise<ResumeOutcome>
}
