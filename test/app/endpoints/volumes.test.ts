/** Registries, network volumes and releases, as the services offer them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_OWNER, type OwnerId, type RegistryId } from '../../../src/core/ids.ts'
import { registryCredential } from '../../../src/services/secrets/registries.ts'
import { strangerKey } from '../../support/apps.ts'
import { openRig } from '../../support/rig.ts'
import { servicesOf } from '../../support/services.ts'

const ME = DEFAULT_OWNER
const STRANGER = 'stranger' as OwnerId
const CREDENTIAL = { name: 'hub', username: 'me', password: 'pässword' }
const VOLUME = { name: 'data', sizeGb: 20, dataCenter: 'EU-RO-1' }

test('a registry is shown without its password, and keeps it sealed', async t => {
  const rig = await openRig(t)
  const { registries } = servicesOf(rig)
  const { id } = await registries.create(ME, CREDENTIAL)
  const second = await registries.create(ME, CREDENTIAL)
  assert.notEqual(id, second.id, 'names may be the same')
  assert.deepEqual(Object.keys(await registries.find(ME, id)).sort(), [
    'createdAtMs',
    'id',
    'name',
    'owner',
    'username',
  ])
  const sealed = await rig.store.registries.sealedPassword(ME, id)
  assert.ok(!sealed!.includes('pässword'))
  assert.deepEqual(await registryCredential(rig.ports, ME, id), { username: 'me', password: 'pässword' })
  await registries.update(ME, id, { password: 'new', name: 'renamed' })
  assert.equal((await registryCredential(rig.ports, ME, id)).password, 'new')
  assert.equal((await registries.list(ME)).items.find(item => item.id === id)?.name, 'renamed')
  await assert.rejects(registries.create(ME, { ...CREDENTIAL, name: '', password: '' }), {
    failures: ['name must not be empty', 'password must not be empty'],
  })
  for (const refused of [registries.find(STRANGER, id), registries.remove(STRANGER, id)]) {
    await assert.rejects(refused, { code: 'not_found' })
  }
})

test('a template takes only a registry of its owner, and loses one that is removed', async t => {
  const rig = await openRig(t)
  const { registries, templates, endpoints, releases } = servicesOf(rig)
  const { id: endpoint } = await endpoints.find(ME, await rig.endpoint())
  const { templateId } = await endpoints.find(ME, endpoint)
  const { id: theirs } = await registries.create(STRANGER, CREDENTIAL)
  for (const registry of [theirs, 'none' as RegistryId]) {
    await assert.rejects(templates.save(ME, { id: templateId, changes: { registry } }), {
      message: `registry: registry ${registry} not found`,
    })
  }
  const { id } = await registries.create(ME, CREDENTIAL)
  await templates.save(ME, { id: templateId, changes: { registry: id } })
  await registries.remove(ME, id)
  assert.equal((await templates.find(ME, templateId)).registry, null)
  const { endpointVersion, releases: all } = await releases.list(ME, endpoint)
  assert.equal(endpointVersion, 3)
  assert.deepEqual(
    all.map(({ version, diff }) => [version, diff]),
    [
      [3, [{ field: 'registry', old: id, new: null }]],
      [2, [{ field: 'registry', old: null, new: id }]],
      [1, []],
    ],
  )
})

test('a volume has a folder, only grows, and takes the folder along', async t => {
  const rig = await openRig(t)
  const { volumes } = servicesOf(rig)
  const { id, type } = await volumes.create(ME, VOLUME)
  assert.deepEqual([type, rig.volumes.there.has(id)], ['STANDARD', true])
  assert.equal((await volumes.update(ME, id, { sizeGb: 30 })).sizeGb, 30)
  assert.equal((await volumes.update(ME, id, { name: 'renamed' })).sizeGb, 30)
  await assert.rejects(volumes.update(ME, id, { sizeGb: 20, name: '' }), {
    failures: [
      'name must not be empty',
      'sizeGb must not be smaller than the 30 GB that the volume has; volumes only grow',
    ],
  })
  await assert.rejects(volumes.create(ME, { ...VOLUME, dataCenter: 'MOON' }), {
    message: /'MOON' is not a data center/,
  })
  await assert.rejects(volumes.find(STRANGER, id), { code: 'not_found' })
  await volumes.remove(ME, id)
  assert.deepEqual([rig.volumes.there.has(id), (await volumes.list(ME)).items], [false, []])
})

test('an endpoint takes only volumes of its owner, and they stay while it uses them', async t => {
  const rig = await openRig(t)
  const { volumes, endpoints } = servicesOf(rig)
  const { id } = await volumes.create(ME, VOLUME)
  const { id: theirs } = await volumes.create(STRANGER, VOLUME)
  const endpoint = await rig.endpoint({ networkVolumeId: id })
  await assert.rejects(volumes.remove(ME, id), {
    code: 'conflict',
    message: `network volume ${id} is in use by endpoint ${endpoint}`,
  })
  await assert.rejects(endpoints.save(ME, { id: endpoint, changes: { networkVolumeIds: [id, theirs] } }), {
    message: `networkVolumeIds: volume ${theirs} not found`,
  })
  await endpoints.save(ME, { id: endpoint, changes: { networkVolumeIds: [] } })
  await volumes.remove(ME, id)
})

test('a global volume is listed on its own, belongs to its account, and is no network volume', async t => {
  const rig = await openRig(t)
  const ask = (method: string, path: string, body?: object) => rig.ask(method, `/v2/${path}`, { body })
  const made = await ask('POST', 'global-volumes', { name: 'datasets' })
  assert.equal(made.status, 201, made.text)
  const { id } = made.json
  assert.deepEqual(made.json, { id, name: 'datasets', size: 4096 })
  assert.ok(rig.volumes.there.has(id))
  const network = (await ask('POST', 'network-volumes', { name: 'n', size: 10, dataCenter: 'EU-RO-1' })).json.id
  assert.deepEqual((await ask('GET', 'global-volumes')).json.globalVolumes, [made.json])
  assert.deepEqual(
    (await ask('GET', 'network-volumes')).json.networkVolumes.map((volume: { id: string }) => volume.id),
    [network],
  )
  for (const path of [`network-volumes/${id}`, `global-volumes/${network}`]) {
    for (const method of ['GET', 'DELETE']) assert.equal((await ask(method, path)).status, 404, path)
    assert.equal((await ask('PATCH', path, { name: 'x' })).status, 404, path)
  }
  assert.equal((await ask('PATCH', `global-volumes/${id}`, { size: 100 })).status, 400)
  assert.equal((await ask('PATCH', `global-volumes/${id}`, { name: 'renamed' })).json.name, 'renamed')
  const key = await strangerKey(rig)
  assert.deepEqual((await rig.ask('GET', '/v2/global-volumes', { key })).json.globalVolumes, [])
  assert.equal((await rig.ask('DELETE', `/v2/global-volumes/${id}`, { key })).status, 404)
  const { myself } = await rig.graphql('{ myself { globalStoreBuckets { id name } networkVolumes { id } } }')
  assert.deepEqual(myself, { globalStoreBuckets: [{ id, name: 'renamed' }], networkVolumes: [{ id: network }] })
  assert.equal((await ask('DELETE', `global-volumes/${id}`)).status, 204)
  assert.equal(rig.volumes.there.has(id), false)
  const { entries } = (await ask('GET', 'audit?limit=1000')).json
  const operations = entries.map(({ operation }: { operation: string }) => operation)
  for (const operation of ['createGlobalVolume', 'updateGlobalVolume', 'deleteGlobalVolume']) {
    assert.ok(operations.includes(operation), operation)
  }
})

test('global volumes come page by page, and count in the limit of the account', async t => {
  const rig = await openRig(t, { accountLimits: { objects: 3 } })
  const key = await strangerKey(rig)
  const ask = (method: string, path: string, body?: object) => rig.ask(method, `/v2/${path}`, { body, key })
  await ask('POST', 'network-volumes', { name: 'n', size: 10, dataCenter: 'EU-RO-1' })
  for (const name of ['a', 'b']) assert.equal((await ask('POST', 'global-volumes', { name })).status, 201)
  assert.match((await ask('POST', 'global-volumes', { name: 'c' })).json.detail, /limit objects of 3/)
  const first = (await ask('GET', 'global-volumes?limit=1')).json
  assert.equal(first.pagination.hasNextPage, true)
  const second = (await ask('GET', `global-volumes?limit=1&cursor=${first.pagination.nextCursor}`)).json
  const names = [...first.globalVolumes, ...second.globalVolumes].map(({ name }: { name: string }) => name)
  assert.deepEqual([names, second.pagination.hasNextPage], [['a', 'b'], false])
})

test('an endpoint has a global volume alone, as its clients name it, and keeps it from removal', async t => {
  const rig = await openRig(t)
  const { volumes, globalVolumes } = servicesOf(rig)
  const { id } = await globalVolumes.create(ME, { name: 'all', sizeGb: 10, dataCenter: null })
  const { id: network } = await volumes.create(ME, VOLUME)
  const mounts = { volumes: [{ volumeId: id, volumeType: 'OBJECT_STORE_VOLUME' }], networkVolumeIds: [] }
  const { endpoint, worker } = await rig.endpointWithWorker(mounts)
  assert.equal(worker.spec.protocolEnv.RUNPOD_VOLUME_PATH, `/volumes/${id}`)
  assert.deepEqual((await rig.ask('GET', `/v2/serverless/${endpoint}`)).json.networkVolumes, [id])
  await assert.rejects(globalVolumes.remove(ME, id), {
    message: `global volume ${id} is in use by endpoint ${endpoint}`,
  })
  const both = await rig.ask('PATCH', `/v2/serverless/${endpoint}`, { body: { networkVolumes: [network, id] } })
  assert.match(both.text, /may name a global volume alone/)
  await rig.change(endpoint, { volumes: [], networkVolumeIds: [] })
  await globalVolumes.remove(ME, id)
})

test('a worker receives the path of the first volume of its endpoint', async t => {
  const rig = await openRig(t)
  const { volumes } = servicesOf(rig)
  const { id } = await volumes.create(ME, VOLUME)
  const { id: second } = await volumes.create(ME, VOLUME)
  const networkVolumeIds = [id, second].map(networkVolumeId => ({ networkVolumeId }))
  rig.volumes.there.delete(id)
  const { worker } = await rig.endpointWithWorker({ networkVolumeIds })
  const { RUNPOD_VOLUME_ID, RUNPOD_VOLUME_PATH } = worker.spec.protocolEnv
  assert.deepEqual([RUNPOD_VOLUME_ID, RUNPOD_VOLUME_PATH], [id, `/volumes/${id}`])
  assert.ok(rig.volumes.there.has(id), 'the folder was made again')
  const without = await rig.endpointWithWorker()
  assert.equal(without.worker.spec.protocolEnv.RUNPOD_VOLUME_PATH, undefined)
})

test('releases say how far workers have come', async t => {
  const rig = await openRig(t, { onTerminate: () => {} })
  const { releases, endpoints } = servicesOf(rig)
  const { endpoint, worker } = await rig.endpointWithWorker()
  await rig.submit(endpoint)
  await worker.takeJob()
  const before = await releases.list(ME, endpoint)
  assert.deepEqual(before.rollout, {
    inProgress: false,
    workersOnLatest: 1,
    workersTotal: 1,
    percentOnLatest: 100,
    state: 'COMPLETE',
    reason: null,
    workingVersion: null,
    stop: null,
    canary: null,
  })
  await endpoints.save(ME, { id: endpoint, changes: { env: { A: '1' } } })
  const { endpointVersion, rollout, releases: all } = await releases.list(ME, endpoint)
  assert.equal(endpointVersion, 2)
  assert.deepEqual([rollout.inProgress, rollout.percentOnLatest], [true, 0])
  assert.deepEqual(
    all.map(({ version, workerCount }) => [version, workerCount]),
    [
      [2, 0],
      [1, 1],
    ],
  )
  await assert.rejects(releases.list(STRANGER, endpoint), { code: 'not_found' })
})
