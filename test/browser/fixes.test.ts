/** A new user of the console finds out why a job waits, and fixes it, in at most five clicks. */
import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { before, describe, test } from 'node:test'
import { noFakeGpus } from '../support/fake-gpus.ts'
import { patient } from '../support/patience.ts'
import { browserSkip, openBrowser } from '../wire/support/browser.ts'
import { openCardMachine } from '../wire/support/card-machine.ts'
import type { Browser, Locator } from '../wire/support/chromium.ts'
import { temporaryFolder } from '../wire/support/cleanup.ts'
import { ask, graphql, makeEndpoint } from '../wire/support/client.ts'
import { root, type Server, startServer } from '../wire/support/server.ts'
import { until } from '../wire/support/until.ts'
import { Visitor } from './support/console.ts'

/** Fails at its import while its model is the wrong one. */
const HANDLER = `import { start } from '@runyard/worker'
if (process.env.MODEL === 'broken') throw new Error('no such model: broken')
start({ handler: job => ({ echo: job.input }) })
`

/** A machine with two cards. */
const TWO_CARDS = `#!/bin/sh
case $1 in
  --query-gpu=index,utilization*) printf '0, 0, 480, 46068\\n1, 0, 480, 46068\\n' ;;
  --query*) printf '0, GPU-a, NVIDIA L40S, 46068, 570.86.15\\n1, GPU-b, NVIDIA L40S, 46068, 570.86.15\\n' ;;
esac
`

/** Fields of a template without which it is not saved. */
const NO_DISK = { containerDiskInGb: 1, volumeInGb: 0, dockerArgs: '', env: [] }

/** Counts the presses of a person, who has five. */
class Clicks {
  #left = 5

