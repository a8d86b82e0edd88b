/**
 * The rules of an endpoint's and a template's fields, each on both surfaces: refused values with
 * their messages, and accepted ones.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { openRig, type Rig } from '../../support/rig.ts'

const QUEUE = { type: 'QUEUE_DELAY', queueDelay: 4 }
const COUNT = { type: 'REQUEST_COUNT', requestCount: 2 }
const GPU = { gpu: { pools: ['ADA_24'] } }

/** One rule: what breaks it on each surface, and the sentence that says so. */
interface Rule {
  readonly what: string
  readonly rest?: readonly [body: object, error: RegExp]
  readonly graphql?: readonly [input: object, message: RegExp]
}

const list = (first: string) => new RegExp(`^.*; the \\w+( \\w+)? are ${first}, .*`)

const ENDPOINTS: readonly Rule[] = [
  {
    what: 'a pool that there is not, with the list of those that there are',
    rest: [{ gpu: { pools: ['NOPE'] } }, /^\$\.gpu\.pools: 'NOPE' is not a GPU pool; the pools are AMPERE_16, /],
    graphql: [{ gpuIds: 'NOPE' }, /^gpuIds: 'NOPE' is not a GPU pool; the pools are AMPERE_16, /],
  },
  {
    what: 'no pool beside an exclusion',
    rest: [{ gpu: { pools: [], excludedTypes: ['NVIDIA L4'] } }, /^\$\.gpu\.pools: must not be empty/],
    graphql: [{ gpuIds: '-NVIDIA L4' }, /^gpuIds must name at least one GPU pool/],
  },
  {
    what: 'an exclusion outside the pools',
    rest: [
      { gpu: { pools: ['ADA_24'], excludedTypes: ['NVIDIA L4'] } },
      /'NVIDIA L4' is not a GPU type of the selected/,
    ],
    graphql: [{ gpuIds: 'ADA_24,-NVIDIA L4' }, /'NVIDIA L4' is not a GPU type of the selected pools$/],
  },
  {
    what: 'an exclusion with a hyphen',
    rest: [
      { gpu: { pools: ['AMPERE_24'], excludedTypes: ['-NVIDIA L4'] } },
      /must not be empty or start with a hyphen/,
    ],
    graphql: [{ gpuIds: 'AMPERE_24,--NVIDIA L4' }, /'-NVIDIA L4' must not start with a hyphen$/],
  },
  {
    what: 'an exclusion given twice',
    rest: [{ gpu: { pools: ['AMPERE_24'], excludedTypes: ['NVIDIA L4', ' NVIDIA L4'] } }, /is given twice$/],
    graphql: [{ gpuIds: 'AMPERE_24,-NVIDIA L4,- NVIDIA L4' }, /'NVIDIA L4' is given twice$/],
  },
  {
    what: 'no GPU',
    rest: [{ gpu: { pools: ['ADA_24'], count: 0 } }, /^\$\.gpu\.count: must be at least/],
    graphql: [{ gpuCount: 0 }, /^gpuCount must be an integer from 1 to 64$/],
  },
  {
    what: 'a priority that there is not',
    rest: [{ ...GPU, priority: 'urgent' }, /^\$\.priority: .*low.*normal.*high/],
    graphql: [{ priority: 'urgent' }, /"urgent".*EndpointPriority/],
  },
  {
    what: 'pauses of requests',
    rest: [
      { ...GPU, type: 'LOAD_BALANCER', scaling: COUNT, preemptible: true },
      /^\$\.preemptible: is for endpoints with a queue; requests are not paused/,
    ],
    graphql: [
      { type: 'LB', scalerType: 'REQUEST_COUNT', scalerValue: 2, preemptible: true },
      /^preemptible is for endpoints with a queue; requests are not paused/,
    ],
  },
  {
    what: 'a CUDA version that is none',
    rest: [{ gpu: { pools: ['ADA_24'], minCudaVersion: '12' } }, /must be of the form major\.minor(, or empty)?$/],
    graphql: [
      { allowedCudaVersions: '12.4,x' },
      /^allowedCudaVersions: CUDA version 'x' is not of the form major\.minor$/,
    ],
  },
  {
    what: 'both limits of CUDA',
    rest: [
      { gpu: { pools: ['ADA_24'], allowedCudaVersions: ['12.4'], minCudaVersion: '12.1' } },
      /^\$\.gpu\.allowedCudaVersions: excludes gpu\.minCudaVersion; one of them must be empty$/,
    ],
    graphql: [
      { allowedCudaVersions: '12.4', minCudaVersion: '12.1' },
      /^allowedCudaVersions excludes minCudaVersion; one of them must be empty$/,
    ],
  },
  {
    what: 'a number of vCPUs that is no power of two',
    rest: [{ gpu: undefined, cpu: [{ id: 'cpu3g', vcpuCount: 6 }] }, /vcpuCount 6 is not a power of two from 1 to 32$/],
    graphql: [{ instanceIds: ['cpu3g-6-24'] }, /^instanceIds: vcpuCount 6 is not a power of two from 1 to 32$/],
  },
  {
    what: 'more vCPUs than a flavor has',
    rest: [{ gpu: undefined, cpu: [{ id: 'cpu3g', vcpuCount: 64 }] }, /^\$\.cpu: vcpuCount 64 is not a power of two/],
    graphql: [{ instanceIds: ['cpu3g-64-256'] }, /^instanceIds: vcpuCount 64 is not a power of two from 1 to 32$/],
  },
  {
    what: 'a flavor that there is not',
    rest: [{ gpu: undefined, cpu: [{ id: 'cpu9x', vcpuCount: 2 }] }, list('cpu3c')],
    graphql: [{ instanceIds: ['cpu9x-2-8'] }, list('cpu3c')],
  },
  {
    what: 'a CPU configuration given twice',
    rest: [
      { gpu: undefined, cpu: Array(2).fill({ id: 'cpu3g', vcpuCount: 2 }) },
      /^\$\.cpu: cpu3g with 2 vCPUs is given twice$/,
    ],
    graphql: [{ instanceIds: ['cpu3g-2-8', 'cpu3g-2-8'] }, /^instanceIds: cpu3g with 2 vCPUs is given twice$/],
  },
  {
    what: 'no CPU configuration',
    rest: [{ gpu: undefined, cpu: [] }, /^\$\.cpu: must not be empty/],
  },
  {
    what: 'an instance of no form',
    graphql: [{ instanceIds: ['cpu3g'] }, /^instanceIds: 'cpu3g' is not of the form flavor-vcpus-memory/],
  },
  {
    what: 'a model of no form that is known',
    rest: [
      { modelReferences: ['https://hf.co/a/b'] },
      /modelReferences: 'https:\/\/hf\.co\/a\/b' is not of the form owner\/name or owner\/name:revision, as it is or /,
    ],
    graphql: [
      { modelReferences: ['a'] },
      /^modelReferences: 'a' is not of the form owner\/name or owner\/name:revision, /,
    ],
  },
  {
    what: 'less than no worker',
    rest: [{ workers: { min: -1 } }, /^\$\.workers\.min: must be at least/],
    graphql: [{ workersMin: -1 }, /^workersMin must be an integer from 0 to 1000$/],
  },
  {
    what: 'too many workers',
    rest: [{ workers: { max: 1_001 } }, /^\$\.workers\.max: must be at most/],
    graphql: [{ workersMax: 1_001 }, /^workersMax must be an integer from 0 to 1000$/],
  },
  {
    what: 'more workers at least than at most',
    rest: [{ workers: { min: 2, max: 1 } }, /^\$\.workers\.min: 2 must not exceed workers\.max \(1\)$/],
    graphql: [{ workersMin: 2, workersMax: 1 }, /^workersMin \(2\) must not exceed workersMax \(1\)$/],
  },
  {
    what: 'no idle time',
    rest: [{ workers: { idleTimeout: 0 } }, /^\$\.workers\.idleTimeout: must be at least/],
    graphql: [{ idleTimeout: 0 }, /^idleTimeout must be an integer from 1 to 3600 seconds$/],
  },
  {
    what: 'an idle time over an hour',
    rest: [{ workers: { idleTimeout: 3_601 } }, /^\$\.workers\.idleTimeout: must be at most/],
    graphql: [{ idleTimeout: 3_601 }, /^idleTimeout must be an integer from 1 to 3600 seconds$/],
  },
  {
    what: 'an idle time for a queue that scales on requestCount',
    rest: [{ scaling: COUNT, workers: { idleTimeout: 5 } }, /^\$\.workers\.idleTimeout: does not apply to a queue/],
  },
  {
    what: 'a queue delay below half a second',
    rest: [{ scaling: { ...QUEUE, queueDelay: 0.49 } }, /^\$\.scaling\.queueDelay: must be at least/],
    graphql: [{ scalerValue: 0.49 }, /^scalerValue must be at least 0\.5 seconds for QUEUE_DELAY$/],
  },
  {
    what: 'no request per worker',
    rest: [{ scaling: { ...COUNT, requestCount: 0 } }, /^\$\.scaling\.requestCount: must be at least/],
    graphql: [
      { scalerType: 'REQUEST_COUNT', scalerValue: 0 },
      /^scalerValue must be an integer of at least 1 for REQUEST_COUNT$/,
    ],
  },
  {
    what: 'half a request per worker',
    rest: [{ scaling: { ...COUNT, requestCount: 1.5 } }, /^\$\.scaling\.requestCount: must be a whole number/],
    graphql: [{ scalerType: 'REQUEST_COUNT', scalerValue: 1.5 }, /^scalerValue must be an integer of at least 1/],
  },
  {
    what: 'a way of scaling that there is not',
    rest: [{ scaling: { type: 'MAGIC' } }, /^\$\.scaling\.type: must be/],
    graphql: [{ scalerType: 'MAGIC' }, /^scalerType must be QUEUE_DELAY or REQUEST_COUNT, not 'MAGIC'$/],
  },
  {
    what: 'a load balancer that scales on the delay of a queue',
    rest: [{ type: 'LOAD_BALANCER' }, /^\$\.scaling\.type: must be REQUEST_COUNT for a load-balancing endpoint$/],
    graphql: [
      { type: 'LB', scalerType: 'QUEUE_DELAY', scalerValue: 4 },
      /^scalerType must be REQUEST_COUNT for a load-balancing endpoint$/,
    ],
  },
  {
    what: 'an execution timeout below 5 seconds',
    rest: [{ timeout: 4_999 }, /^\$\.timeout: must be at least/],
    graphql: [
      { executionTimeoutMs: 4_999 },
      /^executionTimeoutMs must be an integer from 5000 to 604800000 milliseconds$/,
    ],
  },
  {
    what: 'an execution timeout over a week',
    rest: [{ timeout: 604_800_001 }, /^\$\.timeout: must be at most/],
    graphql: [{ executionTimeoutMs: 604_800_001 }, /^executionTimeoutMs must be an integer from 5000 to 604800000/],
  },
  {
    what: 'a FlashBoot of no name',
    rest: [{ flashboot: '' }, /^\$\.flashboot: must be/],
    graphql: [{ flashBootType: '' }, /Value "" does not exist in "FlashBootType" enum/],
  },
  {
    what: 'a place that there is not, with the list of those that there are',
    rest: [{ dataCenterIds: ['MOON'] }, /^\$\.dataCenterIds: 'MOON' is not a location; the locations are CZ, /],
    graphql: [{ locations: 'US,MOON' }, /^locations: 'MOON' is not a location; the locations are CZ, /],
  },
  {
    what: 'a network volume that there is not',
    rest: [{ networkVolumes: ['nothing'] }, /^\$\.networkVolumes: volume nothing not found$/],
    graphql: [{ networkVolumeId: 'nothing' }, /^networkVolumeIds: volume nothing not found$/],
  },
  {
    what: 'a registry that there is not',
    rest: [{ registry: 'nothing' }, /^\$\.registry: registry nothing not found$/],
    graphql: [
      { template: { containerRegistryAuthId: 'nothing' } },
      /^containerRegistryAuthId: registry nothing not found$/,
    ],
  },
  {
    what: 'no disk',
    rest: [{ disk: 0 }, /^\$\.disk: must be at least/],
    graphql: [{ template: { containerDiskInGb: 0 } }, /^containerDiskInGb must be an integer of at least 1$/],
  },
  {
    what: 'a port without a protocol',
    rest: [{ ports: ['80/http', '80'] }, /^\$\.ports: '80' is not of the form port\/protocol$/],
    graphql: [{ template: { ports: '80/http,80' } }, /^ports: '80' is not of the form port\/protocol$/],
  },
  {
    what: 'a variable of no name',
    rest: [{ env: { 'A B': '1' } }, /^\$\.env: 'A B' is not a variable name$/],
    graphql: [{ env: [{ key: 'A B', value: '1' }] }, /^env: 'A B' is not a variable name$/],
  },
  {
    what: 'a variable with a null character',
    rest: [{ env: { A: '\0' } }, /the value of 'A' must not hold a null character$/],
    graphql: [{ env: [{ key: 'A', value: '\0' }] }, /^env: the value of 'A' must not hold a null character$/],
  },
  {
    what: 'a volume in its template',
    graphql: [{ template: { volumeInGb: 20 } }, /^volumeInGb must be 0 for a serverless template$/],
  },
]

