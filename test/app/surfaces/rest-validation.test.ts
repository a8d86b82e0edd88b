import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openRig, type Rig } from '../../support/rig.ts'

const QUEUE = {
  name: 'one',
  type: 'QUEUE',
  image: 'python:3.13',
  gpu: { pools: ['ADA_24'] },
  scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
}
const COUNT = { scaling: { type: 'REQUEST_COUNT', requestCount: 2 } }
const { gpu: _, ...NO_COMPUTE } = QUEUE

/** Requests that are refused, each with all that is said about it. */
const REFUSED: readonly { readonly what: string; readonly body: unknown; readonly errors: readonly string[] }[] = [
  {
    what: 'an empty object',
    body: {},
    errors: [
      '$.name: is required',
      '$.type: is required',
      '$.scaling: is required',
      '$.image: is required where there is no templateId',
      '$: exactly one of gpu and cpu is needed',
    ],
  },
  {
    what: 'unknown properties, at every depth',
    body: { ...QUEUE, bogus: 1, workers: { min: 0, more: 1 }, scaling: { ...QUEUE.scaling, requestCount: 1 } },
    errors: [
      "$: additional properties 'bogus' not allowed",
      "$.scaling: additional properties 'requestCount' not allowed",
      "$.workers: additional properties 'more' not allowed",
    ],
  },
  {
    what: 'gpu and cpu together',
    body: { ...QUEUE, cpu: [{ id: 'cpu3g', vcpuCount: 2 }] },
    errors: ['$: exactly one of gpu and cpu is needed'],
  },
  {
    what: 'no pool',
    body: { ...QUEUE, gpu: { pools: [] } },
    errors: ['$.gpu.pools: must not be empty'],
  },
  {
    what: 'an excluded type outside the pools',
    body: { ...QUEUE, gpu: { pools: ['ADA_24'], excludedTypes: ['NVIDIA L4'] } },
    errors: ["$.gpu.excludedTypes: 'NVIDIA L4' is not a GPU type of the selected pools"],
  },
  {
    what: 'an excluded type with a hyphen in front',
    body: { ...QUEUE, gpu: { pools: ['ADA_24'], excludedTypes: [' -NVIDIA L4'] } },
    errors: ['$.gpu.excludedTypes[0]: must not be empty or start with a hyphen'],
  },
  {
    what: 'the same exclusion twice, blanks around it or not',
    body: { ...QUEUE, gpu: { pools: ['AMPERE_24'], excludedTypes: ['NVIDIA L4', ' NVIDIA L4 '] } },
    errors: ["$.gpu.excludedTypes: 'NVIDIA L4' is given twice"],
  },
  {
    what: 'both CUDA limits',
    body: { ...QUEUE, gpu: { pools: ['ADA_24'], allowedCudaVersions: ['12.4'], minCudaVersion: '12.1' } },
    errors: ['$.gpu.allowedCudaVersions: excludes gpu.minCudaVersion; one of them must be empty'],
  },
  {
    what: 'a CUDA version of one number',
    body: { ...QUEUE, gpu: { pools: ['ADA_24'], allowedCudaVersions: ['12'] } },
    errors: ['$.gpu.allowedCudaVersions[0]: must be of the form major.minor'],
  },
  {
    what: 'a number of vCPUs that is no power of two',
    body: { ...NO_COMPUTE, cpu: [{ id: 'cpu3g', vcpuCount: 3 }] },
    errors: ['$.cpu: vcpuCount 3 is not a power of two from 1 to 32'],
  },
  {
    what: 'one vCPU',
    body: { ...NO_COMPUTE, cpu: [{ id: 'cpu3g', vcpuCount: 1 }] },
    errors: ['$.cpu[0].vcpuCount: must be at least 2'],
  },
  {
    what: 'memory beside vCPUs, which is derived',
    body: { ...NO_COMPUTE, cpu: [{ id: 'cpu3g', vcpuCount: 2, memory: 8 }] },
    errors: ["$.cpu[0]: additional properties 'memory' not allowed"],
  },
  {
    what: 'an idle timeout for a queue that scales on requestCount',
    body: { ...QUEUE, ...COUNT, workers: { idleTimeout: 5 } },
    errors: ['$.workers.idleTimeout: does not apply to a queue that scales on requestCount; leave it out'],
  },
  {
    what: 'a queue delay for a load balancer',
    body: { ...QUEUE, type: 'LOAD_BALANCER' },
    errors: ['$.scaling.type: must be REQUEST_COUNT for a load-balancing endpoint'],
  },
  {
    what: 'a queue delay below half a second',
    body: { ...QUEUE, scaling: { type: 'QUEUE_DELAY', queueDelay: 0.4 } },
    errors: ['$.scaling.queueDelay: must be at least 0.5'],
  },
  {
    what: 'more workers at least than at most, where the most is the default',
    body: { ...QUEUE, workers: { min: 4 } },
    errors: ['$.workers.min: 4 must not exceed workers.max (3)'],
  },
  {
    what: 'an idle timeout out of bounds',
    body: { ...QUEUE, workers: { idleTimeout: 3601 } },
    errors: ['$.workers.idleTimeout: must be at most 3600'],
  },
  { what: 'no disk', body: { ...QUEUE, disk: 0 }, errors: ['$.disk: must be at least 1'] },
  {
    what: 'an environment whose values are not strings',
    body: { ...QUEUE, env: { A: 1 } },
    errors: ['$.env.A: must be a string, not a number'],
  },
  {
    what: 'names of nothing but blanks, which are told along with all else',
    body: { ...QUEUE, name: ' ', image: '\t', disk: 0 },
    errors: ['$.disk: must be at least 1', '$.image: must not be empty', '$.name: must not be empty'],
  },
  {
    what: 'an empty name',
    body: { ...QUEUE, name: '' },
    errors: ['$.name: must not be empty'],
  },
  {
    what: 'a port without a protocol',
    body: { ...QUEUE, ports: ['80'] },
    errors: ["$.ports: '80' is not of the form port/protocol"],
  },
]

