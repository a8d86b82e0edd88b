/**
 * Suspending CUDA processes: the driver copies their memory on the card to memory of the host and gives the card up; later it puts all back, and
 * the process goes on. Values for what it needs, what lacks, and what came of it. All sizes are in bytes.
 */
import { compareVersions } from './inventory.ts'

/** The oldest driver of which suspending containers with some of the cards is known to work. */
export const OLDEST_SUSPENDING_DRIVER = '575.57'

/** Why processes cannot be suspended on this machine, or on one of its cards. */
export type SuspendLack =
  | { readonly why: 'platform'; readonly platform: string }
  | { readonly why: 'no_card' }
  /** `nvidia-smi` fails. */
  | { readonly why: 'no_reading'; readonly problem: string }
  | { readonly why: 'no_library' }
  | { readonly why: 'old_driver'; readonly driver: string }
  /** The library has not all calls. */
  | { readonly why: 'no_calls'; readonly lacks: readonly string[] }
  /** The helper process does not start, or ends. */
  | { readonly why: 'no_helper'; readonly problem: string }
  | { readonly why: 'mps' }
  | { readonly why: 'mig'; readonly index: number }

/** Why one family of processes cannot be suspended now, although the machine can. */
export type FamilyLack =
  | { readonly why: 'several_cards'; readonly count: number }
  /** Its memory cannot be measured, as in a container that does not see the pids of the host. */
  | { readonly why: 'not_listed'; readonly pid: number }
  | { readonly why: 'another_user'; readonly pid: number }
  /** A stopped or frozen process does not answer the driver: it has to be thawed first. */
  | { readonly why: 'stopped'; readonly pid: number }
  | { readonly why: 'host_memory' | 'group_memory'; readonly neededBytes: number; readonly availableBytes: number }

/** What was found out about suspending on this machine. */
export interface SuspendReadiness {
  /** Null where it is possible. */
  readonly lack: SuspendLack | null
  /** Version of the driver; null where it is not known. */
  readonly driver: string | null
  /** The newest CUDA of the driver, as 13000 for 13.0; null where it is not known. */
  readonly cuda: number | null
}

/** A process with the instant of its start, since a pid names no process for long. */
export interface ProcessStart {
  readonly pid: number
  /** As the operating system writes it; only good for comparing. */
  readonly startTime: string
}

/** A suspended process: what it holds in memory of the host, and needs on its card to go on. */
export interface SuspendedProcess extends ProcessStart {
  readonly bytes: number
}

/** Milliseconds of each step. */
export interface SuspendTimes {
  readonly lockMs: number
  readonly checkpointMs: number
  /** From the last checkpoint until the driver lists no memory of them. */
  readonly emptyMs: number
}

/** What came of a suspend. */
export type SuspendOutcome =
  /** `isEmpty`: whether the driver lists no memory of them on the card any more. */
  | {
      readonly outcome: 'suspended'
      readonly card: string
      readonly processes: readonly SuspendedProcess[]
      readonly isEmpty: boolean
      readonly times: SuspendTimes
    }
  /** None of the processes uses CUDA. */
  | { readonly outcome: 'nothing' }
  /** Nothing was tried. */
  | { readonly outcome: 'refused'; readonly lack: SuspendLack | FamilyLack }
  /** Tried and undone: the processes go on as before. */
  | { readonly outcome: 'undone'; readonly problem: string }
  /** The processes cannot go on and have to end. */
  | { readonly outcome: 'lost'; readonly problem: string }

/** What came of a resume. */
export type ResumeOutcome =
  | { readonly outcome: 'resumed'; readonly restoreMs: number; readonly unlockMs: number }
  /** The card has too little free memory; nothing was tried, since a restore that fails can never be repeated. */
  | { readonly outcome: 'no_room'; readonly neededBytes: number; readonly freeBytes: number }
  /** A process is stopped or frozen, and does not answer the driver; nothing was tried. */
  | { readonly outcome: 'stopped'; readonly pid: number }
  /** It could not be found out whether there is room; nothing was tried. */
  | { readonly outcome: 'unknown_room'; readonly problem: string }
  /** The processes cannot go on and have to end. */
  | { readonly outcome: 'lost'; readonly problem: string }

/** Whether a driver is too old. @param version as `580.159.04` */
export function isOldDriver(version: string): boolean {
  return compareVersions(version, OLDEST_SUSPENDING_DRIVER) < 0
}

/** A lack in words, as a clause without a full stop. */
export function describeLack(lack: SuspendLack | FamilyLack): string {
  switch (lack.why) {
    case 'platform':
      return `the driver suspends processes on Linux with x86-64 only, and this is ${lack.platform}`
    case 'no_card':
      return 'there is no NVIDIA GPU'
    case 'no_reading':
      return `the GPUs cannot be read: ${lack.problem}`
    case 'no_library':
      return "the driver's library libcuda.so.1 was not found"
    case 'old_driver':
      return `driver ${lack.driver} is too old; ${OLDEST_SUSPENDING_DRIVER} is the first that can`
    case 'no_calls':
      return `the driver lacks ${lack.lacks.join(', ')}`
    case 'no_helper':
      return `the process that calls the driver failed: ${lack.problem}`
    case 'mps':
      return 'the Multi-Process Service (MPS) runs, with which the driver cannot suspend processes'
    case 'mig':
      return `GPU ${lack.index} is parted (MIG), and the driver cannot suspend processes on parts`
    case 'several_cards':
      return `it uses ${lack.count} GPUs, and only processes on one can be suspended`
    case 'not_listed':
      return `nvidia-smi does not list the memory of process ${lack.pid}`
    case 'another_user':
      return `process ${lack.pid} is of another user, and this server does not run as root`
    case 'stopped':
      return `process ${lack.pid} is stopped and does not answer the driver`
    case 'host_memory':
      return `its memory on the GPU needs ${inMib(lack.neededBytes)} of memory, and ${inMib(lack.availableBytes)} are available`
    case 'group_memory':
      return `its memory on the GPU needs ${inMib(lack.neededBytes)} of memory, and its limit leaves ${inMib(lack.availableBytes)}`
  }
}

function inMib(bytes: number): string {
  return `${Math.round(bytes / 2 ** 20)} MiB`
}
