/** A template or an endpoint can be written back as a surface shows it, and the same text makes an equal copy. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { DEFAULT_OWNER, type EndpointId, type TemplateId } from '../../../src/core/ids.ts'
import { parseContainerArgs } from '../../../src/core/workers/command-line.ts'
import { openRig, type Rig } from '../../support/rig.ts'

const RUNS = 20
/** Members that the server makes. */
const MADE = { id: undefined, createdAt: undefined, version: undefined, requestUrls: undefined, browserUrl: undefined }

// biome-ignore lint/suspicious/noExplicitAny: it is what a surface shows
type Shown = Record<string, any>

/** The operations of one surface: to show an object, to write it back, and to copy it. */
interface Dialect {
  readonly read: (id: string) => Promise<Shown>
  readonly write: (id: string, shown: Shown) => Promise<unknown>
  readonly copy: (shown: Shown, name: string) => Promise<string>
}

const TEMPLATE_FIELDS = `id name imageName dockerArgs containerDiskInGb volumeInGb volumeMountPath ports portsConfig { port name }
  env { key value } readme category isServerless isPublic containerRegistryAuthId startSsh startJupyter startScript advancedStart`
const SAVE_TEMPLATE = 'mutation ($input: SaveTemplateInput) { saveTemplate(input: $input) { id } }'
const ENDPOINT_FIELDS = `id name type templateId gpuIds gpuCount instanceIds allowedCudaVersions minCudaVersion locations
  networkVolumeId networkVolumeIds { networkVolumeId } idleTimeout scalerType scalerValue workersMin workersMax workersPFBTarget
  executionTimeoutMs flashBootType env { key value } modelReferences corsOrigins priority preemptible compliance flashEnvironmentId`
const SAVE_ENDPOINT = 'mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { id } }'

function testDialects(rig: Rig): { templates: Record<string, Dialect>; endpoints: Record<string, Dialect> } {
  const send = async (method: string, path: string, body?: object): Promise<Shown> => {
    const { status, json, text } = await rig.ask(method, path, body === undefined ? {} : { body })
    assert.ok(status < 300, `${method} ${path} is ${status}: ${text} for ${JSON.stringify(body)}`)
    return json
  }
  const rest = (path: string, written: (shown: Shown) => Shown, copied: (shown: Shown) => Shown): Dialect => ({
    read: id => send('GET', `${path}/${id}`),
    write: (id, shown) => send('PATCH', `${path}/${id}`, written(shown)),
    copy: async (shown, name) => (await send('POST', path, { ...copied(shown), name })).id,
  })
  const whole = (shown: Shown) => shown
  const withoutId = ({ id: _, ...shown }: Shown) => shown
  const createdV2 = ({ id: _, requestUrls: _urls, browserUrl: _url, createdAt: _at, cpu, ...shown }: Shown) => {
    return cpu === undefined ? shown : { ...shown, cpu: cpu.map(({ memory: _memory, ...each }: Shown) => each) }
  }
  const changedV2 = (shown: Shown) => ({ ...createdV2(shown), type: undefined })
  return {
    templates: {
      GraphQL: {
        read: async id =>
          (await rig.graphql(`query ($id: String!) { podTemplate(id: $id) { ${TEMPLATE_FIELDS} } }`, { id }))
            .podTemplate,
        write: (_, input) => rig.graphql(SAVE_TEMPLATE, { input }),
        copy: async (shown, name) =>
          (await rig.graphql(SAVE_TEMPLATE, { input: { ...withoutId(shown), name } })).saveTemplate.id,
      },
      'REST v1': rest('/v1/templates', whole, whole),
      'REST v2': rest('/v2/templates', withoutId, withoutId),
    },
    endpoints: {
      GraphQL: {
        read: async id =>
          (await rig.graphql(`query ($id: String!) { myself { endpoint(id: $id) { ${ENDPOINT_FIELDS} } } }`, { id }))
            .myself.endpoint,
        write: (_, input) => rig.graphql(SAVE_ENDPOINT, { input }),
        copy: async (shown, name) =>
          (await rig.graphql(SAVE_ENDPOINT, { input: { ...withoutId(shown), name } })).saveEndpoint.id,
      },
      'REST v1': rest('/v1/endpoints', whole, whole),
      'REST v2': rest('/v2/serverless', changedV2, createdV2),
    },
  }
}

const letter = fc.constantFrom(
  'a',
  'z',
  '0',
  ' ',
  '-',
  '/',
  '.',
  '=',
  "'",
  '"',
  '\\',
  '$',
  '{',
  '}',
  ',',
  'ü',
  '漢',
  '😀',
)
const word = fc.string({ unit: letter, maxLength: 8 })
const words = fc.array(word, { maxLength: 4 })
const plainWords = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', '-', '/'), minLength: 1 }), { maxLength: 4 })
const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

