/**
 * Every operation of the public REST API: it is served, its list is empty, or one sentence says why it is not here.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { ApiParts } from '../../../src/api/parts.ts'
import { restRoutes } from '../../../src/api/rest/routes.ts'
import { isEndpointId, RESERVED_SEGMENTS } from '../../../src/core/ids.ts'
import { openRig, type Rig } from '../../support/rig.ts'

const reference = (name: string) =>
  readFileSync(new URL(`../../contract/reference/${name}`, import.meta.url), 'utf8').split('\n')
const OPERATIONS = reference('rest-v2-operations.txt').filter(line => line !== '')

const PAGE = { nextCursor: null, hasNextPage: false }
const SPAN = { startTime: '2027-01-14T00:00:00Z', endTime: '2027-01-16T00:00:00Z', bucketSize: 'day' }

function bill(query: object, counts: object, amounts: readonly string[]) {
  const totals = Object.fromEntries(['totalAmount', ...amounts].map(name => [name, 0]))
  return { records: [], metadata: { query: { ...SPAN, ...query }, recordCount: 0, ...counts, totals } }
}

/** The response of each operation whose list is always empty, or empty without use. */
const EMPTY: Readonly<Record<string, object>> = {
  'GET /v2/clusters': { clusters: [], pagination: PAGE },
  'GET /v2/registries/delegations': { delegations: [], pagination: PAGE },
  'GET /v2/serverless/{id}/builds': { builds: [], pagination: PAGE },
  'GET /v2/billing': bill({}, {}, [
    ...['podGpuAmount', 'podCpuAmount', 'podDiskAmount'],
    ...['serverlessGpuAmount', 'serverlessCpuAmount', 'serverlessDiskAmount', 'serverlessFeeAmount'],
    ...['storageStandardAmount', 'storageHighPerformanceAmount', 'endpointAmount'],
    ...['clusterGpuAmount', 'clusterDiskAmount', 'clusterNetworkingAmount'],
  ]),
  'GET /v2/billing/pods': bill({ podId: null }, { uniquePodCount: 0 }, ['gpuAmount', 'cpuAmount', 'diskAmount']),
  'GET /v2/billing/endpoints': bill({}, {}, []),
  'GET /v2/billing/network-volumes': bill({ networkVolumeId: null }, { uniqueNetworkVolumeCount: 0 }, [
    ...['standardAmount', 'highPerformanceAmount'],
  ]),
  'GET /v2/billing/clusters': bill({ clusterId: null }, { uniqueClusterCount: 0 }, [
    ...['gpuAmount', 'diskAmount', 'networkingAmount'],
  ]),
}

/** The status and the sentence of each operation on things that do not exist here. */
const REFUSED: Readonly<Record<string, readonly [status: number, sentence: RegExp]>> = {
  'POST /v2/pods': [405, /has no other pods$/],
  'PATCH /v2/pods/{id}': [405, /has no other pods$/],
  'POST /v2/pods/{id}/action': [404, /has no other pods$/],
  'POST /v2/clusters': [405, /has no clusters$/],
  'GET /v2/clusters/{id}': [404, /has no clusters$/],
  'PATCH /v2/clusters/{id}': [404, /has no clusters$/],
  'DELETE /v2/clusters/{id}': [404, /has no clusters$/],
  'GET /v2/clusters/{id}/pods': [404, /has no clusters$/],
  'GET /v2/serverless/{id}/builds/{buildId}': [404, /builds none$/],
  'GET /v2/serverless/{id}/builds/{buildId}/logs': [404, /builds none$/],
  'POST /v2/registries/delegations': [405, /no delegation$/],
  'DELETE /v2/registries/delegations/{id}': [404, /no delegation$/],
}

const documented = new Set(
  restRoutes({} as ApiParts).map(({ contract: { method, path } }) => `${method.toUpperCase()} ${path}`),
)

async function call(rig: Rig, operation: string, id: string) {
  const [method = '', path = ''] = operation.split(' ')
  const query = path.startsWith('/v2/billing') ? '?lastN=2' : ''
  const body = ['POST', 'PATCH', 'PUT'].includes(method) ? { body: { name: 'a' } } : {}
  return rig.ask(method, `${path.replace('{id}', id).replaceAll(/\{\w+\}/g, 'nothing')}${query}`, body)
}

test('each operation of the public API is served, or answers an empty list, or says in one sentence why not', async t => {
  const rig = await openRig(t)
  const id = await rig.endpoint()
  for (const operation of OPERATIONS) {
    const ways = [documented.has(operation), operation in EMPTY, operation in REFUSED].filter(Boolean)
    assert.equal(ways.length, 1, `${operation} is answered in one way`)
    if (documented.has(operation)) continue
    const { status, headers, json, text } = await call(rig, operation, id)
    if (operation in EMPTY) {
      assert.deepEqual([status, json], [200, EMPTY[operation]], operation)
      continue
    }
    const [wanted, sentence] = REFUSED[operation]!
    assert.deepEqual(
      [status, headers.get('content-type')],
      [wanted, 'application/problem+json'],
      `${operation}: ${text}`,
    )
    assert.match(json.detail, sentence, operation)
    assert.equal(json.status, wanted)
    assert.equal(headers.get('allow')?.startsWith('GET, HEAD') ?? false, wanted === 405, operation)
  }
})

test('the operations whose shapes are compared are among them', () => {
  const compared = reference('rest-v2.txt').filter(line => /^[A-Z]+ \//.test(line))
  assert.deepEqual(
    compared.filter(operation => !OPERATIONS.includes(operation)),
    [],
  )
})

test('no first word of a path of the public API, nor of ours, can be the id of an endpoint', () => {
  for (const operation of [...OPERATIONS, ...documented]) {
    const word = operation.split('/')[2]!
    assert.ok(RESERVED_SEGMENTS.has(word), `${word} is reserved`)
    assert.equal(isEndpointId(word), false)
  }
})

test('a key is needed for what is not here, too, and builds belong to an endpoint that exists', async t => {
  const rig = await openRig(t)
  for (const operation of [...Object.keys(EMPTY), ...Object.keys(REFUSED)]) {
    const [method = '', path = ''] = operation.split(' ')
    assert.equal((await rig.ask(method, path, { key: null })).status, 401, operation)
  }
  assert.equal((await rig.ask('GET', '/v2/serverless/nothing/builds')).status, 404)
  const wrong = await rig.ask('GET', '/v2/billing/pods?bucketSize=decade')
  assert.equal(wrong.status, 400)
})
