/** Programs that are not workers use the memory of cards. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { EndpointId } from '../../../src/core/ids.ts'
import { aGpu, aMachine } from '../../support/machines.ts'
import { PlayedCard } from '../../support/played-cards.ts'
import { openRig, type Rig } from '../../support/rig.ts'

const GPU = { instanceIds: undefined, gpuIds: 'ADA_24', workersMin: 1, workersMax: 1 }
const BLENDER = { pid: 812, name: 'blender', mib: 4_200 }

async function openCard(context: TestContext) {
  const card = new PlayedCard()
  const rig = await openRig(context, { gpuMeter: card })
  rig.machine = aMachine([aGpu(0)])
  return { rig, card }
}

async function reasons(rig: Rig): Promise<string[]> {
  const { json } = await rig.ask('GET', '/v2/machine')
  return json.waiting.map(({ reason }: { reason: string }) => reason)
}

const started = async (rig: Rig, id: EndpointId) => (await rig.alive(id)).length

test('a worker waits while another program uses its card, with that reason, and starts when that has ended', async t => {
  const { rig, card } = await openCard(t)
  card.programs = [BLENDER]
  const chat = await rig.endpoint({ ...GPU, name: 'chat' })
  await rig.clock.advance(100)
  assert.equal(await started(rig, chat), 0)
  assert.deepEqual(await reasons(rig), ['no free GPU of pool ADA_24: 4.1 GB of card 0 are used by other programs'])
  card.programs = []
  await rig.clock.advance(20_000)
  assert.equal(await started(rig, chat), 1)
})

test('programs of the machine are named to keys with all rights of the operator, and to nobody else', async t => {
  const { rig, card } = await openCard(t)
  const { json: account } = await rig.ask('POST', '/v2/account/accounts', { body: { name: 'Ada' } })
  const { json: other } = await rig.ask('POST', '/v2/account/keys', { body: { name: 'a', account: account.id } })
  const reader = await rig.addKey('rpa_reader', { scope: { type: 'read-only' } })
  card.programs = [BLENDER]
  const chat = await rig.endpoint({ ...GPU, name: 'chat' })
  const images = await rig.endpoint({ ...GPU, name: 'images' }, other)
  await rig.submit(chat)
  await rig.submit(images, { input: {} }, { key: other.key })
  await rig.clock.advance(100)
  const named = '4.1 GB of card 0 are used by pid 812 (blender)'
  const notes = async (id: EndpointId, asking: object = {}) => {
    const { json, text } = await rig.ask('GET', `/ops/why/${id}`, asking)
    assert.match(text, /4\.1 GB of card 0 are used by other programs/)
    return json.explanations[0].notes
  }
  assert.deepEqual(await notes(chat), [named])
  const { json } = await rig.ask('GET', '/ops/why')
  assert.deepEqual(json.explanations[0].notes, [named])
  assert.deepEqual(await notes(chat, { key: reader }), [])
  assert.deepEqual(await notes(images, { key: other.key }), [])
})

test('a dip in the use of another program admits no worker', async t => {
  const { rig, card } = await openCard(t)
  card.programs = [BLENDER]
  const chat = await rig.endpoint({ ...GPU, name: 'chat' })
  await rig.clock.advance(100)
  const before = card.readings
  card.programs = []
  for (let second = 0; second < 20 && card.readings === before; second += 1) await rig.clock.advance(1_000)
  card.programs = [BLENDER]
  await rig.clock.advance(20_000)
  assert.ok(card.readings > before + 1)
  assert.equal(await started(rig, chat), 0)
})

test('memory of a worker that has ended keeps nobody waiting', async t => {
  const { rig, card } = await openCard(t)
  const chat = await rig.endpoint({ ...GPU, name: 'chat' })
  await rig.clock.advance(100)
  card.programs = [{ pid: 7, name: 'python', mib: 20_000 }]
  const images = await rig.endpoint({ ...GPU, name: 'images' })
  await rig.clock.advance(10_000)
  assert.deepEqual(await reasons(rig), ['no free GPU of pool ADA_24: 1 of 1 in use by endpoint chat'])
  const [worker] = await rig.alive(chat)
  card.programs = []
  await rig.ask('DELETE', `/v2/serverless/${chat}`)
  rig.fleet.exit(worker!.id)
  await rig.clock.advance(6_000)
  assert.equal(await started(rig, images), 1)
})

test('a card is read once for all workers that wait, and at most every two seconds', async t => {
  const { rig, card } = await openCard(t)
  card.programs = [BLENDER]
  for (const name of ['a', 'b', 'c', 'd', 'e']) await rig.endpoint({ ...GPU, name })
  await rig.clock.advance(60_000)
  assert.ok(card.readings >= 5 && card.readings <= 30, `${card.readings} readings`)
})

test('a meter that fails or hangs keeps nobody waiting, and is left alone for a while', async t => {
  const { rig, card } = await openCard(t)
  card.problem = 'nvidia-smi ended with code 9'
  const first = await rig.endpoint({ ...GPU, name: 'first' })
  await rig.clock.advance(100)
  assert.equal(await started(rig, first), 1)
  await rig.endpoint({ ...GPU, name: 'second' })
  await rig.clock.advance(25_000)
  assert.equal(card.readings, 1)
})

test('a meter that hangs delays a start by three seconds at most', async t => {
  const { rig, card } = await openCard(t)
  card.delay = () => new Promise(() => {})
  const chat = await rig.endpoint({ ...GPU, name: 'chat' })
  await rig.clock.advance(3_100)
  assert.equal(await started(rig, chat), 1)
})

test('the page of the machine shows the memory of now, and waits a second at most for it', async t => {
  const { rig, card } = await openCard(t)
  await rig.endpoint({ ...GPU, name: 'chat' })
  await rig.clock.advance(100)
  const free = async () => (await rig.ask('GET', '/v2/machine')).json.gpus[0].memory?.freeMb ?? null
  assert.equal(await free(), 24_576)
  card.programs = [BLENDER]
  await rig.clock.advance(10_000)
  assert.equal(await free(), 24_576 - 4_200, 'not the reading from before the start of the worker')
  card.programs = []
  card.delay = () => new Promise(() => {})
  await rig.clock.advance(10_000)
  const late = free()
  await rig.clock.advance(1_000)
  assert.equal(await late, 24_576 - 4_200, 'the last one, with the same workers')
  assert.equal(await free(), 24_576 - 4_200, 'nobody waits twice for it')
  await rig.endpoint({ ...GPU, name: 'second', gpuMemoryGb: 2 })
  await rig.clock.advance(30_000)
  assert.equal(await free(), null)
})

test('a machine without NVIDIA cards is not measured', async t => {
  const { rig, card } = await openCard(t)
  rig.machine = aMachine([aGpu(0, undefined, { vendor: 'AMD' })])
  const chat = await rig.endpoint({ ...GPU, name: 'chat' })
  await rig.clock.advance(100)
  assert.deepEqual([await started(rig, chat), card.readings], [1, 0])
})

test('the card of a suspended worker is free for every account, and the worker resumes once its memory is really free', async t => {
  const { rig, card } = await openCard(t)
  const { json: account } = await rig.ask('POST', '/v2/account/accounts', { body: { name: 'Ada' } })
  const { json: other } = await rig.ask('POST', '/v2/account/keys', { body: { name: 'a', account: account.id } })
  const wanted = { ...GPU, workersMin: 0, scalerType: 'REQUEST_COUNT', scalerValue: 1 }
  const chat = await rig.endpoint({ ...wanted, name: 'chat', flashBootType: 'FLASHBOOT' })
  await rig.submit(chat)
  await rig.clock.advance(100)
  const worker = rig.worker(0)
  await worker.done(await worker.takeJob())
  await rig.clock.advance(10_000)
  await suspend(rig, chat)

  const images = await rig.endpoint({ ...wanted, name: 'images' }, other)
  await rig.submit(images, { input: {} }, { key: other.key })
  await rig.clock.advance(10_000)
  const [second] = await rig.alive(images)
  assert.equal(second?.placement?.gpus[0]?.index, 0)
  const first = async () => (await rig.alive(chat))[0]!
  assert.equal((await first()).state, 'FROZEN')

  await rig.submit(chat)
  await rig.clock.advance(1_000)
  assert.equal((await first()).wakeWaitsFor, 'its GPU 0 is in use by other accounts')
  card.programs = [BLENDER]
  rig.fleet.exit(second!.id)
  await rig.ask('POST', `/v2/${images}/purge-queue`, { key: other.key })
  await rig.clock.advance(15_000)
  assert.equal(
    (await first()).wakeWaitsFor,
    'it needs 20.3 GB of its GPU 0, and 19.9 GB are free: 4.1 GB of card 0 are used by other programs',
  )
  card.programs = []
  await rig.clock.advance(10_000)
  const { id, state } = await first()
  assert.deepEqual([id, state], [worker.spec.workerId, 'READY'])
})

/** Notes of the one worker of an endpoint, which is frozen, that 20 GB were copied from its card. */
async function suspend(rig: Rig, endpoint: EndpointId): Promise<void> {
  const [worker] = await rig.alive(endpoint)
  assert.equal(worker?.state, 'FROZEN')
  const { id, frozenAtMs } = worker!
  const bytes = 20 * 2 ** 30
  const suspension = { card: 'GPU-0', bytes, processes: [{ pid: 7, startTime: '1', bytes }] }
  assert.ok(await rig.store.workers.suspending(id, frozenAtMs!, suspension))
  assert.ok(await rig.store.workers.suspended(id, frozenAtMs!, rig.clock.now()))
}
