/** Records of jobs whose results were removed, and actions on them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openRig, type Rig } from '../../support/rig.ts'

const HOUR_MS = 60 * 60_000

type Listed = { id: string; status: string; resultExpiresAt: number | null; errorFingerprint: string | null }

async function listed(rig: Rig, endpoint: string, query = ''): Promise<Listed[]> {
  const { status, json } = await rig.ask('GET', `/v2/${endpoint}/requests?${query}`)
  assert.equal(status, 200, JSON.stringify(json))
  return json.requests
}

/** An endpoint with a job that succeeded and one that failed, both past their retention. */
async function withPast(t: Parameters<typeof openRig>[0], options: Parameters<typeof openRig>[1] = {}) {
  const rig = await openRig(t, options)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const done = await rig.submit(endpoint, { input: { n: 1 }, policy: { executionTimeout: 7_000, lowPriority: false } })
  await worker.takeJob()
  await worker.done(done, { output: { answer: 42 } })
  const failed = await rig.submit(endpoint, { input: { n: 2 } })
  await worker.takeJob()
  await worker.done(failed, { error: 'ValueError: 17 is odd' })
  await rig.clock.leap(HOUR_MS)
  await rig.clock.advance(2_000)
  return { rig, endpoint, worker, done, failed }
}

test('a job whose result is gone is still in the list, with what became of it', async t => {
  const { rig, endpoint, worker, done, failed } = await withPast(t)
  assert.equal((await rig.ask('GET', `/v2/${endpoint}/status/${done}`)).status, 404)
  const [second, first] = await listed(rig, endpoint)
  assert.deepEqual([first?.id, first?.status, first?.resultExpiresAt], [done, 'COMPLETED', null])
  assert.deepEqual([second?.id, second?.status], [failed, 'FAILED'])
  assert.deepEqual((await listed(rig, endpoint, 'error=is+odd')).length, 1)
  assert.deepEqual((await listed(rig, endpoint, `fingerprint=${second?.errorFingerprint}`)).length, 1)
  assert.deepEqual((await listed(rig, endpoint, `worker=${worker.id}`)).length, 2)
  assert.deepEqual((await listed(rig, endpoint, `from=${rig.clock.now()}`)).length, 0)
  const { json } = await rig.ask('GET', `/v2/${endpoint}/requests/${failed}`)
  assert.deepEqual([json.status, json.error, json.attempts], ['FAILED', 'ValueError: 17 is odd', 1])
  assert.deepEqual([json.input, json.output, json.inputBytes], [{ n: 2 }, null, 7])
})

test('records are removed after their retention, and without retention none are kept', async t => {
  const { rig, endpoint } = await withPast(t, { jobRecords: { keptMs: 2 * HOUR_MS } })
  assert.equal((await listed(rig, endpoint)).length, 2)
  await rig.clock.leap(HOUR_MS - 10_000)
  await rig.clock.advance(2_000)
  assert.equal((await listed(rig, endpoint)).length, 2)
  await rig.clock.leap(0.1 * HOUR_MS)
  await rig.clock.advance(2_000)
  assert.equal((await listed(rig, endpoint)).length, 0)
  const none = await withPast(t, { jobRecords: { keptMs: 0 } })
  assert.equal((await listed(none.rig, none.endpoint)).length, 0)
  assert.equal((await none.rig.ask('GET', `/v2/${none.endpoint}/requests/${none.done}`)).status, 404)
})

test('a job is replayed with its kept input, its times and its priority', async t => {
  const { rig, endpoint, worker, done } = await withPast(t, { jobRecords: { payloads: true } })
  const { json: record } = await rig.ask('GET', `/v2/${endpoint}/requests/${done}`)
  assert.deepEqual([record.input, record.output], [{ n: 1 }, { answer: 42 }])
  const { status, json } = await rig.ask('POST', `/v2/${endpoint}/requests/${done}/replay`)
  assert.deepEqual([status, json.status], [200, 'IN_QUEUE'])
  assert.notEqual(json.id, done)
  const { json: replayed } = await rig.ask('GET', `/v2/${endpoint}/requests/${json.id}`)
  assert.deepEqual([replayed.input, replayed.policy], [{ n: 1 }, record.policy])
  assert.equal(replayed.policy.executionTimeout, 7_000)
  assert.equal(await worker.takeJob(), json.id)
})

