/**
 * One card, several models in turn: a worker that sleeps gives its GPU to others of its account, and
 * needs that very one to wake.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PlayedGpus } from '../../../sim/played-gpus.ts'
import type { HealthAnswer } from '../../../src/core/balancing/health-check.ts'
import type { EndpointId } from '../../../src/core/ids.ts'
import { type BalancedRig, balancedEndpoint, openBalancedRig } from '../../support/balanced.ts'
import { aGpu, aMachine } from '../../support/machines.ts'
import type { Rig, RigOptions } from '../../support/rig.ts'

const ENV = [
  { key: 'RUNYARD_SLEEP_URL', value: '/sleep' },
  { key: 'RUNYARD_WAKE_URL', value: '/wake_up' },
]
const MODEL = {
  flashBootType: 'FLASHBOOT',
  idleTimeout: 3_600,
  env: ENV,
  gpuIds: 'ADA_24',
  instanceIds: undefined,
  workersMax: 1,
}

async function openCard(t: Parameters<typeof openBalancedRig>[0], cards = 1, options: RigOptions = {}) {
  const balanced = await openBalancedRig(t, options)
  balanced.rig.machine = aMachine(Array.from({ length: cards }, (_, index) => aGpu(index)))
  const model = (fields: object = {}) => balancedEndpoint(balanced.rig, { ...MODEL, ...fields })
  return { rig: balanced.rig, gateway: () => balanced.gateway, model, ...doing(balanced) }
}

function doing(balanced: BalancedRig) {
  const { rig } = balanced
  const alive = async (id: EndpointId) => (await rig.store.workers.list(id)).filter(({ state }) => state !== 'EXITED')
  const awake = async () =>
    (await rig.store.workers.alive()).filter(({ state, asleepAtMs }) => state !== 'FROZEN' || asleepAtMs === null)
  return {
    alive,
    /**
     * Lets a request wait until a worker is ready, has it served, and leaves the worker idle.
     * @returns its wait, in milliseconds
     */
    async request(id: EndpointId, mostMs: number): Promise<number> {
      const { gateway } = balanced
      gateway.wait(id, 1)
      for (let waitedMs = 0; waitedMs <= mostMs; waitedMs += 100) {
        assert.ok((await awake()).length <= 1 || rig.machine.gpus.length > 1, 'never two awake on one card')
        const [ready] = gateway.ready(id)
        if (ready !== undefined) {
          gateway.wait(id, 0)
          gateway.serve(id, ready, 1)
          await rig.clock.advance(100)
          gateway.serve(id, ready, 0)
          await rig.clock.advance(10)
          return waitedMs
        }
        await rig.clock.advance(100)
      }
      const why = (await rig.store.workers.list(id)).map(({ state, wakeWaitsFor }) => `${state} ${wakeWaitsFor}`)
      assert.fail(`no worker within ${mostMs} ms: ${why.join(', ')}`)
    },
  }
}

test('two models take turns on one card: each sleeps for the other and wakes again, and no model is started twice', async t => {
  const { rig, model, alive, request } = await openCard(t)
  const [a, b] = [await model(), await model()]
  await request(a, 2_000)
  const [first] = await alive(a)
  await request(b, 40_000)
  const [second] = await alive(b)
  assert.deepEqual([second!.placement?.gpus[0]?.index, (await alive(a))[0]?.asleepAtMs !== null], [0, true])
  for (let turn = 0; turn < 3; turn += 1) {
    await request(a, 40_000)
    assert.notEqual((await alive(b))[0]?.asleepAtMs, null)
    await request(b, 40_000)
    assert.notEqual((await alive(a))[0]?.asleepAtMs, null)
  }
  const ids = async (id: EndpointId) => (await rig.store.workers.list(id)).map(worker => worker.id)
  assert.deepEqual([await ids(a), await ids(b)], [[first!.id], [second!.id]], 'each was started once')
})

test('a worker that woke keeps the card for its minimum time, and why says what the other one waits for', async t => {
  const { rig, gateway, model, alive, request } = await openCard(t)
  const [a, b] = [await model({ name: 'a' }), await model({ name: 'b' })]
  await request(a, 2_000)
  await request(b, 40_000)
  gateway().wait(a, 1)
  await rig.clock.advance(5_000)
  const [sleeper] = await alive(a)
  assert.equal(sleeper!.state, 'FROZEN')
  const { cause, summary } = await rig.why(a)
  assert.equal(cause, 'no_capacity')
  assert.match(summary, /sleeps and wakes once it has its GPU memory again: its GPU 0 is in use by endpoint b/)
  await request(a, 40_000)
  assert.equal((await alive(a))[0]?.id, sleeper!.id)
})

