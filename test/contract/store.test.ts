import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openPostgresStore } from '../../src/store/postgres.ts'
import { openSqliteStore, type StoreHost } from '../../src/store/sqlite.ts'
import { noPostgres, testSchema } from '../support/postgres-database.ts'
import { type FreshStore, storeContract } from './store-contract.ts'

storeContract('SQLite in memory', async () => ({ store: await openSqliteStore({ file: ':memory:', host: 'inline' }) }))
storeContract('SQLite on a file', () => onFile('inline'))
storeContract('SQLite in a thread', () => onFile('thread'))
if (noPostgres === false) storeContract('PostgreSQL', onPostgres)
else test('PostgreSQL: the store contract', { skip: noPostgres }, () => {})

async function onPostgres(): Promise<FreshStore> {
  const schema = await testSchema()
  return { store: await openPostgresStore({ url: schema.url }), cleanUp: () => schema.drop() }
}

async function onFile(host: StoreHost): Promise<FreshStore> {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-store-'))
  const store = await openSqliteStore({ file: join(folder, 'runyard.sqlite'), host })
  return { store, cleanUp: () => rmSync(folder, { recursive: true }) }
}
