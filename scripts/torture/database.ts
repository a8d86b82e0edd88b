/** The schema of the torture run, so that it can use any database. */
import { Client } from 'pg'

/** Runs `use` with the address of an empty schema, which is dropped afterwards; null stays null. */
export async function withSchema<Value>(
  database: string | null,
  use: (url: string | null) => Promise<Value>,
): Promise<Value> {
  if (database === null) return use(null)
  const name = `torture_${process.pid}`
  await query(database, `CREATE SCHEMA ${name}`)
  try {
    const url = new URL(database)
    url.searchParams.set('options', `-c search_path=${name}`)
    return await use(url.href.replaceAll('+', '%20'))
  } finally {
    await query(database, `DROP SCHEMA ${name} CASCADE`)
  }
}

async function query(url: string, sql: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}
