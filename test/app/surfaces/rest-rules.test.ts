/** Answers of REST to single requests on each kind of record: statuses, sentences, and stored values. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Answer, openRig, type Rig } from '../../support/rig.ts'

const QUEUE = { type: 'QUEUE_DELAY', queueDelay: 4 }
const COUNT = { type: 'REQUEST_COUNT', requestCount: 2 }

/** A request and what it leads to: its status, the sentences about what is wrong, or members of the answer. */
type Case = readonly [
  what: string,
  request: readonly [method: string, path: string, body?: object],
  status: number,
  said?: readonly RegExp[] | Readonly<Record<string, unknown>>,
]

/** Ids of what a world has, by their names. */
type Ids = Readonly<Record<string, string>>

async function world(t: TestContext): Promise<{ rig: Rig; ids: Ids }> {
  const rig = await openRig(t, { rateWindows: [] })
  const made = async (path: string, body: object) => {
    const { status, json, text } = await rig.ask('POST', path, { body })
    assert.equal(status, 201, text)
    return json.id as string
  }
  const endpoint = { name: 'e', type: 'QUEUE', image: 'image:1', scaling: QUEUE, workers: { min: 1, max: 2 } }
  const gpu = { pools: ['AMPERE_24'], excludedTypes: ['NVIDIA L4'], allowedCudaVersions: ['12.4'] }
  const volume = await made('/v2/network-volumes', { name: 'v', size: 20, dataCenter: 'EU-RO-1' })
  const template = await made('/v2/templates', { name: 't', image: 'image:1', serverless: true, env: { A: '1' } })
  const ids = {
    volume,
    template,
    used: await made('/v2/network-volumes', { name: 'used', size: 20, dataCenter: 'EU-RO-1' }),
    pod: await made('/v2/templates', { name: 'pod', image: 'image:1' }),
    secret: await made('/v2/account/secrets', { name: 's', value: 'v' }),
    key: await made('/v2/account/keys', { name: 'k' }),
    cpu: await made('/v2/serverless', { ...endpoint, cpu: [{ id: 'cpu3g', vcpuCount: 2 }] }),
    count: await made('/v2/serverless', { ...endpoint, gpu, scaling: COUNT }),
    balancer: await made('/v2/serverless', {
      ...endpoint,
      gpu,
      type: 'LOAD_BALANCER',
      scaling: COUNT,
      workers: { idleTimeout: 7 },
      env: { HEALTH_CHECK_PATH: '/health' },
    }),
  }
  const queue = await made('/v2/serverless', { ...endpoint, gpu, networkVolumes: [ids.used] })
  return { rig, ids: { ...ids, queue, linked: await rig.endpoint({ templateId: template, workersMax: 0 }) } }
}

const EXPIRED = '2000-01-01T00:00:00Z'

