/** A browser; tests that need it are skipped where it is not installed. */
import { existsSync } from 'node:fs'
import { type Browser, launchChromium } from './chromium.ts'
import { atEnd } from './cleanup.ts'

const program = process.env.RUNYARD_TEST_CHROMIUM ?? ''

/** Reason why tests with a browser cannot run; false if they can. */
export const browserSkip = missing()

function missing(): string | false {
  if (program !== '' && existsSync(program)) return false
  const problem = 'RUNYARD_TEST_CHROMIUM names no program of Chromium'
  if (process.env.RUNYARD_NO_SKIP === '1') throw new Error(problem)
  return problem
}

/** Starts Chromium, which ends with the test file. */
export async function openBrowser(): Promise<Browser> {
  const browser = await launchChromium(program)
  atEnd(() => browser.close())
  return browser
}
