import { isJsonObject, memberTexts, readJson } from '../json/json-text.ts'
import type { JobOutcome } from './job.ts'

/** Largest result that is kept, and limit of the bytes that are read to state the size of a larger one. */
export const RESULT_BYTES = { kept: 20_971_520, read: 104_857_600 } as const
/** Bytes that are read of a result. @param most the limit of a result, in bytes */
export function largestResultRead(most: number): number {
  return Math.max(RESULT_BYTES.read, most)
}

/** Largest body of one stream chunk, and of all chunks of one job together. */
export const CHUNK_BYTES = { one: 20_971_520, all: 268_435_456 } as const

/**
 * Largest error that is kept, in characters. Errors are shown and compared as texts, results are passed on
 * unchanged.
 */
export const MAX_ERROR_CHARACTERS = 1_048_576

/** Meaning of a worker's post to job-done. */
export type ResultReading =
  | { readonly kind: 'progress'; readonly output: string }
  | { readonly kind: 'final'; readonly outcome: JobOutcome; readonly refresh: boolean }

/**
 * Reads the body of job-done. It is never refused, because workers do not send it again: an unreadable one fails
 * the job with the reason. A truthy `error` means FAILED, by Python's truth values
 * (docs/internals/worker-protocol.md, Results).
 */
export function readResult(body: string): ResultReading {
  const reading = readJson(body, true)
  if (!reading.ok && reading.tooDeep) return failed(`the worker sent a result that is too deep: ${reading.problem}`)
  if (!reading.ok) return failed(`the worker sent a result that is not JSON: ${reading.problem}`)
  const warning = replacedWarning(reading.replaced)
  if (!isJsonObject(reading.value)) {
    return {
      kind: 'final',
      refresh: false,
      outcome: { status: 'COMPLETED', output: reading.text.trim(), error: null, warning },
    }
  }
  const texts = memberTexts(reading.text)
  const output = texts.get('output') ?? null
  if (reading.value.status === 'IN_PROGRESS') return { kind: 'progress', output: output ?? 'null' }
  const refresh = reading.value.stopPod === true
  const error = readErrorText(reading.value.error, texts.get('error') ?? '')
  const status = error === null ? 'COMPLETED' : 'FAILED'
  return { kind: 'final', refresh, outcome: { status, output, error, warning } }
}

/**
 * The error of a job from the member `error` of its result; null where that means success.
 * @param text the member as it is written
 */
export function readErrorText(error: unknown, text: string): string | null {
  return isTruthy(error) ? cutError(typeof error === 'string' ? error : text) : null
}

/** The warning about values of a result that JSON cannot hold; null without one. */
export function replacedWarning(replaced: number): string | null {
  return replaced === 0 ? null : `${replaced} value(s) that JSON cannot hold (NaN or Infinity) were replaced by null`
}

function cutError(error: string): string {
  if (error.length <= MAX_ERROR_CHARACTERS) return error
  const kept = error.slice(0, MAX_ERROR_CHARACTERS).toWellFormed()
  return `${kept}... (the first ${MAX_ERROR_CHARACTERS} of ${error.length} characters)`
}

/** The reading of a post to job-done whose bytes are not UTF-8: a failure. */
export function unreadableResult(): ResultReading {
  return failed('the worker sent a result that is not UTF-8')
}

const TOO_LARGE = 'the result is too large:'

/** True for the error of {@link oversizedResult}. */
export function isOversizedError(error: string): boolean {
  return error.startsWith(TOO_LARGE)
}

/**
 * The outcome of a job whose result was larger than the limit. `atLeast` if it was not read to its end.
 * @param most the limit, in bytes
 */
export function oversizedResult(bytes: number, atLeast: boolean, most: number = RESULT_BYTES.kept): JobOutcome {
  const size = atLeast ? `more than ${bytes}` : String(bytes)
  const error = `${TOO_LARGE} it has ${size} bytes, the limit is ${most} bytes`
  return { status: 'FAILED', output: null, error, warning: null }
}

/** A body that killed servers, so that the relay did not pass it on. */
export interface DroppedBody {
  readonly bytes: number
  /** Its file in the folder `set-aside` of the data directory; null if the disk had no room. */
  readonly file: string | null
}

/** The outcome of a job whose result killed servers. */
export function droppedResult(body: DroppedBody): JobOutcome {
  return failed(`the result was ${deathText(body)}`).outcome
}

/** The note on a chunk that killed servers. */
export function droppedChunk(body: DroppedBody): string {
  return `a chunk was ${deathText(body)}`
}

function deathText({ bytes, file }: DroppedBody): string {
  const why = `the server ended again and again while it had these ${bytes} bytes of the worker and nothing else`
  return file === null
    ? `dropped: ${why}, and there was no room to keep them`
    : `set aside: ${why}; they are in set-aside/${file} of the data directory`
}

function failed(error: string): ResultReading & { readonly kind: 'final' } {
  return { kind: 'final', refresh: false, outcome: { status: 'FAILED', output: null, error, warning: null } }
}

function isTruthy(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0
  if (isJsonObject(value)) return Object.keys(value).length > 0
  return Boolean(value)
}
