import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import { compileCacheEnvironment } from '../../disk/compile-cache.ts'
import { programFile } from '../../disk/package-files.ts'
import type { Host } from './host.ts'
import { findOperation } from './operations.ts'
import type { SqliteEngineOptions, StoreStats } from './sqlite-engine.ts'
import { unavailable } from './sqlite-errors.ts'
import { type NumberedCall, type Request, type Response, unpackError } from './thread-messages.ts'

const PROGRAM = pathToFileURL(programFile('store/engines/sqlite-thread'))

/**
 * Runs the engine in a thread of its own. One that ends, for want of memory perhaps, takes its open calls with it,
 * each with an answer; nothing that was acknowledged is lost, since that is on the disk. The calls after it get a new
 * thread, one at a time.
 */
export class ThreadHost implements Host {
  readonly #open
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
    // The thread holds the database until it is gone.
    await this.#thread.close()
    this.#thread = await this.#open()
    return this.#thread
  }
}

interface Waiting {
  readonly resolve: (value: never) => void
  readonly reject: (error: unknown) => void
}

/** One thread that runs the engine. Calls of one turn travel in one message, in their order. */
class ThreadClient implements Host {
  readonly #worker
  readonly #waiting = new Map<number, Waiting>()
  readonly #ended: Promise<void>
  readonly #opened: PromiseWithResolvers<void>
  #calls: NumberedCall[] = []
  #nextId = 1
  #closed: Error | null = null

  private constructor(worker: Worker) {
    this.#worker = worker
    this.#ended = new Promise(resolve => worker.once('exit', () => resolve()))
    this.#opened = Promise.withResolvers()
    worker.on('message', (response: Response) => this.#receive(response))
    worker.on('error', error => this.#end(unavailable('its thread failed', error)))
    worker.on('exit', () => this.#end(unavailable('its thread has ended')))
  }

  /** Starts a thread with this program and opens the database in it. */
  static async open(program: URL, options: Pick<SqliteEngineOptions, 'file'>): Promise<ThreadClient> {
    const client = new ThreadClient(
      new Worker(program, { workerData: options, name: 'store', env: compileCacheEnvironment() }),
    )
    await client.#opened.promise
    return client
  }

  /** The error that every further call gets; null while calls are taken. */
  get closed(): Error | null {
    return this.#closed
  }

  call(name: string, args: readonly unknown[]): Promise<unknown> {
    return this.#ask(id => {
      if (this.#calls.length === 0) queueMicrotask(() => this.#sendCalls())
      this.#calls.push({ id, name, args })
    })
  }

  stats(): Promise<StoreStats> {
    return this.#ask(id => {
      this.#sendCalls()
      this.#send({ kind: 'stats', id })
    })
  }

  async close(): Promise<void> {
    if (this.#closed === null) {
      this.#sendCalls()
      this.#closed = unavailable('it is closed')
      this.#send({ kind: 'close' })
    }
    await this.#ended
  }

  async #ask<T>(send: (id: number) => void): Promise<T> {
    if (this.#closed !== null) throw this.#closed
    return new Promise((resolve, reject) => {
      const id = this.#nextId
      this.#nextId += 1
      send(id)
      this.#waiting.set(id, { resolve, reject })
    })
  }

  #sendCalls(): void {
    const calls = this.#calls
    if (calls.length === 0) return
    this.#calls = []
    try {
      this.#send({ kind: 'calls', calls })
    } catch (error) {
      for (const { id } of calls) this.#settle(id)?.reject(error)
    }
  }

  #send(request: Request): void {
    this.#worker.postMessage(request)
  }

  #receive(response: Response): void {
    if (response.kind === 'ready') this.#opened.resolve()
    if (response.kind === 'failed') this.#end(unpackError(response.error) as Error)
    if (response.kind === 'stats') this.#settle(response.id)?.resolve(response.stats as never)
    if (response.kind !== 'outcomes') return
    if (response.large !== undefined) this.#send({ kind: 'taken', large: response.large })
    for (const outcome of response.outcomes) {
      if (outcome.ok) this.#settle(outcome.id)?.resolve(outcome.value as never)
      else this.#settle(outcome.id)?.reject(unpackError(outcome.error))
    }
  }

  #settle(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    return waiting
  }

  #end(reason: Error): void {
    this.#closed ??= reason
    this.#opened.reject(reason)
    for (const { reject } of this.#waiting.values()) reject(reason)
    this.#waiting.clear()
  }
}
