/** Where a server keeps everything: its data directory, and the database that belongs to it. */
import { join } from 'node:path'
import type { Config } from './config.ts'
import { StartError } from './main-listeners.ts'
import type { Store } from './ports/store.ts'
import { type DataDirLock, lockDataDir } from './store/data-dir-lock.ts'
import { openPostgresStore } from './store/postgres.ts'
import { chooseHost, measureFlushMs, openSqliteStore } from './store/sqlite.ts'
import { systemClock } from './system/clock.ts'
import { leadPostgres, type PostgresLeader } from './system/postgres-leader.ts'

/** Holds which database the server of this data directory was started on. */
export function storeFile(config: Config): string {
  return join(config.dataDir, 'store')
}

/** What {@link storeFile} holds. */
export function storeName({ databaseUrl }: Config): string {
  if (databaseUrl === null) return 'the embedded database'
  const { host, pathname } = new URL(databaseUrl)
  return `PostgreSQL at ${host}${pathname}`
}

/** Holds the encryption key, where no setting gives one. */
export function keyFile(config: Config): string {
  return join(config.dataDir, 'encryption-key')
}

/** Takes the data directory. @throws StartError when another server has it */
export function acquire(dataDir: string): DataDirLock {
  const lock = lockDataDir(dataDir)
  if (!lock.held) return lock
  const who =
    lock.by === null ? 'another server that is starting' : `the server with pid ${lock.by.pid} at ${lock.by.url}`
  throw new StartError(`the data directory ${dataDir} is in use by ${who}; stop it or give another --data-dir`)
}

/** Opens the database that the settings name. */
export async function openStore(config: Config): Promise<Store> {
  if (config.databaseUrl !== null) return openPostgresStore({ url: config.databaseUrl })
  const flushMs = () => measureFlushMs(config.dataDir, () => systemClock.monotonic())
  const host = config.storeHost === 'auto' ? chooseHost(flushMs()) : config.storeHost
  return openSqliteStore({
    file: join(config.dataDir, 'runyard.sqlite'),
    host,
    gather: flush => void setImmediate(flush),
  })
}

/** A data directory with an embedded database has a lock of its own. */
export async function lead({ databaseUrl }: Config): Promise<PostgresLeader | null> {
  return databaseUrl === null ? null : leadPostgres({ url: databaseUrl })
}
