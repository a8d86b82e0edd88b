/**
 * Loaded into a server before all else (`--import`): each time it flushes a file or folder, a line of
 * RUNYARD_TEST_FLUSHES says what is on stable storage then.
 */
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'

/** A flush: a folder with its names and their inodes, or a file with a digest of its content. */
export interface Flush {
  readonly inode: number
  readonly names?: Readonly<Record<string, number>>
  readonly digest?: string
}

/** A digest of the content of a file. */
export function digestOf(path: string): string {
  return createHash('sha256').update(fs.readFileSync(path)).digest('hex')
}

const file = process.env.RUNYARD_TEST_FLUSHES
if (file !== undefined) {
  const real = fs.fsyncSync
  fs.fsyncSync = handle => {
    real(handle)
    const path = fs.readlinkSync(`/proc/self/fd/${handle}`)
    const { ino: inode } = fs.fstatSync(handle)
    const flush: Flush = fs.statSync(path).isDirectory()
      ? {
          inode,
          names: Object.fromEntries(fs.readdirSync(path).map(name => [name, fs.lstatSync(join(path, name)).ino])),
        }
      : { inode, digest: digestOf(path) }
    fs.appendFileSync(file, `${JSON.stringify(flush)}\n`)
  }
  syncBuiltinESMExports()
}
