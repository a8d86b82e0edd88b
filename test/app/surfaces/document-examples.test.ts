/** Each operation of the OpenAPI document has an example, and the server answers it as the document says. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { JOB_OPERATIONS } from '../../../src/api/jobs/operations.ts'
import { JOB_ROUTES } from '../../../src/api/jobs/routes.ts'
import { BY_POST, type OperationExample } from '../../../src/api/rest/openapi.ts'
import { EXAMPLES } from '../../../src/api/rest/routes.ts'
import type { Caller } from '../../../src/core/accounts/permission.ts'
import { DEFAULT_OWNER } from '../../../src/core/ids.ts'
import type { HostInspection } from '../../../src/ports/host-inspection.ts'
import { Tasks } from '../../../src/services/endpoints/tasks.ts'
import { activate, createApp, createEnvironment, makeBuild, saveFunction } from '../../support/apps.ts'
import { MemoryArtifacts } from '../../support/memory-artifacts.ts'
import { recordsExamples, writeExamples } from '../../support/recorded-examples.ts'
import { openRig, type Rig } from '../../support/rig.ts'
import { servicesOf } from '../../support/services.ts'

/** Items of a list that an example shows. */
const SHOWN_ITEMS = 2
const INSPECTION: HostInspection = {
  processIsolation: 'Workers run in cages, in networks of their own that lead to the outside',
  engine: async () => null,
  diagnose: async () => [
    { check: 'memory', state: 'ok', message: '40960 MiB of 65536 MiB are free', action: null },
    {
      check: 'engine',
      state: 'warn',
      message: 'no container engine was found; only folders can be run',
      action: 'install Docker or Podman, or set DOCKER_HOST',
    },
  ],
}

/** Operations with a response that is no example: the document itself. */
const WITHOUT_EXAMPLE = ['getOpenApi', 'getDocs']
const OPERATOR = { owner: DEFAULT_OWNER, keyId: 'k', operator: true, scope: { type: 'all' } } as unknown as Caller
/** Operations that add jobs, which are in the history of jobs and not in the audit log. */
const SUBMISSIONS = ['runJob', 'runJobSync', 'replayJob', 'addBatchRequests', 'callOpenAi']

interface Call {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number | boolean>>
  readonly body?: unknown
  /** Action during the wait for the response, if the response waits for one. */
  readonly meanwhile?: () => Promise<unknown>
}

/** Sends requests by the ids of their operations, and keeps the first of each with its response. */
class Player {
  readonly played: Record<string, OperationExample> = {}
  readonly #rig: Rig
  readonly #operations = new Map<string, { method: string; path: string; isStream: boolean }>()

  // biome-ignore lint/suspicious/noExplicitAny: the document is read as it is served.
  constructor(rig: Rig, document: any) {
    this.#rig = rig
    for (const [path, methods] of Object.entries<Record<string, { operationId: string; responses: object }>>(
      document.paths,
    )) {
      for (const [method, { operationId, responses }] of Object.entries(methods)) {
        const isStream = JSON.stringify(responses).includes('text/event-stream')
        this.#operations.set(operationId, { method: method.toUpperCase(), path, isStream })
      }
    }
  }

  /** The operations that change something. */
  get changing(): string[] {
    const all = [...this.#operations].filter(([id, { method }]) => method !== 'GET' && !id.endsWith(BY_POST))
    return all.map(([id]) => id)
  }

  get operationIds(): string[] {
    return [...this.#operations.keys()]
  }

  // biome-ignore lint/suspicious/noExplicitAny: the scenario reads whatever shape it expects.
  async call(operationId: string, { params = {}, query = {}, body, meanwhile }: Call = {}): Promise<any> {
    const operation = this.#operations.get(operationId)
    assert.ok(operation !== undefined, `there is no operation ${operationId}`)
    const { method, isStream } = operation
    const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => params[name]!)
    const search = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)])).toString()
    const url = search === '' ? path : `${path}?${search}`
    const asking = body === undefined ? {} : { body }
    const answer = isStream ? await this.#stream(url, meanwhile) : await this.#ask(method, url, asking, meanwhile)
    assert.ok(answer.status < 300, `${operationId} is ${answer.status}: ${JSON.stringify(answer.response)}`)
    this.played[operationId] ??= {
      ...(Object.keys(params).length > 0 ? { params } : {}),
      ...(search === '' ? {} : { query }),
      ...(body === undefined ? {} : { body }),
      status: answer.status,
      ...(answer.response === undefined ? {} : { response: shortened(answer.response) }),
    }
    return answer.response
  }

  async #ask(method: string, url: string, asking: object, meanwhile: Call['meanwhile']) {
    const response = this.#rig.ask(method, url, asking)
    await meanwhile?.()
    const { status, text, json } = await response
    return { status, response: text === '' ? undefined : json }
  }

  /** The first events of a stream. */
  async #stream(url: string, meanwhile: Call['meanwhile']) {
    const answer = await this.#rig.open(url)
    const reader = answer.body!.getReader()
    const parts: string[] = []
    const reading = (async () => {
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        parts.push(new TextDecoder().decode(part.value))
      }
    })()
    await meanwhile?.()
    await this.#rig.clock.settle()
    await reader.cancel()
    await reading
    return { status: answer.status, response: parts.join('') }
  }
}

