/** Marks of the relay on calls that were cut off at the end of a server. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openRig } from '../../support/rig.ts'

async function holding(t: Parameters<typeof openRig>[0]) {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const id = await rig.submit(endpoint)
  return { rig, endpoint, worker, id }
}

test('a job whose response was lost with the server goes to the same worker again, and the attempt does not count', async t => {
  const { rig, endpoint, worker, id } = await holding(t)
  const sinceMs = rig.clock.now() - 1
  assert.equal(await worker.takeJob(), id)
  await rig.crash()
  await rig.start()
  assert.equal((await worker.undelivered(sinceMs)).status, 204)
  const back = await rig.job(endpoint, id)
  assert.deepEqual([back.status, back.attempt, back.lostAttempts], ['IN_QUEUE', 0, 0])
  assert.equal(await worker.takeJob(), id)
  await worker.done(id, { output: 1 })
  assert.equal((await rig.job(endpoint, id)).status, 'COMPLETED')
})

test('a report that a starting server reads late takes back what was claimed right after the instant', async t => {
  const { rig, endpoint, worker, id } = await holding(t)
  const relayMs = 5_000
  const sinceMs = relayMs - 1
  await rig.clock.advance(1)
  assert.equal(await worker.takeJob(), id)
  const sent = { 'x-runyard-relay-now': String(relayMs), 'x-runyard-relay-monotonic': String(rig.clock.monotonic()) }
  await rig.crash()
  await rig.start()
  await rig.clock.advance(800)
  await worker.undelivered(sinceMs, sent)
  assert.equal((await rig.job(endpoint, id)).status, 'IN_QUEUE')
})

test('the monotonic clock of another machine is no delay', async t => {
  const { rig, endpoint, worker, id } = await holding(t)
  assert.equal(await worker.takeJob(), id)
  await rig.clock.advance(10)
  const sent = { 'x-runyard-relay-now': '5000', 'x-runyard-relay-monotonic': '1' }
  await rig.clock.advance(100_000)
  await worker.undelivered(4_999, sent)
  assert.equal((await rig.job(endpoint, id)).status, 'IN_PROGRESS')
})

test('a job that was claimed before the lost response stays with its worker', async t => {
  const { rig, endpoint, worker, id } = await holding(t)
  assert.equal(await worker.takeJob(), id)
  await rig.clock.advance(10)
  await worker.undelivered(rig.clock.now())
  assert.equal((await rig.job(endpoint, id)).status, 'IN_PROGRESS')
})

test('another worker cannot give the job back', async t => {
  const { rig, endpoint, worker, id } = await holding(t)
  const other = (await rig.endpointWithWorker({ workersMax: 1 })).worker
  assert.equal(await worker.takeJob(), id)
  await other.undelivered(0)
  assert.equal((await rig.job(endpoint, id)).status, 'IN_PROGRESS')
})

test('a chunk that is sent again after a cut is kept once, also among others like it', async t => {
  const { rig, endpoint, worker, id } = await holding(t)
  await worker.takeJob()
  await worker.chunk(id, { output: 'x' })
  await worker.chunk(id, { output: 'x' })
  const again = (copies: number) => worker.chunk(id, { output: 'x' }, { 'x-runyard-again': String(copies) })
  await again(2)
  await again(3)
  await again(3)
  const { json } = await rig.ask('GET', `/v2/${endpoint}/stream/${id}`)
  assert.deepEqual(
    json.stream.map((item: { output: string }) => item.output),
    ['x', 'x', 'x'],
  )
})
