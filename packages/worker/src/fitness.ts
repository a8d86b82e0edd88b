import type { Config } from './config.ts'
import { withQuery } from './config.ts'
import { createClient } from './http.ts'
import { log } from './log.ts'
import { version } from './version.ts'

/** Checks something that jobs need, and throws if it is missing. */
export type FitnessCheck = () => unknown

const reportMs = 2000
const longestReason = 256

const checks: FitnessCheck[] = []
let closed = false

/**
 * Registers `check` to run before the first job is taken, after the checks that were registered earlier. If it throws
 * or rejects, the worker reports its name and the reason to the platform and exits with 1 without taking a job. It
 * does not run without a platform. Throws an `Error` once `start` was called.
 */
export function registerFitnessCheck(check: FitnessCheck): void {
  if (typeof check !== 'function') throw new TypeError('registerFitnessCheck needs a function')
  if (closed) throw new Error('register fitness checks before start is called')
  checks.push(check)
}

/** Refuses all later registrations. */
export function closeFitnessChecks(): void {
  closed = true
}

/** Runs the checks one after another. Resolves to true if all passed; the first that fails is reported. */
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

/** Reports a failed check as well as it can: the exit code shows the failure too, without its reason. */
async function report(config: Config, check: string, reason: string): Promise<void> {
  if (!config.pingUrl || !config.token) return
  const about = { status: 'unhealthy', check, reason: reason.slice(0, longestReason), runpod_version: version }
  const client = await createClient(config)
  const url = withQuery(config.pingUrl, about)
  await client.send({ url, timeoutMs: reportMs, cancel: AbortSignal.timeout(reportMs) }).catch(() => undefined)
}
