/** Shares of a card that are learned from what workers use: `gpu.memoryGb: auto`. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { EndpointId, WorkerId } from '../../../src/core/ids.ts'
import { aGpu, aMachine } from '../../support/machines.ts'
import { PlayedCard } from '../../support/played-cards.ts'
import { openRig, type Rig, type RigOptions } from '../../support/rig.ts'

/** A machine with a card of 24 GB, on which each worker has one process. */
class Machine {
  readonly rig: Rig
  readonly #card
  readonly #pids
  readonly #uses = new Map<number, number>()

  constructor(rig: Rig, card: PlayedCard, pids: Map<WorkerId, number>) {
    this.rig = rig
    this.#card = card
    this.#pids = pids
  }

  static async open(context: TestContext, options: RigOptions = {}): Promise<Machine> {
    const card = new PlayedCard()
    const pids = new Map<WorkerId, number>()
    const hold = async () => null
    const release = async () => {}
    const processes = (worker: WorkerId) => {
      return { members: async () => [{ pid: pids.get(worker) ?? 1, startTime: '1' }], hold, release }
    }
    const rig = await openRig(context, { gpuMeter: card, processes, ...options })
    rig.machine = aMachine([aGpu(0)])
    return new Machine(rig, card, pids)
  }

  /** An endpoint with one worker, by REST. */
  async endpoint(name: string, memoryGb: number | 'auto', fields: object = {}): Promise<EndpointId> {
    const body = {
      name,
      type: 'QUEUE',
      image: 'test/worker:1',
      gpu: { pools: ['ADA_24'], memoryGb },
      workers: { min: 1, max: 1 },
      scaling: { type: 'REQUEST_COUNT', requestCount: 1 },
      ...fields,
    }
    const { status, json, text } = await this.rig.ask('POST', '/v2/serverless', { body })
    assert.equal(status, 201, text)
    await this.rig.clock.advance(100)
    return json.id
  }

  /** The worker that was started last takes jobs. */
  async ready() {
    const worker = this.rig.worker(this.rig.fleet.started.length - 1)
    void worker.take()
    await this.rig.clock.advance(6_000)
    return worker
  }

  /** Sets the memory of workers on the card, and waits for the next measurements. */
  async uses(workers: WorkerId | readonly WorkerId[], mib: number): Promise<void> {
    for (const worker of [workers].flat()) {
      const pid = this.#pids.get(worker) ?? 4_000 + this.#pids.size
      this.#pids.set(worker, pid)
      this.#uses.set(pid, mib)
    }
    this.#card.programs = [...this.#uses].map(([id, used]) => ({ pid: id, name: 'python', mib: used }))
    await this.rig.clock.advance(12_000)
  }

  /** Lets the next measurement of the card wait. */
  holdMeasurements(): { readonly begun: Promise<void>; readonly goOn: () => void } {
    const [begun, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    this.#card.delay = () => {
      begun.resolve()
      return over.promise
    }
    return { begun: begun.promise, goOn: over.resolve }
  }

  async share(id: EndpointId): Promise<number | undefined | null> {
    const [worker] = await this.rig.alive(id)
    return worker === undefined ? null : worker.placement?.gpus[0]?.shareMb
  }

  /** The worker ends. */
  async ends(worker: WorkerId): Promise<void> {
    const pid = this.#pids.get(worker)
    if (pid !== undefined) this.#uses.delete(pid)
    this.#card.programs = [...this.#uses].map(([id, used]) => ({ pid: id, name: 'python', mib: used }))
    this.rig.fleet.exit(worker, { code: 1 })
    await this.rig.clock.advance(6_000)
  }

