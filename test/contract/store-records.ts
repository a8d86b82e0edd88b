import assert from 'node:assert/strict'
import type { KeyId, SecretId, TemplateId } from '../../src/core/ids.ts'
import { type Cases, E1, E2, endpointOf, keyOf, OWNER, STRANGER, secretOf, T0, TPL, templateOf } from './store-world.ts'

const T2 = 't2' as TemplateId
const ids = (things: readonly { id: string }[]) => things.map(({ id }) => id)

/** Templates, secrets and keys. */
export const recordCases: Cases = {
  'a template is kept as it was given, and found by its id and its name': async ({ store: { templates } }) => {
    const template = templateOf(T2, { listed: false, registry: 'cred', isServerless: false, volumeGb: 3 })
    assert.equal(await templates.insert(template), true)
    assert.deepEqual(await templates.find(OWNER, T2), template)
    assert.deepEqual(await templates.findByName(OWNER, template.name), template)
    assert.equal(await templates.find(STRANGER, T2), null)
    assert.equal(await templates.findByName(STRANGER, template.name), null)
    assert.equal(await templates.findByName(OWNER, 'none'), null)
    assert.deepEqual(ids(await templates.list(OWNER)), [TPL, T2])
    assert.deepEqual(await templates.list(STRANGER), [])
  },

  'an owner has a template name once': async ({ store: { templates } }) => {
    const { name } = templateOf(TPL)
    assert.equal(await templates.insert(templateOf(T2, { name })), false)
    assert.equal(await templates.insert(templateOf(T2, { name, owner: STRANGER })), true)
    assert.equal(await templates.find(OWNER, T2), null)
  },

  'replacing a template makes a new version of each endpoint that uses it': async ({ store }) => {
    const { templates, endpoints } = store
    await templates.insert(templateOf(T2))
    await endpoints.insert(endpointOf(E2, { version: 5 }))
    await endpoints.insert(endpointOf('e3', { templateId: T2 }))
    const changed = templateOf(TPL, { name: 'renamed', image: 'image:2', listed: false, env: {} })
    assert.deepEqual(await templates.replace(changed), [E1, E2])
    assert.deepEqual(await templates.find(OWNER, TPL), changed)
    const versions = (await endpoints.list(OWNER)).map(({ id, version }) => [id, version])
    assert.deepEqual(versions.sort(), [
      [E1, 2],
      [E2, 6],
      ['e3', 1],
    ])
  },

  'a template cannot be renamed to the name of another, and nothing happens': async ({ store }) => {
    const { templates, endpoints } = store
    await templates.insert(templateOf(T2))
    assert.equal(await templates.replace(templateOf(TPL, { name: templateOf(T2).name, image: 'new' })), null)
    assert.deepEqual(await templates.find(OWNER, TPL), templateOf(TPL))
    assert.equal((await endpoints.find(E1))?.version, 1)
    assert.equal(await templates.replace(templateOf('t9')), null)
    assert.deepEqual(await templates.replace(templateOf(T2)), [])
  },

  'a template that an endpoint has cannot be removed': async ({ store: { templates, endpoints } }) => {
    assert.equal(await templates.remove(STRANGER, TPL), 'absent')
    assert.equal(await templates.remove(OWNER, TPL), 'in_use')
    await endpoints.remove(E1, T0)
    assert.equal(await templates.remove(OWNER, TPL), 'removed')
    assert.equal(await templates.remove(OWNER, TPL), 'absent')
  },

  'secrets are listed without their values, which are given by name': async ({ store: { secrets } }) => {
    const described = secretOf('2', { description: 'for tests', createdAtMs: T0 + 1 })
    assert.equal(await secrets.insert(secretOf('1'), 'sealed 1'), true)
    assert.equal(await secrets.insert(described, 'sealed 2'), true)
    assert.equal(await secrets.insert(secretOf('3', { owner: STRANGER }), 'sealed 3'), true)
    assert.deepEqual(await secrets.list(OWNER), [secretOf('1'), described])
    const values = await secrets.sealedValues(OWNER, ['secret-2', 'secret-3', 'none', 'secret-1'])
    assert.deepEqual([...values].sort(), [
      ['secret-1', 'sealed 1'],
      ['secret-2', 'sealed 2'],
    ])
  },

  'an owner has a secret name once, until the secret is removed': async ({ store: { secrets } }) => {
    await secrets.insert(secretOf('1'), 'old')
    const again = secretOf('2', { name: 'secret-1' })
    assert.equal(await secrets.insert(again, 'new'), false)
    assert.deepEqual([...(await secrets.sealedValues(OWNER, ['secret-1'])).values()], ['old'])
    assert.equal(await secrets.remove(STRANGER, '1' as SecretId), false)
    assert.equal(await secrets.remove(OWNER, '1' as SecretId), true)
    assert.equal(await secrets.remove(OWNER, '1' as SecretId), false)
    assert.equal(await secrets.insert(again, 'new'), true)
  },

  'keys are kept as they were given, found by their hash, listed and removed': async ({ store: { keys } }) => {
    const all = { management: 'write', jobs: 'none', endpoints: null } as const
    const special = keyOf('2', { scope: all, exempt: true, disabled: true, expiresAtMs: T0 + 9, createdAtMs: T0 + 1 })
    await keys.insert(keyOf('1'))
    await keys.insert(special)
    assert.deepEqual(await keys.findByHash('hash-1'), keyOf('1'))
    assert.deepEqual(await keys.list(OWNER), [keyOf('1'), special])
    assert.deepEqual(await keys.list(STRANGER), [])
    assert.equal(await keys.remove(STRANGER, '1' as KeyId), false)
    assert.equal(await keys.remove(OWNER, '1' as KeyId), true)
    assert.equal(await keys.remove(OWNER, '1' as KeyId), false)
    assert.equal(await keys.findByHash('hash-1'), null)
  },

  'counts of windows are kept for each owner, in their order': async ({ store: { keys } }) => {
    assert.deepEqual(await keys.windowCounts(OWNER), [])
    const counts = [5, 3, 9].map((used, n) => ({ startMs: T0 - n, used }))
    await keys.saveWindowCounts(OWNER, counts)
    await keys.saveWindowCounts(STRANGER, counts.slice(0, 1))
    assert.deepEqual(await keys.windowCounts(OWNER), counts)
    const next = counts.slice(0, 2).map(count => ({ ...count, used: count.used + 1 }))
    await keys.saveWindowCounts(OWNER, next)
    assert.deepEqual(await keys.windowCounts(OWNER), next)
    assert.deepEqual(await keys.windowCounts(STRANGER), counts.slice(0, 1))
  },
}
