/** The data directory of a server, and the database that belongs to it. */
import { createHash } from 'node:crypto'
import { existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Config } from '../../config/config.ts'
import { AppError } from '../../core/errors.ts'
import { dataDirProblem, type Use } from '../../disk/access-problem.ts'
import { keepDurably } from '../../disk/durable-file.ts'
import type { Emit } from '../../events.ts'
import type { Store } from '../../ports/store/store.ts'
import { StoreDamaged } from '../../ports/store/store-trouble.ts'
import type { ServerTerm } from '../../relay/relay.ts'
import {
  DATABASE_NAME,
  type DatabaseMismatch,
  databaseMismatch,
  databaseName,
  databaseNote,
  noteDatabase,
} from '../../store/data-dir-database.ts'
import { type DataDirLock, lockDataDir } from '../../store/data-dir-lock.ts'
import { canaryOfFile } from '../../store/database-check.ts'
import { lossIn } from '../../store/engines/change-note.ts'
import { type EpochFence, openPostgresStore } from '../../store/engines/postgres.ts'
import { printableAddress } from '../../store/engines/postgres-trouble.ts'
import { chooseHost, measureFlushMs, openSqliteStore, type SqliteStore } from '../../store/engines/sqlite.ts'
import { damageMessage, isFullDisk } from '../../store/engines/sqlite-errors.ts'
import { unfinishedRestore } from '../../system/backup/unfinished-restore.ts'
import { systemClock } from '../../system/clock.ts'
import { ensureInstallation, machineIdentity } from '../../system/coordination/identities.ts'
import { type FencedTerm, serverText } from '../../system/coordination/lease-term.ts'
import { openPostgresLease, type PostgresLease } from '../../system/coordination/postgres-lease.ts'
import type { Log } from '../../system/observing/log.ts'
import { StartError } from '../start-error.ts'
import { refuseOtherKey } from './key-canary.ts'
import { OwnAgreement } from './server-agreement.ts'
import { readyFile, readyPostgres } from './upgrade.ts'

/** Name of the database in the settings, for people. */
export function storeName({ databaseUrl }: Config): string {
  return databaseName(databaseUrl)
}

/** Refuses a data directory whose restore was not finished, also with --new-database. @throws StartError then */
export function refuseUnfinishedRestore({ dataDir }: Config): void {
  const refusal = unfinishedRestore(dataDir)
  if (refusal !== null) throw new StartError(refusal)
}

/**
 * Refuses a data directory whose restore was not finished, that belongs to another database, or whose database is
 * lost, before anything is written. With --new-database the latter two may; a warning says where that option does
 * nothing.
 * @throws StartError then, AppError `unavailable` when PostgreSQL cannot be asked
 */
export async function refuseOtherDatabase(config: Config, log?: Log): Promise<void> {
  refuseClosedFolder(config.dataDir, 'read')
  refuseUnfinishedRestore(config)
  const { dataDir, databaseUrl, newDatabase } = config
  const mismatch = await databaseMismatch(dataDir, databaseUrl)
  if (mismatch === null) {
    if (newDatabase && databaseNote(dataDir) !== null) log?.warn('--new-database does nothing here; leave it out')
    return
  }
  if (!newDatabase) throw new StartError(mismatchText(mismatch))
  log?.warn({ before: mismatch.problem }, 'the data directory gets another database')
}

/**
 * Notes in the data directory that it belongs to the database, which has its schema by now.
 * @throws as {@link refuseOtherDatabase}
 */
export async function keepDatabaseNote({ dataDir, databaseUrl, newDatabase }: Config): Promise<void> {
  const mismatch = await noteDatabase(dataDir, databaseUrl, newDatabase)
  if (mismatch !== null) throw new StartError(mismatchText(mismatch))
}

function mismatchText({ problem, remedy }: DatabaseMismatch): string {
  return `${problem}; ${remedy}; nothing was changed`
}

/**
 * Refuses a data directory of another database, or of none: a command that changes what it finds there would leave the
 * server's as it is.
 * @throws StartError then, AppError `unavailable` when PostgreSQL cannot be asked
 */
export async function requireMatchingDatabase(config: Config): Promise<void> {
  refuseClosedFolder(config.dataDir, 'read')
  refuseUnfinishedRestore(config)
  if (databaseNote(config.dataDir) === null) {
    throw new StartError(
      `${config.dataDir} does not belong to ${storeName(config)}: no server has run on it yet; see --data-dir and --database`,
    )
  }
  await refuseOtherDatabase(config)
}

