/**
 * The note of a restore in its new data directory: it exists from before the first file is written until
 * after the last one is in place. So a restore that was killed at any moment is known as unfinished, can be repeated,
 * and is not taken for a server's directory.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DRAFT as NEW, removeDurably, writeDurably } from '../../disk/durable-file.ts'

const NOTE = 'restore-unfinished'
/** Folder to which a restore writes until all is checked. */
const DRAFT = 'restore'
/** Names in a folder that counts as empty: of a file system, of the lock of a data directory, and of a restore. */
const OWN = new Set([
  ...['lost+found', '.gitignore', `.gitignore${NEW}`, 'lock.sqlite', 'lock.sqlite-journal'],
  ...[NOTE, `${NOTE}${NEW}`, DRAFT],
])

/** The refusal of a data directory whose restore was not finished, without a full stop; null for all others. */
export function unfinishedRestore(dataDir: string): string | null {
  if (!existsSync(join(dataDir, NOTE))) return null
  return (
    `the restore of a backup into ${dataDir} is not finished; ` +
    `let it end, or repeat it with runyard restore <file> --data-dir ${dataDir}, or remove the folder; nothing was changed`
  )
}

/**
 * True if a restore may write into a folder: it does not exist, is empty, or has only files of an unfinished restore.
 */
export function mayRestoreInto(dataDir: string): boolean {
  if (!existsSync(dataDir)) return true
  const placed = new Set(placedNames(dataDir))
  return readdirSync(dataDir).every(name => OWN.has(name) || placed.has(name))
}

/**
 * Records that a restore begins, and removes the files of an unfinished one.
 * @returns the folder to write into until all is checked
 */
export function beginRestore(dataDir: string): string {
  if (!existsSync(join(dataDir, NOTE))) writeDurably(join(dataDir, NOTE), '')
  removeRestored(dataDir)
  return join(dataDir, DRAFT)
}

/**
 * Records the names that the restore puts into the data directory from now on.
 * @param names of files and folders directly in it
 */
export function notePlaced(dataDir: string, names: ReadonlySet<string>): void {
  writeDurably(join(dataDir, NOTE), [...names].map(name => `${name}\n`).join(''))
}

/** Ends a restore. @param isWhole true if everything is in place; otherwise its files are removed */
export function endRestore(dataDir: string, isWhole: boolean): void {
  if (isWhole) removeDurably(join(dataDir, DRAFT))
  else removeRestored(dataDir)
  removeDurably(join(dataDir, NOTE))
}

function removeRestored(dataDir: string): void {
  for (const name of [...placedNames(dataDir), DRAFT]) removeDurably(join(dataDir, name))
}

function placedNames(dataDir: string): string[] {
  const note = join(dataDir, NOTE)
  if (!existsSync(note)) return []
  return readFileSync(note, 'utf8')
    .split('\n')
    .filter(name => name !== '' && !name.includes('/') && name !== '.' && name !== '..')
}
