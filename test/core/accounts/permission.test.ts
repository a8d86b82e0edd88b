import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { sshKeyProblems } from '../../../src/core/accounts/account.ts'
import {
  type AccessLevel,
  callerFromKey,
  endpointScope,
  FULL_SCOPE,
  hasFiles,
  isWithin,
  type KeyScope,
  MAX_SCOPE_ENDPOINTS,
  mayManage,
  mayReadServer,
  mayUseAllJobs,
  mayUseFiles,
  mayUseJobs,
  mayUseModel,
  scopeProblems,
} from '../../../src/core/accounts/permission.ts'
import { fieldProblem, nameProblems } from '../../../src/core/field-problem.ts'
import { DEFAULT_OWNER, type EndpointId, type OwnerId, type VolumeId } from '../../../src/core/ids.ts'
import { makeKey } from '../../contract/store-world.ts'

const MINE = 'mine' as EndpointId
const OTHER = 'constructor' as EndpointId
const READ_ONLY: KeyScope = { type: 'read-only' }

/** Rights of each level. */
const MATRIX: [has: AccessLevel, read: boolean, write: boolean][] = [
  ['none', false, false],
  ['read', true, false],
  ['write', true, true],
]

for (const [has, read, write] of MATRIX) {
  test(`the level ${has} ${read ? 'lets' : 'does not let'} read and ${write ? 'lets' : 'does not let'} write`, () => {
    for (const other of ['none', 'read', 'write'] as const) {
      const manager = { scope: { type: 'restricted', management: has, jobs: other } } as const
      assert.deepEqual([mayManage(manager, 'read'), mayManage(manager, 'write')], [read, write])
      for (const jobs of [has, { [MINE]: has }]) {
        const user = { scope: { type: 'restricted', management: other, jobs } } as const
        assert.deepEqual([mayUseJobs(user, 'read', MINE), mayUseJobs(user, 'write', MINE)], [read, write])
      }
    }
  })
}

test('a key for some endpoints reaches the jobs of these alone, and a key without endpoints reaches no jobs', () => {
  const jobs = { [MINE]: 'write', other: 'read' } as Record<EndpointId, AccessLevel>
  const some = { scope: { type: 'restricted', management: 'write', jobs } } as const
  assert.deepEqual([mayUseJobs(some, 'write', MINE), mayUseJobs(some, 'read', OTHER)], [true, false])
  const [read, write] = [
    mayUseJobs(some, 'read', 'other' as EndpointId),
    mayUseJobs(some, 'write', 'other' as EndpointId),
  ]
  assert.deepEqual([read, write], [true, false])
  assert.ok(mayManage(some, 'write'))
  assert.ok(!mayUseJobs({ scope: { type: 'restricted', management: 'none', jobs: {} } }, 'read', MINE))
})

test('all rights open everything, and those to read open everything to read', () => {
  const all = { scope: FULL_SCOPE }
  assert.ok(mayManage(all, 'write') && mayUseJobs(all, 'write', MINE) && mayUseJobs(all, 'write', OTHER))
  const reader = { scope: READ_ONLY }
  assert.ok(mayManage(reader, 'read') && mayUseJobs(reader, 'read', MINE))
  assert.ok(!mayManage(reader, 'write') && !mayUseJobs(reader, 'write', MINE))
})

test('a key that names models calls these, and their names have limits', () => {
  const scope = (models: readonly string[]) =>
    ({ type: 'restricted', management: 'none', jobs: 'none', models }) as const
  const caller = { scope: scope(['gpt', 'qwen/lora']) }
  assert.deepEqual(
    ['gpt', 'qwen/lora', 'qwen', 'GPT', ''].map(name => mayUseModel(caller, name)),
    [true, true, false, false, false],
  )
  assert.ok(!mayUseModel({ scope: READ_ONLY }, 'gpt') && !mayUseJobs(caller, 'read', MINE))
  const problems = (models: readonly string[]) => scopeProblems(DEFAULT_OWNER, scope(models)).length
  assert.deepEqual([['a'], [''], ['a'.repeat(513)], Array(101).fill('a')].map(problems), [0, 1, 1, 1])
})

test('an operator has all rights of the first account', () => {
  assert.ok(callerFromKey(makeKey('1', { owner: DEFAULT_OWNER, scope: FULL_SCOPE })).operator)
  assert.ok(!callerFromKey(makeKey('1', { owner: DEFAULT_OWNER, scope: READ_ONLY })).operator)
  assert.ok(!callerFromKey(makeKey('1', { owner: 'else' as OwnerId, scope: FULL_SCOPE })).operator)
  const nearly = { type: 'restricted', management: 'write', jobs: 'write' } as const
  assert.ok(!callerFromKey(makeKey('1', { owner: DEFAULT_OWNER, scope: nearly })).operator)
})

const levels = fc.constantFrom<AccessLevel>('none', 'read', 'write')
const places = ['mine', 'other', 'third'] as EndpointId[]
const scopes = fc.oneof(
  fc.constant<KeyScope>(FULL_SCOPE),
  fc.constant<KeyScope>(READ_ONLY),
  fc.record({
    type: fc.constant('restricted' as const),
    management: levels,
    jobs: fc.oneof(levels, fc.dictionary(fc.constantFrom(...places), levels)),
    files: fc.oneof(levels, fc.dictionary(fc.constantFrom(...places), levels)),
    models: fc.subarray(['qwen', 'gpt']),
  }) as fc.Arbitrary<KeyScope>,
)

