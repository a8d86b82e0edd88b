/** Refreshes of an endpoint overlap. In any order of their ends, the gateway receives the present state. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { NO_TRAFFIC } from '../../../src/core/balancing/traffic.ts'
import type { EndpointId } from '../../../src/core/ids.ts'
import type { EndpointSnapshot } from '../../../src/core/scaling/scale.ts'
import { createNoDriver } from '../../../src/drivers/routed.ts'
import type { Store } from '../../../src/ports/store/store.ts'
import { LoadBalancer } from '../../../src/services/balancing/load-balancer.ts'
import { balancedEndpoint } from '../../support/balanced.ts'
import { portsWith } from '../../support/ports.ts'
import { openRig, type Rig } from '../../support/rig.ts'

/** A look whose read of the store is answered when the test says so. */
interface Look {
  readonly done: Promise<EndpointSnapshot | null>
  /** The store answers with the endpoint as it was when the look began. */
  answer(): Promise<void>
}

async function openLooks(t: TestContext) {
  const rig: Rig = await openRig(t)
  const id: EndpointId = await balancedEndpoint(rig, { workersMin: 1 })
  await rig.clock.advance(5_000)
  let gate: Promise<void> = Promise.resolve()
  const store = {
    workers: rig.store.workers,
    templates: rig.store.templates,
    endpoints: {
      snapshot: async (of: EndpointId) => {
        const opened = gate
        const read = await rig.store.endpoints.snapshot(of)
        await opened
        return read
      },
    },
  } as unknown as Store
  const changes: string[] = []
  const { clock, vault, notifier } = rig
  const driver = createNoDriver({ kind: 'containers_off' })
  const balancing = new LoadBalancer(portsWith({ store, clock, vault, notifier, driver }), {
    keep: (_, targets) => void changes.push(`keep ${targets.length}`),
    setCircuit: () => {},
    forget: () => void changes.push('forget'),
    load: () => NO_TRAFFIC,
    busyMs: () => 0,
  })
  const begin = async (): Promise<Look> => {
    const { promise, resolve } = Promise.withResolvers<void>()
    gate = promise
    const done = balancing.refresh(id)
    gate = Promise.resolve()
    // It has read what there is.
    await rig.clock.settle()
    const answer = async () => {
      resolve()
      await done
    }
    return { done, answer }
  }
  const remove = async () => assert.equal((await rig.ask('DELETE', `/v2/serverless/${id}`)).status, 204)
  const becomes = async (type: 'QB' | 'LB') => {
    const scaler = { scalerType: 'REQUEST_COUNT', scalerValue: 4 }
    await rig.change(id, { type, ...scaler })
  }
  return { rig, id, balancing, changes, begin, remove, becomes }
}

test('a refresh that began before its endpoint was deleted reports nothing of it afterwards', async t => {
  const { rig, balancing, changes, begin, remove, id } = await openLooks(t)
  await balancing.refresh(id)
  const early = await begin()
  await remove()
  assert.equal(await balancing.refresh(id), null)
  assert.deepEqual(changes, ['keep 1', 'forget'])
  await early.answer()
  await rig.clock.settle()
  assert.deepEqual(changes, ['keep 1', 'forget'])
  assert.deepEqual(balancing.workers(), [], 'nobody is asked for its health any more')
  assert.equal(await balancing.refresh(id), null)
  assert.deepEqual(changes, ['keep 1', 'forget'])
})

test('so does the first refresh', async t => {
  const { balancing, changes, begin, remove, id } = await openLooks(t)
  const early = await begin()
  await remove()
  await balancing.refresh(id)
  await early.answer()
  assert.deepEqual([changes, balancing.workers()], [[], []])
})

test('an endpoint that became a queue, and a load balancer again, is reported as it is', async t => {
  const { balancing, changes, begin, becomes, id } = await openLooks(t)
  const balanced = await begin()
  await becomes('QB')
  const queue = await begin()
  await queue.answer()
  await balanced.answer()
  assert.equal(changes.length, 0)
  const late = await begin()
  await becomes('LB')
  await balancing.refresh(id)
  await late.answer()
  assert.deepEqual(
    changes.map(text => text.split(' ')[0]),
    ['keep'],
  )
})

test('of two refreshes the one that began later is reported last, and its settings stay', async t => {
  const { rig, balancing, changes, begin, id } = await openLooks(t)
  const early = await begin()
  await rig.change(id, { env: [{ key: 'RUNYARD_MAX_CONCURRENCY', value: '3' }] })
  const late = await balancing.refresh(id)
  assert.equal(late?.requests?.maxConcurrency, 3)
  await early.answer()
  assert.equal(changes.length, 1)
  assert.equal((await balancing.snapshot(id))?.requests?.maxConcurrency, 3)
})
