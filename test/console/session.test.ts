/** Two tabs of one browser: they share the storage and the cookie, and each is a module of its own. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, type TestContext, test } from 'node:test'

type Session = typeof import('../../console/client/session.ts')

class Browser {
  readonly stored = new Map<string, string>()
  /** Tokens of sessions that are open on the server, with the names of their accounts. */
  readonly open = new Map<string, string>()
  /** The token whose other half is in the cookie. */
  cookie = ''
  status = 200
  readonly heard: [name: string, listener: () => void][] = []
  readonly location = { hash: '', pathname: '/', search: '' }
  readonly asked: string[] = []

  constructor(t: TestContext) {
    const fakes = {
      localStorage: {
        getItem: (name: string) => this.stored.get(name) ?? null,
        setItem: (name: string, value: string) => void this.stored.set(name, value),
        removeItem: (name: string) => void this.stored.delete(name),
      },
      location: this.location,
      history: { replaceState: () => (this.location.hash = '') },
      addEventListener: (name: string, listener: () => void) => this.heard.push([name, listener]),
      fetch: async (path: string, init: RequestInit) => this.#answer(path, init),
    }
    for (const [name, value] of Object.entries(fakes)) {
      const before = Object.getOwnPropertyDescriptor(globalThis, name)
      Object.defineProperty(globalThis, name, { value, configurable: true })
      t.after(() => {
        if (before === undefined) Reflect.deleteProperty(globalThis, name)
        else Object.defineProperty(globalThis, name, before)
      })
    }
  }

  #answer(path: string, { method = 'GET', headers, body }: RequestInit): Response {
    const token = (headers as Record<string, string>)['x-runyard-console']!
    if (this.status !== 200) return new Response('<html>', { status: this.status })
    if (method === 'POST') {
      const { key, link } = JSON.parse(String(body)) as { key?: string; link?: string }
      const name = key ?? link!
      if (path === '/console/session/link') return Response.json({ account: { name }, keyName: 'linked' })
      this.cookie = `token-of-${name}`
      this.open.set(this.cookie, name)
      return Response.json({ token: this.cookie, account: { name } })
    }
    this.asked.push(token)
    const name = token === this.cookie ? this.open.get(token) : undefined
    if (name === undefined) return Response.json({ error: 'nobody is signed in' }, { status: 401 })
    if (method !== 'DELETE') return Response.json({ account: { name } })
    this.open.delete(token)
    return new Response(null, { status: 204 })
  }

  /** A tab that has been opened. */
  async tab(): Promise<Session> {
    tabs += 1
    const session = (await import(`../../console/client/session.ts?tab=${tabs}`)) as Session
    void session.resumeSession()
    await settled()
    return session
  }

  /** The other tabs receive the change of the storage. */
  async tell(of = 'storage'): Promise<void> {
    for (const [name, listener] of this.heard) if (name === of) listener()
    await settled()
  }
}

let tabs = 0
let browser: Browser

function shownIn({ who }: Session): string | null {
  return who.value === undefined ? 'not known yet' : (who.value?.account.name ?? null)
}

async function settled(): Promise<void> {
  for (let count = 0; count < 10; count += 1) await new Promise(setImmediate)
}

beforeEach(t => {
  browser = new Browser(t as TestContext)
})
afterEach(() => browser.open.clear())

test('a tab shows who another tab has signed in as, and nobody after a sign-out there', async () => {
  const [one, other] = [await browser.tab(), await browser.tab()]
  assert.equal(one.who.value, null)
  assert.equal(await one.signIn({ key: 'ann' }), null)
  await browser.tell()
  assert.equal(other.who.value?.account.name, 'ann')
  browser.stored.set('runyard.inputs', '{}')
  await other.signOut()
  await browser.tell()
  assert.equal(one.who.value, null)
  assert.equal(browser.stored.size, 0)
})

test('a tab of one account does nothing as another account that signed in elsewhere', async () => {
  const [one, other] = [await browser.tab(), await browser.tab()]
  await one.signIn({ key: 'ann' })
  await browser.tell()
  await other.signIn({ key: 'bob' })
  const used = one.sessionHeaders()
  assert.equal(used['x-runyard-console'], 'token-of-ann')
  // The server refuses it, since the cookie is that of the other account: that does not end the session there.
  one.noteSessionEnd(used)
  assert.equal(browser.stored.get('runyard.token'), 'token-of-bob')
  await browser.tell()
  assert.equal(one.who.value?.account.name, 'bob')
})

test('what belongs to one account is gone before the next one is shown', async () => {
  const [one, other] = [await browser.tab(), await browser.tab()]
  await one.signIn({ key: 'ann' })
  const seen: unknown[] = []
  one.who.subscribe(found => void seen.push(found?.account.name))
  await other.signIn({ key: 'bob' })
  await browser.tell()
  assert.deepEqual(seen, ['ann', undefined, 'bob'])
})

test('a link signs in nobody before somebody agrees to its account, and is gone from the address', async () => {
  const one = await browser.tab()
  await one.signIn({ key: 'ann' })
  const open = async () => {
    browser.location.hash = '#link=bob'
    await browser.tell('hashchange')
    assert.equal(browser.location.hash, '')
    assert.deepEqual([shownIn(one), one.linkOffer.value?.account.name], ['ann', 'bob'])
  }
  await open()
  await one.answerLink(false)
  assert.deepEqual([shownIn(one), one.linkOffer.value, browser.cookie], ['ann', null, 'token-of-ann'])
  await open()
  await one.answerLink(true)
  assert.deepEqual([shownIn(one), one.linkOffer.value], ['bob', null])
})

test('a page that is opened by a link shows who was signed in, until somebody agrees', async () => {
  await (await browser.tab()).signIn({ key: 'ann' })
  browser.location.hash = '#link=bob'
  const next = await browser.tab()
  assert.deepEqual([shownIn(next), next.linkOffer.value?.keyName], ['ann', 'linked'])
})

test('a late refusal of a session that is over does not end the next one', async () => {
  const one = await browser.tab()
  await one.signIn({ key: 'ann' })
  const used = one.sessionHeaders()
  await one.signIn({ key: 'bob' })
  one.noteSessionEnd(used)
  assert.equal(one.who.value?.account.name, 'bob')
})

test('a server that is away or starts ends no session: it is asked again', async t => {
  const one = await browser.tab()
  await one.signIn({ key: 'ann' })
  browser.status = 503
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const later = await browser.tab()
  assert.deepEqual([shownIn(later), later.isAway.value], ['not known yet', true])
  browser.status = 200
  t.mock.timers.tick(20_000)
  await settled()
  assert.deepEqual([shownIn(later), later.isAway.value], ['ann', false])
})

test('without a token the server is not asked, and an answer that is no JSON is a sentence', async () => {
  const one = await browser.tab()
  assert.deepEqual(browser.asked, [])
  browser.status = 502
  assert.equal(await one.signIn({ key: 'ann' }), 'The server answered 502.')
})
