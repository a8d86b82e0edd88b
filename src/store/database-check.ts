/** Checks a database without changing it, beside a server that may be running. */
import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { Client } from 'pg'
import { AppError } from '../core/errors.ts'
import type { KeptClock } from '../ports/store/clock-store.ts'
import { lossIn } from './engines/change-note.ts'
import { forPostgres, forSqlite } from './engines/dialect.ts'
import { connectionConfig } from './engines/postgres-connection.ts'
import { errorFromPostgres, troubleText, withPlace } from './engines/postgres-errors.ts'
import {
  type PostgresFacts,
  type PostgresTrouble,
  postgresTrouble,
  READ_FACTS,
  unfitness,
} from './engines/postgres-trouble.ts'
import { damageMessage, errorFromSqlite, isFullDisk } from './engines/sqlite-errors.ts'
import {
  READ_STEPS,
  type SchemaState,
  schemaChange,
  schemaProblem,
  schemaStateFromRows,
} from './schema/schema-state.ts'
import { type ClockRow, findClock, keptClockFromRow } from './tables/server-clock.ts'
import type { Row } from './tables/statement.ts'

/** The result of a check. */
export interface DatabaseCheck {
  /** A sentence; null when all is well. */
  readonly problem: string | null
  /** The remedy of this problem; null without a problem, and for the general remedy of such a database. */
  readonly remedy: string | null
  /** Of the engine and the schema; null for a database that does not exist yet. */
  readonly version: string | null
  /** Its clock in Unix milliseconds; null for a file. */
  readonly nowMs: number | null
}

/** Checks the file of an embedded database. */
export function checkFile(file: string): DatabaseCheck {
  if (!existsSync(file)) return { problem: null, remedy: null, version: null, nowMs: null }
  let database: DatabaseSync | null = null
  try {
    database = new DatabaseSync(file, { readOnly: true, timeout: 2_000 })
    const engine = String(database.prepare('SELECT sqlite_version() AS version').get()?.version)
    const schema = schemaIn(database)
    const version = `SQLite ${engine}, ${schemaText(schema)}`
    return { problem: storedSchemaProblem(schema) ?? lossIn(file), remedy: null, version, nowMs: null }
  } catch (error) {
    return { ...unreadable(error), version: null, nowMs: null }
  } finally {
    database?.close()
  }
}

/** The reason why a file cannot be read, and the remedy unless it is a backup. */
export function unreadable(error: unknown): Pick<DatabaseCheck, 'problem' | 'remedy'> {
  if (isFullDisk(error)) return { problem: 'it cannot be read, because its disk is full', remedy: 'make room there' }
  const damage = damageMessage(error)
  const problem = damage === null ? `it cannot be read: ${(error as Error).message}` : `it is damaged (${damage})`
  return { problem, remedy: null }
}

/**
 * The sealed text that shows which encryption key a file has; null where there is none, or no database that could be
 * read.
 */
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

/** The server's time in a file; null where there is none, or no database that could be read. */
export function timeOfFile(file: string): KeptClock | null {
  if (!existsSync(file)) return null
  let database: DatabaseSync | null = null
  try {
    database = new DatabaseSync(file, { readOnly: true, timeout: 2_000 })
    const row = database.prepare(forSqlite(findClock)).get()
    return row === undefined ? null : keptClockFromRow(row as unknown as ClockRow)
  } catch {
    return null
  } finally {
    database?.close()
  }
}

/** The server's time in a PostgreSQL; null where there is none, or none that could be read. */
export async function timeOfPostgres(url: string): Promise<KeptClock | null> {
  const client = new Client(connectionConfig(url))
  client.on('error', () => {})
  try {
    await client.connect()
    const [row] = (await client.query<ClockRow>(forPostgres(findClock))).rows
    return row === undefined ? null : keptClockFromRow(numericRow(row))
  } catch {
    return null
  } finally {
    await client.end().catch(() => {})
  }
}

/** The driver of PostgreSQL has large numbers as texts. */
function numericRow(row: ClockRow): ClockRow {
  const entries = Object.entries(row).map(([name, value]) => {
    return [name, name === 'boot' || value === null ? value : Number(value)]
  })
  return Object.fromEntries(entries) as ClockRow
}

/** Checks a PostgreSQL. The result may name a user, but never a password. */
export async function checkPostgres(url: string): Promise<DatabaseCheck> {
  let client: Client | null = null
  try {
    client = new Client(connectionConfig(url))
    client.on('error', () => {})
    await client.connect()
    const trouble = await unfitnessAt(client, url)
    if (trouble !== null) return { ...trouble, version: null, nowMs: null }
    const [row] = (await client.query<{ now: number; version: string }>(SERVER_QUERY)).rows
    const schema = await schemaAt(client)
    const version = `${row?.version}, ${schemaText(schema)}`
    return { problem: storedSchemaProblem(schema), remedy: null, version, nowMs: row?.now ?? null }
  } catch (error) {
    const trouble = error instanceof AppError ? { problem: error.message, remedy: null } : postgresTrouble(error, url)
    return { ...trouble, version: null, nowMs: null }
  } finally {
    await client?.end().catch(() => {})
  }
}

