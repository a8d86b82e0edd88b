/**
 * Every page of the console, for everybody: both themes, wide and narrow, by keyboard, by
 * screen reader, with few rights.
 */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { patient } from '../support/patience.ts'
import { browserSkip, openBrowser } from '../wire/support/browser.ts'
import type { Browser } from '../wire/support/chromium.ts'
import { ask } from '../wire/support/client.ts'
import { type Server, startServer } from '../wire/support/server.ts'
import { until } from '../wire/support/until.ts'
import { type Look, Visitor } from './support/console.ts'

const ENDPOINT_TABS = ['', '/requests', '/metrics', '/logs', '/workers', '/releases', '/settings']
const PAGES = [
  ...['/', '/endpoints', '/endpoints/new', '/machine', '/templates', '/secrets', '/registries', '/volumes'],
  ...['/batches?endpoint=hellonode', '/webhooks?endpoint=hellonode', '/keys', '/accounts', '/usage', '/no-such-page'],
  ...['/playground', '/alerts', '/apps', '/jobs', '/webhooks', '/events', '/audit', '/models', '/tasks'],
  ...ENDPOINT_TABS.map(tab => `/endpoints/hellonode${tab}`),
]

/**
 * Each page is opened once at each width, by its address and by a link, which takes half of the processor time. Only
 * its colors depend on the theme, which changes in place.
 */
const LOOKS = [
  { width: 1280, theme: 'light', otherTheme: 'dark', goes: 'open' },
  { width: 390, theme: 'dark', otherTheme: 'light', goes: 'follow' },
] as const satisfies readonly (Look & { otherTheme: Look['theme']; goes: 'open' | 'follow' })[]

/** Pages whose states are read at a glance, also on a telephone. */
const WHOLE_STATES: ReadonlySet<string> = new Set(['/', '/endpoints', '/jobs'])

/** A name that a careless page would run, and that is as long as names may be. */
const HOSTILE = `<img src=x onerror="globalThis.wasRun=1"><script>globalThis.wasRun=1</script>${'x'.repeat(110)}`

