/** Folders that a server was given: one endpoint each, whatever their workers run in. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_OWNER, type TemplateId } from '../../../src/core/ids.ts'
import { aGpu, aMachine } from '../../support/machines.ts'
import { openRig, type Rig } from '../../support/rig.ts'

const folder = {
  name: 'My Model',
  path: '/handlers/My Model',
  repository: 'runyard-folder/my-model-1a2b3c4d',
  type: 'QUEUE',
  tag: null,
} as const

async function imageOf(rig: Rig, id: TemplateId): Promise<string | undefined> {
  return (await rig.store.templates.find(DEFAULT_OWNER, id))?.image
}

test('a folder is found again by the next start', async t => {
  const rig = await openRig(t)
  const first = await rig.services.folderEndpoint(folder)
  assert.equal(first.id, 'mymodel')
  assert.equal(await imageOf(rig, first.templateId), 'dir:/handlers/My Model')
  const second = await rig.services.folderEndpoint(folder)
  assert.deepEqual([second.id, second.version], [first.id, first.version])
})

test('a start of the server with a folder whose workers crashed tries it at once', async t => {
  const rig = await openRig(t)
  const { id, version } = await rig.services.folderEndpoint(folder)
  const job = await rig.submit(id)
  await rig.clock.advance(40)
  const crash = () => rig.fleet.exit(rig.worker(-1).id, { code: 1 })
  for (let crashes = 0; crashes < 8; crashes += 1) {
    crash()
    await rig.clock.advance(2 ** crashes * 1_000 + 1_000)
    assert.equal(rig.fleet.started.length, crashes + 2)
  }
  crash()
  await rig.clock.advance(1_000)
  const again = await rig.services.folderEndpoint(folder)
  assert.equal(again.version, version + 1)
  await rig.clock.advance(1_000)
  assert.equal(rig.fleet.started.length, 10)
  assert.equal(await rig.worker(-1).takeJob(), job)
})

test('a folder that has nothing to run for its kind of endpoint is refused, and leaves nothing behind', async t => {
  const missing = { kind: 'handler_missing', folder: '/x', files: ['server.py', 'server.js'], other: null } as const
  const check = (_: string, __: string, type?: string) => (type === 'LOAD_BALANCER' ? missing : null)
  const rig = await openRig(t, { check })
  await assert.rejects(
    rig.services.folderEndpoint({ ...folder, type: 'LOAD_BALANCER' }),
    /^AppError: folder '\/x' has no server.py or server.js, there or in src, and no command is given$/,
  )
  assert.deepEqual(await rig.store.templates.list(DEFAULT_OWNER), [])
  await rig.services.folderEndpoint(folder)
})

test('a folder gets the priority that is given, keeps it later, and only a queue lets its jobs be paused', async t => {
  const rig = await openRig(t)
  const settings = { priority: 'low', preemptible: true } as const
  const queue = await rig.services.folderEndpoint({ ...folder, settings })
  const other = { ...folder, name: 'web', path: '/handlers/web', type: 'LOAD_BALANCER' } as const
  const serving = await rig.services.folderEndpoint({ ...other, settings })
  const again = await rig.services.folderEndpoint(folder)
  const shown = [queue, serving, again].map(({ priority, preemptible, version }) => [priority, preemptible, version])
  assert.deepEqual(shown, [
    ['low', true, 1],
    ['low', false, 1],
    ['low', true, 1],
  ])
  const high = await rig.services.folderEndpoint({ ...folder, settings: { priority: 'high', preemptible: false } })
  assert.deepEqual([high.priority, high.preemptible, high.version], ['high', false, 1])
})

test('a rebuilt image that differs is a new version, and the same image is not', async t => {
  const rig = await openRig(t)
  const first = await rig.services.folderEndpoint({ ...folder, tag: 'aaaaaaaaaaaa' })
  assert.equal(await imageOf(rig, first.templateId), `${folder.repository}:aaaaaaaaaaaa`)
  const same = await rig.services.folderEndpoint({ ...folder, tag: 'aaaaaaaaaaaa' })
  assert.equal(same.version, first.version)
  const next = await rig.services.folderEndpoint({ ...folder, tag: 'bbbbbbbbbbbb' })
  assert.deepEqual([next.id, next.version], [first.id, first.version + 1])
  assert.equal(await imageOf(rig, first.templateId), `${folder.repository}:bbbbbbbbbbbb`)
})

test('a folder that goes from processes to containers and back stays the same endpoint', async t => {
  const rig = await openRig(t)
  const first = await rig.services.folderEndpoint(folder)
  const id = await rig.submit(first.id)
  await rig.clock.advance(40)
  const process = rig.worker(-1)
  assert.equal(process.spec.image, 'dir:/handlers/My Model')
  assert.equal(await process.takeJob(), id)
  const built = await rig.services.folderEndpoint({ ...folder, tag: 'aaaaaaaaaaaa' })
  assert.equal(built.id, first.id)
  await process.done(id)
  const next = await rig.submit(first.id)
  await rig.clock.advance(2_000)
  const container = rig.worker(-1)
  assert.equal(container.spec.image, `${folder.repository}:aaaaaaaaaaaa`)
  assert.equal(await container.takeJob(), next)
  assert.equal((await rig.services.folderEndpoint(folder)).id, first.id)
})

test('two folders of one name have an endpoint each', async t => {
  const rig = await openRig(t)
  const one = await rig.services.folderEndpoint(folder)
  const other = { ...folder, path: '/other/My Model', repository: 'runyard-folder/my-model-ffffffff' }
  const two = await rig.services.folderEndpoint(other)
  assert.notEqual(one.id, two.id)
  assert.equal((await rig.services.folderEndpoint(other)).id, two.id)
})

test('a folder with a server is a load-balancing endpoint, and one that is given as the other thing becomes that', async t => {
  const rig = await openRig(t)
  const first = await rig.services.folderEndpoint({ ...folder, type: 'LOAD_BALANCER' })
  assert.deepEqual([first.id, first.type, first.scaler], ['mymodel', 'LOAD_BALANCER', REQUESTS])
  const queue = await rig.services.folderEndpoint(folder)
  assert.deepEqual([queue.id, queue.type, queue.version], ['mymodel', 'QUEUE', first.version + 1])
  await rig.submit(queue.id)
  await assert.rejects(rig.services.folderEndpoint({ ...folder, type: 'LOAD_BALANCER' }), { code: 'conflict' })
})

const REQUESTS = { type: 'REQUEST_COUNT', requestCount: 4 }

test('a folder whose environment was changed through the API keeps its endpoint', async t => {
  const rig = await openRig(t)
  const first = await rig.services.folderEndpoint(folder)
  assert.equal(
    (await rig.ask('PATCH', `/v2/serverless/${first.id}`, { body: { env: { MODEL: 'large' } } })).status,
    200,
  )
  const again = await rig.services.folderEndpoint(folder)
  assert.equal(again.id, first.id)
  assert.notEqual(again.templateId, first.templateId)
  assert.equal((await rig.store.endpoints.list(DEFAULT_OWNER)).length, 1)
  assert.equal((await rig.store.templates.find(DEFAULT_OWNER, again.templateId))?.env.MODEL, 'large')
})

test('a folder whose endpoint was deleted gets another one', async t => {
  const rig = await openRig(t)
  const first = await rig.services.folderEndpoint(folder)
  await rig.store.endpoints.remove(first.id, rig.clock.now())
  const second = await rig.services.folderEndpoint({ ...folder, settings: { args: 'node main.js' } })
  assert.equal(second.templateId, first.templateId)
  assert.equal((await rig.store.templates.find(DEFAULT_OWNER, second.templateId))?.args, 'node main.js')
})

const GPU = {
  kind: 'gpu',
  pools: ['ADA_24'],
  excludedTypes: [],
  count: 1,
  allowedCudaVersions: [],
  minCudaVersion: null,
}

test('a new folder gets one GPU of the machine where it has some', async t => {
  const rig = await openRig(t)
  rig.machine = aMachine([aGpu(0), aGpu(1)])
  assert.deepEqual((await rig.services.folderEndpoint(folder)).compute, GPU)
})

test('a folder gets the GPUs that a start asks for, keeps them without a word, and can give them back', async t => {
  const rig = await openRig(t)
  rig.machine = aMachine([aGpu(0), aGpu(1)])
  const start = (settings: object) => rig.services.folderEndpoint({ ...folder, settings })
  const first = await start({ gpu: 'none' })
  assert.equal(first.compute.kind, 'cpu')
  assert.equal((await start({})).version, first.version)
  const two = await start({ gpu: 'rtx 4090', gpuCount: 2, workersMax: 5 })
  assert.deepEqual([two.id, two.compute, two.workersMax], [first.id, { ...GPU, count: 2 }, 5])
  assert.equal(two.version, first.version + 1)
  assert.deepEqual(await start({}), two)
  assert.deepEqual((await start({ gpuCount: 1 })).compute, GPU)
  assert.equal((await start({ gpu: 'none' })).compute.kind, 'cpu')
})

test('GPUs that a machine or the catalogue does not have are refused', async t => {
  const rig = await openRig(t)
  const start = (settings: object) => rig.services.folderEndpoint({ ...folder, settings })
  await assert.rejects(start({ gpu: 'any' }), /^AppError: --gpu is 'any', and this machine has no GPU$/)
  await assert.rejects(start({ gpuCount: 2 }), /^AppError: --gpus is 'any', and this machine has no GPU$/)
  await assert.rejects(start({ gpu: 'RTX 4091' }), /--gpu names 'RTX 4091', .*; did you mean RTX 4090\?$/)
  await assert.rejects(start({ gpu: 'none', gpuCount: 1 }), /leave one of them out/)
  assert.deepEqual(await rig.store.endpoints.list(DEFAULT_OWNER), [])
})