/** Holds the encryption key, where no setting gives one. */
export function keyFile(config: Config): string {
  return join(config.dataDir, 'encryption-key')
}

/**
 * Takes the data directory. Servers on one PostgreSQL may share it: all but one of them stand by.
 * @param shares true for a server; false for a command that needs the directory for itself
 * @throws StartError when another server has it
 */
export function acquire(config: Config, shares: boolean): DataDirLock {
  const { dataDir, databaseUrl } = config
  refuseClosedFolder(dataDir, 'write')
  const lock = lockFolder(dataDir, shares && databaseUrl !== null)
  if (!lock.held) {
    if (lock.shared && config.newDatabase) {
      lock.release()
      throw new StartError(`a server runs on the data directory ${dataDir}; stop it, or leave --new-database out`)
    }
    return lock
  }
  const who =
    lock.by === null ? 'another server that is starting' : `the server with pid ${lock.by.pid} at ${lock.by.url}`
  throw new StartError(`the data directory ${dataDir} is in use by ${who}; stop it or give another --data-dir`)
}

function lockFolder(dataDir: string, shares: boolean): ReturnType<typeof lockDataDir> {
  try {
    return lockDataDir(dataDir, shares)
  } catch (error) {
    throw new StartError(unusableFolder(dataDir, error as Error), { cause: error })
  }
}

function refuseClosedFolder(dataDir: string, use: Use): void {
  const problem = dataDirProblem(dataDir, use)
  if (problem === null) return
  throw new StartError(`the data directory ${dataDir} cannot be used: ${problem}; ${CLOSED_REMEDY}`)
}

const CLOSED_REMEDY = 'run this as its owner, or give another --data-dir'

/**
 * The refusal of a data directory that cannot be made or locked, with the remedy.
 * @param error of the system, or of the database that is the lock
 */
export function unusableFolder(dataDir: string, error: NodeJS.ErrnoException): string {
  return `the data directory ${dataDir} cannot be used: ${describeFolderError(dataDir, error)}`
}

function describeFolderError(dataDir: string, error: NodeJS.ErrnoException): string {
  // Another directory would be a new server without the jobs of this one.
  if (error.code === 'ENOSPC' || error.code === 'EDQUOT' || isFullDisk(error))
    return 'its disk is full; make room there'
  if (damageMessage(error) !== null)
    return 'its file lock.sqlite is damaged; make sure that no server runs there, and remove that file'
  return `${folderProblem(dataDir, error)}; give another --data-dir`
}

/** The reason for which a folder cannot be made or written to. */
function folderProblem(folder: string, { code, message }: NodeJS.ErrnoException): string {
  for (let path = folder; path !== dirname(path); path = dirname(path)) {
    if (statSync(path, { throwIfNoEntry: false })?.isFile() === true) return `${path} is a file`
  }
  if (code === 'EROFS') return 'its file system is read-only'
  return code === 'EACCES' || code === 'EPERM' ? `this user may not write there (${code})` : message
}

/** A store, and the wait before the first large body is passed on. */
interface OpenedStore {
  readonly store: Store
  /** Moves an engine that runs in the loop to a thread; at once where it need not move or has moved. Never throws. */
  readonly readyForLarge: () => Promise<void>
}

/**
 * Opens the database that the settings name, and brings it to the schema of this version.
 * @param fence of the term in which it is opened; null where there is none
 * @param emit receives an event before a database of an older version is changed, and after
 * @throws StartError when this version cannot use the database or may not change it, nothing was changed then; or
 *   when it is damaged
 */
export async function openStore(config: Config, fence: EpochFence | null, emit: Emit): Promise<OpenedStore> {
  try {
    return await openSound(config, fence, emit)
  } catch (error) {
    if (!(error instanceof StoreDamaged)) throw error
    const which =
      config.databaseUrl === null ? join(config.dataDir, DATABASE_NAME) : printableAddress(config.databaseUrl)
    const remedy = 'look at it with runyard check, and restore a backup into a new folder with runyard restore'
    throw new StartError(`the database ${which} is damaged (${error.databaseMessage}); ${remedy}`, { cause: error })
  }
}

async function openSound(config: Config, fence: EpochFence | null, emit: Emit): Promise<OpenedStore> {
  const { databaseUrl: url } = config
  if (url === null) refuseLostChanges(config)
  if (url === null) refuseOtherKey(config, keyFile(config), canaryOfFile(join(config.dataDir, DATABASE_NAME)))
  const change = url === null ? await readyFile(config, emit) : await readyPostgres(config, url, emit)
  const beganMs = systemClock.monotonic()
  const opened = url === null ? await openFile(config) : await openPostgres(url, fence)
  if (change !== null) {
    const { from, to } = change
    emit('schema.changed', { from, to, tookMs: Math.round(systemClock.monotonic() - beganMs) })
  }
  return opened
}

