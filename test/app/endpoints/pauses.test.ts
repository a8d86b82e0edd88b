import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openRig } from '../../support/rig.ts'

test('a paused endpoint shows the numbers of workers that it had, until it may have workers again', async t => {
  const rig = await openRig(t)
  const id = await rig.endpoint({ workersMin: 1, workersMax: 4 })
  const change = async (body: object) => {
    const { status, json, text } = await rig.ask('PATCH', `/v2/serverless/${id}`, { body })
    assert.equal(status, 200, text)
    return [json.workers.min, json.workers.max, json.pausedFrom]
  }
  assert.deepEqual(await change({ workers: { min: 0, max: 0 } }), [0, 0, { min: 1, max: 4 }])
  // Other changes, and a second pause, do not forget them.
  assert.deepEqual(await change({ name: 'renamed' }), [0, 0, { min: 1, max: 4 }])
  assert.deepEqual(await change({ workers: { max: 0 } }), [0, 0, { min: 1, max: 4 }])
  const { json } = await rig.ask('GET', `/v2/serverless/${id}`)
  assert.deepEqual(json.pausedFrom, { min: 1, max: 4 })
  assert.deepEqual(await change({ workers: json.pausedFrom }), [1, 4, undefined])
})

test('an endpoint that was made without workers has none to return to, and no caller can claim them', async t => {
  const rig = await openRig(t)
  const id = await rig.endpoint({ workersMax: 0 })
  assert.equal((await rig.ask('GET', `/v2/serverless/${id}`)).json.pausedFrom, undefined)
  const body = { pausedFrom: { min: 0, max: 9 } }
  assert.equal((await rig.ask('PATCH', `/v2/serverless/${id}`, { body })).status, 400)
})
