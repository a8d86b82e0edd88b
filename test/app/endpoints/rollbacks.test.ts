/** Releases with their configuration, and the way back to an older one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId, OwnerId } from '../../../src/core/ids.ts'
import { openRig, type Rig } from '../../support/rig.ts'
import { servicesOf } from '../../support/services.ts'

const BODY = {
  name: 'llama',
  type: 'QUEUE',
  image: 'me/llama:1',
  cpu: [{ id: 'cpu3g', vcpuCount: 2 }],
  scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
  env: { MODEL: 'small' },
}

async function made(rig: Rig, body: object = {}): Promise<EndpointId> {
  const { status, json, text } = await rig.ask('POST', '/v2/serverless', { body: { ...BODY, ...body } })
  assert.equal(status, 201, text)
  return json.id
}

async function patched(rig: Rig, id: EndpointId, body: object): Promise<void> {
  const { status, text } = await rig.ask('PATCH', `/v2/serverless/${id}`, { body })
  assert.equal(status, 200, text)
}

const rollback = (rig: Rig, id: EndpointId, version: number | string, key?: string) =>
  rig.ask('POST', `/v2/serverless/${id}/releases/${version}/rollback`, key === undefined ? {} : { key })
const shown = async (rig: Rig, id: EndpointId) => (await rig.ask('GET', `/v2/serverless/${id}`)).json
const release = (rig: Rig, id: EndpointId, version: number) =>
  rig.ask('GET', `/v2/serverless/${id}/releases/${version}`)

test('a release shows the whole configuration, with references to secrets in place of their values', async t => {
  const rig = await openRig(t)
  await rig.ask('POST', '/v2/account/secrets', { body: { name: 'token', value: 'hidden-value' } })
  const id = await made(rig, { env: { TOKEN: '{{ RUNPOD_SECRET_token }}' }, args: '--fast', disk: 20 })
  await patched(rig, id, { image: 'me/llama:2' })
  const { status, json, text } = await release(rig, id, 1)
  assert.equal(status, 200)
  assert.deepEqual(json.configuration, {
    type: 'QUEUE',
    cpu: [{ id: 'cpu3g', vcpuCount: 2, memory: 8 }],
    dataCenterIds: [],
    networkVolumes: [],
    modelReferences: [],
    flashboot: 'OFF',
    args: '--fast',
    disk: 20,
    env: { TOKEN: '{{ RUNPOD_SECRET_token }}' },
    image: 'me/llama:1',
    ports: [],
    registry: null,
  })
  assert.equal(text.includes('hidden-value'), false)
  assert.equal((await release(rig, id, 3)).status, 404)
  assert.equal((await rig.ask('GET', `/v2/serverless/${id}/releases/x`)).status, 404)
})

test('a rollback makes a new version with the configuration of the old one, and leaves alone what is no part of it', async t => {
  const rig = await openRig(t)
  const id = await made(rig)
  const before = await shown(rig, id)
  await patched(rig, id, { image: 'me/llama:2', env: { MODEL: 'large', MORE: '1' }, flashboot: 'FLASHBOOT' })
  await patched(rig, id, { workers: { max: 9 }, timeout: 60_000, name: 'renamed' })
  const { status, json } = await rollback(rig, id, 1)
  assert.equal(status, 201)
  assert.deepEqual([json.version, json.restoredVersion], [3, 1])
  assert.deepEqual(
    json.diff.map(({ field }: { field: string }) => field),
    ['image', 'flashboot', 'env.MODEL', 'env.MORE'],
  )
  const after = await shown(rig, id)
  assert.deepEqual(after, { ...before, name: 'renamed', workers: { ...before.workers, max: 9 }, timeout: 60_000 })
  const change = rig.happened('change.made').at(-1)
  assert.deepEqual([change?.operation, change?.object], ['rollbackEndpoint', id])
  assert.equal(rig.happened('endpoint.saved').at(-1)?.version, 3)
  const { releases } = (await rig.ask('GET', `/v2/serverless/${id}/releases`)).json
  assert.deepEqual(
    releases.map(({ restoredVersion }: { restoredVersion: number }) => restoredVersion),
    [1, null, null],
  )
})

test('a rollback runs the exact image of the old release, also after a later change where the name means any', async t => {
  const rig = await openRig(t)
  const id = await made(rig)
  const [digest, other] = ['a', 'b'].map(letter => `me/llama@sha256:${letter.repeat(64)}`)
  await rig.store.releases.pinImage(id, 1, { image: digest!, replaced: null })
  await patched(rig, id, { image: 'me/llama' })
  await rig.store.releases.pinImage(id, 2, { image: other!, replaced: null })
  await patched(rig, id, { env: { A: '1' } })
  assert.equal((await rollback(rig, id, 1)).json.exactImage, digest)
  assert.equal((await shown(rig, id)).image, 'me/llama:1')
  assert.equal((await rollback(rig, id, 2)).json.exactImage, other)
  assert.equal((await shown(rig, id)).image, other)
})

test('a rollback to the present or an unknown release, by a key without the right, or by another account is refused', async t => {
  const rig = await openRig(t)
  const id = await made(rig)
  await patched(rig, id, { image: 'me/llama:2' })
  const reader = await rig.addKey('rpa_reader_key_of_the_test', { scope: { type: 'read-only' } })
  const stranger = await rig.addKey('rpa_stranger_of_the_test', { owner: 'stranger' as OwnerId })
  const present = await rollback(rig, id, 2)
  assert.equal(present.status, 409)
  assert.match(present.text, /runs release 2 already/)
  assert.equal((await rollback(rig, id, 7)).status, 404)
  assert.equal((await rollback(rig, id, 'x')).status, 404)
  assert.equal((await rollback(rig, id, 1, reader)).status, 403)
  assert.equal((await rollback(rig, id, 1, stranger)).status, 404)
  assert.equal((await rig.store.endpoints.find(id))?.version, 2)
})

test('a rollback copies a shared template first, so that no other endpoint changes', async t => {
  const rig = await openRig(t)
  const shared = await rig.template({ name: 'shared', imageName: 'me/llama:1' })
  const [first, second] = [await rig.endpoint({ templateId: shared }), await rig.endpoint({ templateId: shared })]
  const { templates } = servicesOf(rig)
  await templates.save('owner' as OwnerId, { id: shared, changes: { image: 'me/llama:2' } })
  assert.equal((await rollback(rig, first, 1)).status, 201)
  assert.deepEqual([(await shown(rig, first)).image, (await shown(rig, second)).image], ['me/llama:1', 'me/llama:2'])
  assert.equal((await rig.store.endpoints.find(second))?.version, 2)
  assert.equal((await rig.store.templates.find('owner' as OwnerId, shared))?.image, 'me/llama:2')
})

test('what the old configuration names and what is gone is said before anything changes', async t => {
  const rig = await openRig(t)
  const make = async (path: string, body: object) => (await rig.ask('POST', path, { body })).json.id
  const secret = await make('/v2/account/secrets', { name: 'token', value: 'v' })
  const volume = await make('/v2/network-volumes', { name: 'v', size: 10, dataCenter: 'EU-RO-1' })
  const registry = await make('/v2/registries', { name: 'r', username: 'u', password: 'p' })
  const id = await made(rig, { env: { T: '{{ RUNPOD_SECRET_token }}' }, networkVolumes: [volume], registry })
  await patched(rig, id, { env: {}, networkVolumes: [], registry: null })
  await rig.ask('DELETE', `/v2/account/secrets/${secret}`)
  const withoutSecret = await rollback(rig, id, 1)
  assert.equal(withoutSecret.status, 400)
  assert.match(withoutSecret.text, /secret token not found/)
  await make('/v2/account/secrets', { name: 'token', value: 'v' })
  await rig.ask('DELETE', `/v2/network-volumes/${volume}`)
  await rig.ask('DELETE', `/v2/registries/${registry}`)
  const withoutMore = await rollback(rig, id, 1)
  assert.equal(withoutMore.status, 400)
  assert.match(withoutMore.text, new RegExp(`volume ${volume} not found`))
  assert.match(withoutMore.text, new RegExp(`registry ${registry} not found`))
  assert.equal((await rig.store.endpoints.find(id))?.version, 2)
})

test('a rollback to another type waits for unfinished jobs, and brings the scaler that fits', async t => {
  const rig = await openRig(t)
  const id = await rig.endpoint({ type: 'LB', scalerType: 'REQUEST_COUNT', scalerValue: 3, workersMax: 0 })
  await rig.change(id, { type: 'QB', scalerType: 'QUEUE_DELAY', scalerValue: 4 })
  const job = await rig.submit(id)
  const refused = await rollback(rig, id, 1)
  assert.equal(refused.status, 409)
  assert.match(refused.text, /unfinished jobs/)
  await rig.ask('POST', `/v2/${id}/cancel/${job}`)
  assert.equal((await rollback(rig, id, 1)).status, 201)
  const { type, scaling } = await shown(rig, id)
  assert.deepEqual([type, scaling], ['LOAD_BALANCER', { type: 'REQUEST_COUNT', requestCount: 3 }])
})

test('a release whose configuration was removed says so', async t => {
  const rig = await openRig(t)
  const id = await made(rig)
  for (const letter of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) {
    const env = Object.fromEntries(Array.from({ length: 12 }, (_, n) => [`V${n}`, letter.repeat(60_000)]))
    await patched(rig, id, { env })
  }
  assert.equal((await release(rig, id, 1)).json.configuration, null)
  const { status, text } = await rollback(rig, id, 1)
  assert.equal(status, 409)
  assert.match(text, /is no longer kept/)
  assert.equal((await rollback(rig, id, 8)).status, 201)
})
