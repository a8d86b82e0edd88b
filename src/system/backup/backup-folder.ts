/** Backups in a folder, named by their time. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { removeDurably } from '../../disk/durable-file.ts'

const NAME = /^runyard-\d{8}T\d{6}Z\.backup$/

/** The name of a backup that is made now; later ones sort behind it. @param nowMs Unix milliseconds */
export function backupName(nowMs: number): string {
  const text = new Date(nowMs).toISOString().replaceAll(/[-:]|\.\d+/g, '')
  return `runyard-${text}.backup`
}

/** Removes all backups in a folder that such names have but the newest ones. @returns how many were removed */
export function keepNewest(folder: string, count: number): number {
  const names = readdirSync(folder).filter(name => NAME.test(name))
  const old = names.sort().slice(0, Math.max(0, names.length - count))
  for (const name of old) removeDurably(join(folder, name))
  return old.length
}
