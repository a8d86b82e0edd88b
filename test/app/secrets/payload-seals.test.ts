/** Inputs, URLs and variables in the store, where the operator wants them sealed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OwnerId } from '../../../src/core/ids.ts'
import { inputPlace, webhookUrlPlace } from '../../../src/core/secrets/seals.ts'
import { layered } from '../../../src/ports/store/operations.ts'
import { PayloadSeals } from '../../../src/services/secrets/payload-seals.ts'
import { encryptPlain, reEncryptAll } from '../../../src/services/secrets/re-encryption.ts'
import { sealing } from '../../../src/services/secrets/sealed-store.ts'
import { createVault } from '../../../src/system/keys/vault.ts'
import { openRig } from '../../support/rig.ts'

const [OLD, NEW] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
const vault = createVault(OLD)
const [on, off] = [new PayloadSeals(vault, true), new PayloadSeals(vault, false)]

test('a sealed value opens at its place, whatever the setting is now, and nowhere else', () => {
  const sealed = on.sealed('{"a":1}', inputPlace('j1'))
  assert.doesNotMatch(sealed, /"a"/)
  for (const seals of [on, off]) {
    assert.equal(seals.opened(sealed, inputPlace('j1')), '{"a":1}')
    for (const other of [inputPlace('j2'), webhookUrlPlace('j1')])
      assert.throws(() => seals.opened(sealed, other), { code: 'internal' })
  }
  assert.equal(off.sealed('{"a":1}', inputPlace('j1')), '{"a":1}')
  const { A: moved } = on.sealedVariables('me', { A: 'x' })
  assert.throws(() => on.openedVariables('me', { B: moved! }), { code: 'internal' })
  assert.throws(() => on.openedVariables('you', { A: moved! }), { code: 'internal' })
})

test('a variable that did not change keeps its sealed text, and so counts as the same', () => {
  const before = on.sealedVariables('me', { A: 'x', B: 'y' })
  const after = on.sealedVariables('me', { A: 'x', B: 'z' }, before)
  assert.equal(after.A, before.A)
  assert.notEqual(after.B, before.B)
  assert.deepEqual(on.openedVariables('me', after), { A: 'x', B: 'z' })
})

test('a variable that looks sealed is kept as it was given', () => {
  for (const seals of [on, off]) {
    const stored = seals.sealedVariables('me', { A: 'sealed:v3.mine' })
    assert.deepEqual(seals.openedVariables('me', stored), { A: 'sealed:v3.mine' })
  }
})

test('a release keeps sealed variables sealed, opens them for a rollback, and is resealed with another key', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ env: [{ key: 'TOKEN', value: 'hidden' }] })
  await rig.change(endpoint, { env: [{ key: 'TOKEN', value: 'other' }] })
  await encryptPlain({ store: rig.store, vault })
  const next = createVault(NEW, OLD)
  await reEncryptAll({ store: rig.store, vault: next })
  const kept = await rig.store.seals.list('releases', '', 9)
  assert.equal(kept.length, 2)
  assert.equal(JSON.stringify(kept).includes('hidden'), false)
  const alone = layered(rig.store, sealing(new PayloadSeals(createVault(NEW), true)))
  const { configuration } = (await alone.releases.find(endpoint, 1))!
  assert.deepEqual(configuration?.endpoint.env, { TOKEN: 'hidden' })
  const before = (await alone.endpoints.find(endpoint))!
  await alone.endpoints.replace({ ...before, version: 3, env: { TOKEN: 'third' } }, before, rig.clock.now())
  const stored = (await rig.store.releases.find(endpoint, 3))!
  assert.match(stored.configuration!.endpoint.env.TOKEN!, /^sealed:/)
})

test('plain variables and URLs are sealed in the store, inputs are not, and all is resealed with another key', async t => {
  const rig = await openRig(t)
  const template = await rig.template({ env: [{ key: 'TOKEN', value: 'hidden' }] })
  const endpoint = await rig.endpoint()
  const id = await rig.submit(endpoint, { input: { a: 1 }, webhook: 'https://example.com/hidden' })
  const ports = { store: rig.store, vault }
  assert.ok((await encryptPlain(ports)) >= 2)
  assert.equal(await encryptPlain(ports), 0)
  const listed = async (kind: 'templates' | 'jobWebhooks' | 'jobInputs') => await rig.store.seals.list(kind, '', 9)
  assert.deepEqual([await listed('jobInputs'), (await listed('jobWebhooks')).map(text => text.id)], [[], [id]])
  const next = createVault(NEW, OLD)
  const { resealed, unreadable } = await reEncryptAll({ store: rig.store, vault: next })
  assert.ok(resealed >= 2 && unreadable === 0)
  const [url] = await listed('jobWebhooks')
  const alone = new PayloadSeals(createVault(NEW), false)
  assert.equal(alone.opened(url!.sealed, webhookUrlPlace(id)), 'https://example.com/hidden')
  const [found] = await listed('templates')
  assert.equal(found?.id, template)
  const { env } = JSON.parse(found!.sealed)
  assert.deepEqual(alone.openedVariables(found!.row, env), { TOKEN: 'hidden' })
})

test('parts of a large input are sealed, and of an output those that look sealed; both are resealed', async t => {
  const { store } = await openRig(t)
  const sealed = layered(store, sealing(on))
  const parts = [
    { id: 'in', kind: 'input', seq: 0, text: '{"a":"' },
    { id: 'in', kind: 'input', seq: 1, text: 'sealed:v3.mine"}' },
    { id: 'out', kind: 'output', seq: 0, text: '["' },
    { id: 'out', kind: 'output', seq: 1, text: 'sealed:v3.mine"]' },
  ] as const
  for (const part of parts) await sealed.largeTexts.append({ ...part, owner: 'me' as OwnerId, nowMs: 1 })
  const next = createVault(NEW, OLD)
  assert.deepEqual(await reEncryptAll({ store, vault: next }), { resealed: 3, current: 0, unreadable: 0, named: [] })
  const stored = await Promise.all(parts.map(({ id, seq }) => store.largeTexts.part(id, seq)))
  assert.deepEqual(
    stored.map(text => text?.startsWith('sealed:')),
    [true, true, false, true],
  )
  for (const isOn of [true, false]) {
    const alone = layered(store, sealing(new PayloadSeals(createVault(NEW), isOn)))
    for (const { id, seq, text } of parts) assert.equal(await alone.largeTexts.part(id, seq), text)
  }
})
