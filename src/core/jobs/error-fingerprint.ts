import { isJsonObject, readJson } from '../json/json-text.ts'

/** Characters of an error that are read; the rest is usually a traceback without new facts. */
export const ERROR_READ = 8_192

/** Characters of an error without its traceback that count. */
const ESSENCE = 1_000

/** Form of a fingerprint from {@link errorFingerprint}. */
export const FINGERPRINT = /^[0-9a-f]{16}$/

/** A place of a Python traceback: name of the file and function, without the folder and the line number. */
const PYTHON_FRAME = /File "(?:[^"]*\/)?([^"/]*)", line \d+, in ([^\n]*)/g

/**
 * Fingerprint of the cause of an error, as 16 hexadecimal digits: two errors that differ only in numbers, ids,
 * addresses and times have the same one. Of an error of the Python SDK its type, the place that raised it, and its
 * message count.
 * @param error the error of a job; only its first {@link ERROR_READ} characters count
 */
export function errorFingerprint(error: string): string {
  return hash(withoutVariables(essentialText(error.slice(0, ERROR_READ)).slice(0, ESSENCE)))
}

function essentialText(error: string): string {
  if (!error.startsWith('{')) return error.split('\n', 1)[0]!
  const reading = readJson(error)
  if (!reading.ok || !isJsonObject(reading.value)) return cutError(error)
  const { error_type: type, error_message: message, error_traceback: traceback } = reading.value
  if (typeof type !== 'string') return error.split('\n', 1)[0]!
  const last = [...String(traceback ?? '').matchAll(PYTHON_FRAME)].at(-1)
  return [type, last?.[1], last?.[2], String(message ?? '').split('\n', 1)[0]].join(' ')
}

/** The type of a truncated error, so that a long traceback does not make a group of each error. */
function cutError(error: string): string {
  return /"error_type":\s*"((?:[^"\\]|\\.)*)"/.exec(error)?.[1] ?? error.split('\n', 1)[0]!
}

function withoutVariables(text: string): string {
  return text
    .replaceAll(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '#')
    .replaceAll(/\b0x[0-9a-f]+\b/gi, '#')
    .replaceAll(/\b(?=[a-z]*\d)[0-9a-z]{8,}\b/gi, '#')
    .replaceAll(/\d+/g, '#')
}

const OFFSET = 0xcbf29ce484222325n
const PRIME = 0x100000001b3n

/** FNV-1a of 64 bits: errors of an endpoint do not collide by chance, and nothing depends on it. */
function hash(text: string): string {
  let value = OFFSET
  for (const byte of new TextEncoder().encode(text)) value = BigInt.asUintN(64, (value ^ BigInt(byte)) * PRIME)
  return value.toString(16).padStart(16, '0')
}
