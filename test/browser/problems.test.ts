/** Problems as the console shows them: the same numbers on every page, and the reason where a person looks for it. */
import assert from 'node:assert/strict'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { patient } from '../support/patience.ts'
import { balancedEndpoint, inNode } from '../wire/support/balanced.ts'
import { browserSkip, openBrowser } from '../wire/support/browser.ts'
import type { Browser, Page } from '../wire/support/chromium.ts'
import { temporaryFolder } from '../wire/support/cleanup.ts'
import { ask, submit, whenFinal } from '../wire/support/client.ts'
import { root, type Server, startServer } from '../wire/support/server.ts'
import { until } from '../wire/support/until.ts'
import { Visitor } from './support/console.ts'

/** Crashes at its import while it has this variable. */
const HANDLER = `import { start } from '@runyard/worker'
if (process.env.MODEL === 'broken') throw new Error('no such model: broken')
start({ handler({ input }) {
  if (input.fail) throw new Error('the weights are gone')
  return { echo: input }
} })
`

describe('problems in the console', { skip: browserSkip, timeout: patient(240_000) }, () => {
  let server: Server
  let browser: Browser
  /** The load-balancing endpoint of the first test. */
  let balanced: string
  /** Status of the receiver of webhooks. */
  let answer = 500
  const receiver = createServer((_, response) => response.writeHead(answer).end())
  before(async () => {
    receiver.listen(0, '127.0.0.1')
    const workers = ['picky', 'flaky'].flatMap(name => ['--worker', workerFolder(name)])
    server = await startServer({ args: [...workers, '--sample', '--process-root', '/'] })
    browser = await openBrowser()
  })
  after(() => receiver.close())

  async function at(path: string): Promise<{ visitor: Visitor; page: Page }> {
    const visitor = await (await Visitor.at(browser, server)).signIn(server.apiKey, path)
    return { visitor, page: visitor.page }
  }

  test('the header of a load-balancing endpoint counts the requests that its metrics count', async () => {
    const { id, base } = await balancedEndpoint(server, { ...inNode, workers: { min: 1 } })
    balanced = id
    const authorization = { authorization: `Bearer ${server.apiKey}` }
    const failing = ['/seen?status=500', '/seen?status=503']
    for (const path of ['/', '/seen', '/seen?n=2', ...failing]) await fetch(base + path, { headers: authorization })
    const { visitor, page } = await at(`/endpoints/${id}/metrics?view=table`)
    const figure = (name: string) => page.locator('.figure').filter({ has: page.getByText(name, { exact: true }) })
    await figure('Completed').getByText('3', { exact: true }).waitFor()
    await figure('Failed').getByText('2', { exact: true }).waitFor()
    const { points } = (await ask(server, `/v2/serverless/${id}/metrics`)).json
    const counted = (of: 'completed' | 'failed') =>
      points.reduce((sum: number, { requests }: { requests: Record<string, number> }) => sum + requests[of]!, 0)
    assert.deepEqual([counted('completed'), counted('failed')], [3, 2])
    // Its health is that of the endpoint, not the path with which the gateway asks a worker.
    await visitor.open(`/endpoints/${id}`)
    const health = page.getByText(`${server.url}/v2/${id}/health`)
    await health.first().waitFor()
    const failures = page.getByRole('region', { name: 'Failures of the last hour' })
    await failures.getByText('2 of 5 requests failed in the last hour (40%).').waitFor()
    await failures.getByRole('link', { name: 'When they failed' }).waitFor()
    visitor.assertClean()
  })

  test('the metrics show crashes of workers, and a chart without numbers says why', async () => {
    await ask(server, '/v2/serverless/picky', { method: 'PATCH', body: { env: { MODEL: 'broken' } } })
    await ask(server, '/v2/picky/run', { body: { input: {} } })
    const crashed = async () =>
      (await ask(server, '/v2/serverless/picky/metrics')).json.points.some(
        (point: { crashes: number }) => point.crashes > 0,
      )
    await until('a worker to crash', crashed)
    const { visitor, page } = await at('/endpoints/picky/metrics')
    const chart = (name: string) => page.locator('section').filter({ has: page.getByRole('heading', { name }) })
    await chart('Crashes of workers').locator('canvas, svg').first().waitFor()
    await chart('Queue').getByText('Highest number of requests').waitFor()
    await chart('Requests by result').getByText('No request ended in this time.').waitFor()
    await ask(server, '/v2/picky/purge-queue', { body: {} })
    await ask(server, '/v2/serverless/picky', { method: 'PATCH', body: { env: {} } })
    visitor.assertClean()
  })

  test('an endpoint that cannot keep a worker ready is a problem with its reason, though nothing waits', async () => {
    const template = { env: { TOKEN: '{{ RUNPOD_SECRET_token }}' }, workers: { min: 1 } }
    const change = await ask(server, '/v2/serverless/picky', { method: 'PATCH', body: template })
    assert.equal(change.status, 200, change.text)
    const { visitor, page } = await at('/endpoints?show=attention')
    const row = page.getByRole('row').filter({ hasText: 'picky' })
    await row.getByText('Problem').waitFor()
    await row.getByText('to be kept ready, but no worker can be started').waitFor()
    await visitor.open('/')
    const item = page.getByRole('listitem').filter({ has: page.getByRole('link', { name: 'picky', exact: true }) })
    await item.getByText('A secret is missing').waitFor()
    await item.getByRole('link', { name: 'Create the secret token' }).waitFor()
    const whole = { env: {}, workers: { min: 0 } }
    await ask(server, '/v2/serverless/picky', { method: 'PATCH', body: whole })
    visitor.assertClean()
  })

  test('the list of endpoints has the problem first, with its whole reason', async () => {
    // The job waits for the next test, too.
    await ask(server, '/v2/serverless/picky', { method: 'PATCH', body: { workers: { max: 0 } } })
    await ask(server, '/v2/picky/run', { body: { input: {} } })
    const { visitor, page } = await at('/endpoints')
    const first = page.locator('[data-row="0"]')
    await first.getByRole('link', { name: 'picky' }).waitFor()
    const line = first.locator('.line')
    await line.getByText('jobs are accepted and wait').waitFor()
    const cut = await line
      .locator('span')
      .evaluate(text => text.parentElement!.scrollWidth > text.parentElement!.clientWidth)
    assert.equal(cut, false)
    visitor.assertClean()
  })

  test('what waits is the same number on each page, and a long list of endpoints fills the window', async () => {
    for (const input of [{}, { n: 2 }, { n: 3 }]) await ask(server, '/v2/picky/run', { body: { input } })
    const lowPriority = { input: {}, policy: { lowPriority: true } }
    await ask(server, '/v2/picky/run', { body: lowPriority })
    const { visitor, page } = await at('/endpoints/picky')
    const shown = (name: string) => page.locator('.figure').filter({ has: page.getByText(name, { exact: true }) })
    await shown('In queue').getByText('5', { exact: true }).waitFor()
    await visitor.open('/')
    await shown('Waiting').getByText('5', { exact: true }).waitFor()
    await page.getByText('5 jobs waiting').waitFor()
    assert.equal((await overviewRow(server, 'picky')).jobs.inQueue, 5)
    const cpu = [{ id: 'cpu3g', vcpuCount: 2 }]
    const more = { type: 'QUEUE', image: 'example/none:1', cpu, scaling: { type: 'QUEUE_DELAY', queueDelay: 4 } }
    const fill = async (upTo: number) => {
      const { endpoints } = (await ask(server, '/v2/serverless')).json
      for (let n = endpoints.length; n < upTo; n += 1)
        await ask(server, '/v2/serverless', { body: { ...more, name: `one-of-many-${n}`, workers: { max: 0 } } })
    }
    const table = page.getByRole('table', { name: 'Endpoints' })
    /** Pixels of the list that are hidden, and those of nothing between its end and that of the window. */
    const measured = () =>
      table.evaluate(list => {
        const scrolled = [list, ...list.querySelectorAll('*')].map(part => part.scrollHeight - part.clientHeight)
        return {
          hidden: Math.max(...scrolled.filter((_, at) => at < 3)),
          below: innerHeight - list.getBoundingClientRect().bottom,
        }
      })
    await fill(14)
    await visitor.open('/endpoints')
    await table.locator('[data-row="13"]').waitFor()
    assert.ok((await measured()).hidden <= 1, 'all 14 rows are shown')
    await fill(40)
    await visitor.open('/endpoints')
    await table.locator('[data-row="8"]').waitFor()
    const { below } = await measured()
    assert.ok(below < 100, `${below} pixels of nothing are below the list`)
    visitor.assertClean()
  })

  test('the first job of a page of requests is in the upper half of the window', async () => {
    for (const [width, height] of [
      [1280, 800],
      [390, 800],
    ] as const) {
      const visitor = await Visitor.at(browser, server, { width, height })
      await visitor.signIn(server.apiKey, '/endpoints/picky/requests')
      const row = visitor.page.getByRole('table', { name: 'Jobs' }).locator('[data-row="0"]')
      await row.waitFor()
      const { y } = (await row.boundingBox())!
      assert.ok(y < (width === 1280 ? 320 : 520), `it is at ${y} of ${height} pixels`)
      visitor.assertClean()
    }
    await ask(server, '/v2/picky/purge-queue', { body: {} })
    await ask(server, '/v2/serverless/picky', { method: 'PATCH', body: { workers: { max: 3 } } })
  })

  test('a batch that is stuck says what is wrong with its endpoint, and its cancel names the requests', async () => {
    await ask(server, '/v2/serverless/picky', { method: 'PATCH', body: { env: { MODEL: 'broken' } } })
    const requests = [1, 2, 3].map(n => ({ input: { n } }))
    const { json: batch } = await ask(server, '/v2/picky/batch', { body: { name: 'night', requests } })
    await ask(server, `/v2/picky/batch/${batch.id}/finalize`, { body: {} })
    const { visitor, page } = await at('/batches')
    const row = page.getByRole('row').filter({ hasText: 'night' })
    await row.getByText('Workers crash').waitFor()
    await row.getByText(/crashed|exited with code 1/).waitFor()
    assert.equal(await row.getByRole('link', { name: 'picky' }).getAttribute('href'), '/endpoints/picky')
    await row.getByText('night').click()
    const drawer = page.getByRole('dialog').first()
    await drawer.getByText('no such model: broken').first().waitFor()
    await drawer.getByRole('link', { name: 'Open the endpoint' }).waitFor()
    // No release of it has had a ready worker, so that none is a way back.
    await drawer.getByRole('button', { name: 'Try again now' }).waitFor()
    assert.equal(await drawer.getByRole('button', { name: /^Roll back/ }).count(), 0)
    await drawer.getByRole('button', { name: 'Cancel the batch' }).click()
    await page.getByText('3 waiting requests will be cancelled.').waitFor()
    await page.getByRole('button', { name: 'Cancel 3 waiting requests' }).click()
    await drawer.locator('.figure').getByText('cancelled').waitFor()
    assert.equal(await page.getByText('Workers crash').count(), 0)
    assert.deepEqual(await visitor.axe(), [])
    await ask(server, '/v2/serverless/picky', { method: 'PATCH', body: { env: {} } })
    visitor.assertClean()
  })

  test('webhooks of all endpoints have their receiver without its secrets, and are sent again', async () => {
    const { port } = receiver.address() as AddressInfo
    const webhook = `http://127.0.0.1:${port}/hook?token=secret`
    const { json: job } = await ask(server, '/v2/hellonode/run', { body: { input: { name: 'Ada' }, webhook } })
    const { visitor, page } = await at('/webhooks')
    const row = page.getByRole('row').filter({ hasText: `127.0.0.1:${port}/hook?…` })
    await row.getByText('hello-node').waitFor()
    // On a busy machine its tries may be over by now.
    const failing = row.getByText(/waits|tried \d of 3|given up/)
    await failing.waitFor()
    assert.ok(!(await page.locator('main').innerText()).includes('secret'))
    await failing.click()
    const send = page.getByRole('dialog').getByRole('button', { name: /^(Try now|Send again)$/ })
    await send.waitFor()
    answer = 204
    const delivered = page.getByRole('dialog').getByText('delivered')
    await Promise.race([send.click(), delivered.waitFor()])
    await delivered.waitFor()
    await send.waitFor({ state: 'detached' })
    await visitor.open('/jobs')
    await page.getByRole('row').filter({ hasText: 'hello-node' }).getByText('Completed').click()
    await page.waitForURL(`**/endpoints/hellonode/requests?job=${job.id}`)
    // The handler prints nothing.
    await page.getByRole('dialog').getByText('Nothing was printed for this job.').waitFor()
    visitor.assertClean()
  })

  test('an endpoint of whose requests a third fails is not ready but failing, with the first cause', async () => {
    for (let n = 0; n < 20; n += 1) {
      const job = await submit(server, 'flaky', { fail: n % 20 < 7, n })
      await whenFinal(server, 'flaky', job)
    }
    const share = async () => (await overviewRow(server, 'flaky')).rate.failingShare
    await until('the rate to be counted', async () => (await share()) !== null)
    const { visitor, page } = await at('/endpoints?show=attention')
    const row = page.getByRole('row').filter({ hasText: 'flaky' })
    await row.getByText('35% fail').waitFor()
    assert.equal(await row.getByText('Ready').count(), 0)
    await visitor.open('/')
    const item = page.getByRole('listitem').filter({ has: page.getByRole('link', { name: 'flaky', exact: true }) })
    await item.getByText('35% of 20 requests failed in the last hour, and 35% in the last ten minutes.').waitFor()
    await item.getByText('Most often (7 times)').waitFor()
    await item.getByRole('link', { name: 'the weights are gone' }).waitFor()
    await visitor.open('/endpoints/flaky')
    const failures = page.getByRole('region', { name: 'Failures of the last hour' })
    await failures.getByText('7 of 20 jobs failed in the last hour (35%).').waitFor()
    await failures.getByText('Most often (7 times)').waitFor()
    await failures.getByRole('link', { name: 'Failed jobs of the last hour' }).waitFor()
    assert.deepEqual(await visitor.axe(), [])
    await failures.getByRole('link', { name: 'the weights are gone' }).click()
    await page.getByRole('row').filter({ hasText: 'Failed' }).first().waitFor()
    // An endpoint without failures says nothing.
    await visitor.open('/endpoints/hellonode')
    await page.getByRole('heading', { name: 'Call it' }).waitFor()
    assert.equal(await page.getByText('failed in the last hour').count(), 0)
    visitor.assertClean()
  })

  test('batches with failures and slow releases are whole on a telephone', async () => {
    const batch = async (name: string, failures: readonly boolean[]) => {
      const requests = failures.map((fail, n) => ({ customId: String(n), input: { fail } }))
      const { json } = await ask(server, '/v2/flaky/batch', { body: { name, requests } })
      await ask(server, `/v2/flaky/batch/${json.id}/finalize`, { body: {} })
      return json.id
    }
    await batch('the night of the long renders', [true, ...Array(11).fill(false)])
    const last = await batch('all', [true, true])
    const ended = async () => (await ask(server, `/v2/flaky/batch/${last}`)).json.requestFailed === 2
    await until('the batches to end', ended)
    const visitor = await (await Visitor.at(browser, server, { width: 390 })).signIn(server.apiKey, '/batches')
    const { page } = visitor
    const row = page.getByRole('row').filter({ hasText: 'the night of the long renders' })
    for (const path of ['/batches', '/batches?endpoint=flaky']) {
      await visitor.open(path)
      for (const text of ['some failed', '12 of 12', '1 failed']) await row.getByText(text).waitFor()
      assert.deepEqual(await visitor.cutStates(), [], path)
    }
    // Jobs that take an hour.
    await page.route(/\/v2\/serverless\/flaky\/metrics\b/, async route => {
      const executionMs = { count: 12_345, p50: 550_000, p90: 3_000_000, p95: 3_408_000, p99: 3_500_000 }
      const releases = [{ version: 1, ended: 12_345, failed: 12_345, executionMs }]
      await route.fulfill({ contentType: 'application/json', body: JSON.stringify({ points: [], releases }) })
    })
    await visitor.open('/endpoints/flaky/releases')
    await page.getByText('56 min 48 s').waitFor()
    assert.deepEqual(await visitor.cutStates(), [])
    visitor.assertClean()
  })

  test('usage of a load-balancing endpoint has the requests that its header has', async () => {
    // Counts are stored some seconds after their requests, which were those of the first test.
    const used = async () =>
      (await ask(server, `/v2/billing/serverless?lastN=1&serverlessId=${balanced}`)).text.includes('"completed":3')
    await until('usage to have them', used)
    const { visitor, page } = await at('/usage')
    const row = page.getByRole('table', { name: 'Usage by endpoint' }).getByRole('row').filter({ hasText: 'balanced-' })
    await row.waitFor()
    assert.match(await row.innerText(), /\b3\s+2$/)
    visitor.assertClean()
  })

  test('the log of a job says whether it is read, was empty, or is no longer kept', async () => {
    const job = await submit(server, 'hellonode', { name: 'Grace' })
    await whenFinal(server, 'hellonode', job)
    const { visitor, page } = await at('/')
    const answered = Promise.withResolvers<void>()
    const note = { text: 'the output of its worker is no longer kept', lost: true }
    await page.route(/\/logs\b.*job=/, async route => {
      await answered.promise
      const body = `event: note\ndata: ${JSON.stringify(note)}\n\nevent: end\ndata: {}\n\n`
      await route.fulfill({ contentType: 'text/event-stream', body })
    })
    await visitor.open(`/endpoints/hellonode/requests?job=${job}`)
    const drawer = page.getByRole('dialog')
    await drawer.getByText('Reading the output…').waitFor()
    assert.equal(await drawer.getByText('Nothing was printed').count(), 0)
    answered.resolve()
    await drawer.getByText(note.text).waitFor()
    await drawer.getByText('Reading the output…').waitFor({ state: 'detached' })
    assert.equal(await drawer.getByText('Nothing was printed').count(), 0)
    visitor.assertClean()
  })
})

async function overviewRow(server: Server, id: string) {
  const { json } = await ask(server, '/v2/overview')
  return json.endpoints.find((row: { id: string }) => row.id === id)
}

function workerFolder(name: string): string {
  const folder = join(temporaryFolder(), name)
  mkdirSync(join(folder, 'node_modules/@runyard'), { recursive: true })
  symlinkSync(join(root, 'packages/worker'), join(folder, 'node_modules/@runyard/worker'))
  writeFileSync(join(folder, 'handler.mjs'), HANDLER)
  return folder
}