const CASES: readonly Case[] = [
  [
    'a queue delay and an idle time together',
    ['PATCH', 'serverless/:count', { scaling: QUEUE, workers: { idleTimeout: 9 } }],
    200,
    { workers: { min: 1, max: 2, idleTimeout: 9 } },
  ],
  [
    'requestCount and an idle time together',
    ['PATCH', 'serverless/:queue', { scaling: COUNT, workers: { idleTimeout: 9 } }],
    400,
    [/^\$\.workers\.idleTimeout: does not apply/],
  ],
  [
    'the idle time of a load balancer',
    ['GET', 'serverless/:balancer'],
    200,
    { 'workers.idleTimeout': 7, type: 'LOAD_BALANCER' },
  ],
  [
    'a new idle time of a load balancer',
    ['PATCH', 'serverless/:balancer', { workers: { idleTimeout: 8 } }],
    200,
    { 'workers.idleTimeout': 8 },
  ],
  [
    'addresses of a load balancer',
    ['GET', 'serverless/:balancer'],
    200,
    {
      requestUrls: {
        base: 'http://localhost:8080/lb/:balancer',
        health: 'http://localhost:8080/lb/:balancer/health',
      },
      browserUrl: 'http://:balancer.lb.localhost:8080',
    },
  ],
  [
    'a queue delay for a load balancer',
    ['PATCH', 'serverless/:balancer', { scaling: QUEUE }],
    400,
    [/^\$\.scaling\.type: must be REQUEST_COUNT/],
  ],
  [
    'GPUs for an endpoint on CPUs',
    ['PATCH', 'serverless/:cpu', { gpu: { count: 1 } }],
    400,
    [/^\$\.gpu: this endpoint runs on CPUs/],
  ],
  [
    'CPUs for an endpoint on GPUs',
    ['PATCH', 'serverless/:queue', { cpu: [{ id: 'cpu3g', vcpuCount: 2 }] }],
    400,
    [/^\$\.cpu: this endpoint runs on GPUs/],
  ],
  [
    'GPUs and CPUs together',
    ['PATCH', 'serverless/:queue', { gpu: { count: 1 }, cpu: [{ id: 'cpu3g', vcpuCount: 2 }] }],
    400,
    [/^\$: only one of gpu and cpu/],
  ],
  [
    'the list of CPUs replaced',
    ['PATCH', 'serverless/:cpu', { cpu: [{ id: 'cpu5c', vcpuCount: 4 }] }],
    200,
    { cpu: [{ id: 'cpu5c', vcpuCount: 4, memory: 8 }] },
  ],
  [
    'pools without exclusions, which clears these',
    ['PATCH', 'serverless/:queue', { gpu: { pools: ['AMPERE_24'] } }],
    200,
    { 'gpu.excludedTypes': undefined, 'gpu.allowedCudaVersions': ['12.4'] },
  ],
  [
    'the number of GPUs, which keeps the rest',
    ['PATCH', 'serverless/:queue', { gpu: { count: 2 } }],
    200,
    { 'gpu.excludedTypes': ['NVIDIA L4'], 'gpu.pools': ['AMPERE_24'] },
  ],
  [
    'a floor of CUDA, which clears the list',
    ['PATCH', 'serverless/:queue', { gpu: { minCudaVersion: '12.1' } }],
    200,
    { 'gpu.allowedCudaVersions': [], 'gpu.minCudaVersion': '12.1' },
  ],
  [
    'no limit of CUDA',
    ['PATCH', 'serverless/:queue', { gpu: { allowedCudaVersions: [], minCudaVersion: '' } }],
    200,
    { 'gpu.allowedCudaVersions': [], 'gpu.minCudaVersion': null },
  ],
  [
    'more workers at least than there are at most',
    ['PATCH', 'serverless/:queue', { workers: { min: 3 } }],
    400,
    [/^\$\.workers\.min: 3 must not exceed workers\.max \(2\)$/],
  ],
  [
    'fewer workers at most than there are at least',
    ['PATCH', 'serverless/:queue', { workers: { max: 0 } }],
    400,
    [/^\$\.workers\.min: 1 must not exceed workers\.max \(0\)$/],
  ],
  ['a template that there is not', ['PATCH', 'serverless/:queue', { templateId: 'nothing' }], 404],
  [
    'a template that is none of a serverless endpoint',
    ['PATCH', 'serverless/:queue', { templateId: ':pod' }],
    400,
    [/^\$\.templateId: template :pod is not a serverless template$/],
  ],
  [
    'a template and a variable, which wins',
    ['PATCH', 'serverless/:queue', { templateId: ':template', env: { B: '2' } }],
    200,
    { env: { A: '1', B: '2' } },
  ],
  ['no variables', ['PATCH', 'serverless/:balancer', { env: {} }], 200, { env: {} }],
  ['nothing', ['PATCH', 'serverless/:queue', {}], 200, { name: 'e' }],
  [
    'another volume',
    ['PATCH', 'serverless/:queue', { networkVolumes: [':volume'] }],
    200,
    { networkVolumes: [':volume'] },
  ],
  [
    'a volume twice',
    ['PATCH', 'serverless/:queue', { networkVolumes: [':volume', ':volume'] }],
    400,
    [/^\$\.networkVolumes: ':volume' is given twice$/],
  ],
  ['an endpoint that runs', ['DELETE', 'serverless/:queue'], 204],
  ['an endpoint that there is not', ['DELETE', 'serverless/nothing'], 404],
  ['what cannot be an endpoint', ['GET', 'serverless/Nothing!'], 404],

  ['a template that is in use', ['DELETE', 'templates/:template'], 400, [/^template 't' is in use by an endpoint$/]],
  [
    'a template in use that is to be serverless no more',
    ['PATCH', 'templates/:template', { serverless: false }],
    400,
    [/^template 't' is in use by an endpoint, so it must stay serverless$/],
  ],
  ['a template that nothing uses', ['DELETE', 'templates/:pod'], 204],
  [
    'a mount',
    ['PATCH', 'templates/:pod', { mounts: { persistent: { size: 20, path: '/x' } } }],
    200,
    { mounts: { persistent: { size: 20, path: '/x' } } },
  ],
  [
    'a template without mounts',
    ['GET', 'templates/:template'],
    200,
    { mounts: {}, category: 'NVIDIA', startSsh: true, startJupyter: true, disk: 10 },
  ],

  [
    'an empty change of a volume',
    ['PATCH', 'network-volumes/:volume', {}],
    400,
    [/^\$: must have at least one property$/],
  ],
  [
    'a smaller volume',
    ['PATCH', 'network-volumes/:volume', { size: 19 }],
    400,
    [/^\$\.size: must not be smaller than the 20 GB/],
  ],
  ['a volume of the same size', ['PATCH', 'network-volumes/:volume', { size: 20 }], 200, { size: 20 }],
  [
    'a volume that is too large',
    ['PATCH', 'network-volumes/:volume', { size: 4_097 }],
    400,
    [/^\$\.size: must be at most/],
  ],
  [
    'a small volume',
    ['POST', 'network-volumes', { name: 'v', size: 9, dataCenter: 'EU-RO-1' }],
    400,
    [/^\$\.size: must be at least/],
  ],
  [
    'a volume nowhere',
    ['POST', 'network-volumes', { name: 'v', size: 10, dataCenter: 'MOON' }],
    400,
    [/^\$\.dataCenter: 'MOON' is not a data center; the data centers are /],
  ],
  [
    'a fast volume',
    ['POST', 'network-volumes', { name: 'v', size: 10, dataCenter: 'EU-RO-1', type: 'HIGH_PERFORMANCE' }],
    201,
    { type: 'HIGH_PERFORMANCE' },
  ],
  ['a volume that is in use', ['DELETE', 'network-volumes/:used'], 409],
  ['a volume that nothing uses', ['DELETE', 'network-volumes/:volume'], 204],

  ['a secret whose name is taken', ['POST', 'account/secrets', { name: 's', value: 'x' }], 409],
  [
    'a secret with a reserved name',
    ['POST', 'account/secrets', { name: 'RUNPOD_X', value: 'x' }],
    400,
    [/^\$\.name: must not begin with RUNPOD$/],
  ],
  [
    'a secret with a name that begins with a digit',
    ['POST', 'account/secrets', { name: '1', value: 'x' }],
    400,
    [/^\$\.name: must begin with a letter or _/],
  ],
  ['an empty secret', ['POST', 'account/secrets', { name: 'x', value: '' }], 400, [/^\$\.value: must not be empty/]],
  [
    'a secret with a new description',
    ['PATCH', 'account/secrets/:secret', { description: 'd' }],
    200,
    { description: 'd', valueLastUpdatedAt: null },
  ],
  [
    'a secret that is to be renamed',
    ['PATCH', 'account/secrets/:secret', { name: 'x' }],
    400,
    [/additional properties 'name' not allowed$/],
  ],
  [
    'a secret by its name',
    ['GET', 'account/secrets?name=s'],
    200,
    { 'secrets[0].id': ':secret', 'pagination.hasNextPage': false },
  ],
  ['a secret of no such name', ['GET', 'account/secrets?name=x'], 200, { secrets: [] }],

  [
    'a registry with more than it has',
    ['POST', 'registries', { name: 'r', username: 'u', password: 'p', url: 'x' }],
    400,
    [/additional properties 'url' not allowed$/],
  ],
  ['a registry that is to be changed', ['PATCH', 'registries/x', { name: 'r' }], 405],
  ['a registry that there is not', ['DELETE', 'registries/x'], 404],

  [
    'a key that has expired already',
    ['POST', 'account/keys', { name: 'k', expiresAt: EXPIRED }],
    400,
    [/^\$\.expiresAt: must be in the future$/],
  ],
  [
    'a key for an endpoint that there is not',
    [
      'POST',
      'account/keys',
      { name: 'k', scope: { type: 'restricted', management: 'none', jobs: { nothing: 'read' } } },
    ],
    400,
    [/^\$\.scope: endpoint nothing not found$/],
  ],
  [
    'a key of a scope that there is not',
    ['POST', 'account/keys', { name: 'k', scope: { type: 'some' } }],
    400,
    [/^\$\.scope\.type: must be/],
  ],
  [
    'a key that is disabled',
    ['PATCH', 'account/keys/:key', { disabled: true }],
    200,
    { disabled: true, name: 'k', key: undefined },
  ],
  ['a key of an account that there is not', ['POST', 'account/keys', { name: 'k', account: 'nobody' }], 404],
  [
    'SSH keys of no form',
    ['PUT', 'account/ssh-keys', { keys: ['rsa AAAA'] }],
    400,
    [/^\$\.keys\[0\]: must be of the form: type key comment$/],
  ],

  [
    'availability of no product',
    ['GET', 'catalog/gpus?include=AVAILABILITY'],
    400,
    [/^query\.product: is required with include$/],
  ],
  [
    'a product without availability',
    ['GET', 'catalog/gpus?product=POD'],
    400,
    [/^query\.product: needs include=AVAILABILITY$/],
  ],
  [
    'both limits of CUDA',
    ['GET', 'catalog/gpus?include=AVAILABILITY&product=POD&cudaVersions=12.4&minCudaVersion=12.1'],
    400,
    [/^query\.minCudaVersion: excludes cudaVersions/],
  ],
  [
    'a country of no form',
    ['GET', 'catalog/gpus?include=AVAILABILITY&product=POD&countryCodes=DE,fr'],
    400,
    [/^query\.countryCodes\[1\]: must be two capital letters$/],
  ],
  [
    'vCPUs that are no power of two',
    ['GET', 'catalog/cpus?include=AVAILABILITY&product=SERVERLESS&vcpuCount=3'],
    400,
    [/^query\.vcpuCount: must be a power of two up to 1024$/],
  ],
  ['a GPU type that there is not', ['GET', 'catalog/gpus/NVIDIA%20X'], 404],
  [
    'a data center by its region',
    ['GET', 'catalog/datacenters?regions=OCEANIA'],
    200,
    { 'dataCenters[0].region': 'OCEANIA' },
  ],
  ['data centers of the global network', ['GET', 'catalog/datacenters?globalNetwork=true'], 200, { dataCenters: [] }],
  ['a page of no size', ['GET', 'templates?limit=0'], 400, [/^query\.limit: must be at least/]],
  ['a page of no number', ['GET', 'templates?limit=x'], 400, [/^query\.limit: must be/]],
  [
    'a page behind nowhere',
    ['GET', 'registries?cursor=-'],
    400,
    [/^query\.cursor: is not one that an earlier page has returned$/],
  ],
]

