/**
 * Suspending CUDA processes: the driver copies their memory on the card to memory of the host and frees the card;
 * later it copies all back, and the process continues. Values for the requirements, the obstacles and the outcomes.
 * All sizes are in bytes.
 */
import { compareVersions } from './inventory.ts'

/** The oldest driver that is known to suspend containers with a part of the cards. */
export const OLDEST_SUSPENDING_DRIVER = '575.57'

/** Memory that a restore of a process takes beyond that listed by the driver. */
export const RESTORE_BYTES = 256 * 2 ** 20

/** Reason why processes cannot be suspended on this machine, or on one of its cards. */
export type SuspendLack =
  | { readonly why: 'platform'; readonly platform: string }
  | { readonly why: 'no_card' }
  /** `nvidia-smi` fails. */
  | { readonly why: 'no_reading'; readonly problem: string }
  | { readonly why: 'no_library' }
  | { readonly why: 'old_driver'; readonly driver: string }
  /** The library lacks some of the calls. */
  | { readonly why: 'no_calls'; readonly lacks: readonly string[] }
  /** The helper process does not start, or exits. */
  | { readonly why: 'no_helper'; readonly problem: string }
  | { readonly why: 'mps' }
  | { readonly why: 'mig'; readonly index: number }

/** Reason why one family of processes cannot be suspended now, although the machine can suspend. */
export type FamilyLack =
  | { readonly why: 'several_cards'; readonly count: number }
  /** Its memory cannot be measured, as in a container that does not see the pids of the host. */
  | { readonly why: 'not_listed'; readonly pid: number }
  | { readonly why: 'another_user'; readonly pid: number }
  /** A stopped or frozen process does not answer the driver: thaw it first. */
  | { readonly why: 'stopped'; readonly pid: number }
  /** It got work in the meantime, or has to end. */
  | { readonly why: 'wanted' }
  /** The caller could not note the suspend. */
  | { readonly why: 'not_begun'; readonly problem: string }
  | { readonly why: MemoryLack; readonly neededBytes: number; readonly availableBytes: number }

/** Whose memory is too short for a copy: of the machine, of the control group, or of all suspended workers. */
type MemoryLack = 'host_memory' | 'group_memory' | 'suspended_memory'

/** Result of the check of this machine for suspending. */
export interface SuspendReadiness {
  /** Null if suspending is possible. */
  readonly lack: SuspendLack | null
  /** Version of the driver; null if unknown. */
  readonly driver: string | null
  /** The newest CUDA version of the driver, as 13000 for 13.0; null if unknown. */
  readonly cuda: number | null
}

/** A process with the time of its start, since pids are reused. */
export interface ProcessStart {
  readonly pid: number
  /** As the operating system prints it; only for comparing. */
  readonly startTime: string
}

/** A suspended process: its memory on the host, and the memory that it needs on its card to continue. */
export interface SuspendedProcess extends ProcessStart {
  readonly bytes: number
}

/** Duration of each step, in milliseconds. */
export interface SuspendTimes {
  readonly lockMs: number
  /** For holding the threads of the processes, or the try. */
  readonly holdMs: number
  readonly checkpointMs: number
  /** From the last checkpoint until the driver lists no memory of the processes. */
  readonly emptyMs: number
}

/** Outcome of a suspend. */
export type SuspendOutcome =
  | {
      readonly outcome: 'suspended'
      readonly card: string
      readonly processes: readonly SuspendedProcess[]
      /** True if the driver no longer lists memory of the processes on the card. */
      readonly isEmpty: boolean
      /**
       * The reason why the threads of the processes are not held, as a clause: one that begins a call of CUDA before
       * it is frozen may end its process. Null when they are held.
       */
      readonly holdProblem: string | null
      readonly times: SuspendTimes
    }
  /** No process uses CUDA. */
  | { readonly outcome: 'nothing' }
  /** Nothing was tried. */
  | { readonly outcome: 'refused'; readonly lack: SuspendLack | FamilyLack }
  /** Tried and undone: the processes continue as before. */
  | { readonly outcome: 'undone'; readonly problem: string }
  /** The processes cannot continue and must end. */
  | { readonly outcome: 'lost'; readonly problem: string }

