/** Signing in to the console: with a key or a link, for 12 hours, and never longer than the key is valid. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { callerFromKey, type KeyScope } from '../../../src/core/accounts/permission.ts'
import type { OwnerId } from '../../../src/core/ids.ts'
import { Sessions } from '../../../src/services/accounts/sessions.ts'
import { askAs, OF_PAGE, signIn, trySignIn } from '../../support/console.ts'
import { CONSOLE, KEY, openRig, type Rig } from '../../support/rig.ts'
import { servicesOf } from '../../support/services.ts'

const STRANGER = 'stranger' as OwnerId
const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000
const WHO = 'GET /console/session'

async function recordOf(rig: Rig, key: string) {
  const record = await rig.store.keys.findByHash(rig.vault.hash(key))
  assert.ok(record !== null)
  return record
}

async function operatorOf(rig: Rig) {
  return callerFromKey(await recordOf(rig, KEY))
}

async function newLink(rig: Rig, key = KEY): Promise<string> {
  const { status, json, text } = await rig.ask('POST', '/console/link', { key })
  assert.equal(status, 200, text)
  assert.match(json.url, /^http:\/\/console\.localhost:8080\/#link=[\w-]{43}$/)
  return json.url.split('#link=')[1]
}

/** A rig with a key of this scope, with which somebody is signed in. */
async function signedInWith(t: TestContext, scope: KeyScope, expiresAtMs: number | null = null) {
  const rig = await openRig(t)
  await rig.addKey('rpa_of_somebody', { scope, expiresAtMs })
  return { rig, record: await recordOf(rig, 'rpa_of_somebody'), session: await signIn(rig, { key: 'rpa_of_somebody' }) }
}

test('a key signs in, and the page receives its account and the addresses of the APIs', async t => {
  const rig = await openRig(t)
  const answer = await trySignIn(rig, { key: ` ${KEY}\n` })
  assert.equal(answer.status, 200)
  const { token, ...who } = answer.json
  assert.match(token, /^[\w-]{43}$/)
  // The place in the events from which the page follows them.
  assert.match(who.lastEventId, /^\w+-\d+$/)
  const { id } = await recordOf(rig, KEY)
  assert.deepEqual(who, {
    expiresAt: new Date(rig.clock.now() + 12 * HOUR_MS).toISOString(),
    account: { id: 'owner', name: who.account.name },
    keyId: id,
    keyName: 'test',
    scope: { type: 'all' },
    operator: true,
    lastEventId: who.lastEventId,
    server: {
      version: 'unknown',
      url: 'http://localhost:8080',
      queueUrl: 'http://localhost:8080',
      lbUrl: 'http://localhost:8080/lb/{id}',
    },
  })
  const cookie = answer.headers.get('set-cookie') ?? ''
  assert.match(cookie, /^runyard-console-8080-[\w-]{12}=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/)
  assert.ok(!answer.text.includes(cookie.slice(34, 77)), 'the cookie is not in the body')
  const again = await askAs(rig, { cookie: cookie.split(';')[0]!, token }, WHO)
  assert.deepEqual(again.json, who)
  assert.equal(again.headers.get('cache-control'), 'no-store')
  assert.deepEqual(
    rig.events.filter(({ name }) => name === 'session.opened'),
    [{ name: 'session.opened', account: 'owner', keyId: id, by: 'key', address: '192.0.2.1' }],
  )
})

test('a session calls every API as its key, and its changes are published with that key', async t => {
  const rig = await openRig(t)
  const session = await signIn(rig)
  const endpoint = await rig.endpoint()
  const reads = ['/v2/serverless', '/v1/endpoints', '/ops/why', '/ops/top', `/v2/${endpoint}/health`, '/metrics']
  for (const path of reads) assert.equal((await askAs(rig, session, `GET ${path}`)).status, 200, path)
  const query = { query: '{ myself { id } }' }
  assert.equal((await askAs(rig, session, 'POST /graphql', { body: query })).json.data.myself.id, 'owner')
  const ran = await askAs(rig, session, `POST /v2/${endpoint}/run`, { body: { input: {} } })
  assert.equal(ran.json.status, 'IN_QUEUE')
  const made = await askAs(rig, session, 'POST /v2/account/secrets', { body: { name: 's', value: 'v' } })
  assert.ok([200, 201].includes(made.status), made.text)
  const { id } = await recordOf(rig, KEY)
  const changes = rig.events.filter(event => event.name === 'change.made').map(({ by }) => by)
  assert.ok(changes.length >= 2 && changes.every(by => by === id))
})

