import assert from 'node:assert/strict'
import { test } from 'node:test'
import { layered } from '../../src/ports/store/operations.ts'
import { openSqliteStore } from '../../src/store/engines/sqlite.ts'
import { systemClock } from '../../src/system/clock.ts'
import { createMeasuring } from '../../src/system/observing/store-watches.ts'
import { E1, jobId, makeEndpoint, makeJob, T0, World } from '../contract/store-world.ts'
import { faultyStore, PlannedFaults } from '../support/faulty-store.ts'

const inMemory = () => openSqliteStore({ file: ':memory:', host: 'inline' })

test('each call is reported with its duration, and whether the store was unavailable', async () => {
  let nowMs = 0
  const clock = { ...systemClock, monotonic: () => (nowMs += 5) }
  const told: [string, number, boolean][] = []
  const faults = new PlannedFaults()
  const faulty = faultyStore(await inMemory(), faults.decide)
  const store = layered(
    faulty,
    createMeasuring(clock, (...call) => told.push(call)),
  )
  await new World(store).begin()
  told.length = 0
  faults.failNext('jobs.insert', 'before')
  await assert.rejects(store.jobs.insert(makeJob('a')), { code: 'unavailable' })
  await store.jobs.find(E1, jobId('a'), T0)
  await assert.rejects(store.endpoints.insert(makeEndpoint(E1)), { code: 'conflict' })
  assert.deepEqual(told, [
    ['jobs.insert', 5, true],
    ['jobs.find', 5, false],
    ['endpoints.insert', 5, false],
  ])
  await store.close()
})