/** Outcome of a resume. */
export type ResumeOutcome =
  | { readonly outcome: 'resumed'; readonly restoreMs: number; readonly unlockMs: number }
  /** The card has too little free memory; nothing was tried, since a restore that fails can never be repeated. */
  | { readonly outcome: 'no_room'; readonly neededBytes: number; readonly freeBytes: number }
  /** A process is stopped or frozen, and does not answer the driver; nothing was tried. */
  | { readonly outcome: 'stopped'; readonly pid: number }
  /** The processes could not be thawed; nothing was tried. Some of them may run, and should be frozen again. */
  | { readonly outcome: 'not_thawed'; readonly problem: string }
  /** The free memory could not be measured; nothing was tried. */
  | { readonly outcome: 'unknown_room'; readonly problem: string }
  /** The processes cannot continue and must end. */
  | { readonly outcome: 'lost'; readonly problem: string }

/** Outcome of the recovery of processes that an earlier run of the server left in the middle of something. */
export type RecoverOutcome =
  /** All of them run, also when none uses CUDA; they are not held. */
  | { readonly outcome: 'running' }
  /**
   * All that use CUDA are suspended, and held where that is possible. Their sizes are upper bounds, by their memory on
   * the host.
   */
  | { readonly outcome: 'suspended'; readonly processes: readonly SuspendedProcess[] }
  /** The driver, or the system, did not say enough; another try may. */
  | { readonly outcome: 'unknown'; readonly problem: string }
  /** The processes cannot continue and must end. */
  | { readonly outcome: 'lost'; readonly problem: string }

/** True if a driver is too old. @param version as `580.159.04` */
export function isOldDriver(version: string): boolean {
  return compareVersions(version, OLDEST_SUSPENDING_DRIVER) < 0
}

/** True for a lack of the machine, which all its workers have. */
export function isMachineLack(lack: SuspendLack | FamilyLack): lack is SuspendLack {
  return MACHINE_LACKS.some(why => why === lack.why)
}

const MACHINE_LACKS: readonly SuspendLack['why'][] = [
  'platform',
  'no_card',
  'no_reading',
  'no_library',
  'old_driver',
  'no_calls',
  'no_helper',
  'mps',
  'mig',
]

/** True for a lack that all processes of the same program have, each time. */
export function isLastingLack({ why }: SuspendLack | FamilyLack): boolean {
  return why === 'several_cards' || why === 'not_listed' || why === 'another_user'
}

/** A lack as a clause without a full stop. */
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
      return `GPU ${lack.index} is partitioned (MIG), and the driver cannot suspend processes on partitions`
    case 'several_cards':
      return `it uses ${lack.count} GPUs, and only processes on one can be suspended`
    case 'not_listed':
      return `nvidia-smi does not list the memory of process ${lack.pid}`
    case 'another_user':
      return `process ${lack.pid} is of another user, and this server does not run as root`
    case 'stopped':
      return `process ${lack.pid} is stopped and does not answer the driver`
    case 'wanted':
      return 'it is needed'
    case 'not_begun':
      return `the suspend could not be noted: ${lack.problem}`
    case 'host_memory':
      return `its memory on the GPU needs ${inMib(lack.neededBytes)} of memory, and ${inMib(lack.availableBytes)} are available`
    case 'suspended_memory':
      return `its memory on the GPU needs ${inMib(lack.neededBytes)} of memory, and ${inMib(lack.availableBytes)} are left for suspended workers (--suspended-memory)`
    case 'group_memory':
      return `its memory on the GPU needs ${inMib(lack.neededBytes)} of memory, and its limit leaves ${inMib(lack.availableBytes)}`
  }
}

function inMib(bytes: number): string {
  return `${Math.round(bytes / 2 ** 20)} MiB`
}
