import { AsyncLocalStorage } from 'node:async_hooks'
import { format } from 'node:util'
import type { Job } from './types.ts'

/** Levels of log lines, from the least important to the most important. */
export type Level = 'TRACE' | 'DEBUG' | 'INFO' | 'WARN' | 'ERROR'

/** A job or its id; null for a line about no job. Default: the job of the calling handler. */
type About = Job | string | null

/** Writes one log line; each of its methods does so with its own level. */
export type Log = {
  (message: string, about?: { job?: About; level?: Level }): void
  trace(message: string, job?: About): void
  debug(message: string, job?: About): void
  info(message: string, job?: About): void
  warn(message: string, job?: About): void
  error(message: string, job?: About): void
}

/** Levels by the numbers of RunPod's SDK for Python. NOTSET shows nothing at all. */
const levels = ['NOTSET', 'TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR']
const fallback = 'DEBUG'

/** Length above which the middle of a message is left out. */
const longest = 4096

const current = new AsyncLocalStorage<string>()
const { RUNPOD_LOG_LEVEL, RUNPOD_DEBUG_LEVEL } = process.env
let shownFrom = levelIndex(RUNPOD_LOG_LEVEL || RUNPOD_DEBUG_LEVEL || fallback) ?? levels.indexOf(fallback)

/**
 * Writes one log line to stdout, unless its level is below RUNPOD_LOG_LEVEL. On a platform
 * (`RUNPOD_ENDPOINT_ID` is set) it is a JSON object with the id of the job, so that the line can be shown with it;
 * elsewhere it is plain text.
 */
export const log: Log = Object.assign(write, {
  trace: (message: string, job?: About) => write(message, about('TRACE', job)),
  debug: (message: string, job?: About) => write(message, about('DEBUG', job)),
  info: (message: string, job?: About) => write(message, about('INFO', job)),
  warn: (message: string, job?: About) => write(message, about('WARN', job)),
  error: (message: string, job?: About) => write(message, about('ERROR', job)),
})

function about(level: Level, job: About | undefined) {
  return { level, ...(job === undefined ? {} : { job }) }
}

function write(message: string, about: { job?: About; level?: Level } = {}): void {
  const { job = current.getStore() ?? null, level = 'INFO' } = about
  if (shownFrom === 0 || levels.indexOf(level) < shownFrom) return
  const requestId = job !== null && typeof job === 'object' ? job.id : job
  const text = shorten(String(message))
  const line = process.env.RUNPOD_ENDPOINT_ID
    ? JSON.stringify({ requestId, message: text, level })
    : `${level.padEnd(5)} | ${requestId === null ? '' : `${requestId} | `}${text}`
  process.stdout.write(`${line}\n`)
}

/**
 * Shows lines of this level and above from now on: its name or number, from the command line; undefined leaves the
 * level of the environment. A level that does not exist is logged, and changes nothing.
 */
export function setLevel(wanted: string | undefined): void {
  for (const [name, value] of Object.entries({ RUNPOD_LOG_LEVEL, RUNPOD_DEBUG_LEVEL, '--rp_log_level': wanted })) {
    if (value && levelIndex(value) === undefined) {
      log(`${name} is "${value.slice(0, 64)}", not one of ${levels.join(', ')}`, { job: null, level: 'WARN' })
    }
  }
  shownFrom = levelIndex(wanted ?? '') ?? shownFrom
}

function levelIndex(level: string): number | undefined {
  const place = /^[0-5]$/.test(level) ? Number(level) : levels.indexOf(level.toUpperCase())
  return place < 0 ? undefined : place
}

function shorten(message: string): string {
  const over = message.length - longest
  if (over <= 0) return message
  return `${message.slice(0, longest / 2)}\n...TRUNCATED ${over} CHARACTERS...\n${message.slice(-longest / 2)}`
}

/** Runs `action` and attributes all its log lines, later ones too, to the job. */
export function asJob<T>(jobId: string, action: () => T): T {
  return current.run(jobId, action)
}

/**
 * Makes `console.log` and its siblings write the same JSON lines as `log` on a platform. If the output cannot be
 * written, as on a full disk, its lines are lost and the process goes on.
 */
export function captureConsole(): void {
  if (!process.env.RUNPOD_ENDPOINT_ID) return
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  const methods = { debug: 'DEBUG', log: 'INFO', info: 'INFO', warn: 'WARN', error: 'ERROR' } as const
  for (const [method, level] of Object.entries(methods) as [keyof typeof methods, Level][]) {
    console[method] = (...items: unknown[]) => log(format(...items), { level })
  }
}
