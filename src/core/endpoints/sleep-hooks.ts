/** Requests that make a serving worker free its GPU memory before it is frozen, and load it again. */

import { secretNames } from '../secrets/secret.ts'
import { textBefore } from '../text-parts.ts'

/**
 * Values of the variables RUNYARD_SLEEP_URL and RUNYARD_WAKE_URL of a worker: a path, or an address of this
 * machine. A value that refers to a secret stays a reference: it is stored and shown with each worker.
 */
export interface SleepHooks {
  readonly sleepUrl: string
  readonly wakeUrl: string
}

/** Longest time in which a worker frees its memory, in milliseconds; after that it is frozen with it. */
export const SLEEP_TIMEOUT_MS = 60_000
/** Longest time in which it loads its memory again, in milliseconds; after that it is ended. */
export const WAKE_TIMEOUT_MS = 120_000

const MAX_URL = 2_000
/** Limit of decodings of a path: a worker may decode it once more than its proxy. */
const MAX_DECODINGS = 8

/** Target of a hook on the worker's own address. */
export interface HookTarget {
  /** Port in the value; null for a path alone. */
  readonly port: number | null
  /** Path and query. */
  readonly path: string
}

/** Target of a value of RUNYARD_SLEEP_URL or RUNYARD_WAKE_URL with secrets resolved; null for an invalid value. */
export function hookTarget(text: string): HookTarget | null {
  if (text.length > MAX_URL || text.includes('#') || secretNames({ text }).length > 0) return null
  if (/^\/[!-~]*$/.test(text)) return { port: null, path: text }
  const [, port, path] = /^http:\/\/(?:127\.0\.0\.1|localhost)(?::(\d{1,5}))?(\/[!-~]*)$/.exec(text) ?? []
  return path === undefined ? null : { port: Number(port ?? 80), path }
}

/**
 * A path as servers may interpret it: decoded, without query, parameters, empty and dot segments and a slash at
 * the end, in lower case. Two paths that may lead to the same place have the same result; paths of different
 * places may have, too.
 */
export function comparablePath(path: string): string {
  let text = textBefore(path, '?', '#')
  for (let round = 0; round < MAX_DECODINGS && text.includes('%'); round += 1) {
    text = text.replace(/%([\da-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
  }
  const segments: string[] = []
  for (const part of textBefore(text, '?', '#').split(/[/\\]/)) {
    const segment = textBefore(part, ';').replace(/[^!-\uffff]/g, '')
    if (segment === '..') segments.pop()
    else if (segment !== '' && segment !== '.') segments.push(segment.toLowerCase())
  }
  return `/${segments.join('/')}`
}