test('keys that are wrong, disabled or expired do not sign in, and count as failed keys of their address', async t => {
  const rig = await openRig(t)
  await rig.addKey('rpa_disabled_key_of_somebody', { disabled: true })
  for (const key of ['rpa_wrong', 'rpa_disabled_key_of_somebody']) {
    const { status, json } = await trySignIn(rig, { key })
    assert.equal(status, 401)
    assert.match(json.error, /the API key is invalid or has expired/)
  }
  for (let count = 0; count < 18; count += 1) await trySignIn(rig, { link: 'x'.repeat(43) })
  assert.equal((await trySignIn(rig, { key: 'rpa_wrong' })).status, 429)
  assert.equal((await trySignIn(rig, { key: KEY })).status, 200)
  assert.equal(rig.events.filter(({ name }) => name === 'key.failed').length, 21)
})

test('an invalid body is refused with the expected form', async t => {
  const rig = await openRig(t)
  const bodies = [
    {},
    { key: '' },
    { key: 1 },
    { key: 'a', link: 'b' },
    { key: 'a', more: 1 },
    [],
    'null',
    '{',
    undefined,
  ]
  for (const body of bodies) {
    const { status, json } = await trySignIn(rig, body, { type: 'application/json; charset=utf-8' })
    assert.equal(status, 400, JSON.stringify(body))
    assert.match(json.error, /body/)
  }
  assert.equal((await trySignIn(rig, { key: KEY }, { type: 'text/plain' })).status, 400)
  assert.equal((await trySignIn(rig, { key: 'x'.repeat(5_000) })).status, 413)
})

test('a link signs in once, within ten minutes', async t => {
  const rig = await openRig(t)
  const link = await newLink(rig)
  const late = await newLink(rig)
  assert.equal((await signIn(rig, { link })).who.keyName, 'test')
  const again = await trySignIn(rig, { link })
  assert.equal(again.status, 401)
  assert.match(again.json.error, /was used or is too old; runyard console prints a new one/)
  await rig.clock.advance(10 * MINUTE_MS)
  assert.equal((await trySignIn(rig, { link: late })).status, 401)
})

test('a link says whom it signs in, to the page of the console alone, and works after that', async t => {
  const rig = await openRig(t)
  await rig.addKey('rpa_of_somebody', { owner: STRANGER, name: 'theirs' })
  const link = await newLink(rig, 'rpa_of_somebody')
  const ask = (body: unknown, headers: Record<string, string> = OF_PAGE) =>
    rig.ask('POST', '/console/session/link', {
      at: CONSOLE,
      key: null,
      address: '192.0.2.1',
      body,
      headers: { ...headers, 'x-runyard-console': '1' },
    })
  for (let count = 0; count < 2; count += 1) {
    const { status, json, headers } = await ask({ link })
    assert.deepEqual(
      [status, json.account.id, json.keyName, headers.get('set-cookie')],
      [200, STRANGER, 'theirs', null],
    )
  }
  assert.equal((await ask({ link }, { origin: 'http://evil.example' })).status, 403)
  assert.equal((await ask({ link }, { ...OF_PAGE, 'sec-fetch-site': 'cross-site' })).status, 403)
  assert.equal((await ask({ key: KEY })).status, 400)
  assert.equal((await ask({ link: 'x'.repeat(43) })).status, 401)
  assert.equal((await rig.ask('GET', '/console/session/link', { at: CONSOLE, key: null })).status, 405)
  assert.equal((await signIn(rig, { link })).who.account.id, STRANGER)
  assert.equal((await ask({ link })).status, 401)
})

test('a link has the rights of the key that it was made with, and needs one', async t => {
  const rig = await openRig(t)
  await rig.addKey('rpa_reading', { scope: { type: 'read-only' } })
  const link = await newLink(rig, 'rpa_reading')
  assert.deepEqual((await signIn(rig, { link })).who.scope, { type: 'read-only' })
  assert.equal((await rig.ask('POST', '/console/link', { key: null })).status, 401)
  assert.equal((await rig.ask('POST', '/console/link', { key: 'rpa_wrong' })).status, 401)
  assert.equal((await rig.ask('GET', '/console/link')).status, 405)
  const session = await signIn(rig)
  assert.equal((await askAs(rig, session, 'POST /console/link')).status, 404, 'a session makes no link')
})

