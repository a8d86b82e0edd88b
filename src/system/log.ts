import pino, { type Logger } from 'pino'
import type { Emit, EventName } from '../events.ts'

/** A level of pino, or `silent`. */
export type Level = 'debug' | 'info' | 'warn' | 'error' | 'silent'

/** Events that are worth more or less than a line at level info. */
const LEVELS: Partial<Record<EventName, Exclude<Level, 'silent'>>> = {
  'job.accepted': 'debug',
  'job.moved': 'debug',
  'job.expired': 'debug',
  'job.result_ignored': 'warn',
  'webhook.delivered': 'debug',
  'webhook.failed': 'warn',
  'worker.start_failed': 'error',
  'worker.problem': 'warn',
  'worker.avoided': 'warn',
  'worker.clamped': 'warn',
  'machine.problem': 'warn',
  'loop.failed': 'error',
  'gateway.passed': 'debug',
  'request.answered': 'debug',
  'request.failed': 'error',
}

/**
 * The log on standard error: JSON lines for programs, or a readable line an event for people.
 * @param readable whether people read it
 */
export function createLog(level: Level, readable: boolean): Logger {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  }
  return readable
    ? pino(options, { write: line => void process.stderr.write(readableLine(line)) })
    : pino(options, pino.destination({ dest: 2, sync: true }))
}

/** Writes each event into the log. */
export function logEvents(log: Logger): Emit {
  return (name, fields) => {
    const level = name === 'worker.exited' && 'asked' in fields && !fields.asked ? 'warn' : (LEVELS[name] ?? 'info')
    log[level](fields as object, name)
  }
}

function readableLine(line: string): string {
  const { time, level, msg, ...fields } = JSON.parse(line) as Record<string, unknown>
  const rest = Object.entries(fields).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  return `${String(time).slice(11, 19)} ${String(level).padEnd(5)} ${msg}  ${rest.join(' ')}\n`
}
