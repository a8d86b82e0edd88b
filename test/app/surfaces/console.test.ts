/** The origin of the console: its files, its headers, and what is answered there and at other hosts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { ConsoleFile, ConsoleFiles } from '../../../src/ports/console-files.ts'
import { askAs, OF_PAGE, signIn, trySignIn } from '../../support/console.ts'
import { CONSOLE, KEY, openRig } from '../../support/rig.ts'

const AT = { at: CONSOLE, key: null }

function consoleFile(contentType: string, text: string, immutable = false): ConsoleFile {
  const plain = Buffer.from(text)
  return { contentType, immutable, plain, gzip: text.length > 100 ? gzipSync(plain) : null }
}

const SCRIPT = `// ${'x'.repeat(200)}`
const files = new Map([
  ['/index.html', consoleFile('text/html; charset=utf-8', '<!doctype html>the page')],
  ['/app-1a2b.js', consoleFile('text/javascript; charset=utf-8', SCRIPT, true)],
])
const consoleFiles: ConsoleFiles = { find: async path => files.get(path) ?? null }

test('the page is at the root and at each address of its tabs, and is asked for again each time', async t => {
  const rig = await openRig(t, { consoleFiles })
  for (const path of ['/', '/index.html', '/endpoints', '/endpoints/e1/requests?state=FAILED', '/sign-in/']) {
    const { status, text, headers } = await rig.ask('GET', path, AT)
    assert.equal(status, 200, path)
    assert.equal(text, '<!doctype html>the page')
    assert.equal(headers.get('content-type'), 'text/html; charset=utf-8')
    assert.equal(headers.get('cache-control'), 'no-cache')
  }
  const { headers } = await rig.ask('GET', '/', AT)
  const same = await rig.ask('GET', '/', { ...AT, headers: { 'if-none-match': `"x", ${headers.get('etag')}` } })
  assert.deepEqual([same.status, same.text], [304, ''])
  assert.equal(same.headers.get('etag'), headers.get('etag'))
})

test('a file with a hash in its name is kept for good, and sent compressed to who takes that', async t => {
  const rig = await openRig(t, { consoleFiles })
  const plain = await rig.ask('GET', '/app-1a2b.js', AT)
  assert.equal(plain.text, SCRIPT)
  assert.equal(plain.headers.get('cache-control'), 'public, max-age=31536000, immutable')
  assert.equal(plain.headers.get('vary'), 'accept-encoding')
  const headers = { 'accept-encoding': 'gzip, br' }
  const small = await rig.open('/app-1a2b.js', { ...AT, headers })
  assert.equal(small.headers.get('content-encoding'), 'gzip')
  assert.equal((await small.bytes()).byteLength, files.get('/app-1a2b.js')?.gzip?.byteLength)
  const head = await rig.ask('HEAD', '/app-1a2b.js', AT)
  assert.deepEqual([head.status, head.text, head.headers.get('content-length')], [200, '', String(SCRIPT.length)])
})

test('what is no file is no page either, and files are only read', async t => {
  const rig = await openRig(t, { consoleFiles })
  for (const path of ['/app-old.js', '/lb/e1/', '/lb', '/console/link', '/console/x', '/v3/x', '/v2/e1/job-take/w1']) {
    const { status, headers } = await rig.ask('GET', path, { ...AT, headers: OF_PAGE })
    assert.equal(status, 404, path)
    assert.match(headers.get('content-type') ?? '', /application\/json/)
  }
  const post = await rig.ask('POST', '/endpoints', { ...AT, headers: OF_PAGE })
  assert.deepEqual([post.status, post.headers.get('allow')], [405, 'GET, HEAD'])
  const upgrade = { upgrade: 'websocket' }
  assert.equal((await rig.ask('GET', '/', { ...AT, headers: upgrade })).status, 404)
})

test('a build without the page says so, and its APIs are answered', async t => {
  const rig = await openRig(t)
  const { status, json } = await rig.ask('GET', '/', AT)
  assert.deepEqual([status, json], [404, { error: 'the console is not part of this build' }])
  assert.equal((await askAs(rig, await signIn(rig), 'GET /v2/serverless')).status, 200)
})

test('everything of the origin is kept from other pages, from inline code and from frames', async t => {
  const rig = await openRig(t, { consoleFiles, corsOrigins: ['*'] })
  const session = await signIn(rig)
  const endpoint = await rig.endpoint()
  const answers = [
    await rig.ask('GET', '/', AT),
    await rig.ask('GET', '/missing.js', AT),
    await rig.ask('GET', '/v2/serverless', AT),
    await trySignIn(rig, { key: KEY }),
    await askAs(rig, session, 'GET /v2/docs'),
    await askAs(rig, session, 'GET /v2/openapi.json'),
    await askAs(rig, session, 'GET /graphql', { headers: { accept: 'text/html' } }),
    await askAs(rig, session, `POST /v2/${endpoint}/run`, { body: { input: {} } }),
  ]
  for (const { headers } of answers) {
    const policy = headers.get('content-security-policy') ?? ''
    assert.match(policy, /default-src 'none'/)
    assert.match(policy, /frame-ancestors 'none'/)
    assert.doesNotMatch(policy, /unsafe|\*/)
    const places = policy.split('; ').filter(rule => /data:|blob:|https?:/.test(rule))
    assert.deepEqual(places, ["img-src 'self' data: blob:", 'media-src data: blob:'])
    assert.equal(headers.get('x-frame-options'), 'DENY')
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
    assert.equal(headers.get('cross-origin-resource-policy'), 'same-origin')
    assert.equal(headers.get('cross-origin-opener-policy'), 'same-origin')
    assert.equal(headers.get('referrer-policy'), 'no-referrer')
    assert.equal(headers.get('strict-transport-security'), null)
    assert.equal(headers.get('access-control-allow-origin'), null)
  }
  for (const { headers } of answers.slice(2)) assert.equal(headers.get('cache-control'), 'no-store')
})

