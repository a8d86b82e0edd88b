import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_OWNER, type OwnerId } from '../../../src/core/ids.ts'
import { aGpu, aMachine } from '../../support/machines.ts'
import { MemoryModels } from '../../support/memory-models.ts'
import { openRig, type Rig } from '../../support/rig.ts'

const COMMIT = 'c'.repeat(40)
const NEWER = 'd'.repeat(40)
const TINY = { modelReferences: ['org/tiny'] }

async function open(context: Parameters<typeof openRig>[0]) {
  const models = new MemoryModels()
  return { models, rig: await openRig(context, { models }) }
}

async function workersOf(rig: Rig, id: string) {
  return (await rig.ask('GET', `/v2/serverless/${id}/workers`)).json
}

test('a worker waits for its models before it has a place, and every surface says so', async context => {
  const { models, rig } = await open(context)
  const endpoint = await rig.endpoint(TINY)
  await rig.submit(endpoint)
  await rig.clock.advance(40)
  assert.equal(rig.fleet.started.length, 0)
  models.downloads[0]!.progress({ receivedBytes: 1_500_000_000, totalBytes: 6_000_000_000 })
  await rig.clock.advance(10_000)
  const { workers, summary } = await workersOf(rig, endpoint)
  const [{ status, phase, download, reason }] = workers
  assert.deepEqual([status, phase, reason], ['INITIALIZING', 'downloading', 'model org/tiny is downloaded'])
  assert.deepEqual(download, { receivedBytes: 1_500_000_000, totalBytes: 6_000_000_000 })
  assert.deepEqual([summary.initializing, summary.throttled], [1, 0])
  const why = await rig.why(endpoint)
  assert.equal(why.cause, 'models_downloading')
  assert.match(why.summary, /^model org\/tiny is downloaded before a worker is started: 1\.5 GB of 6\.0 GB \(25 %\)$/)
  const { evidence } = (await rig.ask('GET', `/v2/${endpoint}/explain`)).json
  assert.deepEqual(evidence, [`worker ${workers[0].id} waits for models, for 10 s: model org/tiny is downloaded`])
  assert.equal((await rig.health(endpoint)).workers.initializing, 1)
  models.downloads[0]!.done()
  await rig.clock.advance(40)
  const [started] = rig.fleet.started
  assert.deepEqual(started?.models, [
    { folder: 'models--org--tiny', path: '/models/huggingface-cache/hub/models--org--tiny' },
  ])
  assert.equal(started?.workerId, workers[0].id, 'the worker that waited is the one that starts')
  await rig.worker(-1).take()
  await rig.clock.advance(40)
  const one = (await rig.ask('GET', `/v2/serverless/${endpoint}/workers/${workers[0].id}`)).json
  const downloading = one.timeLine.find((step: { phase: string }) => step.phase === 'downloading')
  assert.ok(downloading.ms >= 10_000, JSON.stringify(one.timeLine))
  const { phases } = rig.happened('worker.moved').find(({ to }) => to === 'READY')!
  assert.ok((phases?.downloading ?? 0) >= 10_000)
})

test('the time of a download is no time of a worker', async context => {
  const { models, rig } = await open(context)
  const endpoint = await rig.endpoint(TINY)
  await rig.submit(endpoint)
  await rig.clock.advance(40)
  await rig.clock.leap(3_600_000)
  models.downloads[0]!.done()
  await rig.clock.advance(40)
  const worker = await rig.store.workers.find(rig.worker(-1).id)
  assert.ok(worker!.placedAtMs! - worker!.createdAtMs >= 3_600_000)
  await rig.clock.advance(120_000)
  const records = (await rig.ask('GET', `/v2/billing/serverless?serverlessId=${endpoint}`)).json.records
  const billedMs = records.reduce(
    (sum: number, record: { usage: { billedMs: number } }) => sum + record.usage.billedMs,
    0,
  )
  assert.ok(billedMs <= 130_000, `${billedMs}`)
})

test('a second worker, and a second endpoint, start at once where the models are there', async context => {
  const { models, rig } = await open(context)
  const first = await rig.endpoint(TINY)
  await rig.submit(first)
  await rig.clock.advance(40)
  const second = await rig.endpoint({ modelReferences: ['https://huggingface.co/org/tiny:main'] })
  models.downloads[0]!.done()
  await rig.clock.advance(40)
  assert.equal(rig.fleet.started.length, 1)
  await rig.submit(second)
  await rig.clock.advance(40)
  assert.equal(rig.fleet.started.length, 2)
  await rig.change(first, { workersMin: 2, ...TINY })
  await rig.clock.advance(5_000)
  assert.equal(rig.fleet.started.length, 3)
  assert.deepEqual(models.downloads, [])
  assert.equal(models.held.size, 3)
})

