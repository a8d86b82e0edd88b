import assert from 'node:assert/strict'
import {
  type AuditEntry,
  type AuditFilter,
  CHAIN_BEGIN,
  type KeptEntry,
  readEntry,
} from '../../src/core/audit/entry.ts'
import type { KeyId } from '../../src/core/ids.ts'
import type { AuditStore } from '../../src/ports/store/audit-store.ts'
import { type Cases, OWNER, STRANGER, T0 } from './store-world.ts'

const ALL: AuditFilter = {
  account: null,
  key: null,
  operation: null,
  object: null,
  surface: null,
  sinceMs: null,
  untilMs: null,
}
const LAST = Number.MAX_SAFE_INTEGER
const MOST = 100

function makeEntry(operation: string, fields: Partial<AuditEntry> = {}): AuditEntry {
  return {
    atMs: T0,
    account: OWNER,
    keyId: 'k1' as KeyId,
    session: false,
    address: '127.0.0.1',
    requestId: 'r1',
    surface: 'rest',
    operation,
    object: { kind: 'endpoint', id: 'e1' },
    changes: [{ field: 'workersMax', from: 1, to: 3 }],
    detail: {},
    outcome: 'done',
    problem: null,
    begun: null,
    ...fields,
  }
}

function numbers(entries: readonly KeptEntry[]): number[] {
  return entries.map(({ sequence }) => sequence)
}

async function isIntact(audit: AuditStore): Promise<void> {
  const { anchor, head } = await audit.ends()
  assert.deepEqual(await audit.verify(anchor, 1_000), { last: head, broken: null })
}

