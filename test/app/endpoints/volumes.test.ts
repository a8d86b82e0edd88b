/** Registries, network volumes and releases, as the services offer them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_OWNER, type OwnerId, type RegistryId } from '../../../src/core/ids.ts'
import { registryCredential } from '../../../src/services/secrets/registries.ts'
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
    message: `networkVolumeIds: network volume ${theirs} not found`,
  })
  await endpoints.save(ME, { id: endpoint, changes: { networkVolumeIds: [] } })
  await volumes.remove(ME, id)
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
