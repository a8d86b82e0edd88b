/**
 * Records of GraphQL: endpoints with a template of their own, templates, secrets, registries, volumes, the account.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_OWNER, type SecretId } from '../../../src/core/ids.ts'
import { secretPlace } from '../../../src/core/secrets/seals.ts'
import { openRig, type Rig } from '../../support/rig.ts'

const SAVE = 'mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { id templateId } }'
const SAVE_TEMPLATE = 'mutation ($input: SaveTemplateInput) { saveTemplate(input: $input) { id } }'

/** The sentence with which a document is refused. */
async function refusal(rig: Rig, query: string, variables: object = {}): Promise<string> {
  const { status, json } = await rig.ask('POST', '/graphql', { body: { query, variables } })
  assert.equal(status, 200)
  assert.ok(json.errors !== undefined, 'it was not refused')
  return json.errors[0].message
}

const TEMPLATE = { imageName: 'image:1', containerDiskInGb: 5, dockerArgs: 'go', env: [{ key: 'A', value: '1' }] }
const CPU = { instanceIds: ['cpu3g-2-8'] }

test('an endpoint with a template inside gets one of its own, which goes with it', async t => {
  const rig = await openRig(t)
  const input = { name: 'one', template: { ...TEMPLATE, name: 'mine' }, ...CPU, workersMax: 0 }
  const { id, templateId } = (await rig.graphql(SAVE, { input })).saveEndpoint
  const query = `query ($id: String!) { myself { podTemplates { id } endpoint(id: $id) {
    template { id name imageName containerDiskInGb dockerArgs volumeInGb isServerless env { key value } } } } }`
  const { endpoint, podTemplates } = (await rig.graphql(query, { id })).myself
  assert.deepEqual(podTemplates, [])
  assert.deepEqual(endpoint.template, {
    id: templateId,
    name: 'mine',
    ...TEMPLATE,
    volumeInGb: 0,
    isServerless: true,
  })
  await rig.graphql(SAVE, { input: { ...input, name: 'two' } })
  await rig.graphql('mutation ($id: String!) { deleteEndpoint(id: $id) }', { id })
  assert.equal(await rig.store.templates.find(DEFAULT_OWNER, templateId), null)
  await rig.graphql(SAVE, { input })
})

test('a template inside of a change changes what the endpoint runs, and no other endpoint', async t => {
  const rig = await openRig(t)
  const shared = await rig.template({ env: [{ key: 'T', value: '1' }] })
  const one = await rig.endpoint({ templateId: shared, env: [{ key: 'E', value: '2' }] })
  const other = await rig.endpoint({ templateId: shared })
  const template = { imageName: 'image:2', env: [{ key: 'N', value: '3' }] }
  const scaling = { scalerType: 'REQUEST_COUNT', scalerValue: 3, idleTimeout: 77 }
  await rig.graphql(SAVE, { input: { id: one, name: 'changed', template, ...scaling } })
  const query = `{ myself { endpoints { id version env { key } template { imageName env { key } containerDiskInGb } } } }`
  const seen = (await rig.graphql(query)).myself.endpoints
  assert.deepEqual(
    seen.find(({ id }: { id: string }) => id === one),
    {
      id: one,
      version: 2,
      env: [{ key: 'E' }],
      template: { imageName: 'image:2', env: [{ key: 'N' }], containerDiskInGb: 1 },
    },
  )
  assert.deepEqual(
    seen.find(({ id }: { id: string }) => id === other),
    { id: other, version: 1, env: [], template: { imageName: 'image:1', env: [{ key: 'T' }], containerDiskInGb: 1 } },
  )
})

test('nothing is saved when the endpoint or its template inside is wrong, and all of it is said', async t => {
  const rig = await openRig(t)
  const template = { imageName: '', containerDiskInGb: 0, startScript: 'echo' }
  const wrong = { name: '', template, ...CPU, idleTimeout: 0, hubReleaseId: 'x', repo: { repoName: 'a' } }
  const text = await refusal(rig, SAVE, { input: wrong })
  for (const part of ['hubReleaseId is not', 'repo is not', 'startScript is not', 'name must', 'idleTimeout must']) {
    assert.ok(text.includes(part), `${part} in: ${text}`)
  }
  const later = await refusal(rig, SAVE, {
    input: { name: 'x', template: { imageName: '', containerDiskInGb: 0 }, ...CPU },
  })
  assert.equal(later, 'imageName must not be empty; containerDiskInGb must be an integer of at least 1')
  assert.deepEqual(await rig.store.endpoints.ids(), [])
})

