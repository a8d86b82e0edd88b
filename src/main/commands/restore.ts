/** A data directory out of a backup. */
import { createReadStream } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Config } from '../../config/config.ts'
import { AppError } from '../../core/errors.ts'
import { ensureFolder, moveDurably, streamDurably, writeDurably } from '../../disk/durable-file.ts'
import { DATABASE_NAME } from '../../store/data-dir-database.ts'
import { problemOfFile } from '../../store/engines/sqlite-copy.ts'
import { type BackupHeader, type BackupPiece, readBackup } from '../../system/backup/backup-format.ts'
import { isBackupName, KEYS_NAME } from '../../system/backup/data-dir-backups.ts'
import { openKeys } from '../../system/backup/key-seal.ts'
import { beginRestore, endRestore, mayRestoreInto, notePlaced } from '../../system/backup/unfinished-restore.ts'
import { acquire } from '../database/store.ts'

/** Parts that a restore needs. */
export interface RestoreOptions {
  readonly config: Config
  readonly file: string
  /** Opens the keys of the backup; null to leave them out. */
  readonly passphrase: string | null
  /** Called with the bytes so far. */
  readonly report: (bytes: number, header: BackupHeader) => void
}

/** The header of a backup in a file. @throws AppError `invalid` when it is none */
export async function readBackupHeader(file: string): Promise<BackupHeader> {
  return (await readBackup(createReadStream(file))).header
}

/**
 * Makes the data directory of a backup. Nothing but a lock is left of one that fails, and one that was killed can be
 * repeated: until then the directory is known as unfinished.
 * @throws AppError `conflict` when the directory has something, `invalid` when the backup cannot be used;
 *   StartError when it cannot be taken
 */
export async function restoreBackup({ config, file, passphrase, report }: RestoreOptions): Promise<BackupHeader> {
  const { dataDir } = config
  refuseFull(dataDir)
  const lock = acquire(config, false)
  try {
    // Another process may have used it in the meantime.
    refuseFull(dataDir)
    const draft = beginRestore(dataDir)
    let isWhole = false
    try {
      const header = await restoreInto(dataDir, draft, { file, passphrase, report })
      isWhole = true
      return header
    } finally {
      endRestore(dataDir, isWhole)
    }
  } finally {
    lock.release()
  }
}

function refuseFull(dataDir: string): void {
  if (mayRestoreInto(dataDir)) return
  throw new AppError('conflict', `${dataDir} is not empty; a backup is restored into an empty or new folder`)
}

/** Writes and checks everything in a draft, and moves it in place then. */
async function restoreInto(
  dataDir: string,
  draft: string,
  { file, passphrase, report }: Omit<RestoreOptions, 'config'>,
): Promise<BackupHeader> {
  const { header, pieces } = await readBackup(createReadStream(file))
  const names = await writeFiles(draft, pieces, bytes => report(bytes, header))
  if (header.postgres === null) {
    const problem = problemOfFile(join(draft, DATABASE_NAME))
    if (problem !== null) throw unusable(`${problem}; Runyard ${header.version} made the backup`)
  }
  await openKeysIn(draft, names, passphrase)
  names.delete(KEYS_NAME)
  notePlaced(dataDir, new Set([...names].map(name => name.split('/')[0]!)))
  for (const name of names) move(draft, dataDir, name)
  return header
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

function unusable(reason: string): AppError {
  return new AppError('invalid', `the backup cannot be used: ${reason}`)
}
