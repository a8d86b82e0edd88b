import pino, { type Logger } from 'pino'
import { pageRefusal } from '../../core/endpoints/page-refusal.ts'
import type { EndpointId } from '../../core/ids.ts'
import { clockDifference } from '../../core/server-time.ts'
import { textBefore } from '../../core/text-parts.ts'
import type { Emit, EventName, Events } from '../../events.ts'
import { createStandardError, type LogDestination } from './log-destination.ts'
import { LogRateLimit, type Timer } from './log-rate-limit.ts'

/** A level of pino, or `silent`. */
export type Level = 'debug' | 'info' | 'warn' | 'error' | 'silent'

/** Levels of events that differ from info. */
const LEVELS: Partial<Record<EventName, Exclude<Level, 'silent'>>> = {
  'key.failed': 'warn',
  'right.refused': 'warn',
  'page.refused': 'warn',
  'job.accepted': 'debug',
  'job.moved': 'debug',
  'job.begun': 'debug',
  'job.expired': 'debug',
  'job.result_ignored': 'warn',
  'job.body_dropped': 'warn',
  'webhook.tried': 'debug',
  'webhook.delivered': 'debug',
  'webhook.failed': 'warn',
  'alert.raised': 'warn',
  'image.download_failed': 'warn',
  'worker.start_failed': 'error',
  'worker.problem': 'warn',
  'worker.suspend_failed': 'warn',
  'worker.pause_failed': 'warn',
  'worker.over_share': 'warn',
  'worker.avoided': 'warn',
  'rollout.stopped': 'warn',
  'worker.clamped': 'warn',
  'machine.problem': 'warn',
  'model.failed': 'warn',
  'tls.problem': 'warn',
  'leader.changed': 'warn',
  'backup.failed': 'error',
  'clock.stepped': 'warn',
  'clock.adopted': 'warn',
  'clock.held': 'warn',
  'clock.not_adopted': 'error',
  'store.damaged': 'error',
  'store.full': 'error',
  'loop.failed': 'error',
  'gateway.request_finished': 'debug',
  'tokens.used': 'debug',
  'request.answered': 'debug',
  'request.failed': 'error',
}

let standardError: LogDestination | null = null

/** Number of lines that this process dropped because standard error could not be written. */
export function droppedLogLines(): number {
  return standardError?.dropped ?? 0
}

/** Writes whole lines between those of the log: like these, immediately or when the terminal takes them. */
export function writeBesideLog(text: string): void {
  standardError?.write(text)
}

/** A log of lines with fields, and of events by their names. */
export type Log = Logger

/**
 * The log on standard error: JSON lines for programs, or a readable line for each event. While it cannot be
 * written, lines are dropped; an error with their number follows when it can be written again.
 * @param readable true for lines that people read
 */
export function createLog(level: Level, readable: boolean): Log {
  const options = {
    level,
    base: null,
    timestamp: rememberedTime(),
    formatters: { level: (label: string) => ({ level: label }) },
  }
  const out = createStandardError(startTimer, missing => log.error(missing, 'log.lines_dropped'))
  standardError = out
  const log = pino(options, readable ? { write: line => out.write(readableLine(line)) } : new LogLines(out))
  process.once('exit', () => out.end())
  return log
}

const ACCESS_EVENT = 'gateway.request_finished' satisfies EventName
/** End of a line of the access log: the name of an event comes last. */
const ACCESS = `"msg":"${ACCESS_EVENT}"}\n`
/** Limit of lines of the access log that wait. */
const MAX_LINES = 250

/** Longest wait of a line of the access log, in milliseconds. */
const ACCESS_MS = 10

/**
 * Writes lines at once, except those of the access log: each request has one, and a system call for each would cost
 * more than the rest of the line. They are written together, before any other line and within 10 ms.
 */
export class LogLines {
  readonly #out
  readonly #after: Timer
  /** The lines of the access log that wait. They become text together, which costs less than one at a time. */
  readonly #times: string[] = []
  readonly #fields: object[] = []
  #isDue = false