test('both halves of one session are needed, for reads as well', async t => {
  const rig = await openRig(t)
  const [mine, other] = [await signIn(rig), await signIn(rig)]
  const lines = ['GET /console/session', 'GET /v2/serverless', 'GET /v1/endpoints', 'GET /ops/top', 'GET /healthz']
  const halves = [
    { cookie: mine.cookie, token: '' },
    { cookie: '', token: mine.token },
    { cookie: mine.cookie, token: other.token },
    { cookie: other.cookie, token: mine.token },
    { cookie: mine.cookie, token: mine.cookie.split('=')[1]! },
    { cookie: mine.cookie.replace('-8080', ''), token: mine.token },
    { cookie: mine.cookie.replace('runyard', 'Runyard'), token: mine.token },
  ]
  for (const line of lines) {
    for (const half of halves)
      assert.equal((await askAs(rig, half, line)).status, 401, `${line} ${JSON.stringify(half)}`)
    assert.equal((await askAs(rig, mine, line)).status, 200, line)
  }
  assert.equal(
    (await askAs(rig, { ...mine, token: '' }, 'POST /graphql', { body: { query: '{ __typename }' } })).status,
    401,
  )
})

test('a cookie of the same name that another port has set keeps nobody out, and signs nobody in', async t => {
  const rig = await openRig(t)
  const { cookie, token } = await signIn(rig)
  const foreign = `runyard-console-8080=${'A'.repeat(43)}`
  const name = cookie.split('=')[0]
  const shadows = Array.from({ length: 60 }, (_, at) => `${name}=${String(at).padStart(43, 'A')}`)
  const junk = Array.from({ length: 60 }, (_, at) => `${name}=${at}`)
  for (const before of [[foreign], [...junk, ...shadows, ...shadows], Array(300).fill(foreign)]) {
    const both = { cookie: `theme=dark; ${before.join('; ')}; ${cookie}`, token }
    assert.equal((await askAs(rig, both, 'GET /console/session')).status, 200)
  }
  const later = await signIn(rig)
  assert.notEqual(later.cookie.split('=')[0], name, 'what is set blindly takes the place of none')
  assert.equal((await askAs(rig, { cookie: foreign, token }, 'GET /console/session')).status, 401)
  const given = { ...OF_PAGE, cookie: foreign, 'x-runyard-console': 'B'.repeat(43) }
  const signedIn = await trySignIn(rig, { key: KEY }, { headers: given })
  assert.ok(!signedIn.headers.get('set-cookie')?.includes('AAA'), 'a session has never halves that came with a request')
  assert.notEqual(signedIn.json.token, 'B'.repeat(43))
})

test('a key is no session: at this origin it opens nothing', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  const paths = ['/v2/serverless', '/v1/endpoints', `/v2/${endpoint}/health`, '/ops/top', '/graphql?query={__typename}']
  for (const path of [...paths, `/graphql?query={__typename}&api_key=${KEY}`]) {
    assert.equal((await rig.ask('GET', path, { at: CONSOLE, key: KEY })).status, 401, path)
  }
  await rig.addKey('rpa_of_somebody', { scope: { type: 'read-only' } })
  const session = await signIn(rig, { key: 'rpa_of_somebody' })
  const asked = { key: KEY, headers: { authorization: `Bearer ${KEY}` } }
  assert.equal(
    (await askAs(rig, session, `DELETE /v2/serverless/${endpoint}`, asked)).status,
    403,
    'the session counts',
  )
})

