/** Failed jobs in groups of similar errors. */
import type { JobId } from '../ids.ts'
import { isJsonObject, readJson } from '../json/json-text.ts'
import { messageLine } from '../output-end.ts'
import { LAST_LINES_WERE } from './job.ts'
import type { JobSummary } from './job-record.ts'

/** Jobs whose errors have one fingerprint. */
export interface ErrorGroup {
  readonly fingerprint: string
  /** The error of the job that ended last, on one line. */
  readonly error: string
  readonly count: number
  /** Ends of the first and the last of them. */
  readonly firstAtMs: number
  readonly lastAtMs: number
  /** The job that ended last. */
  readonly sampleJobId: JobId
}

/** Maximum length of an error on one line. */
const MAX_LINE = 500

/** Groups of jobs, filled one job at a time. */
export class ErrorGroups {
  readonly #groups = new Map<string, ErrorGroup>()

  /** Counts a job with an error; ignores others. */
  add({ id, error, fingerprint, finishedAtMs, createdAtMs }: JobSummary): void {
    if (error === null || fingerprint === null) return
    const atMs = finishedAtMs ?? createdAtMs
    const group = this.#groups.get(fingerprint)
    const isNewest = group === undefined || atMs > group.lastAtMs
    const newest = isNewest ? { error: errorLine(error), sampleJobId: id } : group
    this.#groups.set(fingerprint, {
      fingerprint,
      error: newest.error,
      sampleJobId: newest.sampleJobId,
      count: (group?.count ?? 0) + 1,
      firstAtMs: Math.min(group?.firstAtMs ?? atMs, atMs),
      lastAtMs: Math.max(group?.lastAtMs ?? atMs, atMs),
    })
  }

  /** The groups, the one with the newest error first. */
  newestFirst(): ErrorGroup[] {
    return [...this.#groups.values()].sort(
      (a, b) => b.lastAtMs - a.lastAtMs || (a.fingerprint < b.fingerprint ? -1 : 1),
    )
  }
}

/**
 * An error on one line: of the Python SDK its type and message; of a lost worker the cause of the loss and its
 * last printed message; of any other its first line.
 */
export function errorLine(error: string): string {
  return (pythonLine(error) ?? lossLine(error) ?? firstLine(error)).slice(0, MAX_LINE)
}

function lossLine(error: string): string | null {
  const [why = '', printed] = error.split(LAST_LINES_WERE, 2)
  const message = printed === undefined ? null : messageLine(printed.split('\n'))
  return message === null ? null : `${firstLine(why)}: ${message}`
}

function pythonLine(error: string): string | null {
  if (!error.startsWith('{')) return null
  const reading = readJson(error)
  if (!reading.ok || !isJsonObject(reading.value)) return null
  const { error_type: type, error_message: message } = reading.value
  if (typeof type !== 'string') return null
  // The type has the form <class 'ValueError'>.
  const name = /'([^']+)'/.exec(type)?.[1] ?? type
  const line = typeof message === 'string' ? firstLine(message) : ''
  return line === '' ? name : `${name}: ${line}`
}

function firstLine(text: string): string {
  return text.trimStart().split('\n', 1)[0]!.trimEnd()
}
