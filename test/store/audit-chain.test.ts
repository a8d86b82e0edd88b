/** Attacks on the audit log with access to the database, and their detection. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, describe, test } from 'node:test'
import { type Caller, callerFromKey, FULL_SCOPE } from '../../src/core/accounts/permission.ts'
import { type AuditEntry, SERVER_ORIGIN } from '../../src/core/audit/entry.ts'
import { DEFAULT_OWNER } from '../../src/core/ids.ts'
import type { Store } from '../../src/ports/store/store.ts'
import { AuditKeeper } from '../../src/services/audit/audit-keeper.ts'
import { AuditLog } from '../../src/services/audit/audit-log.ts'
import { AuditReader } from '../../src/services/audit/audit-reader.ts'
import { type Audit, auditFile, auditPostgres } from '../../src/store/database-audit.ts'
import { openPostgresStore } from '../../src/store/engines/postgres.ts'
import { openSqliteStore } from '../../src/store/engines/sqlite.ts'
import { chainHash } from '../../src/store/operations/audit/audit-chain.ts'
import { createAuditHeadNote } from '../../src/system/audit-head.ts'
import { makeKey } from '../contract/store-world.ts'
import { portsWith } from '../support/ports.ts'
import { noPostgres, testSchema } from '../support/postgres-database.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

const root = mkdtempSync(join(tmpdir(), 'runyard-chain-'))
after(() => rmSync(root, { recursive: true, force: true }))

const ENTRY: AuditEntry = {
  ...SERVER_ORIGIN,
  atMs: 1_700_000_000_000,
  surface: 'server',
  operation: 'startServer',
  object: null,
  changes: [],
  detail: {},
  outcome: 'done',
  problem: null,
  begun: null,
}

/** A database with ten entries, of which the first three were removed as old. */
interface World {
  readonly store: Store
  /** Runs statements past the store. */
  readonly tamper: (statements: string) => Promise<unknown>
  /** Check of the log, as by `runyard check`. */
  readonly check: () => Promise<Pick<Audit, 'flaws'>>
}

async function fill(store: Store): Promise<void> {
  for (let at = 0; at < 10; at += 1)
    await store.audit.append([{ ...ENTRY, atMs: ENTRY.atMs + at, operation: `o${at}` }])
  await store.audit.removeOld(ENTRY.atMs + 3, 100, 100)
}

async function embedded(): Promise<World> {
  const file = join(mkdtempSync(join(root, 'db-')), 'runyard.sqlite')
  const store = await openSqliteStore({ file, host: 'inline' })
  after(() => store.close())
  await fill(store)
  const tamper = async (statements: string) => {
    using database = new DatabaseSync(file)
    database.exec(statements)
  }
  return { store, tamper, check: async () => auditFile(file, false, 0) }
}

async function onServer(): Promise<World> {
  const schema = await testSchema()
  const store = await openPostgresStore({ url: schema.url })
  after(async () => {
    await store.close()
    await schema.drop()
  })
  await fill(store)
  return { store, tamper: statements => schema.query(statements), check: () => auditPostgres(schema.url, null, 0) }
}

const SWAP = `
  UPDATE audit_entries SET sequence = -1 WHERE sequence = 5;
  UPDATE audit_entries SET sequence = 5 WHERE sequence = 6;
  UPDATE audit_entries SET sequence = 6 WHERE sequence = -1`

const CASES: readonly [what: string, statements: string, found: RegExp | null][] = [
  ['nothing', 'SELECT 1', null],
  [
    'a changed entry',
    `UPDATE audit_entries SET content = replace(content, 'o4', 'oX') WHERE sequence = 5`,
    /^entry 5 is not/,
  ],
  ['a changed hash', `UPDATE audit_entries SET hash = '${'0'.repeat(64)}' WHERE sequence = 7`, /^entry 7 is not/],
  ['a changed column', `UPDATE audit_entries SET account = 'innocent' WHERE sequence = 8`, /^the columns of entry 8/],
  ['a removed entry', 'DELETE FROM audit_entries WHERE sequence = 6', /^entry 6 is missing/],
  ['removed entries', 'DELETE FROM audit_entries WHERE sequence IN (6, 7)', /^entries 6 to 7 are missing/],
  ['removed old entries', 'DELETE FROM audit_entries WHERE sequence = 4', /^entry 4 is missing/],
  ['swapped entries', SWAP, /^entry 5 is not/],
  ['a changed anchor', `UPDATE audit_anchors SET hash = '${'1'.repeat(64)}'`, /^entry 4 is not/],
]

