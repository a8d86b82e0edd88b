import type { Config } from './config.ts'
import { withQuery } from './config.ts'
import { createClient } from './http.ts'
import { log } from './log.ts'
import { version } from './version.ts'

/** Looks at something that jobs need, and throws when it is not there. */
export type FitnessCheck = () => unknown

const reportMs = 2000
const longestReason = 256

const checks: FitnessCheck[] = []
let closed = false

/**
 * Has `check` run before the first job is taken, after those that were registered earlier. When it throws or rejects,
 * the platform is told its name and the reason, and the worker exits with 1 without having taken a job. Not run without
 * a platform. Throws an `Error` once `start` was called.
 */
export function registerFitnessCheck(check: FitnessCheck): void {
  if (typeof check !== 'function') throw new TypeError('registerFitnessCheck needs a function')
  if (closed) throw new Error('register fitness checks before start is called')
  checks.push(check)
}

/** No check can be registered from now on. */
export function closeFitnessChecks(): void {
  closed = true
}

/** Runs the checks one after another. Resolves to whether all passed; the first that fails is reported. */
export async function runFitnessChecks(config: Config): Promise<boolean> {
  for (const [index, check] of checks.entries()) {
    const name = check.name || `check ${index + 1}`
    try {
      await check()
      log(`fitness check passed: ${name}`, { job: null, level: 'DEBUG' })
    } catch (error) {
      const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
      log(`fitness check failed: ${name} | ${reason}`, { job: null, level: 'ERROR' })
      await report(config, name, reason)
      return false
    }
  }
  return true
}

/** Best effort: the exit says it too, only less well. */
async function report(config: Config, check: string, reason: string): Promise<void> {
  if (!config.pingUrl || !config.token) return
  const about = { status: 'unhealthy', check, reason: reason.slice(0, longestReason), runpod_version: version }
  const client = await createClient(config)
  const url = withQuery(config.pingUrl, about)
  await client.send({ url, timeoutMs: reportMs, cancel: AbortSignal.timeout(reportMs) }).catch(() => undefined)
}