function filled<Value>(value: Value, ids: Ids): Value {
  const text = JSON.stringify(value).replaceAll(/:([a-z]+)\b/g, (place, name: string) => ids[name] ?? place)
  return JSON.parse(text) as Value
}

function at(value: unknown, path: string): unknown {
  const names = path.split(/[.[\]]+/).filter(name => name !== '')
  return names.reduce<unknown>((inner, name) => (inner as Record<string, unknown> | undefined)?.[name], value)
}

function check({ status, json, text }: Answer, wanted: number, said: Case[3], ids: Ids): void {
  assert.equal(status, wanted, text)
  if (status >= 400)
    assert.deepEqual([json.status, typeof json.detail, typeof json.title], [status, 'string', 'string'])
  if (Array.isArray(said)) {
    assert.equal(json.errors?.length, said.length, text)
    for (const [n, sentence] of said.entries()) {
      const source = sentence.source.replaceAll(/:([a-z]+)\b/g, (place: string, name: string) => ids[name] ?? place)
      assert.match(json.errors[n], new RegExp(source))
    }
  } else
    for (const [place, value] of Object.entries(said ?? {})) {
      assert.deepEqual(at(json, place), value === undefined ? undefined : filled(value, ids), `${place} in ${text}`)
    }
}

for (const [what, [method, path, body], status, said] of CASES) {
  test(`${method} ${what} is ${status}`, async t => {
    const { rig, ids } = await world(t)
    const request = body === undefined ? {} : { body: filled(body, ids) }
    check(await rig.ask(method, `/v2/${filled(path, ids)}`, request), status, said, ids)
  })
}

