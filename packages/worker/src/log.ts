import { AsyncLocalStorage } from 'node:async_hooks'
import { format } from 'node:util'
import type { Job } from './types.ts'

type Level = 'DEBUG' | 'INFO' | 'WARN' | 'ERROR'

const current = new AsyncLocalStorage<string>()

/**
 * Writes one log line to stdout. On a platform (`RUNPOD_ENDPOINT_ID` is set) it is a JSON object that names the job,
 * so that the line can be shown with it; elsewhere it is plain text. `job` is a job or its id; by default the job
 * whose handler is calling.
 */
export function log(message: string, about: { job?: Job | string | null; level?: Level } = {}): void {
  const { job = current.getStore() ?? null, level = 'INFO' } = about
  const requestId = job !== null && typeof job === 'object' ? job.id : job
  const line = process.env.RUNPOD_ENDPOINT_ID
    ? JSON.stringify({ requestId, message, level })
    : `${level.padEnd(5)} | ${requestId === null ? '' : `${requestId} | `}${message}`
  process.stdout.write(`${line}\n`)
}

/** Runs `action` so that whatever it logs, also later on, is attributed to the job. */
export function asJob<T>(jobId: string, action: () => T): T {
  return current.run(jobId, action)
}

/** On a platform, makes `console.log` and its siblings write the same JSON lines as `log`. */
export function captureConsole(): void {
  if (!process.env.RUNPOD_ENDPOINT_ID) return
  const levels = { debug: 'DEBUG', log: 'INFO', info: 'INFO', warn: 'WARN', error: 'ERROR' } as const
  for (const [method, level] of Object.entries(levels) as [keyof typeof levels, Level][]) {
    console[method] = (...items: unknown[]) => log(format(...items), { level })
  }
}