test('a link is worth nothing once its key is gone, and an account has ten at most', async t => {
  const rig = await openRig(t)
  await rig.addKey('rpa_of_somebody', { owner: STRANGER })
  const foreign = await newLink(rig, 'rpa_of_somebody')
  const links: string[] = []
  for (let count = 0; count < 11; count += 1) links.push(await newLink(rig))
  assert.equal((await trySignIn(rig, { link: links[0] })).status, 401, 'the oldest made place')
  assert.equal((await trySignIn(rig, { link: links[1] })).status, 200)
  assert.equal((await trySignIn(rig, { link: foreign })).status, 200, 'those of others stay')
  const other = await newLink(rig, 'rpa_of_somebody')
  const { id, owner } = await recordOf(rig, 'rpa_of_somebody')
  await rig.services.keys.remove({ ...(await operatorOf(rig)), owner }, id)
  assert.equal((await trySignIn(rig, { link: other })).status, 401)
})

test('a session ends after 12 hours, however much it is used', async t => {
  const rig = await openRig(t)
  const session = await signIn(rig)
  // Without its loops, which have much to do in so many hours.
  await rig.crash()
  for (let hour = 1; hour < 12; hour += 1) {
    await rig.clock.advance(HOUR_MS)
    assert.equal((await askAs(rig, session, WHO)).status, 200)
  }
  await rig.clock.advance(HOUR_MS)
  const { status, json } = await askAs(rig, session, 'GET /v2/serverless')
  assert.equal(status, 401)
  assert.match(json.error, /sign in again/)
})

test('a session survives a restart of the server', async t => {
  const rig = await openRig(t)
  const session = await signIn(rig)
  await rig.crash()
  await rig.start()
  assert.equal((await askAs(rig, session, WHO)).status, 200)
  assert.equal((await askAs(rig, session, 'DELETE /console/session')).status, 204)
  await rig.crash()
  await rig.start()
  assert.equal((await askAs(rig, session, WHO)).status, 401)
})

test('a session ends with its key: deleted, disabled, or expired', async t => {
  const { rig, record, session } = await signedInWith(t, { type: 'all' })
  const operator = await operatorOf(rig)
  await rig.services.keys.update(operator, record.id, { disabled: true })
  assert.equal((await askAs(rig, session, WHO)).status, 401)
  await rig.services.keys.update(operator, record.id, { disabled: false })
  assert.equal((await askAs(rig, session, WHO)).status, 200)
  const expiresAtMs = rig.clock.now() + MINUTE_MS
  await rig.services.keys.update(operator, record.id, { expiresAtMs })
  assert.equal((await signIn(rig, { key: 'rpa_of_somebody' })).who.expiresAt, new Date(expiresAtMs).toISOString())
  await rig.clock.advance(MINUTE_MS)
  assert.equal((await askAs(rig, session, WHO)).status, 401)
  await rig.services.keys.update(operator, record.id, { expiresAtMs: null })
  await rig.services.keys.remove(operator, record.id)
  assert.equal((await askAs(rig, session, WHO)).status, 401)
})

test('signing out ends the session and what it holds open, and no other session', async t => {
  const rig = await openRig(t)
  const [session, other] = [await signIn(rig), await signIn(rig)]
  const headers = { origin: CONSOLE, cookie: session.cookie, 'x-runyard-console': session.token }
  const stream = await rig.open('/v2/events', { at: CONSOLE, key: null, headers })
  assert.equal(stream.status, 200)
  const read = stream.text()
  const out = await askAs(rig, session, 'DELETE /console/session')
  assert.equal(out.status, 204)
  assert.match(out.headers.get('set-cookie') ?? '', /^runyard-console-8080-[\w-]{12}=; Path=\/; Max-Age=0; HttpOnly/)
  await rig.clock.advance(1_000)
  await read
  assert.equal((await askAs(rig, session, WHO)).status, 401)
  assert.equal((await askAs(rig, session, 'DELETE /console/session')).status, 204)
  assert.equal((await askAs(rig, other, WHO)).status, 200)
  assert.equal(rig.events.filter(({ name }) => name === 'session.closed').length, 1)
})

test('what a session holds open ends with its 12 hours, and what is released does not', async t => {
  const rig = await openRig(t)
  await rig.crash()
  const sessions = new Sessions(rig.ports, servicesOf(rig).access)
  const { halves } = await sessions.open({ key: KEY }, () => '192.0.2.1')
  const { hold } = await sessions.find(halves)
  const ended: string[] = []
  hold(({ code }) => ended.push(`stream ${code}`))
  hold(() => ended.push('released'))()
  await rig.clock.advance(12 * HOUR_MS - 1)
  assert.deepEqual(ended, [])
  await rig.clock.advance(1)
  assert.deepEqual(ended, ['stream unauthorized'])
})

