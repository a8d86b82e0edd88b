/** The programs that tests use, which may be installed while pure tests run. */
import { existsSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** Time between two looks, in milliseconds. */
const LOOK_MS = 200

/**
 * Resolves once all programs are installed: at once, or when the file exists that RUNYARD_TEST_READY names. Its lines
 * `<name>=<value>` are variables that become part of the environment.
 */
export async function waitForPrograms(): Promise<void> {
  const file = process.env.RUNYARD_TEST_READY
  if (file === undefined) return
  while (!existsSync(file)) await sleep(LOOK_MS)
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    const at = line.indexOf('=')
    if (at > 0) process.env[line.slice(0, at)] = line.slice(at + 1)
  }
}
