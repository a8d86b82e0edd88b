/** The entry of a worker in memory begins with its launch or first call and is removed at its end. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobId, WorkerId } from '../../../src/core/ids.ts'
import { RunningWorkers } from '../../../src/services/workers/running-workers.ts'
import { openRig } from '../../support/rig.ts'
import { servicesOf } from '../../support/services.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

const id = (name: string) => name as WorkerId
const job = (name: string) => name as JobId
const ready = (name: string) => ({ id: id(name), state: 'READY' as const })
const NONE: ReadonlySet<WorkerId> = new Set()

function aWorker() {
  const clock = new VirtualClock()
  const workers = new RunningWorkers(clock)
  return { clock, workers, worker: workers.of(ready('w')) }
}

test('a worker is launching until its process was started, with how much of its image is there', () => {
  const workers = new RunningWorkers(new VirtualClock())
  const worker = workers.launch(id('w'))
  worker.pulled(40)
  assert.deepEqual([worker.isLaunching, worker.pullPercent], [true, 40])
  worker.launched()
  worker.pulled(60)
  assert.deepEqual([worker.isLaunching, worker.pullPercent], [false, null])
})

test('a worker that lives, one that is launching and one whose end is not recorded yet are kept', () => {
  const workers = new RunningWorkers(new VirtualClock())
  workers.of(ready('living'))
  workers.launch(id('launching'))
  workers.end(id('ended'))
  for (let time = 0; time < 3; time += 1) workers.keep(new Set([id('living')]))
  assert.equal(workers.size, 3)
  assert.deepEqual(workers.ended(), ['ended'])
})

test('a worker that two inspections in a row do not find is forgotten', () => {
  const { workers } = aWorker()
  workers.keep(NONE)
  assert.equal(workers.size, 1)
  workers.keep(new Set([id('w')]))
  workers.keep(NONE)
  assert.equal(workers.size, 1)
  workers.keep(NONE)
  assert.equal(workers.size, 0)
})

test('nothing is kept of the late call of a worker that has ended', () => {
  const workers = new RunningWorkers(new VirtualClock())
  workers.of({ id: id('w'), state: 'EXITED' }).worked()
  assert.equal(workers.size, 0)
})

test('a worker whose end is recorded is forgotten', async t => {
  const rig = await openRig(t)
  const { worker } = await rig.endpointWithWorker()
  const { fleet, running } = servicesOf(rig)
  running.of({ id: worker.id, state: 'READY' }).noteStop(job('j'))
  await rig.ports.driver.kill(worker.id)
  await fleet.recordExit(worker.id, { code: 1, signal: null, cause: { kind: 'ended' } })
  assert.equal(running.size, 0)
})

test('the observed activity of a worker restarts, and a take that was open before does not start it', () => {
  const { worker } = aWorker()
  const take = worker.beginTake()
  assert.equal(worker.activity?.openTakes, 1)
  worker.forgetActivity()
  worker.endTake(take)
  const forgotten = worker.activity
  worker.noteRequest()
  const begun = worker.activity
  assert.equal(forgotten, null)
  assert.deepEqual([begun?.openTakes, begun?.workedAtMs], [0, null])
})

test('a worker may claim more when it holds less, while one of its takes waits for that', () => {
  const { worker } = aWorker()
  const takes = [worker.beginTake(), worker.beginTake()]
  assert.equal(worker.mayClaimMore, false)
  takes[0]!.waitsForLess = true
  assert.equal(worker.mayClaimMore, true)
  worker.endTake(takes[0]!)
  assert.equal(worker.mayClaimMore, false)
})

test('a worker is ordered to stop a job only until it stops it or gets it again', () => {
  const { worker, clock } = aWorker()
  for (const name of ['a', 'b', 'c']) worker.noteStop(job(name))
  worker.letGo(job('a'))
  worker.claimed([job('c')])
  worker.settled([job('c')], true)
  const beginsMs = clock.monotonic() + 250
  assert.deepEqual(
    ['a', 'b', 'c'].map(name => worker.stopDueAtMs(job(name)) > beginsMs),
    [false, true, false],
  )
  worker.letGo('all')
  assert.equal(worker.sentStops, 0)
})

test('a ping does not bring forward the first stop of a job that was canceled soon after its delivery', async () => {
  const { worker, clock } = aWorker()
  worker.claimed([job('a')])
  worker.settled([job('a')], true)
  const dueMs = clock.monotonic() + 250
  await clock.advance(100)
  worker.pinged({ sdk: null, held: [], stopping: [job('a')], listed: ['a'], alone: true })
  assert.equal(worker.stopDueAtMs(job('a')), dueMs)
  await clock.advance(150)
  worker.noteStop(job('a'))
  assert.equal(worker.hasLetGoUnlisted(job('a')), false)
})

test('a job is on its way until the response is settled, and doubtful when responses may have been lost', () => {
  const { worker, clock } = aWorker()
  worker.claimed([job('a'), job('b')])
  assert.equal(worker.isOnItsWay(job('a')), true)
  worker.settled([job('a')], true)
  worker.settled([job('b')], false)
  assert.deepEqual([worker.isOnItsWay(job('a')), worker.isOnItsWay(job('b'))], [false, false])
  worker.doubtSince(clock.monotonic() + 1)
  assert.equal(worker.isDoubtful(job('a')), false)
  worker.doubtSince(clock.monotonic())
  assert.equal(worker.isDoubtful(job('a')), true)
})

test('a chunk is the one that failed only with the same items, once, and soon after', async () => {
  const { worker, workers, clock } = aWorker()
  const fail = (items: readonly string[]) => workers.chunkFailed(worker, job('j'), items)
  fail(['1'])
  assert.equal(worker.isChunkAgain(job('j'), ['1']), true)
  assert.equal(worker.isChunkAgain(job('j'), ['1']), false)
  fail(['1'])
  assert.equal(worker.isChunkAgain(job('j'), ['2']), false)
  fail(['1'])
  await clock.advance(15_001)
  assert.equal(worker.isChunkAgain(job('j'), ['1']), false)
})

test('failed chunks of all workers together are bounded', () => {
  const workers = new RunningWorkers(new VirtualClock())
  const some = Array.from({ length: 250 }, (_, index) => workers.of(ready(`w${index}`)))
  for (const worker of some) workers.chunkFailed(worker, job('j'), ['1'])
  const known = some.reduce((sum, { failedChunks }) => sum + failedChunks, 0)
  assert.ok(known <= 100, `${known} are known`)
})

test('a job whose result came before the end of its response was noted is not held', () => {
  const { worker } = aWorker()
  worker.claimed([job('fast'), job('slow')])
  worker.holdsNot(job('fast'))
  worker.settled([job('fast'), job('slow')], true)
  worker.doubtSince(0)
  assert.deepEqual([worker.isDoubtful(job('fast')), worker.isDoubtful(job('slow'))], [false, true])
})
