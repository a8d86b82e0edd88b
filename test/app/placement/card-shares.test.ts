/** Several workers on one card, each with a share of its memory. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { hourlyPrice, NO_PRICES } from '../../../src/core/billing/prices.ts'
import { billedFlavor } from '../../../src/core/billing/usage.ts'
import { DEFAULT_OWNER, type EndpointId, type WorkerId } from '../../../src/core/ids.ts'
import { aGpu, aMachine } from '../../support/machines.ts'
import { gpus } from '../../support/placing.ts'
import { PlayedCard } from '../../support/played-cards.ts'
import { openRig, type Rig, type RigOptions } from '../../support/rig.ts'

async function openCard(context: TestContext, options: RigOptions = {}) {
  const card = new PlayedCard()
  const rig = await openRig(context, { gpuMeter: card, ...options })
  rig.machine = aMachine([aGpu(0)])
  return { rig, card }
}

/** An endpoint with one worker and a share of a card, by REST. */
async function sharing(rig: Rig, name: string, memoryGb: number, fields: object = {}): Promise<EndpointId> {
  const body = {
    name,
    type: 'QUEUE',
    image: 'test/worker:1',
    gpu: { pools: ['ADA_24'], memoryGb },
    workers: { min: 1, max: 1 },
    scaling: { type: 'REQUEST_COUNT', requestCount: 1 },
    ...fields,
  }
  const { status, json, text } = await rig.ask('POST', '/v2/serverless', { body })
  assert.equal(status, 201, text)
  return json.id
}

/** Lets the workers that were started become ready. */
async function ready(rig: Rig): Promise<void> {
  await rig.clock.advance(100)
  for (const [index] of rig.fleet.started.entries()) void rig.worker(index).take()
  await rig.clock.advance(6_000)
}

const gpusOf = async (rig: Rig, id: EndpointId) => (await rig.alive(id)).map(({ placement }) => placement?.gpus[0])

test('shares of 8, 8 and 6 GB run at once on a card of 24 GB, and a fourth waits with its reason', async t => {
  const { rig, card } = await openCard(t)
  const ids: EndpointId[] = []
  for (const [name, gb] of [
    ['chat', 8],
    ['images', 8],
    ['voice', 6],
  ] as const) {
    ids.push(await sharing(rig, name, gb))
    await ready(rig)
  }
  const shares = (await Promise.all(ids.map(id => gpusOf(rig, id)))).flat()
  assert.deepEqual(
    shares.map(gpu => [gpu?.index, gpu?.shareMb]),
    [
      [0, 8_192],
      [0, 8_192],
      [0, 6_144],
    ],
  )
  const late = await sharing(rig, 'late', 4)
  await ready(rig)
  assert.deepEqual(await rig.alive(late), [])
  const { json } = await rig.ask('GET', '/v2/machine')
  assert.equal(
    json.waiting[0].reason,
    'no GPU of pool ADA_24 has 4 GB left: 1.5 GB of card 0 are left beside endpoints chat, images, voice',
  )
  assert.equal(card.readings > 0, true)
  const { text } = await rig.ask('GET', '/metrics')
  assert.match(text, /^runyard_gpu_memory_bytes\{gpu="0",use="other"\} 0$/m)
  assert.match(text, /^runyard_gpu_memory_bytes\{gpu="0",use="free"\} [1-9]\d+$/m)
})

test('a worker gets its share in its environment, and images of the catalog in their own variable', async t => {
  const { rig } = await openCard(t)
  await sharing(rig, 'plain', 8)
  await ready(rig)
  await sharing(rig, 'vllm', 8, { image: 'runpod/worker-v1-vllm:v2.9.0' })
  await ready(rig)
  await sharing(rig, 'set', 6, { image: 'runpod/worker-v1-vllm:v2.9.0', env: { GPU_MEMORY_UTILIZATION: '0.2' } })
  await ready(rig)
  const [plain, vllm, set] = rig.fleet.started
  const { RUNYARD_GPU_MEMORY_MB, RUNYARD_GPU_MEMORY_FRACTION, RUNPOD_GPU_COUNT } = plain!.protocolEnv
  assert.deepEqual([RUNYARD_GPU_MEMORY_MB, RUNYARD_GPU_MEMORY_FRACTION, RUNPOD_GPU_COUNT], ['8192', '0.333', '1'])
  assert.equal(plain!.env.GPU_MEMORY_UTILIZATION, undefined)
  assert.equal(vllm!.env.GPU_MEMORY_UTILIZATION, '0.333')
  assert.equal(set!.env.GPU_MEMORY_UTILIZATION, '0.2')
})

test('two workers do not start on a card at once: the second one follows when the first is ready, or after a minute', async t => {
  const { rig } = await openCard(t)
  const first = await sharing(rig, 'first', 8)
  await rig.clock.advance(100)
  const second = await sharing(rig, 'second', 8)
  const third = await sharing(rig, 'third', 6)
  await rig.clock.advance(10_000)
  const counts = async () => {
    const [a = [], ...others] = await Promise.all([first, second, third].map(id => rig.alive(id)))
    return [a.length, others.flat().length]
  }
  assert.deepEqual(await counts(), [1, 0])
  void rig.worker(0).take()
  await rig.clock.advance(6_000)
  assert.deepEqual(await counts(), [1, 1])
  await rig.clock.advance(50_000)
  assert.deepEqual(await counts(), [1, 1])
  await rig.clock.advance(20_000)
  assert.deepEqual(await counts(), [1, 2], 'also while the second one is not ready')
})

