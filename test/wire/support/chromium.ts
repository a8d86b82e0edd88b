/** Chromium, driven by Playwright; for tests and benchmarks. */
import { type Browser, chromium } from 'playwright-core'

export type { Browser, BrowserContext, Locator, Page } from 'playwright-core'

/** Starts Chromium. @param program its file */
export function launchChromium(program: string): Promise<Browser> {
  return chromium.launch({
    executablePath: program,
    // Tests run as root, where Chromium has no sandbox, in machines whose /dev/shm may be small.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
  })
}
