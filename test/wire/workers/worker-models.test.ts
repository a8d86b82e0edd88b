/** Workers that name models find them on their disk: processes, those in cages, and containers. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { tryCage } from '../../../src/drivers/cage/trial.ts'
import { engineUrl, noDocker } from '../../support/docker.ts'
import { ModelHub } from '../../support/model-hub.ts'
import { patient } from '../../support/patience.ts'
import { atEnd, temporaryFolder } from '../support/cleanup.ts'
import { ask, makeEndpoint, runJob, submit, whenFinal } from '../support/client.ts'
import { containerEndpoint, explanationOf } from '../support/containers.ts'
import { fixture, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const CACHE = '/runpod-volume/huggingface-cache/hub'
const FOLDER = 'models--org--tiny'
const FILES = { 'config.json': '{"hidden_size":8}', 'model.safetensors': { bytes: 4_000_000, seed: 3 } }
const settings = { modelReferences: ['org/tiny'], idleTimeout: 3600, workersMax: 1 }
const START_MS = 60_000

function start(hub: ModelHub, args: readonly string[] = [], dataDir = temporaryFolder()): Promise<Server> {
  return startServer({ dataDir, args: ['--hf-endpoint', hub.url, ...args], env: { NO_PROXY: '*' } })
}

async function openHub() {
  const hub = await ModelHub.open({ after: atEnd })
  return { hub, commit: hub.push('org/tiny', { files: FILES }) }
}

function largeGets(hub: ModelHub): number {
  return hub.fileRequests().filter(({ method }) => method === 'GET').length
}

describe('a worker that is a process', () => {
  test('finds its models by its variable, and a second endpoint shares the copy', async () => {
    const { hub, commit } = await openHub()
    const server = await start(hub)
    const make = () => makeEndpoint(server, { folder: fixture('node-models'), settings })
    const [first, second] = [await make(), await make()]
    const input = { model: FOLDER, commit, file: 'config.json' }
    const { output, workerId } = await runJob(server, first, input, START_MS)
    const { variable, byVariable } = output as { variable: string; byVariable: Record<string, unknown> }
    assert.equal(variable, join(server.dataDir, 'workers', workerId!, 'models'))
    assert.deepEqual([byVariable.models, byVariable.text], [[FOLDER], '{"hidden_size":8}'])
    const again = await runJob(server, second, input, START_MS)
    assert.equal((again.output as { byVariable: { text: string } }).byVariable.text, '{"hidden_size":8}')
    assert.equal(largeGets(hub), 1)
    const { json } = await ask(server, '/ops/models')
    assert.deepEqual([json.models.length, json.models[0].workers], [1, 2])
  })

  test('starts after a download that a kill of the server has interrupted', async () => {
    const { hub } = await openHub()
    const commit = hub.push('org/large', { files: { w: { bytes: 300_000_000, seed: 5 } } })
    const dataDir = temporaryFolder()
    const first = await start(hub, [], dataDir)
    const endpoint = await makeEndpoint(first, {
      folder: fixture('node-models'),
      settings: { ...settings, modelReferences: ['org/large'] },
    })
    const job = await submit(first, endpoint, { model: 'models--org--large', commit, file: 'w' })
    const received = async () => {
      const { json } = await ask(first, `/v2/serverless/${endpoint}/workers`)
      const [worker] = json.workers
      return worker?.phase === 'downloading' ? (worker.download?.receivedBytes ?? 0) : 0
    }
    await until('a part of it', async () => (await received()) > 50_000_000, START_MS, 5)
    assert.match((await explanationOf(first, endpoint)).summary, /^model org\/large is downloaded before a worker/)
    await first.kill9()
    const before = hub.fileRequests().length
    const second = await start(hub, [], dataDir)
    const done = await whenFinal(second, endpoint, job, START_MS)
    assert.equal(done.status, 'COMPLETED', JSON.stringify(done))
    const [rest, ...more] = hub.fileRequests().slice(before)
    assert.deepEqual(more, [])
    assert.match(rest?.range ?? '', /^bytes=[5-9]\d{7,}-$|^bytes=[12]\d{8}-$/)
  })

  test('is not started without access, and no log, error or answer has the token', async () => {
    const { hub } = await openHub()
    hub.push('org/gated', { files: FILES, tokens: ['hf_right'], isGated: true })
    const server = await start(hub)
    await ask(server, '/v2/account/secrets', { body: { name: 'hub', value: 'hf_wrong' } })
    const env = { HF_TOKEN: '{{ RUNPOD_SECRET_hub }}' }
    const endpoint = await makeEndpoint(server, {
      folder: fixture('node-models'),
      env,
      settings: { ...settings, modelReferences: ['org/gated'] },
    })
    await submit(server, endpoint, {})
    await until('the cause', async () => (await explanationOf(server, endpoint)).cause === 'model_error', START_MS)
    const { summary, action } = await explanationOf(server, endpoint)
    assert.match(summary, /model org\/gated is not available: the account of the token in HF_TOKEN may not read it/)
    assert.match(action ?? '', /HF_TOKEN/)
    const told = [...server.lines, JSON.stringify((await ask(server, '/ops/why')).json)].join('\n')
    assert.ok(!told.includes('hf_wrong'))
  })
})

const trial = tryCage()
const noCage = 'problem' in trial && process.env.RUNYARD_NO_SKIP !== '1' ? trial.problem : false

test('a worker in a cage finds its models where RunPod has them, and cannot change them', {
  skip: noCage,
}, async () => {
  const { hub, commit } = await openHub()
  hub.push('org/other', { files: FILES })
  const server = await start(hub, ['--worker-sandbox', 'required', '--worker-network', 'shared'])
  const other = await makeEndpoint(server, {
    folder: fixture('node-models'),
    settings: { ...settings, modelReferences: ['org/other'] },
  })
  const input = { model: FOLDER, commit, file: 'config.json' }
  await runJob(server, other, input, START_MS)
  const endpoint = await makeEndpoint(server, { folder: fixture('node-models'), settings })
  const { output } = await runJob(server, endpoint, input, START_MS)
  const seen = { models: [FOLDER], text: '{"hidden_size":8}', change: 'EROFS' }
  assert.deepEqual(output, { variable: CACHE, byVariable: seen, byPath: seen })
})

describe('a worker in a container', { skip: noDocker, timeout: patient(280_000) }, () => {
  const source = readFileSync(join(fixture('node-models'), 'handler.mjs'), 'utf8')
  const words = ['node', '--input-type=module', '-e', source]
  let hub: ModelHub
  let commit: string
  let server: Server
  before(async () => {
    ;({ hub, commit } = await openHub())
    server = await start(hub, ['--docker', engineUrl])
    // A model of somebody else.
    hub.push('org/other', { files: { 'config.json': '{}' } })
    assert.equal((await ask(server, '/ops/models/org/other', { method: 'POST' })).json.done, true)
  })

  for (const isOnVolume of [false, true]) {
    test(`finds its models ${isOnVolume ? 'beside what is on its network volume' : 'without a network volume'}`, async () => {
      const body = { name: 'files', size: 10, dataCenter: 'EU-RO-1' }
      const volume = isOnVolume ? (await ask(server, '/v2/network-volumes', { body })).json.id : undefined
      const endpoint = await containerEndpoint(server, { words, settings: { ...settings, networkVolumeId: volume } })
      const { output } = await runJob(server, endpoint, { model: FOLDER, commit, file: 'config.json' }, START_MS)
      const seen = { models: [FOLDER], text: '{"hidden_size":8}', change: 'EROFS' }
      assert.deepEqual(output, { variable: CACHE, byVariable: seen, byPath: seen })
      assert.equal(largeGets(hub), 1)
    })
  }
})
