/** Effects of other settings beside the recorded ones, as the owner of an endpoint requests them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId, OwnerId } from '../../../src/core/ids.ts'
import { openRig, type Rig } from '../../support/rig.ts'

const START_MS = 3_000
const RUN_MS = 1_000

async function whatIf(rig: Rig, endpoint: string, query = '', key?: string) {
  return rig.ask('GET', `/v2/serverless/${endpoint}/whatif?${query}`, key === undefined ? {} : { key })
}

/** Pairs of jobs, the second right after the first, with a pause after each pair in which idle workers end. */
async function pairs(rig: Rig, endpoint: EndpointId, count: number, pauseMs: number) {
  for (let n = 0; n < count; n += 1) {
    let job = await rig.submit(endpoint)
    await rig.clock.advance(START_MS)
    const worker = rig.worker(-1)
    for (const isLast of [false, true]) {
      assert.equal(await worker.takeJob(), job)
      await rig.clock.advance(RUN_MS)
      await worker.done(job, { output: 1 })
      if (!isLast) job = await rig.submit(endpoint)
    }
    await rig.clock.advance(pauseMs)
  }
}

async function pairedEndpoint(t: Parameters<typeof openRig>[0]) {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ idleTimeout: 5, workersMax: 2, scalerType: 'QUEUE_DELAY', scalerValue: 4 })
  await pairs(rig, endpoint, 6, 20_000)
  return { rig, endpoint }
}

test('the settings of today give what happened, and a longer idle timeout fewer cold starts for more idle time', async t => {
  const { rig, endpoint } = await pairedEndpoint(t)
  const { status, json } = await whatIf(rig, endpoint, 'idleTimeout=60')
  assert.equal(status, 200, JSON.stringify(json))
  const { recorded, assumed, today, other } = json
  assert.equal(recorded.attempts, 12)
  assert.equal(recorded.coldStarts, 6)
  assert.equal(today.coldStarts, 6)
  assert.equal(other.coldStarts, 1)
  assert.ok(Math.abs(assumed.startMs - START_MS) < 200, JSON.stringify(assumed))
  assert.equal(assumed.startFrom, 'WORKERS')
  assert.ok(Math.abs(today.waitMs.p99 - recorded.waitMs.p99) < 500, JSON.stringify(json))
  assert.ok(other.waitMs.p50 < today.waitMs.p99)
  assert.ok(other.workerHours.idle > today.workerHours.idle)
  assert.equal(today.idleTimeout, 5)
  assert.equal(other.idleTimeout, 60)
  assert.ok(json.notes[0].startsWith('only 12 attempts'), JSON.stringify(json.notes))
  await rig.clock.advance(60_000)
  assert.equal((await whatIf(rig, endpoint)).json.recorded.attempts, 12)
})

test('with FlashBoot the worker of the last job is thawed for the next one, for frozen time instead of starts', async t => {
  const { rig, endpoint } = await pairedEndpoint(t)
  const { status, json } = await whatIf(rig, endpoint, 'flashBootType=FLASHBOOT')
  assert.equal(status, 200, JSON.stringify(json))
  const { assumed, today, other, notes } = json
  assert.deepEqual([today.coldStarts, today.thaws, today.workerHours.frozen], [6, 0, 0])
  assert.deepEqual([other.coldStarts, other.thaws, other.flashBootType], [1, 5, 'FLASHBOOT'])
  assert.ok(other.workerHours.frozen > 0)
  assert.ok(other.workerHours.starting < today.workerHours.starting)
  assert.ok(other.waitMs.p99 <= today.waitMs.p99)
  assert.ok(assumed.thawMs > 0)
  assert.ok(
    notes.every((note: string) => !note.includes('frozen')),
    notes.join(),
  )
})

