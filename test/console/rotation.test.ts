import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ApiKey } from '../../console/client/api-types.d.ts'
import { createdText, oldKeyEnd, replacedName, successor } from '../../console/pages/keys/rotation.ts'

test('a replaced key says so in its name, once, within the limit of names', () => {
  assert.equal(replacedName('ci'), 'ci (replaced)')
  assert.equal(replacedName('ci (replaced)'), 'ci (replaced)')
  assert.equal(replacedName('x'.repeat(191)).length, 191)
})

test('a rotation never lengthens the life of the old key', () => {
  const endMs = Date.parse('2026-11-28T12:00:00Z')
  assert.equal(oldKeyEnd(null, endMs), '2026-11-28T12:00:00.000Z')
  assert.equal(oldKeyEnd('2026-11-28T11:00:00Z', endMs), '2026-11-28T11:00:00.000Z')
  assert.equal(oldKeyEnd('2026-11-30T11:00:00Z', endMs), '2026-11-28T12:00:00.000Z')
})

test('a new key with rights on files comes with its pair for S3', () => {
  assert.equal(createdText({ key: 'rpa_1', s3: null }), 'rpa_1')
  const text = createdText({ key: 'rpa_1', s3: { accessKeyId: 'id', secretAccessKey: 'hush' } })
  assert.deepEqual(text.split('\n'), ['rpa_1', 'S3 access key: id', 'S3 secret key: hush'])
})

test('a new key has the name, rights and limits of the old one, without what was deleted since', () => {
  const limits = { requestsPerMinute: 5, tokensPerMinute: null, tokensPerDay: null }
  const rights = { type: 'restricted', management: 'read' } as const
  const old = {
    id: 'k1',
    owner: 'default',
    name: 'ci',
    hint: '…abcd',
    kind: 'user',
    scope: { ...rights, jobs: { here: 'write', gone: 'write' }, files: { kept: 'read', lost: 'write' } },
    exempt: false,
    limits,
    accounting: true,
    disabled: false,
    createdAt: '2026-11-28T11:00:00Z',
    expiresAt: null,
    lastUsedAt: null,
  } as unknown as ApiKey
  assert.deepEqual(successor(old, { endpoint: id => id === 'here', volume: id => id === 'kept' }), {
    name: 'ci',
    scope: { ...rights, jobs: { here: 'write' }, files: { kept: 'read' } },
    expiresAt: null,
    limits,
    accounting: true,
  })
  const plain = successor({ ...old, accounting: false }, { endpoint: () => true, volume: () => true })
  assert.ok(!('accounting' in plain), 'a session whose key has accounting gives it')
})