test('a request that was let in just before somebody signed out holds nothing open after it', async t => {
  const rig = await openRig(t)
  const sessions = new Sessions(rig.ports, servicesOf(rig).access)
  const { halves } = await sessions.open({ key: KEY }, () => '192.0.2.1')
  const { hold } = await sessions.find(halves)
  await sessions.close(halves)
  const ended: string[] = []
  hold(({ code }) => ended.push(code))
  assert.deepEqual(ended, ['unauthorized'])
  await assert.rejects(sessions.find(halves), /sign in again/)
})

test('an account has a hundred sessions, and a further one ends the oldest of its own', async t => {
  const rig = await openRig(t)
  await rig.addKey('rpa_of_somebody', { owner: STRANGER })
  const foreign = await signIn(rig, { key: 'rpa_of_somebody' })
  const first = await signIn(rig)
  await rig.clock.advance(1)
  const second = await signIn(rig)
  await rig.clock.advance(1)
  for (let count = 2; count < 101; count += 1) await signIn(rig)
  assert.equal((await askAs(rig, first, WHO)).status, 401)
  for (const session of [second, foreign]) assert.equal((await askAs(rig, session, WHO)).status, 200)
})

test('sessions that are over are removed', async t => {
  const rig = await openRig(t)
  const { id: keyId, owner } = await recordOf(rig, KEY)
  const createdAtMs = rig.clock.now()
  const ends = { old: createdAtMs + 1_000, young: createdAtMs + HOUR_MS }
  for (const [hash, expiresAtMs] of Object.entries(ends)) {
    await rig.store.sessions.insert({ hash, owner, keyId, createdAtMs, expiresAtMs }, 9)
  }
  await rig.clock.advance(2 * MINUTE_MS)
  assert.equal(await rig.store.sessions.find('old'), null)
  assert.notEqual(await rig.store.sessions.find('young'), null)
})

test('a session has the rights of its key and no more: read-only, or the jobs of one endpoint', async t => {
  const reading = await signedInWith(t, { type: 'read-only' })
  const endpoint = await reading.rig.endpoint()
  const { rig, session } = reading
  assert.equal((await askAs(rig, session, 'GET /v2/serverless')).status, 200)
  assert.equal((await askAs(rig, session, `DELETE /v2/serverless/${endpoint}`)).status, 403)
  assert.equal((await askAs(rig, session, `POST /v2/${endpoint}/run`, { body: { input: {} } })).status, 403)
  const other = await rig.endpoint()
  const scope = { type: 'restricted', management: 'none', jobs: { [endpoint]: 'write' } } as const
  await rig.addKey('rpa_for_jobs', { scope })
  const jobs = await signIn(rig, { key: 'rpa_for_jobs' })
  assert.deepEqual([jobs.who.operator, jobs.who.scope], [false, scope])
  assert.equal((await askAs(rig, jobs, 'GET /v2/serverless')).status, 403)
  assert.equal((await askAs(rig, jobs, `POST /v2/${endpoint}/run`, { body: { input: {} } })).status, 200)
  assert.equal((await askAs(rig, jobs, `POST /v2/${other}/run`, { body: { input: {} } })).status, 403)
})

test('a right that the key loses is lost at the next request', async t => {
  const { rig, record, session } = await signedInWith(t, { type: 'all' })
  assert.equal((await askAs(rig, session, WHO)).json.scope.type, 'all')
  await rig.services.keys.update(await operatorOf(rig), record.id, { scope: { type: 'read-only' } })
  const endpoint = await rig.endpoint()
  assert.equal((await askAs(rig, session, `DELETE /v2/serverless/${endpoint}`)).status, 403)
})

test('somebody of another account sees nothing of this one', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  await rig.addKey('rpa_of_somebody', { owner: STRANGER })
  const session = await signIn(rig, { key: 'rpa_of_somebody' })
  assert.deepEqual([session.who.account.id, session.who.operator], ['stranger', false])
  assert.deepEqual((await askAs(rig, session, 'GET /v2/serverless')).json.endpoints, [])
  assert.equal((await askAs(rig, session, `GET /v2/serverless/${endpoint}`)).status, 404)
})
