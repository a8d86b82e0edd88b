/**
 * Each change of a caller is published with the account, the key and the changed record, and without the new values.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_OWNER } from '../../../src/core/ids.ts'
import { openRig, type Rig } from '../../support/rig.ts'

const TEXT = 'rpa_of_a_manager'

/** Changes published since the last call, without their common fields. */
function changesOf(rig: Rig, by: string): unknown[] {
  const told = rig.happened('change.made').map(({ name: _, ...change }) => {
    assert.equal(change.account, DEFAULT_OWNER)
    assert.equal(change.by, by)
    return [change.surface, change.operation, change.object]
  })
  rig.events.length = 0
  return told
}

test('changes through REST are reported once they are made; refused ones and reads are not', async t => {
  const rig = await openRig(t)
  await rig.addKey(TEXT)
  const { id: keyId } = (await rig.store.keys.findByHash(rig.vault.hash(TEXT)))!
  const ask = (method: string, path: string, body?: object) => rig.ask(method, path, { key: TEXT, body })
  changesOf(rig, keyId)
  const { json: secret } = await ask('POST', '/v2/account/secrets', { name: 'token', value: 'hush hush' })
  await ask('PATCH', `/v2/account/secrets/${secret.id}`, { value: 'hush again' })
  assert.equal((await ask('GET', `/v2/account/secrets/${secret.id}`)).status, 200)
  assert.equal((await ask('PATCH', '/v2/account/secrets/none', { value: 'x' })).status, 404)
  assert.ok(!JSON.stringify(rig.events).includes('hush'))
  await ask('DELETE', `/v2/account/secrets/${secret.id}`)
  assert.deepEqual(changesOf(rig, keyId), [
    ['rest', 'createSecret', secret.id],
    ['rest', 'updateSecret', secret.id],
    ['rest', 'deleteSecret', secret.id],
  ])
  const { json: volume } = await ask('POST', '/v2/network-volumes', { name: 'v', size: 10, dataCenter: 'EU-RO-1' })
  assert.deepEqual(changesOf(rig, keyId), [['rest', 'createNetworkVolume', volume.id]])
})

test('mutations are reported with their name and the id of the changed object', async t => {
  const rig = await openRig(t)
  const { id: keyId } = (await rig.store.keys.list(DEFAULT_OWNER))[0]!
  const id = await rig.template()
  const [, operation, object] = changesOf(rig, keyId).at(-1) as string[]
  assert.deepEqual([operation, object], ['saveTemplate', id])
  await rig.graphql('mutation { secretCreate(input: { name: "a", value: "hush hush" }) { id } }')
  assert.ok(!JSON.stringify(rig.events).includes('hush'))
  assert.equal((changesOf(rig, keyId)[0] as string[])[1], 'secretCreate')
  const endpoint = await rig.endpoint({ workersMin: 0, workersMax: 0 })
  changesOf(rig, keyId)
  await rig.graphql('mutation ($id: String!) { deleteEndpoint(id: $id) }', { id: endpoint })
  assert.deepEqual(changesOf(rig, keyId), [['graphql', 'deleteEndpoint', endpoint]])
})

test('job operations that change something are reported; submitting and reading are not', async t => {
  const rig = await openRig(t)
  const { id: keyId } = (await rig.store.keys.list(DEFAULT_OWNER))[0]!
  const endpoint = await rig.endpoint({ workersMax: 0 })
  changesOf(rig, keyId)
  const job = await rig.submit(endpoint)
  await rig.status(endpoint, job)
  await rig.ask('POST', `/v2/${endpoint}/cancel/${job}`)
  await rig.ask('POST', `/v2/${endpoint}/purge-queue`)
  await rig.ask('POST', `/v2/${endpoint}/webhook-key`)
  assert.deepEqual(changesOf(rig, keyId), [
    ['jobs', 'cancel/:job', job],
    ['jobs', 'purge-queue', endpoint],
    ['jobs', 'webhook-key', endpoint],
  ])
})
