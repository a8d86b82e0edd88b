/** The work of watched folders on the terminal of their server: the output of workers, and failed jobs. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from '../../app.ts'
import type { Config } from '../../config/config.ts'
import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import type { WorkerId } from '../../core/ids.ts'
import type { EventStream } from '../../events.ts'
import type { LogFinder } from '../../services/observing/log-finder.ts'
import type { LogEvent, LogStream } from '../../services/observing/log-stream.ts'
import { type Log, writeBesideLog } from '../../system/observing/log.ts'

import { FailedJobLines } from './failed-job-lines.ts'
import { withoutControls } from './plain-text.ts'

/** True where the log of the server is on the terminal of a person who works on its folders. */
export function isReadAlong({ folderWatch, json }: Config): boolean {
  return folderWatch && !json && process.stderr.isTTY === true
}

/** Shows the output of workers of folders and their failed jobs. @returns a function that ends the view */
export function viewOnTerminal(
  { services }: App,
  events: EventStream,
  served: readonly { readonly endpoint: Endpoint }[],
  log: Log,
): () => void {
  const endpoints = served.map(({ endpoint }) => endpoint)
  const endOutput = showOutput({
    logs: services.logs,
    endpoints,
    write: writeBesideLog,
    now: () => performance.now(),
    pause: (ms, signal) => sleep(ms, undefined, { signal }).catch(() => undefined),
  })
  const failed = new FailedJobLines(endpoints, {
    readError: async (endpoint, job) => (await services.jobRecords.find(endpoint, job)).error,
    log,
    after: (ms, callback) => void setTimeout(callback, ms).unref(),
  })
  const endFailures = events.add(failed.emit)
  return () => {
    endOutput()
    endFailures()
  }
}

/** Maximum number of lines of all workers together in a second; a person cannot read more. */
const MAX_LINES = 100
const PERIOD_MS = 1_000
/** Maximum number of characters of a line that are shown. */
const MAX_LINE = 2_000
/** Time without output of other workers after which lines do not name their worker. */
const ALONE_MS = 60_000
/** Pause after a reading that failed or ended, as that of a deleted endpoint does. */
const AGAIN_MS = 1_000
/** Maximum wait of one call for lines. */
const HOLD_MS = 30_000

/** From now on, only the output of the workers themselves. */
const FROM_NOW = {
  source: 'container',
  text: null,
  follow: true,
  lingerMs: 0,
  tail: 0,
  sinceMs: null,
  after: null,
} as const

/** Dependencies of {@link showOutput}. */
export interface ShownOutput {
  readonly logs: Pick<LogFinder, 'open'>
  /** The endpoints whose workers are shown. */
  readonly endpoints: readonly Pick<Endpoint, 'id' | 'name' | 'owner'>[]
  /** Writes whole lines; must not wait for a reader. */
  readonly write: (text: string) => void
  /** Monotonic, in ms. */
  readonly now: () => number
  /** Resolves after a number of ms, or as soon as the signal aborts. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>
}

/**
 * Shows the output of workers, each line after the name of its endpoint and, where several workers print, the id of
 * its worker. Lines past the limit are left out, and a line reports it.
 * @returns a function that ends the showing
 */
export function showOutput(parts: ShownOutput): () => void {
  const closing = new AbortController()
  const shared = new SharedLines(parts.now)
  for (const endpoint of parts.endpoints) void follow(parts, endpoint, shared, closing.signal)
  return () => closing.abort()
}

/** The lines that all endpoints together may show in a second. */
class SharedLines {
  readonly #now
  #sinceMs = Number.NEGATIVE_INFINITY
  #shown = 0

  constructor(now: () => number) {
    this.#now = now
  }

  /** Time until there is room again; 0 when a line was taken. */
  take(): number {
    const nowMs = this.#now()
    if (nowMs - this.#sinceMs >= PERIOD_MS) [this.#sinceMs, this.#shown] = [nowMs, 0]
    if (this.#shown === MAX_LINES) return this.#sinceMs + PERIOD_MS - nowMs
    this.#shown += 1
    return 0
  }
}

async function follow(
  parts: ShownOutput,
  endpoint: ShownOutput['endpoints'][number],
  shared: SharedLines,
  closing: AbortSignal,
): Promise<void> {
  const { logs, write, pause } = parts
  const names = new LineNames(endpoint.name, parts.now)
  while (!closing.aborted) {
    // The store may be away, or the account may have too many readings open.
    const stream = await logs.open(endpoint.owner, { kind: 'endpoint', id: endpoint.id }, FROM_NOW).catch(() => null)
    const fullForMs = stream === null ? 0 : await showUntilFull(stream, { names, shared, write }, closing)
    if (fullForMs > 0) write(names.leftOut())
    await pause(fullForMs > 0 ? fullForMs : AGAIN_MS, closing)
  }
}

/**
 * Shows the lines of a stream up to the limit of a second. Returns the pause until the next line; 0 where the stream
 * ended.
 */
async function showUntilFull(
  stream: LogStream,
  { names, shared, write }: { names: LineNames; shared: SharedLines; write: (text: string) => void },
  closing: AbortSignal,
): Promise<number> {
  const close = () => stream.close()
  closing.addEventListener('abort', close, { once: true })
  if (closing.aborted) close()
  try {
    for (let batch = await stream.next(HOLD_MS); batch !== null; batch = await stream.next(HOLD_MS)) {
      for (const event of batch.events) {
        const waitMs = shared.take()
        if (waitMs > 0) return waitMs
        write(`${names.of(event.workerId)}${shownLine(event)}\n`)
      }
    }
    return 0
  } catch {
    return 0
  } finally {
    closing.removeEventListener('abort', close)
    close()
  }
}

function shownLine({ line }: LogEvent): string {
  const text = withoutControls(line)
  return text.length > MAX_LINE ? `${text.slice(0, MAX_LINE)}...` : text
}

/** The prefix of lines: the name of the endpoint, and the worker while several of them print. */
class LineNames {
  readonly #name: string
  readonly #now
  readonly #printedAtMs = new Map<WorkerId, number>()

  constructor(name: string, now: () => number) {
    this.#name = withoutControls(name)
    this.#now = now
  }

  /** The line in place of the omitted ones. */
  leftOut(): string {
    return `${this.#name} | more than ${MAX_LINES} lines in a second are left out here: runyard logs ${this.#name}\n`
  }

  of(worker: WorkerId): string {
    const nowMs = this.#now()
    this.#printedAtMs.set(worker, nowMs)
    for (const [id, atMs] of this.#printedAtMs) if (nowMs - atMs > ALONE_MS) this.#printedAtMs.delete(id)
    return this.#printedAtMs.size > 1 ? `${this.#name} ${worker} | ` : `${this.#name} | `
  }
}
