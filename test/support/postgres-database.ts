/** Databases for tests that need a real PostgreSQL, on the server in `RUNYARD_TEST_POSTGRES`. */
import { Client } from 'pg'

/** The address of the database of the tests; empty when there is none. */
export const postgresUrl = process.env.RUNYARD_TEST_POSTGRES ?? ''

/** Why tests on PostgreSQL cannot run; false when they can. */
export const noPostgres: string | false =
  postgresUrl === '' ? 'set RUNYARD_TEST_POSTGRES to the address of a PostgreSQL to run the tests on it' : false

/** A schema of its own in the database of the tests. */
export interface TestSchema {
  /** The address by which only this schema is seen. */
  readonly url: string
  /** Runs statements in it, past the store. */
  query(sql: string): Promise<readonly Record<string, unknown>[]>
  drop(): Promise<void>
}

let made = 0

/** Makes an empty schema. */
export async function testSchema(): Promise<TestSchema> {
  made += 1
  const name = `test_${process.pid}_${made}`
  await query(postgresUrl, `CREATE SCHEMA ${name}`)
  const url = new URL(postgresUrl)
  url.searchParams.set('options', `-c search_path=${name}`)
  return {
    url: url.href.replaceAll('+', '%20'),
    query: sql => query(url.href.replaceAll('+', '%20'), sql),
    drop: async () => void (await query(postgresUrl, `DROP SCHEMA ${name} CASCADE`)),
  }
}

/** Makes an empty database, for a test that breaks connections: other tests run beside it. */
export async function testDatabase(): Promise<TestSchema> {
  made += 1
  const name = `test_${process.pid}_${made}`
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
