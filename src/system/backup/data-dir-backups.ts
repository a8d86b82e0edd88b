/** Backups of a data directory: their content, and its reading while the server runs. */
import { existsSync, readFileSync } from 'node:fs'
import { type FileHandle, open, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../../core/errors.ts'
import { ensureFolder, removeDurably } from '../../disk/durable-file.ts'
import type { Backup, Backups, BackupWish } from '../../ports/backups.ts'
import { DATABASE_NAME } from '../../store/data-dir-database.ts'
import { copySqlite } from '../../store/engines/sqlite-copy.ts'
import { type BackupHeader, type BackupPiece, PIECE_BYTES, writeBackup } from './backup-format.ts'
import { sealKeys } from './key-seal.ts'

/** The keys in a backup. */
export const KEYS_NAME = 'keys.sealed'
/** The settings in a backup, for people. */
const SETTINGS_NAME = 'settings.json'
/** Notes of a data directory about its database. */
const NOTES = ['store', 'seals-bound', 'payloads-sealed', 'large-bodies']
const KEY_NAMES = ['encryption-key', 'api-key']
const LOGS = 'logs'
/** The folder of archives of apps, without which no build could be unpacked after a restore. */
const ARTIFACTS = 'apps/artifacts'
const ARTIFACT_NAME = /^apps\/artifacts\/[a-z0-9]{1,63}\.tar\.gz$/
const LOG_NAME = /^logs(?:\/[A-Za-z0-9_-][A-Za-z0-9._-]*){1,3}$/

/** True if a backup may have a file of this name. */
export function isBackupName(name: string): boolean {
  if ([DATABASE_NAME, KEYS_NAME, SETTINGS_NAME, ...NOTES].includes(name)) return true
  return LOG_NAME.test(name) || ARTIFACT_NAME.test(name)
}

/** Options of {@link createBackups}. */
export interface BackupsOptions {
  readonly dataDir: string
  /** Version of Runyard. */
  readonly version: string
  /** The address of its PostgreSQL, without a password; null for the embedded database. */
  readonly postgres: string | null
  /** True if the encryption key is in RUNYARD_MASTER_KEY. */
  readonly keyIsGiven: boolean
  /** The settings of the server that are no secrets. */
  readonly settings: Readonly<Record<string, unknown>>
  /** Unix milliseconds. */
  readonly now: () => number
}

/** A file to be read into a backup. */
interface OpenFile {
  readonly name: string
  readonly bytes: number
  /** A path is opened when its turn comes. */
  readonly file: FileHandle | Buffer | string
}

/** Makes backups of a data directory, one at a time: each needs as much space as the database while it is read. */
export function createBackups(options: BackupsOptions): Backups {
  let isBusy = false
  // A copy of a server that was killed.
  if (options.postgres === null) removeDurably(copyFolder(options.dataDir))
  return {
    async make(wish) {
      if (isBusy) throw new AppError('conflict', 'another backup is being made; try again when it is over')
      isBusy = true
      const opened: OpenFile[] = []
      let dropped: Promise<void> | null = null
      const drop = () => {
        dropped ??= closeAll(opened).then(() => {
          isBusy = false
        })
        return dropped
      }
      try {
        return await prepare(options, wish, opened, drop)
      } catch (error) {
        await drop()
        throw error
      }
    },
  }
}

async function prepare(
  options: BackupsOptions,
  { passphrase, withLogs }: BackupWish,
  opened: OpenFile[],
  drop: Backup['drop'],
): Promise<Backup> {
  const { dataDir, version, postgres, keyIsGiven, settings, now } = options
  const createdAt = new Date(now()).toISOString()
  const schema = postgres === null ? await openDatabase(dataDir, opened) : null
  const notes = NOTES.filter(name => existsSync(join(dataDir, name)))
  for (const name of notes) addText(opened, name, readFileSync(join(dataDir, name)))
  addText(opened, SETTINGS_NAME, Buffer.from(`${JSON.stringify(settings, null, 2)}\n`))
  if (passphrase !== null) addText(opened, KEYS_NAME, Buffer.from(await sealKeys(keysIn(dataDir), passphrase)))
  await openFolder(dataDir, ARTIFACTS, ARTIFACT_NAME, opened)
  if (withLogs) await openFolder(dataDir, LOGS, LOG_NAME, opened)
  const keys = passphrase === null ? 'left out' : 'sealed'
  const bytes = opened.reduce((sum, file) => sum + file.bytes, 0)
  const header: BackupHeader = { version, schema, createdAt, keys, keyIsGiven, postgres, bytes }
  return { pieces: writeBackup(header, readPieces(opened)), drop }
}

function copyFolder(dataDir: string): string {
  return join(dataDir, 'backup')
}

/** Opens a copy of the database and removes its name at once, so that no copy is left over. @returns its schema */
async function openDatabase(dataDir: string, opened: OpenFile[]): Promise<number | null> {
  const folder = copyFolder(dataDir)
  removeDurably(folder)
  ensureFolder(folder)
  try {
    const copy = join(folder, DATABASE_NAME)
    const schema = await copySqlite(join(dataDir, DATABASE_NAME), copy)
    await addFile(opened, DATABASE_NAME, copy)
    return schema?.version ?? null
  } finally {
    removeDurably(folder)
  }
}

function keysIn(dataDir: string): Record<string, Buffer> {
  const names = KEY_NAMES.filter(name => existsSync(join(dataDir, name)))
  return Object.fromEntries(names.map(name => [name, readFileSync(join(dataDir, name))]))
}

/** The files of a folder whose names in the data directory match. */
async function openFolder(dataDir: string, inner: string, names: RegExp, opened: OpenFile[]): Promise<void> {
  const folder = join(dataDir, inner)
  const entries = existsSync(folder) ? await readdir(folder, { recursive: true, withFileTypes: true }) : []
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name)
    const name = path.slice(dataDir.length).replace(/^\/+/, '')
    if (!entry.isFile() || !names.test(name)) continue
    // It may be removed in the meantime.
    const bytes = (await stat(path).catch(() => null))?.size ?? 0
    opened.push({ name, bytes, file: path })
  }
}