test('with one worker at most the waits of a burst are those that happened, and shorter with more', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ idleTimeout: 5, workersMax: 1, scalerType: 'REQUEST_COUNT', scalerValue: 1 })
  for (let burst = 0; burst < 5; burst += 1) {
    for (let n = 0; n < 4; n += 1) await rig.submit(endpoint)
    await rig.clock.advance(START_MS)
    const worker = rig.worker(-1)
    for (let n = 0; n < 4; n += 1) {
      const job = await worker.takeJob()
      await rig.clock.advance(10 * RUN_MS)
      await worker.done(job, { output: 1 })
    }
    await rig.clock.advance(60_000)
  }
  const { json } = await whatIf(rig, endpoint, 'workersMax=4')
  const { recorded, today, other } = json
  assert.equal(recorded.attempts, 20)
  assert.deepEqual([recorded.coldStarts, today.coldStarts, today.mostWorkers], [5, 5, 1])
  for (const part of ['p50', 'p95', 'p99']) {
    assert.ok(Math.abs(today.waitMs[part] - recorded.waitMs[part]) < 500, JSON.stringify(json))
  }
  assert.equal(other.mostWorkers, 4)
  assert.ok(other.waitMs.p95 < today.waitMs.p95 / 4, JSON.stringify(json))
  const runningH = (5 * 4 * 10 * RUN_MS) / 3_600_000
  assert.ok(Math.abs(today.workerHours.running - runningH) < 0.001, JSON.stringify(today))
})

/** Attempts of the last hour, one each second. */
async function recordHour(rig: Rig, endpointId: EndpointId) {
  await rig.clock.leap(3_600_000)
  const nowMs = rig.clock.now()
  const times = Array.from({ length: 3_500 }, (_, index) => {
    const queuedAtMs = nowMs - 3_599_000 + index * 1_000
    return { queuedAtMs, startedAtMs: queuedAtMs + 20, finishedAtMs: queuedAtMs + 520, cold: false }
  })
  await rig.store.attemptTimes.add([{ endpointId, times }])
}

/** A queue endpoint of another account, with a key of it. */
async function otherEndpoint(rig: Rig, owner: string) {
  const key = await rig.addKey(owner, { owner: owner as OwnerId })
  const body = { name: owner, type: 'QUEUE', image: 'image:1', scaling: { type: 'QUEUE_DELAY', queueDelay: 4 } }
  const cpu = [{ id: 'cpu3g', vcpuCount: 2 }]
  const { status, text, json } = await rig.ask('POST', '/v2/serverless', { key, body: { ...body, cpu } })
  assert.equal(status, 201, text)
  return { key, id: json.id as EndpointId }
}

test('all accounts together have a limit of questions at work', async t => {
  const rig = await openRig(t)
  const others = []
  for (const owner of ['second', 'third', 'fourth']) others.push(await otherEndpoint(rig, owner))
  const [second, third, fourth] = others
  for (const { id } of [second!, third!]) await recordHour(rig, id)
  const atWork = [second!, third!].map(({ id, key }) => whatIf(rig, id, 'days=1', key))
  await rig.clock.settle()
  const refused = await whatIf(rig, fourth!.id, '', fourth!.key)
  assert.equal(refused.status, 429, refused.text)
  assert.match(refused.json.detail, /too many what-ifs are at work on this server/)
  await rig.clock.advance(1_000)
  for (const answer of atWork) assert.equal((await answer).status, 200)
  assert.equal((await whatIf(rig, fourth!.id, '', fourth!.key)).status, 200)
})

test('an account has one question at a time, another account is answered beside it, and the server stays responsive', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  const { key, id } = await otherEndpoint(rig, 'second')
  await recordHour(rig, endpoint)
  const first = whatIf(rig, endpoint, 'workersMax=5')
  await rig.clock.settle()
  const second = await whatIf(rig, endpoint)
  assert.equal(second.status, 429, second.text)
  assert.match(second.json.detail, /another what-if of this account is at work/)
  assert.equal((await whatIf(rig, id, '', key)).status, 200)
  await rig.submit(endpoint)
  await rig.clock.advance(1_000)
  const { status, json } = await first
  assert.equal(status, 200, JSON.stringify(json))
  assert.equal(json.recorded.attempts, 3_500)
  assert.equal((await whatIf(rig, id, '', key)).json.recorded.attempts, 0)
})

test('a caller that has gone ends its question, and may ask again', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  await recordHour(rig, endpoint)
  const gone = new AbortController()
  const left = rig.ask('GET', `/v2/serverless/${endpoint}/whatif`, { signal: gone.signal })
  await rig.clock.settle()
  gone.abort()
  await rig.clock.advance(10)
  assert.equal((await left).status, 409)
  const again = whatIf(rig, endpoint)
  await rig.clock.advance(1_000)
  assert.equal((await again).status, 200)
})

