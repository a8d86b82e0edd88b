/** The work of watched folders on the terminal of their server: the output of workers, and failed jobs. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from '../../app.ts'
import type { Config } from '../../config/config.ts'
import type { Emit } from '../../events.ts'
import { type Log, writeBesideLog } from '../../system/observing/log.ts'
import type { ServedFolder } from '../folders/folders.ts'
import { FailedJobLines } from './failed-job-lines.ts'
import { showOutput } from './worker-output.ts'

/** The view of a terminal until it is closed. */
export interface TerminalView {
  readonly emit: Emit
  close(): void
}

/** True where the log of the server is on the terminal of a person who works on its folders. */
export function isReadAlong({ folderWatch, json }: Config): boolean {
  return folderWatch && !json && process.stderr.isTTY === true
}

/** Shows the output of workers of folders and their failed jobs. */
export function viewOnTerminal({ services }: App, served: readonly ServedFolder[], log: Log): TerminalView {
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
