import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { ensureFolder, writeDurably } from '../disk/durable-file.ts'

/** Identity of a running server, for those who find its data directory. */
export interface ServerInfo {
  readonly pid: number
  readonly url: string
  /** The certificate of its HTTPS, in PEM; none for plain HTTP. */
  readonly certificate?: string
}

/** A data directory that this process has until it ends, for itself or with others that share it. */
export interface DataDirLock {
  readonly held: false
  /** True where another process had it, too, when this one took it. */
  readonly shared: boolean
  /**
   * True once all processes for which it was true earlier have ended; of those that share, it is true for one at a
   * time.
   */
  readonly first: boolean
  /** Records the holder, once it is known. */
  publish(info: ServerInfo): void
  /** Records it again, unless another process that shares has done so since. */
  update(info: ServerInfo): void
  /** Gives it back. */
  release(): void
}

/** A data directory that another process has; null while that process has not said who it is. */
export interface HeldDataDir {
  readonly held: true
  readonly by: ServerInfo | null
}

const BUSY = 5
/** A file that Git reads in each folder. */
const HIDING = '.gitignore'
/** A database without a reference is closed by the garbage collector, and the lock would end with it. */
const openLocks = new Set<DatabaseSync>()

/**
 * Time for which a process that shares waits for one that has just taken the directory and lets others in at once.
 */
const ENTERING_MS = 1_000

/**
 * Takes a data directory for this process, making it if need be. The lock is an exclusive transaction on a database
 * of its own that is never committed: the system ends it with the process, however that ends, so no lock is ever left
 * over. `server.json` beside it only says who holds the lock, and means nothing without it.
 * @param shares true if others that share may have it at the same time: servers on one PostgreSQL, of which one acts.
 *   A process that does not share has it alone
 */
export function lockDataDir(folder: string, shares = false): DataDirLock | HeldDataDir {
  ensureFolder(folder)
  hideFromArchives(folder)
  const infoFile = join(folder, 'server.json')
  const file = join(folder, 'lock.sqlite')
  const alone = takeLock(file, 'BEGIN EXCLUSIVE', 0)
  if (alone !== null && shares) alone.close()
  const database = shares ? takeLock(file, 'BEGIN; SELECT count(*) FROM sqlite_schema', ENTERING_MS) : alone
  if (database === null) return { held: true, by: readInfo(infoFile) }
  // Not from `alone`: two that start at the same moment may have been alone one after the other.
  const first = shares ? takeLock(join(folder, 'first.sqlite'), 'BEGIN EXCLUSIVE', 0) : null
  openLocks.add(database)
  if (first !== null) openLocks.add(first)
  if (alone !== null) rmSync(infoFile, { force: true })
  let published: ServerInfo | null = null
  const publish = (info: ServerInfo) => {
    published = info
    const draft = `${infoFile}.${process.pid}.new`
    writeFileSync(draft, `${JSON.stringify(info)}\n`, { mode: 0o600 })
    renameSync(draft, infoFile)
  }
  return {
    held: false,
    shared: alone === null,
    first: !shares || first !== null,
    publish,
    update(info) {
      if (database.isOpen && published !== null && readInfo(infoFile)?.pid === published.pid) publish(info)
    },
    release() {
      if (!database.isOpen) return
      // One that shares may have said since that it is the one to call.
      if (readInfo(infoFile)?.pid === published?.pid) rmSync(infoFile, { force: true })
      for (const lock of [first, database]) {
        lock?.close()
        if (lock !== null) openLocks.delete(lock)
      }
    },
  }
}

/**
 * Keeps the keys of a data directory out of what is made of the folder around it: commits, and archives of apps, which
 * RunPod's SDK packs by the rules of Git. A file that exists stays as it is.
 */
function hideFromArchives(folder: string): void {
  const file = join(folder, HIDING)
  try {
    if (!existsSync(file)) writeDurably(file, '*\n')
  } catch {
    // A folder without room or without the right to write: those who write what the server needs say so.
  }
}

/** The database whose open transaction is the lock; null when others have it. @param begin statements that take it */
function takeLock(file: string, begin: string, waitMs: number): DatabaseSync | null {
  const database = new DatabaseSync(file, { timeout: waitMs })
  try {
    database.exec(begin)
    return database
  } catch (error) {
    database.close()
    if (!isBusy(error)) throw error
    return null
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
