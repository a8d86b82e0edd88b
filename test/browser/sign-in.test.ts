/** Signing in to the console, and staying signed in. */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { patient } from '../support/patience.ts'
import { makeTenant } from '../wire/attacks/tenant.ts'
import { browserSkip, openBrowser } from '../wire/support/browser.ts'
import type { Browser } from '../wire/support/chromium.ts'
import { ask } from '../wire/support/client.ts'
import { runCommand, type Server, startServer } from '../wire/support/server.ts'
import { Visitor } from './support/console.ts'

/** The named answer of GraphQL, asked without a key. */
async function anonymous<Name extends string>({ url }: Server, name: Name, operation: string) {
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ query: operation })
  const { data, errors } = (await (await fetch(`${url}/graphql`, { method: 'POST', headers, body })).json()) as {
    readonly data: Readonly<Record<Name, Readonly<Record<string, string>>>>
    readonly errors?: unknown
  }
  assert.equal(errors, undefined)
  return data[name]
}

describe('signing in to the console', { skip: browserSkip, timeout: patient(180_000) }, () => {
  let server: Server
  let browser: Browser
  before(async () => {
    server = await startServer({ args: ['--sample'] })
    browser = await openBrowser()
  })

  test('takes a key, explains why another is invalid, and stores the key nowhere in the browser', async () => {
    const visitor = await Visitor.at(browser, server)
    const { page } = visitor
    await page.goto(`${visitor.origin}/endpoints/hellonode`)
    await page.getByLabel('API key').fill('rpa_wrong')
    await page.getByRole('button', { name: 'Sign in' }).click()
    assert.match(await page.getByRole('alert').innerText(), /key/i)
    await page.getByLabel('API key').fill(server.apiKey)
    await page.getByRole('button', { name: 'Sign in' }).click()
    // The page that was asked for is shown.
    await page.getByRole('heading', { name: 'hello-node', level: 1 }).waitFor()
    const kept = await page.evaluate(() =>
      JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]),
    )
    assert.ok(!kept.includes(server.apiKey))
    const [cookie] = await visitor.context.cookies()
    assert.equal(cookie?.httpOnly, true)
    assert.equal(cookie.sameSite, 'Strict')
    assert.ok(!cookie.value.includes(server.apiKey))
    visitor.assertClean()
  })

  test('lasts over a reload, a new tab and a killed server, until one signs out in any tab', async () => {
    const own = await startServer({ args: ['--sample'] })
    const visitor = await (await Visitor.at(browser, own)).signIn(own.apiKey, '/endpoints')
    await own.kill9()
    // A page whose code was not loaded before: it comes by itself with the server.
    await visitor.page.getByRole('link', { name: 'Secrets' }).click()
    await visitor.page.getByText('This page could not be loaded').waitFor()
    const again = await startServer({ args: ['--sample'], dataDir: own.dataDir, port: own.port })
    await visitor.page.getByRole('heading', { name: 'Secrets', level: 1 }).waitFor()
    await visitor.open('/endpoints')
    await visitor.page.getByRole('link', { name: 'hello-node' }).waitFor()
    const second = await visitor.context.newPage()
    await second.goto(`${visitor.origin}/endpoints`)
    await second.getByRole('link', { name: 'hello-node' }).waitFor()
    await second.getByRole('button', { name: 'Sign out' }).click()
    await second.getByLabel('API key').waitFor()
    // The other tab receives it.
    await visitor.page.getByLabel('API key').waitFor()
    await again.stop()
  })

  async function newLink(key: string): Promise<string> {
    const { code, stdout, stderr } = await runCommand(['console', '--data-dir', server.dataDir], {
      RUNYARD_URL: server.url,
      RUNYARD_API_KEY: key,
    })
    assert.equal(code, 0, stderr)
    return stdout.trim().split('\n').at(-1)!
  }

  test('asks before a link of the command line signs in, by keyboard too; the link works once and stays in no history', async () => {
    const link = await newLink(server.apiKey)
    const visitor = await Visitor.at(browser, server)
    await visitor.page.goto(link)
    const button = visitor.page.getByRole('button', { name: 'Sign in as' })
    await button.waitFor()
    assert.equal(new URL(visitor.page.url()).hash, '')
    assert.deepEqual(await visitor.context.cookies(), [])
    assert.deepEqual(await visitor.axe(), [])
    await visitor.page.locator('button.main:enabled').waitFor()
    await button.focus()
    await visitor.page.keyboard.press('Enter')
    await visitor.page.getByRole('navigation', { name: 'Pages' }).waitFor()
    visitor.assertClean()
    const thief = await Visitor.at(browser, server)
    await thief.page.goto(link)
    await thief.page.getByLabel('API key').waitFor()
  })

  test('a link to another account says who is signed in, and changes nothing unless somebody agrees', async () => {
    const other = await makeTenant(server, 'Mallory')
    const visitor = await (await Visitor.at(browser, server)).signIn(server.apiKey, '/endpoints')
    await visitor.page.goto(await newLink(other.apiKey))
    const warning = visitor.page.getByRole('alert')
    assert.match(await warning.innerText(), /signed in to another account[\s\S]*Mallory/)
    await visitor.page.getByRole('button', { name: 'Cancel' }).click()
    await visitor.page.getByRole('navigation', { name: 'Pages' }).waitFor()
    assert.doesNotMatch(await visitor.page.locator('aside .foot').innerText(), /Mallory/)
  })

  test('a person gives a command line a key of chosen rights, which it gets once', async () => {
    const { id } = await anonymous(server, 'createFlashAuthRequest', 'mutation { createFlashAuthRequest { id } }')
    const visitor = await Visitor.at(browser, server)
    const { page } = visitor
    await page.goto(`${visitor.origin}/flash/login?request=${id}`)
    await page.getByLabel('API key').fill(server.apiKey)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'A program asks for a key', level: 1 }).waitFor()
    await page.getByLabel('Name of the key').fill('my laptop')
    await page.getByLabel('The key may').selectOption('read-only')
    assert.deepEqual(await visitor.axe(), [])
    await page.getByRole('button', { name: 'Allow' }).click()
    await page.getByText('You allowed it').waitFor()
    const query = `{ flashAuthRequestStatus(flashAuthRequestId: "${id}") { status apiKey } }`
    const poll = () => anonymous(server, 'flashAuthRequestStatus', query)
    const { apiKey } = await poll()
    const listed = await fetch(`${server.url}/v2/serverless`, { headers: { authorization: `Bearer ${apiKey}` } })
    assert.equal(listed.status, 200)
    await page.getByText('The program has its key').waitFor()
    await page.goto(`${visitor.origin}/flash/login?request=unknown`)
    await page.getByText('This login is unknown').waitFor()
    assert.deepEqual(await poll(), { status: 'CONSUMED', apiKey: null })
  })

  test('ends with its key, in open tabs too', async () => {
    const made = await ask(server, '/v2/account/keys', { body: { name: 'short', scope: { type: 'read-only' } } })
    const visitor = await (await Visitor.at(browser, server)).signIn(made.json.key, '/endpoints')
    assert.match(await visitor.page.locator('aside .foot').innerText(), /key short\s+○ reads only/)
    await ask(server, `/v2/account/keys/${made.json.id}`, { method: 'DELETE' })
    await visitor.page.getByLabel('API key').waitFor()
    await visitor.page.getByText(/The session ended: the API key is invalid or has expired/).waitFor()
    visitor.assertClean()
  })
})