function shortened(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, SHOWN_ITEMS).map(shortened)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shortened(member)]))
}

async function resources({ call }: { call: Player['call'] }, rig: Rig): Promise<void> {
  await call('createSecret', { body: { name: 'hugging-face', value: 'hf_example', description: 'to download models' } })
  const [secret] = (await call('listSecrets')).secrets
  const ofSecret = { params: { id: secret.id } }
  await call('getSecret', ofSecret)
  await call('updateSecret', { ...ofSecret, body: { value: 'hf_another' } })
  await call('deleteSecret', ofSecret)
  const registry = await call('createRegistry', {
    body: { name: 'ours', username: 'robot', password: 'registry-token' },
  })
  await call('listRegistries')
  await call('getRegistry', { params: { id: registry.id } })
  await call('deleteRegistry', { params: { id: registry.id } })
  const receiver = await call('createAlertReceiver', {
    body: { name: 'ops', kind: 'slack', address: 'https://hooks.slack.example/services/T1/B1/key' },
  })
  await call('listAlertReceivers')
  await call('getAlertReceiver', { params: { id: receiver.id } })
  await call('testAlertReceiver', { body: { receiver: receiver.id } })
  await call('listAlerts')
  await call('deleteAlertReceiver', { params: { id: receiver.id } })
  const volume = await call('createNetworkVolume', { body: { name: 'models', size: 100, dataCenter: 'EU-RO-1' } })
  await call('listNetworkVolumes')
  await call('getNetworkVolume', { params: { id: volume.id } })
  await call('updateNetworkVolume', { params: { id: volume.id }, body: { size: 200 } })
  await call('deleteNetworkVolume', { params: { id: volume.id } })
  const template = await call('createTemplate', {
    body: { name: 'whisper', image: 'example/whisper:1', serverless: true, env: { MODEL: 'base' } },
  })
  await call('listTemplates')
  await call('getTemplate', { params: { id: template.id } })
  await call('updateTemplate', { params: { id: template.id }, body: { env: { MODEL: 'large' } } })
  await call('listCatalogTemplates')
  await call('deleteTemplate', { params: { id: template.id } })
  await call('getMachine')
  await call('getMachineDiagnosis')
  await call('listGpuTypes')
  await call('getGpuType', { params: { id: 'NVIDIA GeForce RTX 4090' } })
  await call('listCpuTypes')
  await call('getCpuType', { params: { id: 'cpu3g' } })
  await call('listDataCenters')
  await call('getDataCenter', { params: { id: 'EU-RO-1' } })
  await rig.clock.settle()
}

