/** Whatever is saved through GraphQL and patched through REST, in whatever order: both show the same endpoint. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { EndpointBody } from '../../../src/api/rest/schemas/endpoint.ts'
import { TemplateBody } from '../../../src/api/rest/schemas/template.ts'
import type { EndpointId } from '../../../src/core/ids.ts'
import { openRig, type Rig } from '../../support/rig.ts'

// biome-ignore lint/suspicious/noExplicitAny: answers of both surfaces, as they are
type Shown = any

const FIELDS = `id name type templateId gpuIds gpuCount instanceIds allowedCudaVersions minCudaVersion idleTimeout locations
  networkVolumeIds { networkVolumeId } networkVolumeId scalerType scalerValue workersMin workersMax executionTimeoutMs
  flashBootType env { key value } template { id imageName dockerArgs containerDiskInGb env { key value } ports
  containerRegistryAuthId } modelReferences corsOrigins domain priority preemptible createdAt`

const list = (text: string | null) => (text === null || text === '' ? [] : text.split(','))
const record = (env: readonly { key: string; value: string }[]) =>
  Object.fromEntries(env.map(({ key, value }) => [key, value]))

/** REST view of an endpoint with this GraphQL view; `requestUrls` aside. */
function asRest(seen: Shown): Shown {
  const [queue, byDelay] = [seen.type === 'QB', seen.scalerType === 'QUEUE_DELAY']
  const gpuIds = list(seen.gpuIds)
  const excludedTypes = gpuIds.filter(id => id.startsWith('-')).map(id => id.slice(1))
  const gpu = {
    pools: gpuIds.filter(id => !id.startsWith('-')),
    ...(excludedTypes.length > 0 ? { excludedTypes } : {}),
    count: seen.gpuCount,
    allowedCudaVersions: list(seen.allowedCudaVersions),
    minCudaVersion: seen.minCudaVersion,
  }
  const cpu = seen.instanceIds.map((instance: string) => {
    const [id, vcpuCount, memory] = instance.split('-')
    return { id, vcpuCount: Number(vcpuCount), memory: Number(memory) }
  })
  const { template } = seen
  return {
    id: seen.id,
    name: seen.name,
    type: queue ? 'QUEUE' : 'LOAD_BALANCER',
    ...(seen.gpuIds === null ? { cpu } : { gpu }),
    workers: {
      min: seen.workersMin,
      max: seen.workersMax,
      ...(queue && !byDelay ? {} : { idleTimeout: seen.idleTimeout }),
    },
    scaling: { type: seen.scalerType, [byDelay ? 'queueDelay' : 'requestCount']: seen.scalerValue },
    dataCenterIds: list(seen.locations),
    networkVolumes: seen.networkVolumeIds.map((volume: { networkVolumeId: string }) => volume.networkVolumeId),
    modelReferences: seen.modelReferences,
    corsOrigins: seen.corsOrigins,
    ...(seen.type === 'LB' ? { domain: seen.domain } : { preemptible: seen.preemptible }),
    priority: seen.priority,
    timeout: seen.executionTimeoutMs,
    flashboot: seen.flashBootType,
    createdAt: seen.createdAt,
    image: template.imageName,
    args: template.dockerArgs,
    disk: template.containerDiskInGb,
    env: { ...record(template.env), ...record(seen.env) },
    ports: list(template.ports),
    registry: template.containerRegistryAuthId,
  }
}

/** The endpoint through both surfaces, held against each other; what REST shows of it. */
async function agreed(rig: Rig, id: EndpointId): Promise<{ rest: Shown; graphql: Shown }> {
  const query = `query ($id: String!) { myself { endpoint(id: $id) { ${FIELDS} } } }`
  const graphql = (await rig.graphql(query, { id })).myself.endpoint
  const shown = (await rig.ask('GET', `/v2/serverless/${id}`)).json
  assert.deepEqual(EndpointBody.safeParse(shown).error, undefined, 'REST shows what its document says')
  const { requestUrls: _, browserUrl: __, ...rest } = shown
  assert.deepEqual(rest, asRest(graphql))
  assert.equal(graphql.networkVolumeId, rest.networkVolumes[0] ?? null)
  return { rest, graphql }
}