test('a replay with another input is a new job; without a kept input it needs one', async t => {
  const { rig, endpoint, done } = await withPast(t)
  const refused = await rig.ask('POST', `/v2/${endpoint}/requests/${done}/replay`, { body: {} })
  assert.equal(refused.status, 409)
  assert.match(
    refused.json.error,
    /input of job .* is no longer kept; .*jobs replay --input .*--failed-input-hours, .*--keep-payloads/,
  )
  const path = `/v2/${endpoint}/requests/${done}/replay`
  const { json } = await rig.ask('POST', path, { body: { input: { n: 9 } } })
  assert.deepEqual((await rig.ask('GET', `/v2/${endpoint}/requests/${json.id}`)).json.input, { n: 9 })
  assert.equal((await rig.ask('POST', path, { body: { input: 9 } })).status, 400)
  const unknown = `/v2/${endpoint}/requests/00000000-0000-4000-8000-000000000000-u1/replay`
  assert.equal((await rig.ask('POST', unknown, { body: { input: {} } })).status, 404)
})

test('a failed job is replayed for a day after its result is gone, also one that timed out, and then needs an input', async t => {
  const { rig, endpoint, worker, failed } = await withPast(t)
  const expired = await rig.submit(endpoint, { input: { n: 3 }, policy: { ttl: 10_000 } })
  await rig.clock.leap(HOUR_MS)
  await rig.clock.advance(2_000)
  const replay = (id: string) => rig.ask('POST', `/v2/${endpoint}/requests/${id}/replay`)
  const inputs: unknown[] = []
  for (const id of [failed, expired]) {
    const again = (await replay(id)).json.id
    assert.equal(await worker.takeJob(), again)
    inputs.push((await rig.ask('GET', `/v2/${endpoint}/requests/${again}`)).json.input)
    await worker.done(again, { output: 1 })
  }
  assert.deepEqual(inputs, [{ n: 2 }, { n: 3 }])
  await rig.clock.leap(23 * HOUR_MS)
  await rig.clock.advance(70_000)
  assert.equal((await replay(failed)).status, 409)
  assert.equal((await replay(expired)).status, 200)
  const none = await withPast(t, { jobRecords: { failedInputsKeptMs: 0 } })
  assert.equal((await none.rig.ask('POST', `/v2/${none.endpoint}/requests/${none.failed}/replay`)).status, 409)
})

test('a retry of a job whose result is gone says what can be done instead', async t => {
  const { rig, endpoint, done, failed } = await withPast(t)
  const refusal = async (id: string) => {
    const { status, json } = await rig.ask('POST', `/v2/${endpoint}/retry/${id}`)
    return [status, json.error] as const
  }
  const gone = (id: string) => `the result of job ${id} was deleted, so it cannot be retried; `
  const again = `submit its input as a new job: runyard jobs replay ${failed} (POST /requests/${failed}/replay)`
  assert.deepEqual(await refusal(failed), [404, gone(failed) + again])
  const [status, error] = await refusal(done)
  assert.equal(status, 404)
  assert.ok(error.startsWith(`${gone(done)}the input of job ${done} is no longer kept; give one, as with runyard jobs`))
  const unknown = '00000000-0000-4000-8000-000000000000-u1'
  assert.deepEqual(await refusal(unknown), [404, `job ${unknown} not found`])
})

test('a replay with the same Idempotency-Key is one job', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 0 })
  const job = await rig.submit(endpoint)
  const replay = () =>
    rig.ask('POST', `/v2/${endpoint}/requests/${job}/replay`, { headers: { 'idempotency-key': 'once' } })
  assert.equal((await replay()).json.id, (await replay()).json.id)
  assert.equal((await listed(rig, endpoint)).length, 2)
})

test('jobs that a filter means are cancelled together, after a dry run that changes nothing', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 0 })
  const old: string[] = []
  for (let n = 0; n < 3; n += 1) {
    old.push(await rig.submit(endpoint))
    await rig.clock.advance(1_000)
  }
  const young = await rig.submit(endpoint)
  const body = { to: rig.clock.now(), dryRun: true }
  const dry = await rig.ask('POST', `/v2/${endpoint}/requests/cancel`, { body })
  assert.deepEqual(dry.json, { dryRun: true, matched: 3, changed: 0, ids: old.toReversed(), nextCursor: null })
  assert.equal((await listed(rig, endpoint, 'status=IN_QUEUE')).length, 4)
  const real = await rig.ask('POST', `/v2/${endpoint}/requests/cancel`, { body: { ...body, dryRun: false } })
  assert.deepEqual([real.json.matched, real.json.changed], [3, 3])
  assert.deepEqual(
    (await listed(rig, endpoint, 'status=IN_QUEUE')).map(({ id }) => id),
    [young],
  )
})