/** The parts of a server that use the note of the last entry in its data directory. */
function noting(store: Store) {
  const note = createAuditHeadNote(join(mkdtempSync(join(root, 'data-')), 'audit-head'))
  const ports = portsWith({ store, clock: new VirtualClock() })
  const keeper = new AuditKeeper(
    ports,
    new AuditLog(ports),
    { keptMs: Number.MAX_SAFE_INTEGER, maxEntries: 1_000 },
    note,
  )
  const caller: Caller = callerFromKey(makeKey('1', { owner: DEFAULT_OWNER, scope: FULL_SCOPE }))
  const reading = new AuditReader(ports, note)
  const verify = async () => (await reading.verify(caller, new AbortController().signal)).broken
  return { note, step: () => keeper.step(ENTRY.atMs), verify }
}

for (const [name, open, skip] of [
  ['SQLite', embedded, false],
  ['PostgreSQL', onServer, noPostgres],
] as const) {
  describe(`the audit log on ${name}`, { skip }, () => {
    test('an end that was cut off is found, also after more was added and a server has looked after the log', async () => {
      const { store, tamper } = await open()
      const { note, step, verify } = noting(store)
      assert.equal(await verify(), null)
      await step()
      assert.deepEqual(note.read(), (await store.audit.ends()).head)
      assert.equal(await verify(), null)
      await store.audit.append([{ ...ENTRY, operation: 'later' }])
      assert.equal(await verify(), null)
      await tamper('DELETE FROM audit_entries WHERE sequence > 8')
      const cut = { sequence: 10, problem: /entry 10, which the data directory has noted as the last one, is gone/ }
      const check = async () => {
        const broken = await verify()
        assert.equal(broken?.sequence, cut.sequence)
        assert.match(broken?.problem ?? '', cut.problem)
      }
      await check()
      for (let at = 0; at < 5; at += 1) {
        await store.audit.append([{ ...ENTRY, operation: `new${at}` }])
        await step()
        await check()
      }
    })

    test('a noted entry that was removed as old is no flaw', async () => {
      const { store } = await open()
      const { step, verify } = noting(store)
      await step()
      await store.audit.append([{ ...ENTRY, atMs: ENTRY.atMs + 20, operation: 'later' }])
      await store.audit.removeOld(ENTRY.atMs + 15, 100, 100)
      assert.equal(await verify(), null)
      await step()
      assert.equal(await verify(), null)
    })

    for (const [what, statements, found] of CASES) {
      test(`${what} is ${found === null ? 'no flaw' : 'found'}`, async () => {
        const { store, tamper, check } = await open()
        await tamper(statements)
        const { anchor } = await store.audit.ends()
        const { broken, last } = await store.audit.verify(anchor, 1_000)
        if (found === null) assert.deepEqual([broken, last.sequence], [null, 10])
        else assert.match(broken!.problem, found)
        const flaws = (await check()).flaws.map(({ problem }) => problem)
        assert.deepEqual(flaws, broken === null ? [] : [`the audit log is broken: ${broken.problem}`])
      })
    }
  })
}

test('who can write the database can write another chain, so its last hash has to be known elsewhere', async () => {
  const { store, tamper } = await embedded()
  const known = (await store.audit.ends()).head
  const [, second] = await store.audit.read(8, 10)
  const forged = second!.content.replace('o9', 'oX')
  const [before] = await store.audit.read(8, 1)
  await tamper(`UPDATE audit_entries SET operation = 'oX', content = '${forged}', hash = '${chainHash(before!.hash, forged)}'
    WHERE sequence = 10`)
  const { anchor, head } = await store.audit.ends()
  assert.equal((await store.audit.verify(anchor, 100)).broken, null)
  assert.notEqual(head.hash, known.hash)
})
