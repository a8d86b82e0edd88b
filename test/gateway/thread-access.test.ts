/** Rights of callers in a thread that reads HTTP. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Caller } from '../../src/core/accounts/permission.ts'
import { DEFAULT_OWNER, type KeyId } from '../../src/core/ids.ts'

import { type Ask, ThreadAccess } from '../../src/gateway/threads/thread-access.ts'
import type { Ports } from '../../src/ports/ports.ts'
import { openRig } from '../support/rig.ts'

test('what the token of a worker of an app holds open ends with the worker, as the deciding thread knows it', async t => {
  const { clock, ports } = await openRig(t)
  const asked: unknown[] = []
  const ask = (async (name: string, what: object) => {
    asked.push([name, what])
    return null
  }) as Ask
  // A thread has no store.
  const own = { clock: ports.clock, notifier: ports.notifier, vault: ports.vault } as unknown as Ports
  const access = new ThreadAccess(own, ask, () => 0)
  const keyId = 'worker:w1' as KeyId
  const scope = { type: 'restricted', management: 'none', jobs: 'write' } as const
  const caller: Caller = { owner: DEFAULT_OWNER, keyId, scope, exempt: false, operator: false, expiresAtMs: null }
  const ended: string[] = []
  access.hold(
    caller,
    () => {},
    ({ code }) => ended.push(code),
  )
  await clock.advance(1_000)
  assert.deepEqual([ended, asked], [['unauthorized'], [['key', { id: keyId }]]])
})
