import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { touchDurably } from '../../disk/durable-file.ts'
import { runSteps, type Steps } from '../operations/operation.ts'
import { migrate } from '../schema/migrate.ts'
import type { Migration } from '../schema/migration.ts'
import type { Row, SqlParam, SqlValue, Statement } from '../tables/statement.ts'
import { ChangeCounter } from './change-counter.ts'
import { forSqlite } from './dialect.ts'
import { findOperation } from './operations.ts'
import { errorFromSqlite, unavailable } from './sqlite-errors.ts'

/** An operation to run. */
export interface OperationCall {
  readonly name: string
  readonly args: readonly unknown[]
}

/** The outcome of an operation. */
export type OperationOutcome =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: unknown }

/** Counters of the engine. */
export interface StoreStats {
  readonly reads: number
  readonly writes: number
  /** Number of durable transactions; each may have many writes. */
  readonly commits: number
  /** Maximum number of writes of one commit. */
  readonly largestBatch: number
}

/**
 * Limit of the time in which the writes of one commit run, or the reads of one turn of the event loop, for an engine
 * in a thread that has other work.
 */
export interface BatchTime {
  readonly ms: number
  /** Milliseconds that only grow. */
  readonly monotonic: () => number
}

/** Options of the engine. */
export interface SqliteEngineOptions {
  /** Path of the database, or `:memory:`. */
  readonly file: string
  /** The migrations; all of them except in tests. */
  readonly migrations?: readonly Migration[]
  /** Maximum size of a file of an earlier version that is rebuilt at the start, so that it can shrink later. */
  readonly rebuiltBytes?: number
  /** Time after which a commit takes no further write; none by default. */
  readonly batchTime?: BatchTime
  /** Wraps each commit of writes; for tests and benchmarks of slow and broken disks. */
  readonly aroundCommit?: (commit: () => void) => void
}

/** Size to which the write-ahead log is cut when it restarts; between checkpoints it can be larger. */
export const MAX_JOURNAL_BYTES = 32 * 1024 * 1024
const INCREMENTAL = 2
const REBUILT_BYTES = 256 * 1024 * 1024

/** Limit of writes of one commit. */
export const MAX_BATCH = 256
/** Number of characters of results after which further writes get another commit: claims may return large jobs. */
const MAX_ANSWERED = 8 * 1024 * 1024

/** Limit of calls that run as one. */
const MAX_AS_ONE = 32

const NO_BATCH_TIME: BatchTime = { ms: Number.POSITIVE_INFINITY, monotonic: () => 0 }

/** A database in memory with the schema alone: tests open thousands, and the schema takes 50 ms. */
let emptyInMemory: Uint8Array | null = null

/**
 * The store on SQLite: synchronous, one connection, one transaction at a time. Writes of one call share a transaction
 * and a flush, each in its own savepoint, so that a failure concerns one write only. Those that have common steps,
 * such as results, run as one, and each by itself where that fails.
 */
export class SqliteEngine {
  /** The connection, for tests. */
  readonly database: DatabaseSync
  readonly #statements = new Map<string, KeptStatement>()
  readonly #aroundCommit
  readonly #batchTime: BatchTime
  /** True while commits of the connection flush. */
  #flushes = true
  /** Null in memory. */
  readonly #counter: ChangeCounter | null
  #stats = { reads: 0, writes: 0, commits: 0, largestBatch: 0 }

  /** @throws AppError `unavailable` when the database cannot be opened or belongs to a newer version */
  constructor(options: SqliteEngineOptions) {
    const { file, migrations, rebuiltBytes, batchTime = NO_BATCH_TIME, aroundCommit = commit => commit() } = options
    this.#aroundCommit = aroundCommit
    this.#batchTime = batchTime
    try {
      this.database = open(file)
    } catch (error) {
      throw errorFromSqlite(error)
    }
    const isUsual = file === ':memory:' && migrations === undefined
    try {
      if (isUsual && emptyInMemory !== null) this.database.deserialize(emptyInMemory)
      this.#letShrink(rebuiltBytes ?? REBUILT_BYTES)
      this.#prepareDatabase(file, migrations)
      if (isUsual) emptyInMemory ??= this.database.serialize()
      this.#counter = file === ':memory:' ? null : ChangeCounter.open(this.database, file)
    } catch (error) {
      this.database.close()
      throw errorFromSqlite(error)
    }
  }

