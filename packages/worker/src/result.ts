import type { Config } from './config.ts'
import { toJson } from './json.ts'
import { version } from './version.ts'

/** The body of a final post; `failed` is true if it reports a failure. */
export type Final = { text: string; failed: boolean }

/**
 * The final post for the value that a handler returned. Its keys `error` and `refresh_worker` are instructions, not
 * output. Throws the value if it is an `Error`, and a `NotJsonError` if it cannot be sent.
 */
export function encodeResult(value: unknown, stopPod: boolean): Final {
  if (value instanceof Error) throw value
  if (!isRecord(value)) return encode({ output: value ?? null }, stopPod)
  const { error, refresh_worker: refresh, ...rest } = value
  // Only an object with instructions is copied: others may have their own toJSON.
  const carries = 'error' in value || 'refresh_worker' in value
  const output = carries ? rest : value
  const body: Record<string, unknown> = error
    ? { error: error instanceof Error ? error.message || error.name : error }
    : {}
  if (Object.keys(rest).length > 0 || (!carries && !isPlain(value))) body.output = output
  return encode(body, stopPod || Boolean(refresh))
}

/** The final post for a job that failed with `thrown`. */
export function encodeFailure(thrown: unknown, stopPod: boolean, reported: Config['reported']): Final {
  const isError = thrown instanceof Error
  const report = {
    error_type: isError ? String(thrown.name) : typeof thrown,
    error_message: isError ? String(thrown.message) : describe(thrown),
    error_traceback: isError ? traceback(thrown) : '',
    hostname: reported.hostname,
    worker_id: reported.workerId,
    runpod_version: version,
  }
  return encode({ error: JSON.stringify(report) }, stopPod)
}

/** A thrown value as text for the log: the stack with its causes, else the message. */
export function failureText(thrown: unknown): string {
  if (!(thrown instanceof Error)) return `the handler threw ${describe(thrown)}`
  return traceback(thrown) || `${thrown.name}: ${thrown.message}`
}

/** The error in a value that fails the job; undefined for other values. */
export function errorIn(value: unknown): unknown {
  return (isRecord(value) && value.error) || undefined
}

/** True if a handler's return value is a stream. */
export function isStream(value: unknown): value is AsyncIterable<unknown> | Iterable<unknown> {
  if (typeof value !== 'object' || value === null) return false
  if (Symbol.asyncIterator in value) return true
  // Arrays are iterable as well, but only a generator is its own iterator.
  return Symbol.iterator in value && 'next' in value
}

function encode(body: Record<string, unknown>, stopPod: boolean): Final {
  return { text: toJson(stopPod ? { ...body, stopPod: true } : body), failed: 'error' in body }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

function describe(thrown: unknown): string {
  try {
    return typeof thrown === 'object' ? toJson(thrown) : String(thrown)
  } catch {
    return 'the handler threw something that cannot be shown'
  }
}

function traceback(error: Error): string {
  const lines: string[] = []
  let next: unknown = error
  // The depth has a limit, because causes can form a circle.
  for (let depth = 0; next instanceof Error && depth < 8; depth += 1) {
    lines.push(`${depth === 0 ? '' : 'Caused by: '}${next.stack ?? next}`)
    next = next.cause
  }
  return lines.join('\n')
}