test('a session is no key: at other hosts it opens nothing', async t => {
  const rig = await openRig(t)
  const session = await signIn(rig)
  for (const at of ['http://localhost:8080', 'http://127.0.0.1:8080', 'http://x.console.localhost:8080']) {
    for (const line of ['GET /v2/serverless', 'GET /ops/top']) {
      assert.equal((await askAs(rig, session, line, { at })).status, 401, `${at} ${line}`)
    }
    assert.equal((await askAs(rig, session, 'GET /console/session', { at })).status, 404)
  }
})

test('only the page of the console is answered: by its origin, and by what browsers say', async t => {
  const rig = await openRig(t)
  const session = await signIn(rig)
  const endpoint = await rig.endpoint()
  const origins = [
    'http://evil.example',
    'http://console.localhost:9000',
    'http://console.localhost',
    'https://console.localhost:8080',
    'http://e1.lb.localhost:8080',
    'http://localhost:8080',
    'http://console.localhost.:8080',
    'null',
    '',
  ]
  const refused = async (headers: Record<string, string>, line: string) => {
    const sent = { cookie: session.cookie, 'x-runyard-console': session.token, ...headers }
    const [method = '', path = ''] = line.split(' ')
    const { status, headers: answered } = await rig.ask(method, path, { ...AT, headers: sent })
    assert.equal(status, 403, `${line} ${JSON.stringify(headers)}`)
    assert.equal(answered.get('access-control-allow-origin'), null)
  }
  const writes = [
    `POST /v2/${endpoint}/run`,
    `DELETE /v2/serverless/${endpoint}`,
    'POST /graphql',
    'DELETE /console/session',
  ]
  for (const line of [...writes, 'OPTIONS /v2/serverless', 'POST /console/session']) {
    for (const origin of origins) await refused({ origin }, line)
    await refused({}, line)
    for (const site of ['cross-site', 'same-site', 'none'])
      await refused({ origin: CONSOLE, 'sec-fetch-site': site }, line)
  }
  for (const line of ['GET /v2/serverless', 'GET /console/session', 'HEAD /v2/serverless']) {
    for (const origin of origins) await refused({ origin }, line)
    for (const site of ['cross-site', 'same-site', 'none']) await refused({ 'sec-fetch-site': site }, line)
  }
  assert.equal((await askAs(rig, session, 'GET /console/session', { headers: OF_PAGE })).status, 200)
})

test('a page at another address of the console receives the right address', async t => {
  const rig = await openRig(t)
  const { json } = await trySignIn(rig, { key: KEY }, { headers: { origin: 'http://console.localhost:9000' } })
  assert.match(
    json.error,
    /console\.localhost:9000, but the console is at http:\/\/console\.localhost:8080.*--console-url/,
  )
})

test('signing in needs a header that no form can send', async t => {
  const rig = await openRig(t)
  const body = { key: KEY }
  const headers = OF_PAGE
  assert.equal((await rig.ask('POST', '/console/session', { ...AT, body, headers })).status, 403)
  const form = { ...AT, body: '{"key":"', headers: { ...OF_PAGE, 'x-runyard-console': '1' }, type: 'text/plain' }
  assert.equal((await rig.ask('POST', '/console/session', form)).status, 400)
})

test('the console is found by its host, whatever its case, port and final dot', async t => {
  const rig = await openRig(t, { consoleFiles })
  for (const at of ['http://CONSOLE.localhost:8080', 'http://console.localhost.:8080', 'http://console.localhost:1']) {
    const { status, text } = await rig.ask('GET', '/', { at, key: null })
    assert.deepEqual([status, text], [200, '<!doctype html>the page'], at)
    assert.equal((await rig.ask('GET', '/v2/serverless', { at })).status, 401, at)
  }
  assert.equal((await rig.ask('GET', '/', { at: 'http://localhost:8080', key: null })).status, 404)
})

test('who opens the server itself in a browser on the machine is led to the console', async t => {
  const rig = await openRig(t)
  const headers = { accept: 'text/html,application/xhtml+xml' }
  for (const at of ['http://localhost:8080', 'http://127.0.0.1:8080', 'http://[::1]:8080']) {
    const { status, headers: answered } = await rig.ask('GET', '/', { at, key: null, headers })
    assert.deepEqual([status, answered.get('location')], [302, `${CONSOLE}/`])
    assert.equal((await rig.ask('GET', '/x', { at, key: null, headers })).status, 404)
  }
  for (const [at, accept] of [
    ['http://localhost:8080', '*/*'],
    ['http://runyard.example', 'text/html'],
  ] as const) {
    const { status, json } = await rig.ask('GET', '/', { at, key: null, headers: { accept } })
    assert.deepEqual([status, json], [404, { error: `there is nothing at this path; the console is at ${CONSOLE}` }])
  }
})