for (const { what, body, errors } of REFUSED) {
  test(`an endpoint with ${what} is refused with 400, and nothing is saved`, async t => {
    const rig = await openRig(t)
    const answer = await rig.ask('POST', '/v2/serverless', { body })
    assert.equal(answer.status, 400)
    assert.equal(answer.headers.get('content-type'), 'application/problem+json')
    assert.deepEqual([answer.json.title, answer.json.status], ['Bad Request', 400])
    assert.deepEqual(answer.json.errors, errors)
    assert.deepEqual((await rig.ask('GET', '/v2/serverless')).json.endpoints, [])
  })
}

test('mistakes of path, query, header and body are reported together', async t => {
  const rig = await openRig(t)
  const { json } = await rig.ask('GET', '/v2/catalog/gpus?include=ALL&count=0&minCudaVersion=x')
  assert.deepEqual(json.errors, [
    'query.include[0]: must be AVAILABILITY',
    'query.count: must be at least 1',
    'query.minCudaVersion: must be of the form major.minor',
    'query.product: is required with include',
  ])
})

test('a list without items in a query is refused, and the document says so', async t => {
  const rig = await openRig(t)
  for (const path of ['gpus?include=', 'datacenters?regions=', 'datacenters/EU-RO-1?include=']) {
    const { status, json } = await rig.ask('GET', `/v2/catalog/${path}`)
    assert.deepEqual([status, json.errors.length], [400, path.startsWith('gpus') ? 2 : 1], path)
  }
  const { json: document } = await rig.ask('GET', '/v2/openapi.json')
  const lists = document.paths['/v2/catalog/datacenters'].get.parameters.filter(
    ({ schema }: { schema: { type: string } }) => schema.type === 'array',
  )
  assert.deepEqual(
    lists.map(({ schema }: { schema: { minItems: number } }) => schema.minItems),
    [1, 1, 1, 1],
  )
})

test('malformed JSON and a missing content type are problems like the others', async t => {
  const rig = await openRig(t)
  const answer = await rig.ask('POST', '/v2/serverless', { body: '{"name": ', type: null })
  assert.equal(answer.status, 400)
  assert.equal(answer.json.errors[0], 'header.content-type: is missing; it must be application/json')
  assert.match(answer.json.errors[1], /^\$: the body is not JSON: /)
  const array = await rig.ask('POST', '/v2/serverless', { body: '[]' })
  assert.deepEqual(array.json.errors, ['$: the body must be a JSON object'])
  const text = await rig.ask('POST', '/v2/serverless', { body: '{}', type: 'text/plain' })
  assert.equal(text.json.errors[0], 'header.content-type: must be application/json, not text/plain')
})

