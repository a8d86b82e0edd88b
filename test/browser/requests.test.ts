/**
 * Requests in the console: the runner in each mode, the live list, the drawer of a job, and
 * actions on many jobs.
 */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { patient } from '../support/patience.ts'
import { browserSkip, openBrowser } from '../wire/support/browser.ts'
import type { Browser, Locator, Page } from '../wire/support/chromium.ts'
import { temporaryFolder } from '../wire/support/cleanup.ts'
import { ask, submit, whenFinal } from '../wire/support/client.ts'
import { root, type Server, startServer } from '../wire/support/server.ts'
import { Visitor } from './support/console.ts'

/** Longest time from the acceptance of a job to its row, in ms; far more than it takes where nothing else runs. */
const SEEN_WITHIN_MS = 3_000

describe('requests in the console', { skip: browserSkip, timeout: patient(240_000) }, () => {
  const folder = temporaryFolder()
  let server: Server
  let browser: Browser
  let gates = 0
  before(async () => {
    server = await startServer({ args: ['--sample', '--worker', `${root}/test/browser/fixtures/gated`] })
    browser = await openBrowser()
  })

  /** A gate that holds jobs until it is opened. */
  function newGate(): { path: string; open: () => void } {
    gates += 1
    const path = join(folder, `gate-${gates}`)
    return { path, open: () => writeFileSync(path, '') }
  }

  async function at(path: string): Promise<{ visitor: Visitor; page: Page; result: Locator }> {
    const visitor = await (await Visitor.at(browser, server)).signIn(server.apiKey, path)
    const result = visitor.page.getByRole('region', { name: 'Result of the request' })
    return { visitor, page: visitor.page, result }
  }

  test('are run, and what comes out of them is shown with its times', async () => {
    const { visitor, page, result } = await at('/endpoints/gated/requests')
    await page.getByRole('button', { name: 'New request' }).click()
    for (const mode of ['Run', 'Run and wait']) {
      const gate = newGate()
      await page.getByRole('button', { name: mode, exact: true }).click()
      await page.getByLabel('Input (JSON)').fill(JSON.stringify({ gate: gate.path, by: mode }))
      await page.getByRole('button', { name: 'Send the request' }).click()
      await result.getByText('Running').waitFor()
      gate.open()
      await result.getByText('Completed').waitFor()
      await result.getByText(`"by": "${mode}"`).waitFor()
      await result.getByText(/^took/).waitFor()
    }
    // The sent request is kept for the next visit.
    await page.reload()
    await page.getByLabel('Earlier inputs').selectOption({ index: 2 })
    assert.match(await page.getByLabel('Input (JSON)').inputValue(), /"by":"Run"/)
    visitor.assertClean()
  })

  test('stream their chunks while the job runs', async () => {
    const gate = newGate()
    const { visitor, page, result } = await at('/endpoints/gated/requests?run=stream')
    await page
      .getByLabel('Input (JSON)')
      .fill(JSON.stringify({ words: ['first ', 'second ', 'third'], gate: gate.path }))
    await page.getByRole('button', { name: 'Send the request' }).click()
    await result.getByText('1 chunk, more may follow').waitFor()
    assert.equal(await result.locator('pre').innerText(), 'first ')
    gate.open()
    await result.getByText('first second third', { exact: true }).waitFor()
    await result.getByText('Completed').waitFor()
    await result.getByText('3 chunks', { exact: true }).waitFor()
    visitor.assertClean()
  })

  test('chat as OpenAI clients do, word by word', async () => {
    const gate = newGate()
    const { visitor, page, result } = await at('/endpoints/gated/requests?run=openai')
    const chat = {
      model: 'tiny',
      stream: true,
      gate: gate.path,
      messages: [{ role: 'user', content: 'one two three' }],
    }
    await page.getByLabel('Chat request (JSON)').fill(JSON.stringify({ ...chat, messages: undefined }))
    await page.getByText('a chat needs "messages"').waitFor()
    await page.getByLabel('Chat request (JSON)').fill(JSON.stringify(chat))
    await page.getByRole('button', { name: 'Send the request' }).click()
    await result.getByText('one', { exact: true }).waitFor()
    await result.getByText('Running').waitFor()
    gate.open()
    await result.getByText('one two three', { exact: true }).waitFor()
    await result.getByText('Completed').waitFor()
    visitor.assertClean()
  })

  test('that are wrong are not sent, and what the server refuses is said', async () => {
    const { visitor, page, result } = await at('/endpoints/gated/requests?run=run')
    const send = page.getByRole('button', { name: 'Send the request' })
    await page.getByLabel('Input (JSON)').fill('{"name": ')
    await page
      .getByText(/JSON/)
      .filter({ hasText: /Unexpected end/ })
      .waitFor()
    assert.equal(await send.isDisabled(), true)
    await page.getByLabel('Input (JSON)').fill('[1]')
    await page.getByText('it must be a JSON object').waitFor()
    assert.equal(await send.isDisabled(), true)
    await page.getByLabel('Input (JSON)').fill('{}')
    await page.getByText('Options', { exact: true }).click()
    await page.getByLabel('Execution timeout (s)').fill('1')
    await send.click()
    await result
      .getByRole('alert')
      .filter({ hasText: /executionTimeout/ })
      .waitFor()
    await result.getByText('Not run').waitFor()
    // The user corrects it in its field.
    await page.getByLabel('Execution timeout (s)').fill('60')
    await send.click()
    await result.getByText('Completed').waitFor()
    visitor.assertClean()
  })

  test('are in the list as soon as they are accepted, and end in it without a reload', async () => {
    const gate = newGate()
    const { visitor, page, result } = await at('/endpoints/gated/requests?run=run')
    await page.getByRole('table', { name: 'Jobs' }).waitFor()
    await page.evaluate(() => {
      const seen: Record<string, number> = {}
      Object.assign(globalThis, { seen })
      new MutationObserver(() => {
        for (const link of document.querySelectorAll('[aria-label="Jobs"] [role="row"] a')) {
          const { title } = link as HTMLElement
          seen[title] ??= performance.now()
        }
      }).observe(document.body, { subtree: true, childList: true })
    })
    await page.getByLabel('Input (JSON)').fill(JSON.stringify({ gate: gate.path }))
    await page.getByRole('button', { name: 'Send the request' }).click()
    const href = await result.getByRole('link', { name: 'Open the job' }).getAttribute('href')
    const id = new URLSearchParams(href!.split('?')[1]).get('job')!
    await jobRow(page, id).getByText('Running').waitFor()
    const seenAfterMs = await page.evaluate(job => {
      const { seen } = globalThis as unknown as { seen: Record<string, number> }
      const [call] = performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('/v2/gated/run'))
      return seen[job]! - (call as PerformanceResourceTiming).responseEnd
    }, id)
    assert.ok(seenAfterMs < patient(SEEN_WITHIN_MS), `seen after ${seenAfterMs} ms`)
    // A job of another client is listed, too.
    const others = await submit(server, 'gated', { gate: gate.path })
    await jobRow(page, others).getByText('Running').waitFor()
    gate.open()
    for (const job of [id, others]) await jobRow(page, job).getByText('Completed').waitFor()
    assert.equal(await page.evaluate(() => 'seen' in globalThis), true)
    visitor.assertClean()
  })

  test('show their input, error and story in a drawer, and are run again with other inputs', async () => {
    const needs = newGate()
    const failed = await submit(server, 'gated', { needs: needs.path, who: 'Ada' })
    assert.equal((await whenFinal(server, 'gated', failed)).status, 'FAILED')
    const { visitor, page } = await at('/endpoints/gated/requests')
    await jobRow(page, failed).getByText('Error: the weights are not there').click()
    const drawer = page.getByRole('dialog', { name: `Job ${failed}` })
    await drawer.getByText('"who": "Ada"').waitFor()
    await drawer.getByText('Traceback').waitFor()
    await drawer
      .getByText(/at .*handler\.mjs/)
      .first()
      .waitFor()
    const story = drawer.getByRole('list', { name: 'Story of the job' })
    assert.deepEqual(await story.locator('b').allInnerTexts(), ['Accepted and queued', 'Attempt 1 ran', 'Failed'])
    await drawer.getByRole('button', { name: 'Run again with changes…' }).click()
    const again = page.getByRole('dialog', { name: 'Run again as a new job' })
    await again.getByLabel('Input (JSON)').fill('{"who": ')
    assert.equal(await again.getByRole('button', { name: /^Run with/ }).isDisabled(), true)
    await again.getByLabel('Input (JSON)').fill('{"who": "Grace"}')
    await again.getByRole('button', { name: 'Run with this input' }).click()
    await again.waitFor({ state: 'detached' })
    const next = page.getByRole('dialog', { name: /^Job / })
    await next.getByText('Completed').first().waitFor()
    await next.getByRole('heading', { name: 'Output' }).waitFor()
    assert.equal(await next.getByText('"who": "Grace"').count(), 2)
    visitor.assertClean()
  })

  test('are cancelled while they run', async () => {
    const held = await submit(server, 'gated', { gate: newGate().path })
    const { visitor, page } = await at(`/endpoints/gated/requests?job=${held}`)
    const drawer = page.getByRole('dialog', { name: `Job ${held}` })
    await drawer.getByText('Running').first().waitFor()
    await drawer.getByRole('button', { name: 'Cancel the job…' }).click()
    const asked = page.getByRole('dialog', { name: 'Cancel this job?' })
    await asked.getByText('Its worker stops it.').waitFor()
    await asked.getByRole('button', { name: 'Cancel the job' }).click()
    await drawer.getByText('Cancelled').first().waitFor()
    assert.equal((await whenFinal(server, 'gated', held)).status, 'CANCELLED')
    visitor.assertClean()
  })

  test('that failed are retried together, after their number was said', async () => {
    const needs = newGate()
    const failed = await Promise.all([1, 2, 3].map(n => submit(server, 'gated', { needs: needs.path, n })))
    for (const job of failed) await whenFinal(server, 'gated', job)
    needs.open()
    const { visitor, page } = await at('/endpoints/gated/requests?span=1h')
    await page.getByRole('searchbox', { name: 'Text of the error' }).fill('weights')
    await page.getByRole('button', { name: 'Retry all failed that match…' }).click()
    const asked = page.getByRole('dialog')
    const title = await asked.getByRole('heading', { name: /^Retry \d+ jobs\?$/ }).innerText()
    const { json } = await ask(server, '/v2/gated/requests?status=FAILED')
    assert.equal(title, `Retry ${json.requests.length} jobs?`)
    await asked.getByText('weights').waitFor()
    await asked.getByRole('button', { name: /^Retry \d+ jobs$/ }).click()
    await asked.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Clear filters' }).click()
    for (const job of failed) await jobRow(page, job).getByText('Completed').waitFor()
    visitor.assertClean()
  })

  test('that wait are purged, after their number was said', async () => {
    await ask(server, '/v2/serverless/hellonode', { method: 'PATCH', body: { workers: { max: 0 } } })
    const waiting = await Promise.all([1, 2, 3].map(n => submit(server, 'hellonode', { n })))
    const { visitor, page } = await at('/endpoints/hellonode/requests')
    for (const job of waiting) await jobRow(page, job).getByText('Queued').waitFor()
    await page.getByRole('button', { name: 'Purge the queue…' }).click()
    const asked = page.getByRole('dialog', { name: 'Purge the queue?' })
    await asked.getByText('3 jobs of this endpoint wait.').waitFor()
    await asked.getByRole('button', { name: 'Cancel 3 waiting jobs' }).click()
    await asked.waitFor({ state: 'detached' })
    for (const job of waiting) await jobRow(page, job).getByText('Cancelled').waitFor()
    visitor.assertClean()
  })
})

/** The row of a job. */
function jobRow(page: Page, job: string): Locator {
  return page
    .getByRole('table', { name: 'Jobs' })
    .getByRole('row')
    .filter({ has: page.getByTitle(job, { exact: true }) })
}
