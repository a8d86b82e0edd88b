import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openSqliteStore } from '../../src/store/engines/sqlite.ts'
import { E1, jobId, makeJob, OWNER, T0, World } from '../contract/store-world.ts'
import { faultyStore, PlannedFaults } from '../support/faulty-store.ts'

const inMemory = () => openSqliteStore({ file: ':memory:', host: 'inline' })
const unavailable = { code: 'unavailable' }

test('a planned fault makes one call fail, before or after it was done', async () => {
  const faults = new PlannedFaults()
  const store = faultyStore(await inMemory(), faults.decide)
  await new World(store).begin()
  faults.failNext('jobs.insert', 'before')
  faults.failNext('jobs.insert', 'after')
  await assert.rejects(store.jobs.insert(makeJob('a')), unavailable)
  await assert.rejects(store.jobs.insert(makeJob('b')), unavailable)
  assert.equal(await store.jobs.insert(makeJob('c')), true)
  assert.equal(await store.jobs.find(E1, jobId('a'), T0), null)
  assert.notEqual(await store.jobs.locate(OWNER, jobId('b'), T0), null)
  await store.close()
})

test('faults can depend on what a call is given', async () => {
  const store = faultyStore(await inMemory(), (name, [first]) =>
    name === 'jobs.insert' && (first as { id: string }).id === 'a' ? 'before' : null,
  )
  await new World(store).begin()
  await assert.rejects(store.jobs.insert(makeJob('a')), unavailable)
  assert.equal(await store.jobs.insert(makeJob('b')), true)
  await store.close()
})
