import { closeSync, fdatasyncSync, openSync, unlinkSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Store } from '../ports/store.ts'
import type { Host } from './host.ts'
import { storeOf } from './operations/table.ts'
import { SqliteEngine, type StoreStats } from './sqlite-engine.ts'
import { type Gather, InlineHost } from './sqlite-inline.ts'
import { ThreadHost } from './thread-host.ts'

/** Where the engine runs: in the caller's thread, or beside it. */
export type StoreHost = 'inline' | 'thread'

/** How to open a store on SQLite. */
export interface SqliteOptions {
  /** Path of the database, or `:memory:`. Its folder must exist. */
  readonly file: string
  readonly host: StoreHost
  /** When an inline store flushes the writes that have come in; after a few microtasks unless given. */
  readonly gather?: Gather
}

/** A store on SQLite. */
export interface SqliteStore extends Store {
  /** What its engine has done so far. */
  stats(): Promise<StoreStats>
}

/**
 * Opens a store on SQLite and brings its schema up to date.
 * @throws AppError `unavailable` when the database cannot be opened or was made by a newer version
 */
export async function openSqliteStore({ file, host, gather }: SqliteOptions): Promise<SqliteStore> {
  return host === 'thread'
    ? sqliteStoreOn(await ThreadHost.open({ file }))
    : sqliteStoreOn(new InlineHost(new SqliteEngine({ file }), gather))
}

/** The store of an engine that runs somewhere already. */
export function sqliteStoreOn(host: Host): SqliteStore {
  const store = storeOf(
    (name, args) => host.call(name, args),
    () => host.close(),
  )
  return { ...store, stats: () => host.stats() }
}

const PROBES = 15

/**
 * How long the disk of this folder takes to make a small write durable, in milliseconds: the median of some probes.
 * @param monotonic milliseconds that only grow
 */
export function measureFlushMs(folder: string, monotonic: () => number): number {
  const path = join(folder, 'flush.probe')
  const bytes = new Uint8Array(512)
  const descriptor = openSync(path, 'w', 0o600)
  try {
    const times = Array.from({ length: PROBES }, () => {
      const start = monotonic()
      writeSync(descriptor, bytes)
      fdatasyncSync(descriptor)
      return monotonic() - start
    })
    return times.sort((a, b) => a - b)[Math.floor(PROBES / 2)]!
  } finally {
    closeSync(descriptor)
    unlinkSync(path)
  }
}

const SLOW_FLUSH_MS = 1

/**
 * Where the engine should run on a disk with this flush time. Inline saves the way to another thread and back, which
 * costs more than a quick flush does; during a slow flush everything else in the process would stand still, so it goes
 * to a thread. `bench/store.ts` measures both.
 */
export function chooseHost(flushMs: number): StoreHost {
  return flushMs < SLOW_FLUSH_MS ? 'inline' : 'thread'
}