test('a body over its limit is 413, an unknown path 404 and another method 405 with Allow, all of them problems', async t => {
  const rig = await openRig(t)
  const large = await rig.ask('POST', '/v2/serverless', { body: { name: 'x'.repeat(2 * 1024 * 1024) } })
  assert.deepEqual([large.status, large.json.status], [413, 413])
  const unknown = await rig.ask('GET', '/v2/pods/p1')
  assert.deepEqual([unknown.status, unknown.json.title], [404, 'Not Found'])
  const method = await rig.ask('PUT', '/v2/serverless')
  assert.deepEqual([method.status, method.headers.get('allow')], [405, 'GET, HEAD, POST'])
  assert.equal(method.headers.get('content-type'), 'application/problem+json')
  assert.equal((await rig.ask('GET', '/v2/registries/')).status, 404)
})

async function created(rig: Rig, body: object): Promise<Record<string, unknown>> {
  const answer = await rig.ask('POST', '/v2/serverless', { body })
  assert.equal(answer.status, 201, answer.text)
  return answer.json
}

test('an endpoint is created with the defaults of REST, and reads back as it was answered', async t => {
  const rig = await openRig(t)
  const endpoint = await created(rig, QUEUE)
  const { id, createdAt, requestUrls, ...rest } = endpoint
  assert.deepEqual(rest, {
    name: 'one',
    type: 'QUEUE',
    image: 'python:3.13',
    args: '',
    disk: 10,
    env: {},
    ports: [],
    registry: null,
    gpu: { pools: ['ADA_24'], count: 1, allowedCudaVersions: [], minCudaVersion: null },
    workers: { min: 0, max: 3, idleTimeout: 10 },
    scaling: QUEUE.scaling,
    dataCenterIds: [],
    networkVolumes: [],
    modelReferences: [],
    corsOrigins: [],
    timeout: 300_000,
    flashboot: 'OFF',
    priority: 'normal',
    preemptible: false,
  })
  assert.equal((requestUrls as { run: string }).run.endsWith(`/v2/${id}/run`), true)
  assert.equal(new Date(createdAt as string).toISOString(), createdAt)
  assert.deepEqual((await rig.ask('GET', `/v2/serverless/${id}`)).json, endpoint)
  assert.deepEqual((await rig.ask('GET', '/v2/templates')).json.templates, [], 'its own template is in no list')
})

test('a change keeps what it leaves out, and follows the rules of pools and exclusions', async t => {
  const rig = await openRig(t)
  const gpu = { pools: ['AMPERE_24'], excludedTypes: [' NVIDIA L4 '], count: 2, minCudaVersion: '12.1' }
  const { id } = await created(rig, { ...QUEUE, gpu, env: { A: '1' }, workers: { min: 1, max: 2 } })
  const patch = async (body: object) => (await rig.ask('PATCH', `/v2/serverless/${id}`, { body })).json
  const kept = await patch({ workers: { max: 5 }, gpu: { count: 1 } })
  assert.deepEqual(kept.workers, { min: 1, max: 5, idleTimeout: 10 })
  assert.deepEqual(kept.gpu, {
    pools: ['AMPERE_24'],
    excludedTypes: ['NVIDIA L4'],
    count: 1,
    allowedCudaVersions: [],
    minCudaVersion: '12.1',
  })
  const cleared = await patch({ gpu: { pools: ['AMPERE_24', 'ADA_24'], minCudaVersion: '' } })
  assert.deepEqual(cleared.gpu, {
    pools: ['AMPERE_24', 'ADA_24'],
    count: 1,
    allowedCudaVersions: [],
    minCudaVersion: null,
  })
  assert.deepEqual((await patch({ gpu: { excludedTypes: ['NVIDIA L4'] } })).errors, [
    '$.gpu.excludedTypes: needs gpu.pools beside it',
  ])
  assert.deepEqual((await patch({ cpu: [{ id: 'cpu3g', vcpuCount: 2 }] })).errors, [
    '$.cpu: this endpoint runs on GPUs; that cannot be changed',
  ])
  assert.deepEqual((await patch({ type: 'QUEUE' })).errors, ["$: additional properties 'type' not allowed"])
  assert.deepEqual((await patch({ env: { B: '2' } })).env, { B: '2' })
  assert.deepEqual((await patch({ workers: { min: 6 } })).errors, ['$.workers.min: 6 must not exceed workers.max (5)'])
})

