/** The gateway's lines and the control loops together: requests find workers, and workers come and go for requests. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId, WorkerId } from '../../src/core/ids.ts'
import { REFUSED } from '../../src/drivers/mock-probes.ts'
import type { Affinity, Reservation } from '../../src/gateway/reservation.ts'
import { balancedEndpoint } from '../support/balanced.ts'
import { openRig, type Rig } from '../support/rig.ts'

function reserve(rig: Rig, endpointId: EndpointId, affinity: Affinity | null = null): Promise<Reservation> {
  const { signal } = new AbortController()
  return rig.lines.reserve({ endpointId, affinity, avoid: [], signal })
}

/** One request whose worker is there already. */
async function served(rig: Rig, id: EndpointId, affinity: Affinity | null = null): Promise<Reservation> {
  const promise = reserve(rig, id, affinity)
  await rig.clock.advance(2_000)
  return promise
}

const resume = (workerId: WorkerId): Affinity => ({ kind: 'strict-resume', workerId })

test('from zero, all requests that come at once are served in order of arrival, by one cold start', async t => {
  const rig = await openRig(t)
  const id = await balancedEndpoint(rig, { scalerValue: 100 })
  rig.probes.usual = REFUSED
  const order: number[] = []
  const all = Array.from({ length: 80 }, (_, index) =>
    reserve(rig, id).then(reservation => {
      order.push(index)
      return reservation
    }),
  )
  await rig.clock.advance(30_000)
  assert.deepEqual(order, [])
  rig.probes.usual = { status: 200 }
  await rig.clock.advance(2_000)
  assert.deepEqual(
    order,
    [...order].sort((a, b) => a - b),
  )
  const workers = new Set((await Promise.all(all)).map(({ workerId }) => workerId))
  assert.deepEqual([...workers], rig.fleet.running())
  assert.equal(rig.fleet.started.length, 1)
  assert.equal((await rig.health(id)).jobs.inProgress, 80)
})

test('a request that insists on a worker that has ended gets it back under its id', async t => {
  const rig = await openRig(t)
  const id = await balancedEndpoint(rig, { idleTimeout: 5 })
  const first = await served(rig, id)
  first.release('answered')
  await rig.clock.advance(20_000)
  assert.deepEqual(rig.fleet.running(), [])
  const again = await served(rig, id, resume(first.workerId))
  assert.equal(again.workerId, first.workerId)
  again.release('answered')
  await rig.clock.advance(20_000)
  assert.deepEqual(rig.fleet.running(), [])
})

test('a request that insists on a worker of another endpoint, or of none, is refused', async t => {
  const rig = await openRig(t)
  const id = await balancedEndpoint(rig, { idleTimeout: 1 })
  const other = await balancedEndpoint(rig, { idleTimeout: 1 })
  const first = await served(rig, id)
  first.release('answered')
  await rig.clock.advance(20_000)
  for (const worker of [first.workerId, 'nobody' as WorkerId]) {
    await assert.rejects(reserve(rig, other, resume(worker)), /affinity_worker_gone/)
  }
  assert.deepEqual(rig.fleet.running(), [])
})

test('requests in flight at an endpoint that is deleted may end, and keep their worker until then', async t => {
  const rig = await openRig(t)
  const id = await balancedEndpoint(rig)
  const busy = await served(rig, id)
  assert.equal((await rig.ask('DELETE', `/v2/serverless/${id}`)).status, 204)
  await rig.clock.advance(5_000)
  assert.deepEqual(rig.fleet.running(), [busy.workerId])
  busy.release('answered')
  await rig.clock.advance(1_200)
  assert.deepEqual(rig.fleet.running(), [])
})

test('while requests go on, a release refuses none and ends each old worker after its last request', async t => {
  const rig = await openRig(t)
  const id = await balancedEndpoint(rig, { workersMin: 2, workersMax: 4, scalerValue: 3 })
  await rig.clock.advance(1_000)
  const old = new Set(rig.fleet.running())
  const open: Reservation[] = []
  const load = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 100) {
      open.push(await reserve(rig, id))
      if (open.length > 5) open.shift()!.release('answered')
      for (const { workerId } of open) assert.ok(rig.fleet.running().includes(workerId))
      await rig.clock.advance(100)
    }
  }
  await load(2_000)
  await rig.change(id, { env: [{ key: 'RELEASE', value: '2' }] })
  await load(8_000)
  assert.deepEqual(
    rig.fleet.running().filter(worker => old.has(worker)),
    [],
  )
  assert.ok([...old].every(worker => rig.fleet.terminated.has(worker) && !rig.fleet.killed.has(worker)))
})