/** Rules of templates. */
const TEMPLATES: readonly Rule[] = [
  {
    what: 'a serverless one with a volume',
    rest: [
      { serverless: true, mounts: { persistent: { size: 10, path: '/x' } } },
      /^\$\.mounts\.persistent: a serverless template has no volume of its own$/,
    ],
    graphql: [{ isServerless: true, volumeInGb: 10 }, /^volumeInGb must be 0 for a serverless template$/],
  },
  {
    what: 'one without a name',
    rest: [{ name: ' ' }, /^\$\.name: must not be empty$/],
    graphql: [{ name: ' ' }, /^name must not be empty$/],
  },
  {
    what: 'one without an image',
    rest: [{ image: '' }, /^\$\.image: must not be empty/],
    graphql: [{ imageName: '' }, /^imageName must not be empty$/],
  },
  {
    what: 'one whose name is taken',
    rest: [{ name: 'taken' }, /^a template named 'taken' already exists; template names are unique$/],
    graphql: [{ name: 'taken' }, /^a template named 'taken' already exists; template names are unique$/],
  },
  {
    what: 'one with a registry that there is not',
    rest: [{ registry: 'nothing' }, /^\$\.registry: registry nothing not found$/],
    graphql: [{ containerRegistryAuthId: 'nothing' }, /^containerRegistryAuthId: registry nothing not found$/],
  },
  {
    what: 'one with a small mount',
    rest: [{ mounts: { persistent: { size: 9, path: '/x' } } }, /^\$\.mounts\.persistent\.size: must be at least/],
  },
  {
    what: 'one with a mount of the network',
    rest: [{ mounts: { network: {} } }, /^\$\.mounts: additional properties 'network' not allowed$/],
  },
  {
    what: 'one of a category that there is not',
    rest: [{ category: 'TPU' }, /^\$\.category: must be/],
    graphql: [{ category: 'TPU' }, /Value "TPU" does not exist in "TemplateCategory" enum/],
  },
]

