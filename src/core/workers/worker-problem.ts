/**
 * Problems of a worker whose process runs, as values made where they are found, and one function that states them
 * to people.
 */
import { OPERATOR_FOLDERS } from './host-folder.ts'

/** The problem in the last health check of a worker that serves requests. */
export type HealthProblem =
  | { readonly kind: 'health_status'; readonly status: number; readonly path: string }
  | { readonly kind: 'not_listening'; readonly port: number; readonly variable: 'PORT' | 'PORT_HEALTH' }
  /** `said` is the operating system's error of the connection. */
  | { readonly kind: 'no_health_response'; readonly path: string; readonly port: number; readonly said: string }

/** A problem of a worker. Times are in seconds. */
export type WorkerProblem =
  | HealthProblem
  /** The worker reported that one of its fitness checks failed; both texts are its own. */
  | { readonly kind: 'check_failed'; readonly check: string; readonly reason: string }
  /**
   * A hook that its program runs before its handler failed; all texts are its own, and `hook` is empty if unknown.
   */
  | { readonly kind: 'prestart_failed'; readonly hook: string; readonly error: string; readonly message: string }
  /** The runtime of an app could not load its program; the text is its own. */
  | { readonly kind: 'bootstrap_failed'; readonly message: string }
  /** Its hooks still ran when its time to start was over. */
  | { readonly kind: 'prestart_hung'; readonly hook: string; readonly limitS: number }
  | { readonly kind: 'loop_stuck'; readonly forS: number }
  | { readonly kind: 'silent'; readonly forS: number }
  | { readonly kind: 'hung_start'; readonly limitS: number }
  /** It was thawed and did not load its memory again; `path` is the value of its RUNYARD_WAKE_URL. */
  | { readonly kind: 'wake_failed'; readonly path: string; readonly said: string }
  /** The driver of its card failed to copy its memory, or to give it back; `said` has the failed step. */
  | { readonly kind: 'not_suspended' | 'not_resumed'; readonly said: string }
  /** `health` is null for a worker without a health check yet. */
  | { readonly kind: 'never_healthy'; readonly limitS: number; readonly health: HealthProblem | null }
  | { readonly kind: 'unhealthy'; readonly forS: number; readonly health: HealthProblem | null }
  /** A task whose function does not run, and for whose result nobody asks. */
  | { readonly kind: 'task_unasked'; readonly forS: number }
  /** It runs a folder that its account may not run. */
  | { readonly kind: 'folder_reserved' }

/** A problem as a clause: "its check memory failed: ...". */
export function problemText(problem: WorkerProblem): string {
  switch (problem.kind) {
    case 'check_failed': {
      const { check, reason } = problem
      return `${check === '' ? 'a check' : `its check ${check}`} failed${reason === '' ? '' : `: ${reason}`}`
    }
    case 'prestart_failed':
      return `${hookText(problem.hook)} failed: ${[problem.error, problem.message].filter(text => text !== '').join(': ')}`
    case 'bootstrap_failed':
      return `its runtime could not load its program: ${problem.message}`
    case 'prestart_hung':
      return `${hookText(problem.hook)} still ran ${problem.limitS} s after its start`
    case 'loop_stuck':
      return `it pinged for ${problem.forS} s without asking for a job, so its loop is stuck`
    case 'silent':
      return `it sent nothing for ${problem.forS} s`
    case 'hung_start':
      return `it did not ask for a job within ${problem.limitS} s of its start`
    case 'wake_failed':
      return `it did not wake at ${problem.path} (its variable RUNYARD_WAKE_URL): ${problem.said}`
    case 'not_suspended':
      return `the driver of its GPU lost it while it was suspended: ${problem.said}`
    case 'not_resumed':
      return `the driver of its GPU lost it while it was resumed: ${problem.said}`
    case 'never_healthy':
      return `it was not healthy within ${problem.limitS} s of its start: ${healthText(problem.health)}`
    case 'unhealthy':
      return `it was not healthy for ${problem.forS} s: ${healthText(problem.health)}`
    case 'task_unasked':
      return `nobody asked for the result of the task for ${problem.forS} s`
    case 'folder_reserved':
      return OPERATOR_FOLDERS
    default:
      return healthText(problem)
  }
}

function hookText(hook: string): string {
  return hook === '' ? 'a prestart hook of it' : `its prestart hook ${hook}`
}

function healthText(problem: HealthProblem | null): string {
  switch (problem?.kind) {
    case undefined:
      return 'it had no health check yet'
    case 'health_status': {
      const { status, path } = problem
      return `it answers ${status} at ${path}${status === 204 ? ', so it initializes' : ''}`
    }
    case 'not_listening':
      return `nothing listens on port ${problem.port} (its variable ${problem.variable})`
    case 'no_health_response':
      return `it does not answer at ${problem.path} on port ${problem.port}: ${problem.said}`
  }
}

const MAX_CHECK = 100
const MAX_REASON = 500

/** The problem of a worker that reports itself unhealthy. Both texts come from the worker and may be anything. */
export function checkFailed(check: string, reason: string): WorkerProblem {
  return { kind: 'check_failed', check: printableLine(check, MAX_CHECK), reason: printableLine(reason, MAX_REASON) }
}

/** A text of a worker as one printable line of at most this many characters. */
export function printableLine(text: string, characters: number): string {
  return [...text.replace(/\p{C}+/gu, ' ').trim()].slice(0, characters).join('')
}