test('the idle time is hidden while a queue scales on requestCount, and shown again after it', async t => {
  const rig = await openRig(t)
  const { id } = await created(rig, { ...QUEUE, workers: { idleTimeout: 77 } })
  const patch = async (body: object) => (await rig.ask('PATCH', `/v2/serverless/${id}`, { body })).json
  assert.deepEqual((await patch(COUNT)).workers, { min: 0, max: 3 })
  const refused = await patch({ workers: { idleTimeout: 5 } })
  assert.match(refused.errors[0], /does not apply to a queue that scales on requestCount/)
  assert.deepEqual((await patch({ scaling: QUEUE.scaling })).workers, { min: 0, max: 3, idleTimeout: 77 })
})

test('a CPU endpoint shows the memory that its flavor gives', async t => {
  const rig = await openRig(t)
  const cpu = [
    { id: 'cpu3c', vcpuCount: 4 },
    { id: 'cpu5g', vcpuCount: 8 },
  ]
  const endpoint = await created(rig, { ...NO_COMPUTE, cpu })
  assert.deepEqual(endpoint.cpu, [
    { id: 'cpu3c', vcpuCount: 4, memory: 8 },
    { id: 'cpu5g', vcpuCount: 8, memory: 32 },
  ])
  assert.equal('gpu' in endpoint, false)
})

test('a template gives its settings once, and the request wins variable by variable', async t => {
  const rig = await openRig(t)
  const body = { name: 't', image: 'image:1', serverless: true, disk: 33, env: { A: '1', B: '2' }, ports: ['80/http'] }
  const template = (await rig.ask('POST', '/v2/templates', { body })).json
  const endpoint = await created(rig, { ...QUEUE, image: undefined, templateId: template.id, env: { B: '3', C: '4' } })
  assert.deepEqual([endpoint.image, endpoint.disk, endpoint.ports], ['image:1', 33, ['80/http']])
  assert.deepEqual(endpoint.env, { A: '1', B: '3', C: '4' })
  await rig.ask('PATCH', `/v2/templates/${template.id}`, { body: { image: 'image:2' } })
  assert.equal((await rig.ask('GET', `/v2/serverless/${endpoint.id}`)).json.image, 'image:1', 'no link is kept')
  assert.equal((await rig.ask('DELETE', `/v2/templates/${template.id}`)).status, 204)
  const unknown = await rig.ask('POST', '/v2/serverless', { body: { ...QUEUE, templateId: 'nothing' } })
  assert.equal(unknown.status, 404)
  const pod = (await rig.ask('POST', '/v2/templates', { body: { name: 'pod', image: 'i' } })).json
  const wrongKind = await rig.ask('POST', '/v2/serverless', { body: { ...QUEUE, templateId: pod.id } })
  assert.deepEqual(wrongKind.json.errors, [`$.templateId: template ${pod.id} is not a serverless template`])
})

test('lists are read page by page, and every endpoint is in exactly one', async t => {
  const rig = await openRig(t)
  const names = ['a', 'b', 'c', 'd', 'e']
  for (const name of names) {
    await created(rig, { ...QUEUE, name })
    await rig.clock.advance(1)
  }
  const seen: string[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const from: string = cursor === '' ? '' : `&cursor=${cursor}`
    const { endpoints, pagination } = (await rig.ask('GET', `/v2/serverless?limit=2${from}`)).json
    assert.equal(pagination.hasNextPage, pagination.nextCursor !== null)
    seen.push(...endpoints.map(({ name }: { name: string }) => name))
    cursor = pagination.nextCursor
  }
  assert.deepEqual(seen, names)
  assert.equal((await rig.ask('GET', '/v2/serverless?cursor=..')).status, 400)
  assert.equal((await rig.ask('GET', '/v2/serverless?limit=1001')).status, 400)
})