test('a scope within another opens nothing that the other does not', () => {
  fc.assert(
    fc.property(scopes, scopes, (inner, outer) => {
      fc.pre(isWithin(inner, outer))
      for (const level of ['read', 'write'] as const) {
        assert.ok(!mayManage({ scope: inner }, level) || mayManage({ scope: outer }, level))
        for (const id of [...places, OTHER]) {
          assert.ok(!mayUseJobs({ scope: inner }, level, id) || mayUseJobs({ scope: outer }, level, id))
          const volume = id as string as VolumeId
          assert.ok(!mayUseFiles({ scope: inner }, level, volume) || mayUseFiles({ scope: outer }, level, volume))
        }
      }
      for (const name of ['qwen', 'gpt']) {
        const mayOuter = mayUseModel({ scope: outer }, name) || mayUseAllJobs({ scope: outer }, 'write')
        assert.ok(!mayUseModel({ scope: inner }, name) || mayOuter)
      }
      assert.ok(
        !mayReadServer({ owner: DEFAULT_OWNER, scope: inner }) || mayReadServer({ owner: DEFAULT_OWNER, scope: outer }),
      )
      assert.ok(inner.type !== 'all' || outer.type === 'all')
    }),
  )
})

test('every scope is within itself and within all rights', () => {
  fc.assert(fc.property(scopes, scope => isWithin(scope, scope) && isWithin(scope, FULL_SCOPE)))
})

test('only keys of the operator with the right of its own read the metrics of the server', () => {
  const scraper = { type: 'restricted', management: 'none', jobs: 'none', metrics: 'read' } as const
  const manager = { type: 'restricted', management: 'write', jobs: 'write' } as const
  const may = (scope: KeyScope, owner = DEFAULT_OWNER) => mayReadServer({ owner, scope })
  assert.deepEqual(
    [FULL_SCOPE, scraper, manager, READ_ONLY].map(scope => may(scope)),
    [true, true, false, false],
  )
  assert.deepEqual(
    [FULL_SCOPE, scraper].map(scope => may(scope, 'other' as OwnerId)),
    [false, false],
  )
  assert.ok(!mayManage({ scope: scraper }, 'read') && !mayUseJobs({ scope: scraper }, 'read', MINE))
  assert.deepEqual(scopeProblems(DEFAULT_OWNER, scraper), [])
  assert.deepEqual(scopeProblems('other' as OwnerId, scraper), [
    { field: 'scope', problem: "can have metrics only for a key of the operator's account: they show all accounts" },
  ])
})

test('the scope of an endpoint is for its jobs alone', () => {
  const scope = { scope: endpointScope(MINE) }
  assert.ok(mayUseJobs(scope, 'write', MINE) && !mayUseJobs(scope, 'read', OTHER) && !mayManage(scope, 'read'))
})

test('a scope names a bounded number of endpoints', () => {
  const jobs = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`e${n}`, 'read' as const]))
  const scope = (count: number): KeyScope => ({ type: 'restricted', management: 'none', jobs: jobs(count) })
  assert.deepEqual(scopeProblems(DEFAULT_OWNER, scope(MAX_SCOPE_ENDPOINTS)), [])
  assert.deepEqual(scopeProblems(DEFAULT_OWNER, scope(MAX_SCOPE_ENDPOINTS + 1)), [
    { field: 'scope', problem: 'must name at most 1000 endpoints' },
  ])
  assert.deepEqual(scopeProblems(DEFAULT_OWNER, FULL_SCOPE), [])
})

test('an account has a name, and SSH keys of the usual form', () => {
  assert.deepEqual(nameProblems('a'), [])
  assert.deepEqual([nameProblems(' ').length, nameProblems('x'.repeat(192)).length], [1, 1])
  assert.deepEqual(sshKeyProblems(['ssh-ed25519 AAAA me@home', 'sk-ssh-ed25519@openssh.com AAAA=', 'ecdsa-x A/+b']), [])
  assert.deepEqual(sshKeyProblems(['ssh-ed25519 AAAA', 'rsa AAAA', 'ssh-rsa', 'ssh-rsa A\nssh-rsa B']), [
    ...[2, 3, 4].map(number => fieldProblem('sshKeys', 'is not of the form: type key comment', `key ${number}`)),
  ])
  assert.equal(sshKeyProblems(Array(101).fill('x')).length, 1)
})

test('rights on files are those of all volumes or of named ones, and no key gives more of them than it has', () => {
  const files = (files?: 'none' | 'read' | 'write' | Record<string, 'none' | 'read' | 'write'>) =>
    ({ type: 'restricted', management: 'write', jobs: 'write', ...(files === undefined ? {} : { files }) }) as KeyScope
  const volume = 'v' as VolumeId
  const rights = (scope: KeyScope) => [mayUseFiles({ scope }, 'read', volume), mayUseFiles({ scope }, 'write', volume)]
  assert.deepEqual(rights(FULL_SCOPE), [true, true])
  assert.deepEqual(rights({ type: 'read-only' }), [true, false])
  assert.deepEqual(rights(files()), [false, false])
  assert.deepEqual(rights(files({ v: 'read' })), [true, false])
  assert.deepEqual(rights(files({ w: 'write', v: 'none' })), [false, false])
  assert.equal(isWithin(files({ v: 'read' }), files('read')), true)
  assert.equal(isWithin(files({ v: 'write' }), files('read')), false)
  assert.equal(isWithin(files('read'), files({ v: 'write' })), false)
  assert.equal(isWithin(files({ v: 'read' }), files()), false)
  assert.equal(isWithin({ type: 'read-only' }, { type: 'restricted', management: 'read', jobs: 'read' }), false)
  assert.deepEqual([files(), files({ v: 'none' }), files({ v: 'read' })].map(hasFiles), [false, false, true])
})