test('every field of an endpoint is given back as it was saved', async t => {
  const rig = await openRig(t)
  const volumes = []
  for (const dataCenterId of ['EU-RO-1', 'US-KS-2']) {
    const create = `mutation { createNetworkVolume(input: { name: "v", size: 10, dataCenterId: "${dataCenterId}" }) { id } }`
    volumes.push((await rig.graphql(create)).createNetworkVolume.id)
  }
  const fields = {
    gpuIds: 'ADA_48_PRO,-NVIDIA L40',
    gpuCount: 2,
    minCudaVersion: '12.4',
    locations: 'US,EU-RO-1',
    modelReferences: ['owner/model:main'],
    compliance: ['GDPR'],
    workersPFBTarget: 1,
    flashEnvironmentId: 'f',
    type: 'LB',
    scalerType: 'REQUEST_COUNT',
    scalerValue: 7,
    executionTimeoutMs: 60_000,
  }
  const networkVolumeIds = volumes.map(networkVolumeId => ({ networkVolumeId }))
  const input = { name: 'all', templateId: await rig.template(), ...fields, networkVolumeIds }
  const save = `mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { ${Object.keys(fields).join(' ')}
    networkVolumeId networkVolumeIds { networkVolumeId dataCenterId } networkVolume { id name size dataCenterId } networkVolumes { id }
    allowedCudaVersions computeType activeBuildid idePodId workersStandby } }`
  assert.deepEqual((await rig.graphql(save, { input })).saveEndpoint, {
    ...fields,
    networkVolumeId: volumes[0],
    networkVolumeIds: [
      { networkVolumeId: volumes[0], dataCenterId: 'EU-RO-1' },
      { networkVolumeId: volumes[1], dataCenterId: 'US-KS-2' },
    ],
    networkVolume: { id: volumes[0], name: 'v', size: 10, dataCenterId: 'EU-RO-1' },
    networkVolumes: [{ id: volumes[0] }, { id: volumes[1] }],
    allowedCudaVersions: '',
    computeType: 'GPU',
    activeBuildid: null,
    idePodId: null,
    workersStandby: 0,
  })
})

test('setting one limit on CUDA versions clears the other', async t => {
  const rig = await openRig(t)
  const id = await rig.endpoint({ instanceIds: null, gpuIds: 'ADA_24', allowedCudaVersions: '12.1' })
  const cuda = async () => {
    const query = 'query ($id: String!) { myself { endpoint(id: $id) { allowedCudaVersions minCudaVersion } } }'
    return (await rig.graphql(query, { id })).myself.endpoint
  }
  await rig.change(id, { minCudaVersion: '12.4' })
  assert.deepEqual(await cuda(), { allowedCudaVersions: '', minCudaVersion: '12.4' })
  await rig.change(id, { allowedCudaVersions: '12.5,12.6' })
  assert.deepEqual(await cuda(), { allowedCudaVersions: '12.5,12.6', minCudaVersion: null })
  await rig.change(id, { gpuCount: 0 || 2, gpuIds: '', executionTimeoutMs: 0 })
  assert.deepEqual(await cuda(), { allowedCudaVersions: '12.5,12.6', minCudaVersion: null })
})