test('a worker that only confirmed its sleep ends for another account, also where the machine can suspend workers', async t => {
  const gpuSuspender = ({ clock, fleet }: Rig) =>
    new PlayedGpus({ clock, isFrozen: worker => fleet.frozen.has(worker), isAlive: () => true }).suspender()
  const { rig, model, alive, request } = await openCard(t, 1, { gpuSuspender })
  const { json: account } = await rig.ask('POST', '/v2/account/accounts', { body: { name: 'Ada' } })
  const { json: other } = await rig.ask('POST', '/v2/account/keys', { body: { name: 'a', account: account.id } })
  const [a, b] = [await model(), await model()]
  await request(a, 2_000)
  await request(b, 40_000)
  assert.notEqual((await alive(a))[0]?.asleepAtMs, null)
  const [sleeper] = await alive(a)
  await rig.ask('DELETE', `/v2/serverless/${b}`)
  await rig.clock.advance(60_000)
  const { instanceIds, gpuIds } = MODEL
  const theirs = await rig.endpoint({ instanceIds, gpuIds, name: 'theirs', workersMin: 1 }, { key: other.key })
  await rig.clock.advance(5_000)
  assert.equal((await alive(theirs)).length, 1)
  assert.equal((await rig.store.workers.find(sleeper!.id))?.state, 'EXITED')
})

test('a worker that does not sleep keeps its card, and ends for another', async t => {
  const { rig, model, alive, request } = await openCard(t)
  const [a, b] = [await model(), await model()]
  rig.probes.posted = () => ({ status: 500 })
  await request(a, 2_000)
  await request(b, 60_000)
  assert.deepEqual(await alive(a), [])
})

test('a sleeping worker whose card is busy ends where a new one has room on another card', async t => {
  const { rig, gateway, model, alive, request } = await openCard(t)
  const [a, b] = [await model(), await model()]
  await request(a, 2_000)
  const [sleeper] = await alive(a)
  await request(b, 40_000)
  gateway().serve(b, (await alive(b))[0]!.id, 1)
  rig.machine = aMachine([aGpu(0), aGpu(1)])
  await request(a, 10_000)
  const [fresh] = await alive(a)
  assert.notEqual(fresh!.id, sleeper!.id)
  assert.equal(fresh!.placement?.gpus[0]?.index, 1)
})

test('a worker that is being put to sleep is waited for, and does not end', async t => {
  const { rig, gateway, model, alive, request } = await openCard(t)
  const [a, b, c] = [await model(), await model(), await model()]
  await request(a, 2_000)
  await rig.clock.advance(30_000)
  const asleep = Promise.withResolvers<HealthAnswer>()
  rig.probes.posted = () => asleep.promise
  gateway().wait(b, 1)
  await rig.clock.advance(500)
  gateway().wait(c, 1)
  await rig.clock.advance(20_000)
  assert.deepEqual([(await alive(a))[0]?.state, (await alive(b)).length, (await alive(c)).length], ['FROZEN', 0, 0])
  asleep.resolve({ status: 200 })
  await rig.clock.advance(500)
  assert.notEqual((await alive(a))[0]?.asleepAtMs, null)
  assert.equal((await alive(b)).length, 1)
})

test('a server that starts knows which workers sleep', async t => {
  const { rig, gateway, model, alive, request } = await openCard(t)
  const [a, b] = [await model(), await model()]
  await request(a, 2_000)
  await request(b, 40_000)
  const posts = rig.probes.posts.length
  await rig.crash()
  await rig.start()
  gateway().wait(a, 1)
  await rig.clock.advance(5_000)
  assert.equal((await alive(a))[0]?.state, 'FROZEN', 'its card is in use')
  assert.equal(rig.probes.posts.length, posts)
  await request(a, 40_000)
  assert.deepEqual(
    rig.probes.posts.slice(posts).map(({ path }) => path),
    ['/sleep', '/wake_up'],
  )
})
