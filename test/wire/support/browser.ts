/** A browser; tests that need it are skipped where it is not installed. */
import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'
import { atEnd } from './cleanup.ts'

const program = process.env.RUNYARD_TEST_CHROMIUM ?? ''

/** Why there is no browser; false when there is one. */
export const browserSkip = missing()

function missing(): string | false {
  if (program !== '' && existsSync(program)) return false
  const problem = 'RUNYARD_TEST_CHROMIUM names no program of Chromium'
  if (process.env.RUNYARD_NO_SKIP === '1') throw new Error(problem)
  return problem
}

/** Starts Chromium, which ends with the test file. */
export async function openBrowser(): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: program,
    // Tests run as root, where Chromium has no sandbox, in machines whose /dev/shm may be small.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
  })
  atEnd(() => browser.close())
  return browser
}