  /** Its counters. */
  get stats(): StoreStats {
    return { ...this.#stats }
  }

  /** Runs an operation that only reads committed data. */
  read({ name, args }: OperationCall): unknown {
    this.#stats.reads += 1
    try {
      return this.#run(name, args)
    } catch (error) {
      throw errorFromSqlite(error)
    }
  }

  /**
   * Runs operations in one transaction, in their order. When it returns, the successful ones are on stable storage,
   * unless none of them needs that.
   * @returns the outcomes of the first ones, at least of one; the others were not begun because results are large or
   * the time of a batch is over
   */
  write(calls: readonly OperationCall[]): OperationOutcome[] {
    const only = calls[0]
    if (only === undefined) return []
    this.#setFlushes(calls.some(({ name, args }) => findOperation(name).unflushed?.(...args) !== true))
    const outcomes =
      calls.length === 1 ? [this.#alone(only)] : (this.#together(calls) ?? calls.map(call => this.#alone(call)))
    this.#stats.writes += outcomes.length
    this.#stats.largestBatch = Math.max(this.#stats.largestBatch, outcomes.length)
    return outcomes
  }

  /** Closes the database. */
  close(): void {
    if (!this.database.isOpen) return
    this.database.close()
    this.#counter?.close()
  }

  /**
   * Lets the file return free space (operation `upkeep.compact`). A new file can from the start; an older one has to
   * be rebuilt, which takes as long as a copy. A file that is too large for that, or has no room, stays as it is.
   */
  #letShrink(rebuiltBytes: number): void {
    this.database.exec('PRAGMA auto_vacuum = INCREMENTAL')
    if (this.#number('auto_vacuum') === INCREMENTAL || this.#number('page_count') === 0) return
    if (this.#number('page_count') * this.#number('page_size') > rebuiltBytes) return
    try {
      this.database.exec('VACUUM')
    } catch (error) {
      if (errorFromSqlite(error) === error) throw error
    }
  }

  #number(pragma: string): number {
    return Number(this.database.prepare(`PRAGMA ${pragma}`).get()?.[pragma])
  }

  #prepareDatabase(file: string, migrations: readonly Migration[] | undefined): void {
    this.database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON')
    this.database.exec('PRAGMA checkpoint_fullfsync = ON; PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY')
    this.database.exec(`PRAGMA journal_size_limit = ${MAX_JOURNAL_BYTES}`)
    this.#expect('journal_mode', file === ':memory:' ? 'memory' : 'wal')
    this.#expect('synchronous', 2)
    this.#expect('foreign_keys', 1)
    this.database.exec('BEGIN IMMEDIATE')
    try {
      runSteps(migrate('sqlite', migrations), statement => this.#answer(statement))
      if (file !== ':memory:') ChangeCounter.prepare(this.database)
      this.database.exec('COMMIT')
    } finally {
      this.#rollBack()
      this.#statements.clear()
    }
  }

  /** Checks a setting: a different value would cost durability without an error. */
  #expect(pragma: string, expected: SqlValue): void {
    const value = this.database.prepare(`PRAGMA ${pragma}`).get()?.[pragma]
    if (value !== expected) throw unavailable(`SQLite keeps ${pragma} at ${value} instead of ${expected}`)
  }

  /** Turns flushes of commits on or off. A commit that flushes makes everything before it durable too. */
  #setFlushes(flushes: boolean): void {
    if (flushes === this.#flushes) return
    // SQLite carries it out when it compiles it, so it cannot be a kept statement.
    this.database.exec(`PRAGMA synchronous = ${flushes ? 'FULL' : 'NORMAL'}`)
    this.#flushes = flushes
  }

  #alone({ name, args }: OperationCall): OperationOutcome {
    try {
      this.#exec('BEGIN IMMEDIATE')
      const value = this.#run(name, args)
      this.#commit(1)
      return { ok: true, value }
    } catch (error) {
      return { ok: false, error: errorFromSqlite(error) }
    } finally {
      this.#rollBack()
    }
  }

