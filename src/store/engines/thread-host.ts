import { pathToFileURL } from 'node:url'
import { programFile } from '../../disk/package-files.ts'
import type { Host } from './host.ts'
import { findOperation } from './operations.ts'
import type { SqliteEngineOptions, StoreStats } from './sqlite-engine.ts'
import { unavailable } from './sqlite-errors.ts'
import { ThreadClient } from './thread-client.ts'

const PROGRAM = pathToFileURL(programFile('store/engines/sqlite-thread'))

/**
 * Runs the engine in a thread of its own. One that ends, for want of memory perhaps, takes its open calls with it,
 * each with an answer; nothing that was acknowledged is lost, since that is on the disk. The calls after it get a new
 * thread, one at a time.
 */
export class ThreadHost implements Host {
  readonly #open: () => Promise<ThreadClient>
  #thread: ThreadClient
  #opening: Promise<ThreadClient> | null = null
  #isClosed = false

  private constructor(thread: ThreadClient, open: () => Promise<ThreadClient>) {
    this.#thread = thread
    this.#open = open
  }

  /**
   * Starts the thread and opens the database in it.
   * @param program another program for the thread, for tests and benchmarks
   */
  static async open(options: Pick<SqliteEngineOptions, 'file'>, program: URL = PROGRAM): Promise<ThreadHost> {
    const open = () => ThreadClient.open(program, options)
    return new ThreadHost(await open(), open)
  }

  async call(name: string, args: readonly unknown[]): Promise<unknown> {
    findOperation(name)
    return this.#thread.closed === null
      ? this.#thread.call(name, args)
      : this.#next().then(thread => thread.call(name, args))
  }

  async stats(): Promise<StoreStats> {
    return (this.#thread.closed === null ? this.#thread : await this.#next()).stats()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#opening?.catch(() => {})
    await this.#thread.close()
  }

  /** The thread after one that has ended. */
  async #next(): Promise<ThreadClient> {
    if (this.#isClosed) throw unavailable('it is closed')
    this.#opening ??= this.#restart().finally(() => {
      this.#opening = null
    })
    return this.#opening
  }

  async #restart(): Promise<ThreadClient> {
    // It holds the database until it is gone.
    await this.#thread.close()
    this.#thread = await this.#open()
    return this.#thread
  }
}
