import assert from 'node:assert/strict'
import { test } from 'node:test'
import { afterNews, type PlatformNews, type Reclaim, reclaimText } from '../../../src/core/workers/platform-report.ts'
import { crashed, fateOfJobs } from '../../../src/core/workers/worker.ts'
import type { ExitCause } from '../../../src/core/workers/worker-exit.ts'
import { anExit, aWorker } from '../../support/snapshots.ts'

const PLACE = { node: 'n1', gpuType: 'NVIDIA L4', gpuCount: 1 }
const EVICTED: Reclaim = { kind: 'evicted', node: 'n1', said: 'low on memory' }
const NO_ROOM = { kind: 'no_room', said: 'full' } as const

/** The report after all of this news. */
const after = (...news: PlatformNews[]) => news.reduce<ReturnType<typeof afterNews> | null>(afterNews, null)

test('a worker waits, has a place, and keeps it: a platform that is away later takes nothing back', () => {
  assert.deepEqual(after({ state: 'unplaced', reason: NO_ROOM }), { place: null, waits: NO_ROOM, leaves: null })
  const away = { state: 'unplaced', reason: { kind: 'platform_away', said: '' } } as const
  const placed = { place: PLACE, waits: null, leaves: null }
  assert.deepEqual(after(away, { state: 'placed', place: PLACE }), placed)
  assert.deepEqual(after({ state: 'placed', place: PLACE }, away), placed)
  assert.deepEqual(after({ state: 'running', place: PLACE }, { state: 'running' }), placed)
  const pending = { kind: 'volume_pending', said: 'not mounted' } as const
  const mounting = after({ state: 'placed', place: PLACE }, { state: 'unplaced', reason: pending })
  assert.deepEqual(mounting, { place: PLACE, waits: pending, leaves: null })
  assert.deepEqual(afterNews(mounting, { state: 'running', place: PLACE }), placed)
  assert.deepEqual(after({ state: 'running' }), { place: null, waits: null, leaves: null })
})

test('a worker that is taken away is so to the end, with its place', () => {
  const leaving = { place: PLACE, waits: null, leaves: EVICTED }
  assert.deepEqual(after({ state: 'placed', place: PLACE }, { state: 'leaving', why: EVICTED }), leaving)
  assert.deepEqual(after({ state: 'leaving', why: EVICTED, place: PLACE }, { state: 'running' }), leaving)
})

test('a text of the platform is kept in part where it is long', () => {
  const { waits } = after({ state: 'unplaced', reason: { kind: 'no_room', said: 'x'.repeat(9_000) } })!
  assert.ok(waits !== null && waits.said.length < 600)
})

test('why a platform takes a worker away is said in a clause', () => {
  assert.equal(reclaimText(EVICTED), 'was evicted from node n1: low on memory')
  assert.equal(
    reclaimText({ kind: 'node_drained', node: null, said: '' }),
    'had to leave its node, which is drained or shut down',
  )
  assert.equal(reclaimText({ kind: 'deleted', said: '' }), 'was deleted by another client of the cluster')
})

test('a worker that its platform took away has not crashed, and its jobs lose no attempt, unless it was faulty before', () => {
  const reclaimed: ExitCause = { kind: 'reclaimed', why: EVICTED }
  const ended: ExitCause = { kind: 'ended' }
  const leaving = { place: PLACE, waits: null, leaves: EVICTED }
  assert.equal(crashed(anExit({}, { cause: reclaimed })), false)
  assert.equal(crashed(anExit({ stopReason: 'wedged' }, { cause: reclaimed })), true)
  assert.equal(crashed(anExit({}, { cause: ended })), true)
  const fate = (fields: Parameters<typeof aWorker>[0], cause: ExitCause) =>
    fateOfJobs(aWorker(fields), { code: 143, signal: null, cause })
  assert.equal(fate({}, reclaimed), 'released')
  assert.equal(fate({ stopReason: 'wedged' }, reclaimed), 'lost')
  assert.equal(fate({ stopReason: 'reclaimed', platform: leaving }, ended), 'released')
  assert.equal(fate({ stopReason: 'outdated', platform: leaving }, ended), 'released', 'it was draining already')
  assert.equal(fate({ platform: leaving }, { kind: 'out_of_memory', limitMb: 1 }), 'lost', 'a job may be to blame')
  assert.equal(fate({}, ended), 'lost')
})
