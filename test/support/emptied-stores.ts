/**
 * Stores that are emptied between cases. A new store for each case would take longer than the case: a thread has to
 * start, or a schema has to be created.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Client } from 'pg'
import type { Store } from '../../src/ports/store/store.ts'
import { openPostgresStore } from '../../src/store/engines/postgres.ts'
import { openSqliteStore, type StoreHost } from '../../src/store/engines/sqlite.ts'
import { testSchema } from './postgres-database.ts'

/** A store that is emptied, not closed, after a case. */
export interface EmptiedStore {
  readonly store: Store
  /** Removes all rows except the schema version; null when a new store opens faster. */
  readonly empty: (() => Promise<void>) | null
  /** Closes it and removes its data. */
  end(): Promise<void>
}

/** A store that is opened for one case. */
export function openedAnew(store: Store): EmptiedStore {
  return { store, empty: null, end: () => store.close() }
}

/** A store in a separate file. */
export async function emptiedSqlite(host: StoreHost): Promise<EmptiedStore> {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-store-'))
  const file = join(folder, 'runyard.sqlite')
  const store = await openSqliteStore({ file, host })
  const beside = new DatabaseSync(file, { timeout: 5_000, enableForeignKeyConstraints: false })
  // The data need not survive a power cut.
  beside.exec('PRAGMA synchronous = OFF')
  const names = beside.prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'migrations'").all()
  const deletes = names.map(({ name }) => `DELETE FROM ${name};`).join('')
  return {
    store,
    empty: async () => beside.exec(`BEGIN IMMEDIATE; ${deletes} COMMIT`),
    async end() {
      beside.close()
      await store.close()
      rmSync(folder, { recursive: true })
    },
  }
}

/** A store in a separate schema. */
export async function emptiedPostgres(): Promise<EmptiedStore> {
  const schema = await testSchema()
  const store = await openPostgresStore({ url: schema.url })
  const tables = await schema.query(
    "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename <> 'migrations'",
  )
  // TRUNCATE creates new files for each table and index. Without the checks of references the order does not matter.
  const deletes = tables.map(({ tablename }) => `DELETE FROM ${tablename};`).join('')
  const beside = new Client({ connectionString: schema.url })
  await beside.connect()
  await beside.query('SET session_replication_role = replica')
  return {
    store,
    empty: async () => void (await beside.query(`BEGIN; ${deletes} COMMIT`)),
    async end() {
      await beside.end()
      await store.close()
      await schema.drop()
    },
  }
}