/**
 * Refuses a PostgreSQL that a server cannot use: it refuses the connection, is too old, or does not permit tables of
 * the server.
 * @throws AppError `unavailable` with the cause and the remedy
 */
export async function requireUsable(url: string): Promise<void> {
  const client = new Client(connectionConfig(url))
  client.on('error', () => {})
  try {
    await client.connect()
    const trouble = await unfitnessAt(client, url)
    if (trouble !== null) throw new AppError('unavailable', troubleText(trouble, url))
  } catch (error) {
    throw error instanceof AppError ? error : withPlace(errorFromPostgres(error), url)
  } finally {
    await client.end().catch(() => {})
  }
}

async function unfitnessAt(client: Client, url: string): Promise<PostgresTrouble | null> {
  const [facts] = (await client.query<PostgresFacts>(READ_FACTS)).rows
  return facts === undefined ? null : unfitness(facts, url)
}

const SERVER_QUERY = `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now, current_setting('server_version') AS version`

/**
 * The schema of an embedded database; null where there is none.
 * @throws AppError `unavailable` when it cannot be read
 */
export function schemaOfFile(file: string): SchemaState | null {
  if (!existsSync(file)) return null
  let database: DatabaseSync | null = null
  try {
    database = new DatabaseSync(file, { readOnly: true, timeout: 2_000 })
    return schemaIn(database)
  } catch (error) {
    throw errorFromSqlite(error)
  } finally {
    database?.close()
  }
}

/** The schema of a PostgreSQL; null where there is none. @throws AppError `unavailable` when it cannot be read */
export async function schemaOfPostgres(url: string): Promise<SchemaState | null> {
  const client = new Client(connectionConfig(url))
  client.on('error', () => {})
  try {
    await client.connect()
    return await schemaAt(client)
  } catch (error) {
    throw errorFromPostgres(error)
  } finally {
    await client.end().catch(() => {})
  }
}

/** The facts that identify a PostgreSQL, at any address. */
export interface DatabaseIdentity {
  /** Made with the lease; null where no server that knows ids has run on it. */
  readonly id: string | null
  /** Name of the schema that the connection uses; null where there is none. */
  readonly schema: string | null
  /** True when a server has made its tables. */
  readonly hasTables: boolean
}

/** Asks a PostgreSQL which one it is; writes nothing. @throws AppError `unavailable` when it cannot be read */
export async function databaseIdentity(url: string): Promise<DatabaseIdentity> {
  const client = new Client(connectionConfig(url))
  client.on('error', () => {})
  try {
    await client.connect()
    const [row] = (await client.query<IdentityRow>(HAS_IDENTITY)).rows
    const { schema = null, tables = false, identity = false } = row ?? {}
    const ids = identity ? (await client.query<{ id: string }>('SELECT id FROM database_identity')).rows : []
    return { id: ids[0]?.id ?? null, schema, hasTables: tables }
  } catch (error) {
    throw withPlace(errorFromPostgres(error), url)
  } finally {
    await client.end().catch(() => {})
  }
}

interface IdentityRow {
  readonly schema: string | null
  readonly tables: boolean
  readonly identity: boolean
}

const HAS_IDENTITY = `SELECT current_schema() AS schema, to_regclass('migrations') IS NOT NULL AS tables,
  to_regclass('database_identity') IS NOT NULL AS identity`

/** The schema of an open database; null where it has none. */
export function schemaIn(database: DatabaseSync): SchemaState | null {
  const made = database.prepare("SELECT 1 FROM sqlite_master WHERE name = 'migrations'").get() !== undefined
  return made ? schemaStateFromRows(database.prepare(READ_STEPS).all() as unknown as Row[]) : null
}

/** The schema that a connection sees; null without one. @throws the error of PostgreSQL */
export async function schemaAt(client: Client): Promise<SchemaState | null> {
  const [row] = (await client.query<{ made: boolean }>("SELECT to_regclass('migrations') IS NOT NULL AS made")).rows
  return row?.made === true ? schemaStateFromRows((await client.query<Row>(READ_STEPS)).rows) : null
}

function schemaText(schema: SchemaState | null): string {
  if (schema === null) return 'schema 0'
  const { version, writtenBy } = schema
  const change = schemaChange(schema)
  const ahead = change === null ? '' : `, which the next start changes to ${change.to}`
  return `schema ${version}${writtenBy === null ? '' : ` of Runyard ${writtenBy}`}${ahead}`
}

function storedSchemaProblem(schema: SchemaState | null): string | null {
  return schema === null ? null : schemaProblem(schema)
}
