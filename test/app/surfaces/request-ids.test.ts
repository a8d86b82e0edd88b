/** Every response names its request, and so do its events and logs. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { readRequestId } from '../../../src/core/request-head.ts'
import { CONSOLE, openRig } from '../../support/rig.ts'

describe('the id of a client', () => {
  for (const id of ['a', '4bf92f35-77b3', 'Root=1-67891233/abc', `x:${'0'.repeat(126)}`, 'a_b.c~d+e@f=']) {
    test(`${id.slice(0, 30)} is taken over`, () => assert.equal(readRequestId(id), id))
  }
  for (const id of ['', ' a', 'a b', 'a,b', 'a\n', '"a"', 'é', '<b>', 'a;b', '0'.repeat(129), ['a', 'b'], null]) {
    test(`${JSON.stringify(id).slice(0, 30)} is not`, () => assert.equal(readRequestId(id), null))
  }
})

test('each surface answers with the id of the request, whatever it answers', async t => {
  const rig = await openRig(t)
  const id = await rig.endpoint()
  const named: string[] = []
  const paths: [path: string, method?: string, at?: string][] = [
    ...([['/v2/serverless'], ['/v2/serverless/none'], ['/v2/serverless', 'PUT'], ['/v1/endpoints']] as [string][]),
    ...([['/graphql', 'POST'], [`/v2/${id}/health`], [`/v2/${id}/none`], ['/v2/none/run', 'POST']] as [string][]),
    ...([[`/v2/${id}/openai`], [`/v2/${id}/ping/w`], [`/v2/${id}/job-done/w`]] as [string][]),
    ...([['/healthz'], ['/readyz'], ['/metrics'], ['/ops/none'], ['/console/link'], ['/none'], ['/']] as [string][]),
    ...([
      ['/', 'GET', CONSOLE],
      ['/console/session', 'GET', CONSOLE],
    ] as [string, string, string][]),
  ]
  for (const [path, method = 'GET', at] of paths) {
    const given = `of-${named.push(path)}`
    const asking = { headers: { 'x-request-id': given }, ...(at === undefined ? {} : { at }) }
    const { headers } = await rig.ask(method, path, asking)
    assert.equal(headers.get('x-request-id'), given, `${method} ${path}`)
  }
})

test('a problem document, a failure and a change have the id of their request', async t => {
  const rig = await openRig(t)
  const headers = { 'x-request-id': 'client-7' }
  const { json } = await rig.ask('GET', '/v2/serverless/none', { headers })
  assert.equal(json.requestId, 'client-7')
  const made = await rig.ask('POST', '/v2/account/secrets', { headers, body: { name: 'a', value: 'b' } })
  assert.equal(made.status, 201)
  assert.deepEqual(
    rig.happened('change.made').map(({ requestId }) => requestId),
    ['client-7'],
  )
  rig.failNext('jobs.find', 'before')
  const id = await rig.endpoint()
  const failed = await rig.ask('GET', `/v2/${id}/status/aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee-u1`, { headers })
  assert.equal(failed.status, 503)
  assert.deepEqual(
    rig.happened('request.failed').map(({ requestId }) => requestId),
    ['client-7'],
  )
})
