/** The gateway's lines and the control loops together: requests find workers, and workers come and go for requests. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId, WorkerId } from '../../../src/core/ids.ts'
import { WorkerStartError } from '../../../src/core/workers/start-failure.ts'
import type { Affinity, Reservation, WorkerRequest } from '../../../src/gateway/queue/reservation.ts'
import { balancedEndpoint } from '../../support/balanced.ts'
import { aGpu, aMachine } from '../../support/machines.ts'
import { REFUSED } from '../../support/mock-probes.ts'
import { openRig, type Rig } from '../../support/rig.ts'

function reserve(rig: Rig, endpointId: EndpointId, affinity: Affinity | null = null): Promise<Reservation> {
  const { signal } = new AbortController()
  return rig.lines.reserve({ endpointId, affinity, avoid: [], signal })
}

/** A request whose worker exists already. */
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

/** Refusals of the requests that arrive now; empty for one that waits. */
async function refused(rig: Rig, id: EndpointId, wish: Partial<WorkerRequest> = {}): Promise<string[]> {
  const { signal } = new AbortController()
  const said: string[] = []
  rig.lines.reserve({ endpointId: id, affinity: null, avoid: [], signal, ...wish }).then(
    reservation => reservation.release('answered'),
    ({ status, message, retryAfterSeconds }) => said.push(`${status} ${message} (${retryAfterSeconds} s)`),
  )
  await rig.clock.advance(200)
  return said
}

const NO_SECRET =
  '400 no workers available: no worker can be started: the environment refers to secrets that do not exist: HF (30 s)'

test('where a secret is missing, requests are refused at once with the cause, and wait as soon as it is there', async t => {
  const rig = await openRig(t)
  const id = await balancedEndpoint(rig, { env: [{ key: 'HF_TOKEN', value: '{{ RUNPOD_SECRET_HF }}' }] })
  assert.deepEqual(await refused(rig, id), [NO_SECRET])
  assert.deepEqual(await refused(rig, id), [NO_SECRET])
  assert.deepEqual(await refused(rig, id, { affinity: resume('gone' as WorkerId) }), [
    '404 affinity_worker_gone (undefined s)',
  ])
  assert.deepEqual(await refused(rig, id, { isAnonymous: true }), ['400 no workers available (30 s)'])
  assert.equal(rig.lines.waiting, 0)
  const { cause, summary } = await rig.why(id)
  assert.deepEqual([cause, NO_SECRET.includes(summary)], ['secret_missing', true])
  await rig.clock.advance(5_000)
  await rig.graphql('mutation { secretCreate(input: { name: "HF", value: "x" }) { id } }')
  const reservation = await served(rig, id)
  assert.equal(rig.fleet.started.length, 1)
  reservation.release('answered')
})

test('requests outlast a cold start and a first crash, and are refused while a crash loop has a long back-off', async t => {
  const rig = await openRig(t)
  rig.probes.usual = REFUSED
  const id = await balancedEndpoint(rig)
  assert.deepEqual(await refused(rig, id), [])
  const crash = async () => {
    rig.print(rig.fleet.running()[0]!, 'the password is hunter2')
    rig.fleet.exit(rig.fleet.running()[0]!, { code: 3 })
    await rig.clock.advance(100)
  }
  for (const backoffMs of [1_000, 2_000, 4_000]) {
    await rig.clock.advance(20_000)
    await crash()
    assert.equal(rig.lines.waiting, 1)
    await rig.clock.advance(backoffMs + 100)
  }
  await crash()
  assert.equal(rig.lines.waiting, 0)
  const [said] = await refused(rig, id)
  assert.match(
    said ?? '',
    /^400 no workers available: the last 4 workers crashed; the last one exited with code 3; the next one starts in 8 s \(8 s\)$/,
  )
  await rig.clock.advance(8_000)
  assert.deepEqual(await refused(rig, id), [], 'the next worker may be a good one')
  rig.probes.usual = { status: 200 }
  const reservation = await served(rig, id)
  reservation.release('answered')
})

test('a change that ends the back-off lets requests wait again at once', async t => {
  const rig = await openRig(t)
  rig.probes.usual = REFUSED
  const id = await balancedEndpoint(rig)
  void refused(rig, id)
  for (let crashes = 0; crashes < 4; crashes += 1) {
    await rig.clock.advance(10_000)
    if (rig.lines.waiting > 0) rig.fleet.exit(rig.fleet.running()[0]!, { code: 1 })
  }
  await rig.clock.advance(100)
  assert.equal(rig.lines.waiting, 0)
  await rig.change(id, { env: [{ key: 'MENDED', value: 'yes' }] })
  await rig.clock.advance(100)
  assert.deepEqual(await refused(rig, id), [])
})

test('a missing image fails once, and an unreachable registry is tried again', async t => {
  let cause = 'manifest for a/b:1 not found'
  const onStart = () => Promise.reject(new WorkerStartError({ kind: 'engine_refused', said: cause }))
  const rig = await openRig(t, { onStart })
  const id = await balancedEndpoint(rig)
  const [said] = await refused(rig, id)
  assert.match(
    said ?? '',
    /^400 no workers available: the last worker could not be started: .*manifest for a\/b:1 not found/,
  )
  cause = 'dial tcp: lookup registry: no such host'
  const other = await balancedEndpoint(rig)
  assert.deepEqual(await refused(rig, other), [])
})

const ENGINE_AWAY = { kind: 'engine_away', how: 'unresponsive', address: null, said: 'no answer within 10 s' } as const

test('requests wait for an engine that is unavailable, since it may come back', async t => {
  const rig = await openRig(t, { check: () => ENGINE_AWAY })
  const id = await balancedEndpoint(rig)
  assert.deepEqual(await refused(rig, id), [])
  await rig.clock.advance(60_000)
  assert.equal(rig.lines.waiting, 1)
})

test('requests for GPUs that the machine does not have are refused, and those for GPUs in use wait', async t => {
  const rig = await openRig(t, { placing: { requireGpu: true } })
  const onGpus = { instanceIds: undefined, gpuIds: 'ADA_24', scalerValue: 1, workersMax: 2 }
  const id = await balancedEndpoint(rig, onGpus)
  const [said] = await refused(rig, id)
  assert.match(said ?? '', /^400 no workers available: there is no room for a worker: there is no GPU of pool ADA_24/)
  rig.machine = aMachine([aGpu(0)])
  await rig.clock.advance(40_000)
  const reservation = await served(rig, id)
  assert.deepEqual(await refused(rig, await balancedEndpoint(rig, onGpus)), [])
  reservation.release('answered')
})

test('a worker keeps serving while no other one can start', async t => {
  const rig = await openRig(t)
  const id = await balancedEndpoint(rig, { scalerValue: 1, workersMax: 3 })
  const first = await served(rig, id)
  await rig.change(id, { env: [{ key: 'HF_TOKEN', value: '{{ RUNPOD_SECRET_HF }}' }] })
  await rig.clock.advance(3_000)
  const second = await served(rig, id)
  assert.equal(second.workerId, first.workerId)
  for (const one of [first, second]) one.release('answered')
})

test('a request with strict affinity to a worker that has ended gets it back under its id', async t => {
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

test('a request with strict affinity to a worker of another endpoint, or to a missing one, is refused', async t => {
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

test('requests in flight at a deleted endpoint are finished, and keep their worker until then', async t => {
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

test('during requests, a release refuses no request and ends each old worker after its last one', async t => {
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