  /** Null when SQLite gave up the whole transaction because of one operation: then nothing of it has happened. */
  #together(calls: readonly OperationCall[]): OperationOutcome[] | null {
    const outcomes: OperationOutcome[] = []
    const { ms, monotonic } = this.#batchTime
    const endMs = monotonic() + ms
    let characters = 0
    try {
      this.#exec('BEGIN IMMEDIATE')
      for (let at = 0; at < calls.length; at = outcomes.length) {
        const next = this.#asOne(calls, at) ?? [this.#inSavepoint(calls[at]!)]
        for (const outcome of next) {
          if (outcome === null) return null
          outcomes.push(outcome)
          characters += outcome.ok ? countCharacters(outcome.value) : 0
        }
        if (characters >= MAX_ANSWERED || monotonic() >= endMs) break
      }
      this.#commit(outcomes.filter(({ ok }) => ok).length)
      return outcomes
    } catch (thrown) {
      const error = errorFromSqlite(thrown)
      return calls.map((_, index) => (outcomes[index]?.ok === false ? outcomes[index] : { ok: false, error }))
    } finally {
      this.#rollBack()
    }
  }

  /**
   * Runs the calls from `at` on that have common steps as one. Null where fewer than two have, and where one of them
   * fails, which must not concern the others.
   */
  #asOne(calls: readonly OperationCall[], at: number): (OperationOutcome | null)[] | null {
    const { name } = calls[at]!
    const { together } = findOperation(name)
    const steps = together?.steps
    if (together === undefined || steps === undefined) return null
    const others = calls.slice(at, at + MAX_AS_ONE)
    const end = others.findIndex(call => call.name !== name || together.size(...call.args) === null)
    const own = (end < 0 ? others : others.slice(0, end)).map(({ args }) => args)
    if (own.length < 2) return null
    const outcome = this.#inOneSavepoint(() => this.#runSteps(steps(own)))
    if (outcome === null) return [null]
    return outcome.ok ? outcome.value.map(value => ({ ok: true, value })) : null
  }

  #inSavepoint({ name, args }: OperationCall): OperationOutcome | null {
    return this.#inOneSavepoint(() => this.#run(name, args))
  }

  /** Null when SQLite gave up the whole transaction. */
  #inOneSavepoint<Value>(
    run: () => Value,
  ): { readonly ok: true; readonly value: Value } | { readonly ok: false; readonly error: unknown } | null {
    this.#exec('SAVEPOINT one')
    try {
      const value = run()
      this.#exec('RELEASE one')
      return { ok: true, value }
    } catch (error) {
      if (!this.database.isTransaction) return null
      this.#exec('ROLLBACK TO one')
      this.#exec('RELEASE one')
      return { ok: false, error: errorFromSqlite(error) }
    }
  }

  /** Commits. Any failure is a failure of the store. @param operations number of operations in it */
  #commit(operations: number): void {
    try {
      if (this.#flushes) this.#counter?.count(operations)
      this.#aroundCommit(() => this.#exec('COMMIT'))
    } catch (error) {
      this.#counter?.rolledBack()
      const translated = errorFromSqlite(error)
      throw translated === error ? unavailable('its changes could not be made durable', error) : translated
    }
    this.#counter?.committed()
    this.#stats.commits += 1
  }

  /** Ends a transaction after an error. SQLite ends it even where it cannot undo it on a broken disk. */
  #rollBack(): void {
    if (!this.database.isTransaction) return
    try {
      this.database.exec('ROLLBACK')
    } catch (error) {
      if (this.database.isTransaction) throw error
    }
    this.#counter?.rolledBack()
  }

  #run(name: string, args: readonly unknown[]): unknown {
    return this.#runSteps(findOperation(name).steps(...args))
  }

  #runSteps<Result>(steps: Steps<Result>): Result {
    return runSteps(steps, statement => this.#answer(statement))
  }

  #answer({ sql, params, inTurn }: Statement): readonly Row[] {
    if (inTurn !== undefined) return inTurn.flatMap(statement => this.#answer(statement))
    const { prepared, toRow } = this.#statement(sql)
    return (prepared.all(...params.map(bindable)) as unknown as readonly SqlValue[][]).map(toRow)
  }

  #exec(sql: string): void {
    this.#statement(sql).prepared.run()
  }

  #statement(sql: string): KeptStatement {
    const cached = this.#statements.get(sql)
    if (cached !== undefined) return cached
    const prepared = this.database.prepare(forSqlite(sql))
    prepared.setReturnArrays(true)
    const kept = { prepared, toRow: rowMaker(prepared.columns().map(({ name }) => name)) }
    this.#statements.set(sql, kept)
    return kept
  }
}

/** A compiled statement, which returns the values of a row in the order of its columns, and the maker of its rows. */
interface KeptStatement {
  readonly prepared: StatementSync
  readonly toRow: (values: readonly SqlValue[]) => Row
}

/**
 * A function that makes a row of its values. It is compiled for the columns, so that all rows of a statement have one
 * shape from the start: node:sqlite looks up each name and extends the object for each value, which takes three times
 * as long for a job.
 * @param columns names of the store's own statements
 */
function rowMaker(columns: readonly string[]): (values: readonly SqlValue[]) => Row {
  const members = columns.map((name, index) => `${JSON.stringify(name)}: values[${index}]`)
  return new Function('values', `return { ${members.join(', ')} }`) as (values: readonly SqlValue[]) => Row
}

function open(file: string): DatabaseSync {
  // A file created here is for its owner alone; SQLite gives its journals the same permissions.
  if (file !== ':memory:') touch(file)
  return new DatabaseSync(file, {
    timeout: 5_000,
    enableForeignKeyConstraints: true,
    enableDoubleQuotedStringLiterals: false,
  })
}

function touch(file: string): void {
  try {
    touchDurably(file)
  } catch (error) {
    throw unavailable(`its database ${file} cannot be opened`, error)
  }
}

/** Refuses missing parameters, which SQLite would store as NULL. */
function bindable(value: SqlParam, index: number): SQLInputValue {
  if (value === null || typeof value === 'string') return value
  if (typeof value === 'number' && Number.isFinite(value)) return value
  throw new TypeError(`parameter $${index + 1} cannot be ${typeof value === 'number' ? value : typeof value}`)
}

/** Of all the texts in an answer, in characters. */
export function countCharacters(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 0
  let sum = 0
  for (const part of Object.values(value)) sum += countCharacters(part)
  return sum
}
