/** The programs that tests use, which may be installed while pure tests run. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** Time between two looks, in milliseconds. */
const LOOK_MS = 200

/**
 * Resolves once all programs are installed: at once, or when the file exists that RUNYARD_TEST_READY names. Its lines
 * `<name>=<value>` are variables that become part of the environment.
 * @throws Error if the folder of the file does not exist: the installation was given up
 */
export async function waitForPrograms(): Promise<void> {
  const file = process.env.RUNYARD_TEST_READY
  if (file === undefined) return
  while (!existsSync(file)) {
    if (!existsSync(dirname(file))) throw new Error(`no programs are installed for tests: ${dirname(file)} is missing`)
    await sleep(LOOK_MS)
  }
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    const at = line.indexOf('=')
    if (at > 0) process.env[line.slice(0, at)] = line.slice(at + 1)
  }
}