const args = fc.oneof(
  fc.constantFrom('', 'python -u handler.py', '  a   b ', `sh -c 'echo "$HOME"'`, `an 'open quote`, '{"cmd": "a"}'),
  plainWords.map(list => list.join(' ')),
  words.map(list => list.map(quoted).join(' ')),
  words.map(cmd => JSON.stringify({ cmd })),
  fc.tuple(words, words).map(([entrypoint, cmd]) => JSON.stringify({ entrypoint, cmd })),
)
const env = fc.dictionary(
  fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_.-]{0,5}$/),
  fc.oneof(word, fc.constantFrom('', '{{ RUNPOD_SECRET_a }}', 'two\nlines', '{"a": ["b"]}', ' blanks ', '#', 'a,b')),
  { maxKeys: 4 },
)
const ownList = (...items: string[]) => fc.subarray(items)

const template = fc
  .record({
    dockerArgs: args,
    env: env.map(listed),
    ports: ownList('80/http', '8080/http', '22/tcp', '53/udp').map(ports => ports.join(',')),
    readme: word,
    category: fc.constantFrom('CPU', 'NVIDIA', 'AMD'),
    volumeMountPath: fc.constantFrom('/workspace', '/data mit Umlaut ü'),
    startSsh: fc.boolean(),
    portsConfig: fc.constantFrom([], [{ port: '80', name: 'the page "ü"' }]),
    volumeInGb: fc.constantFrom(0, 20),
  })
  .map(fields => ({ ...fields, isServerless: fields.volumeInGb === 0 }))

const hardware = fc.oneof(
  fc.constantFrom(
    { gpuIds: 'ADA_24' },
    { gpuIds: 'AMPERE_48,ADA_24', gpuCount: 2, allowedCudaVersions: '12.4,12.6' },
    { gpuIds: 'ADA_48_PRO,-NVIDIA L40', minCudaVersion: '12.4' },
  ),
  ownList('cpu3c-1-2', 'cpu3g-2-8', 'cpu5c-4-8', 'cpu3c-8-16').map(ids => ({
    instanceIds: ids.length === 0 ? ['cpu3g-4-16'] : ids,
  })),
)

const endpoint = fc
  .record({
    hardware,
    scaling: fc.constantFrom(
      { type: 'QB', scalerType: 'QUEUE_DELAY', scalerValue: 0.5 },
      { type: 'QB', scalerType: 'REQUEST_COUNT', scalerValue: 3 },
      { type: 'LB', scalerType: 'REQUEST_COUNT', scalerValue: 1 },
    ),
    env: env.map(listed),
    locations: fc.constantFrom('', 'US', 'EU-RO-1,US-KS-2'),
    idleTimeout: fc.constantFrom(1, 60),
    workersMax: fc.constantFrom(0, 3),
    executionTimeoutMs: fc.constantFrom(5_000, 600_000),
    flashBootType: fc.constantFrom('OFF', 'FLASHBOOT', 'PRIORITY_FLASHBOOT'),
    modelReferences: ownList('owner/model', 'owner/model:main'),
    corsOrigins: ownList('https://app.example', '*'),
    priority: fc.constantFrom('low', 'normal', 'high'),
    preemptible: fc.boolean(),
    compliance: ownList('GDPR'),
    workersPFBTarget: fc.constantFrom(0, 1),
    volumes: fc.constantFrom(0, 1, 2),
  })
  .map(({ hardware, scaling, preemptible, ...fields }) => {
    // Only jobs are paused.
    const given = { ...fields, preemptible: preemptible && scaling.type === 'QB' }
    return { ...given, instanceIds: [], ...hardware, ...scaling }
  })

function listed(variables: Readonly<Record<string, string>>): { key: string; value: string }[] {
  return Object.entries(variables).map(([key, value]) => ({ key, value }))
}

/** An endpoint that uses a template. */
async function made(rig: Rig, templateId: TemplateId, { volumes, ...fields }: Shown): Promise<EndpointId> {
  const networkVolumeIds = (volumes ?? []).map((networkVolumeId: string) => ({ networkVolumeId }))
  const input = { name: `on ${templateId}`, instanceIds: ['cpu3g-2-8'], ...fields, templateId, networkVolumeIds }
  return (await rig.graphql(SAVE_ENDPOINT, { input })).saveEndpoint.id
}

async function openWorld(t: TestContext) {
  const rig = await openRig(t, { rateWindows: [] })
  const make = 'mutation ($input: CreateNetworkVolumeInput!) { createNetworkVolume(input: $input) { id } }'
  const volume = async (name: string): Promise<string> =>
    (await rig.graphql(make, { input: { name, size: 10, dataCenterId: 'EU-RO-1' } })).createNetworkVolume.id
  return { rig, volumes: [await volume('a'), await volume('b')], ...testDialects(rig) }
}

