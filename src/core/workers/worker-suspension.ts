/**
 * The suspension of a worker by the driver of its card (ADR 107): the memory of its CUDA processes is copied to memory
 * of the host, and its card is free for everybody until it is resumed. What is stored of it, and what that means.
 */
import { RESTORE_BYTES, type SuspendedProcess } from '../hardware/gpu-suspension.ts'

/** The stored facts of a suspension; noted before the first process is locked, removed when all run again. */
export interface WorkerSuspension {
  /** UUID of its card. */
  readonly card: string
  /** Memory that its processes had on the card and need there again, in bytes. */
  readonly bytes: number
  /** Its CUDA processes, with the memory of each. */
  readonly processes: readonly SuspendedProcess[]
}

/**
 * `suspending`: begun, and its memory may be on the card or not. `suspended`: its card is free. `resuming`: it has its
 * room on the card again, and may get no job and no request yet.
 */
export type SuspensionPhase = 'suspending' | 'suspended' | 'resuming'

/** A suspension with its phase and the beginning of that, in epoch milliseconds. */
export interface SuspensionState extends WorkerSuspension {
  readonly phase: SuspensionPhase
  readonly sinceMs: number
}

/** The facts of a worker of which its suspension is read. */
export interface SuspensionFacts {
  readonly suspension: WorkerSuspension | null
  readonly state: string
  readonly frozenAtMs: number | null
  readonly asleepAtMs: number | null
  readonly thawedAtMs: number | null
}

/** The suspension of a worker; null for one that is not suspended. One that ends keeps the phase that it had. */
export function suspensionOf(worker: SuspensionFacts): SuspensionState | null {
  const { suspension, state, frozenAtMs, asleepAtMs, thawedAtMs } = worker
  if (suspension === null || state === 'EXITED') return null
  if (asleepAtMs !== null) return { ...suspension, phase: 'suspended', sinceMs: asleepAtMs }
  if (thawedAtMs !== null) return { ...suspension, phase: 'resuming', sinceMs: thawedAtMs }
  return { ...suspension, phase: 'suspending', sinceMs: frozenAtMs ?? 0 }
}

/** True if the card of a worker is free, because its memory was copied from there. */
export function hasLeftCard({ suspension, asleepAtMs }: Pick<SuspensionFacts, 'suspension' | 'asleepAtMs'>): boolean {
  return suspension !== null && asleepAtMs !== null
}

/** Memory of its card that must be free before a suspended worker is resumed, in MiB. */
export function resumeMb({ processes }: Pick<WorkerSuspension, 'processes'>): number {
  return Math.ceil(processes.reduce((sum, { bytes }) => sum + bytes + RESTORE_BYTES, 0) / 2 ** 20)
}

/** Number of failures after which workers of a release are no longer suspended. */
export const MAX_SUSPEND_FAILURES = 3

/** The failures to suspend workers of a release. */
export interface SuspendFailures {
  /** The last one, as a clause for people. */
  readonly reason: string
  /** Their number in a row; at least {@link MAX_SUSPEND_FAILURES} after one that would happen each time. */
  readonly count: number
}

/** True if workers of a release are no longer suspended, until there is a new release. */
export function isSuspendRefused(failures: SuspendFailures | null): failures is SuspendFailures {
  return failures !== null && failures.count >= MAX_SUSPEND_FAILURES
}
