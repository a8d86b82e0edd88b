import { test } from 'node:test'
import { openSqliteStore } from '../../src/store/engines/sqlite.ts'
import { emptiedPostgres, emptiedSqlite, openedAnew } from '../support/emptied-stores.ts'
import { noPostgres } from '../support/postgres-database.ts'
import { storeContract } from './store-contract.ts'

storeContract('SQLite in memory', async () => openedAnew(await openSqliteStore({ file: ':memory:', host: 'inline' })))
storeContract('SQLite on a file', () => emptiedSqlite('inline'))
storeContract('SQLite in a thread', () => emptiedSqlite('thread'))
if (noPostgres === false) storeContract('PostgreSQL', emptiedPostgres)
else test('PostgreSQL: the store contract', { skip: noPostgres }, () => {})