  constructor(out: { write(text: string): unknown }, after: Timer = startTimer) {
    this.#out = out
    this.#after = after
    process.once('exit', this.#flush)
  }

  write(line: string): void {
    this.#flush()
    this.#out.write(line)
  }

  /**
   * Writes a line of the access log.
   * @param time its field of the time
   * @param fields the others, which do not change any more
   */
  writeLater(time: string, fields: object): void {
    this.#times.push(time)
    this.#fields.push(fields)
    if (this.#fields.length > MAX_LINES) this.#flush()
    else if (!this.#isDue) {
      this.#isDue = true
      this.#after(ACCESS_MS, this.#due)
    }
  }

  readonly #due = (): void => {
    this.#isDue = false
    this.#flush()
  }

  readonly #flush = (): void => {
    if (this.#fields.length === 0) return
    let text = ''
    for (const [at, fields] of this.#fields.entries()) text += accessLine(this.#times[at]!, fields)
    this.#times.length = 0
    this.#fields.length = 0
    this.#out.write(text)
  }
}

/** Text of the time, shared by the lines of one millisecond, which are many in an access log. */
function rememberedTime(): () => string {
  let latestMs = 0
  let text = ''
  return () => {
    const nowMs = Date.now()
    if (nowMs !== latestMs) {
      latestMs = nowMs
      text = `,"time":"${new Date(nowMs).toISOString()}"`
    }
    return text
  }
}

/** Events that anyone can cause: at most one line a minute about each subject; null for a line at once. */
const SPARSE: { readonly [Name in EventName]?: (fields: Events[Name]) => string | null } = {
  'key.failed': ({ address }) => address,
  'right.refused': ({ keyId }) => keyId,
  'page.refused': ({ origin, endpointId }) => `${origin} ${endpointId}`,
  // While a disk is full or a database is away, each request fails for the same cause.
  'request.failed': ({ surface, status, problem }) =>
    status === 503 ? `${surface} ${textBefore(problem, '\n')}` : null,
}

function eventLevel(name: EventName, fields: object): Exclude<Level, 'silent'> {
  if (name === 'worker.exited' && 'asked' in fields && !fields.asked) return 'warn'
  if (name === 'leader.changed' && 'now' in fields && (fields.now === 'active' || fields.now === 'standby'))
    return 'info'
  // Changes of jobs may be many in a second.
  if (name === 'change.made' && 'surface' in fields && fields.surface === 'jobs') return 'debug'
  return LEVELS[name] ?? 'info'
}

/** Writes each event into the log; events that anyone can cause get one line a minute, with their count. */
export function logEvents(log: Logger, after: Timer = startTimer): Emit {
  const sparse = new LogRateLimit<EventName>((name, fields) => write(name, fields), after)
  const write = (name: EventName, fields: object) => {
    log[eventLevel(name, fields)](fields, name)
  }
  let writeAccess: ((fields: object) => void) | null = null
  return (name, fields) => {
    if (name === ACCESS_EVENT) {
      writeAccess ??= accessWriter(log)
      return writeAccess(fields)
    }
    const about = SPARSE[name]?.(fields) ?? null
    if (about === null) write(name, fields)
    else sparse.add(name, about, fields)
  }
}

/**
 * Writes lines of the access log as {@link createLog}'s log itself would, with all fields in one call of the JSON
 * writer: each request has a line, and pino takes five times as long for it.
 */
function accessWriter(log: Log): (fields: object) => void {
  if (!log.isLevelEnabled('debug')) return () => {}
  const { streamSym, timeSym } = pino.symbols
  const parts = log as unknown as Readonly<Record<symbol, unknown>>
  const out = parts[streamSym] as { write(line: string): unknown }
  const time = parts[timeSym] as () => string
  if (out instanceof LogLines) return fields => out.writeLater(time(), fields)
  return fields => out.write(accessLine(time(), fields))
}

function accessLine(time: string, fields: object): string {
  return `{"level":"debug"${time},${JSON.stringify(fields).slice(1, -1)},${ACCESS}`
}

/** Starts a timer that does not keep the process alive; its count ends with the process. */
function startTimer(ms: number, callback: () => void): void {
  setTimeout(callback, ms).unref()
}

/** Events that ask for an action by the person in front of the server, as sentences. Null for the usual line. */
const SENTENCES: Readonly<Record<string, (fields: Readonly<Record<string, unknown>>) => string | null>> = {
  'worker.exited': ({ endpointId, cause, asked }) =>
    asked === true ? null : `a worker of ${endpointId} ${cause}; runyard why ${endpointId} says more`,
  'worker.start_failed': ({ endpointId, problem }) =>
    `no worker of ${endpointId} can be started: ${problem}; runyard why ${endpointId} says more`,
  'folder.changed': ({ folder, files }) => `${files} changed in ${folder}: its workers are replaced after their jobs`,
  'folder.setting_up': ({ command }) => `running ${command}`,
  'folder.setup_failed': ({ folder, problem }) =>
    `${problem}; workers of ${folder} go on with the packages that they have, until a file of packages changes again`,
  'folder.not_set_up': ({ folder, file }) =>
    `${folder} has ${file} and no packages of its own; --setup installs them, else its handler has those of this machine`,
  'folder.no_packages': ({ folder }) =>
    `--setup installs nothing for ${folder}: no requirements.txt, pyproject.toml or package.json there names packages`,
  'job.failed': ({ jobId, endpoint, problem }) =>
    `job ${jobId} of ${endpoint} failed: ${problem}; runyard jobs get ${jobId} says more`,
  'jobs.failed': ({ count }) => `${count} more jobs failed in this second; runyard jobs list --failed has them`,
  'page.refused': ({ origin, endpointId }) => pageRefusal(String(origin), endpointId as EndpointId | null),
  'backup.failed': ({ problem }) => `there is no new backup: ${problem}`,
  'clock.stepped': ({ byMs }) =>
    `the clock of this machine is ${clockDifference(Number(byMs))} the time of the server, which goes on as before; runyard clock says more`,
  'clock.adopted': ({ byMs }) =>
    `the server has taken the time of the machine's clock, which was ${clockDifference(Number(byMs))} its own; what is left of running limits stays`,
  'clock.held': () =>
    'more than a day has passed since a server ran on this database: retention removes nothing for a day, or until runyard clock accept',
  'schema.changing': ({ from, to, writtenBy, version, backup }) =>
    `Runyard ${version} changes the database from schema ${from}, of Runyard ${writtenBy}, to schema ${to}; ` +
    (backup === null ? 'it made no copy before' : `the copy from before is ${backup}`),
  'store.full': ({ problem }) => `the store takes no change: ${problem}; make room there, and all goes on by itself`,
  'log.lines_dropped': ({ lines, problem, forMs }) =>
    `${lines} lines of this log are missing, of the last ${Math.ceil(Number(forMs) / 1_000)} s: ${problem}`,
  'folder.packages_changed': ({ file, run }) => `${file} changed; run: ${run}`,
}

function readableLine(line: string): string {
  const { time, level, msg, ...fields } = JSON.parse(line) as Record<string, unknown>
  const sentence = SENTENCES[String(msg)]?.(fields) ?? null
  if (sentence !== null) return `${String(time).slice(11, 19)} ${String(level).padEnd(5)} ${sentence}\n`
  const rest = Object.entries(fields).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  return `${String(time).slice(11, 19)} ${String(level).padEnd(5)} ${msg}  ${rest.join(' ')}\n`
}
