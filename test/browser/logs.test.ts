/**
 * Logs in the console: no line is lost, doubled or out of order, whatever happens to the
 * server or is done with the page.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { before, describe, test } from 'node:test'
import { patient } from '../support/patience.ts'
import { browserSkip, openBrowser } from '../wire/support/browser.ts'
import type { Browser, Page } from '../wire/support/chromium.ts'
import { ask } from '../wire/support/client.ts'
import { root, type Server, startServer } from '../wire/support/server.ts'
import { until } from '../wire/support/until.ts'
import { Visitor } from './support/console.ts'

const ARGS = ['--worker', `${root}/test/browser/fixtures/counting`]

describe('logs in the console', { skip: browserSkip, timeout: patient(240_000) }, () => {
  let server: Server
  let browser: Browser
  before(async () => {
    server = await startServer({ args: ARGS })
    browser = await openBrowser()
    const kept = await ask(server, '/v2/serverless/counting', {
      method: 'PATCH',
      body: { workers: { min: 1, max: 1 } },
    })
    assert.equal(kept.status, 200, kept.text)
  })

  async function follow(): Promise<{ visitor: Visitor; page: Page }> {
    const visitor = await (await Visitor.at(browser, server)).signIn(server.apiKey, '/endpoints/counting/logs')
    await visitor.page.getByText('● Following').waitFor()
    await visitor.page
      .getByText(/^tick \d+;$/)
      .last()
      .waitFor()
    return { visitor, page: visitor.page }
  }

  test('go on where they stopped after the server was killed', async () => {
    const { visitor, page } = await follow()
    const last = await lastInSight(page)
    await server.kill9()
    await page.getByText('Not connected to the server').waitFor()
    await page.getByText('No connection; next try in').waitFor()
    server = await startServer({ args: ARGS, dataDir: server.dataDir, port: server.port })
    await page.getByText('Not connected to the server').waitFor({ state: 'detached' })
    await page.getByText('● Following').waitFor()
    const next = await passes(page, last + 150)
    // A gap is marked between the lines.
    const search = page.getByRole('searchbox', { name: /^Search/ })
    await search.fill('No connection to the server')
    await page.getByText('1 match', { exact: true }).waitFor()
    await search.press('Enter')
    await page.getByText(/ the lines go on where they stopped\.$/).waitFor()
    const all = await download(page, 'Download all')
    const numbers = lineNumbers(all)
    assertWhole(numbers)
    assert.ok(numbers[0]! <= last && numbers.at(-1)! >= next)
    assert.equal(all.match(/No connection to the server from/g)?.length, 1)
    visitor.assertClean()
  })

  test('are paused and go on without a line less', async () => {
    const { visitor, page } = await follow()
    await page.getByRole('button', { name: 'Pause', exact: true }).click()
    await page.getByText('◆ Paused').waitFor()
    await page.getByRole('button', { name: /^Resume \(\d\d+ new lines\)$/ }).waitFor()
    const last = await lastInSight(page)
    await page.getByRole('button', { name: /^Resume \(\d\d\d+ new lines\)$/ }).waitFor()
    assert.equal(await lastInSight(page), last)
    await page.getByRole('button', { name: /^Resume/ }).click()
    await page.getByText('● Following').waitFor()
    await passes(page, last + 50)
    // So does a look at older lines.
    await page.getByRole('region', { name: 'Lines' }).hover()
    await until('the pause', async () => {
      await page.mouse.wheel(0, -400)
      return page.getByText('◆ Paused').isVisible()
    })
    await page.getByRole('button', { name: /^Resume \(\d\d+ new lines\)$/ }).click()
    await page.getByText('● Following').waitFor()
    await passes(page, last + 100)
    assertWhole(lineNumbers(await download(page, 'Download all')))
    visitor.assertClean()
  })

  test('are searched and filtered, and what is shown can be taken along', async () => {
    const { visitor, page } = await follow()
    const last = await lastInSight(page)
    const wanted = (await passes(page, last + 60)) - 30
    const lines = page.getByRole('region', { name: 'Lines' })
    const search = page.getByRole('searchbox', { name: /^Search/ })
    await search.fill(`tick ${wanted};`)
    await page.getByText('1 match', { exact: true }).waitFor()
    await search.press('Enter')
    await page.getByText('1 of 1', { exact: true }).waitFor()
    await lines.locator('mark').getByText(`tick ${wanted};`).waitFor()
    await page.getByText('◆ Paused').waitFor()
    await page.getByRole('button', { name: 'Only matches' }).click()
    await page.getByText('1 shown').waitFor()
    await page.getByLabel('Lines around each').selectOption('2 lines around')
    await page.getByText('5 shown').waitFor()
    const around = [-2, -1, 0, 1, 2].map(by => wanted + by)
    assert.deepEqual(lineNumbers(await download(page, 'Download shown')), around)
    await page.getByLabel('Lines around each').selectOption('No lines around')
    await page.getByRole('button', { name: 'Only matches' }).click()
    await search.press('Escape')
    await page.getByRole('button', { name: /^Resume/ }).click()
    await page.getByRole('combobox', { name: 'Level' }).selectOption('Errors')
    await page.getByText(/\d+ shown/).waitFor()
    await passes(page, wanted + 60)
    const errors = lineNumbers(await download(page, 'Download shown'))
    assert.deepEqual(
      errors.filter(number => number % 10 !== 0),
      [],
    )
    assert.ok(errors.length > 10)
    await page.getByRole('combobox', { name: 'Level' }).selectOption('All levels')
    await page.getByRole('button', { name: 'System', exact: true }).click()
    await lines.getByText('system').first().waitFor()
    assert.equal(await lines.getByText('tick').count(), 0)
    await page.getByRole('button', { name: 'Output', exact: true }).click()
    const [worker] = (await ask(server, '/v2/serverless/counting/workers')).json.workers
    await page.getByRole('combobox', { name: 'Worker' }).selectOption(worker.id)
    await passes(page, wanted + 120)
    // The address shows the same to whoever gets it.
    assert.match(page.url(), new RegExp(`worker=${worker.id}`))
    visitor.assertClean()
  })
})

/** Number of the newest line in sight. */
async function lastInSight(page: Page): Promise<number> {
  const texts = await page
    .getByRole('region', { name: 'Lines' })
    .getByText(/tick \d+;$/)
    .allInnerTexts()
  const numbers = lineNumbers(texts.join('\n'))
  assertOrdered(numbers)
  return numbers.at(-1) ?? 0
}

/** Waits until lines up to a number are in sight. */
function passes(page: Page, number: number): Promise<number> {
  return until(`line ${number}`, async () => {
    const last = await lastInSight(page)
    return last >= number && last
  })
}

async function download(page: Page, button: string): Promise<string> {
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: button }).click()])
  assert.equal(file.suggestedFilename().endsWith('.log'), true)
  return readFileSync(await file.path(), 'utf8')
}

function lineNumbers(text: string): number[] {
  return [...text.matchAll(/tick (\d+);/g)].map(([, number]) => Number(number))
}

function assertOrdered(numbers: readonly number[]): void {
  for (const [at, number] of numbers.entries())
    if (at > 0) assert.ok(number > numbers[at - 1]!, `${number} is shown behind ${numbers[at - 1]}`)
}

/** Every number appears once and in order. */
function assertWhole(numbers: readonly number[]): void {
  assert.ok(numbers.length > 0)
  for (const [at, number] of numbers.entries()) assert.equal(number, numbers[0]! + at)
}
