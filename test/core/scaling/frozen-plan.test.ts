import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { FlashBoot } from '../../../src/core/endpoints/endpoint.ts'
import type { WorkerId } from '../../../src/core/ids.ts'
import { FREEZE_RULES } from '../../../src/core/scaling/frozen-plan.ts'
import { planWorkers } from '../../../src/core/scaling/plan.ts'
import type { EndpointSnapshot } from '../../../src/core/scaling/scale.ts'
import { takesJobs, type WorkerLoad } from '../../../src/core/workers/worker.ts'
import { aSnapshot, NOW } from '../../support/snapshots.ts'

const serves = { port: 80, healthPort: 80, healthPath: '/ping', initTimeoutMs: 480_000 }
const FLASHBOOT = { flashboot: 'FLASHBOOT' } as const
const PRIORITY = { flashboot: 'PRIORITY_FLASHBOOT' } as const
const IDLE = { idleSinceMs: NOW - 60_000 }
const frozen = (forMs = 1_000, fields: Partial<WorkerLoad> = {}) =>
  ({ state: 'FROZEN', idleSinceMs: null, frozenAtMs: NOW - forMs, ...fields }) as const
/** One job that needs a worker each. */
const jobs = (queued: number) => ({ queue: { queued, headQueuedAtMs: NOW }, averageExecutionMs: 60_000 })

type Fields = Parameters<typeof aSnapshot>[0]

function plan(fields: Fields) {
  const { start, drain, freeze, thaw, wakeAtMs } = planWorkers(aSnapshot(fields), NOW)
  return {
    start,
    drain: drain.map(({ worker, reason }) => `${worker.id} ${reason}`),
    freeze: freeze.map(({ id }) => id),
    thaw: thaw.map(({ id }) => id),
    wakeInMs: wakeAtMs === null ? null : wakeAtMs - NOW,
  }
}

test('a worker whose idle time is over is frozen with FlashBoot, and ends without', () => {
  assert.deepEqual(plan({ endpoint: FLASHBOOT, workers: [IDLE] }).freeze, ['w1'])
  assert.deepEqual(plan({ endpoint: PRIORITY, workers: [IDLE] }).freeze, ['w1'])
  const off = plan({ workers: [IDLE] })
  assert.deepEqual([off.freeze, off.drain], [[], ['w1 idle']])
})

test('workers that workersMin keeps ready are not frozen', () => {
  assert.deepEqual(plan({ endpoint: { ...FLASHBOOT, workersMin: 1 }, workers: [IDLE] }).freeze, [])
  assert.deepEqual(plan({ endpoint: { ...FLASHBOOT, workersMin: 1 }, workers: [frozen()] }).thaw, ['w1'])
})

test('frozen workers are thawed before any is started, the one frozen last first', () => {
  const workers = [frozen(5_000), frozen(1_000), frozen(9_000)]
  const one = plan({ endpoint: FLASHBOOT, ...jobs(1), workers })
  assert.deepEqual([one.thaw, one.start], [['w2'], 0])
  const more = plan({ endpoint: { ...FLASHBOOT, workersMax: 5 }, ...jobs(5), workers })
  assert.deepEqual([more.thaw, more.start], [['w2', 'w1', 'w3'], 2])
})

test('frozen workers count towards workersMax', () => {
  const workers = [{ held: 1, idleSinceMs: null }, frozen(), frozen(2_000)]
  assert.equal(plan({ endpoint: FLASHBOOT, ...jobs(9), workers }).start, 0)
  assert.deepEqual(plan({ endpoint: { ...FLASHBOOT, workersMax: 2 }, workers }).drain, ['w3 scaled_down'])
  assert.deepEqual(plan({ endpoint: { ...FLASHBOOT, workersMax: 0 }, workers: [frozen()] }).drain, ['w1 scaled_down'])
})

test('a frozen worker of another version ends and is never thawed', () => {
  const found = plan({ endpoint: { ...FLASHBOOT, version: 2 }, ...jobs(1), workers: [frozen()] })
  assert.deepEqual([found.thaw, found.drain, found.start], [[], ['w1 outdated'], 1])
})

test('a frozen worker ends when it was frozen for its time, but for the last one with priority', () => {
  const keepMs = FREEZE_RULES.keepMs
  assert.deepEqual(plan({ endpoint: FLASHBOOT, workers: [frozen(keepMs - 1)] }), {
    start: 0,
    drain: [],
    freeze: [],
    thaw: [],
    wakeInMs: 1,
  })
  assert.deepEqual(plan({ endpoint: FLASHBOOT, workers: [frozen(keepMs)] }).drain, ['w1 frozen_too_long'])
  const two = [frozen(2 * keepMs), frozen(keepMs)]
  assert.deepEqual(plan({ endpoint: PRIORITY, workers: two }).drain, ['w1 frozen_too_long'])
  assert.deepEqual(plan({ endpoint: PRIORITY, workers: [{ held: 1 }, ...two] }).drain.length, 2)
})

