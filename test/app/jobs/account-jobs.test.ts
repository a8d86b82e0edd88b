/** Jobs and batches of all endpoints of an account, for the keys that may read them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KeyScope } from '../../../src/core/accounts/permission.ts'
import type { EndpointId, OwnerId } from '../../../src/core/ids.ts'
import { openRig, type Rig } from '../../support/rig.ts'

type Page = {
  requests: { id: string; endpointId: string; status: string }[]
  pagination: { nextCursor: string | null }
}

/** All ids of a list, page by page, and how many pages there were. */
async function idsOf(rig: Rig, key: string, query = '', limit = 2): Promise<[ids: string[], pages: number]> {
  const ids: string[] = []
  let pages = 0
  for (let cursor: string | null = ''; cursor !== null; ) {
    const path = `/ops/jobs?limit=${limit}${query}${cursor === '' ? '' : `&cursor=${cursor}`}`
    const { status, json } = await rig.ask('GET', path, { key })
    assert.equal(status, 200, JSON.stringify(json))
    const { requests, pagination } = json as Page
    ids.push(...requests.map(({ id }) => id))
    cursor = pagination.nextCursor
    pages += 1
  }
  return [ids, pages]
}

function restricted(...endpoints: string[]): { scope: KeyScope } {
  const jobs = Object.fromEntries(endpoints.map(id => [id, 'read'])) as Record<EndpointId, 'read'>
  return { scope: { type: 'restricted', management: 'none', jobs } }
}

/** Three endpoints with jobs in turn, the newest last, and one of another account. */
async function openAccount(t: Parameters<typeof openRig>[0]) {
  const rig = await openRig(t)
  const endpoints = [await rig.endpoint(), await rig.endpoint(), await rig.endpoint()]
  const jobs: string[] = []
  for (let n = 0; n < 9; n += 1) {
    jobs.unshift(await rig.submit(endpoints[n % 3]!))
    await rig.clock.advance(1_000)
  }
  const all = await rig.addKey('rpa_reader', { scope: { type: 'read-only' } })
  return { rig, endpoints, jobs, all }
}

test('the jobs of all endpoints are one list, newest first, page by page, with their endpoints and filters', async t => {
  const { rig, endpoints, jobs, all } = await openAccount(t)
  assert.deepEqual(await idsOf(rig, all), [jobs, 5])
  const { json } = await rig.ask('GET', '/ops/jobs?limit=1')
  assert.deepEqual([json.requests[0].id, json.requests[0].endpointId], [jobs[0], endpoints[2]])
  await rig.ask('POST', `/v2/${endpoints[1]}/cancel/${jobs[1]}`)
  assert.deepEqual((await idsOf(rig, all, '&status=CANCELLED'))[0], [jobs[1]])
  for (const query of ['limit=0', 'status=DONE', 'cursor=x+y'])
    assert.equal((await rig.ask('GET', `/ops/jobs?${query}`)).status, 400, query)
})

test('a key sees the jobs of the endpoints that it may read, and a key without any is refused', async t => {
  const { rig, endpoints, jobs } = await openAccount(t)
  const [first, second] = endpoints as [EndpointId, EndpointId]
  const stranger = await rig.addKey('rpa_stranger', { owner: 'other' as OwnerId })
  const two = await rig.addKey('rpa_two', restricted(second, first, 'gone'))
  const foreign = await rig.addKey('rpa_foreign', { owner: 'other' as OwnerId, ...restricted(first) })
  const none = await rig.addKey('rpa_none', { scope: { type: 'restricted', management: 'write', jobs: 'none' } })
  // The newest job is of the third endpoint.
  assert.deepEqual(
    (await idsOf(rig, two))[0],
    jobs.filter((_, index) => index % 3 !== 0),
  )
  assert.deepEqual(
    (await idsOf(rig, two, '', 100))[0],
    jobs.filter((_, index) => index % 3 !== 0),
  )
  for (const key of [stranger, foreign]) assert.deepEqual(await idsOf(rig, key), [[], 1])
  const refused = await rig.ask('GET', '/ops/jobs', { key: none })
  assert.deepEqual(
    [refused.status, refused.json.error],
    [403, 'this API key has no read right for the jobs of any endpoint'],
  )
  await rig.ask('DELETE', `/v2/serverless/${second}`)
  assert.deepEqual(
    (await idsOf(rig, two))[0],
    jobs.filter((_, index) => index % 3 === 2),
  )
})

test('the webhooks of all endpoints are one list, of one state or all, for the same keys', async t => {
  const { rig, endpoints, all } = await openAccount(t)
  const jobs: { jobId: string; endpointId: string }[] = []
  for (const endpointId of [...endpoints, ...endpoints]) {
    const jobId = await rig.submit(endpointId, { input: {}, webhook: 'https://example.com/hook' })
    await rig.ask('POST', `/v2/${endpointId}/cancel/${jobId}`)
    jobs.unshift({ jobId, endpointId })
    await rig.clock.advance(1_000)
  }
  const one = await rig.addKey('rpa_one', restricted(endpoints[1]!))
  const listed = async (key: string, query = '') => {
    const found: { jobId: string; endpointId: string }[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const path = `/ops/webhooks?limit=4${query}${cursor === '' ? '' : `&cursor=${cursor}`}`
      const { json } = await rig.ask('GET', path, { key })
      for (const { jobId, endpointId } of json.deliveries) found.push({ jobId, endpointId })
      cursor = json.pagination.nextCursor
    }
    return found
  }
  assert.deepEqual(await listed(all), jobs)
  assert.deepEqual([await listed(all, '&state=delivered'), await listed(all, '&state=failed')], [jobs, []])
  assert.deepEqual(
    await listed(one),
    jobs.filter(({ endpointId }) => endpointId === endpoints[1]),
  )
  const none = await rig.addKey('rpa_none', { scope: { type: 'restricted', management: 'write', jobs: 'none' } })
  assert.equal((await rig.ask('GET', '/ops/webhooks', { key: none })).status, 403)
  for (const wrong of ['limit=101', 'state=gone', 'cursor=*'])
    assert.equal((await rig.ask('GET', `/ops/webhooks?${wrong}`)).status, 400, wrong)
})

test('the batches of all endpoints are one list, for the same keys', async t => {
  const { rig, endpoints, all } = await openAccount(t)
  const batches: { id: string; endpointId: string }[] = []
  for (const [n, endpointId] of [...endpoints, ...endpoints].entries()) {
    const { json } = await rig.ask('POST', `/v2/${endpointId}/batch?name=b${n}`, { body: [{ input: {} }] })
    batches.unshift({ id: json.id, endpointId })
    await rig.clock.advance(1_000)
  }
  const one = await rig.addKey('rpa_one', restricted(endpoints[1]!))
  const listed = async (key: string) => {
    const found: { id: string; endpointId: string }[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { json } = await rig.ask('GET', `/ops/batches?limit=4${cursor === '' ? '' : `&cursor=${cursor}`}`, { key })
      found.push(...json.batches.map(({ id, endpointId }: { id: string; endpointId: string }) => ({ id, endpointId })))
      cursor = json.pagination.nextCursor
    }
    return found
  }
  assert.deepEqual(await listed(all), batches)
  assert.deepEqual(
    await listed(one),
    batches.filter(({ endpointId }) => endpointId === endpoints[1]),
  )
  assert.equal((await rig.ask('GET', '/ops/batches?limit=5000')).status, 400)
})
