import type { Store } from '../src/ports/store/store.ts'
import { sqliteStoreOn } from '../src/store/engines/sqlite.ts'
import { SqliteEngine } from '../src/store/engines/sqlite-engine.ts'
import { type InlineEngine, InlineHost } from '../src/store/engines/sqlite-inline.ts'
import { type Change, type Commit, LEDGER, UNREAD } from './ledger.ts'
import type { World } from './world.ts'

/** The database of a simulation, which outlives its servers. */
export interface Database {
  readonly store: Store
  /** The store as one of several servers has it, with transactions of its own. */
  connect(connection: Connection): Store
  /** The rows of a query, for checkers that read the database itself. */
  query<Row>(sql: string, ...values: readonly (string | number)[]): Row[]
  /** Called after each commit that changed jobs. */
  onCommit: (commit: Commit) => void
}

/** Faults of the transactions of one server. */
export interface Connection {
  /**
   * Called at the instant of a transaction.
   * @throws the error of the caller if the transaction must not be made; then nothing of it is
   */
  readonly enter: () => void
  /** True if the server receives the result of the transaction. Called before the transaction. */
  readonly isReported: () => boolean
  /** Error of the server for a transaction whose result was lost. */
  readonly lostResult: () => Error
}

/**
 * An empty database in memory. Its commits fail with the probabilities of the world's faults,
 * some after they were made.
 */
export function openDatabase(world: World): Database {
  const random = world.random('disk')
  const engine = new SqliteEngine({ file: ':memory:', aroundCommit: commit => around(commit) })
  engine.database.exec(LEDGER)
  const unread = engine.database.prepare(UNREAD)
  const statements = new Map<string, ReturnType<typeof engine.database.prepare>>()
  let lastRead = 0
  let isReported = true
  const publish = (acknowledged: boolean) => {
    const changes = unread.all(lastRead) as unknown as Change[]
    lastRead = changes.at(-1)?.n ?? lastRead
    if (changes.length > 0) database.onCommit({ changes, acknowledged })
  }
  const around = (commit: () => void) => {
    const { faults } = world
    const roll = random.fraction()
    if (world.diskBroken || roll < faults.commit) {
      world.disturb('failed commits')
      throw new Error('the simulated disk is full')
    }
    commit()
    const isFailedAfter = roll < faults.commit + faults.commitAfter
    publish(!isFailedAfter && isReported)
    if (!isFailedAfter) return
    world.disturb('commits that failed after they were made')
    throw new Error('the simulated disk was lost after the commit')
  }
  const database: Database = {
    store: sqliteStoreOn(new InlineHost(engine)),
    connect: connection => {
      const write: InlineEngine['write'] = calls => {
        try {
          connection.enter()
        } catch (error) {
          return calls.map(() => ({ ok: false, error }))
        }
        isReported = connection.isReported()
        const outcomes = engine.write(calls)
        const reportedOutcomes = isReported
          ? outcomes
          : outcomes.map(() => ({ ok: false as const, error: connection.lostResult() }))
        isReported = true
        return reportedOutcomes
      }
      return sqliteStoreOn(new InlineHost({ read: engine.read.bind(engine), write, stats: engine.stats, close() {} }))
    },
    query: <Row>(sql: string, ...values: readonly (string | number)[]) => {
      const statement = statements.get(sql) ?? engine.database.prepare(sql)
      statements.set(sql, statement)
      return statement.all(...values) as unknown as Row[]
    },
    onCommit: () => {},
  }
  return database
}
