import { isFinal, type Job } from './job.ts'
import { noteKind } from './job-note.ts'
import type { JobRecord, JobSummary } from './job-record.ts'
import type { LargeText } from './large-text.ts'

/**
 * A job for clients, as a JSON text; texts of the worker are passed on unchanged. Times are whole milliseconds,
 * and final jobs always have them and a `workerId`, because some clients refuse a response without them.
 */
export function jobView(job: Job, nowMs: number): string {
  return jobViewParts(job, nowMs)
    .filter(part => typeof part === 'string')
    .join('')
}

/**
 * The text of {@link jobView} of a job with a large output, for a receiver that takes no large messages: `outputUrl`
 * is in the place of `output`.
 * @param url the address at which clients read the job
 */
export function linkedJobView(job: Job, nowMs: number, url: string): string {
  const { largeOutput: _, ...small } = job
  return `{"outputUrl":${JSON.stringify(url)},${jobView(small, nowMs).slice(1)}`
}

/** A part of a text for clients or workers: a text, or one that the store has in parts. */
export type ViewPart = string | LargeText

/** True for a text that the store has in parts. */
export function isLargeText(part: ViewPart): part is LargeText {
  return typeof part !== 'string'
}

/**
 * The text of {@link jobView} in consecutive parts: the text of the worker may be large, and is a part of its own.
 */
export function jobViewParts(job: Job, nowMs: number): ViewPart[] {
  const members: [string, ViewPart][] = [['id', JSON.stringify(job.id)]]
  const { delayMs, executionMs } = jobTimes(job, nowMs)
  members.unshift(['delayTime', String(delayMs)])
  if (isFinal(job.status) || job.startedAtMs !== null) members.splice(1, 0, ['executionTime', String(executionMs)])
  const output = job.status === 'IN_PROGRESS' ? job.progress : (job.output ?? job.largeOutput ?? null)
  if (output !== null) members.push(['output', output])
  if (job.error !== null) members.push(['error', JSON.stringify(job.error)])
  if (job.warning !== null) members.push(['warning', JSON.stringify(job.warning)])
  if (job.batchId !== null) members.push(['batchId', JSON.stringify(job.batchId)])
  if (job.lostAttempts > 0) members.push(['retries', String(job.lostAttempts)])
  members.push(['status', JSON.stringify(job.status)])
  if (isFinal(job.status) || job.status === 'IN_PROGRESS')
    members.push(['workerId', JSON.stringify(job.workerId ?? '')])
  return [...members.flatMap(([name, text], index) => [`${index === 0 ? '{' : ','}"${name}":`, text]), '}']
}

/**
 * Wait of a job and duration of its current or last attempt, in whole milliseconds; up to now for an unfinished
 * one.
 */
export function jobTimes(
  job: Pick<Job, 'queuedAtMs' | 'startedAtMs' | 'finishedAtMs'>,
  nowMs: number,
): { delayMs: number; executionMs: number } {
  const end = job.finishedAtMs ?? nowMs
  const start = job.startedAtMs
  return {
    delayMs: Math.max(0, (start ?? end) - job.queuedAtMs),
    executionMs: start === null ? 0 : Math.max(0, end - start),
  }
}

/** Limit of characters of an error in a list; a single record has more. */
const LISTED_ERROR = 500

/** A job in a list for clients: instants and times in whole milliseconds, null for events that have not happened. */
export function jobSummaryView(job: JobSummary, nowMs: number) {
  const { delayMs, executionMs } = jobTimes(job, nowMs)
  return {
    id: job.id,
    status: job.status,
    createdAt: job.createdAtMs,
    startedAt: job.startedAtMs,
    completedAt: job.finishedAtMs,
    resultExpiresAt: job.expiresAtMs,
    delayTime: delayMs,
    executionTime: executionMs,
    workerId: job.workerId,
    attempts: job.attempt,
    retries: job.lostAttempts,
    inputBytes: job.inputBytes,
    outputBytes: job.outputBytes,
    error: job.error === null ? null : job.error.slice(0, LISTED_ERROR),
    errorFingerprint: job.fingerprint,
  }
}

/**
 * One job for clients, as a JSON text in parts: its input and output may be large, and are parts of their own.
 * @param urls the addresses at which clients read a text that is not in the record because it is too large
 */
export function jobRecordViewParts(
  record: JobRecord,
  nowMs: number,
  urls: { readonly input: string; readonly output: string },
): string[] {
  const policy = {
    executionTimeout: record.executionTimeoutMs,
    ttl: record.ttlMs,
    lowPriority: record.lowPriority,
  }
  const notes = record.notes.map(({ atMs, workerId, text }) => {
    return { at: atMs, workerId, kind: noteKind(text).kind, text }
  })
  const head = JSON.stringify({ ...jobSummaryView(record, nowMs), error: record.error, policy, notes })
  const inputLink = record.largeInput === null ? '' : `,"inputUrl":${JSON.stringify(urls.input)}`
  const link = record.hasLargeOutput ? `,"outputUrl":${JSON.stringify(urls.output)}` : ''
  return [
    head.slice(0, -1),
    ',"input":',
    record.input ?? 'null',
    ',"output":',
    record.output ?? 'null',
    inputLink + link,
    '}',
  ]
}
