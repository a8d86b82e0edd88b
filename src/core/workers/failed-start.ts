/**
 * Reports of RunPod's SDK 2.0 on a worker whose start failed, in place of the result of a job: hooks of the program run before its handler
 * (prestart), and a runtime unpacks it before that (bootstrap). The handler has not seen the job.
 */
import type { WorkerProblem } from './worker-problem.ts'

/** The failure of a start. */
export type FailedStart = Extract<WorkerProblem, { readonly kind: 'prestart_failed' | 'bootstrap_failed' }>

/** The report of a final result on the start of its worker. */
export interface StartReport {
  /** Why the start failed; null where the worker was asked to end before its hooks were over. */
  readonly failure: FailedStart | null
  /** The worker that says so; null where it does not say. */
  readonly workerId: string | null
}

/** Largest text that is read: the SDK cuts each of its parts to 16 KiB. */
const MAX_READ = 524_288
const BEGINS = /^\{ ?"(?:event": ?"prestart_|error_type": ?"BootstrapError")/

const MAX_NAME = 100
const MAX_MESSAGE = 500

/** Reads the error of a final result; null for an error of a handler. */
export function readStartReport(error: string): StartReport | null {
  if (error.length > MAX_READ || !BEGINS.test(error)) return null
  let report: unknown
  try {
    report = JSON.parse(error)
  } catch {
    return null
  }
  if (!isObject(report)) return null
  const workerId = typeof report.worker_id === 'string' ? report.worker_id : null
  if (report.event === 'prestart_cancelled') return { failure: null, workerId }
  const failure = failureOf(report)
  return failure === null ? null : { failure, workerId }
}

/** The report of a line of output, as people see it, on the hooks of its worker. */
export type PrestartOutput =
  | { readonly kind: 'started' }
  | { readonly kind: 'hook'; readonly hook: string }
  | { readonly kind: 'ready' }
  | { readonly kind: 'failed'; readonly failure: FailedStart }

const FAILED_LINE = 'ERROR prestart_failed | '
const HOOK_LINE = 'INFO Prestart | running hook: '

/** Reads one line of output; null for one that says nothing of hooks. */
export function readPrestartOutput(line: string): PrestartOutput | null {
  if (line === 'INFO Prestart | phase started') return { kind: 'started' }
  if (line === 'INFO Prestart | ready') return { kind: 'ready' }
  if (line.startsWith(HOOK_LINE)) return { kind: 'hook', hook: clean(line.slice(HOOK_LINE.length), MAX_NAME) }
  if (!line.startsWith(FAILED_LINE)) return null
  const failure = readStartReport(line.slice(FAILED_LINE.length))?.failure ?? null
  return failure === null ? null : { kind: 'failed', failure }
}

function failureOf(report: Readonly<Record<string, unknown>>): FailedStart | null {
  const text = (name: string, most: number) => (typeof report[name] === 'string' ? clean(report[name], most) : '')
  const message = text('error_message', MAX_MESSAGE)
  if (report.error_type === 'BootstrapError') return { kind: 'bootstrap_failed', message }
  if (report.event !== 'prestart_failed') return null
  return { kind: 'prestart_failed', hook: text('hook', MAX_NAME), error: text('error_type', MAX_NAME), message }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}

/** Printable, in one line, and of bounded length. */
function clean(text: string, characters: number): string {
  return [
    ...text
      .slice(0, 2 * characters)
      .replace(/\p{C}+/gu, ' ')
      .trim(),
  ]
    .slice(0, characters)
    .join('')
}
