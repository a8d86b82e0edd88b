/** Workers are found by their tokens in memory, and a change is seen by the first call after it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openRig } from '../../support/rig.ts'

test('a hundred calls of a worker read its row once', async t => {
  const rig = await openRig(t)
  const { worker } = await rig.endpointWithWorker()
  await worker.ping()
  const before = rig.calls('workers.findByToken')
  for (let call = 0; call < 100; call += 1) assert.equal((await worker.ping()).status, 200)
  assert.equal(rig.calls('workers.findByToken') - before, 0)
})

test('the first call after the end of a worker is refused', async t => {
  const rig = await openRig(t)
  const { worker } = await rig.endpointWithWorker()
  assert.equal((await worker.ping()).status, 200)
  rig.fleet.exit(worker.id, { code: 1 })
  assert.ok(await rig.clock.until(() => rig.happened('worker.exited').length > 0, 400_000))
  assert.equal((await worker.ping()).status, 401)
})
