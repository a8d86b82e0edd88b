/** Loads of pages: what they read, by which clock they count, and what becomes of them while the server is away. */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { patient } from '../support/patience.ts'
import { browserSkip, openBrowser } from '../wire/support/browser.ts'
import type { Browser, Page } from '../wire/support/chromium.ts'
import { ask, submit, whenFinal } from '../wire/support/client.ts'
import { type Server, startServer } from '../wire/support/server.ts'
import { until } from '../wire/support/until.ts'
import { Visitor } from './support/console.ts'

const HOUR_MS = 3_600_000

/** Pages with data of their own. */
const PAGES = [
  ...['/', '/endpoints', '/models', '/playground', '/jobs', '/batches', '/webhooks', '/events'],
  ...['/machine', '/templates', '/secrets', '/volumes', '/usage', '/alerts', '/keys', '/accounts', '/audit'],
  ...['', '/requests', '/metrics', '/workers', '/releases', '/settings'].map(tab => `/endpoints/hellonode${tab}`),
]

/** An age of two units, or with a part of a second. */
const LONG_AGE = /\d+\.\d+ s ago|\d+ (?:d|h|min) \d+ (?:h|min|s) ago/

describe('loads of pages of the console', { skip: browserSkip, timeout: patient(200_000) }, () => {
  let server: Server
  let browser: Browser
  before(async () => {
    server = await startServer({ args: ['--sample'] })
    browser = await openBrowser()
    // A worker that ends is an event, after which pages read again.
    const kept = { method: 'PATCH', body: { workers: { idleTimeout: 3_600 } } } as const
    assert.equal((await ask(server, '/v2/serverless/hellonode', kept)).status, 200)
    for (const name of ['Ada', 'Grace', 'Edsger']) {
      await whenFinal(server, 'hellonode', await submit(server, 'hellonode', { name }))
    }
    const idle = async () => (await ask(server, '/v2/hellonode/health')).json.workers.idle === 1
    await until('the worker to be idle', idle)
    await ask(server, '/v2/account/secrets', { body: { name: 'token', value: 'hush' } })
  })

  test('read each address of the API once, and say ages in one unit', async () => {
    const visitor = await Visitor.at(browser, server)
    const { page } = visitor
    const stream = () => page.waitForResponse(response => new URL(response.url()).pathname === '/v2/events')
    // The last read of a page: one that comes later than that of the next page would count there.
    const streamedFirst = stream()
    await visitor.signIn(server.apiKey, '/no-such-page')
    await streamedFirst
    // Reads that come in intervals depend on the time that a load takes.
    await page.addInitScript(() => {
      globalThis.setInterval = (() => 0) as unknown as typeof setInterval
    })
    const reads: string[] = []
    page.on('request', request => {
      const { pathname, search } = new URL(request.url())
      if (/^\/(?:v2|ops|openai|console\/session|graphql)/.test(pathname))
        reads.push(`${request.method()} ${pathname}${search.replaceAll(/\d{4}-\d\d-\d\dT[^&]*/g, 'time')}`)
    })
    const twice: Record<string, readonly string[]> = {}
    for (const path of PAGES) {
      reads.length = 0
      const streamed = stream()
      await visitor.open(path)
      await streamed
      await until('the page to be read', async () => (await page.locator('.loading').count()) === 0)
      // A read that an event asks for comes 250 ms after the one before.
      await page.waitForTimeout(500)
      const again = reads.filter((read, at) => reads.indexOf(read) !== at)
      if (again.length > 0) twice[path] = again
      assert.doesNotMatch(await page.locator('main').innerText(), LONG_AGE, path)
    }
    assert.deepEqual(twice, {})
    visitor.assertClean()
  })

  for (const [words, byMs] of [
    ['ahead', 1.2 * HOUR_MS],
    ['behind', -1.2 * HOUR_MS],
  ] as const)
    test(`show ages and metrics by the clock of the server, where that of the browser is ${words}`, async () => {
      const visitor = await Visitor.at(browser, server)
      const { page } = visitor
      await page.addInitScript(by => {
        const real = Date
        globalThis.Date = class extends real {
          constructor(...given: []) {
            if (given.length === 0) super(real.now() + by)
            else super(...given)
          }

          static override now() {
            return real.now() + by
          }
        } as DateConstructor
      }, byMs)
      await visitor.signIn(server.apiKey, '/endpoints/hellonode/requests')
      const job = await submit(server, 'hellonode', { name: 'now' })
      const row = page.getByRole('row').filter({ has: page.getByTitle(job, { exact: true }) })
      await row.getByText('Completed').waitFor()
      // On a slow machine some minutes may have passed, and never an hour.
      assert.match(await row.innerText(), /\bnow\b|\b\d+ (?:s|min)\b/)
      assert.doesNotMatch(await row.innerText(), /\b\d+ [hd]\b/)
      await visitor.open('/endpoints/hellonode/metrics?view=table')
      const counted = await until('the metrics to have the jobs', async () => (await completedInTable(page)) || null)
      assert.ok(counted >= 4, `${counted} requests are in the metrics`)
      visitor.assertClean()
    })

  test('recover by themselves where a part could not be read while the server was away', async () => {
    const visitor = await (await Visitor.at(browser, server)).signIn(server.apiKey, '/endpoints')
    const { page } = visitor
    let refused = 0
    await page.route('**/v2/account/secrets*', async route => {
      refused += 1
      if (refused > 2) return route.continue()
      await route.fulfill({ status: 503, json: { title: 'starting', status: 503, detail: 'the server starts' } })
    })
    await page.getByRole('link', { name: 'Secrets' }).click()
    await page.getByText('the server starts').waitFor()
    await page.getByRole('table', { name: 'Secrets' }).getByText('token').waitFor()
    assert.equal(await page.getByText('the server starts').count(), 0)
    visitor.assertClean()
  })
})

/** Sum of the column of completed requests; 0 while there is no table. */
async function completedInTable(page: Page): Promise<number> {
  const table = page.getByRole('table').filter({ hasText: 'Completed' }).first()
  if ((await table.count()) === 0) return 0
  const rows = await table
    .getByRole('row')
    .evaluateAll(all =>
      all.map(row =>
        [...row.querySelectorAll('[role=cell], [role=columnheader], td, th')].map(
          cell => cell.textContent?.trim() ?? '',
        ),
      ),
    )
  const at = rows[0]?.findIndex(title => /completed/i.test(title)) ?? -1
  if (at < 0) return 0
  return rows.slice(1).reduce((sum, cells) => sum + (Number(cells[at]) || 0), 0)
}
