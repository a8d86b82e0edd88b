import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  billedFlavor,
  countWorker,
  HOUR_MS,
  hourStart,
  NO_JOB_USAGE,
  usageFromMove,
  type WorkerCount,
  type WorkerMeter,
} from '../../../src/core/billing/usage.ts'
import { JOB_STATUSES, TRANSITIONS, type Transition } from '../../../src/core/jobs/job.ts'
import { UNPLACED } from '../../../src/core/workers/placement.ts'

const T0 = 1_700_000_000_000
/** A worker of which nothing is counted. */
const NEW: WorkerMeter = {
  readyAtMs: null,
  idleMs: 0,
  idleSinceMs: null,
  frozenMs: 0,
  frozenSinceMs: null,
  countedUntilMs: 0,
  countedIdleMs: 0,
  countedFrozenMs: 0,
}
const span = { waitingSinceMs: T0, startedAtMs: T0 + 10, inputBytes: 3, outputBytes: 5, streamBytes: 7 }

test('an instant falls into the hour of UTC that it is in', () => {
  assert.equal(hourStart(Date.UTC(2026, 4, 1, 13, 59, 59, 999)), Date.UTC(2026, 4, 1, 13))
  assert.equal(hourStart(Date.UTC(2026, 4, 1, 13)), Date.UTC(2026, 4, 1, 13))
  assert.equal(hourStart(-1), -HOUR_MS)
})

test('every transition that ends an attempt counts one, and no other does', () => {
  for (const transition of Object.keys(TRANSITIONS) as Transition[]) {
    for (const to of JOB_STATUSES) {
      if (!(TRANSITIONS[transition].to as readonly string[]).includes(to)) continue
      const { attempts } = usageFromMove(transition, to, span, T0 + 30)
      const ends = !['claim', 'release', 'retry'].includes(transition)
      assert.equal(attempts, ends ? 1 : 0, `${transition} to ${to}`)
    }
  }
})

test('times that a clock set back would make negative are 0', () => {
  const { queuedMs, executionMs } = usageFromMove('finish', 'COMPLETED', { ...span, waitingSinceMs: T0 + 20 }, T0)
  assert.deepEqual([queuedMs, executionMs], [0, 0])
  assert.deepEqual(usageFromMove('purge', 'CANCELLED', { ...span, startedAtMs: null, outputBytes: 0 }, T0 - 1), {
    ...NO_JOB_USAGE,
    cancelled: 1,
  })
})

test('the time of a worker counts for what it was given of the machine', () => {
  const gpu = {
    kind: 'gpu',
    pools: ['ADA_24'],
    excludedTypes: [],
    allowedCudaVersions: [],
    minCudaVersion: null,
  } as const
  const card = { index: 0, uuid: null, type: 'NVIDIA L4', memoryGb: 24 }
  const two = { ...UNPLACED, gpus: [card, { ...card, index: 1 }], pool: 'AMPERE_24' }
  assert.equal(billedFlavor(two, { ...gpu, count: 2 }), 'gpu:AMPERE_24:2')
  assert.equal(billedFlavor(UNPLACED, { ...gpu, count: 2 }), 'cpu:any')
  const small = { ...UNPLACED, vcpus: 2, memoryMb: 4_096, flavor: 'cpu3c' }
  const configs = [{ flavor: 'cpu3g', vcpuCount: 32 }]
  assert.equal(billedFlavor(small, { kind: 'cpu', configs }), 'cpu:cpu3c:2')
})

test('time of a worker with unknown hardware counts for the first hardware of its endpoint', () => {
  const gpu = { kind: 'gpu', excludedTypes: [], allowedCudaVersions: [], minCudaVersion: null } as const
  assert.equal(billedFlavor(null, { ...gpu, pools: ['ADA_24', 'AMPERE_16'], count: 2 }), 'gpu:ADA_24:2')
  assert.equal(billedFlavor(null, { ...gpu, pools: [], count: 1 }), 'gpu:any:1')
  assert.equal(billedFlavor(null, { kind: 'cpu', configs: [{ flavor: 'cpu3c', vcpuCount: 4 }] }), 'cpu:cpu3c:4')
  assert.equal(billedFlavor(null, { kind: 'cpu', configs: [] }), 'cpu:any')
})

