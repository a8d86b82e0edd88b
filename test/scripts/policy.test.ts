/** The benchmark of policies for several models on few cards. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BusyCard } from '../../bench/policy/busy-card.ts'
import { playControlPlane } from '../../bench/policy/control-plane.ts'
import { modelRequests } from '../../bench/policy/model-requests.ts'
import { playSwapper } from '../../bench/policy/model-swapper.ts'
import { restoreMs, startMs, suspendMs } from '../../bench/policy/model-times.ts'
import { VirtualClock } from '../../sim/clock.ts'

test('the sample has twelve models and the requests of eight hours', () => {
  const { models, requests } = modelRequests(0, 480)
  assert.deepEqual([models.length, requests.length], [12, 8_294])
  assert.ok(requests.every(({ atMs }, index) => atMs < 480 * 60_000 && atMs >= (requests[index - 1]?.atMs ?? 0)))
})

test('copies and starts take the measured times, and times between them for other sizes', () => {
  assert.deepEqual([4, 20, 40, 60].map(suspendMs), [3_800, 11_400, 22_550, 33_700])
  assert.deepEqual([8, 20, 40].map(restoreMs), [2_000, 4_300, 8_750])
  assert.deepEqual([8, 20, 40].map(startMs), [5_400, 7_000, 9_667])
})

test('workers with requests share the processors of a card, and the requests of one run as a batch', async () => {
  const clock = new VirtualClock()
  const card = new BusyCard(clock)
  const ends: Record<string, number> = {}
  const run = (name: string, worker: string, workMs: number) =>
    void card.run(worker, workMs).then(() => {
      ends[name] = clock.monotonic()
    })
  run('a', 'first', 1_000)
  run('b', 'first', 2_000)
  clock.after(500, () => run('c', 'second', 1_000))
  while (clock.advance(10_000)) await new Promise(resolve => setImmediate(resolve))
  assert.deepEqual(ends, { a: 1_500, c: 2_500, b: 3_000 })
})

test('each policy serves all requests, and one that suspends starts fewer workers', async () => {
  const trace = modelRequests(0, 4)
  const common = { idleTimeoutS: 10, dwellS: 5, suspendedGib: null, weightsMs: 30_000 }
  const suspending = await playControlPlane(trace, { ...common, shares: true, suspends: true })
  const ending = await playControlPlane(trace, { ...common, shares: true, suspends: false })
  const swapping = await playSwapper(trace, { shares: true, startsAtOnce: false, weightsMs: 30_000 })
  for (const { waitsMs, wholeMs } of [suspending, ending, swapping])
    assert.deepEqual([waitsMs.length, wholeMs.length], [trace.requests.length, trace.requests.length])
  assert.ok(suspending.resumes > 0 && ending.resumes === 0)
  assert.ok(suspending.starts < ending.starts, `${suspending.starts} starts, ${ending.starts} without suspends`)
})
