/** Results of several jobs in one call, as the worker SDK for JavaScript sends them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobId } from '../../../src/core/ids.ts'
import { openRig } from '../../support/rig.ts'

const OTHER = '00000000-0000-4000-8000-000000000000-u1'

test('results in one call end their jobs as if each had come alone', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const ids = [await rig.submit(endpoint), await rig.submit(endpoint), await rig.submit(endpoint)]
  const taken = (await worker.take({ batch: 3 })).json as { id: JobId }[]
  assert.deepEqual(
    taken.map(({ id }) => id),
    ids,
  )
  const texts = ['{"output": {"a": 1.50, "b": NaN}}', '{"error": "it broke"}', '{"status": "IN_PROGRESS", "output": 7}']
  const answer = await worker.doneTogether(...ids.flatMap((id, at) => [id, texts[at]!]), OTHER, '{"output": 1}')
  assert.deepEqual([answer.status, answer.json], [200, [200, 200, 200, 200]])
  const views = await Promise.all(ids.map(async id => (await rig.status(endpoint, id)).json))
  assert.deepEqual(
    views.map(({ status, output, error }) => [status, output, error]),
    [
      ['COMPLETED', { a: 1.5, b: null }, undefined],
      ['FAILED', undefined, 'it broke'],
      ['IN_PROGRESS', 7, undefined],
    ],
  )
})

test('a result that comes again in a call with others changes nothing', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const ids = [await rig.submit(endpoint), await rig.submit(endpoint)]
  await worker.take({ batch: 2 })
  await worker.done(ids[0]!, { output: 'first' })
  const lines = ids.flatMap(id => [id, '{"output": "again"}'])
  for (let round = 0; round < 2; round += 1) assert.deepEqual((await worker.doneTogether(...lines)).json, [200, 200])
  const outputs = await Promise.all(ids.map(async id => (await rig.status(endpoint, id)).json.output))
  assert.deepEqual(outputs, ['first', 'again'])
  assert.equal((await rig.health(endpoint)).jobs.completed, 2)
})

test('a result that the store does not take is offered again, without the others of its call', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const ids = [await rig.submit(endpoint), await rig.submit(endpoint)]
  await worker.take({ batch: 2 })
  rig.failNext('jobOutcomes.finish', 'before')
  const lines = ids.flatMap(id => [id, '{"output": 1}'])
  assert.deepEqual((await worker.doneTogether(...lines)).json, [503, 200])
  assert.equal((await rig.job(endpoint, ids[0]!)).status, 'IN_PROGRESS')
  assert.deepEqual((await worker.doneTogether(ids[0]!, '{"output": 2}')).json, [200])
  assert.equal((await rig.status(endpoint, ids[0]!)).json.output, 2)
})

test('of an ended worker only results of jobs that it had count', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const own = await rig.submit(endpoint)
  await worker.take({ batch: 1 })
  const other = await rig.submit(endpoint)
  rig.fleet.exit(worker.id, { code: 1 })
  assert.ok(await rig.clock.until(() => rig.happened('worker.exited').length > 0, 400_000))
  await rig.clock.settle()
  const answer = await worker.doneTogether(own, '{"output": 1}', other, '{"output": 2}')
  assert.deepEqual([answer.status, answer.json], [200, [200, 401]])
  assert.equal((await rig.status(endpoint, own)).json.status, 'COMPLETED')
  assert.notEqual((await rig.status(endpoint, other)).json.status, 'COMPLETED')
})

test('a call that is too large, unreadable or without a token of the endpoint ends no job', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const id = await rig.submit(endpoint)
  await worker.takeJob()
  const large = await worker.doneTogether(id, JSON.stringify({ output: 'x'.repeat(140_000) }))
  assert.equal(large.status, 503)
  assert.match(large.text, /up to 100 results in UTF-8, and 131071 bytes/)
  assert.match((await worker.doneTogether(id)).text, /pairs of lines/)
  const path = `/v2/${endpoint}/job-done-batch/${worker.id}?a`
  assert.equal((await rig.ask('POST', path, { body: `${id}\n{"output":1}`, key: 'guess' })).status, 401)
  assert.equal((await rig.job(endpoint, id)).status, 'IN_PROGRESS')
})
