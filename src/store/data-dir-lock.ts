import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { ensureFolder } from '../disk/durable-file.ts'

/** What a running server says of itself to those who find its data directory. */
export interface ServerInfo {
  readonly pid: number
  readonly url: string
}

/** A data directory that this process has for itself until it ends. */
export interface DataDirLock {
  readonly held: false
  /** Records the holder, once it is known. */
  publish(info: ServerInfo): void
  /** Gives it back. */
  release(): void
}

/** A data directory that another process has; null while that process has not said who it is. */
export interface HeldDataDir {
  readonly held: true
  readonly by: ServerInfo | null
}

const BUSY = 5
/** A database without a reference is closed by the garbage collector, and the lock would end with it. */
const kept = new Set<DatabaseSync>()

/**
 * Takes a data directory for this process, making it if need be. The lock is an exclusive transaction on a database of
 * its own that is never committed: the system ends it with the process, however that ends, so no lock is ever left over.
 * `server.json` beside it only says who holds the lock, and means nothing without it.
 */
export function lockDataDir(folder: string): DataDirLock | HeldDataDir {
  ensureFolder(folder)
  const infoFile = join(folder, 'server.json')
  const database = new DatabaseSync(join(folder, 'lock.sqlite'), { timeout: 0 })
  try {
    database.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    database.close()
    if (!isBusy(error)) throw error
    return { held: true, by: readInfo(infoFile) }
  }
  kept.add(database)
  rmSync(infoFile, { force: true })
  return {
    held: false,
    publish(info) {
      const draft = `${infoFile}.new`
      writeFileSync(draft, `${JSON.stringify(info)}\n`, { mode: 0o600 })
      renameSync(draft, infoFile)
    },
    release() {
      if (!database.isOpen) return
      rmSync(infoFile, { force: true })
      database.close()
      kept.delete(database)
    },
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === BUSY
}

function readInfo(file: string): ServerInfo | null {
  try {
    const info = JSON.parse(readFileSync(file, 'utf8')) as Partial<ServerInfo> | null
    return typeof info?.pid === 'number' && typeof info.url === 'string' ? { pid: info.pid, url: info.url } : null
  } catch {
    return null
  }
}
