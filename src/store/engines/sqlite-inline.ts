import type { Host, HostCall } from './host.ts'
import { findOperation } from './operations.ts'
import { MAX_BATCH, type SqliteEngine, type StoreStats } from './sqlite-engine.ts'
import { unavailable } from './sqlite-errors.ts'

/** Calls `flush` once, soon: late enough that writers which arrive together share one flush. */
export type Gather = (flush: () => void) => void

/** Microtask turns before a flush. Writers that were answered together come back within these. */
const TURNS = 4

/** Gathers for a few turns of the microtask queue, so that the order of everything stays the same in each run. */
export function gatherInMicrotasks(flush: () => void): void {
  let turns = TURNS
  const turn = () => {
    turns -= 1
    if (turns === 0) flush()
    else queueMicrotask(turn)
  }
  queueMicrotask(turn)
}

interface PendingWrite extends HostCall {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/** The part of an engine that the host uses. */
export type InlineEngine = Pick<SqliteEngine, 'read' | 'write' | 'stats' | 'close'>

/** Runs the engine in the caller's own thread. Reads run at once; writes that arrive together share a commit. */
export class InlineHost implements Host {
  readonly #engine
  readonly #gather
  #pending: PendingWrite[] = []
  #closed = false

  constructor(engine: InlineEngine, gather: Gather = gatherInMicrotasks) {
    this.#engine = engine
    this.#gather = gather
  }

  async call(name: string, args: readonly unknown[]): Promise<unknown> {
    if (this.#closed) throw unavailable('it is closed')
    if (findOperation(name).reads) return this.#engine.read({ name, args })
    return new Promise((resolve, reject) => {
      this.#pending.push({ name, args, resolve, reject })
      if (this.#pending.length === 1) this.#gather(() => this.#flushSome())
    })
  }

  async stats(): Promise<StoreStats> {
    return this.#engine.stats
  }

  /** Makes all writes durable that were asked for. */
  flush(): void {
    while (this.#pending.length > 0) this.#flushBatch()
  }

  async close(): Promise<void> {
    this.#closed = true
    this.flush()
    this.#engine.close()
  }

  #flushSome(): void {
    this.#flushBatch()
    if (this.#pending.length > 0) this.#gather(() => this.#flushSome())
  }

  #flushBatch(): void {
    const batch = this.#pending.slice(0, MAX_BATCH)
    const outcomes = this.#engine.write(batch)
    this.#pending = this.#pending.slice(outcomes.length)
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.ok) batch[index]!.resolve(outcome.value)
      else batch[index]!.reject(outcome.error)
    }
  }
}
