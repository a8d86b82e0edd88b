/** One line of a log as the page shows it. */
import { readAnsi, type Style } from './ansi.ts'

/** Levels of lines, the most severe first. */
export const LEVELS = ['error', 'warn', 'info', 'debug'] as const
/** One of {@link LEVELS}. */
export type Level = (typeof LEVELS)[number]

/** Author of a line: the worker, the server about the worker, or this page about its connection. */
export type LineKind = 'output' | 'system' | 'notice'

/** A line. */
export interface LogLine {
  readonly atMs: number
  /** Null for lines of this page. */
  readonly workerId: string | null
  readonly jobId: string | null
  readonly kind: LineKind
  /** Null if the line names no level. */
  readonly level: Level | null
  /** Readable text: without control sequences, and JSON as a sentence with its members. */
  readonly text: string
  /** The line as it arrived. */
  readonly raw: string
  readonly styles: readonly Style[] | null
}

/** The data of an event of the stream. */
export interface LineData {
  readonly workerId: string
  readonly jobId: string | null
  readonly source: string
  readonly ts: string
  readonly line: string
}

/** Number of characters at the beginning of a line that are searched for its level. */
const LEVEL_REACH = 160
/** Length of JSON in characters above which it is shown as it arrived. */
const MAX_JSON = 20_000

/** Reads lines in order: the frames of a traceback have the level of the line above them. */
export class LineReader {
  readonly #levels = new Map<string, Level | null>()

  /** The line of an event. */
  read({ workerId, jobId, source, ts, line }: LineData): LogLine {
    const base = { atMs: Date.parse(ts), workerId, jobId, raw: line }
    if (source === 'system')
      return { ...base, kind: 'system', level: systemLevel(line), text: readAnsi(line).text, styles: null }
    const prefix = jobId === null ? null : findPrefix(line)
    const { text, styles } = readAnsi((prefix === null ? line : line.slice(prefix.length)).replaceAll('\t', '    '))
    const json = readJson(text)
    const isContinued = /^(?:\s+\S|Caused by)/.test(text)
    const namedLevel = json === null ? findLevel(text) : json.level
    const level = namedLevel ?? prefix?.level ?? (isContinued ? (this.#levels.get(workerId) ?? null) : null)
    this.#levels.set(workerId, level)
    return { ...base, kind: 'output', level, text: json?.text ?? text, styles: json === null ? styles : null }
  }
}

/** A line of this page. */
export function notice(text: string, atMs: number): LogLine {
  return { atMs, workerId: null, jobId: null, kind: 'notice', level: null, text, raw: text, styles: null }
}

const WORDS: readonly (readonly [Level, RegExp])[] = [
  [
    'error',
    /\b(?:ERROR|FATAL|CRITICAL|SEVERE|PANIC)\b|\b[Ll]evel["']?[=:]\s*"?(?:error|fatal|critical)|^\s*\[?(?:error|fatal|critical|panic)\b|^Traceback \(most recent|^(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception)\b/,
  ],
  ['warn', /\bWARN(?:ING)?\b|\b[Ll]evel["']?[=:]\s*"?warn|^\s*\[?warn(?:ing)?\b|\b\w+Warning:/],
  ['debug', /\b(?:DEBUG|TRACE)\b|\b[Ll]evel["']?[=:]\s*"?(?:debug|trace)|^\s*\[?(?:debug|trace)\b/],
  ['info', /\b(?:INFO|NOTICE)\b|\b[Ll]evel["']?[=:]\s*"?(?:info|notice)|^\s*\[?(?:info|notice)\b/],
]

/** The level that a line names; the first of several counts. */
export function findLevel(text: string): Level | null {
  const beginning = text.slice(0, LEVEL_REACH)
  let firstLevel: Level | null = null
  let firstAt = Number.POSITIVE_INFINITY
  for (const [level, words] of WORDS) {
    const at = words.exec(beginning)?.index ?? Number.POSITIVE_INFINITY
    if (at < firstAt) [firstLevel, firstAt] = [level, at]
  }
  return firstLevel
}

/** Prefix that workers of the server's own SDK put before a handler's output. */
function findPrefix(line: string): { level: Level; length: number } | null {
  const [all, word] = /^(DEBUG|TRACE|INFO|WARN|WARNING|ERROR) +/.exec(line) ?? []
  return all === undefined ? null : { level: findLevel(word!)!, length: all.length }
}

function systemLevel(line: string): Level | null {
  if (/^(?:could not be started|crashed)|\b(?:exited with code [1-9]|killed by|out of memory)/.test(line))
    return 'error'
  return line.startsWith('problem:') ? 'warn' : 'info'
}

/** A line of JSON as a message followed by its other members; null for any other line. */
function readJson(text: string): { text: string; level: Level | null } | null {
  const trimmed = text.trim()
  if (!trimmed.startsWith('{') || !trimmed.endsWith('}') || trimmed.length > MAX_JSON) return null
  let members: Record<string, unknown>
  try {
    members = JSON.parse(trimmed) as Record<string, unknown>
  } catch {
    return null
  }
  const { level, severity, levelname, lvl, msg, message, event, time, timestamp, ts, asctime, ...otherMembers } =
    members
  const rest = Object.entries(otherMembers).map(([name, value]) => `${name}=${asText(value)}`)
  const messages = [msg, message, event].filter(one => one !== undefined).map(asText)
  return {
    level: jsonLevel(level ?? severity ?? levelname ?? lvl),
    // A line without a message is shown as it is.
    text: messages.length === 0 ? text : readAnsi([...messages, ...rest].join('  ').replaceAll(/[\r\n\t]+/g, ' ')).text,
  }
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function jsonLevel(level: unknown): Level | null {
  if (typeof level === 'string') return findLevel(level.toUpperCase())
  if (typeof level !== 'number') return null
  // Numeric levels of pino and bunyan.
  return level >= 50 ? 'error' : level >= 40 ? 'warn' : level >= 30 ? 'info' : 'debug'
}
