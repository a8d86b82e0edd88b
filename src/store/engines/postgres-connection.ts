import { type ClientBase, type PoolConfig, types } from 'pg'
import type { Row, SqlParam, SqlValue, Statement } from '../operations/operation.ts'
import { forPostgres } from './dialect.ts'
import { fromPostgres } from './postgres-errors.ts'

const INT8 = types.builtins.INT8

/** How every connection is made. Each wait for the server has an end. */
export function connectionConfig(url: string): PoolConfig {
  return {
    connectionString: url,
    application_name: 'runyard',
    connectionTimeoutMillis: 5_000,
    query_timeout: 30_000,
    statement_timeout: 20_000,
    lock_timeout: 10_000,
    idle_in_transaction_session_timeout: 60_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    // Integers of 8 bytes come as text; all that are stored here are below 2 ** 53.
    types: {
      getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
        oid === INT8 ? Number : types.getTypeParser(oid, format as 'text')) as typeof types.getTypeParser,
    },
  }
}

/**
 * Gives a connection the first number that no other connection to this schema has, for as long as it lives. It is the row to which it adds
 * in sums that many change at once, such as `queue_counts`.
 */
export const takeShard: Statement = {
  sql: `SELECT set_config('runyard.shard', COALESCE((
      SELECT number::text FROM generate_series(0, 1023) AS number
      WHERE pg_try_advisory_lock(hashtext('runyard shard ' || current_schema()), number) LIMIT 1), '0'), false)`,
  params: [],
}

/** Where a database is, without user, password and options. */
export function addressOf(url: string): string {
  if (!URL.canParse(url)) return 'the given address'
  const { protocol, host, pathname } = new URL(url)
  return `${protocol}//${host}${pathname}`
}

/** Statements by their text; PostgreSQL keeps each of them prepared under its name. */
const prepared = new Map<string, { readonly name: string; readonly text: string }>()

/** Runs a statement of an operation. @throws what `fromPostgres` makes of it */
export async function answer(client: ClientBase, { sql, params }: Statement): Promise<readonly Row[]> {
  const known = prepared.get(sql) ?? { name: `runyard_${prepared.size + 1}`, text: forPostgres(sql) }
  prepared.set(sql, known)
  return rowsOf(client, { ...known, values: params.map(storableParam) })
}

/** Runs a statement that is not worth preparing. @throws what `fromPostgres` makes of it */
export async function execute(client: ClientBase, { sql, params }: Statement): Promise<readonly Row[]> {
  return rowsOf(client, { text: forPostgres(sql), values: params.map(storableParam) })
}

async function rowsOf(
  client: ClientBase,
  query: { readonly name?: string; readonly text: string; readonly values: SqlParam[] },
): Promise<readonly Row[]> {
  try {
    return (await client.query<Row>(query)).rows
  } catch (error) {
    throw fromPostgres(error)
  }
}

function storableParam(value: SqlParam, index: number): SqlParam {
  return typeof value === 'object' && value !== null ? value.map(one => storable(one, index)) : storable(value, index)
}

/**
 * PostgreSQL has no text with a NUL. In JSON it is always escaped, so only free text such as an error or a log line can
 * have one; there its picture U+2400 stands for it.
 */
function storable(value: SqlValue, index: number): SqlValue {
  if (value === null) return null
  if (typeof value === 'string') return value.includes('\0') ? value.replaceAll('\0', '\u2400') : value
  if (typeof value === 'number' && Number.isFinite(value)) return value
  throw new TypeError(`parameter $${index + 1} cannot be ${typeof value === 'number' ? value : typeof value}`)
}