test('a GPU does not wait for a download: an endpoint whose models are there gets it', async context => {
  const { models, rig } = await open(context)
  rig.machine = aMachine([aGpu(0)])
  models.there.add(`org/ready@${COMMIT}`)
  const gpu = { instanceIds: undefined, gpuIds: 'ADA_24' }
  const late = await rig.endpoint({ ...gpu, modelReferences: ['org/large'] })
  const ready = await rig.endpoint({ ...gpu, modelReferences: ['org/ready'] })
  await rig.submit(late)
  await rig.clock.advance(40)
  await rig.submit(ready)
  await rig.clock.advance(40)
  await rig.clock.advance(40)
  assert.deepEqual(
    rig.fleet.started.map(({ endpointId }) => endpointId),
    [ready],
  )
  assert.equal((await rig.why(late)).cause, 'models_downloading')
  models.downloads[0]!.done()
  await rig.clock.advance(40)
  assert.equal((await rig.why(late)).cause, 'no_capacity')
})

test('an unavailable model is a cause with a remedy, is tried again, and a new token counts at once', async context => {
  const { models, rig } = await open(context)
  const { json: secret } = await rig.ask('POST', '/v2/account/secrets', { body: { name: 'hub', value: 'hf_old' } })
  const env = [{ key: 'HF_TOKEN', value: '{{ RUNPOD_SECRET_hub }}' }]
  const endpoint = await rig.endpoint({ ...TINY, template: { env } })
  await rig.submit(endpoint)
  await rig.clock.advance(40)
  assert.equal(models.downloads[0]!.wish.reader.token, 'hf_old')
  models.downloads[0]!.fail({ kind: 'access_refused' })
  await rig.clock.advance(40)
  const why = await rig.why(endpoint)
  assert.equal(why.cause, 'model_error')
  assert.match(why.summary, /^no worker can be started: model org\/tiny is not available: the account of the token/)
  assert.match(why.action ?? '', /save a token that may read the model as a secret/)
  await rig.clock.advance(60_000)
  assert.equal(models.downloads.length, 0, 'only a person can help, so it is not tried every half minute')
  await rig.ask('PATCH', `/v2/account/secrets/${secret.id}`, { body: { value: 'hf_new' } })
  await rig.clock.advance(1_000)
  assert.equal(models.downloads[0]?.wish.reader.token, 'hf_new')
  models.downloads[0]!.fail({ kind: 'hub_unreachable', host: 'hub', said: 'ECONNREFUSED' })
  await rig.clock.advance(61_000)
  assert.equal(models.downloads.length, 1, 'what may pass is tried again soon')
  models.downloads[0]!.done()
  await rig.clock.advance(40)
  assert.equal(rig.fleet.started.length, 1)
  const eventsText = JSON.stringify(rig.events)
  assert.ok(!eventsText.includes('hf_old') && !eventsText.includes('hf_new'))
})

test('each account asks for a model as itself, with its own token', async context => {
  const { models, rig } = await open(context)
  const key = await rig.addKey('rpa_of_another_account', { owner: 'other' as OwnerId })
  const own = await rig.endpoint({ ...TINY, template: { env: [{ key: 'HF_TOKEN', value: 'hf_of_operator' }] } })
  await rig.submit(own)
  await rig.clock.advance(40)
  const cpu = [{ id: 'cpu3g', vcpuCount: 2 }]
  const fields = { type: 'QUEUE', scaling: { type: 'QUEUE_DELAY', queueDelay: 4 }, workers: { min: 1, max: 1 } }
  const body = { name: 'theirs', image: 'image:1', cpu, ...fields, ...TINY }
  const made = await rig.ask('POST', '/v2/serverless', { body, key })
  assert.equal(made.status, 201, made.text)
  await rig.clock.advance(40)
  assert.deepEqual(
    models.downloads.map(({ wish }) => wish.reader),
    [
      { owner: DEFAULT_OWNER, token: 'hf_of_operator' },
      { owner: 'other', token: null },
    ],
  )
})

