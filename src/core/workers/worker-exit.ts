/** Ends of workers: values, made where the end is seen, and the function that states them to people. */
import type { WorkerId } from '../ids.ts'
import { type Reclaim, reclaimText } from './platform-report.ts'
import { type StartFailure, startFailureText } from './start-failure.ts'

/** The cause of a worker's end, as far as it is known. */
export type ExitCause =
  /** Only the code or the signal is known. */
  | { readonly kind: 'ended' }
  /** Its process or container could not be started at all. */
  | { readonly kind: 'not_started'; readonly failure: StartFailure }
  /** Its container was started, and the program in it was not. */
  | { readonly kind: 'program_not_started'; readonly failure: StartFailure }
  /** `limitMb` is null if the memory of the whole machine ran out. */
  | { readonly kind: 'out_of_memory'; readonly limitMb: number | null }
  /**
   * It wrote more than its disk holds: that of a container, of a process in a cage, or the cache of such a
   * process's endpoint.
   */
  | { readonly kind: 'disk_full'; readonly limitGb: number; readonly of: 'container' | 'cage' | 'cache' }
  | { readonly kind: 'too_many_files'; readonly limit: number }
  /** It ended by itself while the disk of the data directory was full, so that it could neither print nor write. */
  | { readonly kind: 'machine_disk_full' }
  | { readonly kind: 'engine_stopped' }
  | { readonly kind: 'container_removed' }
  | { readonly kind: 'server_stopped' }
  /** Its platform removed it. Its jobs return to the queue, and the attempt does not count. */
  | { readonly kind: 'reclaimed'; readonly why: Reclaim }
  /**
   * Nobody saw it end: the server was stopped or was restarted, or the driver or the engine does not know the
   * worker.
   */
  | { readonly kind: 'unseen'; readonly when: 'server_away' | 'server_restarted' | 'unknown' | 'unknown_to_engine' }

/** A port that a worker needs and on which another worker or program listens. */
export interface PortConflict {
  readonly port: number
  /** The variable of the worker that names it; null if its output does. */
  readonly variable: string | null
  readonly with: 'worker' | 'program'
  /** The other worker, if it is of the same endpoint. */
  readonly worker?: WorkerId
}

/** The end of a process or container, as a driver sees it. */
export interface ObservedExit {
  readonly code: number | null
  readonly signal: string | null
  readonly cause: ExitCause
  /** A possible reason; omitted without one. */
  readonly suspicion?: PortConflict
}

/** The stored end of a worker. */
export interface WorkerExit extends ObservedExit {
  /** The end of its output. */
  readonly lastLines: readonly string[]
}

/** An end as a sentence without its subject: "exited with code 1", "was killed by SIGKILL". */
export function observedExitText({ code, signal, cause }: Pick<ObservedExit, 'code' | 'signal' | 'cause'>): string {
  const plain = signal !== null ? `was killed by ${signal}` : code === null ? 'ended' : `exited with code ${code}`
  switch (cause.kind) {
    case 'ended':
      return plain
    case 'not_started':
      return startFailureText(cause.failure)
    case 'program_not_started':
      return `${plain} because ${startFailureText(cause.failure)}`
    case 'out_of_memory': {
      const { limitMb } = cause
      const limit = limitMb === null ? 'more memory than the machine has' : `more than its ${limitMb} MB of memory`
      return signal === 'SIGKILL' ? `was killed because it used ${limit}` : `${plain} after it had used ${limit}`
    }
    case 'disk_full': {
      if (cause.of === 'cache')
        return `was killed because the cache of its endpoint held more than ${cause.limitGb} GB (--worker-cache)`
      const disk = cause.of === 'container' ? 'container disk' : 'disk (--worker-disk)'
      return `was killed because it wrote more than the ${cause.limitGb} GB of its ${disk}`
    }
    case 'too_many_files':
      return `was killed because it made more than ${cause.limit} files`
    case 'machine_disk_full':
      return `${plain} while the disk of this machine was full`
    case 'engine_stopped':
      return `${plain} when the container engine was stopped or restarted`
    case 'container_removed':
      return 'was removed from the container engine by another program'
    case 'server_stopped':
      return 'was ended because the server stopped'
    case 'reclaimed':
      return reclaimText(cause.why)
    case 'unseen':
      return UNSEEN[cause.when]
  }
}

const UNSEEN: Readonly<Record<Extract<ExitCause, { readonly kind: 'unseen' }>['when'], string>> = {
  server_away: 'ended while the server was away',
  server_restarted: 'ended while or after the server was restarted; its exit code is unknown',
  unknown: 'was not found',
  unknown_to_engine: 'is unknown to the container engine',
}

/** A conflict as a clause: "port 8001, which its variable VLLM_PORT names, is in use by another worker". */
export function portConflictText({ port, variable, with: other, worker }: PortConflict): string {
  const named = variable === null ? 'on which it tried to listen' : `which its variable ${variable} names`
  const by = worker === undefined ? `another ${other}` : `worker ${worker} of the same endpoint`
  return `port ${port}, ${named}, is in use by ${by}`
}