/** One change; what of it is read back as it was sent, under the names of its surface. */
type Change =
  | { readonly by: 'graphql'; readonly input: Shown }
  | { readonly by: 'rest'; readonly body: Shown }
  | { readonly by: 'template'; readonly input: Shown }
  | { readonly by: 'link'; readonly template: number }

const some = <Fields extends object>(fields: { [Name in keyof Fields]: fc.Arbitrary<Fields[Name]> }) =>
  fc.record(fields, { requiredKeys: [], noNullPrototype: true })

const name = fc.constantFrom('a', 'endpoint two', 'drei')
const workersMin = fc.integer({ min: 0, max: 3 })
const workersMax = fc.integer({ min: 1, max: 5 })
const idleTimeout = fc.integer({ min: 1, max: 3600 })
const timeout = fc.integer({ min: 5_000, max: 600_000 })
const flashboot = fc.constantFrom('OFF', 'FLASHBOOT', 'PRIORITY_FLASHBOOT')
const locations = fc.uniqueArray(fc.constantFrom('US', 'RO', 'EU-RO-1', 'US-KS-2'))
const text = fc.string({ maxLength: 8 }).map(value => value.replaceAll('\0', ''))
const env = fc.dictionary(fc.constantFrom('A', 'B', 'C'), text, { noNullPrototype: true })
const image = fc.constantFrom('image:1', 'image:2', 'registry.example/a/b@sha256:1')
const disk = fc.integer({ min: 1, max: 50 })
const args = fc.constantFrom('', 'python main.py', '{"cmd":["a"]}')
const ports = fc.uniqueArray(fc.constantFrom('80/http', '22/tcp'))
const delay = fc.integer({ min: 1, max: 20 }).map(half => half / 2)
const count = fc.integer({ min: 1, max: 9 })
const pools = fc.constantFrom(['ADA_24'], ['ADA_48_PRO', 'AMPERE_16'], ['ADA_48_PRO'])
const cuda = fc.constantFrom('12.1', '12.4', '12.8')
const volumes = fc.subarray([0, 1])
const corsOrigins = fc.subarray(['*', 'https://app.example', 'http://localhost:3000'])
const priority = fc.constantFrom('low', 'normal', 'high')
const preemptible = fc.boolean()
const modelReferences = fc.subarray(['a/b', 'a/b:main', 'https://huggingface.co/a/b:main'])

const pairs = (variables: Record<string, string>) => Object.entries(variables).map(([key, value]) => ({ key, value }))

/** Fields of a template, with their names in GraphQL. */
const templateFields = some({
  imageName: image,
  dockerArgs: args,
  containerDiskInGb: disk,
  env: env.map(pairs),
  ports: ports.map(items => items.join(',')),
})

const scalers = fc.oneof(
  fc.constant({}),
  delay.map(scalerValue => ({ scalerType: 'QUEUE_DELAY', scalerValue })),
  count.map(scalerValue => ({ scalerType: 'REQUEST_COUNT', scalerValue })),
)

const cudaLimits = fc.oneof(
  fc.constant({}),
  fc.uniqueArray(cuda).map(versions => ({ allowedCudaVersions: versions.join(',') })),
  cuda.map(minCudaVersion => ({ minCudaVersion })),
)

const gpuInput = fc
  .tuple(some({ gpuIds: pools, without: fc.boolean(), gpuCount: fc.integer({ min: 1, max: 4 }) }), cudaLimits)
  .map(([{ gpuIds, without, gpuCount }, limits]) => ({
    ...(gpuIds === undefined
      ? {}
      : { gpuIds: [...gpuIds, ...(without && gpuIds[0] === 'ADA_48_PRO' ? ['-NVIDIA L40'] : [])].join(',') }),
    ...(gpuCount === undefined ? {} : { gpuCount }),
    ...limits,
  }))

const graphqlChange = fc
  .tuple(
    some({
      workersMin,
      workersMax,
      idleTimeout,
      executionTimeoutMs: timeout,
      flashBootType: flashboot,
      locations: locations.map(items => items.join(',')),
      env: env.map(pairs),
      volumes,
      template: templateFields,
      modelReferences,
      corsOrigins,
      priority,
      preemptible,
    }),
    name,
    scalers,
    gpuInput,
  )
  .map(
    ([fields, named, scaler, gpu]) =>
      ({ by: 'graphql', input: { name: named, ...fields, ...scaler, ...gpu } }) as Change,
  )

