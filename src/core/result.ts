import type { JobOutcome } from './job.ts'
import { isJsonObject, memberTexts, readJson } from './json-text.ts'

/** Largest result that is kept, and largest that is read to its end to say how large it was. */
export const RESULT_BYTES = { kept: 20_971_520, read: 104_857_600 } as const
/** Largest body of one stream chunk, and of all chunks of one job together. */
export const CHUNK_BYTES = { one: 20_971_520, all: 268_435_456 } as const

/** What a worker's post to job-done means. */
export type ResultReading =
  | { readonly kind: 'progress'; readonly output: string }
  | { readonly kind: 'final'; readonly outcome: JobOutcome; readonly refresh: boolean }

/**
 * Reads the body of job-done. It is never refused, because workers do not send it again: what cannot be read fails the
 * job with the reason. A truthy `error` means FAILED, as Python sees truth (docs/internals/worker-protocol.md, Results).
 */
export function readResult(body: string): ResultReading {
  const reading = readJson(body, true)
  if (!reading.ok && reading.tooDeep) return failed(`the worker sent a result that is too deep: ${reading.problem}`)
  if (!reading.ok) return failed(`the worker sent a result that is not JSON: ${reading.problem}`)
  const warning =
    reading.replaced === 0
      ? null
      : `${reading.replaced} value(s) that JSON cannot hold (NaN or Infinity) were replaced by null`
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
  const error = reading.value.error
  if (!isTruthy(error))
    return { kind: 'final', refresh, outcome: { status: 'COMPLETED', output, error: null, warning } }
  const text = typeof error === 'string' ? error : texts.get('error')!
  return { kind: 'final', refresh, outcome: { status: 'FAILED', output, error: text, warning } }
}

/** The outcome of a job whose result was larger than the limit. `atLeast` when it was not read to its end. */
export function oversizedResult(bytes: number, atLeast: boolean): JobOutcome {
  const size = atLeast ? `more than ${bytes}` : String(bytes)
  const error = `the result is too large: it has ${size} bytes, the limit is ${RESULT_BYTES.kept} bytes`
  return { status: 'FAILED', output: null, error, warning: null }
}

/** The outcome of a job of whose result servers have died, so that the relay dropped it. @param bytes how large it was */
export function droppedResult(bytes: number): JobOutcome {
  return failed(`the result was dropped: ${diedOf(bytes)}`).outcome
}

/** What is noted of a chunk that the relay dropped because servers have died of it. */
export function droppedChunk(bytes: number): string {
  return `a chunk was dropped: ${diedOf(bytes)}`
}

function diedOf(bytes: number): string {
  return `the server ended twice while it had what this worker sent, the second time these ${bytes} bytes and nothing else`
}

function failed(error: string): ResultReading & { readonly kind: 'final' } {
  return { kind: 'final', refresh: false, outcome: { status: 'FAILED', output: null, error, warning: null } }
}

function isTruthy(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0
  if (isJsonObject(value)) return Object.keys(value).length > 0
  return Boolean(value)
}
