/** Checks a database without changing it, beside a server that may be running. */
import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { Client } from 'pg'
import { connectionConfig } from './engines/postgres-connection.ts'
import { migrations } from './schema/migrations.ts'

/** The result of a check. */
export interface DatabaseCheck {
  /** A sentence; null when all is well. */
  readonly problem: string | null
  /** Of the engine and the schema; null for a database that is not there yet. */
  readonly version: string | null
  /** Its clock in Unix milliseconds; null for a file. */
  readonly nowMs: number | null
}

/** Checks the file of an embedded database. */
export function checkFile(file: string): DatabaseCheck {
  if (!existsSync(file)) return { problem: null, version: null, nowMs: null }
  let database: DatabaseSync | null = null
  try {
    database = new DatabaseSync(file, { readOnly: true, timeout: 2_000 })
    const engine = String(database.prepare('SELECT sqlite_version() AS version').get()?.version)
    const made = database.prepare("SELECT 1 FROM sqlite_master WHERE name = 'migrations'").get() !== undefined
    const schema = made
      ? Number(database.prepare('SELECT max(version) AS schema FROM migrations').get()?.schema ?? 0)
      : 0
    return { problem: tooNew(schema), version: `SQLite ${engine}, schema ${schema}`, nowMs: null }
  } catch (error) {
    return { problem: `it cannot be read: ${(error as Error).message}`, version: null, nowMs: null }
  } finally {
    database?.close()
  }
}

/** The sealed text that shows which encryption key a file has; null where there is none, or no database that could be read. */
export function canaryOfFile(file: string): string | null {
  if (!existsSync(file)) return null
  let database: DatabaseSync | null = null
  try {
    database = new DatabaseSync(file, { readOnly: true, timeout: 2_000 })
    const row = database.prepare('SELECT sealed FROM key_canaries').get()
    return row === undefined ? null : String(row.sealed)
  } catch {
    return null
  } finally {
    database?.close()
  }
}

/** Checks a PostgreSQL. The result may name a user, but never a password. */
export async function checkPostgres(url: string): Promise<DatabaseCheck> {
  const client = new Client(connectionConfig(url))
  client.on('error', () => {})
  try {
    await client.connect()
    const [row] = (await client.query<{ now: number; version: string; made: boolean }>(STATE_QUERY)).rows
    const found =
      row?.made === true
        ? await client.query<{ schema: number | null }>('SELECT max(version)::int AS schema FROM migrations')
        : null
    const schema = found?.rows[0]?.schema ?? 0
    return { problem: tooNew(schema), version: `${row?.version}, schema ${schema}`, nowMs: row?.now ?? null }
  } catch (error) {
    return { problem: `it does not answer: ${(error as Error).message}`, version: null, nowMs: null }
  } finally {
    await client.end().catch(() => {})
  }
}

const STATE_QUERY = `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now, current_setting('server_version') AS version,
  to_regclass('migrations') IS NOT NULL AS made`

function tooNew(schema: number): string | null {
  const known = migrations.at(-1)?.version ?? 0
  return schema > known ? `a newer version of Runyard made it (schema ${schema}, this version knows ${known})` : null
}