const gpuBody = some({
  count: fc.integer({ min: 1, max: 4 }),
  pools,
  allowedCudaVersions: fc.uniqueArray(cuda),
}).chain(gpu =>
  'pools' in gpu && gpu.pools?.[0] === 'ADA_48_PRO'
    ? fc.constantFrom(gpu, { ...gpu, excludedTypes: ['NVIDIA L40S'] })
    : fc.constant(gpu),
)

const scaling = fc.oneof(
  delay.map(queueDelay => ({ type: 'QUEUE_DELAY', queueDelay })),
  count.map(requestCount => ({ type: 'REQUEST_COUNT', requestCount })),
)

const restChange = some({
  name,
  timeout,
  flashboot,
  dataCenterIds: locations,
  volumes,
  modelReferences,
  corsOrigins,
  priority,
  preemptible,
  image,
  args,
  disk,
  env,
  ports,
  scaling,
  gpu: gpuBody,
  workers: some({ min: workersMin, max: workersMax, idleTimeout }),
}).map(body => ({ by: 'rest', body }) as Change)

const changes = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: graphqlChange },
    { weight: 4, arbitrary: restChange },
    { weight: 1, arbitrary: templateFields.map(input => ({ by: 'template', input }) as Change) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 1 }).map(template => ({ by: 'link', template }) as Change) },
  ),
  { minLength: 1, maxLength: 8 },
)

/** Target of a change. */
interface World {
  readonly rig: Rig
  readonly id: EndpointId
  readonly volumes: readonly string[]
  readonly templates: readonly string[]
}

const document = {
  graphql: 'mutation ($input: EndpointInput!) { answer: saveEndpoint(input: $input) { id } }',
  template: 'mutation ($input: SaveTemplateInput) { answer: saveTemplate(input: $input) { id } }',
  link: 'mutation ($input: UpdateEndpointTemplateInput) { answer: updateEndpointTemplate(input: $input) { id } }',
}

/** Makes a change and says whether it was accepted. */
async function make(world: World, change: Change): Promise<boolean> {
  const { rig, id } = world
  const named = (indexes: readonly number[]) => indexes.map(index => world.volumes[index]!)
  if (change.by === 'rest') {
    const { volumes: wanted, ...rest } = change.body
    const body = wanted === undefined ? rest : { ...rest, networkVolumes: named(wanted) }
    const { status } = await rig.ask('PATCH', `/v2/serverless/${id}`, { body })
    assert.ok(status === 200 || status === 400, String(status))
    return status === 200
  }
  const input = { ...(change.by === 'link' ? {} : change.input) }
  if (change.by === 'graphql') {
    input.id = id
    if (input.volumes !== undefined) {
      input.networkVolumeIds = named(input.volumes).map(networkVolumeId => ({ networkVolumeId }))
      delete input.volumes
    }
  } else if (change.by === 'template') {
    input.id = (await rig.store.endpoints.find(id))!.templateId
  } else {
    Object.assign(input, { endpointId: id, templateId: world.templates[change.template] })
  }
  const { json } = await rig.ask('POST', '/graphql', { body: { query: document[change.by], variables: { input } } })
  return json.errors === undefined
}

/** Asserts that accepted values are stored, on the surface that received them. */
function assertKept({ rest, graphql }: { rest: Shown; graphql: Shown }, change: Change): void {
  if (change.by === 'rest') {
    for (const field of [
      'name',
      'timeout',
      'flashboot',
      'dataCenterIds',
      'image',
      'args',
      'disk',
      'env',
      'ports',
      'scaling',
    ]) {
      if (field in change.body) assert.deepEqual(rest[field], change.body[field], field)
    }
    for (const [field, value] of Object.entries({ ...change.body.workers }))
      assert.equal(rest.workers[field], value, field)
  } else if (change.by === 'graphql') {
    const { template = {}, volumes: _, ...fields } = change.input
    for (const [field, value] of Object.entries(fields)) assert.deepEqual(graphql[field], value, field)
    for (const [field, value] of Object.entries(template)) assert.deepEqual(graphql.template[field], value, field)
  } else if (change.by === 'template') {
    for (const [field, value] of Object.entries(change.input)) assert.deepEqual(graphql.template[field], value, field)
  }
}

