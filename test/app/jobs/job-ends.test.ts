/**
 * A caller that waits for a job gets its end from memory, and reads it only where something else may have ended it.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobId } from '../../../src/core/ids.ts'
import type { Job } from '../../../src/core/jobs/job.ts'
import { JobEnds } from '../../../src/services/jobs/job-ends.ts'
import { openRig } from '../../support/rig.ts'

const id = (n: number) => `job-${n}` as JobId

test('a runsync that is answered in time reads its job never', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const before = rig.calls('jobs.find')
  const answer = rig.ask('POST', `/v2/${endpoint}/runsync`, { body: { input: {} } })
  const job = await worker.takeJob()
  await worker.done(job, { output: { a: 1 } })
  const { json } = await answer
  assert.deepEqual([json.status, json.output, json.workerId], ['COMPLETED', { a: 1 }, worker.id])
  assert.equal(rig.calls('jobs.find') - before, 0)
})

test('the client of a runsync is answered before the worker that sent the result', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const answer = rig.ask('POST', `/v2/${endpoint}/runsync`, { body: { input: {} } })
  const job = await worker.takeJob()
  const before = rig.happened('request.answered').length
  await worker.done(job, { output: 1 })
  await answer
  const surfaces = rig.happened('request.answered').map(({ surface }) => surface)
  assert.deepEqual(surfaces.slice(before), ['jobs', 'worker'])
})

test('the last 1,024 ends are known exactly; one that began before them may have ended', () => {
  const ends = new JobEnds()
  ends.note(id(0), null)
  const count = ends.count
  assert.equal(ends.mayHaveEndedSince(id(0), count), false)
  for (let n = 1; n <= 1_024; n += 1) ends.note(id(n), null)
  assert.equal(ends.mayHaveEndedSince(id(0), count), false)
  assert.equal(ends.mayHaveEndedSince(id(1), count), true)
  assert.equal(ends.mayHaveEndedSince(id(1_024), count), true)
  ends.note(id(2_000), null)
  assert.equal(ends.mayHaveEndedSince(id(0), count), true)
})

test('listeners get the ends of their job until they leave', () => {
  const ends = new JobEnds()
  const seen: (Job | null)[] = []
  const leave = ends.listen(id(1), job => seen.push(job))
  const final = { id: id(1), status: 'COMPLETED' } as Job
  ends.note(id(1), final)
  ends.note(id(2), null)
  leave()
  ends.note(id(1), null)
  assert.deepEqual(seen, [final])
})
