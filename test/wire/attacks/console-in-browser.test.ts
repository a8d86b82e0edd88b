/** Attacks of foreign pages in a browser that is signed in to the console: the browser stops all of them. */
import assert from 'node:assert/strict'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { before, describe, test } from 'node:test'
import { patient } from '../../support/patience.ts'
import { type Balanced, balancedEndpoint, inNode } from '../support/balanced.ts'
import { browserSkip, openBrowser } from '../support/browser.ts'
import type { BrowserContext, Page } from '../support/chromium.ts'
import { atEnd } from '../support/cleanup.ts'
import { type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const HTML = encodeURIComponent(JSON.stringify({ 'content-type': 'text/html' }))

describe('the console in a browser', { skip: browserSkip }, () => {
  let server: Server
  let endpoint: Balanced
  let context: BrowserContext
  let page: Page
  let origin: string

  before(async () => {
    server = await startServer({ args: ['--lb-public', 'balanced-1', '--cors-origin', '*'] })
    origin = `http://console.localhost:${server.port}`
    endpoint = await balancedEndpoint(server, { ...inNode, workers: { min: 1, max: 1 } })
    context = await (await openBrowser()).newContext()
    context.setDefaultTimeout(patient(30_000))
    page = await context.newPage()
    await page.goto(`${origin}/`)
    const token = await page.evaluate(async key => {
      const headers = { 'content-type': 'application/json', 'x-runyard-console': '1' }
      const init = { method: 'POST', headers, body: JSON.stringify({ key }) }
      const { token } = (await (await fetch('/console/session', init)).json()) as { token: string }
      localStorage.setItem('token', token)
      return token
    }, server.apiKey)
    assert.match(token, /^[\w-]{43}$/)
  })

  /** Opens a page of a stranger. Its scripts run in its own origin. */
  async function foreignPage(url: string): Promise<Page> {
    const foreign = await context.newPage()
    const answer = await foreign.goto(url)
    assert.equal(answer?.status(), 200, url)
    return foreign
  }

  /** Statuses that the scripts of a page can read; 0 where the browser gives them nothing. */
  function tries(foreign: Page, token: string): Promise<number[]> {
    return foreign.evaluate(
      async ([console, half]) => {
        const json = { 'content-type': 'application/json' }
        const own = { 'x-runyard-console': half }
        const asked: [string, RequestInit][] = [
          ['/v2/serverless', {}],
          ['/v2/serverless', { headers: own }],
          ['/console/session', { headers: own }],
          ['/console/session', { method: 'DELETE', headers: own }],
          ['/graphql', { method: 'POST', headers: { ...json, ...own }, body: '{"query":"{__typename}"}' }],
          ['/graphql', { method: 'POST', headers: { 'content-type': 'text/plain' }, body: '{"query":"{__typename}"}' }],
          ['/', {}],
        ]
        const statuses: number[] = []
        for (const mode of ['cors', 'no-cors'] as const) {
          for (const [path, init] of asked) {
            const sent = fetch(`${console}${path}`, { ...init, mode, credentials: 'include' })
            statuses.push(
              await sent.then(
                ({ status }) => status,
                () => 0,
              ),
            )
          }
        }
        return statuses
      },
      [origin, token] as const,
    )
  }

  const tokenOfPage = () => page.evaluate(() => localStorage.getItem('token') ?? '')
  const stillSignedIn = () =>
    page.evaluate(async () => {
      const headers = { 'x-runyard-console': localStorage.getItem('token') ?? '' }
      return (await fetch('/console/session', { headers })).status
    })

  test('its own page reads and writes, in whatever mode it asks', async () => {
    const statuses = await page.evaluate(async () => {
      const headers = { 'x-runyard-console': localStorage.getItem('token') ?? '', 'content-type': 'application/json' }
      const write = { method: 'POST', headers, body: '{"query":"{ myself { id } }"}' }
      const asked = [
        fetch('/v2/serverless', { headers }),
        fetch('/graphql', write),
        fetch('/graphql', { ...write, mode: 'same-origin' }),
        fetch('/v2/serverless', { headers: { 'content-type': 'text/plain' } }),
      ]
      return (await Promise.all(asked)).map(({ status }) => status)
    })
    assert.deepEqual(statuses, [200, 200, 200, 401])
  })

  test('scripts of an endpoint, by its host and below /lb/, get nothing and end nothing, even with the token', async () => {
    for (const base of [endpoint.base, `http://localhost:${server.port}/lb/${endpoint.id}`]) {
      const foreign = await foreignPage(`${base}/fields?fields=${HTML}`)
      assert.deepEqual(new Set(await tries(foreign, await tokenOfPage())), new Set([0]), base)
      assert.equal(await stillSignedIn(), 200)
    }
  })

  test('a worker on another port of the host gets the cookie, and can do nothing with it', async () => {
    const seen: IncomingMessage['headers'][] = []
    const other = createServer((incoming, outgoing) => {
      seen.push(incoming.headers)
      const planted = `runyard-console-${server.port}=${'A'.repeat(43)}; Path=/`
      outgoing.writeHead(200, { 'content-type': 'text/html', 'set-cookie': planted }).end('<!doctype html>')
    })
    await new Promise<void>(resolve => other.listen(0, '127.0.0.1', resolve))
    atEnd(() => void other.close())
    const foreign = await foreignPage(`http://console.localhost:${(other.address() as AddressInfo).port}/`)
    assert.equal(await foreign.evaluate(() => localStorage.getItem('token')), null)
    assert.deepEqual(new Set(await tries(foreign, 'x'.repeat(43))), new Set([0]))
    const [first] = seen
    assert.match(first?.cookie ?? '', /runyard-console-/, 'browsers send it to every port')
    const headers = { cookie: first?.cookie ?? '', host: new URL(origin).host }
    assert.equal((await fetch(`${server.url}/v2/serverless`, { headers })).status, 401)
    assert.equal(await stillSignedIn(), 200)
    const read = page.evaluate(async () => {
      const own = { 'x-runyard-console': localStorage.getItem('token') ?? '' }
      return (await fetch('/v2/serverless', { headers: own })).status
    })
    assert.equal(await read, 200, 'the cookie that it planted keeps nobody out')
  })

  test('a form and a frame of an endpoint do nothing', async () => {
    const foreign = await foreignPage(`${endpoint.base}/fields?fields=${HTML}`)
    await foreign.evaluate(url => {
      const frame = document.createElement('iframe')
      const loaded = new Promise(resolve => (frame.onload = resolve))
      frame.src = url
      document.body.append(frame)
      return loaded
    }, `${origin}/`)
    // The browser says so a moment after the page.
    await until('the frame to be refused', () => foreign.frames()[1]?.url().startsWith('chrome-error:') === true)
    const answered = foreign.waitForResponse(answer => answer.url().startsWith(origin))
    await foreign.evaluate(url => {
      const form = document.createElement('form')
      form.method = 'POST'
      form.enctype = 'text/plain'
      form.action = url
      document.body.append(form)
      form.submit()
    }, `${origin}/console/session`)
    assert.equal((await answered).status(), 403)
    assert.equal(await stillSignedIn(), 200)
  })
})