async function holds(t: TestContext, compute: object, tidy: (change: Change) => Change): Promise<void> {
  const rig = await openRig(t, { rateWindows: [] })
  const create = (dataCenter: string) =>
    rig.graphql(
      `mutation { made: createNetworkVolume(input: { name: "v", size: 10, dataCenterId: "${dataCenter}" }) { id } }`,
    )
  const made = [(await create('EU-RO-1')).made.id, (await create('US-KS-2')).made.id]
  const templates = [
    await rig.template({ env: [{ key: 'A', value: 'template' }] }),
    await rig.template({ ports: '80/http' }),
  ]
  await fc.assert(
    fc.asyncProperty(fc.constantFrom('own', 'shared'), changes, async (kind, sequence) => {
      const start = kind === 'own' ? {} : { templateId: templates[0] }
      const id = await rig.endpoint({ instanceIds: null, ...compute, ...start, workersMax: 0 })
      const world = { rig, id, volumes: made, templates }
      let before = await agreed(rig, id)
      for (const change of sequence.map(tidy)) {
        const accepted = await make(world, change)
        const after = await agreed(rig, id)
        if (accepted) assertKept(after, change)
        else assert.deepEqual(after, before, 'what was refused has changed nothing')
        before = after
      }
    }),
    { numRuns: 60, seed: 20_26 },
  )
}

test('a GPU endpoint is the same through GraphQL and REST after any changes', t =>
  holds(t, { gpuIds: 'ADA_24' }, change => change))

test('a CPU endpoint is the same through GraphQL and REST after any changes', t => {
  const withoutGpu = ({ gpuIds: _, gpuCount: __, allowedCudaVersions: ___, minCudaVersion: ____, ...rest }: Shown) =>
    rest
  return holds(t, { instanceIds: ['cpu3g-2-8', 'cpu5c-4-8'] }, change => {
    if (change.by === 'graphql') return { ...change, input: withoutGpu(change.input) }
    if (change.by !== 'rest') return change
    const { gpu: _, ...body } = change.body
    return { ...change, body }
  })
})

test('an endpoint that was made through either surface is the same on both', async t => {
  const rig = await openRig(t)
  const { json: made } = await rig.ask('POST', '/v2/serverless', {
    body: {
      name: 'rest',
      type: 'QUEUE',
      image: 'image:1',
      scaling: { type: 'QUEUE_DELAY', queueDelay: 0.5 },
      gpu: { pools: ['ADA_48_PRO'], excludedTypes: ['NVIDIA L40'], minCudaVersion: '12.4' },
      env: { A: '1' },
      dataCenterIds: ['US', 'EU-RO-1'],
      ports: ['80/http'],
      args: 'go',
      disk: 20,
      flashboot: 'FLASHBOOT',
    },
  })
  const { graphql } = await agreed(rig, made.id)
  assert.deepEqual([graphql.gpuIds, graphql.locations], ['ADA_48_PRO,-NVIDIA L40', 'US,EU-RO-1'])
  await agreed(rig, await rig.endpoint({ type: 'LB', scalerType: 'REQUEST_COUNT', scalerValue: 3 }))
  await agreed(rig, await rig.endpoint({ scalerType: 'REQUEST_COUNT', env: [{ key: 'A', value: '2' }] }))
  await agreed(rig, await rig.endpoint({ instanceIds: ['cpu3g-1-4'] }))
})

test('a template that was saved through GraphQL or version 1 is shown as the document of REST says', async t => {
  const rig = await openRig(t)
  await rig.template({ isServerless: false, volumeInGb: 1, category: 'GPU', readme: 'x', dockerArgs: '{"cmd":["a"]}' })
  const body = {
    name: 'v1',
    imageName: 'image:1',
    volumeInGb: 5,
    volumeMountPath: '',
    ports: ['80/http'],
    env: { A: '' },
  }
  assert.equal((await rig.ask('POST', '/v1/templates', { body })).status, 201)
  for (const template of (await rig.ask('GET', '/v2/templates')).json.templates) {
    assert.deepEqual(TemplateBody.safeParse(template).error, undefined, JSON.stringify(template))
  }
})