test('failed jobs are retried together by their fingerprint; states that cannot be retried are refused', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const ids: string[] = []
  for (const error of ['ValueError: row 1', 'ValueError: row 2', 'KeyError: a']) {
    const id = await rig.submit(endpoint)
    await worker.takeJob()
    await worker.done(id, { error })
    ids.push(id)
  }
  const [, second] = await listed(rig, endpoint)
  const fingerprint = second?.errorFingerprint
  const { json } = await rig.ask('POST', `/v2/${endpoint}/requests/retry`, { body: { fingerprint } })
  assert.deepEqual([json.matched, json.changed, json.ids.toSorted()], [2, 2, ids.slice(0, 2).toSorted()])
  assert.equal((await listed(rig, endpoint, 'status=FAILED')).length, 1)
  const refused = await rig.ask('POST', `/v2/${endpoint}/requests/retry`, { body: { status: 'COMPLETED' } })
  assert.equal(refused.status, 400)
  assert.match(refused.json.error, /COMPLETED cannot be retried; those that are FAILED or TIMED_OUT can/)
  assert.equal((await rig.ask('POST', `/v2/${endpoint}/requests/retry`, { body: {} })).status, 400)
})

test('many jobs are changed a bounded number at once, and the next call goes on', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 0 })
  for (let n = 0; n < 1_003; n += 1) await rig.submit(endpoint)
  const cancel = (cursor: string | null) =>
    rig.ask('POST', `/v2/${endpoint}/requests/cancel`, { body: { status: 'IN_QUEUE', cursor } })
  const first = await cancel(null)
  assert.deepEqual([first.json.matched, first.json.changed, first.json.ids.length], [1_000, 1_000, 10])
  const second = await cancel(first.json.nextCursor)
  assert.deepEqual([second.json.changed, second.json.nextCursor], [3, null])
})

test('a job is removed with its record once it has ended', async t => {
  const { rig, endpoint, done } = await withPast(t)
  const remove = (id: string) => rig.ask('DELETE', `/v2/${endpoint}/requests/${id}`)
  const waiting = await rig.submit(endpoint)
  const refused = await remove(waiting)
  assert.deepEqual([refused.status, /cancel it first/.test(refused.text)], [409, true])
  await rig.ask('POST', `/v2/${endpoint}/cancel/${waiting}`)
  assert.deepEqual((await remove(waiting)).json, { id: waiting, removed: true })
  assert.equal((await rig.ask('GET', `/v2/${endpoint}/status/${waiting}`)).status, 404)
  assert.equal((await remove(done)).status, 200)
  assert.deepEqual([(await remove(done)).status, (await listed(rig, endpoint)).length], [404, 1])
})

test('jobs of another account are neither shown, replayed nor changed', async t => {
  const { rig, endpoint, done } = await withPast(t, { jobRecords: { payloads: true } })
  const { json: account } = await rig.ask('POST', '/v2/account/accounts', { body: { name: 'Ada' } })
  const { json: made } = await rig.ask('POST', '/v2/account/keys', { body: { name: 'a', account: account.id } })
  const asked = { key: made.key }
  for (const [method, path] of [
    ['GET', `/v2/${endpoint}/requests`],
    ['GET', `/v2/${endpoint}/requests/${done}`],
    ['DELETE', `/v2/${endpoint}/requests/${done}`],
    ['POST', `/v2/${endpoint}/requests/${done}/replay`],
    ['POST', `/v2/${endpoint}/requests/cancel`],
    ['POST', `/v2/${endpoint}/requests/retry`],
  ] as const) {
    const body = method === 'POST' ? { status: 'FAILED' } : undefined
    assert.equal((await rig.ask(method, path, { ...asked, ...(body === undefined ? {} : { body }) })).status, 404, path)
  }
})