  /** The worker prints the error of its framework and ends. */
  async runsOut(worker: WorkerId): Promise<void> {
    this.rig.print(worker, 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.')
    await this.ends(worker)
  }
}

/** Serves one job. */
async function serve(rig: Rig, id: EndpointId, worker: ReturnType<Rig['worker']>): Promise<void> {
  const { json } = await rig.ask('POST', `/v2/${id}/run`, { body: { input: {} } })
  await rig.clock.advance(200)
  await worker.done(json.id)
  void worker.take()
  await rig.clock.advance(1_000)
}

test('the first worker has a whole card until it has worked; then its peak with a margin, and others get the rest', async t => {
  const machine = await Machine.open(t)
  const { rig } = machine
  const chat = await machine.endpoint('chat', 'auto')
  const worker = await machine.ready()
  assert.equal(worker.spec.protocolEnv.RUNYARD_GPU_MEMORY_MB, undefined)
  const notes = async () => (await rig.ask('GET', `/ops/why/${chat}`)).json.explanations[0].notes
  assert.match((await notes()).join(), /share of a GPU is learned .* until then a worker has a whole GPU/)
  const voice = await machine.endpoint('voice', 6)
  await machine.uses(worker.id, 5_000)
  assert.deepEqual([await machine.share(chat), await machine.share(voice)], [undefined, null], 'it has only loaded')
  assert.deepEqual(await rig.store.releases.gpuMemory(chat, 1), { peakMb: 5_000, hasWorked: false, failedMb: 0 })
  await serve(rig, chat, worker)
  await machine.uses(worker.id, 6_000)
  assert.equal(await machine.share(chat), 6_656, '6000 MiB, a tenth more, in steps of 256')
  assert.equal(await machine.share(voice), 6_144)
  assert.equal(rig.happened('worker.share_learned').at(-1)?.shareMb, 6_656)
  assert.deepEqual(await notes(), [])
  const { json } = await rig.ask('GET', `/v2/serverless/${chat}`)
  assert.equal(json.gpu.memoryGb, 'auto')
})

test('later workers of the release get the learned share, also after a restart of the server; a new release learns again', async t => {
  const machine = await Machine.open(t)
  const { rig } = machine
  const chat = await machine.endpoint('chat', 'auto')
  const worker = await machine.ready()
  await serve(rig, chat, worker)
  await machine.uses(worker.id, 6_000)
  await rig.crash()
  await rig.start()
  await machine.ends(worker.id)
  assert.equal(await machine.share(chat), 6_656)
  const second = rig.worker(rig.fleet.started.length - 1)
  assert.equal(second.spec.protocolEnv.RUNYARD_GPU_MEMORY_MB, '6656')
  await rig.ask('PATCH', `/v2/serverless/${chat}`, { body: { env: { MODEL: 'other' } } })
  await machine.ends(second.id)
  assert.equal(await machine.share(chat), undefined, 'a whole card')
})

test('a share rises with the use of its worker while its card has room', async t => {
  const machine = await Machine.open(t)
  const { rig } = machine
  const chat = await machine.endpoint('chat', 'auto')
  const worker = await machine.ready()
  await serve(rig, chat, worker)
  await machine.uses(worker.id, 6_000)
  await machine.uses(worker.id, 9_000)
  assert.equal(await machine.share(chat), 9_984)
  await machine.uses(worker.id, 2_000)
  assert.equal(await machine.share(chat), 9_984, 'a peak is kept')
  assert.equal(rig.happened('worker.over_share').length, 1)
})

test('workers whose use rises at the same time never get more of a card than it has', async t => {
  const machine = await Machine.open(t)
  const { rig } = machine
  const chat = await machine.endpoint('chat', 'auto', { workers: { min: 2, max: 2 } })
  const first = await machine.ready()
  await serve(rig, chat, first)
  await machine.uses(first.id, 5_000)
  const second = await machine.ready()
  assert.deepEqual(await shares(rig, chat), [5_632, 5_632])
  await machine.uses([first.id, second.id], 12_000)
  assert.deepEqual(await shares(rig, chat), [5_632, 13_312])
})

test('a share never rises into the room that a new worker gets in the same moment', async t => {
  const machine = await Machine.open(t)
  const { rig } = machine
  const chat = await machine.endpoint('chat', 'auto')
  const worker = await machine.ready()
  await serve(rig, chat, worker)
  await machine.uses(worker.id, 5_000)
  const measured = machine.holdMeasurements()
  const rises = machine.uses(worker.id, 12_000)
  await measured.begun
  const voice = await machine.endpoint('voice', 12)
  measured.goOn()
  await rises
  assert.deepEqual([await shares(rig, chat), await shares(rig, voice)], [[5_632], [12_288]])
})

async function shares(rig: Rig, id: EndpointId): Promise<(number | undefined)[]> {
  const workers = await rig.alive(id)
  return workers.map(({ placement }) => placement?.gpus[0]?.shareMb).sort((a = 0, b = 0) => a - b)
}

test('a share does not rise beyond the limit of GPUs of its account', async t => {
  const machine = await Machine.open(t)
  const { rig } = machine
  const { json: account } = await rig.ask('POST', '/v2/account/accounts', { body: { name: 'Ada' } })
  const { json: key } = await rig.ask('POST', '/v2/account/keys', { body: { name: 'a', account: account.id } })
  const gpu = { gpuIds: 'ADA_24', gpuMemoryAuto: true, instanceIds: undefined, workersMin: 1, workersMax: 1 }
  const chat = await rig.endpoint({ ...gpu, name: 'chat' }, key)
  await rig.clock.advance(100)
  const worker = await machine.ready()
  const job = await rig.submit(chat, { input: {} }, { key: key.key })
  await rig.clock.advance(200)
  await worker.done(job)
  void worker.take()
  await machine.uses(worker.id, 6_000)
  assert.equal(await machine.share(chat), 6_656)
  const limits = { gpus: 0 }
  const { status, text } = await rig.ask('PATCH', `/v2/account/accounts/${account.id}`, { body: { limits } })
  assert.equal(status, 200, text)
  await machine.uses(worker.id, 9_000)
  assert.equal(await machine.share(chat), 6_656)
})

test('a program that takes what it is given starts with what its catalog names, and gets more when it fails with it', async t => {
  const machine = await Machine.open(t)
  const { rig } = machine
  const image = 'runpod/worker-v1-vllm:v2.9.0'
  const chat = await machine.endpoint('chat', 'auto', { image })
  const worker = await machine.ready()
  assert.equal(worker.spec.env.GPU_MEMORY_UTILIZATION, '0.666')
  await serve(rig, chat, worker)
  await machine.uses(worker.id, 16_000)
  assert.equal(await machine.share(chat), 16_384, 'its use says nothing')
  await machine.runsOut(worker.id)
  assert.equal(await machine.share(chat), 20_480)
  assert.equal(rig.worker(rig.fleet.started.length - 1).spec.env.GPU_MEMORY_UTILIZATION, '0.833')
})

test('when a worker fails for want of memory, the neighbor beyond its share is drained, and keeps its job', async t => {
  const machine = await Machine.open(t)
  const { rig } = machine
  const greedy = await machine.endpoint('greedy', 8)
  const taker = await machine.ready()
  const modest = await machine.endpoint('modest', 8)
  const victim = await machine.ready()
  const { json } = await rig.ask('POST', `/v2/${greedy}/run`, { body: { input: {} } })
  await machine.uses(victim.id, 7_000)
  await machine.uses(taker.id, 14_000)
  const [over] = rig.happened('worker.over_share')
  assert.deepEqual([over?.workerId, over?.shareMb, over?.usedMb], [taker.id, 8_192, 14_000])
  const { json: report } = await rig.ask('GET', '/v2/machine')
  const beyond = report.gpus[0].holders.map((holder: { beyondMb: number }) => holder.beyondMb)
  assert.deepEqual(beyond, [5_808, 0])
  const { json: why } = await rig.ask('GET', `/ops/why/${greedy}`)
  assert.match(why.explanations[0].notes.join(), /uses 13\.7 GB of GPU 0, and its share is 8 GB; raise gpu\.memoryGb/)
  await machine.runsOut(victim.id)
  const state = async () => (await rig.store.workers.find(taker.id))?.state
  assert.equal(await state(), 'DRAINING')
  await taker.done(json.id)
  await rig.clock.advance(2_000)
  assert.match(String(await state()), /STOPPING|EXITED/)
  assert.equal((await rig.store.workers.find(taker.id))?.stopReason, 'over_share')
  const { json: job } = await rig.ask('GET', `/v2/${greedy}/status/${json.id}`)
  assert.equal(job.status, 'COMPLETED')
  assert.equal((await rig.alive(modest)).length, 1)
})

test('a learned share with which its own worker failed grows, without a neighbor beyond its share', async t => {
  const machine = await Machine.open(t)
  const { rig } = machine
  const chat = await machine.endpoint('chat', 'auto')
  const worker = await machine.ready()
  await serve(rig, chat, worker)
  await machine.uses(worker.id, 6_000)
  await machine.runsOut(worker.id)
  assert.equal(await machine.share(chat), 8_448, 'a quarter more than 6656')
})

test('every surface has auto, and takes it away again', async t => {
  const { rig, endpoint } = await openSurfaces(t)
  const rest = async () => (await rig.ask('GET', `/v2/serverless/${endpoint}`)).json.gpu.memoryGb
  const v1 = async () => (await rig.ask('GET', `/v1/endpoints/${endpoint}`)).json.gpuMemoryGb
  const save = 'mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { gpuMemoryGb gpuMemoryAuto } }'
  const saved = async (input: object) => {
    const variables = { input: { id: endpoint, name: 'chat', ...input } }
    const { json } = await rig.ask('POST', '/graphql', { body: { query: save, variables } })
    return json.errors === undefined ? Object.values(json.data.saveEndpoint) : json.errors[0].message
  }
  assert.deepEqual([await rest(), await v1(), await saved({})], ['auto', 'auto', [null, true]])
  assert.deepEqual(await saved({ gpuMemoryGb: 4 }), [4, false])
  assert.deepEqual(await saved({ gpuMemoryAuto: true }), [null, true])
  assert.match(await saved({ gpuMemoryAuto: true, gpuMemoryGb: 4 }), /gpuMemoryAuto: true excludes gpuMemoryGb/)
  assert.deepEqual(await saved({ gpuMemoryAuto: false }), [null, false])
  await rig.ask('PATCH', `/v1/endpoints/${endpoint}`, { body: { gpuMemoryGb: 'auto' } })
  assert.equal(await rest(), 'auto')
  const { status, text } = await rig.ask('PATCH', `/v2/serverless/${endpoint}`, { body: { gpu: { count: 2 } } })
  assert.equal(status, 400)
  assert.match(text, /is a share of one GPU, so gpu\.count must be 1/)
})

async function openSurfaces(t: TestContext) {
  const machine = await Machine.open(t)
  return { rig: machine.rig, endpoint: await machine.endpoint('chat', 'auto') }
}
