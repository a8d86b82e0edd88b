/**
 * Reports of RunPod's SDK 2.0 about a worker whose start failed, in place of the result of a job: hooks of the
 * program run before its handler (prestart), and a runtime unpacks it before that (bootstrap). The handler did not
 * see the job.
 */
import { printableLine, type WorkerProblem } from './worker-problem.ts'

/** The failure of a start. */
export type FailedStart = Extract<WorkerProblem, { readonly kind: 'prestart_failed' | 'bootstrap_failed' }>

/** Report of a final result about the start of its worker. */
export interface StartReport {
  /** Reason for the failure; null if the worker was asked to end before its hooks finished. */
  readonly failure: FailedStart | null
  /** Id of the reporting worker; null if the report has none. */
  readonly workerId: string | null
}

/** Largest text that is read: the SDK cuts each of its parts to 16 KiB. */
const MAX_READ = 524_288
const BEGINS = /^\{ ?"(?:event": ?"prestart_|error_type": ?"BootstrapError")/

const MAX_NAME = 100
const MAX_MESSAGE = 500
/** Members that are read, and the limit of members of a report. */
const READ = new Set(['event', 'error_type', 'error_message', 'hook', 'worker_id'])
const MAX_MEMBERS = 20
/** Longest JSON form of one character of a text: two escapes of six characters. */
const MAX_ESCAPED = 12

/** Reads the error of a final result; null for an error of a handler. */
export function readStartReport(error: string): StartReport | null {
  if (error.length > MAX_READ || !BEGINS.test(error)) return null
  const report = readMembers(error)
  if (report === null) return null
  const workerId = report.get('worker_id') ?? null
  if (report.get('event') === 'prestart_cancelled') return { failure: null, workerId }
  const failure = readFailure(report)
  return failure === null ? null : { failure, workerId }
}

/** Report of a line of output, as people see it, about the hooks of its worker. */
export type PrestartOutput =
  | { readonly kind: 'started' }
  | { readonly kind: 'hook'; readonly hook: string }
  | { readonly kind: 'ready' }
  | { readonly kind: 'failed'; readonly failure: FailedStart }

const FAILED_LINE = 'ERROR prestart_failed | '
const HOOK_LINE = 'INFO Prestart | running hook: '

/** Reads one line of output; null for a line without a report about hooks. */
export function readPrestartOutput(line: string): PrestartOutput | null {
  if (line === 'INFO Prestart | phase started') return { kind: 'started' }
  if (line === 'INFO Prestart | ready') return { kind: 'ready' }
  if (line.startsWith(HOOK_LINE)) return { kind: 'hook', hook: printableLine(line.slice(HOOK_LINE.length), MAX_NAME) }
  if (!line.startsWith(FAILED_LINE)) return null
  const failure = readStartReport(line.slice(FAILED_LINE.length))?.failure ?? null
  return failure === null ? null : { kind: 'failed', failure }
}

function readFailure(report: ReadonlyMap<string, string>): FailedStart | null {
  const text = (name: string, most: number) => printableLine(report.get(name) ?? '', most)
  const message = text('error_message', MAX_MESSAGE)
  if (report.get('error_type') === 'BootstrapError') return { kind: 'bootstrap_failed', message }
  if (report.get('event') !== 'prestart_failed') return null
  return { kind: 'prestart_failed', hook: text('hook', MAX_NAME), error: text('error_type', MAX_NAME), message }
}

/**
 * The members of a JSON object of texts that are in {@link READ}, each truncated to its used part; null for any
 * other text. A traceback and the last output make up most of a report, and are skipped.
 */
function readMembers(json: string): ReadonlyMap<string, string> | null {
  const members = new Map<string, string>()
  for (let at = 1, count = 0; count < MAX_MEMBERS; count += 1) {
    const nameEnd = stringEnd(json, spaceBehind(json, at))
    const value = nameEnd === -1 ? -1 : valueBehind(json, nameEnd)
    if (value === -1) return null
    const name = json.slice(spaceBehind(json, at) + 1, nameEnd - 1)
    let end = stringEnd(json, value)
    if (end === -1) end = json.startsWith('null', value) ? value + 4 : -1
    else if (READ.has(name)) members.set(name, unescapedBeginning(json.slice(value + 1, end - 1)))
    if (json[end] === '}' && end === json.length - 1) return members
    if (json[end] !== ',') return null
    at = end + 1
  }
  return null
}

/** The position after an optional space. */
function spaceBehind(json: string, at: number): number {
  return json[at] === ' ' ? at + 1 : at
}

/** The position of the value of the name that ends here; -1 without one. */
function valueBehind(json: string, at: number): number {
  return json[at] === ':' ? spaceBehind(json, at + 1) : -1
}

/** The position after the string that begins here; -1 without one. */
function stringEnd(json: string, at: number): number {
  if (json[at] !== '"') return -1
  for (let quote = json.indexOf('"', at + 1); quote !== -1; quote = json.indexOf('"', quote + 1)) {
    let escapes = 0
    while (json[quote - 1 - escapes] === '\\') escapes += 1
    if (escapes % 2 === 0) return quote + 1
  }
  return -1
}

/** The beginning of an escaped string. */
function unescapedBeginning(escaped: string): string {
  const most = Math.min(escaped.length, 2 * MAX_MESSAGE * MAX_ESCAPED)
  // The cut may be in the middle of an escape.
  for (let length = most; length >= Math.max(0, most - MAX_ESCAPED); length -= 1) {
    try {
      return JSON.parse(`"${escaped.slice(0, length)}"`) as string
    } catch {}
  }
  return ''
}
