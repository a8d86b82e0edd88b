import type { Store } from '../src/ports/store.ts'
import { sqliteStoreOn } from '../src/store/sqlite.ts'
import { SqliteEngine } from '../src/store/sqlite-engine.ts'
import { InlineHost } from '../src/store/sqlite-inline.ts'
import type { Life } from './life.ts'
import type { World } from './world.ts'

/** The database of a simulation, which outlives its servers. */
export interface Database {
  readonly store: Store
  /** The rows of a query, for checkers that look beneath the store. */
  query<Row>(sql: string): Row[]
}

/** An empty database in memory whose commits fail as the world's faults say. */
export function openDatabase(world: World): Database {
  const random = world.random('disk')
  const engine = new SqliteEngine({
    file: ':memory:',
    aroundCommit: commit => {
      if (random.chance(world.faults.commit)) {
        world.count('failed commits')
        throw new Error('the simulated disk is full')
      }
      commit()
    },
  })
  return {
    store: sqliteStoreOn(new InlineHost(engine)),
    query: <Row>(sql: string) => engine.database.prepare(sql).all() as unknown as Row[],
  }
}

/** Where a server will end: at its `writes`-th change of the store from now, just before it or just after it. */
export interface CrashPoint {
  readonly writes: number
  readonly when: 'before' | 'after'
}

/** A server's way to the store. It is cut when the server ends, and it can be made to end the server. */
export class StoreGate {
  readonly store: Store
  readonly #world: World
  readonly #life: Life
  readonly #crash: () => void
  #point: { writes: number; readonly when: 'before' | 'after' } | null = null

  /** @param crash ends the server */
  constructor(world: World, store: Store, life: Life, crash: () => void) {
    this.#world = world
    this.#life = life
    this.#crash = crash
    const groups = Object.entries(store).filter(([, group]) => typeof group === 'object')
    const gated = groups.map(([name, group]) => [name, this.#gated(group as object)])
    this.store = { ...store, ...Object.fromEntries(gated), close: async () => {} }
  }

  /** Arms a crash. */
  crashAt(point: CrashPoint): void {
    this.#point = { ...point }
  }

  #gated(group: object): object {
    const entries = Object.entries(group).map(([name, method]) => {
      const call = (...args: unknown[]) => this.#call(name, () => (method as Method).apply(group, args))
      return [name, call]
    })
    return Object.fromEntries(entries)
  }

  async #call(name: string, run: () => Promise<unknown>): Promise<unknown> {
    this.#world.activity += 1
    const crash = !READS.has(name) && this.#reached()
    if (crash === 'before') this.#crash()
    if (this.#life.over) return new Promise(() => {})
    const result = await this.#life.guard(run())
    if (crash !== 'after') return result
    this.#crash()
    return new Promise(() => {})
  }

  #reached(): 'before' | 'after' | null {
    if (this.#point === null) return null
    this.#point.writes -= 1
    if (this.#point.writes > 0) return null
    const { when } = this.#point
    this.#point = null
    return when
  }
}

type Method = (...args: unknown[]) => Promise<unknown>

/** Methods that change nothing; a crash at one of them is like a crash between two changes. */
const READS: ReadonlySet<string> = new Set([
  ...['find', 'locate', 'nextDeadline', 'pending', 'list', 'snapshot', 'loads', 'ids', 'lastExited', 'findByName'],
  ...['sealedValues', 'findByToken', 'alive', 'findByHash', 'windowCounts', 'due', 'nextDue', 'open', 'key'],
  ...['requests', 'unsettled', 'before'],
])
