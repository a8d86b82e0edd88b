import assert from 'node:assert/strict'
import { type ApiKey, FULL_SCOPE, isLastingOperatorKey } from '../../src/core/accounts/permission.ts'
import {
  DEFAULT_OWNER,
  type KeyId,
  type OwnerId,
  type RegistryId,
  type SecretId,
  type TemplateId,
} from '../../src/core/ids.ts'
import {
  type Cases,
  E1,
  E2,
  makeEndpoint,
  makeKey,
  makeRegistry,
  makeSecret,
  makeTemplate,
  OWNER,
  replaceTemplate,
  STRANGER,
  T0,
  TPL,
} from './store-world.ts'

const T2 = 't2' as TemplateId
const R1 = 'r1' as RegistryId
const ids = (things: readonly { id: string }[]) => things.map(({ id }) => id)

/** Templates, secrets and keys. */
export const recordCases: Cases = {
  'a template is kept as it was given, and found by its id and its name': async ({
    store: { templates, registries },
  }) => {
    await registries.insert(makeRegistry(R1), 'sealed')
    const kept = { isServerless: false, volumeGb: 3, isPublic: true, category: 'AMD', startSsh: false } as const
    const template = makeTemplate(T2, { ...kept, registry: R1 })
    assert.equal(await templates.insert(template), true)
    assert.deepEqual(await templates.find(OWNER, T2), template)
    assert.deepEqual(await templates.findByName(OWNER, template.name), template)
    assert.equal(await templates.find(STRANGER, T2), null)
    assert.equal(await templates.findByName(STRANGER, template.name), null)
    assert.equal(await templates.findByName(OWNER, 'none'), null)
    assert.deepEqual(ids(await templates.list(OWNER)), [TPL, T2])
    assert.deepEqual(await templates.list(STRANGER), [])
  },

  'a template that is not listed is found, and one that is public by anybody': async ({ store: { templates } }) => {
    await templates.insert(makeTemplate('hidden', { listed: false }))
    await templates.insert(makeTemplate(T2, { isPublic: true }))
    assert.deepEqual(ids(await templates.list(OWNER)), [TPL, T2])
    assert.equal((await templates.find(OWNER, 'hidden' as TemplateId))?.listed, false)
    assert.equal((await templates.findPublic(T2))?.id, T2)
    assert.equal(await templates.findPublic(TPL), null)
    assert.deepEqual(ids(await templates.listPublic()), [T2])
    await replaceTemplate(templates, makeTemplate(T2), T0)
    assert.equal(await templates.findPublic(T2), null)
    assert.deepEqual(await templates.users(TPL), [E1])
  },

  'the templates of an owner that endpoints have are read at once, listed or not': async ({ store }) => {
    await store.templates.insert(makeTemplate('hidden', { listed: false }))
    await store.templates.insert(makeTemplate(T2))
    await store.endpoints.insert(makeEndpoint('e9', { templateId: 'hidden' as TemplateId }))
    assert.deepEqual(ids(await store.templates.ofEndpoints(OWNER)), ['hidden', TPL])
    assert.deepEqual(await store.templates.ofEndpoints(STRANGER), [])
    const asked = ['hidden', T2, 'none'] as TemplateId[]
    assert.deepEqual(ids(await store.templates.ofThese(OWNER, asked)).toSorted(), ['hidden', T2].toSorted())
    assert.deepEqual(await store.templates.ofThese(STRANGER, asked), [])
    assert.deepEqual(await store.templates.ofThese(OWNER, []), [])
  },

  'an owner has a template name once': async ({ store: { templates } }) => {
    const { name } = makeTemplate(TPL)
    assert.equal(await templates.insert(makeTemplate(T2, { name })), false)
    assert.equal(await templates.insert(makeTemplate(T2, { name, owner: STRANGER })), true)
    assert.equal(await templates.find(OWNER, T2), null)
  },

  'replacing a template makes a new version of each endpoint that uses it': async ({ store }) => {
    const { templates, endpoints } = store
    await templates.insert(makeTemplate(T2))
    await endpoints.insert(makeEndpoint(E2, { version: 5 }))
    await endpoints.insert(makeEndpoint('e3', { templateId: T2 }))
    const changed = makeTemplate(TPL, { name: 'renamed', image: 'image:2', listed: false, env: {} })
    assert.deepEqual(await replaceTemplate(templates, changed, T0), [E1, E2])
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
    await templates.insert(makeTemplate(T2))
    assert.equal(
      await replaceTemplate(templates, makeTemplate(TPL, { name: makeTemplate(T2).name, image: 'new' }), T0),
      null,
    )
    assert.deepEqual(await templates.find(OWNER, TPL), makeTemplate(TPL))
    assert.equal((await endpoints.find(E1))?.version, 1)
    assert.equal(await replaceTemplate(templates, makeTemplate('t9'), T0), null)
    assert.deepEqual(await replaceTemplate(templates, makeTemplate(T2), T0), [])
    assert.equal(await templates.replace(makeTemplate(T2), makeTemplate(T2, { image: 'not any more' }), T0), 'changed')
  },

  'a template that an endpoint has cannot be removed': async ({ store: { templates, endpoints } }) => {
    assert.equal(await templates.remove(STRANGER, TPL), 'absent')
    assert.equal(await templates.remove(OWNER, TPL), 'in_use')
    await endpoints.remove(E1, T0)
    assert.equal(await templates.remove(OWNER, TPL), 'removed')
    assert.equal(await templates.remove(OWNER, TPL), 'absent')
  },

  'secrets are listed without their values, which are given by name': async ({ store: { secrets } }) => {
    const described = makeSecret('2', { description: 'for tests', createdAtMs: T0 + 1 })
    assert.equal(await secrets.insert(makeSecret('1'), 'sealed 1'), true)
    assert.equal(await secrets.insert(described, 'sealed 2'), true)
    assert.equal(await secrets.insert(makeSecret('3', { owner: STRANGER }), 'sealed 3'), true)
    assert.deepEqual(await secrets.list(OWNER), [makeSecret('1'), described])
    const values = await secrets.sealedValues(OWNER, ['secret-2', 'secret-3', 'none', 'secret-1'])
    assert.deepEqual([...values].sort(), [
      ['secret-1', 'sealed 1'],
      ['secret-2', 'sealed 2'],
    ])
  },

  'an owner has a secret name once, until the secret is removed': async ({ store: { secrets } }) => {
    await secrets.insert(makeSecret('1'), 'old')
    const again = makeSecret('2', { name: 'secret-1' })
    assert.equal(await secrets.insert(again, 'new'), false)
    assert.deepEqual([...(await secrets.sealedValues(OWNER, ['secret-1'])).values()], ['old'])
    assert.equal(await secrets.remove(STRANGER, '1' as SecretId), false)
    assert.equal(await secrets.remove(OWNER, '1' as SecretId), true)
    assert.equal(await secrets.remove(OWNER, '1' as SecretId), false)
    assert.equal(await secrets.insert(again, 'new'), true)
  },

  'a secret is found by its id and its name, and changed': async ({ store: { secrets } }) => {
    await secrets.insert(makeSecret('1', { description: 'old' }), 'sealed')
    const id = '1' as SecretId
    assert.deepEqual(await secrets.find(OWNER, id), makeSecret('1', { description: 'old' }))
    assert.deepEqual((await secrets.findByName(OWNER, 'secret-1'))?.id, id)
    assert.deepEqual([await secrets.find(STRANGER, id), await secrets.findByName(STRANGER, 'secret-1')], [null, null])
    const described = makeSecret('1', { description: 'new' })
    assert.deepEqual(await secrets.update(OWNER, id, { description: 'new' }), described)
    assert.deepEqual([...(await secrets.sealedValues(OWNER, ['secret-1'])).values()], ['sealed'])
    const changed = { ...described, valueUpdatedAtMs: T0 + 3 }
    assert.deepEqual(await secrets.update(OWNER, id, { value: { sealed: 'new', atMs: T0 + 3 } }), changed)
    assert.deepEqual(await secrets.find(OWNER, id), changed)
    assert.deepEqual([...(await secrets.sealedValues(OWNER, ['secret-1'])).values()], ['new'])
    assert.equal(await secrets.update(STRANGER, id, { description: 'x' }), null)
    assert.deepEqual(await secrets.update(OWNER, id, {}), changed)
    assert.equal((await secrets.update(OWNER, id, { description: null }))?.description, null)
    assert.deepEqual(ids(await secrets.list(OWNER, { after: changed, limit: 1 })), [])
  },

  'the limits of a key are kept, changed with it, and absent from a key without': async ({ store: { keys } }) => {
    const limited = makeKey('1', { limits: { requestsPerMinute: 3, tokensPerDay: 1_000_000_000_000 } })
    await keys.insert(limited)
    assert.deepEqual(await keys.findByHash('hash-1'), limited)
    const other = { ...limited, limits: { tokensPerMinute: 5 }, accounting: true }
    assert.equal(await keys.update(other, limited), 'changed')
    assert.equal(await keys.update(limited, limited), 'outdated')
    assert.deepEqual(await keys.findByHash('hash-1'), other)
    assert.equal(await keys.update({ ...other, limits: {}, accounting: false }, other), 'changed')
    assert.deepEqual(await keys.findByHash('hash-1'), makeKey('1'))
  },

  'keys are kept as they were given, found by their hash, listed and removed': async ({ store: { keys } }) => {
    const all = { type: 'restricted', management: 'write', jobs: 'none' } as const
    const special = makeKey('2', { scope: all, exempt: true, disabled: true, expiresAtMs: T0 + 9, createdAtMs: T0 + 1 })
    await keys.insert(makeKey('1'))
    await keys.insert(special)
    assert.deepEqual(await keys.findByHash('hash-1'), makeKey('1'))
    assert.deepEqual(await keys.find('2' as KeyId), special)
    assert.deepEqual(await keys.list(OWNER), [makeKey('1'), special])
    assert.deepEqual(ids(await keys.list(OWNER, { after: makeKey('1'), limit: 1 })), ['2'])
    assert.deepEqual(await keys.list(STRANGER), [])
    assert.equal(await keys.remove(STRANGER, '1' as KeyId), 'absent')
    assert.equal(await keys.remove(OWNER, '1' as KeyId), 'removed')
    assert.equal(await keys.remove(OWNER, '1' as KeyId), 'absent')
    assert.equal(await keys.findByHash('hash-1'), null)
  },

  'a key is changed as a whole, and its last use only grows': async ({ store: { keys } }) => {
    await keys.insert(makeKey('1'))
    const scope = { type: 'read-only' } as const
    const changed = makeKey('1', {
      name: 'new',
      scope,
      disabled: true,
      exempt: true,
      expiresAtMs: T0 + 5,
      kind: 'server',
    })
    assert.equal(await keys.update(changed, makeKey('1', { name: 'not any more' })), 'outdated')
    assert.equal(await keys.update(changed, makeKey('1', { lastUsedAtMs: T0 })), 'changed')
    await keys.used(changed.id, T0 + 7)
    await keys.used(changed.id, T0 + 6)
    assert.deepEqual(await keys.find(changed.id), { ...changed, lastUsedAtMs: T0 + 7 })
    assert.equal(await keys.update({ ...changed, owner: STRANGER }, changed), 'outdated')
  },

  'whatever is taken away at once, one key with all rights of the operator stays': async ({ store: { keys } }) => {
    const owner = DEFAULT_OWNER
    const ways: ((key: ApiKey) => Promise<string>)[] = [
      key => keys.remove(owner, key.id),
      key => keys.update({ ...key, disabled: true }, key),
      key => keys.update({ ...key, scope: { type: 'read-only' } }, key),
      key => keys.update({ ...key, expiresAtMs: T0 + 1_000 }, key),
      key => keys.remove(owner, key.id),
    ]
    for (const weak of [{ disabled: true }, { expiresAtMs: T0 }, { scope: { type: 'read-only' } }] as const)
      await keys.insert(makeKey(`weak-${Object.keys(weak)[0]}`, { owner, ...weak }))
    await keys.insert(makeKey('stranger', { owner: STRANGER, scope: FULL_SCOPE }))
    for (let round = 0; round < 10; round += 1) {
      const full = ways.map((_, n) => makeKey(`full-${round}-${n}`, { owner, scope: FULL_SCOPE }))
      for (const key of full) await keys.insert(key)
      const left = (await keys.list(owner)).filter(isLastingOperatorKey)
      const ends = await Promise.all(left.map((key, n) => ways[(n + round) % ways.length]!(key)))
      assert.equal(ends.filter(end => end === 'last_key').length, 1, String(ends))
      const stays = (await keys.list(owner)).filter(isLastingOperatorKey)
      assert.deepEqual(ids(stays), [left[ends.indexOf('last_key')]?.id])
    }
    assert.equal(await keys.remove(owner, 'weak-disabled' as KeyId), 'removed')
    assert.equal(await keys.remove(STRANGER, 'stranger' as KeyId), 'removed')
  },

  'a key is put in the place of another one, which goes or changes, in one step': async ({ store: { keys } }) => {
    const old = makeKey('old')
    await keys.insert(old)
    const renamed = { ...old, name: 'renamed', expiresAtMs: T0 + 9 }
    const next = (n: string) => makeKey(n, { createdAtMs: T0 + Number(n) })
    assert.equal(await keys.replace(next('1'), renamed, null), 'outdated')
    assert.equal(await keys.find('1' as KeyId), null)
    assert.equal(await keys.replace(next('1'), old, renamed), 'replaced')
    assert.deepEqual([await keys.find('1' as KeyId), await keys.find(old.id)], [next('1'), renamed])
    assert.equal(await keys.replace(next('2'), renamed, null), 'replaced')
    assert.deepEqual([await keys.find('2' as KeyId), await keys.find(old.id)], [next('2'), null])
    assert.equal(await keys.replace(next('3'), renamed, null), 'outdated')
    // The last key of the operator may go where another one of its kind comes.
    const all = { owner: DEFAULT_OWNER, scope: { type: 'all' } } as const
    const [last, weak, lasting] = [
      makeKey('last', all),
      makeKey('weak', { ...all, expiresAtMs: T0 }),
      makeKey('same', all),
    ]
    await keys.insert(last)
    assert.equal(await keys.replace(weak, last, null), 'last_key')
    assert.equal(await keys.find(weak.id), null)
    assert.equal(await keys.replace(lasting, last, null), 'replaced')
  },

  'an endpoint has one key, which no list shows and which goes with it': async ({ store: { keys, endpoints } }) => {
    const key = makeKey('1', { kind: 'endpoint', endpointId: E1 })
    assert.equal(await keys.ofEndpoint(E1), null)
    assert.deepEqual(await keys.ensureForEndpoint(key, 'sealed 1'), { key, sealed: 'sealed 1' })
    const again = { ...key, id: '2' as KeyId, hash: 'hash-2' }
    assert.deepEqual(await keys.ensureForEndpoint(again, 'sealed 2'), { key, sealed: 'sealed 1' })
    assert.deepEqual(await keys.ofEndpoint(E1), { key, sealed: 'sealed 1' })
    assert.deepEqual([await keys.list(OWNER), await keys.find('2' as KeyId)], [[], null])
    assert.deepEqual(await keys.findByHash('hash-1'), key)
    await endpoints.remove(E1, T0)
    assert.deepEqual([await keys.ofEndpoint(E1), await keys.findByHash('hash-1')], [null, null])
  },

  'the key of an endpoint is replaced by another, and stays as a record when it is disabled': async ({
    store: { keys },
  }) => {
    const of = (n: string) => makeKey(n, { kind: 'endpoint', endpointId: E1, createdAtMs: T0 + Number(n) })
    assert.equal(await keys.replaceForEndpoint(of('1'), 'sealed 1'), null)
    const disabled = { ...of('1'), disabled: true }
    assert.equal(await keys.update(disabled, of('1')), 'changed')
    assert.deepEqual(await keys.ensureForEndpoint(of('2'), 'sealed 2'), { key: disabled, sealed: 'sealed 1' })
    assert.deepEqual(await keys.replaceForEndpoint(of('3'), 'sealed 3'), disabled)
    assert.deepEqual(await keys.ofEndpoint(E1), { key: of('3'), sealed: 'sealed 3' })
    assert.deepEqual([await keys.find('1' as KeyId), await keys.findByHash('hash-1')], [null, null])
    assert.deepEqual(await keys.listOfEndpoints(OWNER), [of('3')])
    assert.deepEqual(await keys.listOfEndpoints(OWNER, { after: { createdAtMs: T0 + 3, id: '3' }, limit: 5 }), [])
    assert.deepEqual(await keys.listOfEndpoints(STRANGER), [])
  },

  'accounts are kept, renamed and listed, each once': async ({ store: { accounts } }) => {
    const account = { id: OWNER, name: 'one', createdAtMs: T0, deleteRunningEndpoints: false, limits: {} }
    assert.equal(await accounts.insert(account), true)
    assert.equal(await accounts.insert({ ...account, name: 'again' }), false)
    assert.equal(await accounts.insert({ ...account, id: STRANGER, name: 'two', createdAtMs: T0 - 1 }), true)
    assert.deepEqual(ids(await accounts.list()), [STRANGER, OWNER])
    assert.deepEqual(await accounts.update(OWNER, { name: 'new' }), { ...account, name: 'new' })
    const chosen = { ...account, name: 'new', deleteRunningEndpoints: true }
    assert.deepEqual(await accounts.update(OWNER, { deleteRunningEndpoints: true }), chosen)
    assert.deepEqual([await accounts.update(OWNER, {}), await accounts.find(OWNER)], [chosen, chosen])
    assert.equal((await accounts.update(OWNER, { deleteRunningEndpoints: false }))?.deleteRunningEndpoints, false)
    assert.equal((await accounts.find(STRANGER))?.deleteRunningEndpoints, false)
    assert.equal(await accounts.update('none' as OwnerId, { name: 'x' }), null)
    assert.equal(await accounts.find('none' as OwnerId), null)
    assert.deepEqual(await accounts.sshKeys(OWNER), [])
    await accounts.replaceSshKeys(OWNER, ['a', 'b'], T0)
    await accounts.replaceSshKeys('new' as OwnerId, ['c'], T0)
    assert.deepEqual([await accounts.sshKeys(OWNER), await accounts.sshKeys('new' as OwnerId)], [['a', 'b'], ['c']])
    assert.equal((await accounts.find(OWNER))?.name, 'new')
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
