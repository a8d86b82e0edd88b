import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobsAccess } from '../../../src/core/accounts/permission.ts'
import { inputs, RigBatches, workOff } from '../../support/batches.ts'
import { openRig } from '../../support/rig.ts'

async function paused(context: Parameters<typeof openRig>[0]) {
  const rig = await openRig(context)
  const endpoint = await rig.endpoint({ workersMax: 0 })
  return { rig, endpoint, batches: new RigBatches(rig, endpoint), at: `/v2/${endpoint}/batch` }
}

/** Every operation on batches, with a body that would do. */
const operations = (id: string, request: string): [method: string, path: string, body?: unknown][] => [
  ['POST', '', inputs(1)],
  ['GET', ''],
  ['GET', `/${id}`],
  ['PUT', `/${id}`, { name: 'x' }],
  ['GET', `/${id}/requests`],
  ['POST', `/${id}/requests`, { requests: inputs(1) }],
  ['DELETE', `/${id}/requests/${request}`],
  ['POST', `/${id}/finalize`],
  ['POST', `/${id}/cancel`],
]

test('a key that may read jobs reads batches and changes nothing, and one without rights does neither', async t => {
  const { rig, batches, at } = await paused(t)
  const id = await batches.draft(1)
  const [request] = await batches.ids(id)
  const scope = { type: 'restricted', management: 'none' } as const
  const reader = await rig.addKey('rpa_reader', { scope: { ...scope, jobs: 'read' } })
  const stranger = await rig.addKey('rpa_stranger', { scope: { ...scope, jobs: 'none' } })
  const other = await rig.addKey('rpa_other', { scope: { ...scope, jobs: { other: 'write' } as JobsAccess } })
  for (const [method, path, body] of operations(id, request!)) {
    const ask = async (key: string | null) => (await rig.ask(method, `${at}${path}`, { key, body })).status
    assert.equal(await ask(reader), method === 'GET' ? 200 : 403, `${method} ${path}`)
    for (const key of [stranger, other]) assert.equal(await ask(key), 403, `${method} ${path}`)
    for (const key of [null, 'rpa_wrong']) assert.equal(await ask(key), 401, `${method} ${path}`)
  }
  assert.deepEqual(await batches.counts(id), ['DRAFT', 1, 0, 0, 0])
  const writer = await rig.addKey('rpa_writer', { scope: { ...scope, jobs: 'write' } })
  for (const [method, path, body] of operations(id, request!).filter(([, path]) => path !== `/${id}/finalize`)) {
    assert.equal((await rig.ask(method, `${at}${path}`, { key: writer, body })).status, 200, `${method} ${path}`)
  }
})

test('what does not exist, or belongs to another endpoint, is 404 with a message', async t => {
  const { rig, batches, at } = await paused(t)
  const id = await batches.draft(1)
  const [request] = await batches.ids(id)
  const elsewhere = `/v2/${await rig.endpoint()}/batch`
  for (const [method, path, body] of operations('batch-x', request!).filter(([, path]) => path !== '')) {
    const { status, json } = await rig.ask(method, `${at}${path}`, { body })
    assert.deepEqual([status, json], [404, { error: 'batch batch-x not found' }], `${method} ${path}`)
  }
  for (const [method, path, body] of operations(id, request!).filter(([, path]) => path !== '')) {
    assert.equal((await rig.ask(method, `${elsewhere}${path}`, { body })).status, 404, `${method} ${path}`)
  }
  const unknown = await rig.ask('DELETE', `${at}/${id}/requests/nothing`)
  assert.deepEqual([unknown.status, unknown.json], [404, { error: 'request nothing not found' }])
  assert.equal((await rig.ask('GET', `${at}/a,b`)).status, 404)
  assert.equal((await rig.ask('DELETE', `${at}/${id}/requests/a,b`)).status, 404)
  assert.equal((await rig.ask('GET', '/v2/nowhere/batch')).status, 404)
  assert.deepEqual(await batches.counts(id), ['DRAFT', 1, 0, 0, 0])
})

test('a wrong method is 405 with the allowed ones', async t => {
  const { rig, at } = await paused(t)
  const wrong: [method: string, path: string, allow: string][] = [
    ['DELETE', '', 'GET, POST'],
    ['POST', '/b', 'GET, PUT'],
    ['DELETE', '/b/requests', 'GET, POST'],
    ['GET', '/b/requests/r', 'DELETE'],
    ['GET', '/b/finalize', 'POST'],
    ['GET', '/b/cancel', 'POST'],
  ]
  for (const [method, path, allow] of wrong) {
    const { status, headers } = await rig.ask(method, `${at}${path}`)
    assert.deepEqual([status, headers.get('allow')], [405, allow], `${method} ${path}`)
  }
  assert.equal((await rig.ask('HEAD', at)).status, 200)
})

test('all mistakes of a request are reported at once', async t => {
  const { rig, batches, at } = await paused(t)
  const id = await batches.draft(1)
  const refused = async (method: string, path: string, body?: unknown) => {
    const { status, json } = await rig.ask(method, `${at}${path}`, { body })
    assert.equal(status, 400, `${method} ${path}`)
    return json.error
  }
  assert.equal(
    await refused('POST', '', { name: 5, requests: [{}, { input: {}, webhook: 'x' }] }),
    '"name" must be a string of 1 to 255 characters; requests[0]: "input" is missing; it must be a JSON object; ' +
      'requests[1]: "webhook" must be an http or https URL',
  )
  assert.equal(
    await refused('POST', `/${id}/requests`, [{ input: {} }]),
    'the body must be a JSON object with "requests", an array',
  )
  assert.equal(await refused('PUT', `/${id}`, {}), 'the body must be a JSON object with "name"')
  assert.equal(
    await refused('GET', `/${id}/requests?offset=-1&limit=1001`),
    '"offset" must be a whole number; "limit" must be a whole number from 1 to 1000',
  )
  assert.equal(await refused('GET', '?limit=0'), '"limit" must be a whole number from 1 to 1000')
  assert.match(await refused('POST', '', '{'), /^the body is not JSON/)
  assert.deepEqual(await batches.counts(id), ['DRAFT', 1, 0, 0, 0])
})

