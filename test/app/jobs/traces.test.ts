/** The context of a client's trace goes with its job to the worker, and back with the webhook. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openRig } from '../../support/rig.ts'

const TRACEPARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
const HEADERS = { traceparent: TRACEPARENT }
const WEBHOOK = 'https://example.com/hook'

test('the traceparent of run is a member of the job for its worker, and a header of its webhook', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const body = { input: { n: 1 }, webhook: WEBHOOK }
  const { json: job } = await rig.ask('POST', `/v2/${endpoint}/run`, { body, headers: HEADERS })
  const { json: taken } = await worker.take()
  assert.deepEqual(taken, { id: job.id, input: { n: 1 }, webhook: WEBHOOK, traceparent: TRACEPARENT })
  await worker.done(job.id, { error: 'no' })
  await rig.clock.advance(50)
  assert.equal(rig.outbound.calls.at(-1)?.headers.traceparent, TRACEPARENT)
  assert.equal((await rig.ask('POST', `/v2/${endpoint}/retry/${job.id}`)).status, 200)
  assert.equal((await worker.take()).json.traceparent, TRACEPARENT)
})

test('it goes with runsync, with OpenAI requests and with replays, each its own', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const body = { input: {} }
  const sync = rig.ask('POST', `/v2/${endpoint}/runsync`, { body, headers: HEADERS })
  const { json: first } = await worker.take()
  assert.equal(first.traceparent, TRACEPARENT)
  await worker.done(first.id)
  await sync
  const openai = rig.ask('POST', `/v2/${endpoint}/openai/v1/completions`, { body: {}, headers: HEADERS })
  const { json: second } = await worker.take()
  assert.equal(second.traceparent, TRACEPARENT)
  await worker.done(second.id, { output: [{ object: 'list', data: [] }] })
  await openai
  const other = TRACEPARENT.replace('4bf9', '5bf9')
  const replay = { headers: { traceparent: other } }
  assert.equal((await rig.ask('POST', `/v2/${endpoint}/requests/${first.id}/replay`, replay)).status, 200)
  assert.equal((await worker.take()).json.traceparent, other)
})

test('a job without a context, or with one that is not well-formed, has no such member and no such header', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const body = { input: {}, webhook: WEBHOOK }
  for (const headers of [{}, { traceparent: 'nonsense' }]) {
    assert.equal((await rig.ask('POST', `/v2/${endpoint}/run`, { body, headers })).status, 200)
    const { json } = await worker.take()
    assert.deepEqual(Object.keys(json), ['id', 'input', 'webhook'])
    await worker.done(json.id)
    await rig.clock.advance(50)
    assert.equal(Object.hasOwn(rig.outbound.calls.at(-1)?.headers ?? {}, 'traceparent'), false)
  }
})
