import assert from 'node:assert/strict'
import type { Session } from '../../src/core/accounts/session.ts'
import type { KeyId } from '../../src/core/ids.ts'
import { type Cases, E1, makeKey, OWNER, STRANGER, T0 } from './store-world.ts'

const K1 = 'k1' as KeyId
const K2 = 'k2' as KeyId

function makeSession(hash: string, changes: Partial<Session> = {}): Session {
  return { hash, owner: OWNER, keyId: K1, createdAtMs: T0, expiresAtMs: T0 + 1_000, ...changes }
}

/** Sessions of the console. */
export const sessionCases: Cases = {
  'a session is found by its hash, with the hash of its key, until it is removed': async ({ store }) => {
    const { keys, sessions } = store
    await keys.insert(makeKey(K1))
    assert.deepEqual(await sessions.insert(makeSession('s1'), 5), [])
    assert.deepEqual(await sessions.find('s1'), { ...makeSession('s1'), keyHash: 'hash-k1' })
    assert.equal(await sessions.find('s2'), null)
    assert.equal(await sessions.remove('s1'), true)
    assert.equal(await sessions.remove('s1'), false)
    assert.equal(await sessions.find('s1'), null)
  },

  'there is no session without its key, and it goes with it': async ({ store: { keys, sessions } }) => {
    assert.equal(await sessions.insert(makeSession('s0'), 5), null)
    await keys.insert(makeKey(K1))
    await keys.insert(makeKey(K2))
    await sessions.insert(makeSession('s1'), 5)
    await sessions.insert(makeSession('s2', { keyId: K2 }), 5)
    assert.equal(await keys.remove(OWNER, K1), 'removed')
    assert.equal(await sessions.find('s1'), null)
    assert.equal((await sessions.find('s2'))?.keyId, K2)
  },

  'a session with the key of an endpoint ends when that gets another key': async ({ store: { keys, sessions } }) => {
    await keys.ensureForEndpoint(makeKey(K1, { kind: 'endpoint', endpointId: E1 }), 'sealed')
    await sessions.insert(makeSession('s1'), 5)
    await keys.replaceForEndpoint(makeKey(K2, { kind: 'endpoint', endpointId: E1 }), 'sealed')
    assert.equal(await sessions.find('s1'), null)
    assert.deepEqual(await sessions.insert(makeSession('s2', { keyId: K2 }), 5), [])
  },

  'the oldest sessions of an account make place for a new one, and those of others stay': async ({ store }) => {
    const { keys, sessions } = store
    await keys.insert(makeKey(K1))
    await keys.insert(makeKey(K2, { owner: STRANGER }))
    await sessions.insert(makeSession('other', { owner: STRANGER, keyId: K2, createdAtMs: T0 - 9 }), 2)
    for (const [at, hash] of ['s1', 's2', 's3'].entries()) {
      const gone = await sessions.insert(makeSession(hash, { createdAtMs: T0 + at }), 2)
      assert.deepEqual(gone, hash === 's3' ? ['s1'] : [])
    }
    const gone = await sessions.insert(makeSession('s4', { createdAtMs: T0 }), 1)
    assert.deepEqual(gone?.sort(), ['s2', 's3'])
    assert.notEqual(await sessions.find('s4'), null)
    assert.notEqual(await sessions.find('other'), null)
  },

  'sessions that are over are removed a bounded number at a time': async ({ store: { keys, sessions } }) => {
    await keys.insert(makeKey(K1))
    for (const [at, hash] of ['s1', 's2', 's3', 's4'].entries()) {
      await sessions.insert(makeSession(hash, { expiresAtMs: T0 + at }), 9)
    }
    assert.equal(await sessions.removeOver(T0 + 2, 2), 2)
    assert.equal(await sessions.removeOver(T0 + 2, 2), 1)
    assert.equal(await sessions.removeOver(T0 + 2, 2), 0)
    assert.equal((await sessions.find('s4'))?.expiresAtMs, T0 + 3)
  },
}