test('a branch means one commit for all workers of a release, the newest one for the next release, and the old one after a rollback', async context => {
  const { models, rig } = await open(context)
  const endpoint = await rig.endpoint({ ...TINY, workersMin: 1 })
  await rig.clock.advance(40)
  models.downloads[0]!.done()
  await rig.clock.advance(40)
  models.commits.set('org/tiny:main', NEWER)
  await rig.change(endpoint, { workersMin: 2, ...TINY })
  await rig.clock.advance(5_000)
  assert.deepEqual([rig.fleet.started.length, models.downloads.length], [2, 0])
  await rig.change(endpoint, { ...TINY, executionTimeoutMs: 60_000, template: { name: 'other', imageName: 'image:2' } })
  await rig.clock.advance(5_000)
  const { version } = (await rig.store.endpoints.find(endpoint))!
  assert.equal((await rig.store.releases.models(endpoint, version))['org/tiny'], NEWER)
  const back = await rig.ask('POST', `/v2/serverless/${endpoint}/releases/1/rollback`)
  assert.equal(back.status, 201, back.text)
  const restored = (await rig.store.endpoints.find(endpoint))!.version
  assert.ok(restored > version)
  assert.equal((await rig.store.releases.models(endpoint, restored))['org/tiny'], COMMIT)
})

test('a kill of the server in the middle of a download begins with the same commit again', async context => {
  const { models, rig } = await open(context)
  const endpoint = await rig.endpoint(TINY)
  await rig.submit(endpoint)
  await rig.clock.advance(40)
  await rig.crash()
  models.commits.set('org/tiny:main', NEWER)
  await rig.start()
  await rig.clock.advance(40)
  assert.deepEqual(
    models.downloads.map(({ wish }) => wish.commit),
    [null, COMMIT],
  )
  models.downloads[1]!.done()
  await rig.clock.advance(40)
  assert.equal(rig.fleet.started.length, 1)
})

test('the models of a worker are kept until it has ended', async context => {
  const { models, rig } = await open(context)
  models.there.add(`org/tiny@${COMMIT}`)
  const endpoint = await rig.endpoint({ modelReferences: [`org/tiny:${COMMIT}`] })
  await rig.submit(endpoint)
  await rig.clock.advance(40)
  const { id } = rig.worker(-1)
  assert.deepEqual(models.held.get(id), [{ name: 'org/tiny', commit: COMMIT }])
  assert.equal((await rig.ask('DELETE', '/ops/models/org/tiny')).status, 409)
  rig.fleet.exit(id, { code: 1 })
  await rig.clock.advance(40)
  assert.ok(!models.held.has(id))
})

test('a worker ends as ever while the disk of its models is away', async context => {
  const { models, rig } = await open(context)
  models.there.add(`org/tiny@${COMMIT}`)
  models.letGo = async () => {
    throw new Error('EIO')
  }
  const endpoint = await rig.endpoint({ modelReferences: [`org/tiny:${COMMIT}`], workersMin: 1 })
  await rig.clock.advance(40)
  rig.fleet.exit(rig.worker(-1).id, { code: 1 })
  await rig.clock.advance(5_000)
  assert.equal(rig.happened('worker.exited').length, 1)
  assert.equal((await rig.alive(endpoint)).length, 1)
  assert.deepEqual(rig.happened('loop.failed'), [])
})

test('a model that is removed at the last moment is a failed start, and comes again', async context => {
  const { models, rig } = await open(context)
  models.there.add(`org/tiny@${COMMIT}`)
  const hold = models.hold.bind(models)
  models.hold = async (worker, wanted) => {
    models.there.clear()
    return hold(worker, wanted)
  }
  const endpoint = await rig.endpoint({ modelReferences: [`org/tiny:${COMMIT}`] })
  await rig.submit(endpoint)
  await rig.clock.advance(40)
  assert.match((await rig.why(endpoint)).summary, /model org\/tiny was removed before a worker could get it/)
  models.hold = hold
  await rig.clock.advance(10_000)
  models.downloads[0]!.done()
  await rig.clock.advance(10_000)
  assert.ok(rig.fleet.started.length >= 1)
})

test('workers that do not see the disk of this machine start without its models, and download them', async context => {
  const models = new MemoryModels()
  const place = { node: 'node-1', gpuType: null, gpuCount: 0 }
  const rig = await openRig(context, { models, arrival: () => place })
  const endpoint = await rig.endpoint(TINY)
  const job = await rig.submit(endpoint)
  await rig.clock.advance(2_000)
  assert.equal(models.downloads.length, 0)
  assert.deepEqual(rig.fleet.started[0]?.models, [])
  assert.equal(await rig.worker(-1).takeJob(), job)
})
