import { Pool, type PoolClient } from 'pg'
import { AppError } from '../../core/errors.ts'
import type { Store } from '../../ports/store/store.ts'
import { awaitSteps, type Steps } from '../operations/operation.ts'
import { migrate } from '../schema/migrate.ts'
import type { Migration } from '../schema/migration.ts'
import type { Row, Statement } from '../tables/statement.ts'
import { findOperation, storeFromCalls } from './operations.ts'
import { answer, answers, connectionConfig, execute, LOCK_SCHEMA, takeShard } from './postgres-connection.ts'
import {
  afterCollisions,
  errorFromPostgres,
  isCollision,
  isEpochOver,
  isTooManyConnections,
  withPlace,
} from './postgres-errors.ts'
import { CallGatherer } from './postgres-gathering.ts'
import { unavailable } from './sqlite-errors.ts'

/** Options of a store on PostgreSQL. */
export interface PostgresOptions {
  /** Such as `postgres://user:password@host:5432/database`. */
  readonly url: string
  /** Limit of connections. */
  readonly connections?: number
  /** The steps of the schema; by default all of them. */
  readonly migrations?: readonly Migration[]
  /** The epoch in which this store may write; without it, it always may. */
  readonly fence?: EpochFence
}

/**
 * An epoch that every transaction which writes asserts: once it is over, PostgreSQL refuses them, whatever this
 * server believes.
 */
export interface EpochFence {
  readonly epoch: number
  readonly holder: string
  /** Called when PostgreSQL has refused one. */
  lost(): void
}

const CONNECTIONS = 10
/** Limit of calls that wait for a connection. */
const MAX_WAITING = 10_000
/** Number of calls after which the pool tries again to grow to the configured number of connections. */
const GROW_AFTER = 100
/** Maximum number of attempts of an operation that collides with others. */
const ATTEMPTS = 3

/**
 * Opens a store on PostgreSQL and brings its schema up to date.
 * @throws AppError `unavailable` when the database cannot be reached, gives up durability or was made by a newer
 * version
 */
export async function openPostgresStore(options: PostgresOptions): Promise<Store> {
  const engine = new PostgresEngine(options)
  try {
    await engine.prepareDatabase(options.migrations)
  } catch (error) {
    await engine.close()
    throw withPlace(error, options.url)
  }
  return storeFromCalls(
    (name, args) => engine.call(name, args),
    () => engine.close(),
  )
}

/**
 * Runs operations on connections of a pool: each write in a transaction of its own, each read of more than one
 * statement on one picture of the database. A connection that fails is dropped, so the pool recovers once
 * PostgreSQL is back.
 */
class PostgresEngine {
  readonly #pool
  readonly #wanted
  #callsUntilGrowth = 0
  /** Number of established connections; the pool also counts those that it tries to make. */
  readonly #live = new Set<PoolClient>()
  readonly #open = new Set<Promise<unknown>>()
  /** Reads that were seen to take several statements. */
  readonly #severalReads = new Set<string>()
  readonly #gatherings = new Map<string, CallGatherer>()
  /** The begin of a transaction that writes; sent with its first statements. */
  readonly #begin: readonly Statement[]
  readonly #fence: EpochFence | null
  #closed = false

