/** A take that claims a job which is still being stored. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AppError } from '../../../src/core/errors.ts'
import { openRig } from '../../support/rig.ts'

test('a take goes on waiting when a job that it would get cannot be stored, and gets the next one', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  await rig.crash()
  const { jobs } = rig.store
  const { insert } = jobs
  const stored = Promise.withResolvers<boolean>()
  let isHeld = true
  jobs.insert = job => (isHeld ? stored.promise : insert(job))
  await rig.start()
  const taken = worker.take()
  await rig.clock.advance(100)
  rig.failNext('jobs.claim', 'before')
  const refused = rig.ask('POST', `/v2/${endpoint}/run`, { body: { input: {} } })
  await rig.clock.advance(100)
  assert.notEqual(rig.calls('jobs.claim'), 0, 'it claims before the insert is over')
  isHeld = false
  stored.reject(new AppError('unavailable', 'the disk is full'))
  assert.equal((await refused).status, 503)
  await rig.clock.advance(100)
  const id = await rig.submit(endpoint, { input: {} })
  await rig.clock.advance(100)
  const { status, json } = await taken
  assert.deepEqual([status, json.id], [200, id])
  await rig.crash()
})