const SAVE = {
  endpoint: 'mutation ($input: EndpointInput!) { answer: saveEndpoint(input: $input) { id } }',
  template: 'mutation ($input: SaveTemplateInput) { answer: saveTemplate(input: $input) { id } }',
}

async function restRefuses(rig: Rig, method: string, path: string, body: object, error: RegExp): Promise<void> {
  const { status, json, text } = await rig.ask(method, path, { body })
  assert.equal(status, 400, text)
  assert.equal(json.errors.length, 1, text)
  assert.match(json.errors[0], error)
}

async function graphqlRefuses(rig: Rig, query: string, input: object, message: RegExp): Promise<void> {
  const { status, json, text } = await rig.ask('POST', '/graphql', { body: { query, variables: { input } } })
  assert.equal(status, 200, text)
  assert.equal(json.errors?.length, 1, text)
  assert.match(json.errors[0].message, message)
}

async function endpointRule(t: TestContext, { rest, graphql }: Rule): Promise<void> {
  const rig = await openRig(t)
  const template = { imageName: 'image:1', containerDiskInGb: 1 }
  const whole = { name: 'e', type: 'QUEUE', image: 'image:1', scaling: QUEUE, ...GPU }
  if (rest !== undefined) {
    const [body, error] = rest
    await restRefuses(rig, 'POST', '/v2/serverless', { ...whole, ...body }, error)
  }
  if (graphql !== undefined) {
    const [input, message] = graphql
    const inner = { ...template, ...(input as { template?: object }).template }
    const compute = 'instanceIds' in input ? {} : { gpuIds: 'ADA_24' }
    await graphqlRefuses(rig, SAVE.endpoint, { name: 'e', ...compute, ...input, template: inner }, message)
  }
  assert.deepEqual((await rig.ask('GET', '/v2/serverless')).json.endpoints, [])
}