  constructor({ url, connections = CONNECTIONS, fence }: PostgresOptions) {
    this.#wanted = connections
    this.#fence = fence ?? null
    this.#begin = fence === undefined ? [BEGIN] : [BEGIN, assertion(fence)]
    this.#pool = new Pool({ ...connectionConfig(url), max: connections })
    // Connections fail while nobody uses them, too; the next call gets another one.
    this.#pool.on('error', () => {})
    this.#pool.on('connect', client => {
      client.on('error', () => {})
      this.#live.add(client)
      // Before the first statement of whoever gets it. Without a number it shares a row with others.
      execute(client, takeShard).catch(() => {})
    })
    this.#pool.on('remove', client => void this.#live.delete(client))
  }

  async prepareDatabase(migrations: readonly Migration[] | undefined): Promise<void> {
    await this.#with(async client => {
      for (const setting of ['synchronous_commit', 'fsync']) {
        const [row] = await execute(client, `SHOW ${setting}`)
        if (row?.[setting] === 'off') {
          throw unavailable(`PostgreSQL has ${setting} off, so it could lose what was acknowledged; turn it on`)
        }
      }
      // Older versions and some systems cannot.
      await execute(client, NOTICE_DEATH).catch(() => {})
      await answers(client, this.#begin)
      await execute(client, LOCK_SCHEMA)
      await execute(client, LET_MIGRATE)
      await awaitSteps(migrate('postgres', migrations), statement =>
        statement.params.length === 0 ? execute(client, statement.sql, MIGRATION_MS) : answer(client, statement),
      )
      await answers(client, [COMMIT])
    })
  }

  call(name: string, args: readonly unknown[]): Promise<unknown> {
    const call = this.#gatherer(name)?.call(args) ?? this.#run(name, args)
    this.#open.add(call)
    const forget = () => void this.#open.delete(call)
    call.then(forget, forget)
    return call
  }

  /** The gatherer of calls of an operation; null for one whose calls run alone, or when too many wait. */
  #gatherer(name: string): CallGatherer | null {
    const { together } = findOperation(name)
    if (together === undefined || this.#closed) return null
    const gathering = this.#gatherings.getOrInsertComputed(
      name,
      () =>
        new CallGatherer(together, {
          together: calls => this.#with(client => this.#together(client, name, calls)),
          alone: args => this.#run(name, args),
          isUnavailable,
        }),
    )
    return gathering.waiting < MAX_WAITING ? gathering : null
  }

  async #together(
    client: PoolClient,
    name: string,
    calls: readonly (readonly unknown[])[],
  ): Promise<readonly unknown[]> {
    const { together } = findOperation(name)
    if (together?.steps !== undefined) {
      const results = await transact(client, this.#begin, together.steps(calls))
      return results as readonly unknown[]
    }
    if (together?.statement === undefined) throw new Error(`calls of ${name} do not run together`)
    const statement = together.statement.of(calls)
    // One statement by itself is one transaction.
    if (this.#fence === null) return together.statement.results(calls, await answer(client, statement))
    const answered = await answers(client, [...this.#begin, statement, COMMIT])
    return together.statement.results(calls, answered.at(-2) ?? [])
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await Promise.allSettled(this.#open)
    await this.#pool.end()
  }

  async #run(name: string, args: readonly unknown[]): Promise<unknown> {
    if (this.#closed) throw unavailable('it is closed')
    if (this.#pool.waitingCount >= MAX_WAITING) throw unavailable('too many calls wait for PostgreSQL')
    const { reads, steps } = findOperation(name)
    if (reads) return this.#with(client => this.#read(client, name, () => steps(...args)))
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#with(client => transact(client, this.#begin, steps(...args)))
      } catch (error) {
        if (!isCollision(error)) throw error
        if (attempt === ATTEMPTS) throw afterCollisions(error)
      }
    }
  }

  /**
   * One statement is consistent by itself. A read that turns out to have more starts again, on a picture that stays.
   */
  async #read(client: PoolClient, name: string, start: () => Steps<unknown>): Promise<unknown> {
    if (!this.#severalReads.has(name)) {
      const steps = start()
      let step = steps.next()
      if (step.done !== true) step = steps.next(await answer(client, step.value))
      if (step.done === true) return step.value
      this.#severalReads.add(name)
    }
    return transact(client, [BEGIN_SNAPSHOT], start())
  }

  async #with<Value>(use: (client: PoolClient) => Promise<Value>): Promise<Value> {
    const client = await this.#connect()
    let usable = false
    try {
      const value = await use(client)
      usable = true
      return value
    } catch (error) {
      if (isEpochOver(error)) this.#fence?.lost()
      usable = !isUnavailable(error) && (await rollBack(client))
      throw error
    } finally {
      client.release(!usable)
    }
  }

  /** Once PostgreSQL has no more connections, calls share the open ones. */
  async #connect(): Promise<PoolClient> {
    const { options } = this.#pool
    if (options.max < this.#wanted && --this.#callsUntilGrowth <= 0) options.max = this.#wanted
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#pool.connect()
      } catch (error) {
        if (!isTooManyConnections(error) || this.#live.size === 0 || attempt === ATTEMPTS)
          throw errorFromPostgres(error)
        options.max = this.#live.size
        this.#callsUntilGrowth = GROW_AFTER
      }
    }
  }
}

/** Timeout of a statement of a step: tables may be large. */
const MIGRATION_MS = 24 * 60 * 60_000
const LET_MIGRATE = `SET LOCAL statement_timeout = ${MIGRATION_MS}`
/** Ends a step whose server died, and with it the locks of the step. */
const NOTICE_DEATH = `SET client_connection_check_interval = '1s'`

const BEGIN: Statement = { sql: 'BEGIN ISOLATION LEVEL READ COMMITTED', params: [] }
const BEGIN_SNAPSHOT: Statement = { sql: 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY', params: [] }
const COMMIT: Statement = { sql: 'COMMIT', params: [] }

/** Made by the lease (postgres-lease.ts). It also keeps the next epoch from beginning while the transaction lasts. */
export function assertion({ epoch, holder }: EpochFence): Statement {
  return { sql: 'SELECT assert_server_epoch($1, $2)', params: [epoch, holder], unread: true }
}

/**
 * Runs the steps of an operation in one transaction. BEGIN goes with the first statement whose rows are read,
 * statements with unread rows with the next one, and the last ones with the COMMIT.
 */
async function transact(client: PoolClient, begin: readonly Statement[], steps: Steps<unknown>): Promise<unknown> {
  let unsent: Statement[] = [...begin]
  /** The lists that get the rows of statements which are read later, by their places in the pipeline. */
  const later = new Map<number, Row[]>()
  let received: readonly Row[] = []
  for (;;) {
    const step = steps.next(received)
    if (step.done === true) {
      // If its answer is lost, all changes happened or no change did, and the caller gets `unavailable`.
      await answers(client, [...unsent, COMMIT])
      return step.value
    }
    const place = unsent.push(step.value) - 1
    const list: Row[] = []
    if (step.value.readLater === true) later.set(place, list)
    received = list
    if (step.value.unread === true || step.value.readLater === true) continue
    const answered = await answers(client, unsent)
    for (const [earlier, rows] of later) rows.push(...(answered[earlier] ?? []))
    later.clear()
    unsent = []
    received = answered[place] ?? []
  }
}

/** True where the connection can be used again. Outside a transaction PostgreSQL only warns. */
async function rollBack(client: PoolClient): Promise<boolean> {
  try {
    await execute(client, 'ROLLBACK')
    return true
  } catch {
    return false
  }
}

function isUnavailable(error: unknown): boolean {
  return error instanceof AppError && error.code === 'unavailable'
}
