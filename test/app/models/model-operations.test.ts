import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OwnerId, WorkerId } from '../../../src/core/ids.ts'
import { MemoryModels } from '../../support/memory-models.ts'
import { openRig } from '../../support/rig.ts'

const COMMIT = 'c'.repeat(40)

test('the operator pulls, lists and removes models', async context => {
  const models = new MemoryModels()
  const rig = await openRig(context, { models })
  const pulling = rig.ask('POST', '/ops/models/org/tiny')
  await rig.clock.settle()
  models.downloads[0]!.progress({ receivedBytes: 40, totalBytes: 100 })
  await rig.clock.advance(5_000)
  assert.deepEqual((await pulling).json, { done: false, commit: null, receivedBytes: 40, totalBytes: 100 })
  const again = rig.ask('POST', '/ops/models/org/tiny?revision=main')
  await rig.clock.settle()
  assert.equal(models.downloads.length, 1, 'asked again it joins what goes on')
  models.downloads[0]!.done()
  assert.deepEqual((await again).json, { done: true, commit: COMMIT, receivedBytes: 40, totalBytes: 100 })
  const { json } = await rig.ask('GET', '/ops/models')
  assert.deepEqual(json.models, [
    {
      name: 'org/tiny',
      commit: COMMIT,
      refs: ['main'],
      bytes: 5_000,
      usedAt: '1970-01-01T00:00:01.000Z',
      workers: 0,
      restricted: false,
    },
  ])
  models.held.set('w1' as WorkerId, [{ name: 'org/tiny', commit: COMMIT }])
  assert.equal((await rig.ask('DELETE', '/ops/models/org/tiny')).status, 409)
  models.held.clear()
  assert.equal((await rig.ask('DELETE', `/ops/models/org/tiny?commit=${COMMIT}`)).status, 200)
  assert.equal((await rig.ask('DELETE', '/ops/models/org/tiny')).status, 404)
  assert.deepEqual(
    rig.happened('model.removed').map(({ model, commit }) => [model, commit]),
    [['org/tiny', COMMIT]],
  )
})

test('a pull that fails says why, and the next one tries again', async context => {
  const models = new MemoryModels()
  const rig = await openRig(context, { models })
  await rig.ask('POST', '/v2/account/secrets', { body: { name: 'HF_TOKEN', value: 'hf_secret' } })
  const pulling = rig.ask('POST', '/ops/models/org/gated')
  await rig.clock.settle()
  assert.equal(models.downloads[0]!.wish.reader.token, 'hf_secret')
  models.downloads[0]!.fail({ kind: 'access_refused' })
  const { status, json } = await pulling
  assert.equal(status, 400)
  assert.match(json.error, /^model org\/gated is not available: the account of the token in HF_TOKEN may not read it/)
  void rig.ask('POST', '/ops/models/org/gated')
  await rig.clock.settle()
  assert.equal(models.downloads.length, 1)
})

test('invalid names and invalid commits are refused', async context => {
  const rig = await openRig(context, { models: new MemoryModels() })
  for (const path of ['a--b/c', 'a/b?revision=..%2Fx', '..%2Fa/b', 'a/b%2Fc'])
    assert.equal((await rig.ask('POST', `/ops/models/${path}`)).status, 400, path)
  assert.equal((await rig.ask('DELETE', '/ops/models/a/b?commit=main')).status, 400)
})

test('models are for keys with all rights of the operator', async context => {
  const models = new MemoryModels()
  const rig = await openRig(context, { models })
  const other = await rig.addKey('rpa_of_another_account', { owner: 'other' as OwnerId })
  const reader = await rig.addKey('rpa_reads_only', { scope: { type: 'read-only' } })
  const manager = await rig.addKey('rpa_manages', {
    scope: { type: 'restricted', management: 'write', jobs: 'write' },
  })
  for (const [method, path] of [
    ['GET', '/ops/models'],
    ['POST', '/ops/models/org/tiny'],
    ['DELETE', '/ops/models/org/tiny'],
  ] as const) {
    for (const key of [other, reader, manager]) {
      assert.equal((await rig.ask(method, path, { key })).status, 403, path)
    }
    assert.equal((await rig.ask(method, path, { key: null })).status, 401, path)
  }
  assert.deepEqual(models.downloads, [])
})