/** The same rules hold for a change; those of REST about members that a change does not have aside. */
async function changeRule(t: TestContext, { rest, graphql }: Rule): Promise<void> {
  const rig = await openRig(t)
  const cpu = rest !== undefined && 'cpu' in rest[0]
  const id = await rig.endpoint(cpu ? {} : { instanceIds: null, gpuIds: 'ADA_24' })
  const before = (await rig.ask('GET', `/v2/serverless/${id}`)).json
  if (rest !== undefined && !('type' in rest[0])) {
    const { gpu, ...body } = rest[0] as { gpu?: object }
    const change = gpu === undefined ? body : { ...body, gpu }
    await restRefuses(rig, 'PATCH', `/v2/serverless/${id}`, change, rest[1])
  }
  if (graphql !== undefined) await graphqlRefuses(rig, SAVE.endpoint, { id, name: 'e', ...graphql[0] }, graphql[1])
  assert.deepEqual((await rig.ask('GET', `/v2/serverless/${id}`)).json, before)
}

for (const rule of ENDPOINTS) {
  test(`no endpoint is created with ${rule.what}`, t => endpointRule(t, rule))
  test(`no endpoint is changed to have ${rule.what}`, t => changeRule(t, rule))
}

for (const { what, rest, graphql } of TEMPLATES) {
  test(`no template is created or changed to be ${what}`, async t => {
    const rig = await openRig(t)
    const fields = { containerDiskInGb: 1, volumeInGb: 0 }
    await rig.template({ name: 'taken' })
    const id = await rig.template({ name: 'mine', isServerless: false })
    const path = `/v2/templates/${id}`
    const before = (await rig.ask('GET', path)).json
    if (rest !== undefined) {
      await restRefuses(rig, 'POST', '/v2/templates', { name: 't', image: 'image:1', ...rest[0] }, rest[1])
      await restRefuses(rig, 'PATCH', path, rest[0], rest[1])
    }
    if (graphql !== undefined) {
      const input = { name: 't', imageName: 'image:1', ...fields, ...graphql[0] }
      await graphqlRefuses(rig, SAVE.template, input, graphql[1])
      await graphqlRefuses(rig, SAVE.template, { id, ...graphql[0] }, graphql[1])
    }
    assert.deepEqual((await rig.ask('GET', path)).json, before)
    assert.equal((await rig.ask('GET', '/v2/templates')).json.templates.length, 2)
  })
}
