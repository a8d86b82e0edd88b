import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId, KeyId, OwnerId } from '../../src/core/ids.ts'
import {
  type AccessLevel,
  type Caller,
  FULL_SCOPE,
  type KeyScope,
  mayManage,
  mayUseJobs,
} from '../../src/core/permission.ts'

const MINE = 'mine' as EndpointId
const OTHER = 'other' as EndpointId
const caller = (scope: KeyScope): Caller => ({ owner: 'owner' as OwnerId, keyId: 'key' as KeyId, scope, exempt: false })

/** What a level lets its holder do. */
const MATRIX: [has: AccessLevel, read: boolean, write: boolean][] = [
  ['none', false, false],
  ['read', true, false],
  ['write', true, true],
]

for (const [has, read, write] of MATRIX) {
  test(`the level ${has} ${read ? 'lets' : 'does not let'} read and ${write ? 'lets' : 'does not let'} write`, () => {
    for (const other of ['none', 'read', 'write'] as const) {
      const manager = caller({ management: has, jobs: other, endpoints: null })
      assert.deepEqual([mayManage(manager, 'read'), mayManage(manager, 'write')], [read, write])
      const user = caller({ management: other, jobs: has, endpoints: null })
      assert.deepEqual([mayUseJobs(user, 'read', MINE), mayUseJobs(user, 'write', MINE)], [read, write])
    }
  })
}

test('a key for some endpoints reaches the jobs of no other, and of none when its list is empty', () => {
  const some = caller({ management: 'write', jobs: 'write', endpoints: [MINE] })
  assert.deepEqual([mayUseJobs(some, 'write', MINE), mayUseJobs(some, 'read', OTHER)], [true, false])
  assert.ok(mayManage(some, 'write'))
  const none = caller({ management: 'none', jobs: 'write', endpoints: [] })
  assert.ok(!mayUseJobs(none, 'read', MINE))
})

test('the full scope opens everything', () => {
  const all = caller(FULL_SCOPE)
  assert.ok(mayManage(all, 'write') && mayUseJobs(all, 'write', MINE) && mayUseJobs(all, 'write', OTHER))
})
