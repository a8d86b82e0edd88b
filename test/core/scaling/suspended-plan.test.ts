import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId, WorkerId } from '../../../src/core/ids.ts'
import {
  endsForSuspend,
  FRESH_COPY_MS,
  type SuspendRoomInput,
  suspendRoom,
} from '../../../src/core/scaling/suspended-plan.ts'
import { aWorker } from '../../support/snapshots.ts'

const GIB = 2 ** 30
const OWN = 'own' as WorkerId
const NOW = FRESH_COPY_MS + 10

const suspended = (id: string, gib: number, asleepAtMs: number | null = 1) =>
  aWorker({
    id: id as WorkerId,
    endpointId: `of ${id}` as EndpointId,
    state: 'FROZEN',
    frozenAtMs: 1,
    asleepAtMs,
    suspension: { card: 'GPU-0', bytes: gib * GIB, processes: [] },
  })

/** A machine of 100 GB. */
function input(availableGib: number, workers: SuspendRoomInput['workers'], limitGib: number | null = null) {
  const memory = { availableBytes: availableGib * GIB, totalBytes: 100 * GIB }
  const suspendedBytes = limitGib === null ? null : limitGib * GIB
  return { memory, workers, own: OWN, rules: { suspendedBytes, minMemoryPercent: 10 } }
}

const roomGib = (from: SuspendRoomInput) => suspendRoom(from) / GIB
const noPriority = () => false

test('suspended workers have half of what is free without them, and those that are being suspended count', () => {
  assert.equal(roomGib(input(80, [])), 40)
  assert.equal(roomGib(input(60, [suspended('a', 20)])), 20)
  assert.equal(roomGib(input(60, [suspended('a', 20, null)])), 20)
  assert.equal(roomGib(input(60, [{ ...suspended('a', 20), id: OWN }])), 30, 'its own intent does not count twice')
})

test('a limit is for all of them, and the memory that frozen workers must leave stays free', () => {
  assert.equal(roomGib(input(90, [suspended('a', 20)], 50)), 30)
  assert.equal(roomGib(input(15, [], 50)), 5)
  assert.equal(roomGib(input(5, [], 50)), 0)
})

test('without a reading of the memory a limit alone decides', () => {
  assert.equal(suspendRoom({ ...input(0, [suspended('a', 20)], 50), memory: null }), 30 * GIB)
  assert.equal(suspendRoom({ ...input(0, []), memory: null }), Number.POSITIVE_INFINITY)
})

test('those suspended longest end first, those with priority last, and as few as are enough', () => {
  const workers = [suspended('young', 20, 9), suspended('old', 20, 3), suspended('kept', 20, 1)]
  const isKept = (id: EndpointId) => id === 'of kept'
  const ends = (gib: number) => endsForSuspend(input(90, workers, 60), gib * GIB, isKept, NOW)?.map(({ id }) => id)
  assert.deepEqual([ends(0), ends(20), ends(30)], [[], ['old'], ['old', 'young']])
  assert.deepEqual(ends(60), ['old', 'young', 'kept'])
})

test('nobody ends where that is not enough, nor one that is between two states', () => {
  const workers = [suspended('a', 20), suspended('b', 20, null), { ...suspended('c', 20), state: 'DRAINING' as const }]
  assert.equal(endsForSuspend(input(90, workers, 60), 30 * GIB, noPriority, NOW), null)
  assert.deepEqual(
    endsForSuspend(input(90, workers, 60), 20 * GIB, noPriority, NOW)?.map(({ id }) => id),
    ['a'],
  )
})

test('a worker that was copied later stays where the older ones are not needed besides, or are enough', () => {
  const workers = [suspended('small', 5, 1), suspended('large', 20, 5), suspended('last', 5, 9)]
  const ends = (gib: number) => endsForSuspend(input(90, workers, 30), gib * GIB, noPriority, NOW)?.map(({ id }) => id)
  assert.deepEqual([ends(5), ends(15), ends(25)], [['small'], ['large'], ['small', 'large']])
})

test('nobody ends that was copied just now, not even beside an older one with priority', () => {
  const workers = [suspended('fresh', 20, 20), suspended('kept', 20, 1)]
  const ends = (gib: number, nowMs = NOW) =>
    endsForSuspend(input(90, workers, 40), gib * GIB, id => id === 'of kept', nowMs)?.map(({ id }) => id) ?? null
  assert.deepEqual([ends(20), ends(40)], [['kept'], null])
  assert.deepEqual(ends(20, NOW + 10), ['fresh'])
})
