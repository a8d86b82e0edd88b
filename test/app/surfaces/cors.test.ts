/** Web pages that may call the job operations. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HandedRequest } from '../../../src/api/surface.ts'
import { BALANCED } from '../../support/balanced.ts'
import { KEY, openRig } from '../../support/rig.ts'

const PAGE = 'https://app.example'

function preflight(origin: string): { headers: Record<string, string> } {
  const asked = {
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'authorization,content-type',
  }
  return { headers: { origin, ...asked } }
}

test('a page of an origin that is named may call job operations, and read refusals too', async t => {
  const rig = await openRig(t, { corsOrigins: [PAGE] })
  const endpoint = await rig.endpoint()
  const path = `/v2/${endpoint}/run`
  const asked = await rig.open(path, preflight(PAGE), 'OPTIONS')
  assert.equal(asked.status, 204)
  assert.equal(asked.headers.get('access-control-allow-origin'), PAGE)
  assert.equal(asked.headers.get('access-control-allow-headers'), 'authorization,content-type')
  assert.equal(asked.headers.get('access-control-allow-methods'), 'GET, POST')
  assert.equal(asked.headers.get('access-control-allow-credentials'), null)
  for (const key of [undefined, 'wrong']) {
    const answer = await rig.ask('POST', path, {
      body: { input: {} },
      headers: { origin: PAGE },
      ...(key === undefined ? {} : { key }),
    })
    assert.equal(answer.headers.get('access-control-allow-origin'), PAGE)
    assert.match(answer.headers.get('vary') ?? '', /origin/)
    assert.equal(answer.status, key === undefined ? 200 : 401)
  }
})

test('other pages may not, and no page may call management', async t => {
  const rig = await openRig(t, { corsOrigins: [PAGE] })
  const endpoint = await rig.endpoint()
  const other = await rig.open(`/v2/${endpoint}/run`, preflight('https://evil.example'), 'OPTIONS')
  assert.deepEqual([other.status, other.headers.get('access-control-allow-origin')], [403, null])
  for (const path of ['/v2/serverless', '/graphql', '/v2/account/keys']) {
    const asked = await rig.open(path, preflight(PAGE), 'OPTIONS')
    assert.equal(asked.status, 403, path)
    assert.match(await asked.text(), /may call only the job operations of endpoints, never management/)
    assert.equal(asked.headers.get('access-control-allow-origin'), null, path)
  }
})

test('a star allows all pages, and without the setting no page is allowed', async t => {
  const open = await openRig(t, { corsOrigins: ['*'] })
  const first = await open.endpoint()
  const asked = await open.open(`/v2/${first}/status/x`, preflight('https://any.example'), 'OPTIONS')
  assert.deepEqual([asked.status, asked.headers.get('access-control-allow-origin')], [204, '*'])
  const closed = await openRig(t)
  const second = await closed.endpoint()
  const answer = await closed.ask('POST', `/v2/${second}/run`, { body: { input: {} }, headers: { origin: PAGE } })
  assert.deepEqual([answer.status, answer.headers.get('access-control-allow-origin')], [200, null])
  assert.equal((await closed.open(`/v2/${second}/run`, preflight(PAGE), 'OPTIONS')).status, 403)
})

test('an endpoint names pages of its own, and no other endpoint has them', async t => {
  const rig = await openRig(t)
  const [mine, other] = [await rig.endpoint(), await rig.endpoint()]
  const named = await rig.ask('PATCH', `/v2/serverless/${mine}`, { body: { corsOrigins: [PAGE] } })
  assert.deepEqual([named.status, named.json.corsOrigins], [200, [PAGE]])
  const allowed = async (id: string) => {
    const asked = await rig.open(`/v2/${id}/run`, preflight(PAGE), 'OPTIONS')
    const answer = await rig.ask('POST', `/v2/${id}/run`, { body: { input: {} }, headers: { origin: PAGE } })
    return [
      asked.status,
      asked.headers.get('access-control-allow-origin'),
      answer.headers.get('access-control-allow-origin'),
    ]
  }
  assert.deepEqual(await allowed(mine), [204, PAGE, PAGE])
  assert.deepEqual(await allowed(other), [403, null, null])
  assert.deepEqual(await allowed('nothing1'), [403, null, null])
  const wrong = await rig.open(`/v2/${mine}/run`, preflight('https://evil.example'), 'OPTIONS')
  assert.equal(wrong.status, 403)
  await rig.ask('PATCH', `/v2/serverless/${mine}`, { body: { corsOrigins: [] } })
  assert.deepEqual(await allowed(mine), [403, null, null])
})

test('a page is told how it may call models, and reads the answers of their workers', async t => {
  const rig = await openRig(t, { corsOrigins: [PAGE] })
  const path = '/openai/v1/chat/completions'
  const refused = await rig.open(path, preflight('https://evil.example'), 'OPTIONS')
  assert.equal(refused.status, 403)
  const { error } = await refused.json()
  assert.match(error, /may not call models: allow them with --cors-origin https:\/\/evil\.example/)
  assert.equal((await rig.open(path, preflight(PAGE), 'OPTIONS')).status, 204)
  await rig.endpoint({ ...BALANCED, name: 'qwen' })
  const handed: HandedRequest[] = []
  const call = async (origin: string) => {
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', origin }
    const body = JSON.stringify({ model: 'qwen', messages: [] })
    await rig.surface(new Request(`http://localhost:8080${path}`, { method: 'POST', headers, body }), {
      delivery: { onSettled: () => {} },
      requestId: 'r1',
      balanced: request => {
        handed.push(request)
        return { sent: Promise.resolve(), ended: Promise.resolve(200) }
      },
    })
    return handed.at(-1)!.answerFields
  }
  assert.deepEqual((await call(PAGE))?.slice(0, 2), ['access-control-allow-origin', PAGE])
  assert.deepEqual(await call('https://evil.example'), [])
})

test('what is no origin is refused with its form', async t => {
  const rig = await openRig(t)
  const mine = await rig.endpoint()
  for (const origin of [
    'app.example',
    'https://app.example/',
    'https://app.example/x',
    'ftp://app.example',
    'https://App.example',
    'null',
    '',
  ]) {
    const { status, text } = await rig.ask('PATCH', `/v2/serverless/${mine}`, { body: { corsOrigins: [origin] } })
    assert.equal(status, 400, origin)
    assert.match(text, /corsOrigins: .*is not an origin of web pages such as https:\/\/app\.example/)
  }
})

test('pages that call an endpoint with a star are answered while the database is away, without permission', async t => {
  const rig = await openRig(t)
  const mine = await rig.endpoint()
  await rig.ask('PATCH', `/v2/serverless/${mine}`, { body: { corsOrigins: ['*'] } })
  rig.failNext('endpoints.find', 'before', 5)
  assert.equal((await rig.open(`/v2/${mine}/run`, preflight(PAGE), 'OPTIONS')).status, 405)
})

test('a refusal of a page names what allows it, in its body and as an event, the same for an endpoint that does not exist', async t => {
  const rig = await openRig(t)
  const mine = await rig.endpoint()
  const refusal = async (id: string, origin: string) => {
    const answer = await rig.open(`/v2/${id}/runsync`, preflight(origin), 'OPTIONS')
    return [answer.status, ((await answer.json()) as { error: string }).error] as const
  }
  for (const id of [mine, 'nothing1']) {
    const [status, error] = await refusal(id, PAGE)
    assert.equal(status, 403)
    assert.match(
      error,
      new RegExp(`runyard endpoints update ${id} --cors-origins ${PAGE}".* --cors-origin of runyard serve`),
    )
  }
  for (const origin of ['null', '*', `https://${'a'.repeat(300)}`, 'https://app.example\u0085x'])
    assert.match((await refusal(mine, origin))[1], /^a page without an origin, .* serve the page over http/)
  const refused = rig.happened('page.refused').map(({ origin, endpointId }) => ({ origin, endpointId }))
  assert.deepEqual(refused.slice(0, 2), [
    { origin: PAGE, endpointId: mine },
    { origin: PAGE, endpointId: 'nothing1' },
  ])
  assert.equal(refused.length, 6)
})
