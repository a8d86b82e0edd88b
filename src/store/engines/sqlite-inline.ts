import type { Host, HostCall } from './host.ts'
import { findOperation } from './operations.ts'
import { type BatchTime, MAX_BATCH, type SqliteEngine, type StoreStats } from './sqlite-engine.ts'
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

/** Time of reads after which the end of their turn is noticed, in milliseconds: shorter ones need no wake-up. */
const NOTICED_MS = 1

interface PendingCall extends HostCall {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/** The part of an engine that the host uses. */
export type InlineEngine = Pick<SqliteEngine, 'read' | 'write' | 'stats' | 'close'>

/**
 * Runs the engine in the caller's own thread. Reads run at once, until those of one turn have taken long: the others
 * wait for the next turn, in their order. Writes that arrive together share a commit.
 */
export class InlineHost implements Host {
  readonly #engine
  readonly #gather
  readonly #readTime
  #pending: PendingCall[] = []
  /** Reads of a later turn. */
  #waiting: PendingCall[] = []
  /** Time of the reads of this turn, in milliseconds. */
  #readMs = 0
  #noticesTurn = false
  #closed = false

  /** @param readTime the longest time of the reads of one turn; without it reads never wait */
  constructor(engine: InlineEngine, gather: Gather = gatherInMicrotasks, readTime?: BatchTime) {
    this.#engine = engine
    this.#gather = gather
    this.#readTime = readTime
  }

  async call(name: string, args: readonly unknown[]): Promise<unknown> {
    if (this.#closed) throw unavailable('it is closed')
    if (findOperation(name).reads) return this.#read({ name, args })
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
    for (const read of this.#waiting.splice(0)) this.#answer(read)
    this.#engine.close()
  }

  #read(call: HostCall): unknown {
    if (this.#readTime === undefined) return this.#engine.read(call)
    if (this.#waiting.length === 0 && this.#readMs < this.#readTime.ms) return this.#timedRead(call, this.#readTime)
    return new Promise((resolve, reject) => void this.#waiting.push({ ...call, resolve, reject }))
  }

  #timedRead(call: HostCall, { monotonic }: BatchTime): unknown {
    const beganMs = monotonic()
    try {
      return this.#engine.read(call)
    } finally {
      this.#readMs += monotonic() - beganMs
      if (this.#readMs >= NOTICED_MS) this.#noticeTurn()
    }
  }

  #noticeTurn(): void {
    if (this.#noticesTurn) return
    this.#noticesTurn = true
    this.#gather(() => {
      this.#noticesTurn = false
      this.#readMs = 0
      while (this.#waiting.length > 0 && this.#readMs < this.#readTime!.ms) this.#answer(this.#waiting.shift()!)
    })
  }

  #answer(read: PendingCall): void {
    try {
      read.resolve(this.#timedRead(read, this.#readTime!))
    } catch (error) {
      read.reject(error)
    }
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
