import { closeSync, fdatasyncSync, openSync, unlinkSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Store } from '../../ports/store/store.ts'
import type { Host } from './host.ts'
import { storeFromCalls } from './operations.ts'
import { SqliteEngine, type StoreStats } from './sqlite-engine.ts'
import { type Gather, InlineHost } from './sqlite-inline.ts'
import { ThreadHost } from './thread-host.ts'

/** Place of the engine: the caller's thread, or one beside it; `moving` begins inline and can move later. */
export type StoreHost = 'inline' | 'thread' | 'moving'

/** Options of a store on SQLite. */
export interface SqliteOptions {
  /** Path of the database, or `:memory:`. Its folder must exist. */
  readonly file: string
  readonly host: StoreHost
  /** Scheduler of the flushes of an inline store; by default a few microtasks after a write. */
  readonly gather?: Gather
  /**
   * The clock for the time of a turn of an inline store, in milliseconds that only grow; without it a commit takes all
   * writes that have arrived, and reads never wait, whatever their time.
   */
  readonly monotonic?: () => number
}

/**
 * Time of the writes of one commit, and of the reads of one turn, in the server's thread: all other requests wait for
 * them. Reads have less, since the last one may take longer, and what is made of them takes time too.
 */
const INLINE_TURN_MS = { writes: 5, reads: 2 }

/** A store on SQLite. */
export interface SqliteStore extends Store {
  /** Counts of the work of its engine. */
  stats(): Promise<StoreStats>
  /** True while its engine runs in a thread of its own. */
  runsBeside(): boolean
  /** Moves a `moving` engine to a thread of its own, once; nothing for the others. @throws AppError `unavailable` */
  moveToThread(): Promise<void>
}

/**
 * Opens a store on SQLite and brings its schema up to date.
 * @throws AppError `unavailable` when the database cannot be opened or was made by a newer version
 */
export async function openSqliteStore({ file, host, gather, monotonic }: SqliteOptions): Promise<SqliteStore> {
  if (host === 'thread') return sqliteStoreOn(await ThreadHost.open({ file }))
  const timeOf = (ms: number) => (monotonic === undefined ? undefined : { ms, monotonic })
  const batchTime = timeOf(INLINE_TURN_MS.writes)
  const engine = new SqliteEngine({ file, ...(batchTime && { batchTime }) })
  const inline = new InlineHost(engine, gather, timeOf(INLINE_TURN_MS.reads))
  return sqliteStoreOn(host === 'inline' ? inline : new MovingHost(inline, () => ThreadHost.open({ file })))
}

/** The store of an engine that runs somewhere already. */
export function sqliteStoreOn(host: Host): SqliteStore {
  const store = storeFromCalls(
    (name, args) => host.call(name, args),
    () => host.close(),
    true,
  )
  const moveToThread = async () => (host instanceof MovingHost ? host.move() : undefined)
  const runsBeside = () => host instanceof ThreadHost || (host instanceof MovingHost && host.hasMoved)
  return { ...store, stats: () => host.stats(), runsBeside, moveToThread }
}

const SLOW_FLUSH_MS = 1

/** Limits of the probes of a disk that is slow, or busy with the writes of others. */
const PROBES = { count: 30, ms: 250 }

/**
 * Time in which the disk of this folder can make a small write durable, in milliseconds: the quickest of some probes,
 * up to the first one that is quick, since others write to the disk at times. A disk that takes no write now, such as
 * a full one, counts as the slowest: a server starts on it all the same.
 * @param monotonic milliseconds that only grow
 */
export function measureFlushMs(folder: string, monotonic: () => number): number {
  try {
    return probeFlushMs(join(folder, 'flush.probe'), monotonic)
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

function probeFlushMs(path: string, monotonic: () => number): number {
  const bytes = new Uint8Array(512)
  const descriptor = openSync(path, 'w', 0o600)
  try {
    const endMs = monotonic() + PROBES.ms
    let quickestMs = Number.POSITIVE_INFINITY
    for (let count = 0, nowMs = monotonic(); count < PROBES.count && nowMs < endMs; count += 1) {
      const start = nowMs
      writeSync(descriptor, bytes)
      fdatasyncSync(descriptor)
      nowMs = monotonic()
      quickestMs = Math.min(quickestMs, nowMs - start)
      if (quickestMs < SLOW_FLUSH_MS) break
    }
    return quickestMs
  } finally {
    closeSync(descriptor)
    unlinkSync(path)
  }
}

/**
 * The best place of the engine on a disk with this flush time. Inline saves the way to another thread and back, which
 * costs more than a quick flush does; during a slow flush everything else in the process would stand still, so it
 * goes to a thread. `bench/store.ts` measures both. What is large holds the caller's thread on any disk: the caller
 * that sees it moves the engine (docs/adr/0031-scanning-large-bodies.md).
 */
export function chooseHost(flushMs: number): StoreHost {
  return flushMs < SLOW_FLUSH_MS ? 'moving' : 'thread'
}

/**
 * An engine that runs inline until it is moved to a thread. Both have the database open for a moment; inline calls
 * are done before the first call goes to the thread.
 */
export class MovingHost implements Host {
  readonly #inline
  readonly #openThread
  #host: Host
  #moving: Promise<void> | null = null

  /** @param openThread opens the same database in a thread */
  constructor(inline: InlineHost, openThread: () => Promise<Host>) {
    this.#inline = inline
    this.#openThread = openThread
    this.#host = inline
  }

  /** True once calls go to the thread. */
  get hasMoved(): boolean {
    return this.#host !== this.#inline
  }

  call(name: string, args: readonly unknown[]): Promise<unknown> {
    return this.#host.call(name, args)
  }

  stats(): Promise<StoreStats> {
    return this.#host.stats()
  }

  /**
   * Resolves when calls go to the thread; a second call waits for the same move.
   * @throws AppError `unavailable` when it could not be opened there; then it stays inline, and the next call tries
   * again
   */
  move(): Promise<void> {
    this.#moving ??= this.#move().catch(error => {
      this.#moving = null
      throw error
    })
    return this.#moving
  }

  async close(): Promise<void> {
    await this.#moving?.catch(() => {})
    await this.#host.close()
  }

  async #move(): Promise<void> {
    const thread = await this.#openThread()
    this.#inline.flush()
    this.#host = thread
    await this.#inline.close()
  }
}
