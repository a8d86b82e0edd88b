/**
 * The documents that RunPod's other tools send, with the variables and bodies that they send them with: each makes a
 * template and an endpoint, runs a job, changes what it runs and deletes it all again.
 */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { ask, runJob } from '../support/client.ts'
import { root, type Server, startServer } from '../support/server.ts'
import { imageFor } from '../support/workers.ts'

const folder = `${root}/examples/hello-node`
const image = await imageFor(folder)

let server: Server

before(async () => {
  server = await startServer()
})

/** Sends a body as a tool does and gives its data, the way tools look: 200, and no `errors` at all. */
// biome-ignore lint/suspicious/noExplicitAny: answers are compared with what the test expects
async function send(body: object, headers: Record<string, string> = {}): Promise<any> {
  const answer = await ask(server, '/graphql', { body, headers })
  assert.equal(answer.status, 200, answer.text)
  assert.equal('errors' in answer.json, false, answer.text)
  return answer.json.data
}

/** The first message of an answer with errors. */
async function refused(body: object): Promise<string> {
  const answer = await ask(server, '/graphql', { body })
  assert.equal(answer.status, 200, answer.text)
  return answer.json.errors[0].message
}

const DELETE_ENDPOINT = 'mutation deleteEndpoint($id: String!) { deleteEndpoint(id: $id) }'

/** Runs a job, and returns the answer. */
async function greeting(endpoint: string, name: string): Promise<string> {
  const { status, output, error } = await runJob(server, endpoint, { name })
  assert.equal(status, 'COMPLETED', error ?? '')
  return output.message
}

