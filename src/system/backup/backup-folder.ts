/** Backups in a folder, named by their time, and copies of databases from before a change. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { removeDurably } from '../../disk/durable-file.ts'
import { isWholeBackup } from './backup-format.ts'

const NAME = /^runyard-(\d{8}T\d{6}Z)\.backup$/
const BEFORE_CHANGE = /^runyard-.+-schema-\d+-(\d{8}T\d{6}Z)\.(?:sqlite|dump)$/
const DUMP = /^runyard-\d{8}T\d{6}Z\.backup\.dump$/
/** End of the name of the PostgreSQL copy beside a backup. */
export const DUMP_END = '.dump'

/** The name of a backup of this moment; later ones sort behind it. @param nowMs Unix milliseconds */
export function backupName(nowMs: number): string {
  return `runyard-${timeText(nowMs)}.backup`
}

/** The name of a copy of a database before its change. @param by version of Runyard that wrote its content */
export function beforeChangeName(by: string, schema: number, kind: 'sqlite' | 'dump', nowMs: number): string {
  return `runyard-${by.replaceAll(/[^A-Za-z0-9.+-]/g, '_')}-schema-${schema}-${timeText(nowMs)}.${kind}`
}

/** The name of a backup, and its time in Unix milliseconds. */
export interface NamedBackup {
  readonly name: string
  readonly atMs: number
}

/** Backups of a folder. */
export interface BackupSearch {
  /** The newest complete backup; null without one. */
  readonly newest: NamedBackup | null
  /** Names of later files that are no whole backups, the newest first. */
  readonly broken: readonly string[]
}

/**
 * The newest backup in a folder.
 * @param nowMs later names do not count, since the clock was set back
 * @throws the system's error
 */
export function newestBackup(folder: string, nowMs: number): BackupSearch {
  const broken: string[] = []
  for (const name of namesIn(folder, NAME).reverse()) {
    const atMs = readTime(NAME.exec(name)![1]!)
    if (atMs > nowMs) continue
    if (isWholeBackup(join(folder, name))) return { newest: { name, atMs }, broken }
    broken.push(name)
  }
  return { newest: null, broken }
}

/**
 * Removes all files in a folder that have names of backups and are older than the newest backups, each with the copy
 * of a PostgreSQL beside it. A file that is no whole backup does not count as one of the newest.
 * @param newest the backup of this moment: after a clock was set back, later names exist, which stay
 * @returns the number of removed files
 */
export function keepNewest(folder: string, count: number, newest: string): number {
  const names = namesIn(folder, NAME).filter(name => name <= newest)
  let first = names.length
  for (let keptCount = 0; first > 0 && keptCount < count; ) {
    first -= 1
    if (isWholeBackup(join(folder, names[first]!))) keptCount += 1
  }
  const old = names.slice(0, first)
  for (const name of old) removeDurably(join(folder, name))
  const oldest = names[old.length] ?? newest
  // Also a copy whose backup was never finished.
  const copies = namesIn(folder, DUMP).filter(name => name < oldest)
  for (const name of copies) removeDurably(join(folder, name))
  return old.length
}

/** Removes all but the newest copies from before a change. */
export function keepNewestBeforeChange(folder: string, count: number): void {
  const timed = namesIn(folder, BEFORE_CHANGE).map(name => ({ name, time: BEFORE_CHANGE.exec(name)![1]! }))
  const old = timed.sort((a, b) => (a.time < b.time ? -1 : 1)).slice(0, Math.max(0, timed.length - count))
  for (const { name } of old) removeDurably(join(folder, name))
}

function namesIn(folder: string, pattern: RegExp): string[] {
  return readdirSync(folder)
    .filter(name => pattern.test(name))
    .sort()
}

function timeText(nowMs: number): string {
  return new Date(nowMs).toISOString().replaceAll(/[-:]|\.\d+/g, '')
}

function readTime(text: string): number {
  return Date.parse(text.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'))
}
