/** The work of watched folders on the terminal of their server: what workers print, and which jobs fail. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from '../app.ts'
import type { Config } from '../config/config.ts'
import type { Emit } from '../events.ts'
import { type createLog, writeBesideLog } from '../system/observing/log.ts'
import { FailedJobLines } from './failed-job-lines.ts'
import type { ServedFolder } from './folders.ts'
import { showOutput } from './output-on-terminal.ts'

/** What a terminal shows until it is closed. */
export interface TerminalView {
  readonly emit: Emit
  close(): void
}

/** Whether somebody who works on the folders of this server reads its log. */
export function isReadAlong({ folderWatch, json }: Config): boolean {
  return folderWatch && !json && process.stderr.isTTY === true
}

/** Shows what workers of folders print and which of their jobs fail. */
export function viewOnTerminal(
  { services }: App,
  served: readonly ServedFolder[],
  log: ReturnType<typeof createLog>,
): TerminalView {
  const endpoints = served.map(({ endpoint }) => endpoint)
  const close = showOutput({
    logs: services.logs,
    endpoints,
    write: writeBesideLog,
    now: () => performance.now(),
    pause: (ms, signal) => sleep(ms, undefined, { signal }).catch(() => undefined),
  })
  const failed = new FailedJobLines(endpoints, {
    errorOf: async (endpoint, job) => (await services.jobRecords.find(endpoint, job)).error,
    log,
    after: (ms, callback) => void setTimeout(callback, ms).unref(),
  })
  return { emit: failed.emit, close }
}