test('memory of other programs is not given to workers', async t => {
  const { rig, card } = await openCard(t)
  await sharing(rig, 'chat', 8)
  await ready(rig)
  card.programs = [{ pid: 812, name: 'blender', mib: 16_000 }]
  await rig.clock.advance(6_000)
  const images = await sharing(rig, 'images', 8)
  await ready(rig)
  assert.deepEqual(await rig.alive(images), [])
})

test('memory of neighbors is theirs and not of other programs, which are named', async t => {
  const pids = new Map<WorkerId, number>()
  const hold = async () => null
  const release = async () => {}
  const processes = (worker: WorkerId) => {
    const members = async () => [{ pid: pids.get(worker) ?? 1, startTime: '1' }]
    return { members, hold, release }
  }
  const { rig, card } = await openCard(t, { processes })
  await sharing(rig, 'chat', 8)
  await ready(rig)
  pids.set(rig.fleet.started[0]!.workerId, 4_000)
  const python = { pid: 4_000, name: 'python', mib: 8_000 }
  const blender = { pid: 812, name: 'blender', mib: 7_000 }
  card.programs = [python, blender]
  await rig.clock.advance(6_000)
  const images = await sharing(rig, 'images', 8)
  await rig.clock.advance(6_000)
  assert.equal((await rig.alive(images)).length, 1, '8 + 8 + 6.8 GB')
  const voice = await sharing(rig, 'voice', 2)
  await ready(rig)
  assert.deepEqual(await rig.alive(voice), [])
  const { json } = await rig.ask('GET', '/v2/machine')
  assert.match(json.waiting[0].reason, /left beside endpoints chat, images \(6\.8 GB of card 0 are used by .*\)$/)
  const [{ memory, holders }] = json.gpus
  const { totalMb, freeMb, foreignMb } = memory
  assert.deepEqual([totalMb, freeMb, foreignMb], [24_576, 9_576, 7_000])
  const chatWorker = holders.find(({ endpointName }: { endpointName: string }) => endpointName === 'chat')
  assert.deepEqual([chatWorker.shareMb, chatWorker.usedMb], [8_192, 8_000])
})

test('every surface has the share, and takes it away again', async t => {
  const { rig } = await openCard(t)
  const id = await sharing(rig, 'chat', 8)
  const rest = async () => (await rig.ask('GET', `/v2/serverless/${id}`)).json.gpu.memoryGb
  const query = 'query { myself { endpoints { id gpuMemoryGb } } }'
  const graphql = async () => (await rig.ask('POST', '/graphql', { body: { query } })).json.data.myself.endpoints[0]
  const v1 = async () => (await rig.ask('GET', `/v1/endpoints/${id}`)).json.gpuMemoryGb
  assert.deepEqual([await rest(), (await graphql()).gpuMemoryGb, await v1()], [8, 8, 8])
  await rig.ask('PATCH', `/v2/serverless/${id}`, { body: { workers: { max: 2 } } })
  assert.equal(await rest(), 8, 'another change keeps it')
  await rig.ask('PATCH', `/v2/serverless/${id}`, { body: { gpu: { memoryGb: 6.5 } } })
  assert.equal(await rest(), 6.5)
  const save = 'mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { gpuMemoryGb } }'
  const saved = async (input: object) => {
    const { json } = await rig.ask('POST', '/graphql', {
      body: { query: save, variables: { input: { id, name: 'chat', ...input } } },
    })
    return json.data.saveEndpoint.gpuMemoryGb
  }
  assert.deepEqual([await saved({ gpuMemoryGb: 4 }), await saved({}), await saved({ gpuMemoryGb: 0 })], [4, 4, null])
  await rig.ask('PATCH', `/v1/endpoints/${id}`, { body: { gpuMemoryGb: 3 } })
  assert.equal(await rest(), 3)
  await rig.ask('PATCH', `/v2/serverless/${id}`, { body: { gpu: { memoryGb: null } } })
  assert.equal(await rest(), undefined)
})

test('a share that cannot be is refused with a sentence', async t => {
  const { rig } = await openCard(t)
  const refusal = async (gpu: object) => {
    const body = {
      name: 'a',
      type: 'QUEUE',
      image: 'test/worker:1',
      gpu: { pools: ['ADA_24'], ...gpu },
      scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
    }
    const { status, text } = await rig.ask('POST', '/v2/serverless', { body })
    assert.equal(status, 400, text)
    return text
  }
  assert.match(await refusal({ memoryGb: 8, count: 2 }), /is a share of one GPU, so gpu\.count must be 1/)
  assert.match(await refusal({ memoryGb: 25 }), /25 must be at most 24 GB, the memory of the largest GPU/)
  for (const memoryGb of [0.1, 0, -3]) assert.match(await refusal({ memoryGb }), /memoryGb: must be at least 0\.5/)
  assert.match(await refusal({ memoryGb: 'aut' }), /memoryGb: must be a number of GB, or auto/)
  assert.match(await refusal({ memoryGb: 0.7001 }), /must be a whole number of MiB/)
})

test('a share counts as its part of a card in quotas and bills', async t => {
  const { rig } = await openCard(t)
  const id = await sharing(rig, 'chat', 8)
  await ready(rig)
  const { json } = await rig.ask('GET', `/v2/account/accounts/${DEFAULT_OWNER}/quotas`)
  assert.deepEqual(json.quotas.gpus, { used: 0.34, limit: null })
  const [worker] = await rig.alive(id)
  const flavor = billedFlavor(worker!.placement, gpus({ memoryGb: 8 }))
  assert.equal(billedFlavor(null, gpus({ memoryGb: 8 })), flavor, 'also before it has a card')
  const prices = { ...NO_PRICES, gpu: new Map([['ADA_24', 1_000_000]]) }
  assert.deepEqual([flavor, hourlyPrice(prices, flavor).micros], ['gpu:ADA_24:0.34', 340_000])
})