/**
 * @throws StartError when changes are missing that were on stable storage: the files as they are may still have them
 */
function refuseLostChanges({ dataDir }: Config): void {
  const loss = lossIn(join(dataDir, DATABASE_NAME))
  if (loss === null) return
  throw new StartError(
    `${loss}; put the files back as they were, or restore a backup into a new folder with runyard restore; ` +
      `runyard check --repair --data-dir ${dataDir} goes on with the changes that are left; nothing was changed`,
  )
}

async function openPostgres(url: string, fence: EpochFence | null): Promise<OpenedStore> {
  const store = await openPostgresStore({ url, ...(fence === null ? {} : { fence }) })
  return { store, readyForLarge: async () => {} }
}

async function openFile(config: Config): Promise<OpenedStore> {
  const file = join(config.dataDir, DATABASE_NAME)
  const note = join(config.dataDir, 'large-bodies')
  const flushMs = () => measureFlushMs(config.dataDir, () => systemClock.monotonic())
  // The traces of large bodies in the database would delay a store that begins in the loop.
  const auto = () => (existsSync(note) ? 'thread' : chooseHost(flushMs()))
  const store = await openSqliteStore({
    file,
    host: config.storeHost === 'auto' ? auto() : config.storeHost,
    gather: flush => void setImmediate(flush),
    monotonic: () => systemClock.monotonic(),
  })
  if (config.storeHost !== 'auto') return { store, readyForLarge: async () => {} }
  return { store, readyForLarge: () => moveToThread(store, note) }
}

async function moveToThread(store: SqliteStore, note: string): Promise<void> {
  if (store.runsBeside()) return
  try {
    keepDurably(note, 'the store runs in a thread because large bodies came\n')
    await store.moveToThread()
  } catch {
    // It works on where it is; the next large body tries again.
  }
}

/** True when the workers of a server live and die with its machine, as processes and containers do. */
export function isBoundToMachine(config: Config): boolean {
  const { processes, docker, kubernetes } = config
  if (kubernetes.where === 'off') return processes !== 'off' || docker !== 'off'
  // With a cluster no folder runs that was not named.
  const { workers, lbFolders, processRoots, sample } = config
  return processes !== 'off' && (sample || [workers, lbFolders, processRoots].some(folders => folders.length > 0))
}

/**
 * The candidate of a server on PostgreSQL.
 * @param first true if the previous process that was the first in its data directory has ended, so that its lease is
 *   this one's
 * @throws StartError when the database has another encryption key; AppError `unavailable` when it cannot be reached
 */
export async function openLease(config: Config, url: string, first: boolean): Promise<PostgresLease> {
  const installation = ensureInstallation(config.dataDir)
  const candidate = await openPostgresLease({
    url,
    // Workers are found again by their notes in the data directory.
    machine: `${machineIdentity()}-${installation}`,
    boundToMachine: isBoundToMachine(config),
    instance: first ? installation : null,
    agreement: new OwnAgreement(config),
  })
  try {
    refuseOtherKey(config, keyFile(config), await candidate.canary())
  } catch (error) {
    await candidate.close()
    throw error
  }
  return candidate
}

/** The term for a relay; null where no other server can act on the database. */
export function relayTerm(config: Config, lease: FencedTerm | null): ServerTerm | null {
  if (lease === null) return null
  return { database: createHash('sha256').update(storeName(config)).digest('hex').slice(0, 16), epoch: lease.epoch }
}

/** The lease of a server that was killed has run out by then. */
const GRACE_MS = 8_000

/** A term, and the function that ends it together with its candidate. */
export interface Lead {
  readonly term: FencedTerm
  close(): Promise<void>
}

/** A data directory with an embedded database has a lock of its own. */
export async function lead(config: Config): Promise<Lead | null> {
  const { databaseUrl: url } = config
  if (url === null) return null
  const candidate = await openLease(config, url, true)
  try {
    const term = await candidate.lead(AbortSignal.timeout(GRACE_MS))
    const close = () => term.close().then(() => candidate.close())
    return { term, close }
  } catch (error) {
    const other = await candidate.active()
    await candidate.close()
    if (!(error instanceof DOMException)) throw error
    const who = other === null ? 'another server' : serverText(other)
    throw new AppError(
      'conflict',
      `the database ${printableAddress(url)} is in use by ${who}; stop it or give another --database`,
    )
  }
}
