import { accessSync, constants } from 'node:fs'
import type { ClientBase, PoolConfig, types } from 'pg'
import { AppError } from '../../core/errors.ts'
import { errorText } from '../../disk/access-problem.ts'
import type { Row, Statement } from '../tables/statement.ts'
import { forPostgres } from './dialect.ts'
import { errorFromPostgres } from './postgres-errors.ts'
import { columnReader, Pipeline } from './postgres-pipeline.ts'

/**
 * Settings of every connection. Each wait for the server has an end.
 * @throws AppError `invalid` when a file that the address names cannot be read
 */
export function connectionConfig(url: string): PoolConfig {
  requireFiles(url)
  return {
    connectionString: url.includes(LIBPQ_MODES) ? url : url.replace(STRICT_MODE, '$1verify-full'),
    application_name: 'runyard',
    connectionTimeoutMillis: 5_000,
    query_timeout: 30_000,
    statement_timeout: 20_000,
    lock_timeout: 10_000,
    idle_in_transaction_session_timeout: 60_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    types: { getTypeParser: columnReader as typeof types.getTypeParser },
  }
}

/** `pg` treats these as `verify-full`, with a warning of ten lines that they will not stay so; here they do. */
const STRICT_MODE = /([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/
/** With this option of `pg`, modes have the meaning of PostgreSQL's own clients. */
const LIBPQ_MODES = 'uselibpqcompat=true'
/** Options of an address that name files. */
const FILES = ['sslrootcert', 'sslcert', 'sslkey']

function requireFiles(url: string): void {
  if (!URL.canParse(url)) return
  const { searchParams } = new URL(url)
  for (const option of FILES) {
    const file = searchParams.get(option)
    if (file === null) continue
    try {
      accessSync(file, constants.R_OK)
    } catch (error) {
      const problem = errorText(error)
      throw new AppError('invalid', `${option} of the database names a file that cannot be read: ${problem}`)
    }
  }
}

/**
 * Gives a connection the first number that no other connection to this schema has, for as long as it lives. It is the
 * row to which it adds in sums that many change at once, such as `queue_counts`.
 */
export const takeShard = `
  SELECT set_config('runyard.shard', COALESCE((
    SELECT number::text FROM generate_series(0, 1023) AS number
    WHERE pg_try_advisory_lock(hashtext('runyard shard ' || current_schema()), number) LIMIT 1), '0'), false)`

/**
 * Keeps the schema from being changed by others until the transaction ends: servers that start together change it one
 * after another.
 */
export const LOCK_SCHEMA = `SELECT pg_advisory_xact_lock(hashtext('runyard'), hashtext(current_schema()))`

/**
 * Runs statements of an operation, which are sent together; after one that fails no other is run.
 * @returns the rows of each
 * @throws TypeError for a parameter that cannot be stored; else the error of `errorFromPostgres`
 */
export async function answers(client: ClientBase, statements: readonly Statement[]): Promise<Row[][]> {
  const pipeline = new Pipeline(statements)
  try {
    client.query(pipeline)
    return await pipeline.done
  } catch (error) {
    throw errorFromPostgres(error)
  }
}

/** Runs a statement of an operation. @throws the error of `errorFromPostgres` */
export async function answer(client: ClientBase, statement: Statement): Promise<readonly Row[]> {
  const [rows = []] = await answers(client, [statement])
  return rows
}

/**
 * Runs a statement without parameters that is not worth preparing.
 * @param waitMs longest wait for its answer, in milliseconds; by default as for all others
 * @throws the error of `errorFromPostgres`
 */
export async function execute(client: ClientBase, sql: string, waitMs?: number): Promise<readonly Row[]> {
  try {
    const waits = waitMs === undefined ? {} : { query_timeout: waitMs }
    return (await client.query<Row>({ text: forPostgres(sql), ...waits })).rows
  } catch (error) {
    throw errorFromPostgres(error)
  }
}