test('every field of a template is given back as it was saved, and a change keeps the rest', async t => {
  const rig = await openRig(t)
  const fields = {
    name: 'whole',
    imageName: 'image:1',
    dockerArgs: '{"cmd":["a"]}',
    containerDiskInGb: 3,
    volumeInGb: 20,
    volumeMountPath: '/data',
    ports: '80/http,22/tcp',
    portsConfig: [{ port: '80', name: 'page' }],
    env: [{ key: 'A', value: '"b"\n' }],
    readme: '# Hello',
    category: 'AMD',
    isServerless: false,
    isPublic: true,
    startSsh: false,
    startJupyter: false,
  }
  const selection = `{ name imageName dockerArgs containerDiskInGb volumeInGb volumeMountPath ports
    portsConfig { port name } env { key value } readme category isServerless isPublic startSsh startJupyter }`
  const save = `mutation ($input: SaveTemplateInput) { saveTemplate(input: $input) { id kept: readme } }`
  const { id } = (await rig.graphql(save, { input: { ...fields, advancedStart: false, startScript: '', config: {} } }))
    .saveTemplate
  const read = async () =>
    (await rig.graphql(`query ($id: String!) { podTemplate(id: $id) ${selection} }`, { id })).podTemplate
  assert.deepEqual(await read(), fields)
  await rig.graphql(save, { input: { id, startSsh: true, portsConfig: [] } })
  assert.deepEqual(await read(), { ...fields, startSsh: true, portsConfig: [] })
  assert.match(
    await refusal(rig, SAVE_TEMPLATE, { input: { id, portsConfig: [{ port: 'x', name: '' }] } }),
    /portsConfig/,
  )
  await rig.graphql(save, { input: { id, category: 'GPU' } })
  assert.equal((await read()).category, 'NVIDIA')
})

test('an endpoint is linked to another template, and gets a new version', async t => {
  const rig = await openRig(t)
  const endpointId = await rig.endpoint()
  const templateId = await rig.template()
  const update = `mutation ($input: UpdateEndpointTemplateInput) { updateEndpointTemplate(input: $input) {
    id templateId version } }`
  assert.deepEqual((await rig.graphql(update, { input: { endpointId, templateId } })).updateEndpointTemplate, {
    id: endpointId,
    templateId,
    version: 2,
  })
  for (const input of [
    { endpointId, templateId: 'none' },
    { endpointId: 'none', templateId },
  ]) {
    assert.match(await refusal(rig, update, { input }), /not found/)
  }
})

test('a secret is changed without ever being shown', async t => {
  const rig = await openRig(t)
  const fields = '{ id name description createdAt updatedAt }'
  const create = `mutation { secretCreate(input: { name: "KEY", value: "one", description: "" }) ${fields} }`
  const { secretCreate: made } = await rig.graphql(create)
  assert.deepEqual([made.description, made.updatedAt], ['', null])
  await rig.clock.advance(1_000)
  const value = `mutation ($input: SecretValueUpdateInput!) { secretValueUpdate(input: $input) ${fields} }`
  const { secretValueUpdate } = await rig.graphql(value, { input: { id: made.id, value: 'two' } })
  assert.deepEqual(secretValueUpdate, { ...made, updatedAt: new Date(rig.clock.now()).toISOString() })
  const sealed = await rig.store.secrets.sealedValues(DEFAULT_OWNER, ['KEY'])
  assert.equal(rig.vault.open(sealed.get('KEY')!, secretPlace(DEFAULT_OWNER, 'KEY')), 'two')
  const describe = `mutation ($input: SecretDescriptionUpdateInput!) { secretDescriptionUpdate(input: $input) ${fields} }`
  const described = (await rig.graphql(describe, { input: { id: made.id, description: 'for all' } }))
    .secretDescriptionUpdate
  assert.equal(described.description, 'for all')
  assert.match(await refusal(rig, value, { input: { id: 'none' as SecretId, value: 'x' } }), /secret none not found/)
  assert.match(await refusal(rig, '{ myself { secrets { value } } }'), /Cannot query field/)
})