test('priority starts a worker from the start, which is frozen when it is idle', () => {
  assert.equal(plan({ endpoint: PRIORITY }).start, 1)
  assert.equal(plan({ endpoint: { ...PRIORITY, workersMax: 0 } }).start, 0)
  assert.equal(plan({ endpoint: FLASHBOOT }).start, 0)
  assert.equal(plan({ endpoint: PRIORITY, workers: [frozen()] }).start, 0)
  assert.equal(plan({ endpoint: PRIORITY, workers: [{ state: 'STARTING' }] }).start, 0)
})

test('a load-balancing endpoint thaws the worker that a request insists on', () => {
  const facts = { maxConcurrency: null, resumed: [], peak: null, healthProblems: new Map() }
  const scaler = { type: 'REQUEST_COUNT', requestCount: 1 } as const
  const endpoint = { type: 'LOAD_BALANCER', scaler, ...FLASHBOOT } as const
  const workers = [frozen(1_000, { serves }), frozen(9_000, { serves })]
  const requests = { ...facts, named: ['w2' as WorkerId] }
  const { thaw, start } = planWorkers({ ...aSnapshot({ endpoint, workers }), requests }, NOW)
  assert.deepEqual([thaw.map(({ id }) => id), start], [['w2'], 0])
})

const aWorker = fc.record({
  state: fc.constantFrom('STARTING', 'READY', 'FROZEN', 'FROZEN', 'DRAINING', 'STOPPING'),
  version: fc.constantFrom(1, 2),
  held: fc.nat(2),
  since: fc.nat(2 * FREEZE_RULES.keepMs),
})

const aSituation: fc.Arbitrary<EndpointSnapshot> = fc
  .record({
    flashboot: fc.constantFrom<FlashBoot>('OFF', 'FLASHBOOT', 'PRIORITY_FLASHBOOT'),
    type: fc.constantFrom('QUEUE', 'LOAD_BALANCER'),
    workersMin: fc.nat(3),
    workersMax: fc.nat(6),
    queued: fc.nat(8),
    workers: fc.array(aWorker, { maxLength: 7 }),
  })
  .map(({ flashboot, type, workersMin, workersMax, queued, workers }) => {
    const isServing = type === 'LOAD_BALANCER'
    const scaler = { type: 'REQUEST_COUNT', requestCount: 1 } as const
    const snapshot = aSnapshot({
      endpoint: { version: 2, flashboot, type, scaler, workersMin: Math.min(workersMin, workersMax), workersMax },
      queue: { queued, headQueuedAtMs: queued === 0 ? null : NOW },
      workers: workers.map(({ state, version, held, since }) => ({
        state,
        version,
        held: state === 'FROZEN' ? 0 : held,
        idleSinceMs: state === 'FROZEN' || held > 0 ? null : NOW - since,
        frozenAtMs: state === 'FROZEN' ? NOW - since : null,
        serves: isServing ? serves : null,
      })),
    })
    const requests = { maxConcurrency: null, resumed: [], named: [], peak: null, healthProblems: new Map() }
    return isServing ? { ...snapshot, requests } : snapshot
  })

test('whatever the workers: only idle ones of the version are frozen and only frozen ones of it are thawed, each worker gets one order, and max holds', () => {
  fc.assert(
    fc.property(aSituation, snapshot => {
      const { endpoint, workers } = snapshot
      const { start, drain, freeze, thaw } = planWorkers(snapshot, NOW)
      for (const worker of freeze) {
        assert.ok(endpoint.flashboot !== 'OFF' && worker.state === 'READY')
        assert.deepEqual([worker.held, worker.version], [0, endpoint.version])
      }
      for (const worker of thaw) assert.deepEqual([worker.state, worker.version], ['FROZEN', endpoint.version])
      const told = [...drain.map(({ worker }) => worker), ...freeze, ...thaw].map(({ id }) => id)
      assert.equal(new Set(told).size, told.length, `told twice: ${told}`)
      const isThawed = new Set(thaw.map(({ id }) => id))
      const leaves = new Set(drain.map(({ worker }) => worker.id))
      const left = workers.filter(
        ({ id, state, version }) =>
          state === 'FROZEN' && version === endpoint.version && !isThawed.has(id) && !leaves.has(id),
      )
      const isFirst = workers.filter(worker => takesJobs(worker) && worker.version === endpoint.version).length === 0
      if (start > 0 && (snapshot.queue.queued > 0 || isFirst))
        assert.equal(left.length, 0, 'started beside a frozen one')
      if (start > 0) assert.ok(workers.length + start <= endpoint.workersMax)
    }),
    { numRuns: 2_000 },
  )
})
