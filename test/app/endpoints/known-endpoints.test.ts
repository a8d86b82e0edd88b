/** Endpoints are kept in memory, and a change is seen by the first call after it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openRig } from '../../support/rig.ts'

test('a hundred calls read their endpoint from the store once', async t => {
  const rig = await openRig(t)
  const id = await rig.endpoint({ workersMax: 0 })
  await rig.submit(id)
  const before = rig.calls('endpoints.find')
  for (let call = 0; call < 100; call += 1) await rig.submit(id)
  assert.equal(rig.calls('endpoints.find') - before, 0)
})

test('the first call after the deletion of an endpoint is 404, also when its response was lost', async t => {
  for (const loses of [false, true]) {
    const rig = await openRig(t)
    const id = await rig.endpoint({ workersMax: 0 })
    await rig.submit(id)
    if (loses) rig.failNext('endpoints.remove', 'after')
    await rig.ask('DELETE', `/v2/serverless/${id}`)
    assert.equal((await rig.ask('POST', `/v2/${id}/run`, { body: { input: {} } })).status, 404)
  }
})

test('calls that run beside a change of their endpoint do not keep the old one for later calls', async t => {
  const rig = await openRig(t)
  const id = await rig.endpoint({ workersMax: 0 })
  const change = rig.ask('PATCH', `/v2/serverless/${id}`, { body: { timeout: 5_000 } })
  await Promise.all([change, ...Array.from({ length: 20 }, () => rig.submit(id))])
  const job = await rig.store.jobs.find(id, await rig.submit(id), rig.clock.now())
  assert.equal(job?.executionTimeoutMs, 5_000)
})

test('an endpoint is read again after five seconds, should a change have happened elsewhere', async t => {
  const rig = await openRig(t)
  const id = await rig.endpoint({ workersMax: 0 })
  await rig.submit(id)
  const before = rig.calls('endpoints.find')
  await rig.clock.advance(5_000)
  await rig.submit(id)
  assert.ok(rig.calls('endpoints.find') > before)
})
