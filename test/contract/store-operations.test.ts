/**
 * The port declares the nature of every operation of the store. These tests compare it with the statements that
 * operations run.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId } from '../../src/core/ids.ts'
import {
  type CachedRow,
  layered,
  OPERATIONS,
  type OperationName,
  type StoreOperation,
} from '../../src/ports/store/operations.ts'
import type { Store } from '../../src/ports/store/store.ts'
import { CachedRows, remembering } from '../../src/services/cached-rows.ts'
import { holdingRemovals } from '../../src/services/observing/server-time.ts'
import { operations } from '../../src/store/engines/operations.ts'
import type { Operation } from '../../src/store/operations/operation.ts'
import { systemClock } from '../../src/system/clock.ts'
import { createMeasuring } from '../../src/system/observing/store-watches.ts'
import { emptiedSqlite } from '../support/emptied-stores.ts'
import { storeContract } from './store-contract.ts'

/** Columns with counts of a worker's work, which are no change of its row. */
const COUNTS = ['jobs_finished', 'idle_since_ms', 'idle_ms', 'counted_until_ms', 'counted_idle_ms', 'counted_frozen_ms']
/** A worker has said that it is ready before it claims, so a claim changes the state of no worker that calls. */
const CLAIMED = ['state', 'ready_at_ms']
const TABLES: Readonly<Record<CachedRow, string>> = { endpoint: 'endpoints', worker: 'workers' }

const declared = Object.entries(OPERATIONS).flatMap(([part, methods]) =>
  Object.entries<StoreOperation>(methods).map(([method, nature]) => [`${part}.${method}`, nature] as const),
)
const statements = recordStatements()

storeContract('a store with layers', async () => {
  const { store, ...rest } = await emptiedSqlite('inline')
  return { ...rest, store: withLayers(store) }
})

test('the port declares every operation of the store, and the contract runs it', () => {
  const names = Object.entries(operations).flatMap(([part, methods]) => Object.keys(methods).map(m => `${part}.${m}`))
  assert.deepEqual(declared.map(([name]) => name).sort(), names.sort())
  assert.deepEqual(
    declared.map(([name]) => name).filter(name => !statements.has(name)),
    [],
  )
})

test('an operation that is declared as a read changes no table', () => {
  const changing = declared.filter(([name, { reads }]) => reads && listChanges(name).length > 0)
  assert.deepEqual(changing, [])
})

test('an operation that changes rows kept in memory says so', () => {
  for (const row of Object.keys(TABLES) as CachedRow[]) {
    const silent = declared.filter(([name, { changes = [] }]) => changesRow(name, row) && !changes.includes(row))
    assert.deepEqual(silent, [], `these change the row of an ${row}`)
    const wrong = declared.filter(
      ([name, { changes = [] }]) => changes.includes(row) && !tables(name).includes(TABLES[row]),
    )
    assert.deepEqual(wrong, [], `these change no row of an ${row}`)
  }
})

/**
 * Layers that a server has around its store; the one that seals makes other texts of those that the contract writes.
 */
function withLayers(store: Store): Store {
  const known = {
    endpoint: new CachedRows((id: EndpointId) => store.endpoints.find(id), systemClock),
    worker: new CachedRows((hash: string) => store.workers.findByToken(hash), systemClock),
  }
  const layers = [createMeasuring(systemClock, () => {}), holdingRemovals({ isHeld: () => false }), remembering(known)]
  return layers.reduce((below, layer) => layered(below, layer), store)
}

/** Statements that each operation has run, by its name; filled while the operations run. */
function recordStatements(): Map<string, Set<string>> {
  const recorded = new Map<string, Set<string>>()
  for (const [part, methods] of Object.entries(operations)) {
    for (const [method, operation] of Object.entries(methods as unknown as Record<string, Operation>)) {
      const name = `${part}.${method}` as OperationName
      const { steps } = operation
      const recording: Operation['steps'] = function* (...args) {
        const seen = recorded.get(name) ?? new Set()
        recorded.set(name, seen)
        const running = steps(...args)
        let step = running.next()
        while (step.done !== true) {
          seen.add(step.value.sql)
          step = running.next(yield step.value)
        }
        return step.value
      }
      Object.assign(operation, { steps: recording })
    }
  }
  return recorded
}

/** The changes of tables that an operation makes. */
function listChanges(name: string): { verb: string; table: string; sql: string }[] {
  return [...(statements.get(name) ?? [])].flatMap(sql => {
    const [, verb, table] = /^\s*(INSERT INTO|UPDATE|DELETE FROM) (\w+)/.exec(sql) ?? []
    return verb === undefined || table === undefined ? [] : [{ verb, table, sql }]
  })
}

function tables(name: string): string[] {
  return listChanges(name).map(({ table }) => table)
}

function changesRow(name: string, row: CachedRow): boolean {
  const spared = new Set(name === 'jobs.claim' ? [...COUNTS, ...CLAIMED] : COUNTS)
  return listChanges(name)
    .filter(({ table }) => table === TABLES[row])
    .some(({ verb, sql }) => verb !== 'UPDATE' || changedColumns(sql).some(column => !spared.has(column)))
}

/** Columns that an UPDATE sets: names before `=` outside brackets and CASE. */
function changedColumns(sql: string): string[] {
  const columns: string[] = []
  let depth = 0
  for (const [word] of sql.slice(sql.indexOf(' SET ') + 4).matchAll(/[\w$']+(?: =)?|[()]/g)) {
    if (word === '(' || word === 'CASE') depth += 1
    else if (word === ')' || word === 'END') depth -= 1
    else if (depth === 0 && word === 'WHERE') break
    else if (depth === 0 && word.endsWith(' =')) columns.push(word.slice(0, -2))
  }
  return columns
}
