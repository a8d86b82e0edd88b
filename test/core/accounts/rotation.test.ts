import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type KeyScope, scopeWithout } from '../../../src/core/accounts/permission.ts'
import { replacedName, rotationEndMs } from '../../../src/core/accounts/rotation.ts'
import type { EndpointId, VolumeId } from '../../../src/core/ids.ts'

test('a replaced key says so in its name, once, within the limit of names', () => {
  assert.equal(replacedName('ci'), 'ci (replaced)')
  assert.equal(replacedName('ci (replaced)'), 'ci (replaced)')
  assert.equal(replacedName('x'.repeat(191)).length, 191)
})

test('a rotation never lengthens the life of the old key', () => {
  assert.equal(rotationEndMs(null, 1_000), 1_000)
  assert.equal(rotationEndMs(900, 1_000), 900)
  assert.equal(rotationEndMs(1_100, 1_000), 1_000)
})

test('a scope without what is gone has all its other rights', () => {
  const gone = new Set(['lost' as EndpointId, 'v1' as VolumeId])
  const rights = { type: 'restricted', management: 'read' } as const
  const scope = { ...rights, jobs: { kept: 'write', lost: 'read' }, files: { v1: 'write', v2: 'read' } } as KeyScope
  assert.deepEqual(scopeWithout(scope, gone), { ...rights, jobs: { kept: 'write' }, files: { v2: 'read' } })
  for (const other of [{ type: 'all' }, { type: 'read-only' }, { ...rights, jobs: 'write' }] as KeyScope[])
    assert.deepEqual(scopeWithout(other, gone), other)
})
