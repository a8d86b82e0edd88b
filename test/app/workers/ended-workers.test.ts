/** The token of a worker that was ended is valid only for a result that still counts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobId } from '../../../src/core/ids.ts'
import { openRig, type Rig, type RigWorker } from '../../support/rig.ts'

async function end(rig: Rig, worker: RigWorker): Promise<void> {
  rig.fleet.exit(worker.id, { code: 1 })
  assert.ok(await rig.clock.until(() => rig.happened('worker.exited').length > 0, 400_000))
  await rig.clock.settle()
}

test('a worker that was ended posts nothing to jobs that are not its own', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const other = await rig.submit(endpoint)
  await end(rig, worker)
  assert.equal((await worker.record()).state, 'EXITED')
  assert.equal((await worker.done(other, { output: 'not mine' })).status, 401)
  assert.equal((await worker.done(other, { status: 'IN_PROGRESS', output: 'nor this' })).status, 401)
  assert.equal((await worker.chunk(other, { output: 'nor that' })).status, 401)
  assert.equal((await worker.done('00000000-0000-4000-8000-000000000000-u1' as JobId)).status, 401)
  assert.equal((await worker.stops()).status, 401)
  assert.equal((await worker.ping()).status, 401)
  assert.equal((await rig.job(endpoint, other)).status, 'IN_QUEUE')
})

test('an ended worker gets no jobs, and 429 instead of 401, since SDKs poll again without a pause after 401', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  await end(rig, worker)
  await rig.submit(endpoint)
  for (const batch of [undefined, 4]) {
    const answer = await worker.take(batch === undefined ? {} : { batch })
    assert.deepEqual([answer.status, answer.headers.get('retry-after')], [429, '5'])
  }
})

test('the take that an ended worker has left gets no job, also not the one that was taken back from it', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const id = await rig.submit(endpoint)
  assert.equal(await worker.takeJob(), id)
  const left = worker.take({ busy: true })
  await rig.clock.settle()
  await end(rig, worker)
  await rig.clock.advance(5_000)
  assert.notEqual((await left).status, 200)
  assert.equal(await rig.worker(-1).takeJob(), id)
  await rig.worker(-1).done(id, { output: 'by the next one' })
  assert.equal((await rig.status(endpoint, id)).json.output, 'by the next one')
})

test('the result of a job that no other worker has claimed since is kept, and once more when its response was lost', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const id = await rig.submit(endpoint)
  assert.equal(await worker.takeJob(), id)
  await end(rig, worker)
  assert.equal((await worker.chunk(id, { output: 'a part' })).status, 401)
  assert.equal((await worker.done(id, { output: 'late' })).status, 200)
  assert.equal((await rig.status(endpoint, id)).json.output, 'late')
  assert.equal((await worker.done(id, { output: 'late' })).status, 200)
})
