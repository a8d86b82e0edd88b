import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import { touchDurably } from '../../disk/durable-file.ts'
import { programFile } from '../../disk/package-files.ts'
import { READ_STEPS, type SchemaState, schemaProblem, schemaStateFromRows } from '../schema/schema-state.ts'
import type { Row } from '../tables/statement.ts'
import { errorFromSqlite } from './sqlite-errors.ts'

/**
 * Copies a database as it is at one moment, with all that was committed before the call, also of a server that runs.
 * The copy is made in another thread by a transaction that reads, so writers continue in that time. It has no free
 * pages, in which old texts would stay.
 * @param to a file that does not exist yet
 * @returns its schema
 * @throws AppError `unavailable` when it cannot be copied
 */
export async function copySqlite(from: string, to: string): Promise<SchemaState | null> {
  // For its owner alone; SQLite takes an empty file.
  touchDurably(to)
  try {
    await copyBeside(from, to)
    using copy = new DatabaseSync(to, { readOnly: true })
    return readSchema(copy)
  } catch (error) {
    throw errorFromSqlite(error)
  }
}

function copyBeside(from: string, to: string): Promise<void> {
  const program = pathToFileURL(programFile('store/engines/sqlite-copy-thread'))
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const thread = new Worker(program, { workerData: { from, to }, name: 'backup' })
  thread.once('error', reject)
  thread.once('exit', () => resolve())
  return promise
}

/**
 * The reason why this version cannot use the file of a database, as the end of a sentence; null when it can. Reads
 * the whole file.
 */
export function problemOfFile(file: string): string | null {
  if (!existsSync(file)) return 'it has no database'
  try {
    using database = new DatabaseSync(file)
    const [row] = database.prepare('PRAGMA integrity_check(1)').all()
    const fault = String(row?.integrity_check)
    if (fault !== 'ok') return `its database is damaged: ${fault}`
    const schema = readSchema(database)
    return schema === null ? null : schemaProblem(schema)
  } catch (error) {
    return `its database is damaged: ${(error as Error).message}`
  }
}

function readSchema(database: DatabaseSync): SchemaState | null {
  return schemaStateFromRows(database.prepare(READ_STEPS).all() as unknown as Row[])
}