/** The audit log. */
export const auditCases: Cases = {
  'the log begins empty, and entries follow each other in a chain': async ({ store: { audit } }) => {
    assert.deepEqual(await audit.ends(), { anchor: CHAIN_BEGIN, head: CHAIN_BEGIN })
    assert.deepEqual(await audit.append([makeEntry('one'), makeEntry('two \u0000 \ud800 ünïcode')]), [1, 2])
    assert.deepEqual(await audit.append([makeEntry('three')]), [3])
    const entries = await audit.read(0, 10)
    assert.deepEqual(
      entries.map(({ content }) => readEntry(content).operation),
      ['one', 'two ? \ufffd ünïcode', 'three'],
    )
    assert.equal(new Set(entries.map(({ hash }) => hash)).size, 3)
    assert.deepEqual((await audit.ends()).head, { sequence: 3, hash: entries[2]!.hash })
    await isIntact(audit)
  },

  'a chain is checked a part at a time': async ({ store: { audit } }) => {
    await audit.append(Array.from({ length: 7 }, (_, at) => makeEntry(`o${at}`)))
    let at = CHAIN_BEGIN
    for (const last of [3, 6, 7, 7]) {
      const found = await audit.verify(at, 3)
      assert.deepEqual([found.last.sequence, found.broken], [last, null])
      at = found.last
    }
    const wrong = await audit.verify({ sequence: 3, hash: 'f'.repeat(64) }, 3)
    assert.equal(wrong.broken?.sequence, 4)
  },

  'lists are newest first, in pages, by what they are about': async ({ store: { audit } }) => {
    await audit.append([
      makeEntry('createEndpoint', { atMs: T0 }),
      makeEntry('createSecret', { atMs: T0 + 1_000, account: STRANGER, keyId: 'k2' as KeyId, object: null }),
      makeEntry('createEndpoint', { atMs: T0 + 2_000, surface: 'graphql', object: { kind: 'endpoint', id: 'e2' } }),
      makeEntry('deleteEndpoint', { atMs: T0 + 3_000, account: null, keyId: null }),
    ])
    const list = async (filter: Partial<AuditFilter>, before = LAST, limit = 10) =>
      numbers((await audit.list({ ...ALL, ...filter }, before, limit, MOST)).entries)
    assert.deepEqual(await list({}), [4, 3, 2, 1])
    assert.deepEqual(await list({}, LAST, 2), [4, 3])
    assert.deepEqual(await list({}, 3, 2), [2, 1])
    assert.deepEqual(await list({ account: STRANGER }), [2])
    assert.deepEqual(await list({ account: OWNER, operation: 'createEndpoint' }), [3, 1])
    assert.deepEqual(await list({ key: 'k2' }), [2])
    assert.deepEqual(await list({ object: 'e1' }), [4, 1])
    assert.deepEqual(await list({ surface: 'graphql' }), [3])
    assert.deepEqual(await list({ sinceMs: T0 + 1_000, untilMs: T0 + 3_000 }), [3, 2])
    assert.deepEqual(await list({ untilMs: T0 }), [])
    assert.deepEqual(await list({ sinceMs: T0 + 3_001 }), [])
    assert.deepEqual(await list({ object: "e1' OR 1=1 --" }), [])
  },

  'a list looks at a bounded number of entries, and says where others may fit': async ({ store: { audit } }) => {
    const surfaces = ['rest', 'graphql', 'rest', 'rest', 'rest', 'rest', 'graphql', 'rest', 'rest'] as const
    await audit.append(surfaces.map((surface, at) => makeEntry(`o${at}`, { surface, atMs: T0 + at })))
    const list = async (filter: Partial<AuditFilter>, before: number, limit: number) => {
      const { entries, next } = await audit.list({ ...ALL, ...filter }, before, limit, 3)
      return [numbers(entries), next]
    }
    const surface = 'graphql' as const
    assert.deepEqual(await list({ surface }, LAST, 9), [[7], 7])
    assert.deepEqual(await list({ surface }, 7, 9), [[], 4])
    assert.deepEqual(await list({ surface }, 4, 9), [[2], null], 'at the begin of the log')
    assert.deepEqual(await list({ surface }, LAST, 1), [[7], null], 'as many as were asked for')
    assert.deepEqual(await list({ surface, sinceMs: T0 + 2, untilMs: T0 + 6 }, LAST, 9), [[], 4])
    assert.deepEqual(await list({ surface, sinceMs: T0 + 2 }, 4, 9), [[], null], 'at the first instant')
    assert.deepEqual(await list({ account: STRANGER }, 3, 9), [[], null])
    assert.equal(await audit.removeOld(T0 + 4, 100, 10), 4)
    assert.deepEqual(await list({ surface: 'ops' }, 7, 9), [[], null], 'behind those that were removed')
    assert.deepEqual(await list({ untilMs: T0 }, LAST, 9), [[], null])
  },

  'a clock that is set back does not bring the entries out of order': async ({ store: { audit } }) => {
    await audit.append([makeEntry('one', { atMs: T0 + 5_000 })])
    await audit.append([makeEntry('two', { atMs: T0 })])
    assert.deepEqual(
      (await audit.read(0, 10)).map(({ atMs }) => atMs),
      [T0 + 5_000, T0 + 5_000],
    )
    await isIntact(audit)
  },

  'what began is in no list until it has ended, and ends once': async ({ store: { audit } }) => {
    const [begun] = (await audit.append([makeEntry('slow', { outcome: 'begun' }), makeEntry('quick')])) as [
      number,
      number,
    ]
    assert.deepEqual(numbers((await audit.list(ALL, LAST, 10, MOST)).entries), [2])
    assert.deepEqual(numbers(await audit.begun(10)), [1])
    assert.deepEqual(await audit.append([makeEntry('slow', { begun }), makeEntry('slow', { begun })]), [3, 0])
    assert.deepEqual(await audit.append([makeEntry('slow', { begun, outcome: 'unknown' }), makeEntry('next')]), [0, 4])
    assert.deepEqual(numbers((await audit.list(ALL, LAST, 10, MOST)).entries), [4, 3, 2])
    assert.deepEqual(await audit.begun(10), [])
    await isIntact(audit)
  },

  'old entries go from the beginning, a part at a time, and the chain is whole without them': async ({ store }) => {
    const { audit } = store
    await audit.append(Array.from({ length: 6 }, (_, at) => makeEntry(`o${at}`, { atMs: T0 + at, outcome: 'begun' })))
    const before = await audit.read(0, 10)
    assert.equal(await audit.removeOld(T0, 100, 10), 0)
    assert.equal(await audit.removeOld(T0 + 3, 100, 2), 2)
    assert.equal(await audit.removeOld(T0 + 3, 100, 2), 1)
    assert.equal(await audit.removeOld(T0 + 3, 100, 2), 0)
    assert.deepEqual((await audit.ends()).anchor, { sequence: 3, hash: before[2]!.hash })
    assert.deepEqual(numbers(await audit.begun(10)), [4, 5, 6])
    await isIntact(audit)
    assert.equal(await audit.removeOld(0, 1, 10), 2)
    assert.equal(await audit.removeOld(T0 + 9, 1, 10), 1)
    const { anchor, head } = await audit.ends()
    assert.deepEqual([anchor, head], [head, { sequence: 6, hash: before[5]!.hash }])
    assert.deepEqual(await audit.append([makeEntry('next')]), [7])
    await isIntact(audit)
  },
}
