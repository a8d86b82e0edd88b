/** The clock of the machine is set: what runs and waits goes on, and what was kept stays. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId, JobId } from '../../../src/core/ids.ts'
import { CLOCK_DOUBT_MS } from '../../../src/core/server-time.ts'
import type { ClockStep } from '../../../src/ports/clock.ts'
import type { KeptClock } from '../../../src/ports/store/clock-store.ts'
import { TimeKeeper } from '../../../src/services/observing/server-time.ts'
import { openRig, type Rig } from '../../support/rig.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

const clockOf = async (rig: Rig) => (await rig.ask('GET', '/ops/clock')).json
const answerOf = (rig: Rig, endpoint: EndpointId, id: JobId) => rig.ask('GET', `/v2/${endpoint}/status/${id}`)
const statusOf = async (rig: Rig, endpoint: EndpointId, id: JobId) => (await answerOf(rig, endpoint, id)).json.status

/** A job that waits, with a key that is used once. */
async function queued(rig: Rig, endpoint: EndpointId, key: string): Promise<JobId> {
  const headers = { 'idempotency-key': key }
  return (await rig.ask('POST', `/v2/${endpoint}/run`, { headers, body: { input: {} } })).json.id
}

async function auditEntries(rig: Rig): Promise<number> {
  return (await rig.ask('GET', '/v2/audit?limit=1000')).json.entries.length
}

/** A server with a result that is kept, a job that runs for 8 s at most, and a job that waits. */
async function busyRig(t: Parameters<typeof openRig>[0]) {
  const rig = await openRig(t, { serverTime: true })
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const done = await rig.submit(endpoint, { input: {} })
  await worker.takeJob()
  await worker.done(done)
  const running = await rig.submit(endpoint, { input: {}, policy: { executionTimeout: 8_000 } })
  await worker.takeJob()
  return { rig, endpoint, worker, done, running, waits: await queued(rig, endpoint, 'once') }
}

for (const byMs of [-2 * HOUR_MS, HOUR_MS, 400 * DAY_MS, -365 * DAY_MS]) {
  test(`at a step by ${byMs / HOUR_MS} h a timeout comes when it is due, and results, jobs, keys and entries stay`, async t => {
    const { rig, endpoint, done, running, waits } = await busyRig(t)
    const entries = await auditEntries(rig)
    await rig.clock.advance(4_000)
    rig.clock.set(byMs)
    await rig.clock.advance(3_000)
    assert.equal(await statusOf(rig, endpoint, running), 'IN_PROGRESS')
    await rig.clock.advance(2_000)
    assert.equal(await statusOf(rig, endpoint, running), 'TIMED_OUT')
    await rig.clock.advance(70_000)
    assert.equal(await statusOf(rig, endpoint, done), 'COMPLETED')
    assert.equal(await statusOf(rig, endpoint, waits), 'IN_QUEUE')
    assert.equal(await queued(rig, endpoint, 'once'), waits)
    assert.ok((await auditEntries(rig)) >= entries)
    const steps = rig.happened('clock.stepped')
    assert.deepEqual([steps.map(event => event.byMs), (await clockOf(rig)).stepMs], [[byMs], byMs])
    const { notes } = (await rig.ask('GET', `/ops/why/${endpoint}`)).json.explanations[0]
    assert.match(notes.join(), /the clock of this machine is .* the time of the server/)
    rig.clock.set(-byMs)
    await rig.clock.advance(3_000)
    assert.equal(rig.happened('clock.agrees').length, 1)
  })

  test(`a retry of a webhook and the back-off of a crash keep their time at a step by ${byMs / HOUR_MS} h`, async t => {
    const rig = await openRig(t, { serverTime: true })
    rig.outbound.answer = () => ({ status: 500 })
    const endpoint = await rig.endpoint({ workersMax: 0 })
    const id = await rig.submit(endpoint, { input: {}, webhook: 'https://example.com/hook' })
    await rig.ask('POST', `/v2/${endpoint}/cancel/${id}`)
    const { endpoint: crashing } = await rig.endpointWithWorker()
    rig.fleet.exit(rig.worker(-1).id, { code: 1 })
    await rig.clock.advance(100)
    const calls = rig.outbound.calls.length
    assert.ok(calls > 0)
    rig.clock.set(byMs)
    await rig.clock.advance(15_000)
    assert.ok(rig.outbound.calls.length > calls, 'it was tried again')
    assert.equal((await rig.alive(crashing)).length, 1, 'another worker was started')
  })
}

test('between two starts in one run of the system nothing moves; an accepted time moves with what runs, and retention applies', async t => {
  const { rig, endpoint, worker, done, running, waits } = await busyRig(t)
  await rig.crash()
  rig.clock.set(400 * DAY_MS)
  await rig.start()
  await rig.clock.advance(2_000)
  assert.deepEqual(
    [await statusOf(rig, endpoint, done), await statusOf(rig, endpoint, running)],
    ['COMPLETED', 'IN_PROGRESS'],
  )
  const accepted = await rig.ask('POST', '/ops/clock/accept')
  assert.equal(accepted.status, 200, accepted.text)
  assert.equal(rig.renewals, 1)
  await rig.crash()
  await rig.start()
  assert.deepEqual(
    rig.happened('clock.adopted').map(event => event.byMs),
    [400 * DAY_MS],
  )
  assert.equal((await answerOf(rig, endpoint, done)).status, 404)
  assert.equal(await statusOf(rig, endpoint, waits), 'IN_QUEUE')
  await rig.clock.advance(3_000)
  assert.equal(await statusOf(rig, endpoint, running), 'IN_PROGRESS')
  await rig.clock.advance(4_000)
  assert.equal(await statusOf(rig, endpoint, running), 'TIMED_OUT')
  assert.equal(await queued(rig, endpoint, 'once'), waits)
  assert.equal((await rig.ask('POST', '/ops/clock/accept')).status, 409)
  await worker.done(running, { error: 'stopped' })
  const { json } = await rig.ask('GET', '/v2/audit?limit=1000')
  assert.ok(json.entries.some(({ operation }: { operation: string }) => operation === 'acceptClock'))
})

