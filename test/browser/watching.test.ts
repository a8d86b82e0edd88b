/** Pages that show what happens and what happened: events and the audit log. */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { patient } from '../support/patience.ts'
import { browserSkip, openBrowser } from '../wire/support/browser.ts'
import type { Browser } from '../wire/support/chromium.ts'
import { ask } from '../wire/support/client.ts'
import { type Server, startServer } from '../wire/support/server.ts'
import { Visitor } from './support/console.ts'

describe('what happens on a server, in the console', { skip: browserSkip, timeout: patient(200_000) }, () => {
  let server: Server
  let browser: Browser
  before(async () => {
    server = await startServer({ args: ['--sample'] })
    browser = await openBrowser()
  })

  const signedIn = async (path: string) => (await Visitor.at(browser, server)).signIn(server.apiKey, path)
  const run = async () => {
    const { json } = await ask(server, '/v2/hellonode/runsync', { body: { input: { name: 'Ada' } } })
    return json.id as string
  }

  test('events are shown newest first, as they happen, by endpoint and by kind', async () => {
    const first = await run()
    const visitor = await signedIn('/events')
    const { page } = visitor
    const table = page.getByRole('table', { name: 'Events' })
    const ofJob = (id: string, text: string) => table.getByRole('row').filter({ hasText: id }).filter({ hasText: text })
    await ofJob(first, 'COMPLETED').waitFor()
    await page.getByText('a restart forgets them').waitFor()
    const second = await run()
    await ofJob(second, 'COMPLETED').waitFor()
    const rows = await table.getByRole('row').allInnerTexts()
    const at = (id: string) => rows.findIndex(text => text.includes(id))
    assert.ok(at(second) < at(first), rows.join('\n'))
    await page.getByLabel('Kind').selectOption('Workers')
    await ofJob(second, 'COMPLETED').waitFor({ state: 'detached' })
    await table.getByText('worker.created').waitFor()
    assert.equal(await table.getByText('job.moved').count(), 0)
    await page.getByLabel('Kind').selectOption('Alerts')
    await page.getByText('No kept event matches the filter').waitFor()
    await page.getByLabel('Kind').selectOption('Jobs')
    await page.getByLabel('Endpoint').selectOption('hello-node (hellonode)')
    await ofJob(second, 'COMPLETED').getByText('job.moved').click()
    await page.getByRole('dialog', { name: 'job.moved' }).getByRole('link', { name: second }).click()
    await page.getByRole('dialog', { name: second }).waitFor()
    visitor.assertClean()
  })

  test('the audit log says who changed what, by filters, and whether it is whole; to the operator alone', async () => {
    await ask(server, '/v2/account/secrets', { body: { name: 'token', value: 'hush hush' } })
    await ask(server, '/v2/templates', { body: { name: 'plain', image: 'example/none:1', category: 'CPU' } })
    const visitor = await signedIn('/audit')
    const { page } = visitor
    const table = page.getByRole('table', { name: 'Audit log' })
    await table.getByText('createTemplate').waitFor()
    await page.getByLabel('Operation').fill('createSecret')
    await table.getByText('createTemplate').waitFor({ state: 'detached' })
    await table.getByRole('row').filter({ hasText: 'done' }).filter({ hasText: 'createSecret' }).click()
    const entry = page.getByRole('dialog', { name: /createSecret/ })
    await entry.getByText('REST', { exact: false }).first().waitFor()
    await entry.getByRole('heading', { name: 'Changes' }).waitFor()
    assert.equal((await page.content()).includes('hush hush'), false)
    await entry.getByRole('button', { name: 'Close' }).click()
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await table.getByText('createTemplate').waitFor()
    await page.getByRole('button', { name: 'Check the log' }).click()
    await page.getByText('The log is whole up to entry').waitFor()
    visitor.assertClean()

    const { json: key } = await ask(server, '/v2/account/keys', {
      body: { name: 'manager', scope: { type: 'restricted', management: 'write', jobs: 'write' } },
    })
    const other = await (await Visitor.at(browser, server)).signIn(key.key, '/audit')
    await other.page.getByText('The audit log is for the operator').waitFor()
    assert.equal(await other.page.getByRole('link', { name: 'Audit' }).count(), 0)
    other.assertClean()
  })
})
