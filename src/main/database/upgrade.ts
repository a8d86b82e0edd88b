/**
 * The steps before a database of an older version is changed, and the refusal of versions that cannot use a database
 * (docs/adr/0070-upgrades.md).
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../../config/config.ts'
import { AppError, toAppError } from '../../core/errors.ts'
import { DRAFT, ensureFolder, removeDurably, settleDurably } from '../../disk/durable-file.ts'
import { packageVersion } from '../../disk/package-files.ts'
import type { Emit } from '../../events.ts'
import { DATABASE_NAME } from '../../store/data-dir-database.ts'
import { schemaOfFile, schemaOfPostgres } from '../../store/database-check.ts'
import { copySqlite, problemOfFile } from '../../store/engines/sqlite-copy.ts'
import { type SchemaChange, type SchemaState, schemaChange, schemaProblem } from '../../store/schema/schema-state.ts'
import { beforeChangeName, keepNewestBeforeChange } from '../../system/backup/backup-folder.ts'
import { dumpPostgres, withoutPassword } from '../../system/backup/pg-dump.ts'
import { systemClock } from '../../system/clock.ts'
import { StartError } from '../start-error.ts'
import { dumpCommand } from './postgres-commands.ts'

/** Number of copies from before a change that stay. */
const KEPT = 3

/**
 * Makes the embedded database ready to be changed: a copy that was read back and is on stable storage.
 * @returns the change at its opening; null without one
 * @throws StartError when there could be no copy, or this version cannot use the database; it is as it was
 */
export async function readyFile(config: Config, emit: Emit): Promise<SchemaChange | null> {
  const file = join(config.dataDir, DATABASE_NAME)
  const change = usableChange(schemaOfFile(file))
  if (change === null) return null
  await begin(change, config, emit, folder => copyFile(file, folder, change))
  return change
}

/** As {@link readyFile}, for a PostgreSQL: the server makes the copy only where it was given a `pg_dump`. */
export async function readyPostgres(config: Config, url: string, emit: Emit): Promise<SchemaChange | null> {
  const change = await refusePostgres(config, url)
  if (change === null) return null
  const { pgDump } = config.backups
  await begin(change, config, emit, async folder => {
    if (pgDump === null) throw new StartError(unprepared(change, url))
    const name = beforeChangeName(change.writtenBy, change.from, 'dump', systemClock.now())
    const file = join(folder, name)
    await dumpPostgres({ program: pgDump, url, env: process.env, file, draft: draftIn(folder) })
    return file
  })
  return change
}

/**
 * Refuses a PostgreSQL that this version cannot use, or may not change: before it stands by, so that a rolling upgrade
 * stops while the servers of the older version go on, and at each takeover, since another server may have changed it
 * in between.
 * @throws StartError then, AppError `unavailable` when it does not answer
 */
export async function refusePostgres(config: Config, url: string): Promise<SchemaChange | null> {
  const change = usableChange(await schemaOfPostgres(url))
  const isReady = change === null || config.migrateTo === change.to || config.backups.pgDump !== null
  if (!isReady) throw new StartError(unprepared(change, url))
  return change
}

/** @throws StartError when this version cannot use the database */
function usableChange(state: SchemaState | null): SchemaChange | null {
  if (state === null) return null
  const refusal = schemaProblem(state)
  if (refusal !== null) throw new StartError(refusal)
  return schemaChange(state)
}

async function begin(
  change: SchemaChange,
  config: Config,
  emit: Emit,
  copy: (folder: string) => Promise<string>,
): Promise<void> {
  const folder = config.backups.folder ?? join(config.dataDir, 'backups')
  const backup =
    config.migrateTo === change.to ? null : await copied(change, folder, copy, config.backups.folder !== null)
  if (backup !== null) keepNewestBeforeChange(folder, KEPT)
  emit('schema.changing', { ...change, version: packageVersion(), backup })
}

async function copied(
  change: SchemaChange,
  folder: string,
  copy: (folder: string) => Promise<string>,
  isGiven: boolean,
): Promise<string> {
  try {
    // The volume of this folder may not be mounted.
    if (isGiven && !existsSync(folder)) throw new AppError('unavailable', 'there is no folder')
    ensureFolder(folder)
    return await copy(folder)
  } catch (error) {
    if (error instanceof StartError) throw error
    const { message } = toAppError(error)
    const reason = (error as NodeJS.ErrnoException).code === undefined ? message : (error as Error).message
    throw new StartError(
      `${whatChanges(change)}, and no copy of it could be made before in ${folder}: ${reason}; ` +
        `mend that, give another --backup-folder, or start with --migrate-to ${change.to}, which changes it without a copy; nothing was changed`,
      { cause: error },
    )
  }
}

async function copyFile(from: string, folder: string, { writtenBy, from: schema }: SchemaChange): Promise<string> {
  const draft = draftIn(folder)
  // Of a start that was ended.
  for (const end of ['', '-journal', '-wal', '-shm']) removeDurably(`${draft}${end}`)
  try {
    await copySqlite(from, draft)
    const problem = problemOfFile(draft)
    if (problem !== null) throw new AppError('unavailable', `the copy cannot be used: ${problem}`)
    const file = join(folder, beforeChangeName(writtenBy, schema, 'sqlite', systemClock.now()))
    settleDurably(draft, file)
    return file
  } catch (error) {
    removeDurably(draft)
    throw error
  }
}

function draftIn(folder: string): string {
  return join(folder, `before-change${DRAFT}`)
}

function whatChanges({ from, to, writtenBy }: SchemaChange): string {
  return `the database has schema ${from}, of Runyard ${writtenBy}, and this version changes it to schema ${to}`
}

function unprepared(change: SchemaChange, url: string): string {
  const { from, to } = change
  const command = dumpCommand(withoutPassword(url), `runyard-schema-${from}.dump`)
  return (
    `${whatChanges(change)}; back it up with ${command} and then start with --migrate-to ${to}, ` +
    'or give --backup-pg-dump so that the server makes the backup itself; ' +
    'nothing was changed, and servers of the older version go on'
  )
}