describe('runpodctl', () => {
  const agent = { 'user-agent': 'runpod-cli/2.7.2 (linux; amd64)' }
  const ctl = (query: string, variables: object = {}) => send({ query, variables }, agent)

  const CREATE_TEMPLATE = `
    mutation saveTemplate($input: SaveTemplateInput) {
      saveTemplate(input: $input) {
        advancedStart containerDiskInGb dockerArgs env { key value } id imageName name ports readme startJupyter
        startScript startSsh volumeInGb volumeMountPath
      }
    }`
  const SAVE_ENDPOINT = `
    mutation SaveEndpoint($input: EndpointInput!) {
      saveEndpoint(input: $input) {
        id name templateId gpuIds instanceIds computeType networkVolumeId networkVolumeIds { networkVolumeId dataCenterId }
        locations idleTimeout scalerType scalerValue workersMin workersMax gpuCount minCudaVersion executionTimeoutMs
        flashBootType modelReferences
      }
    }`
  const READ_ENDPOINT = `
    query ($id: String!) {
      myself {
        endpoint(id: $id) {
          id name templateId gpuIds gpuCount instanceIds workersMin workersMax locations networkVolumeId
          networkVolumeIds { networkVolumeId } idleTimeout scalerType scalerValue executionTimeoutMs minCudaVersion
          flashBootType
        }
      }
    }`

  test('makes, runs, changes and deletes an endpoint', async () => {
    const template = {
      name: 'ctl',
      imageName: image,
      dockerArgs: '',
      containerDiskInGb: 20,
      volumeInGb: 0,
      volumeMountPath: '',
      ports: '8888/http',
      env: [{ key: 'A', value: '1' }],
      isServerless: true,
      startSsh: true,
      isPublic: false,
      readme: '',
    }
    const { saveTemplate } = await ctl(CREATE_TEMPLATE, { input: template })
    assert.equal(saveTemplate.startScript, '')
    const input = {
      name: 'ctl',
      templateId: saveTemplate.id,
      gpuIds: 'ADA_48_PRO,-NVIDIA L40',
      gpuCount: 1,
      workersMax: 1,
    }
    const { saveEndpoint } = await ctl(SAVE_ENDPOINT, { input })
    const { id } = saveEndpoint
    assert.equal(await greeting(id, 'Ada'), 'Hello, Ada!')
    const { endpoint } = (await ctl(READ_ENDPOINT, { id })).myself
    assert.deepEqual(endpoint, {
      id,
      name: 'ctl',
      templateId: saveTemplate.id,
      gpuIds: 'ADA_48_PRO,-NVIDIA L40',
      gpuCount: 1,
      instanceIds: [],
      workersMin: 0,
      workersMax: 1,
      locations: '',
      networkVolumeId: null,
      networkVolumeIds: [],
      idleTimeout: 10,
      scalerType: 'QUEUE_DELAY',
      scalerValue: 4,
      executionTimeoutMs: 600_000,
      minCudaVersion: null,
      flashBootType: 'OFF',
    })
    // It sends all that it has read back, with its own zero values.
    const models = {
      ...endpoint,
      networkVolumeId: '',
      minCudaVersion: '',
      locations: '',
      instanceIds: null,
      modelReferences: ['https://huggingface.co/owner/model:main', 'owner/model'],
    }
    const changed = (await ctl(SAVE_ENDPOINT, { input: models })).saveEndpoint
    assert.deepEqual([changed.modelReferences, changed.gpuIds], [models.modelReferences, endpoint.gpuIds])
    const other = (await ctl(CREATE_TEMPLATE, { input: { ...template, name: 'ctl 2' } })).saveTemplate.id
    const update = `
      mutation Mutation($input: UpdateEndpointTemplateInput) {
        updateEndpointTemplate(input: $input) { id templateId }
      }`
    const moved = await ctl(update, { input: { endpointId: id, templateId: other } })
    assert.deepEqual(moved.updateEndpointTemplate, { id, templateId: other })
    assert.equal(await greeting(id, 'Grace'), 'Hello, Grace!')
    await ctl(SAVE_ENDPOINT, { input: { id, name: 'ctl', workersMin: 0, workersMax: 0 } })
    assert.deepEqual(await ctl(DELETE_ENDPOINT, { id }), { deleteEndpoint: null })
    assert.deepEqual((await ctl(READ_ENDPOINT, { id })).myself.endpoint, null)
  })

  test('makes an endpoint with a template inside, as it does where an image is given', async () => {
    const template = { name: 'inside__template', imageName: image, containerDiskInGb: 10, dockerArgs: '', env: [] }
    const input = { name: 'inside', template, instanceIds: ['cpu3g-2-8'], workersMin: 0, workersMax: 1, idleTimeout: 5 }
    const { id, computeType, instanceIds } = (await ctl(SAVE_ENDPOINT, { input })).saveEndpoint
    assert.deepEqual([computeType, instanceIds], ['CPU', ['cpu3g-2-8']])
    assert.equal(await greeting(id, 'Ada'), 'Hello, Ada!')
    const env = await ctl('query ($id: String!) { myself { endpoint(id: $id) { env { key value } } } }', { id })
    assert.deepEqual(env.myself.endpoint.env, [])
  })

  test('labels the ports of a template by sending all of it back', async () => {
    const fields = `id name imageName dockerArgs env { key value } ports volumeMountPath volumeInGb containerDiskInGb
      containerRegistryAuthId startJupyter startSsh startScript isServerless isPublic readme advancedStart category`
    const input = { name: 'labelled', imageName: image, containerDiskInGb: 5, volumeInGb: 0, ports: '80/http,22/tcp' }
    await ctl(CREATE_TEMPLATE, { input })
    const { podTemplates } = (await ctl(`query GetTemplateForPortLabels { myself { podTemplates { ${fields} } } }`))
      .myself
    const state = podTemplates.find(({ name }: { name: string }) => name === 'labelled')
    const { containerRegistryAuthId: _, startScript: __, ...rest } = state
    const portsConfig = [{ port: '80', name: 'page' }]
    const update = `
      mutation UpdateTemplatePortLabels($input: SaveTemplateInput) {
        saveTemplate(input: $input) { id }
      }`
    await ctl(update, { input: { ...rest, containerRegistryAuthId: '', portsConfig } })
    const read =
      'query GetTemplate($id: String!) { podTemplate(id: $id) { name portsConfig { port name } isRunpod ports } }'
    assert.deepEqual((await ctl(read, { id: state.id })).podTemplate, {
      name: 'labelled',
      portsConfig,
      isRunpod: false,
      ports: '80/http,22/tcp',
    })
  })

  test('lists hardware, templates, pods and volumes, and shows the account', async () => {
    const { gpuTypes } = await ctl(
      'query { gpuTypes { id displayName memoryInGb secureCloud communityCloud securePrice communityPrice } }',
    )
    assert.ok(gpuTypes.length > 40)
    const cloud = await ctl(
      `query LowestPrice($input: GpuLowestPriceInput!) { gpuTypes { lowestPrice(input: $input) {
        gpuName gpuTypeId minimumBidPrice uninterruptablePrice minMemory minVcpu } memoryInGb } }`,
      { input: { gpuCount: 1, secureCloud: null } },
    )
    assert.equal(cloud.gpuTypes.length, gpuTypes.length)
    const { dataCenters } = await ctl(
      'query { dataCenters { id name location gpuAvailability { gpuTypeId displayName stockStatus } } }',
    )
    assert.ok(dataCenters.length > 20)
    const { serverlessGpuPools } = await ctl('query { serverlessGpuPools { id gpuTypeIds } }')
    assert.equal(serverlessGpuPools.length, 11)
    const templates = `query PodTemplates($input: PodTemplateInput) { podTemplates(input: $input) {
      id name imageName isServerless isPublic isRunpod category containerDiskInGb volumeInGb volumeMountPath } }`
    assert.deepEqual((await ctl(templates, { input: { isRunpod: true } })).podTemplates, [])
    const { myself } = await ctl(`query { myself { id email clientBalance currentSpendPerHr spendLimit notifyPodsStale
      notifyPodsGeneral notifyLowBalance networkVolumes { dataCenterId id name size } containerRegistryCreds { id name }
      pods { id containerDiskInGb costPerHr desiredStatus lastStatusChange uptimeSeconds dockerArgs env gpuCount imageName
        memoryInGb name podType ports vcpuCount volumeInGb volumeMountPath machine { gpuDisplayName location }
        runtime { ports { ip isIpPublic privatePort publicPort type } } } } }`)
    assert.deepEqual([myself.clientBalance, myself.pods, myself.networkVolumes], [0, [], []])
  })

  test('keeps SSH keys', async () => {
    const key = 'ssh-ed25519 AAAAC3Nz me@home'
    const update = 'mutation Mutation($input: UpdateUserSettingsInput) { updateUserSettings(input: $input) { id } }'
    await ctl(update, { input: { pubKey: key } })
    assert.equal((await ctl('query myself { myself { id pubKey } }')).myself.pubKey, key)
  })
})