function addText(opened: OpenFile[], name: string, file: Buffer): void {
  opened.push({ name, bytes: file.byteLength, file })
}

async function addFile(opened: OpenFile[], name: string, path: string): Promise<void> {
  const file = await open(path, 'r')
  opened.push({ name, bytes: (await file.stat()).size, file })
}

async function* readPieces(files: readonly OpenFile[]): AsyncGenerator<BackupPiece> {
  for (const { name, bytes, file } of files) {
    if (Buffer.isBuffer(file)) yield* slices(name, file)
    else if (typeof file !== 'string') yield* read(name, file, bytes)
    else {
      const named = await open(file, 'r').catch(() => null)
      try {
        if (named !== null) yield* read(name, named, bytes)
      } finally {
        await named?.close()
      }
    }
  }
}

function* slices(name: string, bytes: Buffer): Generator<BackupPiece> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield { name, bytes: bytes.subarray(at, at + PIECE_BYTES) }
}

async function* read(name: string, file: FileHandle, bytes: number): AsyncGenerator<BackupPiece> {
  for (let at = 0; at < bytes; ) {
    const piece = Buffer.alloc(Math.min(PIECE_BYTES, bytes - at))
    const { bytesRead } = await file.read(piece, 0, piece.length, at)
    // A log that was cut in the meantime is shorter.
    if (bytesRead === 0) return
    yield { name, bytes: piece.subarray(0, bytesRead) }
    at += bytesRead
  }
}

async function closeAll(opened: readonly OpenFile[]): Promise<void> {
  await Promise.allSettled(
    opened.map(({ file }) => (typeof file === 'string' || Buffer.isBuffer(file) ? null : file.close())),
  )
}