test('only the account and keys that may read the endpoint are answered', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  const stranger = await rig.addKey('theirs', { owner: 'other' as OwnerId })
  const client = await rig.addKey('jobs', { scope: { type: 'restricted', management: 'none', jobs: 'write' } })
  const reader = await rig.addKey('read', { scope: { type: 'restricted', management: 'read', jobs: 'none' } })
  assert.equal((await whatIf(rig, endpoint, '', stranger)).status, 404)
  assert.equal((await whatIf(rig, endpoint, '', client)).status, 403)
  assert.equal((await whatIf(rig, endpoint, '', reader)).status, 200)
})

test('without recorded jobs the answer says so, with the cost of workers that are kept', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMin: 0 })
  await rig.clock.leap(7_200_000)
  const { json } = await whatIf(rig, endpoint, 'workersMin=1&days=1')
  assert.match(json.notes[0], /no job ran in this time/)
  assert.equal(json.today.waitMs, null)
  assert.equal(json.today.workerHours.idle, 0)
  assert.ok(Math.abs(json.other.workerHours.idle - 2) < 0.1, JSON.stringify(json.other))
  assert.equal((await whatIf(rig, endpoint)).json.other, null)
})

test('wrong settings are refused by the names of the query, and endpoints that balance load with the reason', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 3 })
  const refused = async (query: string) => {
    const { status, json } = await whatIf(rig, endpoint, query)
    return `${status} ${(json.errors ?? [json.detail]).join('; ')}`
  }
  assert.match(await refused('idleTimeout=0'), /^400 .*idleTimeout/)
  assert.match(await refused('workersMin=9'), /^400 query\.workersMin: 9 must not exceed workersMax \(3\)/)
  assert.match(await refused('workersMax=0'), /^400 .*workersMax/)
  assert.match(await refused('scalerType=REQUEST_COUNT'), /^400 query\.scalerValue: must be given/)
  assert.match(
    await refused('scalerType=REQUEST_COUNT&scalerValue=2&idleTimeout=9'),
    /^400 query\.idleTimeout: does not apply/,
  )
  assert.match(await refused('scalerType=LATENCY'), /^400 .*scalerType/)
  assert.match(await refused('days=31'), /^400 .*days/)
  const body = {
    name: 'lb',
    type: 'LOAD_BALANCER',
    image: 'image:1',
    scaling: { type: 'REQUEST_COUNT', requestCount: 4 },
  }
  const balanced = await rig.ask('POST', '/v2/serverless', {
    body: { ...body, cpu: [{ id: 'cpu3g', vcpuCount: 2 }], ports: ['80/http'] },
  })
  assert.equal(balanced.status, 201, balanced.text)
  const answer = await whatIf(rig, balanced.json.id)
  assert.equal(answer.status, 409)
  assert.match(answer.json.detail, /balances load/)
})

test('an endpoint that may have no workers today is asked about others', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 0 })
  const { status, json } = await whatIf(rig, endpoint, 'workersMax=2')
  assert.equal(status, 200, JSON.stringify(json))
  assert.equal(json.today, null)
  assert.equal(json.other.workersMax, 2)
  assert.equal((await whatIf(rig, endpoint)).status, 400)
})

test('why names the setting that kept the last jobs waiting, without playing anything', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 1 })
  const nowMs = rig.clock.now()
  const times = Array.from({ length: 20 }, (_, index) => {
    const startedAtMs = nowMs - 600_000 + index * 30_000
    return { queuedAtMs: nowMs - 600_000, startedAtMs, finishedAtMs: startedAtMs + 30_000, cold: false }
  })
  await rig.store.attemptTimes.add([{ endpointId: endpoint, times }])
  const { json } = await rig.ask('GET', `/v2/${endpoint}/explain`)
  assert.equal(json.notes.length, 1, JSON.stringify(json))
  assert.match(json.notes[0], /19 waited, 95 min in all, while its only worker was busy/)
  const commands = json.actions.map(({ note, command }: { note: number | null; command: string }) => [note, command])
  assert.deepEqual(commands, [
    [0, `runyard endpoints update ${endpoint} --max 2`],
    [0, `runyard whatif ${endpoint} --workers-max 2`],
  ])
  await rig.change(endpoint, { name: 'changed', workersMax: 2 })
  assert.deepEqual((await rig.ask('GET', `/v2/${endpoint}/explain`)).json.notes, [])
})
