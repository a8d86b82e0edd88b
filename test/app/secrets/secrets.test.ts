import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_OWNER, type OwnerId } from '../../../src/core/ids.ts'
import type { Vault } from '../../../src/ports/vault.ts'
import { reEncryptAll } from '../../../src/services/secrets/re-encryption.ts'
import { createVault } from '../../../src/system/keys/vault.ts'
import { openRig, type Rig } from '../../support/rig.ts'
import { servicesOf } from '../../support/services.ts'

const ME = DEFAULT_OWNER
const STRANGER = 'stranger' as OwnerId
const ENV = { env: [{ key: 'TOKEN', value: '{{ RUNPOD_SECRET_token }}' }] }

test('a secret is read without its value, gets another description, and is deleted by its owner alone', async t => {
  const rig = await openRig(t)
  const { secrets } = servicesOf(rig)
  const { id } = await secrets.create(ME, 'token', 'one', 'for tests')
  assert.deepEqual(await secrets.find(ME, id), {
    id,
    owner: ME,
    name: 'token',
    description: 'for tests',
    createdAtMs: rig.clock.now(),
    valueUpdatedAtMs: null,
  })
  assert.equal((await secrets.findByName(ME, 'token'))?.id, id)
  assert.equal(await secrets.findByName(STRANGER, 'token'), null)
  assert.equal((await secrets.update(ME, id, { description: null })).description, null)
  assert.equal((await secrets.update(ME, id, {})).valueUpdatedAtMs, null)
  await assert.rejects(secrets.create(ME, 'token', 'x', null), { code: 'conflict' })
  await assert.rejects(secrets.update(ME, id, { value: '', description: 'x'.repeat(65_536) }), {
    failures: ['value must not be empty', 'description must have at most 65535 characters'],
  })
  for (const refused of [secrets.find(STRANGER, id), secrets.update(STRANGER, id, {}), secrets.remove(STRANGER, id)]) {
    await assert.rejects(refused, { code: 'not_found' })
  }
  assert.deepEqual((await secrets.list(ME, { limit: 1 })).nextCursor, null)
})

test('a new value of a secret is for workers that start from then on, and replaces no worker', async t => {
  const rig = await openRig(t)
  const { secrets } = servicesOf(rig)
  const { id } = await secrets.create(ME, 'token', 'one', null)
  const { endpoint, worker } = await rig.endpointWithWorker(ENV)
  assert.equal(worker.spec.env.TOKEN, 'one')
  await rig.clock.advance(1_000)
  const changed = await secrets.update(ME, id, { value: 'two' })
  assert.equal(changed.valueUpdatedAtMs, rig.clock.now())
  await rig.clock.advance(5_000)
  assert.deepEqual(
    (await rig.alive(endpoint)).map(({ id: workerId }) => workerId),
    [worker.id],
  )
  await rig.change(endpoint, { workersMin: 2 })
  await rig.clock.advance(100)
  assert.equal(rig.worker(-1).spec.env.TOKEN, 'two')
})

/** One of everything that is sealed, and what each opens to. */
async function sealSome(rig: Rig): Promise<void> {
  const { secrets, registries, keys, endpoints, access } = servicesOf(rig)
  const endpoint = await rig.endpoint({ workersMax: 0 })
  for (let n = 0; n < 7; n += 1) await secrets.create(n % 2 ? ME : STRANGER, `s${n}`, `secret ${n}`, null)
  await registries.create(ME, { name: 'r', username: 'u', password: 'password' })
  await keys.ofEndpoint(await access.authenticate('rpa_test_key_with_all_rights'), await endpoints.find(ME, endpoint))
  await rig.ask('GET', `/v2/${endpoint}/webhook-key`)
  await rig.submit(endpoint, { input: {}, s3Config: { accessId: 'a' } })
}

type Opens = Pick<Vault, 'open'>

/** All that is sealed, opened where it is. */
async function allOpened(rig: Rig, vault: Opens): Promise<string[]> {
  const kinds = ['secrets', 'webhookKeys', 'registries', 'endpointKeys', 'jobs'] as const
  const found = await Promise.all(kinds.map(kind => rig.store.seals.list(kind, '', 100)))
  assert.ok(found.every(texts => texts.length > 0))
  return found.flatMap((texts, n) => texts.map(({ sealed, row }) => vault.open(sealed, { kind: kinds[n]!, row })))
}

test('everything sealed is sealed with a new key, and opens to the same', async t => {
  const rig = await openRig(t)
  await sealSome(rig)
  const plain = await allOpened(rig, rig.vault)
  const next = createVault(Buffer.alloc(32, 8), Buffer.alloc(32, 7))
  const done = await reEncryptAll({ store: rig.store, vault: next })
  assert.deepEqual(done, { resealed: plain.length, current: 0, unreadable: 0, named: [] })
  const alone = createVault(Buffer.alloc(32, 8))
  assert.deepEqual(await allOpened(rig, alone), plain)
  const again = await reEncryptAll({ store: rig.store, vault: next })
  assert.deepEqual([again.resealed, again.current], [0, plain.length])
})

test('if resealing is interrupted at any step, all opens with both keys, and the next run finishes it', async t => {
  for (const fault of ['before', 'after'] as const) {
    for (let step = 0; step < 11; step += 1) {
      const rig = await openRig(t)
      await sealSome(rig)
      const plain = await allOpened(rig, rig.vault)
      const next = createVault(Buffer.alloc(32, 8), Buffer.alloc(32, 7))
      let steps = 0
      const stopAt = () => {
        if (steps === step) rig.failNext('seals.replace', fault)
        steps += 1
      }
      stopAt()
      await assert.rejects(reEncryptAll({ store: rig.store, vault: next }, stopAt), { code: 'unavailable' })
      assert.deepEqual(await allOpened(rig, next), plain)
      const { resealed, current } = await reEncryptAll({ store: rig.store, vault: next })
      assert.deepEqual([resealed + current, resealed > 0 || step === 10], [plain.length, true])
      const alone = createVault(Buffer.alloc(32, 8))
      assert.deepEqual(await allOpened(rig, alone), plain)
    }
  }
})

test('what no key opens is named, and stays as it is', async t => {
  const rig = await openRig(t)
  await sealSome(rig)
  const foreign = createVault(Buffer.alloc(32, 9)).seal('x', { kind: 'secrets', row: 'x' })
  const [first] = await rig.store.seals.list('registries', '', 1)
  await rig.store.seals.replace('registries', [{ id: first!.id, previous: first!.sealed, next: foreign }])
  const { unreadable, named } = await reEncryptAll({ store: rig.store, vault: rig.vault })
  assert.deepEqual([unreadable, named], [1, [`registries ${first!.id}`]])
  assert.equal((await rig.store.seals.list('registries', '', 1))[0]?.sealed, foreign)
})
