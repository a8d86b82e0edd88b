/** Pages that show what happens and what happened: events, the audit log, models with their downloads, tasks. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { before, describe, test } from 'node:test'
import { ModelHub } from '../support/model-hub.ts'
import { patient } from '../support/patience.ts'
import { browserSkip, openBrowser } from '../wire/support/browser.ts'
import type { Browser } from '../wire/support/chromium.ts'
import { atEnd } from '../wire/support/cleanup.ts'
import { ask } from '../wire/support/client.ts'
import { root, type Server, startServer } from '../wire/support/server.ts'
import { Visitor } from './support/console.ts'

describe('what happens on a server, in the console', { skip: browserSkip, timeout: patient(200_000) }, () => {
  let server: Server
  let browser: Browser
  let hub: ModelHub
  before(async () => {
    hub = await ModelHub.open({ after: atEnd })
    // Clients reach tasks over HTTPS alone.
    const args = ['--sample', '--hf-endpoint', hub.url, '--queue-url', 'https://jobs.example']
    server = await startServer({ args, env: { NO_PROXY: '*' } })
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
    await page.getByLabel('Time').selectOption('Last hour')
    await page.getByLabel('Operation').fill('createSecret')
    await table.getByText('createTemplate').waitFor({ state: 'detached' })
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download' }).click(),
    ])
    const saved = readFileSync(await file.path(), 'utf8')
      .trimEnd()
      .split('\n')
    assert.deepEqual([...new Set(saved.map(line => JSON.parse(line).operation))], ['createSecret'])
    assert.equal(saved.length, 1)
    await page.getByText('Saved 1 entry').waitFor()
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

  test('models have their states and other names, and one that is cold is started by a button', async () => {
    await ask(server, '/v2/serverless', {
      body: {
        name: 'fallback',
        type: 'QUEUE',
        image: `dir:${root}/examples/hello-node`,
        cpu: [{ id: 'cpu3g', vcpuCount: 2 }],
        scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
      },
    })
    const visitor = await signedIn('/models')
    const { page } = visitor
    const models = page.getByRole('table', { name: 'Models', exact: true })
    await models.getByRole('row').filter({ hasText: 'fallback' }).getByText('cold').waitFor()
    await page.getByRole('button', { name: 'New name' }).click()
    const form = page.getByRole('dialog', { name: 'New name for models' })
    await form.getByLabel('Name').fill('gpt 4o')
    await form.getByLabel('Endpoint').selectOption({ label: 'hello-node (hellonode)' })
    await form.getByRole('button', { name: 'Save the name' }).click()
    await form.getByText('must have letters, digits').waitFor()
    await form.getByLabel('Name').fill('gpt-4o')
    const fallback = await form.getByLabel('Else').locator('option', { hasText: 'fallback' }).innerText()
    await form.getByLabel('Else').first().selectOption({ label: fallback })
    await form.getByRole('button', { name: 'Save the name' }).click()
    const names = page.getByRole('table', { name: 'Other names' })
    await names.getByText('hello-node, else fallback').waitFor()
    await models.getByRole('row').filter({ hasText: 'gpt-4o' }).waitFor()
    await models.getByRole('button', { name: 'Warm fallback' }).click()
    await page.getByText('A worker of fallback starts').waitFor()
    await models.getByRole('row').filter({ hasText: 'fallback' }).getByText('ready').waitFor()
    await names.getByText('gpt-4o').click()
    await page.getByRole('dialog', { name: 'gpt-4o' }).getByRole('button', { name: 'Delete' }).click()
    await page
      .getByRole('dialog', { name: 'Delete the name gpt-4o?' })
      .getByRole('button', { name: 'Delete the name' })
      .click()
    await names.getByText('No other name yet').waitFor()
    await models.getByRole('row').filter({ hasText: 'gpt-4o' }).waitFor({ state: 'detached' })
    visitor.assertClean()
  })

  test('a model is downloaded to the machine and removed; one that the hub does not have is refused with the reason', async () => {
    hub.push('org/tiny', { files: { 'config.json': '{}', weights: { bytes: 3_000_000, seed: 3 } } })
    const visitor = await signedIn('/models')
    const { page } = visitor
    await page.getByRole('button', { name: 'Download a model' }).click()
    const form = page.getByRole('dialog', { name: 'Download a model' })
    const download = async (name: string) => {
      await form.getByLabel('Model').fill(name)
      await form.getByRole('button', { name: 'Download' }).click()
    }
    await download('tiny')
    await form.getByText('A model is named owner/name').waitFor()
    await download('org/missing')
    await form.getByText(/org\/missing is not available/).waitFor()
    const gate = Promise.withResolvers<void>()
    hub.faults.slowly = () => gate.promise
    await download('org/tiny')
    const downloads = page.getByRole('list', { name: 'Downloads' })
    await downloads.getByText('org/tiny').waitFor()
    hub.faults.slowly = null
    gate.resolve()
    const table = page.getByRole('table', { name: 'Models on this machine' })
    const row = table.getByRole('row').filter({ hasText: 'org/tiny' })
    await row.getByText('3.0 MB').waitFor()
    await downloads.waitFor({ state: 'detached' })
    await row.getByRole('button', { name: /Remove org\/tiny/ }).click()
    await page
      .getByRole('dialog', { name: 'Remove org/tiny?' })
      .getByRole('button', { name: 'Remove the model' })
      .click()
    await table.getByText('No model yet').waitFor()
    visitor.assertClean()
  })

  test('a task is shown with what it waits for or printed, and ended; usage has its name', async () => {
    const visitor = await signedIn('/')
    const { page } = visitor
    const pages = page.getByRole('navigation', { name: 'Pages' })
    await pages.getByRole('link', { name: 'Models' }).waitFor()
    assert.equal(await pages.getByRole('link', { name: 'Tasks' }).count(), 0, 'there is no task')
    await startTask(server, 'print', `dir:${root}/test/browser/fixtures/once`)
    await startTask(server, 'queued', `dir:${root}/examples/hello-node`)
    await pages.getByRole('link', { name: 'Tasks' }).click()
    const table = page.getByRole('table', { name: 'Tasks' })
    const row = (name: string) => table.getByRole('row').filter({ hasText: name })
    await row('queued').getByText('no worker can be started').waitFor()
    await row('print').getByText('ended').waitFor()
    await row('print').click()
    const drawer = page.getByRole('dialog', { name: 'print' })
    await drawer.getByRole('log').getByText('the work of the task is done').waitFor()
    assert.equal((await page.content()).includes('a-token-of-the-client'), false)
    await drawer.getByRole('button', { name: 'Close' }).click()
    await row('queued').click()
    await page.getByRole('dialog', { name: 'queued' }).getByRole('button', { name: 'End the task' }).click()
    await page
      .getByRole('dialog', { name: 'End the task queued?' })
      .getByRole('button', { name: 'End the task' })
      .click()
    await row('queued').waitFor({ state: 'detached' })
    await pages.getByRole('link', { name: 'Usage' }).click()
    await page.getByRole('table').getByText('print', { exact: true }).first().waitFor()
    visitor.assertClean()
  })

  test('a key that may only read gets no button for models and tasks', async () => {
    const { json: key } = await ask(server, '/v2/account/keys', {
      body: { name: 'look', scope: { type: 'read-only' } },
    })
    const visitor = await (await Visitor.at(browser, server)).signIn(key.key, '/models')
    const { page } = visitor
    await page.getByText('No other name yet').waitFor()
    const buttons = await page.locator('main button:visible').allInnerTexts()
    assert.deepEqual(
      buttons.filter(text => /Warm|New|Download|Remove/.test(text)),
      [],
    )
    await visitor.open('/tasks')
    await page.getByRole('table', { name: 'Tasks' }).getByText('print').click()
    await page.getByRole('dialog', { name: 'print' }).getByText('the work of the task is done').waitFor()
    assert.equal(await page.getByRole('button', { name: /End|Forget/ }).count(), 0)
    visitor.assertClean()
  })
})

async function startTask(server: Server, name: string, imageName: string): Promise<void> {
  const env = [
    { key: 'RUNPOD_TASK_TOKEN', value: 'a-token-of-the-client-0123456789' },
    { key: 'RUNPOD_TASK_PORT', value: '8080' },
  ]
  const query = 'mutation ($input: deployCpuPodInput!) { deployCpuPod(input: $input) { id } }'
  const input = { name, imageName, env, instanceId: 'cpu3c-2-4', containerDiskInGb: 10, ports: '8080/http' }
  const { json } = await ask(server, '/graphql', { body: { query, variables: { input } } })
  assert.equal(json.errors, undefined, JSON.stringify(json))
}