async function accounts({ call }: { call: Player['call'] }): Promise<void> {
  const account = await call('createAccount', { body: { name: 'research' } })
  await call('listAccounts')
  await call('getAccount', { params: { id: account.id } })
  await call('updateAccount', { params: { id: account.id }, body: { limits: { queuedJobs: 1_000 } } })
  await call('getQuotas', { params: { id: account.id } })
  const scope = { type: 'restricted', management: 'none', jobs: 'write' }
  const key = await call('createKey', { body: { name: 'the app', scope } })
  await call('listKeys')
  await call('getKey', { params: { id: key.id } })
  await call('rotateKey', { params: { id: key.id }, body: { overlapSeconds: 3_600 } })
  await call('updateKey', { params: { id: key.id }, body: { disabled: true } })
  await call('deleteKey', { params: { id: key.id } })
  await call('updateSshKeys', { body: { keys: ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 me@laptop'] } })
  await call('getSshKeys')
}

async function tasks({ call }: { call: Player['call'] }, rig: Rig): Promise<void> {
  const { endpoint } = await new Tasks(rig.ports, servicesOf(rig).endpoints).create(OPERATOR, {
    name: 'task-train-0a1b2c3d',
    image: 'runpod/task:py3.12-latest',
    args: '',
    env: { RUNPOD_TASK_TOKEN: 'a token of the client that started it' },
    diskGb: 10,
    registry: null,
    compute: { kind: 'cpu', configs: [{ flavor: 'cpu3c', vcpuCount: 2 }] },
    volumes: [],
  })
  const { id } = endpoint
  await rig.clock.advance(40)
  await call('listPods')
  const { workerId } = await call('getPod', { params: { id } })
  rig.print(workerId, 'epoch 1')
  await call('getPodLogs', {
    params: { id },
    query: { source: 'container' },
    meanwhile: async () => rig.print(workerId, 'epoch 2'),
  })
  await call('deletePod', { params: { id } })
}

async function logins({ call }: { call: Player['call'] }, rig: Rig): Promise<void> {
  const asking = { key: null, address: '192.0.2.7', headers: { 'user-agent': 'RunPod-Python-SDK/2.0.0' } }
  const ask = async () =>
    (await rig.graphql('mutation { createFlashAuthRequest { id } }', {}, asking)).createFlashAuthRequest.id
  const wanted = await ask()
  await call('getLogin', { params: { id: wanted } })
  await call('createKeyForLogin', { body: { id: wanted, name: 'the laptop', scope: { type: 'read-only' } } })
  await call('denyLogin', { body: { id: await ask() } })
}

async function apps({ call }: { call: Player['call'] }, rig: Rig): Promise<void> {
  const app = await createApp(rig, 'reports')
  const environmentId = await createEnvironment(rig, app, 'default')
  const buildId = await makeBuild(rig, app, { 'main.py': 'import runpod' })
  await activate(rig, environmentId, buildId)
  const endpoint = await saveFunction(rig, { name: 'render', environmentId, buildId }, { workersMin: 1 })
  await rig.clock.advance(1_000)
  await call('listApps', { query: { name: 'reports' } })
  await call('getApp', { params: { id: app } })
  assert.equal((await rig.ask('DELETE', `/v2/serverless/${endpoint}`)).status, 204)
  await call('deleteAppEnvironment', { params: { id: environmentId } })
  await call('deleteApp', { params: { id: app } })
}

async function jobs({ call }: { call: Player['call'] }, rig: Rig, endpoint: string): Promise<void> {
  const worker = rig.worker(-1)
  const at = (job: string) => ({ params: { endpoint, job } })
  const work = async (job: string, result: unknown) => {
    assert.equal(await worker.takeJob(), job)
    await rig.clock.advance(1_500)
    await worker.done(job as never, result)
  }
  const body = { input: { prompt: 'a cat' } }
  const { id } = await call('runJob', { params: { endpoint }, body: { ...body, webhook: 'https://example.com/done' } })
  await call('explainEndpoint', { params: { endpoint } })
  await call('explainJob', at(id))
  await rig.clock.advance(200)
  const { answer } = rig.outbound
  rig.outbound.answer = () => ({ status: 503 })
  await work(id, { output: { image: 'cat.png' } })
  await rig.clock.advance(100)
  rig.outbound.answer = answer
  await call('sendWebhookAgain', at(id))
  await call('getJobStatus', at(id))
  await call('awaitJob', at(id))
  await rig.clock.advance(1_000)
  await call('listWebhookDeliveries', at(id))
  await call('listEndpointWebhooks', { params: { endpoint }, query: { state: 'delivered' } })
  await call('runJobSync', {
    params: { endpoint },
    query: { wait: 60_000 },
    body,
    meanwhile: async () => {
      const taken = await worker.takeJob()
      await rig.clock.advance(700)
      await worker.done(taken, { output: { image: 'cat.png' } })
    },
  })
  const streamed = (await call('runJob', { params: { endpoint }, body })).id
  await worker.takeJob()
  await worker.chunk(streamed, { output: 'a ' })
  await worker.chunk(streamed, { output: 'cat' })
  await call('streamJob', at(streamed))
  await worker.done(streamed, { error: 'out of memory' })
  await call('listJobErrors', { params: { endpoint } })
  await call('retryJob', at(streamed))
  await call('cancelJob', at(streamed))
  await call('listJobs', { params: { endpoint }, query: { status: 'COMPLETED', limit: 2 } })
  await call('getJobRecord', at(id))
  await call('getJobInput', at(id))
  await call('getJobStory', at(id))
  await call('replayJob', at(id))
  await call('cancelJobs', { params: { endpoint }, body: { status: 'IN_QUEUE', dryRun: true } })
  await call('retryJobs', { params: { endpoint }, body: { error: 'out of memory' } })
  await call('getHealth', { params: { endpoint } })
  await call('getWorkerMetrics', { params: { endpoint } })
  await call('purgeQueue', { params: { endpoint } })
  await call('deleteJobRecord', at(streamed))
  await call('getWebhookKey', { params: { endpoint } })
  await call('rotateWebhookKey', { params: { endpoint } })
  await call('callOpenAi', {
    params: { endpoint, route: 'models' },
    body: {},
    meanwhile: async () => {
      await worker.done(await worker.takeJob(), {
        output: [{ object: 'list', data: [{ id: 'tiny', object: 'model' }] }],
      })
    },
  })
}

async function batches({ call }: { call: Player['call'] }, endpoint: string): Promise<void> {
  const body = { name: 'night', requests: [{ input: { page: 1 } }, { input: { page: 2 } }] }
  const { id: batch } = await call('createBatch', { params: { endpoint }, body })
  const params = { endpoint, batch }
  await call('addBatchRequests', { params, body: { requests: [{ input: { page: 3 } }] } })
  const [request] = (await call('listBatchRequests', { params, query: { limit: 2 } })).requests
  await call('deleteBatchRequest', { params: { ...params, job: request.id } })
  await call('renameBatch', { params, body: { name: 'nightly' } })
  await call('finalizeBatch', { params })
  await call('getBatch', { params })
  await call('listBatches', { params: { endpoint } })
  await call('cancelBatch', { params })
}

/** A new operation that changes something is in the audit log, too. */
async function requireAllInAuditLog(rig: Rig, player: Player): Promise<void> {
  const { json } = await rig.ask('GET', '/v2/audit?limit=1000')
  const found = new Set(json.entries.map((entry: { operation: string }) => entry.operation))
  const missing = player.changing.filter(operation => !SUBMISSIONS.includes(operation) && !found.has(operation))
  assert.deepEqual(missing, [], 'operations without an entry in the audit log')
  assert.ok(found.has('getWebhookKey'), 'a key was read')
  assert.ok(!SUBMISSIONS.some(operation => found.has(operation)))
}

async function globalVolumes({ call }: { call: Player['call'] }): Promise<void> {
  const everywhere = await call('createGlobalVolume', { body: { name: 'datasets' } })
  await call('listGlobalVolumes')
  await call('getGlobalVolume', { params: { id: everywhere.id } })
  await call('updateGlobalVolume', { params: { id: everywhere.id }, body: { name: 'all-datasets' } })
  await call('deleteGlobalVolume', { params: { id: everywhere.id } })
}

async function models({ call }: { call: Player['call'] }, rig: Rig): Promise<void> {
  await rig.endpoint({ name: 'qwen-32b' })
  await call('saveModelAlias', { body: { name: 'gpt-4o', endpoints: ['qwen-32b'] } })
  await call('listModelAliases')
  await call('deleteModelAlias', { query: { name: 'gpt-4o' } })
  await call('warmEndpointModel', { body: { model: 'qwen-32b' } })
}

test('the server answers each example of the document as the document says', async t => {
  const rig = await openRig(t, { rateWindows: [], inspection: INSPECTION, artifacts: new MemoryArtifacts() })
  rig.memory = { totalBytes: 64 * 2 ** 30, availableBytes: 40 * 2 ** 30 }
  rig.disk = { totalBytes: 500_000_000_000, availableBytes: 320_000_000_000 }
  const player = new Player(rig, (await rig.ask('GET', '/v2/openapi.json')).json)
  const bound = { call: player.call.bind(player) }
  const { call } = bound
  await resources(bound, rig)
  await accounts(bound)
  const made = await call('createEndpoint', {
    body: {
      name: 'images',
      type: 'QUEUE',
      image: 'example/images:1',
      cpu: [{ id: 'cpu3g', vcpuCount: 2 }],
      workers: { min: 1, max: 3 },
      scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
    },
  })
  const id: string = made.id
  await rig.clock.advance(40)
  await call('listEndpoints')
  await call('getOverview')
  await call('getEndpoint', { params: { id } })
  await call('streamEvents', { query: { endpoint: id }, meanwhile: () => rig.submit(id as never) })
  await rig.ask('POST', `/v2/${id}/purge-queue`)
  await jobs(bound, rig, id)
  await batches(bound, id)
  const [worker] = (await call('listEndpointWorkers', { params: { id } })).workers
  await call('getEndpointWorker', { params: { id, workerId: worker.id } })
  rig.print(worker.id, 'loading the model')
  await call('getWorkerLogs', {
    params: { id, workerId: worker.id },
    query: { source: 'container' },
    meanwhile: async () => rig.print(worker.id, 'ready'),
  })
  await call('getEndpointLogs', {
    params: { id },
    query: { worker: worker.id, source: 'container' },
    meanwhile: async () => rig.print(worker.id, 'a request came'),
  })
  await call('updateEndpoint', { params: { id }, body: { env: { MODEL: 'large' } } })
  await call('listEndpointReleases', { params: { id } })
  await call('getEndpointRelease', { params: { id, version: '1' } })
  const canary = { env: { MODEL: 'larger' }, rollout: { canary: 10 } }
  assert.equal((await rig.ask('PATCH', `/v2/serverless/${id}`, { body: canary })).status, 200)
  await call('promoteRelease', { params: { id, version: '3' } })
  await call('rollbackEndpoint', { params: { id, version: '1' } })
  await call('getEndpointMetrics', { params: { id }, query: { interval: '1h' } })
  await call('askWhatIf', { params: { id }, query: { idleTimeout: 60, workersMax: 8 } })
  await call('listServerlessBilling')
  await call('listTokenUsage')
  await call('listEndpointKeys')
  await call('rotateEndpointKey', { params: { id } })
  await call('restartEndpoint', { params: { id } })
  await call('deleteEndpointWorker', { params: { id, workerId: worker.id } })
  await call('deleteEndpoint', { params: { id } })
  await apps(bound, rig)
  await logins(bound, rig)
  await tasks(bound, rig)
  await call('listAuditEntries', { query: { operation: 'updateEndpoint', limit: 2 } })
  await call('verifyAuditLog')
  await models(bound, rig)
  await globalVolumes(bound)
  await requireAllInAuditLog(rig, player)
  const wanted = player.operationIds.filter(
    operationId => !WITHOUT_EXAMPLE.includes(operationId) && !operationId.endsWith(BY_POST),
  )
  assert.deepEqual(Object.keys(player.played).sort(), wanted.sort(), 'each operation has an example')
  if (recordsExamples) return writeExamples(player.played)
  for (const [operationId, example] of Object.entries(player.played)) {
    assert.deepEqual(EXAMPLES[operationId], example, `${operationId}; record it with RUNYARD_RECORD_EXAMPLES=1`)
  }
})

test('responses of job operations have the members that the document names, and no others', () => {
  for (const { operationId, response } of JOB_OPERATIONS) {
    const { success, error } = response.safeParse(EXAMPLES[operationId]?.response)
    assert.ok(success, `${operationId}: ${error?.message}`)
  }
})

test('each job operation is in the document, with each of its methods', async t => {
  const rig = await openRig(t)
  const { paths } = (await rig.ask('GET', '/v2/openapi.json')).json
  for (const { path, methods } of JOB_ROUTES) {
    const documented = Object.keys(paths[`/v2/{endpoint}${path.replaceAll(/:(\w+)/g, '{$1}')}`] ?? {})
    assert.deepEqual(documented.map(method => method.toUpperCase()).sort(), [...methods].sort(), path)
  }
})

test('each operation has a sentence, and the page shows its request and response', async t => {
  const rig = await openRig(t)
  const { paths } = (await rig.ask('GET', '/v2/openapi.json')).json
  const page = (await rig.ask('GET', '/v2/docs')).text
  for (const [path, methods] of Object.entries<Record<string, { summary?: string; operationId: string }>>(paths)) {
    for (const { summary = '', operationId } of Object.values(methods)) {
      assert.match(summary, /^[A-Z].{10,}/, `${operationId} has no sentence`)
      const isAlias = operationId.endsWith(BY_POST)
      assert.equal(page.includes(`id="${operationId}"`), !isAlias, path)
    }
  }
})