test('an operation that the state of a batch does not allow is 409 with the state', async t => {
  const { rig, batches, at } = await paused(t)
  const empty = await batches.draft()
  const nothing = await batches.post(empty, 'finalize')
  const sentence = `batch ${empty} has no requests; add some before you finalize it`
  assert.deepEqual([nothing.status, nothing.json], [409, { error: sentence }])
  const id = await batches.running(1)
  const [request] = await batches.ids(id)
  const cancelled = await batches.draft(1)
  await batches.post(cancelled, 'cancel')
  for (const [batch, state] of [
    [id, 'FINALIZED'],
    [cancelled, 'CANCELLED'],
  ]) {
    for (const [method, path, what] of [
      ['POST', 'finalize', 'be finalized'],
      ['POST', 'requests', 'take requests'],
      ['DELETE', `requests/${request}`, 'lose requests'],
    ]) {
      const { status, json } = await rig.ask(method!, `${at}/${batch}/${path}`, { body: { requests: inputs(1) } })
      const error = `batch ${batch} is ${state}; only a DRAFT can ${what}`
      assert.deepEqual([status, json], [409, { error }])
    }
  }
})

test('a batch that is done cannot be cancelled', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const batches = new RigBatches(rig, endpoint)
  const id = await batches.running(1)
  await workOff(worker, 1)
  const { status, json } = await batches.post(id, 'cancel')
  const error = `batch ${id} is FINALIZED and all its requests have ended; it cannot be cancelled`
  assert.deepEqual([status, json], [409, { error }])
})

test('an eleventh batch is 429 until one of the ten is done or cancelled', async t => {
  const { rig, batches, at } = await paused(t)
  const ids: string[] = []
  for (let n = 0; n < 10; n += 1) ids.push(await (n % 2 === 0 ? batches.draft() : batches.running(1)))
  const refused = await rig.ask('POST', at, { body: [] })
  const error = 'the endpoint has 10 unfinished batches, and may have 10; wait for one or cancel one'
  assert.deepEqual([refused.status, refused.json], [429, { error }])
  assert.equal((await rig.ask('GET', at)).json.total, 10)
  await batches.post(ids[0]!, 'cancel')
  await batches.draft()
  await batches.post(ids[1]!, 'cancel')
  await batches.draft()
  assert.equal((await rig.ask('POST', at, { body: [] })).status, 429)
  const elsewhere = await rig.ask('POST', `/v2/${await rig.endpoint()}/batch`, { body: [] })
  assert.equal(elsewhere.status, 200)
})

test('a batch takes 5000 requests, at most 10 MiB a call', async t => {
  const { rig, batches, at } = await paused(t)
  const id = await batches.draft(4_999)
  const add = (count: number) => batches.post(id, 'requests', { requests: inputs(count) })
  const full = await add(2)
  const error = `batch ${id} has 4999 requests and may have 5000, so 2 more do not fit`
  assert.deepEqual([full.status, full.json], [409, { error }])
  assert.equal((await add(1)).json.requestTotal, 5_000)
  const many = await rig.ask('POST', at, { body: inputs(5_001) })
  assert.deepEqual([many.status, many.json], [400, { error: 'there are 5001 requests; a batch may have 5000' }])
  const text = (bytes: number) => `{"requests":[{"input":{"x":"${'x'.repeat(bytes - 33)}"}}]}`
  const other = await batches.draft()
  assert.equal((await batches.post(other, 'requests', text(10_485_760 + 1))).status, 413)
  assert.equal((await batches.post(other, 'requests', text(10_485_760))).status, 200)
  assert.equal((await rig.ask('POST', at, { body: 'x'.repeat(10_485_761) })).status, 413)
})

test('the batches of an endpoint have at most 50000 unfinished requests', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const batches = new RigBatches(rig, endpoint)
  const first = await batches.running(1)
  await worker.takeJob()
  for (let n = 0; n < 9; n += 1) await batches.draft(5_000)
  // Its one request still runs, so it counts, while the batch itself no longer counts.
  await batches.post(first, 'cancel')
  const refused = await rig.ask('POST', `/v2/${endpoint}/batch`, { body: inputs(5_000) })
  const error =
    'the batches of the endpoint have 45001 unfinished requests and may have 50000; wait until some are done'
  assert.deepEqual([refused.status, refused.json], [429, { error }])
  const last = await batches.draft(4_999)
  assert.equal((await batches.post(last, 'requests', { requests: inputs(1) })).status, 429)
})

test('a load-balancing endpoint has no batches, and a server that stops takes no changes', async t => {
  const { rig, batches, at } = await paused(t)
  const id = await batches.draft(1)
  const balancer = await rig.endpoint({ type: 'LB', workersMax: 0 })
  const refused = await rig.ask('POST', `/v2/${balancer}/batch`, { body: [] })
  assert.equal(refused.status, 400)
  assert.match(refused.json.error, /^not allowed for LB API: /)
  await rig.stop()
  assert.equal((await batches.post(id, 'finalize')).status, 503)
  assert.equal((await rig.ask('POST', at, { body: [] })).status, 503)
  assert.equal((await batches.read(id)).status, 200)
})