test('GraphQL takes an idle time that has no effect, hides it on REST, and shows it when it has one', async t => {
  const rig = await openRig(t)
  const id = await rig.endpoint({ scalerType: 'REQUEST_COUNT', scalerValue: 2, idleTimeout: 44 })
  assert.deepEqual((await rig.ask('GET', `/v2/serverless/${id}`)).json.workers, { min: 0, max: 3 })
  await rig.change(id, { idleTimeout: 55 })
  const { json } = await rig.ask('PATCH', `/v2/serverless/${id}`, { body: { scaling: QUEUE } })
  assert.deepEqual(json.workers, { min: 0, max: 3, idleTimeout: 55 })
})

test('what a creator leaves out through GraphQL gets the defaults of its kind', async t => {
  const rig = await openRig(t)
  const fields =
    'workersMin workersMax idleTimeout executionTimeoutMs scalerType scalerValue flashBootType gpuCount type'
  const query = `query ($id: String!) { myself { endpoint(id: $id) { ${fields} } } }`
  const shown = async (input: object) => {
    const id = await rig.endpoint({ instanceIds: null, gpuIds: 'ADA_24', ...input })
    return (await rig.graphql(query, { id })).myself.endpoint
  }
  const common = { workersMin: 0, workersMax: 3, idleTimeout: 10, executionTimeoutMs: 600_000, scalerValue: 4 }
  const more = { ...common, flashBootType: 'OFF', gpuCount: 1 }
  assert.deepEqual(await shown({}), { ...more, scalerType: 'QUEUE_DELAY', type: 'QB' })
  assert.deepEqual(await shown({ type: 'LB' }), { ...more, scalerType: 'REQUEST_COUNT', type: 'LB' })
})

