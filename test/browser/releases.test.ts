/** Changes of an endpoint in the console: seen before they are saved, taken back, and not lost to another person's. */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { patient } from '../support/patience.ts'
import { browserSkip, openBrowser } from '../wire/support/browser.ts'
import type { Browser, Page } from '../wire/support/chromium.ts'
import { ask } from '../wire/support/client.ts'
import { root, type Server, startServer } from '../wire/support/server.ts'
import { until } from '../wire/support/until.ts'
import { Visitor } from './support/console.ts'

describe('releases in the console', { skip: browserSkip, timeout: patient(240_000) }, () => {
  let server: Server
  let browser: Browser
  before(async () => {
    server = await startServer({ args: ['--sample', '--worker', `${root}/test/browser/fixtures/gated`] })
    browser = await openBrowser()
  })

  const change = (id: string, body: object) => ask(server, `/v2/serverless/${id}`, { method: 'PATCH', body })
  const settings = async (id: string) => (await ask(server, `/v2/serverless/${id}`)).json

  /** Runs jobs in the page until the workers of the new release answer. */
  async function runUntil(page: Page, greeting: string): Promise<void> {
    await page.getByRole('link', { name: 'Requests', exact: true }).click()
    const result = page.getByRole('region', { name: 'Result of the request' })
    if (!(await page.getByLabel('Input (JSON)').isVisible()))
      await page.getByRole('button', { name: 'New request' }).click()
    await page.getByRole('button', { name: 'Run and wait' }).click()
    await page.getByLabel('Input (JSON)').fill('{}')
    await until(`a job to say ${greeting}`, async () => {
      await page.getByRole('button', { name: 'Send the request' }).click()
      await result.getByText('Completed').waitFor()
      return (await result.locator('pre').innerText()).includes(`"env": "${greeting}"`)
    })
  }

  test('a changed variable is shown before it is saved, reaches the jobs, and is taken back', async () => {
    assert.equal((await change('gated', { env: { GREETING: 'good day' } })).status, 200)
    const { json: releases } = await ask(server, '/v2/serverless/gated/releases')
    const good = releases.endpointVersion
    const visitor = await (await Visitor.at(browser, server)).signIn(server.apiKey, '/endpoints/gated')
    const { page } = visitor
    await runUntil(page, 'good day')
    await page.getByRole('link', { name: 'Settings' }).click()
    await page.getByRole('heading', { name: 'No changes' }).waitFor()
    await page.getByLabel('Value of GREETING').fill('good night')
    const changes = page.getByRole('table', { name: 'Changes' })
    const row = changes.getByRole('row').filter({ hasText: 'env.GREETING' })
    await row.getByText('good day').waitFor()
    await row.getByText('good night').waitFor()
    await page.getByText('This creates a new release: its workers replace those that run.').waitFor()
    assert.equal((await settings('gated')).env.GREETING, 'good day')
    await page.getByRole('button', { name: 'Save changes' }).click()
    await page.getByText('Saved as a new release.').waitFor()
    await page.getByRole('heading', { name: 'No changes' }).waitFor()
    await page.getByRole('link', { name: 'Releases' }).click()
    const newest = page.getByRole('list', { name: 'Releases' }).getByRole('listitem').first()
    await newest.getByText('newest').waitFor()
    await newest.getByText('good night').waitFor()
    await runUntil(page, 'good night')
    await page.getByRole('link', { name: 'Releases' }).click()
    await page.getByRole('button', { name: `Roll back to version ${good}`, exact: true }).click()
    const asked = page.getByRole('dialog', { name: `Roll back to version ${good}?` })
    await asked.getByText('good day').waitFor()
    await asked.getByRole('button', { name: `Roll back to version ${good}` }).click()
    await asked.waitFor({ state: 'detached' })
    await newest.getByText('good day').waitFor()
    await runUntil(page, 'good day')
    visitor.assertClean()
  })

  test('releases are compared side by side, and a canary is named by its share', async () => {
    assert.equal((await change('gated', { env: { GREETING: 'hi' }, rollout: { canary: 20 } })).status, 200)
    const visitor = await (await Visitor.at(browser, server)).signIn(server.apiKey, '/endpoints/gated/releases')
    const { page } = visitor
    const compared = page.getByRole('table', { name: 'Comparison of releases' })
    await compared.getByRole('row').filter({ hasText: 'Canary 20%' }).waitFor()
    const good = compared.getByRole('row').filter({ hasText: 'last good' })
    await good.getByText(/ms|s$/).first().waitFor()
    assert.equal(await page.getByText('Rolling out').count(), 0)
    assert.deepEqual(await visitor.axe(), [])
    await visitor.open('/endpoints')
    await page.getByRole('row').filter({ hasText: 'gated' }).getByText('Canary 20%').waitFor()
    assert.equal(await page.getByText('Rolling out').count(), 0)
    visitor.assertClean()
    const { endpointVersion } = (await ask(server, '/v2/serverless/gated/releases')).json
    await ask(server, `/v2/serverless/gated/releases/${endpointVersion}/promote`, { body: {} })
  })

  test('settings are shown as JSON with all members; what is wrong is said in words, in a table whose words are whole', async () => {
    for (const width of [1280, 390]) {
      const visitor = await Visitor.at(browser, server, { width })
      const { page } = await visitor.signIn(server.apiKey, '/endpoints/gated/settings')
      await page.getByRole('button', { name: 'JSON', exact: true }).click()
      const shown = JSON.parse(await page.getByLabel('Configuration').inputValue())
      assert.deepEqual([shown.name, shown.type, typeof shown.workers.max], ['gated', 'QUEUE', 'number'])
      await page.getByRole('button', { name: 'Form', exact: true }).click()
      await page.getByLabel('Name', { exact: true }).fill('')
      await page.getByRole('table', { name: 'Changes' }).waitFor()
      assert.deepEqual(await visitor.brokenHeadings(), [])
      await page.getByRole('button', { name: 'Save changes' }).click()
      await page.getByText('must not be empty').first().waitFor()
      assert.doesNotMatch(await page.locator('main').innerText(), /too small|expected string/)
      visitor.assertClean()
      await visitor.context.close()
    }
  })

  test('a concurrent change of somebody else is shown, and is not overwritten', async () => {
    await change('gated', { workers: { max: 3, idleTimeout: 60 } })
    const visitor = await (await Visitor.at(browser, server)).signIn(server.apiKey, '/endpoints/gated/settings')
    const { page } = visitor
    await page.getByLabel('At most').fill('2')
    await change('gated', { workers: { max: 4, idleTimeout: 120 } })
    const conflict = page.getByRole('alert').filter({ hasText: 'Somebody else changed this endpoint in the meantime' })
    const theirs = conflict.getByRole('table', { name: 'Their changes' })
    await theirs.getByRole('row').filter({ hasText: 'workers.max' }).getByText('changed by both').waitFor()
    await theirs.getByRole('row').filter({ hasText: 'workers.idleTimeout' }).getByText('120').waitFor()
    assert.equal(await page.getByRole('button', { name: 'Save changes' }).isDisabled(), true)
    await conflict.getByRole('button', { name: 'Keep my values where both changed' }).click()
    await conflict.waitFor({ state: 'detached' })
    await page.getByRole('table', { name: 'Changes' }).getByText('workers.max').waitFor()
    await page.getByText('Takes effect at once. No worker is replaced.').waitFor()
    await page.getByRole('button', { name: 'Save changes' }).click()
    await page.getByText('Saved', { exact: true }).waitFor()
    const { workers } = await settings('gated')
    assert.equal(workers.max, 2)
    // Fields that only the other save changed stay.
    assert.equal(workers.idleTimeout, 120)
    visitor.assertClean()
  })

  test('an endpoint goes once its name was typed', async () => {
    const visitor = await (await Visitor.at(browser, server)).signIn(server.apiKey, '/endpoints/hellonode/settings')
    const { page } = visitor
    await page.getByRole('button', { name: 'Delete endpoint' }).click()
    const asked = page.getByRole('dialog', { name: 'Delete hello-node?' })
    const confirm = asked.getByRole('button', { name: 'Delete endpoint' })
    assert.equal(await confirm.isDisabled(), true)
    await asked.getByLabel('Type hello-node to continue').fill('hello')
    assert.equal(await confirm.isDisabled(), true)
    await asked.getByLabel('Type hello-node to continue').fill('hello-node')
    await confirm.click()
    await page.getByRole('heading', { level: 1, name: 'Endpoints' }).waitFor()
    await page.getByRole('link', { name: 'gated' }).waitFor()
    await page.getByRole('link', { name: 'hello-node' }).waitFor({ state: 'detached' })
    assert.equal((await ask(server, '/v2/serverless/hellonode')).status, 404)
    visitor.assertClean()
  })
})