describe('Pulumi', () => {
  const pulumi = (operationName: string, query: string, variables: object = {}) =>
    send({ query, variables, operationName })

  const ENDPOINT = `id name templateId gpuIds workersMin workersMax idleTimeout locations scalerType scalerValue
    networkVolumeId gpuCount instanceIds workersPFBTarget allowedCudaVersions minCudaVersion executionTimeoutMs
    flashBootType type modelReferences`
  const SAVE_ENDPOINT = `mutation SaveEndpoint ($input: EndpointInput!) { saveEndpoint(input: $input) { ${ENDPOINT} } }`
  const TEMPLATE = `id name imageName dockerArgs env { key value } ports volumeMountPath volumeInGb containerDiskInGb
    startJupyter startSsh startScript isServerless isPublic containerRegistryAuthId readme advancedStart category`
  const SAVE_TEMPLATE = `mutation SaveTemplate ($input: SaveTemplateInput) { saveTemplate(input: $input) { ${TEMPLATE} } }`
  const DELETE_TEMPLATE =
    'mutation DeleteTemplate ($templateName: String) { deleteTemplate(templateName: $templateName) }'

  test('makes, runs, changes and deletes an endpoint', async () => {
    // A generated client sends null for every field that has no value.
    const nothing = { id: null, ports: null, portsConfig: null, config: null, category: null, readme: null }
    const input = {
      ...nothing,
      name: 'pulumi',
      imageName: image,
      dockerArgs: '',
      env: [],
      containerDiskInGb: 5,
      volumeInGb: 0,
      isServerless: true,
      containerRegistryAuthId: null,
      startScript: null,
      advancedStart: null,
    }
    const { saveTemplate } = await pulumi('SaveTemplate', SAVE_TEMPLATE, { input })
    const endpoint = {
      id: null,
      name: 'pulumi',
      templateId: saveTemplate.id,
      template: null,
      gpuIds: null,
      repo: null,
      instanceIds: ['cpu3g-2-8'],
      workersMin: 0,
      workersMax: 1,
      idleTimeout: 5,
      scalerValue: 4,
      gpuCount: null,
      hubReleaseId: null,
      modelName: null,
      cloudStorageConfig: null,
      bindEndpoint: true,
      networkVolumeIds: null,
      env: null,
      type: null,
      modelReferences: null,
      flashBootType: 'FLASHBOOT',
      executionTimeoutMs: 60_000,
    }
    const { saveEndpoint } = await pulumi('SaveEndpoint', SAVE_ENDPOINT, { input: endpoint })
    assert.equal(await greeting(saveEndpoint.id, 'Ada'), 'Hello, Ada!')
    const listed = (await pulumi('GetMyEndpoints', `query GetMyEndpoints { myself { endpoints { ${ENDPOINT} } } }`))
      .myself
    assert.deepEqual(
      listed.endpoints.find(({ id }: { id: string }) => id === saveEndpoint.id),
      saveEndpoint,
    )
    const { id } = saveEndpoint
    const change = { ...endpoint, id, workersMax: 0, scalerType: 'REQUEST_COUNT', scalerValue: 2 }
    const changed = (await pulumi('SaveEndpoint', SAVE_ENDPOINT, { input: change })).saveEndpoint
    assert.deepEqual(changed, { ...saveEndpoint, workersMax: 0, scalerType: 'REQUEST_COUNT', scalerValue: 2 })
    const templateName = 'pulumi'
    assert.match(await refused({ query: DELETE_TEMPLATE, variables: { templateName } }), /in use/)
    assert.deepEqual(await pulumi('deleteEndpoint', DELETE_ENDPOINT, { id }), { deleteEndpoint: null })
    assert.match(await refused({ query: DELETE_ENDPOINT, variables: { id } }), /not found/)
    const update = { ...input, id: saveTemplate.id, env: [{ key: 'B', value: '2' }] }
    const saved = (await pulumi('SaveTemplate', SAVE_TEMPLATE, { input: update })).saveTemplate
    assert.deepEqual(saved, { ...saveTemplate, env: [{ key: 'B', value: '2' }] })
    assert.deepEqual(await pulumi('DeleteTemplate', DELETE_TEMPLATE, { templateName }), { deleteTemplate: null })
    const { myself } = await pulumi(
      'GetMyTemplates',
      `query GetMyTemplates { myself { podTemplates { ${TEMPLATE} } } }`,
    )
    assert.ok(!myself.podTemplates.some((template: { id: string }) => template.id === saveTemplate.id))
  })

  test('deletes an endpoint that it never sets to 0, once its account lets it', async () => {
    const template = { name: 'running__template', imageName: image, containerDiskInGb: 5, dockerArgs: '', env: [] }
    const input = { name: 'running', template, instanceIds: ['cpu3g-2-8'], workersMin: 0, workersMax: 1 }
    const { id } = (await pulumi('SaveEndpoint', SAVE_ENDPOINT, { input })).saveEndpoint
    const said = await refused({ query: DELETE_ENDPOINT, variables: { id } })
    assert.match(said, /deleteRunningEndpoints of the account or --delete-running-endpoints of the server$/)
    const choose = (deleteRunningEndpoints: boolean) =>
      ask(server, '/v2/account/accounts/own', { method: 'PATCH', body: { deleteRunningEndpoints } })
    assert.equal((await choose(true)).json.deleteRunningEndpoints, true)
    assert.deepEqual(await pulumi('deleteEndpoint', DELETE_ENDPOINT, { id }), { deleteEndpoint: null })
    assert.equal((await choose(false)).json.deleteRunningEndpoints, false)
  })

  test('manages secrets, volumes and credentials for registries', async () => {
    const SECRET = '{ id name description createdAt updatedAt }'
    const create = `mutation SecretCreate ($input: SecretCreateInput!) { secretCreate(input: $input) ${SECRET} }`
    const input = { name: 'PULUMI', value: 'one', description: null }
    const { id } = (await pulumi('SecretCreate', create, { input })).secretCreate
    const value = `mutation SecretValueUpdate ($input: SecretValueUpdateInput!) { secretValueUpdate(input: $input) ${SECRET} }`
    assert.ok((await pulumi('SecretValueUpdate', value, { input: { id, value: 'two' } })).secretValueUpdate.updatedAt)
    const describe = `mutation SecretDescriptionUpdate ($input: SecretDescriptionUpdateInput!) {
      secretDescriptionUpdate(input: $input) ${SECRET} }`
    await pulumi('SecretDescriptionUpdate', describe, { input: { id, description: 'mine' } })
    const { secrets } = (await pulumi('GetMySecrets', `query GetMySecrets { myself { secrets ${SECRET} } }`)).myself
    assert.deepEqual([secrets.length, secrets[0].description], [1, 'mine'])
    const remove = 'mutation SecretDelete ($id: ID!) { secretDelete(id: $id) }'
    assert.deepEqual(await pulumi('SecretDelete', remove, { id }), { secretDelete: null })

    const VOLUME = '{ id name size dataCenterId storageClusterId storageType }'
    const make = `mutation CreateNetworkVolume ($input: CreateNetworkVolumeInput!) { createNetworkVolume(input: $input) ${VOLUME} }`
    const volume = { name: 'data', size: 10, dataCenterId: 'EU-RO-1', userId: null, isNextGenStorage: null }
    const made = (await pulumi('CreateNetworkVolume', make, { input: volume })).createNetworkVolume
    const grow = `mutation UpdateNetworkVolume ($input: UpdateNetworkVolumeInput!) { updateNetworkVolume(input: $input) ${VOLUME} }`
    const grown = await pulumi('UpdateNetworkVolume', grow, { input: { id: made.id, name: null, size: 20 } })
    assert.deepEqual(grown.updateNetworkVolume, { ...made, size: 20 })
    const drop =
      'mutation DeleteNetworkVolume ($input: DeleteNetworkVolumeInput!) { deleteNetworkVolume(input: $input) }'
    const dropped = await pulumi('DeleteNetworkVolume', drop, { input: { id: made.id } })
    assert.deepEqual(dropped, { deleteNetworkVolume: null })

    const save =
      'mutation SaveRegistryAuth ($input: SaveRegistryAuthInput) { saveRegistryAuth(input: $input) { id name } }'
    const registry = { name: 'hub', username: 'u', password: 'p' }
    const { saveRegistryAuth } = await pulumi('SaveRegistryAuth', save, { input: registry })
    const forget =
      'mutation DeleteRegistryAuth ($registryAuthId: String) { deleteRegistryAuth(registryAuthId: $registryAuthId) }'
    const forgotten = await pulumi('DeleteRegistryAuth', forget, { registryAuthId: saveRegistryAuth.id })
    assert.deepEqual(forgotten, { deleteRegistryAuth: null })
  })

  test('asks for the catalogue', async () => {
    const flavors = await pulumi(
      'GetCpuFlavors',
      `query GetCpuFlavors ($input: CpuFlavorInput) { cpuFlavors(input: $input) { id groupId groupName displayName minVcpu
        maxVcpu vcpuBurstable ramMultiplier diskLimitPerVcpu } }`,
      { input: null },
    )
    assert.equal(flavors.cpuFlavors.length, 4)
    await pulumi(
      'GetDataCenters',
      `query GetDataCenters { dataCenters { id name location listed storageSupport globalNetwork region compliance
        gpuAvailability { gpuTypeId gpuTypeDisplayName available stockStatus } } }`,
    )
    const { gpuTypes } = await pulumi(
      'GetGpuTypes',
      `query GetGpuTypes ($input: GpuTypeFilter) { gpuTypes(input: $input) { id displayName memoryInGb secureCloud
        communityCloud securePrice communityPrice maxGpuCount lowestPrice(input: {gpuCount: 1}) { minimumBidPrice
        uninterruptablePrice rentedCount totalCount stockStatus } } }`,
      { input: { id: 'NVIDIA L4', ids: null, cluster: null } },
    )
    assert.deepEqual([gpuTypes.length, gpuTypes[0].displayName], [1, 'L4'])
  })
})

