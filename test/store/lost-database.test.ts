/** Messages of a data directory whose database is missing, and the error of a full disk. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { databaseMismatch } from '../../src/store/data-dir-database.ts'
import { unreadable } from '../../src/store/database-check.ts'
import { errorFromSqlite } from '../../src/store/engines/sqlite-errors.ts'

function makeDataDir(t: TestContext): string {
  const dataDir = mkdtempSync(join(tmpdir(), 'runyard-lost-'))
  t.after(() => rmSync(dataDir, { recursive: true }))
  return dataDir
}

test('a directory whose database and note are gone is known by its note of the audit log', async t => {
  const dataDir = makeDataDir(t)
  assert.equal(await databaseMismatch(dataDir, null), null)
  writeFileSync(join(dataDir, 'audit-head'), `1 ${'0'.repeat(64)}\n`)
  const mismatch = await databaseMismatch(dataDir, null)
  assert.match(mismatch?.problem ?? '', /has had an embedded database, and its file runyard\.sqlite is missing$/)
  assert.match(mismatch?.remedy ?? '', /--new-database/)
})

test('a folder in the place of the database is named', async t => {
  const dataDir = makeDataDir(t)
  writeFileSync(join(dataDir, 'store'), 'the embedded database\n')
  mkdirSync(join(dataDir, 'runyard.sqlite'))
  assert.match((await databaseMismatch(dataDir, null))?.problem ?? '', /its file runyard\.sqlite is not a file$/)
})

test('a full disk is called so when a reader meets it, and asks for no backup', () => {
  // SQLite cannot make the file larger that readers share.
  const error = Object.assign(new Error('disk I/O error'), { code: 'ERR_SQLITE_ERROR', errcode: 4874 })
  assert.match((errorFromSqlite(error) as Error).message, /its disk is full$/)
  assert.deepEqual(unreadable(error), {
    problem: 'it cannot be read, because its disk is full',
    remedy: 'make room there',
  })
  const failed = Object.assign(new Error('disk I/O error'), { code: 'ERR_SQLITE_ERROR', errcode: 266 })
  assert.equal(unreadable(failed).remedy, null)
})
