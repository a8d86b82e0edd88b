/** Things of an account in the console: made, used, and taken away again; and what another account sees of them. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { before, describe, test } from 'node:test'
import { artifactOf } from '../support/archives.ts'
import { patient } from '../support/patience.ts'
import { browserSkip, openBrowser } from '../wire/support/browser.ts'
import type { Browser, Locator, Page } from '../wire/support/chromium.ts'
import { ask } from '../wire/support/client.ts'
import { root, type Server, startServer } from '../wire/support/server.ts'
import { Visitor } from './support/console.ts'

describe('what an account has, in the console', { skip: browserSkip, timeout: patient(240_000) }, () => {
  let server: Server
  let browser: Browser
  before(async () => {
    server = await startServer({ args: ['--sample'] })
    browser = await openBrowser()
  })

  const signedIn = async (path: string) => (await Visitor.at(browser, server)).signIn(server.apiKey, path)

  test('a secret is made, and an endpoint of a folder whose workers get it, after its form was put right', async () => {
    const visitor = await signedIn('/secrets')
    const { page } = visitor
    await page.getByRole('button', { name: 'New secret' }).click()
    const secret = page.getByRole('dialog', { name: 'New secret' })
    await secret.getByLabel('Name').fill('greeting')
    await secret.getByLabel('Value').fill('said in secret')
    await secret.getByRole('button', { name: 'Save the secret' }).click()
    await page.getByRole('table', { name: 'Secrets' }).getByText('greeting').waitFor()
    assert.equal(await page.getByText('said in secret').count(), 0)

    await page.getByRole('link', { name: 'Endpoints' }).click()
    await page.getByRole('link', { name: 'New endpoint' }).click()
    await page.getByRole('button', { name: 'A folder' }).click()
    await page.getByRole('button', { name: 'CPU only' }).click()
    await page.getByLabel('Folder', { exact: true }).fill('dir:/nowhere/at/all')
    await page.getByLabel('Idle timeout, seconds').fill('0')
    await page.getByRole('button', { name: 'Create endpoint' }).click()
    await page.getByText('Some fields are not valid yet.').waitFor()
    assert.match(await wrongAt(page, 'Name'), /\S/)
    assert.match(await wrongAt(page, 'Idle timeout, seconds'), /must be at least 1/)
    // A corrected field loses its error before the form is sent.
    await page.getByLabel('Name', { exact: true }).fill('secretive')
    await page.getByLabel('Idle timeout, seconds').fill('60')
    assert.match(await wrongAt(page, 'Folder'), /nowhere/)
    await page.getByLabel('Folder', { exact: true }).fill(`dir:${root}/test/browser/fixtures/gated`)
    await page.getByText('Some fields are not valid yet.').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Add variable' }).click()
    await page.getByLabel('Name of variable 1').fill('GREETING')
    await page.getByRole('button', { name: 'Insert a secret into GREETING' }).click()
    await page.getByRole('dialog', { name: 'Insert a secret' }).getByRole('button', { name: 'greeting' }).click()
    assert.match(await page.getByLabel('Value of GREETING').inputValue(), /RUNPOD_SECRET_greeting/)
    await page.getByRole('button', { name: 'Create endpoint' }).click()
    await page.getByRole('heading', { level: 1, name: 'secretive' }).waitFor()

    await page.getByRole('link', { name: 'Requests', exact: true }).click()
    await page.getByRole('button', { name: 'New request' }).click()
    await page.getByRole('button', { name: 'Send the request' }).click()
    const result = page.getByRole('region', { name: 'Result of the request' })
    await result.getByText('"env": "said in secret"').waitFor()
    await page.getByRole('link', { name: 'Settings' }).click()
    await page.getByLabel('Value of GREETING').waitFor()
    assert.match(await page.getByLabel('Value of GREETING').inputValue(), /RUNPOD_SECRET_greeting/)
    visitor.assertClean()
  })

  test('a key is shown once, works, and is refused once it is revoked', async () => {
    const visitor = await signedIn('/keys')
    const { page } = visitor
    const form = await newKeyForm(page, 'a client')
    await form.getByLabel('The key may').selectOption('Everything')
    await form.getByRole('button', { name: 'Create the key' }).click()
    const apiKey = await takenKey(page, 'The new key')
    const run = () => ask({ url: server.url, apiKey }, '/v2/hellonode/runsync', { body: { input: { name: 'Ada' } } })
    assert.equal((await run()).json.output.message, 'Hello, Ada!')
    await page.reload()
    await page.getByRole('table', { name: 'Keys' }).getByText('a client').waitFor()
    assert.equal((await page.content()).includes(apiKey), false)
    await page.getByRole('table', { name: 'Keys' }).getByText('a client').click()
    await page.getByRole('dialog', { name: 'a client' }).getByRole('button', { name: 'Revoke' }).click()
    const asked = page.getByRole('dialog', { name: 'Revoke the key a client?' })
    await asked.getByRole('button', { name: 'Revoke the key' }).click()
    await page.getByRole('table', { name: 'Keys' }).getByText('a client').waitFor({ state: 'detached' })
    assert.equal((await run()).status, 401)
    visitor.assertClean()
  })

  test('a key is limited to models, requests and tokens, and a change keeps the rest', async () => {
    const visitor = await signedIn('/keys')
    const { page } = visitor
    const form = await newKeyForm(page, 'of a model')
    await form.getByLabel('Jobs').selectOption('Nothing')
    await form.getByRole('button', { name: 'Add the model hello-node' }).click()
    const models = form.getByLabel('Models', { exact: true })
    await models.fill(`${await models.inputValue()}\n${'x'.repeat(600)}`)
    await form.getByLabel('Requests a minute').fill('0')
    await form.getByRole('button', { name: 'Create the key' }).click()
    await form.getByText('must have at most 512 characters').waitFor()
    await form.getByText('must be at least 1').waitFor()
    await models.fill('hello-node, gpt-4o')
    await form.getByLabel('Requests a minute').fill('60')
    await form.getByLabel('Streams report their tokens').check()
    assert.deepEqual(await visitor.axe(), [])
    await form.getByRole('button', { name: 'Create the key' }).click()
    const apiKey = await takenKey(page, 'The new key')
    const { json: list } = await ask({ url: server.url, apiKey }, '/openai/v1/models')
    assert.deepEqual(
      list.data.map(({ id }: { id: string }) => id),
      ['hello-node'],
    )
    const row = page.getByRole('table', { name: 'Keys', exact: true }).getByText('models hello-node, gpt-4o')
    await row.click()
    const drawer = page.getByRole('dialog', { name: 'of a model' })
    await drawer.getByText('60 requests a minute').waitFor()
    await drawer.getByRole('button', { name: 'Change', exact: true }).click()
    const change = page.getByRole('dialog', { name: 'Change the key of a model' })
    await change.getByLabel('Models', { exact: true }).fill('gpt-4o')
    await change.getByLabel('Tokens a day').fill('1000')
    await change.getByRole('button', { name: 'Save the changes' }).click()
    await change.waitFor({ state: 'detached' })
    const { keys } = (await ask(server, '/v2/account/keys')).json
    const { scope, limits, accounting } = keys.find((key: { name: string }) => key.name === 'of a model')
    assert.deepEqual(scope, { type: 'restricted', management: 'none', jobs: 'none', models: ['gpt-4o'] })
    assert.deepEqual(limits, { requestsPerMinute: 60, tokensPerMinute: null, tokensPerDay: 1000 })
    assert.equal(accounting, true)
    visitor.assertClean()
  })

  test('a key for files is shown with its pair for S3', async () => {
    const visitor = await signedIn('/keys')
    const { page } = visitor
    const form = await newKeyForm(page, 'of files')
    await form.getByLabel('Files of network volumes').selectOption('Read and write')
    await form.getByRole('button', { name: 'Create the key' }).click()
    const shown = page.getByRole('dialog', { name: 'The new key' })
    await shown.getByText('S3 secret key').waitFor()
    assert.equal(await shown.locator('pre').count(), 3)
    await shown.getByRole('button', { name: 'I have copied it' }).click()
    visitor.assertClean()
  })

  test('a key is replaced by one with the same rights and limits; the old one goes on for the chosen time', async () => {
    const limits = { requestsPerMinute: 77, tokensPerMinute: null, tokensPerDay: null }
    const scope = { type: 'restricted', management: 'none', jobs: { hellonode: 'write' } }
    const { json: old } = await ask(server, '/v2/account/keys', {
      body: { name: 'ci', scope, limits, accounting: true },
    })
    const visitor = await signedIn('/keys')
    const { page } = visitor
    const table = page.getByRole('table', { name: 'Keys', exact: true })
    const rotate = async (name: string, overlap: string) => {
      await table.getByText(name, { exact: true }).click()
      await page.getByRole('dialog', { name, exact: true }).getByRole('button', { name: 'Rotate' }).click()
      const form = page.getByRole('dialog', { name: `Rotate the key ${name}` })
      await form.getByLabel('The old key').selectOption(overlap)
      await form.getByRole('button', { name: 'Create the new key' }).click()
      return takenKey(page, 'The new key')
    }
    const works = async (apiKey: string) => {
      const { status } = await ask({ url: server.url, apiKey }, '/v2/hellonode/health')
      return status === 200
    }
    const next = await rotate('ci', 'works for a day')
    await table.getByText('ci (replaced)').waitFor()
    assert.deepEqual([await works(old.key), await works(next)], [true, true])
    const { keys } = (await ask(server, '/v2/account/keys')).json
    const made = keys.find((key: { name: string }) => key.name === 'ci')
    assert.deepEqual([made.limits, made.scope, made.accounting], [limits, scope, true])
    const { expiresAt } = keys.find((key: { name: string }) => key.name === 'ci (replaced)')
    assert.ok(Math.abs(Date.parse(expiresAt) - Date.now() - 86_400_000) < 600_000, expiresAt)
    await page.reload()
    await table.getByText('ci', { exact: true }).waitFor()
    assert.equal((await page.content()).includes(next), false)
    const last = await rotate('ci', 'ends at once')
    assert.deepEqual([await works(next), await works(last)], [false, true])
    visitor.assertClean()
  })

  test('volumes of both kinds are listed with what uses them, made, grown and deleted', async () => {
    const visitor = await signedIn('/volumes')
    const { page } = visitor
    const table = page.getByRole('table', { name: 'Volumes' })
    const make = async (name: string, where: string) => {
      await page.getByRole('button', { name: 'New volume' }).click()
      const form = page.getByRole('dialog', { name: 'New volume' })
      await form.getByLabel('Name').fill(name)
      await form.getByLabel('Data center').selectOption(where)
      await form.getByRole('button', { name: 'Create the volume' }).click()
      await table.getByText(name).waitFor()
    }
    await make('models', 'EU-RO-1')
    await make('datasets', 'global')
    const [volume] = (await ask(server, '/v2/global-volumes')).json.globalVolumes
    assert.deepEqual([volume.name, volume.size], ['datasets', 10])
    const used = { method: 'PATCH', body: { networkVolumes: [volume.id] } } as const
    assert.equal((await ask(server, '/v2/serverless/hellonode', used)).status, 200)
    const row = table.getByRole('row').filter({ hasText: 'datasets' })
    await row.getByText('global').waitFor()
    await row.getByText('1 endpoint').waitFor()
    await row.click()
    const drawer = page.getByRole('dialog', { name: 'datasets' })
    await drawer.getByRole('link', { name: 'hello-node' }).waitFor()
    await drawer.getByRole('button', { name: 'Rename or grow' }).click()
    const form = page.getByRole('dialog', { name: 'Change datasets' })
    await form.getByLabel('Size in GB').fill('20')
    await form.getByRole('button', { name: 'Save the changes' }).click()
    await row.getByText('20 GB').waitFor()
    await ask(server, '/v2/serverless/hellonode', { method: 'PATCH', body: { networkVolumes: [] } })
    await drawer.getByRole('button', { name: 'Delete' }).click()
    const asked = page.getByRole('dialog', { name: 'Delete the volume datasets?' })
    await asked.getByRole('textbox').fill('datasets')
    await asked.getByRole('button', { name: 'Delete the volume and its files' }).click()
    await row.waitFor({ state: 'detached' })
    assert.deepEqual((await ask(server, '/v2/global-volumes')).json.globalVolumes, [])
    visitor.assertClean()
  })

  test('an endpoint is paused, goes on with the workers that it had, and is copied without its secrets', async () => {
    await ask(server, '/v2/account/secrets', { body: { name: 'copied', value: 'never shown' } })
    const { json } = await ask(server, '/v2/serverless', {
      body: {
        name: 'original',
        type: 'QUEUE',
        image: `dir:${root}/test/browser/fixtures/gated`,
        env: { GREETING: '{{ RUNPOD_SECRET_copied }}' },
        cpu: [{ id: 'cpu3g', vcpuCount: 2 }],
        scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
        workers: { min: 0, max: 5, idleTimeout: 77 },
      },
    })
    const max = async () => (await ask(server, `/v2/serverless/${json.id}`)).json.workers.max
    const visitor = await signedIn(`/endpoints/${json.id}`)
    const { page } = visitor
    await page.getByRole('button', { name: 'Pause endpoint' }).click()
    const asked = page.getByRole('dialog', { name: 'Pause original?' })
    await asked.getByText('allows 5 workers again').waitFor()
    await asked.getByRole('button', { name: 'Pause the endpoint' }).click()
    await page.getByRole('button', { name: 'Resume endpoint' }).waitFor()
    assert.equal(await max(), 0)
    await page.reload()
    await page.getByRole('button', { name: 'Resume endpoint' }).click()
    await page.getByText('original may have 5 workers again').waitFor()
    await page.getByRole('button', { name: 'Pause endpoint' }).waitFor()
    assert.equal(await max(), 5)
    await page.getByRole('link', { name: 'Duplicate' }).click()
    await page.getByText('The form has the configuration of original').waitFor()
    assert.equal(await page.getByLabel('Name', { exact: true }).inputValue(), 'original copy')
    assert.equal(await page.getByLabel('Idle timeout, seconds').inputValue(), '77')
    assert.match(await page.getByLabel('Value of GREETING').inputValue(), /RUNPOD_SECRET_copied/)
    assert.equal((await page.content()).includes('never shown'), false)
    await page.getByRole('button', { name: 'Create endpoint' }).click()
    await page.getByRole('heading', { level: 1, name: 'original copy' }).waitFor()
    visitor.assertClean()
  })

  test('a ready worker fills the form of a new endpoint, and says what the machine lacks for it', async () => {
    const visitor = await signedIn('/endpoints/new')
    const { page } = visitor
    await page.getByRole('button', { name: 'A ready worker' }).click()
    const choice = page.getByLabel('Ready worker')
    await choice.selectOption({ label: "vLLM: Language models, with OpenAI's API" })
    assert.equal(await page.getByLabel('Name', { exact: true }).inputValue(), 'vllm')
    assert.match(await page.getByLabel('Image', { exact: true }).inputValue(), /worker-v1-vllm:/)
    assert.equal(await page.getByLabel('Value of MAX_MODEL_LEN').inputValue(), '8192')
    await page.getByText('vLLM needs a GPU with 16 GB, and this machine has none').waitFor()
    await page.getByText('Its variables').click()
    await page.getByText('Hugging Face token for models with a license').waitFor()
    assert.deepEqual(await visitor.axe(), [])
    visitor.assertClean()
  })

  test('a receiver of alerts is made, tried, and shows whether it took the test; its address is never shown whole', async () => {
    const calls: string[] = []
    const hook = createServer((request, response) => {
      calls.push(request.url!)
      request.resume().on('end', () => response.end())
    })
    hook.listen(0, '127.0.0.1')
    await once(hook, 'listening')
    const visitor = await signedIn('/alerts')
    const { page } = visitor
    await page.getByRole('button', { name: 'New receiver' }).click()
    const form = page.getByRole('dialog', { name: 'New receiver' })
    await form.getByLabel('Name').fill('pager')
    await form.getByLabel('Kind').selectOption('Webhook')
    await form.getByLabel('Address').fill(`http://127.0.0.1:${(hook.address() as AddressInfo).port}/hush`)
    await form.getByRole('button', { name: 'Save the receiver' }).click()
    const table = page.getByRole('table', { name: 'Alerts' })
    await table.getByText('pager').click()
    await page.getByRole('dialog', { name: 'pager' }).getByRole('button', { name: 'Send a test' }).click()
    await page.getByRole('dialog', { name: 'Send a test' }).getByRole('button', { name: 'Send' }).click()
    await table.getByText('never').waitFor({ state: 'detached' })
    assert.deepEqual(calls, ['/hush'])
    assert.equal((await page.content()).includes('hush'), false)
    await page.keyboard.press('Escape')
    const make = async (name: string, kind: string, address: string) => {
      await page.getByRole('button', { name: 'New receiver' }).click()
      await form.getByLabel('Name').fill(name)
      await form.getByLabel('Kind').selectOption(kind)
      await form.getByLabel('Address').fill(address)
      await form.getByRole('button', { name: 'Save the receiver' }).click()
    }
    await make('channel', 'Slack', `http://127.0.0.1:${(hook.address() as AddressInfo).port}/slack-hush`)
    const slack = table.getByRole('row').filter({ hasText: 'channel' })
    await slack.getByText('Slack').waitFor()
    await slack.click()
    await page.getByRole('dialog', { name: 'channel' }).getByRole('button', { name: 'Send a test' }).click()
    await page.getByRole('dialog', { name: 'Send a test' }).getByRole('button', { name: 'Send' }).click()
    await slack.getByText('never').waitFor({ state: 'detached' })
    assert.deepEqual(calls, ['/hush', '/slack-hush'])
    await page.keyboard.press('Escape')
    // This server knows no mail server.
    await make('mail', 'E-mail', 'ops@example.org')
    await form.getByText(/--smtp-url/).waitFor()
    visitor.assertClean()
    hook.close()
  })

  test('a batch is made of JSON lines, run, and followed to its results', async () => {
    const visitor = await signedIn('/batches?endpoint=hellonode')
    const { page } = visitor
    await page.getByRole('button', { name: 'New batch' }).click()
    const form = page.getByRole('dialog', { name: 'New batch' })
    await form.getByLabel('Name').fill('names')
    await form.getByRole('textbox', { name: 'Requests' }).fill('{"input": {"name": "Ada"}}\n{"input": \n')
    await form
      .getByRole('alert')
      .filter({ hasText: /line 2/i })
      .waitFor()
    const lines = ['Ada', 'Grace', 'Edsger'].map(name => JSON.stringify({ input: { name } }))
    await form.getByRole('textbox', { name: 'Requests' }).fill(lines.join('\n'))
    await form.getByText('3 requests can be read.').waitFor()
    await form.getByRole('button', { name: 'Create a draft with 3 requests' }).click()
    const drawer = page.getByRole('dialog', { name: 'names' })
    await drawer.getByRole('button', { name: 'Finalize' }).click()
    await page
      .getByRole('dialog', { name: 'Run 3 requests?' })
      .getByRole('button', { name: 'Finalize and run' })
      .click()
    const results = drawer.getByRole('table', { name: 'Requests of the batch' })
    for (const name of ['Ada', 'Grace', 'Edsger']) await results.getByText(`Hello, ${name}!`).waitFor()
    await drawer.getByRole('button', { name: 'Close' }).click()
    await page.getByRole('table', { name: 'Batches' }).getByText('3 of 3').waitFor()
    // Without a choice the page has the batches of all endpoints.
    await page.getByRole('link', { name: 'Batches' }).click()
    const ofAll = page.getByRole('table', { name: 'Batches' }).getByRole('row').filter({ hasText: 'names' })
    await ofAll.getByRole('cell', { name: 'hello-node' }).waitFor()
    await ofAll.getByText('names').click()
    await page.getByRole('dialog', { name: 'names' }).getByText('Hello, Ada!').waitFor()
    visitor.assertClean()
  })

  test('an app is shown with its environment and build, and deleted with everything in it', async () => {
    const visitor = await signedIn('/')
    const { page } = visitor
    const pages = page.getByRole('navigation', { name: 'Pages' })
    await pages.getByRole('link', { name: 'Endpoints' }).waitFor()
    assert.equal(await pages.getByRole('link', { name: 'Apps' }).count(), 0, 'there is no app')
    const { app, build, endpoint } = await deployedApp(server)
    await pages.getByRole('link', { name: 'Apps' }).click()
    await page.getByRole('table', { name: 'Apps' }).getByText('shop').click()
    const drawer = page.getByRole('dialog', { name: 'shop' })
    await drawer.getByRole('heading', { name: 'Environment default' }).waitFor()
    await drawer.getByText(`build ${build}, 0 workers`).waitFor()
    await drawer.getByText('active in default').waitFor()
    assert.equal(await drawer.getByRole('link', { name: 'adder' }).getAttribute('href'), `/endpoints/${endpoint}`)
    await drawer.getByRole('button', { name: 'Delete the app' }).click()
    const asked = page.getByRole('dialog', { name: 'Delete the app shop?' })
    await asked.getByText('1 endpoint and all their jobs are deleted with it, and 1 build').waitFor()
    await asked.getByRole('textbox').fill('shop')
    await asked.getByRole('button', { name: 'Delete the app' }).click()
    await page.getByText('No apps yet').waitFor()
    for (const path of [`/v2/account/apps/${app}`, `/v2/serverless/${endpoint}`]) {
      assert.equal((await ask(server, path)).status, 404)
    }
    visitor.assertClean()
  })

  test('an account is made, and who signs in with its key sees nothing of the operator', async () => {
    await ask(server, '/v2/account/secrets', { body: { name: 'of-operator', value: 'a value' } })
    const visitor = await signedIn('/accounts')
    const { page } = visitor
    await page.getByRole('button', { name: 'New account' }).click()
    const form = page.getByRole('dialog', { name: 'New account' })
    await form.getByLabel('Name').fill('guests')
    await form.getByRole('button', { name: 'Create the account and its first key' }).click()
    const key = await takenKey(page, 'A key with all rights of the account')
    await page.getByRole('table', { name: 'Accounts' }).getByText('guests').waitFor()
    const guest = await (await Visitor.at(browser, server)).signIn(key, '/endpoints')
    await guest.page.getByRole('complementary', { name: 'Runyard' }).getByText('guests').waitFor()
    const pages = guest.page.getByRole('navigation', { name: 'Pages' })
    assert.equal(await pages.getByRole('link', { name: /Machine|Accounts/ }).count(), 0)
    const sees = async (path: string, shown: (page: Page) => Locator) => {
      await guest.open(path)
      await shown(guest.page).waitFor()
      const seen = await guest.page.locator('main').innerText()
      assert.doesNotMatch(seen, /hello-node|of-operator|rpa_|Hello, /, path)
    }
    await sees('/endpoints', page => page.getByText('No endpoint yet'))
    await sees('/endpoints/hellonode', page => page.getByRole('alert').first())
    await sees('/endpoints/hellonode/requests', page => page.getByRole('alert').first())
    await sees('/secrets', page => page.getByText('No secrets yet'))
    await sees('/accounts', page => page.getByText('Only keys of the operator with all rights see the accounts'))
    await sees('/machine', page => page.getByText('The machine is for the operator'))
    await guest.open('/endpoints/new')
    await guest.page.getByRole('button', { name: 'A template' }).waitFor()
    assert.equal(await guest.page.getByRole('button', { name: 'A folder' }).count(), 0)
    // The operator is still who they were, in a browser of their own.
    await page.reload()
    await page.getByRole('table', { name: 'Accounts' }).getByText('guests').waitFor()
    guest.assertClean()
    visitor.assertClean()
  })
})

/** An app with one endpoint, as the SDK's command line makes it. */
async function deployedApp(server: Server): Promise<{ app: string; build: string; endpoint: string }> {
  const send = async (query: string, input: object) => {
    const { json, text } = await ask(server, '/graphql', { body: { query, variables: { input } } })
    assert.equal(json.errors, undefined, text)
    return Object.values(json.data)[0] as Record<string, string>
  }
  const mutation = (name: string, fields: string) => {
    const type = `${name[0]!.toUpperCase()}${name.slice(1)}Input`
    return `mutation ($input: ${type}!) { ${name}(input: $input) { ${fields} } }`
  }
  const { id: flashAppId = '' } = await send(mutation('createFlashApp', 'id'), { name: 'shop' })
  const environment = await send(mutation('createFlashEnvironment', 'id'), { flashAppId, name: 'default' })
  const archive = artifactOf({ 'main.py': 'x = 1' })
  const announced = { flashAppId, tarballSize: archive.length }
  const upload = await send(mutation('prepareFlashArtifactUpload', 'uploadUrl objectKey'), announced)
  const { status } = await fetch(upload.uploadUrl!, { method: 'PUT', body: archive as Uint8Array<ArrayBuffer> })
  assert.equal(status, 200)
  const { objectKey } = upload
  const manifest = { version: 1 }
  const made = await send(mutation('finalizeFlashArtifactUpload', 'id'), { flashAppId, objectKey, manifest })
  const flashEnvironmentId = environment.id
  await send(mutation('deployBuildToEnvironment', 'id'), { flashEnvironmentId, flashBuildId: made.id })
  const env = Object.entries({ FLASH_RESOURCE_NAME: 'adder', RUNPOD_BUILD_ID: made.id })
  const template = { imageName: 'image:1', env: env.map(([key, value]) => ({ key, value })) }
  const saved = { name: 'adder', flashEnvironmentId, template, instanceIds: ['cpu3c-1-2'], workersMax: 1 }
  const { id: endpoint = '' } = await send(
    'mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { id } }',
    saved,
  )
  return { app: flashAppId, build: made.id!, endpoint }
}

/** The server's sentence at a field, once there is one. */
async function wrongAt(page: Page, label: string): Promise<string> {
  const field = page.locator('.field').filter({ has: page.getByLabel(label, { exact: true }) })
  return field.locator('.wrong').first().innerText()
}

/** Opens the form of a new key of this name. */
async function newKeyForm(page: Page, name: string): Promise<Locator> {
  await page.getByRole('button', { name: 'New key' }).click()
  const form = page.getByRole('dialog', { name: 'New key' })
  await form.getByLabel('Name', { exact: true }).fill(name)
  return form
}

/** A key that is shown once. It is not left by accident. */
async function takenKey(page: Page, title: string): Promise<string> {
  const dialog = page.getByRole('dialog', { name: title })
  const key = await dialog.locator('pre').first().innerText()
  await page.keyboard.press('Escape')
  await dialog.getByText('Copy it before you close this.').waitFor()
  await dialog.getByRole('button', { name: 'I have copied it' }).click()
  await dialog.waitFor({ state: 'detached' })
  return key
}
