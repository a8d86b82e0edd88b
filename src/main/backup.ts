/** Backups of a server, and a data directory out of one. */
import { randomBytes } from 'node:crypto'
import { createReadStream, existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Config } from '../config/config.ts'
import { AppError } from '../core/errors.ts'
import { ensureFolder, moveDurably, removeDurably, streamDurably, writeDurably } from '../disk/durable-file.ts'
import { packageVersion } from '../disk/package-files.ts'
import type { BackupFolder, Backups } from '../ports/backups.ts'
import { DATABASE_NAME } from '../store/data-dir-database.ts'
import { problemOfFile } from '../store/engines/sqlite-copy.ts'
import { backupName } from '../system/backup/backup-folder.ts'
import { type BackupHeader, type BackupPiece, readBackup } from '../system/backup/backup-format.ts'
import { createBackups, isBackupName, KEYS_NAME } from '../system/backup/data-dir-backups.ts'
import { withoutPassword } from '../system/backup/dump-arguments.ts'
import { openKeys } from '../system/backup/key-seal.ts'
import { createScheduledFolder } from '../system/backup/scheduled-folder.ts'
import { systemClock } from '../system/clock.ts'
import { dumpCommand } from './postgres-commands.ts'
import type { Log } from './shell.ts'
import { acquire } from './store.ts'

export { keepNewest } from '../system/backup/backup-folder.ts'
export { keepBackup } from '../system/backup/keep-backup.ts'

/** Makes the backups of a server with these settings. */
export function backupsOf(config: Config): Backups {
  const { databaseUrl, apiKey, metricsKey, masterKeys, backupPassphrase, ...settings } = config
  return createBackups({
    dataDir: config.dataDir,
    version: packageVersion(),
    postgres: databaseUrl === null ? null : withoutPassword(databaseUrl),
    keyIsGiven: masterKeys.length > 0,
    settings,
    now: () => systemClock.now(),
  })
}

/** Where a server with these settings makes backups by itself; undefined for nowhere. */
export function backupFolderOf(config: Config, backups: Backups): BackupFolder | undefined {
  const { databaseUrl: url, backupPassphrase: passphrase } = config
  const { folder, everyMs, keep, withLogs, pgDump } = config.backups
  if (folder === null) return undefined
  return createScheduledFolder({
    path: folder,
    everyMs,
    keep,
    wish: { passphrase, withLogs },
    backups,
    dump: url === null || pgDump === null ? null : { program: pgDump, url, env: process.env },
    now: () => systemClock.now(),
    unique: () => randomBytes(8).toString('hex'),
  })
}

/** Says once that the backups which a server makes by itself have no database, and what makes its copy. */
export function warnOfBackups({ databaseUrl: url, backups: { folder, pgDump } }: Config, log: Log): void {
  if (folder === null || url === null || pgDump !== null) return
  const command = dumpCommand(withoutPassword(url), join(folder, 'database.dump'))
  log.warn({ command }, 'the scheduled backups have no database; give --backup-pg-dump, or run this at the same times')
}

/** The file of a backup that is made now in a folder. */
export function backupFileIn(folder: string): string {
  return join(folder, backupName(systemClock.now()))
}

/** Where a restore writes until all is well. */
const DRAFT = 'restore'
/** What an empty folder may have: of a file system, and of a restore that failed. */
const LEFT = new Set(['lost+found', 'lock.sqlite', DRAFT])

/** What a restore needs. */
export interface RestoreOptions {
  readonly config: Config
  readonly file: string
  /** Opens the keys of the backup; null to leave them out. */
  readonly passphrase: string | null
  /** Called with the bytes so far. */
  readonly report: (bytes: number, header: BackupHeader) => void
}

/** The header of a backup in a file. @throws AppError `invalid` when it is none */
export async function headerOf(file: string): Promise<BackupHeader> {
  return (await readBackup(createReadStream(file))).header
}

/**
 * Makes the data directory of a backup. Nothing but empty folders and a lock is left of one that fails before all is written and checked.
 * @throws AppError `conflict` when the directory has something, `invalid` when the backup cannot be used; StartError when it cannot be taken
 */
export async function restoreBackup({ config, file, passphrase, report }: RestoreOptions): Promise<BackupHeader> {
  const { dataDir } = config
  if (existsSync(dataDir) && readdirSync(dataDir).some(name => !LEFT.has(name))) {
    throw new AppError('conflict', `${dataDir} is not empty; a backup is restored into an empty or new folder`)
  }
  const lock = acquire(config, false)
  const draft = join(dataDir, DRAFT)
  try {
    removeDurably(draft)
    const { header, pieces } = await readBackup(createReadStream(file))
    const names = await writeFiles(draft, pieces, bytes => report(bytes, header))
    if (header.postgres === null) {
      const problem = problemOfFile(join(draft, DATABASE_NAME))
      if (problem !== null) throw unusable(`${problem}; Runyard ${header.version} made the backup`)
    }
    await openKeysIn(draft, names, passphrase)
    // The database comes last: without it no server takes the folder for whole.
    const ordered = [...names].filter(name => name !== DATABASE_NAME && name !== KEYS_NAME)
    for (const name of ordered) move(draft, dataDir, name)
    if (names.has(DATABASE_NAME)) move(draft, dataDir, DATABASE_NAME)
    return header
  } finally {
    removeDurably(draft)
    lock.release()
  }
}

/** Writes the files of a backup. @returns their names */
async function writeFiles(
  folder: string,
  pieces: AsyncGenerator<BackupPiece>,
  report: (bytes: number) => void,
): Promise<Set<string>> {
  const names = new Set<string>()
  let bytes = 0
  let next = await pieces.next()
  const ofOne = async function* (name: string) {
    while (next.done !== true && next.value.name === name) {
      yield next.value.bytes
      bytes += next.value.bytes.byteLength
      report(bytes)
      next = await pieces.next()
    }
  }
  while (next.done !== true) {
    const { name } = next.value
    if (!isBackupName(name) || names.has(name)) throw unusable('it has a file that no backup has')
    names.add(name)
    ensureFolder(dirname(join(folder, name)))
    await streamDurably(join(folder, name), ofOne(name))
  }
  return names
}

/** Puts the keys beside the other files. */
async function openKeysIn(folder: string, names: Set<string>, passphrase: string | null): Promise<void> {
  if (passphrase === null || !names.has(KEYS_NAME)) return
  const chunks: Buffer[] = await createReadStream(join(folder, KEYS_NAME)).toArray()
  const keys = await openKeys(Buffer.concat(chunks).toString('utf8'), passphrase)
  for (const name of ['encryption-key', 'api-key']) {
    const key = keys[name]
    if (key === undefined) continue
    writeDurably(join(folder, name), key)
    names.add(name)
  }
}

function move(from: string, to: string, name: string): void {
  ensureFolder(dirname(join(to, name)))
  moveDurably(join(from, name), join(to, name))
}

function unusable(why: string): AppError {
  return new AppError('invalid', `the backup cannot be used: ${why}`)
}
