/** Databases for tests that need a real PostgreSQL, on the server in `RUNYARD_TEST_POSTGRES`. */
import { Client } from 'pg'

/** Address of the database of the tests; empty without one. */
export const postgresUrl = process.env.RUNYARD_TEST_POSTGRES ?? ''

/** Reason why tests on PostgreSQL cannot run; false if they can. */
export const noPostgres: string | false =
  postgresUrl === '' ? 'set RUNYARD_TEST_POSTGRES to the address of a PostgreSQL to run the tests on it' : false

/** A separate schema in the database of the tests. */
export interface TestSchema {
  /** The address that selects only this schema. */
  readonly url: string
  /** Runs statements in it, independent of the store. */
  query(sql: string): Promise<readonly Record<string, unknown>[]>
  drop(): Promise<void>
}

let schemaCount = 0

/** Creates an empty schema. */
export async function testSchema(): Promise<TestSchema> {
  schemaCount += 1
  const name = `test_${process.pid}_${schemaCount}`
  await query(postgresUrl, `CREATE SCHEMA ${name}`)
  const url = new URL(postgresUrl)
  url.searchParams.set('options', `-c search_path=${name}`)
  return {
    url: url.href.replaceAll('+', '%20'),
    query: sql => query(url.href.replaceAll('+', '%20'), sql),
    drop: async () => void (await query(postgresUrl, `DROP SCHEMA ${name} CASCADE`)),
  }
}

/** Creates an empty database for a test that breaks connections, so that other tests are not affected. */
export async function testDatabase(): Promise<TestSchema> {
  schemaCount += 1
  const name = `test_${process.pid}_${schemaCount}`
  await query(postgresUrl, `CREATE DATABASE ${name}`)
  const url = new URL(postgresUrl)
  url.pathname = `/${name}`
  return {
    url: url.href,
    query: sql => query(url.href, sql),
    drop: async () => void (await query(postgresUrl, `DROP DATABASE ${name} WITH (FORCE)`)),
  }
}

async function query(url: string, sql: string): Promise<readonly Record<string, unknown>[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(sql)).rows as Record<string, unknown>[]
  } finally {
    await client.end()
  }
}