describe('flash', () => {
  const flash = (query: string, variables: object = {}) => send({ query, variables })

  const SAVE_ENDPOINT = `
    mutation saveEndpoint($input: EndpointInput!) {
      saveEndpoint(input: $input) {
        aiKey gpuIds id idleTimeout locations name networkVolumeId networkVolumeIds { networkVolumeId dataCenterId }
        flashEnvironmentId scalerType scalerValue templateId type userId version workersMax workersMin workersStandby
        workersPFBTarget gpuCount allowedCudaVersions minCudaVersion executionTimeoutMs instanceIds activeBuildid idePodId
        flashBootType
      }
    }`
  const TEMPLATE_FIELDS = 'id containerDiskInGb dockerArgs env { key value } imageName name readme'

  test('makes, runs, changes and deletes an endpoint', async () => {
    const template = {
      advancedStart: false,
      config: {},
      containerDiskInGb: 64,
      containerRegistryAuthId: '',
      dockerArgs: '',
      env: [{ key: 'A', value: '1' }],
      imageName: image,
      name: 'worker__abc',
      ports: '',
      startScript: '',
    }
    const input = {
      name: 'flash worker',
      template,
      type: 'QB',
      instanceIds: ['cpu3g-1-4'],
      executionTimeoutMs: 0,
      flashBootType: 'FLASHBOOT',
      idleTimeout: 60,
      locations: '',
      scalerType: 'QUEUE_DELAY',
      scalerValue: 4,
      workersMin: 0,
      workersMax: 1,
      workersPFBTarget: 0,
      gpuCount: 1,
      minCudaVersion: '',
    }
    const { saveEndpoint } = await flash(SAVE_ENDPOINT, { input })
    const { id, templateId, aiKey } = saveEndpoint
    assert.equal(await greeting(id, 'Ada'), 'Hello, Ada!')
    const own = { authorization: `Bearer ${aiKey}` }
    assert.equal((await ask(server, `/v2/${id}/health`, { headers: own })).status, 200)
    const get = `query getTemplate($id: String!) { podTemplate(id: $id) { ${TEMPLATE_FIELDS} } }`
    const { podTemplate } = await flash(get, { id: templateId })
    assert.deepEqual([podTemplate.name, podTemplate.env], ['worker__abc', template.env])
    const save = `mutation saveTemplate($input: SaveTemplateInput) { saveTemplate(input: $input) { ${TEMPLATE_FIELDS} } }`
    const change = { ...template, id: templateId, volumeInGb: 0, readme: '', env: [{ key: 'A', value: '2' }] }
    assert.deepEqual((await flash(save, { input: change })).saveTemplate, { ...podTemplate, env: change.env })
    assert.equal(await greeting(id, 'Grace'), 'Hello, Grace!')
    const exists = 'query getEndpoint($id: String!) { myself { endpoint(id: $id) { id } } }'
    assert.deepEqual((await flash(exists, { id })).myself.endpoint, { id })
    const { template: _, ...again } = input
    assert.equal((await flash(SAVE_ENDPOINT, { input: { ...again, id, workersMax: 0 } })).saveEndpoint.id, id)
    assert.deepEqual(await flash(DELETE_ENDPOINT, { id }), { deleteEndpoint: null })
    assert.deepEqual((await flash(exists, { id })).myself.endpoint, null)
    assert.equal((await flash(get, { id: templateId })).podTemplate, null, 'its template went with it')
    const anew = (await flash(SAVE_ENDPOINT, { input: { ...input, workersMax: 0 } })).saveEndpoint
    await flash(DELETE_ENDPOINT, { id: anew.id })
  })

  test('asks for the stock of GPUs and CPUs', async () => {
    const gpu = `
      query ServerlessGpuTypes($lowestPriceInput: GpuLowestPriceInput, $gpuTypesInput: GpuTypeFilter) {
        gpuTypes(input: $gpuTypesInput) { lowestPrice(input: $lowestPriceInput) { stockStatus } }
      }`
    const lowestPriceInput = {
      dataCenterId: null,
      gpuCount: 1,
      secureCloud: true,
      includeAiApi: true,
      allowedCudaVersions: [],
      compliance: [],
    }
    const { gpuTypes } = await flash(gpu, { gpuTypesInput: { ids: ['NVIDIA L4'] }, lowestPriceInput })
    assert.equal(gpuTypes.length, 1)
    const cpu = `
      query SecureCpuTypes($cpuFlavorInput: CpuFlavorInput, $specificsInput: SpecificsInput) {
        cpuFlavors(input: $cpuFlavorInput) { specifics(input: $specificsInput) { stockStatus } }
      }`
    const specificsInput = { dataCenterId: 'EU-RO-1', instanceId: 'cpu3g-1-4', isSls: true }
    const { cpuFlavors } = await flash(cpu, { cpuFlavorInput: { id: 'cpu3g', isSls: true }, specificsInput })
    assert.match(cpuFlavors[0].specifics.stockStatus, /^(Low|Medium|High)$/)
  })

  test('is refused a pod with a message that names the missing feature', async () => {
    const query =
      'mutation deployCpuPod($input: deployCpuPodInput!) { deployCpuPod(input: $input) { id desiredStatus } }'
    const variables = { input: { instanceId: 'cpu3c-2-4', terminateAfter: 'x', env: [{ key: 'A', value: 'b' }] } }
    assert.match(await refused({ query, variables }), /^not supported: Runyard runs serverless endpoints/)
  })

  test('makes, finds, lists and deletes an app, and reads what it lacks', async () => {
    const create = 'mutation createFlashApp($input: CreateFlashAppInput!) { createFlashApp(input: $input) { id name } }'
    const { createFlashApp: app } = await flash(create, { input: { name: 'a' } })
    const find = `query getFlashAppByName($flashAppName: String!) { flashAppByName(flashAppName: $flashAppName) { id name
      flashEnvironments { id name state activeBuildId createdAt } flashBuilds { id objectKey createdAt } } }`
    const found = { ...app, flashEnvironments: [], flashBuilds: [] }
    assert.deepEqual((await flash(find, { flashAppName: 'a' })).flashAppByName, found)
    const list = `query getFlashApps { myself { flashApps { id name flashEnvironments { id name state createdAt
      activeBuildId } flashBuilds { id createdAt } } } }`
    assert.deepEqual((await flash(list)).myself, { flashApps: [found] })
    const deploy = `mutation DeployBuildToEnvironment($input: DeployBuildToEnvironmentInput!) {
      deployBuildToEnvironment(input: $input) { id name activeArtifact { objectKey downloadUrl expiresAt } } }`
    const variables = { input: { flashEnvironmentId: 'a', flashBuildId: 'b' } }
    assert.equal(await refused({ query: deploy, variables }), 'build b not found')
    const remove = 'mutation deleteFlashApp($flashAppId: String!) { deleteFlashApp(flashAppId: $flashAppId) }'
    await flash(remove, { flashAppId: app.id })
    assert.deepEqual((await flash(list)).myself, { flashApps: [] })
    assert.match(await refused({ query: remove, variables: { flashAppId: app.id } }), /not found/)
  })
})

describe('Terraform', () => {
  test('reads a pod that there is not', async () => {
    const query = `query GetPod($podId: String!) { pod(input: { podId: $podId }) { id name desiredStatus imageName machineId
      machineType gpuCount costPerHr memoryInGb volumeInGb volumeMountPath volumeKey ports lastStatusChange dockerArgs env
      templateId containerDiskInGb machine { gpuType { id } } } }`
    assert.deepEqual(await send({ query, variables: { podId: 'a' } }), { pod: null })
  })
})