test('the memory of an instance is that of its flavor, whatever its id says', async t => {
  const rig = await openRig(t)
  const id = await rig.endpoint({ instanceIds: ['cpu3c-4-99'] })
  const { myself } = await rig.graphql('query ($id: String!) { myself { endpoint(id: $id) { instanceIds } } }', { id })
  assert.deepEqual(myself.endpoint.instanceIds, ['cpu3c-4-8'])
})

test('each answer to a counted key has the windows, whatever its status; 401 has no windows', async t => {
  const rig = await openRig(t, { rateWindows: [{ name: 'minute', quota: 6, seconds: 60 }] })
  await rig.clock.advance(60_000 - (rig.clock.now() % 60_000))
  const reader = await rig.addKey('rpa_reader', { scope: { type: 'read-only' } })
  const statuses: number[] = []
  for (const [method, path, asking] of [
    ['GET', '/v2/templates', {}],
    ['GET', '/v2/templates/nothing', {}],
    ['PUT', '/v2/templates', {}],
    ['POST', '/v2/templates', { body: {} }],
    ['POST', '/v2/templates', { body: {}, key: reader }],
    ['GET', '/v2/templates', {}],
    ['GET', '/v2/templates', {}],
    ['GET', '/v2/templates', { key: 'rpa_wrong' }],
  ] as const) {
    const { status, headers } = await rig.ask(method, path, asking)
    statuses.push(status)
    assert.equal(headers.has('ratelimit'), status !== 401, `${status}`)
    assert.equal(headers.get('ratelimit-policy'), status === 401 ? null : '"minute";q=6;w=60')
    assert.equal(headers.has('retry-after'), status === 429)
  }
  assert.deepEqual(statuses, [200, 404, 405, 400, 403, 200, 429, 401])
})
