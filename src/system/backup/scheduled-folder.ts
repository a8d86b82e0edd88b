/** The folder of the backups that the server makes by itself. */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../../core/errors.ts'
import { accessProblem } from '../../disk/access-problem.ts'
import { DRAFT, removeDurably } from '../../disk/durable-file.ts'
import type { BackupFolder, Backups, BackupWish, KeptBackup } from '../../ports/backups.ts'
import { backupName, DUMP_END, keepNewest, newestBackup } from './backup-folder.ts'
import { keepBackup } from './keep-backup.ts'
import { type DumpOptions, dumpPostgres } from './pg-dump.ts'

/** Options of {@link createScheduledFolder}. */
export interface ScheduledFolderOptions {
  readonly path: string
  readonly everyMs: number
  /** Number of backups that are kept. */
  readonly keep: number
  readonly wish: BackupWish
  readonly backups: Backups
  /** Options for the copy of a PostgreSQL beside each; null for no copy. */
  readonly dump: Pick<DumpOptions, 'program' | 'url' | 'env'> | null
  /** Unix milliseconds. */
  readonly now: () => number
  /** A text that no other process has. */
  readonly unique: () => string
}

/** Beginning of the names of unfinished backups, so that no file of a person is mistaken for one. */
const UNDONE = 'runyard-scheduled-'

/** A folder that keeps the newest backups. */
export function createScheduledFolder(options: ScheduledFolderOptions): BackupFolder {
  const { path, everyMs } = options
  return {
    path,
    everyMs,
    newest: nowMs => inFolder(path, async () => newestIn(path, nowMs)),
    make: signal => inFolder(path, () => make(options, signal)),
  }
}

function newestIn(path: string, nowMs: number): KeptBackup | null {
  removeUndone(path)
  const { newest } = newestBackup(path, nowMs)
  return newest === null ? null : keptBackup(path, newest.name, newest.atMs)
}

async function make(options: ScheduledFolderOptions, signal: AbortSignal): Promise<KeptBackup> {
  const { path, keep, wish, backups, dump, now, unique } = options
  removeUndone(path)
  const atMs = now()
  const name = backupName(atMs)
  const file = join(path, name)
  if (existsSync(file)) throw new AppError('conflict', `${file} is there already`)
  const draft = join(path, `${UNDONE}${unique()}${DRAFT}`)
  const backup = await backups.make(wish)
  try {
    // First, so that every existing backup has it.
    if (dump !== null) await dumpPostgres({ ...dump, file: `${file}${DUMP_END}`, draft, signal })
    await keepBackup(until(signal, backup.pieces), file, () => {}, draft)
  } catch (error) {
    removeDurably(`${file}${DUMP_END}`)
    throw error
  } finally {
    await backup.drop()
  }
  keepNewest(path, keep, name)
  return keptBackup(path, name, Math.floor(atMs / 1000) * 1000)
}

async function* until(signal: AbortSignal, pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) {
    signal.throwIfAborted()
    yield piece
  }
}

/** Removes the unfinished backups of a server that was killed. */
function removeUndone(path: string): void {
  const names = readdirSync(path).filter(name => name.startsWith(UNDONE) && name.endsWith(DRAFT))
  for (const name of names) removeDurably(join(path, name))
}

function keptBackup(path: string, name: string, atMs: number): KeptBackup {
  const size = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0
  const file = join(path, name)
  return { file, atMs, bytes: size(file) + size(`${file}${DUMP_END}`) }
}

/** Reasons why a folder cannot be used, as sentences. */
const PROBLEMS: Readonly<Record<string, (path: string) => string>> = {
  ENOENT: path => `there is no folder ${path}; make it, or mount what belongs there`,
  ENOTDIR: path => `${path} is not a folder`,
  ENOSPC: path => `there is no space left for a backup in ${path}`,
  EDQUOT: path => `there is no space left for a backup in ${path}`,
  EACCES: refused,
  EPERM: refused,
  EROFS: path => `the file system of ${path} is read-only`,
}

function refused(path: string): string {
  return accessProblem(path, 'write') ?? `this user may not use the folder ${path}`
}

async function inFolder<Value>(path: string, work: () => Promise<Value>): Promise<Value> {
  try {
    return await work()
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException
    if (error instanceof AppError || code === '') throw error
    throw new AppError('unavailable', PROBLEMS[code]?.(path) ?? `${path} cannot be used: ${message}`, { cause: error })
  }
}