let copies = 0

test('a template that is written back stays as it is, no endpoint gets a release, and a copy is the same', async t => {
  const { rig, templates } = await openWorld(t)
  await fc.assert(
    fc.asyncProperty(template, async fields => {
      const id = await rig.template(fields)
      const kept = () => rig.store.templates.find(DEFAULT_OWNER, id)
      const user = fields.isServerless ? await made(rig, id, {}) : null
      const readVersion = async () => user && (await rig.store.endpoints.find(user))?.version
      const [before, version] = [await kept(), await readVersion()]
      for (const [name, { read, write, copy }] of Object.entries(templates)) {
        const shown = await read(id)
        await write(id, shown)
        assert.deepEqual([await kept(), await readVersion()], [before, version], `${name} keeps it`)
        const other = await read(await copy(shown, `copy ${++copies}`))
        assert.deepEqual({ ...other, name: shown.name, ...MADE }, { ...shown, ...MADE }, name)
      }
    }),
    { numRuns: RUNS },
  )
})

test('an endpoint that is written back stays as it is, without a release, and a copy is the same', async t => {
  const { rig, volumes, endpoints } = await openWorld(t)
  const serverless = template.map(fields => ({ ...fields, volumeInGb: 0, isServerless: true }))
  await fc.assert(
    fc.asyncProperty(serverless, endpoint, async (itsTemplate, fields) => {
      const templateId = await rig.template(itsTemplate)
      const id = await made(rig, templateId, { ...fields, volumes: volumes.slice(0, fields.volumes) })
      const kept = async () => [
        await rig.store.endpoints.find(id),
        await rig.store.templates.find(DEFAULT_OWNER, templateId),
      ]
      const before = await kept()
      for (const [name, { read, write, copy }] of Object.entries(endpoints)) {
        const shown = await read(id)
        await write(id, shown)
        assert.deepEqual(await kept(), before, `${name} keeps it`)
        // A new endpoint of REST version 2 has two vCPUs at least.
        if (name === 'REST v2' && shown.cpu?.some((each: Shown) => each.vcpuCount === 1)) continue
        const other = await read(await copy(shown, `copy ${++copies}`))
        assert.deepEqual({ ...other, name: shown.name, ...MADE }, { ...shown, ...MADE }, name)
      }
    }),
    { numRuns: RUNS },
  )
})

test('a worker starts with the same words after REST v1 has taken back what it showed, and for a copy', async t => {
  const rig = await openRig(t)
  const id = await rig.template({ dockerArgs: 'python -u handler.py' })
  await rig.endpoint({ templateId: id, template: undefined, workersMin: 1 })
  await rig.clock.advance(40)
  const shown = (await rig.ask('GET', `/v1/templates/${id}`)).json
  assert.deepEqual([shown.dockerEntrypoint, shown.dockerStartCmd], [[], ['python', '-u', 'handler.py']])
  await rig.ask('PATCH', `/v1/templates/${id}`, { body: { ...shown, env: { CHANGED: 'yes' } } })
  const { json: copy } = await rig.ask('POST', '/v1/templates', { body: { ...shown, name: 'copy' } })
  await rig.endpoint({ templateId: copy.id, template: undefined, workersMin: 1 })
  await rig.clock.advance(5_000)
  const started = rig.fleet.started.map(spec => parseContainerArgs(spec.args))
  assert.ok(started.length >= 3, `${started.length} workers`)
  for (const words of started) assert.deepEqual(words, { entrypoint: null, cmd: ['python', '-u', 'handler.py'] })
})

test('REST v2 takes one vCPU back from an endpoint that has it, and from no other', async t => {
  const rig = await openRig(t)
  const change = async (id: string) =>
    (await rig.ask('PATCH', `/v2/serverless/${id}`, { body: { cpu: [{ id: 'cpu3c', vcpuCount: 1 }] } })).json
  assert.deepEqual((await change(await rig.endpoint({ instanceIds: ['cpu3c-1-2'] }))).cpu[0].vcpuCount, 1)
  const { errors } = await change(await rig.endpoint({ instanceIds: ['cpu3c-2-4'] }))
  assert.deepEqual(errors, ['$.cpu[0].vcpuCount: must be at least 2'])
})

test('REST v1 also takes a command line as one text, as it was shown before', async t => {
  const rig = await openRig(t)
  const id = await rig.template({ dockerArgs: 'python -u handler.py' })
  const { json } = await rig.ask('PATCH', `/v1/templates/${id}`, { body: { dockerStartCmd: ['python -u handler.py'] } })
  assert.deepEqual(json.dockerStartCmd, ['python', '-u', 'handler.py'])
})
