import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { forSqlite } from '../../src/store/engines/dialect.ts'
import { openSqliteStore } from '../../src/store/engines/sqlite.ts'
import { emptiedPostgres, emptiedSqlite, openedAnew } from '../support/emptied-stores.ts'
import { noPostgres } from '../support/postgres-database.ts'
import { statements } from '../support/store-statements.ts'
import { storeContract } from './store-contract.ts'

/** Statements that the cases ran, as SQLite got them. */
const run = new Set<string>()
const { prepare } = DatabaseSync.prototype
DatabaseSync.prototype.prepare = function (this: DatabaseSync, ...args: Parameters<typeof prepare>) {
  run.add(args[0].trim())
  return prepare.apply(this, args)
}

storeContract('SQLite in memory', async () => openedAnew(await openSqliteStore({ file: ':memory:', host: 'inline' })))
storeContract('SQLite on a file', () => emptiedSqlite('inline'))
storeContract('SQLite in a thread', () => emptiedSqlite('thread'))
if (noPostgres === false) storeContract('PostgreSQL', emptiedPostgres)
else test('PostgreSQL: the store contract', { skip: noPostgres }, () => {})

test('the tests of plans know every statement that a store runs', () => {
  const known = new Set(statements.map(([, sql]) => forSqlite(sql).trim()))
  const ofEngine =
    /^(?:CREATE|PRAGMA|BEGIN|COMMIT|SAVEPOINT|RELEASE|ROLLBACK|SELECT total_changes|.* (?:migrations|sqlite_schema|sqlite_master|change_count)\b)/
  const unknown = [...run].filter(text => !known.has(text) && !ofEngine.test(text))
  assert.deepEqual(unknown, [])
})