test('a store that cannot move the time keeps no server from starting, and the next start takes it', async t => {
  const { rig, endpoint, waits } = await busyRig(t)
  rig.clock.set(HOUR_MS)
  await rig.ask('POST', '/ops/clock/accept')
  await rig.crash()
  rig.failNext('clock.adopt', 'before')
  await rig.start()
  assert.equal(rig.happened('clock.not_adopted').length, 1)
  assert.deepEqual([await statusOf(rig, endpoint, waits), (await clockOf(rig)).stepMs], ['IN_QUEUE', HOUR_MS])
  await rig.crash()
  await rig.start()
  assert.deepEqual([await statusOf(rig, endpoint, waits), (await clockOf(rig)).stepMs], ['IN_QUEUE', 0])
})

test('a time that is accepted backwards moves back-offs and timeouts with it', async t => {
  const { rig, endpoint, running } = await busyRig(t)
  rig.clock.set(-2 * HOUR_MS)
  await rig.clock.advance(2_000)
  assert.equal((await rig.ask('POST', '/ops/clock/accept')).status, 200)
  await rig.crash()
  await rig.start()
  assert.equal((await clockOf(rig)).stepMs, 0)
  await rig.clock.advance(7_000)
  assert.equal(await statusOf(rig, endpoint, running), 'TIMED_OUT')
})

test('after another start of the machine, more than a day later, retention waits for a day or until it is accepted', async t => {
  const { rig, endpoint, done, waits } = await busyRig(t)
  const entries = await auditEntries(rig)
  const beganMs = rig.clock.now()
  await rig.crash()
  rig.boot = 'boot-2'
  rig.clock.set(400 * DAY_MS)
  await rig.start()
  await rig.clock.advance(70_000)
  assert.deepEqual(
    [await statusOf(rig, endpoint, done), await statusOf(rig, endpoint, waits)],
    ['COMPLETED', 'IN_QUEUE'],
  )
  assert.equal(await queued(rig, endpoint, 'once'), waits)
  assert.ok((await auditEntries(rig)) >= entries)
  assert.equal(rig.happened('clock.held').length, 1)
  const { stepMs, heldUntil } = await clockOf(rig)
  assert.equal(stepMs, 0, 'the time of the machine is that of the server')
  assert.ok(Date.parse(heldUntil) > rig.clock.now() + DAY_MS - 120_000)
  assert.equal((await rig.ask('POST', '/ops/clock/accept')).json.heldUntil, null)
  await rig.clock.advance(20_000)
  const { json } = await rig.ask('GET', '/v2/audit?limit=1000')
  const isOld = ({ at }: { at: string }) => Date.parse(at) < beganMs + DAY_MS
  assert.deepEqual(json.entries.filter(isOld), [], 'entries that are older than their retention go')
})

test('only all rights of the operator accept a time', async t => {
  const rig = await openRig(t, { serverTime: true })
  rig.clock.set(HOUR_MS)
  const body = { name: 'reader', scope: { type: 'read-only' } }
  const { key } = (await rig.ask('POST', '/v2/account/keys', { body })).json
  assert.equal((await rig.ask('POST', '/ops/clock/accept', { key })).status, 403)
  assert.equal((await clockOf(rig)).stepMs, HOUR_MS)
})

test('a step that has lasted for a day is taken by itself, and one that comes and goes never', async () => {
  let step: ClockStep | null = { byMs: HOUR_MS, sinceMs: 1_000 }
  let renewals = 0
  const accepted: boolean[] = []
  const clock = {
    read: async (): Promise<KeptClock | null> => null,
    keep: async () => {},
    accept: async (is: boolean) => void accepted.push(is),
    hold: async () => {},
    endHold: async () => {},
    adopt: async () => {},
  }
  const mark = { boot: '', sinceBootMs: 0, nowMs: 0, step: null }
  const time = { read: () => ({ nowMs: 0, machineMs: 0, step }), mark: () => mark, resume: () => {} }
  const renew = () => {
    renewals += 1
  }
  const keeper = new TimeKeeper({ store: { clock }, time, emit: () => {} }, renew)
  await keeper.step(1_000 + CLOCK_DOUBT_MS - 1)
  assert.deepEqual(accepted, [])
  step = null
  await keeper.step(1_000 + CLOCK_DOUBT_MS)
  assert.deepEqual(accepted, [])
  step = { byMs: HOUR_MS, sinceMs: 1_000 }
  for (let n = 0; n < 3; n += 1) await keeper.step(1_000 + CLOCK_DOUBT_MS + n)
  assert.deepEqual([accepted, renewals], [[true], 1])
})