test('a credential for a registry is saved, changed and removed, and templates lose it', async t => {
  const rig = await openRig(t)
  const save = 'mutation ($input: SaveRegistryAuthInput) { saveRegistryAuth(input: $input) { id name } }'
  const { id, name } = (await rig.graphql(save, { input: { name: 'hub', username: 'u', password: 'p' } }))
    .saveRegistryAuth
  assert.equal(name, 'hub')
  const template = await rig.template({ containerRegistryAuthId: id })
  const update = 'mutation ($input: UpdateRegistryAuthInput) { updateRegistryAuth(input: $input) { id name } }'
  assert.deepEqual((await rig.graphql(update, { input: { id, username: 'v', password: 'q' } })).updateRegistryAuth, {
    id,
    name,
  })
  assert.deepEqual((await rig.graphql('{ myself { containerRegistryCreds { id name } } }')).myself, {
    containerRegistryCreds: [{ id, name }],
  })
  const remove = 'mutation ($registryAuthId: String) { deleteRegistryAuth(registryAuthId: $registryAuthId) }'
  assert.deepEqual(await rig.graphql(remove, { registryAuthId: id }), { deleteRegistryAuth: null })
  assert.match(await refusal(rig, remove, { registryAuthId: id }), /not found/)
  assert.equal((await rig.store.templates.find(DEFAULT_OWNER, template))?.registry, null)
})

test('a network volume is made, grows and goes, but not while an endpoint has it', async t => {
  const rig = await openRig(t)
  const fields = '{ id name size dataCenterId storageClusterId storageType }'
  const create = `mutation ($input: CreateNetworkVolumeInput!) { createNetworkVolume(input: $input) ${fields} }`
  const input = { name: 'data', size: 10, dataCenterId: 'EU-RO-1' }
  const made = (await rig.graphql(create, { input })).createNetworkVolume
  assert.deepEqual(made, { id: made.id, ...input, storageClusterId: null, storageType: null })
  const update = `mutation ($input: UpdateNetworkVolumeInput!) { updateNetworkVolume(input: $input) ${fields} }`
  assert.deepEqual((await rig.graphql(update, { input: { id: made.id, size: 20 } })).updateNetworkVolume, {
    ...made,
    size: 20,
  })
  assert.match(await refusal(rig, update, { input: { id: made.id, size: 10 } }), /only grow/)
  assert.match(await refusal(rig, create, { input: { dataCenterId: 'x' } }), /name is needed; size is needed/)
  const remove = 'mutation ($input: DeleteNetworkVolumeInput!) { deleteNetworkVolume(input: $input) }'
  const endpoint = await rig.endpoint({ networkVolumeId: made.id })
  assert.match(await refusal(rig, remove, { input: { id: made.id } }), /in use by endpoint/)
  await rig.change(endpoint, { networkVolumeId: '' })
  assert.deepEqual(await rig.graphql(remove, { input: { id: made.id } }), { deleteNetworkVolume: null })
  assert.match(await refusal(rig, remove, { input: { id: made.id } }), /not found/)
})

test('the account keeps public SSH keys, and has zeros where others are billed', async t => {
  const rig = await openRig(t)
  const keys = ['ssh-ed25519 AAAA me@home', 'ssh-rsa BBBB']
  const update = 'mutation ($input: UpdateUserSettingsInput) { updateUserSettings(input: $input) { id pubKey } }'
  const saved = await rig.graphql(update, { input: { pubKey: `${keys.join('\n\n')}\n` } })
  assert.deepEqual(saved.updateUserSettings, { id: DEFAULT_OWNER, pubKey: keys.join('\n') })
  assert.match(await refusal(rig, update, { input: { pubKey: 'nonsense' } }), /^pubKey: key 1 is not of the form/)
  const { myself } = await rig.graphql(`{ myself { id pubKey email clientBalance currentSpendPerHr spendLimit
    notifyPodsStale notifyPodsGeneral notifyLowBalance endpoints { id } networkVolumes { id } secrets { id }
    podTemplates { id } containerRegistryCreds { id } pods { id } serverlessDiscount { type } flashApps { id } } }`)
  assert.deepEqual(myself, {
    id: DEFAULT_OWNER,
    pubKey: keys.join('\n'),
    email: null,
    clientBalance: 0,
    currentSpendPerHr: 0,
    spendLimit: 0,
    notifyPodsStale: false,
    notifyPodsGeneral: false,
    notifyLowBalance: false,
    endpoints: [],
    networkVolumes: [],
    secrets: [],
    podTemplates: [],
    containerRegistryCreds: [],
    pods: [],
    serverlessDiscount: null,
    flashApps: [],
  })
})