test('a clock that was set far ahead makes a bounded count', () => {
  const meter: WorkerMeter = { ...NEW, readyAtMs: 5, idleSinceMs: 5 }
  const { hours, countedUntilMs } = countWorker(meter, T0)
  assert.ok(hours.length <= 31 * 24 + 1)
  assert.equal(countedUntilMs, T0)
})

test('however a time is cut into counts, its parts add up to it and are never negative', () => {
  const instants = fc.array(fc.integer({ min: 0, max: 5 * HOUR_MS }), { minLength: 2, maxLength: 12 })
  fc.assert(
    fc.property(instants, fc.option(fc.nat(5 * HOUR_MS), { nil: null }), fc.nat(HOUR_MS), (cuts, ready, idleAfter) => {
      let meter: WorkerMeter = { ...NEW, readyAtMs: ready === null ? null : T0 + ready, countedUntilMs: T0 }
      let [starting, running, idle] = [0, 0, 0]
      for (const cut of cuts) {
        const idleFrom = T0 + (ready ?? 0) + idleAfter
        const untilMs = T0 + cut
        meter = { ...meter, idleSinceMs: untilMs >= idleFrom ? idleFrom : null }
        const count = countWorker(meter, untilMs)
        for (const { usage } of count.hours) {
          assert.ok(Math.min(usage.startingMs, usage.runningMs, usage.idleMs) >= 0)
          starting += usage.startingMs
          running += usage.runningMs
          idle += usage.idleMs
        }
        meter = { ...meter, ...counted(count) }
      }
      const passed = Math.max(...cuts)
      const readyFor = ready === null ? 0 : Math.max(0, passed - ready)
      assert.equal(starting + running + idle, passed)
      assert.equal(running + idle, readyFor)
      assert.equal(idle, Math.max(0, readyFor - idleAfter))
    }),
  )
})

test('a worker that was frozen in between was that long frozen, and the parts still add up', () => {
  const stretch = fc.integer({ min: 1, max: 2 * HOUR_MS })
  fc.assert(
    fc.property(stretch, stretch, stretch, fc.array(fc.nat(6 * HOUR_MS)), (idleFor, frozenFor, thenFor, cuts) => {
      const frozenAt = T0 + idleFor
      const thawedAt = frozenAt + frozenFor
      const end = thawedAt + thenFor
      let meter: WorkerMeter = { ...NEW, readyAtMs: T0, countedUntilMs: T0 }
      const sums = { startingMs: 0, runningMs: 0, idleMs: 0, frozenMs: 0 }
      for (const atMs of [...cuts.map(cut => Math.min(T0 + cut, end)), end].sort((a, b) => a - b)) {
        const now =
          atMs < frozenAt
            ? { idleMs: 0, idleSinceMs: T0, frozenMs: 0, frozenSinceMs: null }
            : atMs < thawedAt
              ? { idleMs: idleFor, idleSinceMs: null, frozenMs: 0, frozenSinceMs: frozenAt }
              : { idleMs: idleFor, idleSinceMs: thawedAt, frozenMs: frozenFor, frozenSinceMs: null }
        const count = countWorker({ ...meter, ...now }, atMs)
        for (const { usage } of count.hours) {
          assert.ok(Math.min(usage.startingMs, usage.runningMs, usage.idleMs, usage.frozenMs) >= 0)
          for (const part of ['startingMs', 'runningMs', 'idleMs', 'frozenMs'] as const) sums[part] += usage[part]
        }
        meter = { ...meter, ...counted(count) }
      }
      assert.equal(sums.startingMs + sums.runningMs + sums.idleMs + sums.frozenMs, end - T0)
      assert.ok(Math.abs(sums.frozenMs - frozenFor) <= 1, `frozen for ${frozenFor}, counted ${sums.frozenMs}`)
      assert.ok(Math.abs(sums.idleMs - idleFor - thenFor) <= 10)
    }),
  )
})

const counted = ({ countedUntilMs, countedIdleMs, countedFrozenMs }: WorkerCount) => ({
  countedUntilMs,
  countedIdleMs,
  countedFrozenMs,
})