  async on(found: Locator): Promise<void> {
    this.#left -= 1
    assert.ok(this.#left >= 0, 'more than five clicks')
    await found.click()
  }
}

describe('fixes in the console', { skip: browserSkip, timeout: patient(240_000) }, () => {
  let server: Server
  let browser: Browser
  before(async () => {
    server = await startServer({ args: ['--sample', '--worker', workerFolder('picky')] })
    browser = await openBrowser()
  })

  /** A visitor at the first page, which says what needs attention. Signing in was the first click. */
  async function atHome(): Promise<{ visitor: Visitor; clicks: Clicks; item: (name: string) => Locator }> {
    const visitor = await Visitor.at(browser, server)
    const clicks = new Clicks()
    await visitor.page.goto(visitor.origin)
    await visitor.page.getByLabel('API key').fill(server.apiKey)
    await clicks.on(visitor.page.getByRole('button', { name: 'Sign in' }))
    const item = (name: string) =>
      visitor.page
        .getByRole('listitem')
        .filter({ has: visitor.page.getByRole('link', { name, exact: true }) })
        .first()
    return { visitor, clicks, item }
  }

  test('a release whose workers crash is rolled back by the button beside its cause', async () => {
    const good = await ask(server, '/v2/picky/runsync?wait=60000', { body: { input: { a: 1 } } })
    assert.equal(good.json.status, 'COMPLETED', good.text)
    const changed = await ask(server, '/v2/serverless/picky', { method: 'PATCH', body: { env: { MODEL: 'broken' } } })
    assert.equal(changed.status, 200, changed.text)
    const { json: waiting } = await ask(server, '/v2/picky/run', { body: { input: { b: 2 } } })
    const { visitor, clicks, item } = await atHome()
    // The page shows the error in the words of the worker.
    await item('picky')
      .getByText('no such model: broken')
      .waitFor({ timeout: patient(60_000) })
    const button = item('picky').getByRole('button', { name: /^Roll back to release \d+/ })
    await clicks.on(button)
    const dialog = visitor.page.getByRole('dialog')
    await dialog.getByText('MODEL').first().waitFor()
    await clicks.on(dialog.getByRole('button', { name: /^Roll back to release \d+/ }))
    await item('picky')
      .getByRole('heading', { name: 'Fixed' })
      .waitFor({ timeout: patient(60_000) })
    const done = await until('the job to be done', async () => {
      const { json } = await ask(server, `/v2/picky/status/${waiting.id}`)
      return json.status === 'COMPLETED' && json
    })
    assert.deepEqual(done.output, { echo: { b: 2 } })
    visitor.assertClean()
  })

  test('an endpoint that may have no worker gets one, after its setting was shown', async () => {
    await ask(server, '/v2/serverless/hellonode', { method: 'PATCH', body: { workers: { max: 0 } } })
    const { json: waiting } = await ask(server, '/v2/hellonode/run', { body: { input: { name: 'Ada' } } })
    const { visitor, clicks, item } = await atHome()
    await clicks.on(item('hello-node').getByRole('button', { name: 'Allow 3 workers' }))
    await clicks.on(visitor.page.getByRole('dialog').getByRole('button', { name: 'Allow 3 workers' }))
    await item('hello-node')
      .getByRole('heading', { name: 'Fixed' })
      .waitFor({ timeout: patient(60_000) })
    const { json } = await ask(server, `/v2/hellonode/status/${waiting.id}`)
    assert.equal(json.status, 'COMPLETED')
    visitor.assertClean()
  })

  test('an image on a server without an engine asks for one, and not for another image', async t => {
    const boxless = await startServer({ args: ['--docker', 'off'] })
    t.after(() => boxless.stop())
    const { saveTemplate } = await graphql(
      boxless,
      'mutation ($input: SaveTemplateInput) { saveTemplate(input: $input) { id } }',
      { input: { name: 'boxed', imageName: 'example.org/boxed:1', isServerless: true, ...NO_DISK } },
    )
    const { saveEndpoint } = await graphql(
      boxless,
      'mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { id } }',
      { input: { name: 'boxed', templateId: saveTemplate.id, instanceIds: ['cpu3g-2-8'] } },
    )
    await ask(boxless, `/v2/${saveEndpoint.id}/run`, { body: { input: {} } })
    const visitor = await (await Visitor.at(browser, boxless)).signIn(boxless.apiKey)
    const item = visitor.page.getByRole('listitem').filter({ hasText: 'boxed' }).first()
    await item
      .getByText('Start the server with a container engine')
      .first()
      .waitFor({ timeout: patient(60_000) })
    assert.equal(await item.getByText('Change the image').count(), 0)
    visitor.assertClean()
  })

  test('on a machine with one type of GPU no other one is offered', { skip: noFakeGpus }, async t => {
    const { options, endpoint } = openCardMachine(t)
    const machine = await startServer(options)
    const end = join(temporaryFolder(), 'end')
    t.after(async () => {
      writeFileSync(end, '')
      await machine.stop()
    })
    const holder = await endpoint(machine, {})
    const held = { body: { input: { until: end } } }
    await ask(machine, `/v2/${holder}/run`, held)
    await until(
      'the card to be taken',
      async () => (await ask(machine, `/v2/${holder}/health`)).json.workers.running === 1,
    )
    const waiting = await endpoint(machine, {})
    await ask(machine, `/v2/${waiting}/run`, { body: { input: {} } })
    const visitor = await (await Visitor.at(browser, machine)).signIn(machine.apiKey)
    await visitor.page.goto(`${visitor.origin}/endpoints/${waiting}`)
    await visitor.page
      .getByText('See who holds the machine')
      .first()
      .waitFor({ timeout: patient(60_000) })
    assert.equal(await visitor.page.getByText('Choose other GPUs').count(), 0)
    visitor.assertClean()
  })

  test('a worker that waits for two GPUs says so, and is on no CPU', async t => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'nvidia-smi'), TWO_CARDS)
    chmodSync(join(folder, 'nvidia-smi'), 0o755)
    const gpus = { gpuIds: 'ADA_48_PRO', instanceIds: undefined, workersMax: 1, workersMin: 1 }
    const env = { PATH: `${folder}${delimiter}${process.env.PATH}` }
    const machine = await startServer({ args: ['--process-root', root], env })
    t.after(() => machine.stop())
    const worker = `${root}/test/browser/fixtures/gated`
    const holder = await makeEndpoint(machine, { folder: worker, settings: { ...gpus, name: 'holder' } })
    const held = async () => (await ask(machine, `/v2/${holder}/health`)).json.workers.idle === 1
    await until('a card to be taken', held)
    const pair = await makeEndpoint(machine, { folder: worker, settings: { ...gpus, gpuCount: 2, name: 'pair' } })
    const visitor = await (await Visitor.at(browser, machine)).signIn(machine.apiKey, `/endpoints/${pair}/workers`)
    const table = visitor.page.getByRole('table', { name: 'Workers' })
    await table.getByText('waits for 2 GPUs').waitFor()
    assert.equal(await table.getByText('CPU', { exact: true }).count(), 0)
    visitor.assertClean()
  })

  test('a key that may only read sees the cause, and no button that it may not press', async () => {
    await ask(server, '/v2/serverless/hellonode', { method: 'PATCH', body: { workers: { max: 0 } } })
    await ask(server, '/v2/hellonode/run', { body: { input: { name: 'Ada' } } })
    const { json: key } = await ask(server, '/v2/account/keys', {
      body: { name: 'look', scope: { type: 'read-only' } },
    })
    const visitor = await (await Visitor.at(browser, server)).signIn(key.key)
    const item = visitor.page.getByRole('listitem').filter({ hasText: 'hello-node' }).first()
    await item.getByRole('button', { name: 'Show why' }).waitFor()
    assert.equal(await visitor.page.getByRole('button', { name: /Allow/ }).count(), 0)
    visitor.assertClean()
  })
})

function workerFolder(name: string): string {
  const folder = join(temporaryFolder(), name)
  mkdirSync(join(folder, 'node_modules/@runyard'), { recursive: true })
  symlinkSync(join(root, 'packages/worker'), join(folder, 'node_modules/@runyard/worker'))
  writeFileSync(join(folder, 'handler.mjs'), HANDLER)
  return folder
}