describe('the pages of the console', { skip: browserSkip, timeout: patient(280_000) }, () => {
  let server: Server
  let browser: Browser
  let job: string
  before(async () => {
    server = await startServer({ args: ['--sample'] })
    browser = await openBrowser()
    const done = await ask(server, '/v2/hellonode/runsync', { body: { input: { name: 'Ada' } } })
    job = done.json.id
    await ask(server, '/v2/account/secrets', { body: { name: 'token', value: 'a secret value' } })
    await ask(server, '/v2/templates', { body: { name: HOSTILE, image: 'dir:/nowhere', category: 'NVIDIA' } })
    await ask(server, '/v2/serverless', {
      body: {
        name: HOSTILE,
        type: 'QUEUE',
        image: 'example/none:1',
        cpu: [{ id: 'cpu3g', vcpuCount: 2 }],
        scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
        workers: { max: 0 },
      },
    })
    await ask(server, '/v2/account/accounts', { body: { name: 'second' } })
  })

  for (const look of LOOKS)
    test(`are without findings of axe-core, in both themes, ${look.width} pixels wide`, async () => {
      const visitor = await (await Visitor.at(browser, server, look)).signIn(server.apiKey)
      const drawer = `/endpoints/hellonode/requests?job=${job}`
      for (const path of [...PAGES, drawer]) {
        await visitor[look.goes](path)
        // The data of the page has arrived.
        await visitor.page.waitForLoadState('domcontentloaded')
        await until('the page to be read', async () => (await visitor.page.locator('.loading').count()) === 0)
        assert.deepEqual(await visitor.axe(), [], path)
        assert.equal(await visitor.isTooWide(), false, `${path} is wider than the window`)
        assert.deepEqual(await visitor.brokenHeadings(), [], path)
        if (WHOLE_STATES.has(path)) assert.deepEqual(await visitor.cutStates(), [], path)
        await visitor.page.emulateMedia({ colorScheme: look.otherTheme })
        assert.deepEqual(await visitor.axe(['color-contrast']), [], `${path}, ${look.otherTheme}`)
        await visitor.page.emulateMedia({ colorScheme: look.theme })
      }
      assert.equal(await visitor.page.evaluate(() => 'wasRun' in globalThis), false)
      visitor.assertClean()
      await visitor.context.close()
    })

  test('are reached by keys alone, and rows are opened by them', async () => {
    const visitor = await Visitor.at(browser, server)
    const { page } = visitor
    await page.goto(`${visitor.origin}/`)
    await page.getByLabel('API key').waitFor()
    await page.keyboard.press('Tab')
    assert.equal(await page.evaluate(() => document.activeElement?.tagName), 'INPUT')
    await page.keyboard.type(server.apiKey)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor()
    const pages = { e: 'Endpoints', m: 'Machine', t: 'Templates', s: 'Secrets', u: 'Usage', k: 'Keys', h: 'Home' }
    for (const [key, title] of Object.entries(pages)) {
      await page.keyboard.press('g')
      await page.keyboard.press(key)
      await page.getByRole('heading', { level: 1, name: title }).waitFor()
    }
    await page.keyboard.press('g')
    await page.keyboard.press('e')
    await page.getByRole('row').nth(1).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('hello')
    await page.keyboard.press('Tab')
    await page.keyboard.press('j')
    await page.locator('[data-row="0"]:focus').waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'hello-node' }).waitFor()
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    const find = async (text: string) => {
      await page.keyboard.press('Control+k')
      await page.getByRole('dialog', { name: 'Go to' }).getByRole('searchbox').waitFor()
      await page.keyboard.type(text)
    }
    await find('secr')
    assert.deepEqual(await visitor.axe(), [])
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Secrets' }).waitFor()
    await find('hello')
    await page.getByRole('list', { name: 'Places' }).getByText('hello-node').waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'hello-node' }).waitFor()
    await find(job)
    await page.getByText('Enter looks for a job or a worker').waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: job }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    visitor.assertClean()
  })

  test('show a key that may only read nothing that it may not press', async () => {
    const { json: key } = await ask(server, '/v2/account/keys', {
      body: { name: 'look', scope: { type: 'read-only' } },
    })
    const visitor = await (await Visitor.at(browser, server)).signIn(key.key)
    const refused: string[] = []
    visitor.page.on('response', response => {
      if (response.status() === 403) refused.push(`${response.request().method()} ${response.url()}`)
    })
    for (const path of PAGES) {
      await visitor.follow(path)
      await until('the page to be read', async () => (await visitor.page.locator('.loading').count()) === 0)
      const names = await visitor.page.locator('main button:visible').evaluateAll(all => all.map((_, at) => at))
      for (const at of names) {
        const button = visitor.page.locator('main button:visible').nth(at)
        if (!(await button.isVisible().catch(() => false)) || !(await button.isEnabled().catch(() => false))) continue
        await button.click({ timeout: 3_000 }).catch(() => {})
        await visitor.page.keyboard.press('Escape')
      }
      assert.deepEqual(refused, [], path)
    }
    visitor.assertClean()
  })

  test('let a key that has rights on the jobs of one endpoint alone run and read them', async () => {
    const { json: key } = await ask(server, '/v2/account/keys', {
      body: { name: 'jobs', scope: { type: 'restricted', management: 'none', jobs: { hellonode: 'write' } } },
    })
    const visitor = await (await Visitor.at(browser, server)).signIn(key.key)
    const { page } = visitor
    assert.equal(await page.getByRole('link', { name: 'Secrets' }).count(), 0)
    await page.getByRole('main').getByRole('link', { name: 'hellonode' }).click()
    await page.locator('[data-row="0"]').waitFor()
    await page.getByRole('button', { name: 'New request' }).click()
    await page.getByRole('button', { name: 'Send the request' }).waitFor()
    visitor.assertClean()
  })

  test('show an account nothing of another, also after it signed in where the other was', async () => {
    const { json: account } = await ask(server, '/v2/account/accounts', { body: { name: 'other' } })
    const { json: other } = await ask(server, '/v2/account/keys', {
      body: { name: 'first', scope: { type: 'all' }, account: account.id },
    })
    assert.match(other.key, /^rpa_/)
    const visitor = await (await Visitor.at(browser, server)).signIn(server.apiKey, '/endpoints')
    await visitor.page.getByRole('link', { name: 'hello-node' }).waitFor()
    await visitor.page.getByRole('button', { name: 'Sign out' }).click()
    await visitor.page.getByLabel('API key').fill(other.key)
    await visitor.page.getByRole('button', { name: 'Sign in' }).click()
    for (const path of [
      '/',
      '/endpoints',
      '/secrets',
      '/templates',
      '/keys',
      '/endpoints/hellonode',
      '/machine',
      '/accounts',
    ]) {
      await visitor.open(path)
      await until('the page to be read', async () => (await visitor.page.locator('.loading').count()) === 0)
      const text = await visitor.page.locator('main').innerText()
      assert.doesNotMatch(text, /hello-node|token\b.*secret|example\/none|onerror/, path)
    }
  })
})
