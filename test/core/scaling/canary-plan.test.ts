/** A canary beside its base: how the workers of an endpoint are divided. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { keptConfiguration } from '../../../src/core/endpoints/release.ts'
import { actionCommand } from '../../../src/core/observing/action.ts'
import { explainEndpoint } from '../../../src/core/observing/explain.ts'
import { withRollout } from '../../../src/core/observing/explain-rollout.ts'
import { canaryViews } from '../../../src/core/scaling/canary-plan.ts'
import { planWorkers } from '../../../src/core/scaling/plan.ts'
import { findRolloutState, plannedRelease } from '../../../src/core/scaling/rollout.ts'
import { takesJobs, type WorkerLoad } from '../../../src/core/workers/worker.ts'
import { makeTemplate } from '../../contract/store-world.ts'
import { anEndpoint, anExit, aSnapshot, NOW } from '../../support/snapshots.ts'

const working = {
  version: 1,
  configuration: keptConfiguration({
    endpoint: anEndpoint({ env: { GOOD: '1' } }),
    template: makeTemplate('t' as never, { image: 'good' }),
  }),
}
const scaler = { type: 'REQUEST_COUNT', requestCount: 1 } as const
type Fields = Parameters<typeof aSnapshot>[0]

function canarySnapshot(percent: number, fields: Fields) {
  const rollout = { wasReady: false, crashes: 0, working, canary: percent, stop: null, ...fields.rollout }
  return aSnapshot({ ...fields, rollout, endpoint: { version: 2, scaler, workersMax: 20, ...fields.endpoint } })
}

function plans(percent: number, fields: Fields) {
  const views = canaryViews(plannedRelease(canarySnapshot(percent, fields), null), NOW)!
  return { base: planWorkers(views.base, NOW), canary: planWorkers(views.canary, NOW) }
}

function starts(percent: number, fields: Fields): { base: number; canary: number } {
  const { base, canary } = plans(percent, fields)
  return { base: base.start, canary: canary.start }
}

const busy: Partial<WorkerLoad> = { held: 1, idleSinceMs: null }
const own: Partial<WorkerLoad> = { ...busy, version: 2 }
const times = (count: number, worker: Partial<WorkerLoad>) => Array.from({ length: count }, () => worker)

test('a canary has its share of the workers, rounded up, beside a base that has enough for all jobs', () => {
  assert.deepEqual(starts(10, { queue: { inProgress: 4 }, workers: times(4, busy) }), { base: 0, canary: 1 })
  assert.deepEqual(starts(50, { queue: { inProgress: 4 }, workers: times(4, busy) }), { base: 0, canary: 2 })
  assert.deepEqual(starts(10, { queue: { inProgress: 12 }, workers: times(12, busy) }), { base: 0, canary: 2 })
  assert.deepEqual(starts(10, { queue: { queued: 3 } }), { base: 3, canary: 1 })
})

test('without load no worker of a canary is started, one goes with the base at the latest, and before that for its idle time', () => {
  assert.deepEqual(starts(50, {}), { base: 0, canary: 0 })
  assert.deepEqual(starts(50, { workers: [{}, {}] }), { base: 0, canary: 0 })
  const idle = (idleSinceMs: number) => plans(50, { workers: [{}, { version: 2, idleSinceMs }] }).canary.drain
  assert.deepEqual(idle(NOW - 1), [])
  assert.deepEqual(
    idle(NOW - 6_000).map(({ reason }) => reason),
    ['idle'],
  )
  const { canary } = plans(50, { workers: [{ version: 2 }] })
  assert.deepEqual(
    canary.drain.map(({ reason }) => reason),
    ['scaled_down'],
  )
})

test('workers of the base stay although their version is old, and go where max leaves no room for the canary', () => {
  const { base, canary } = plans(10, { queue: { inProgress: 3 }, workers: times(3, busy), endpoint: { workersMax: 3 } })
  assert.deepEqual(
    base.drain.map(({ reason }) => reason),
    ['scaled_down'],
  )
  assert.equal(canary.start, 0, 'the one that ends is still there')
})

test('a base without a worker that is gone keeps one of a max of two', () => {
  const queue = { queued: 9, inProgress: 1 }
  const one = { queue, workers: [busy], endpoint: { workersMax: 2 } }
  assert.deepEqual(starts(99, one), { base: 0, canary: 1 })
})

test('crashes of a canary do not hold back its base, and three of them end it', () => {
  const crash = anExit({ version: 2, readyAtMs: null, startedAtMs: NOW - 10, exitedAtMs: NOW - 1 })
  const fields = { queue: { queued: 2, inProgress: 1 }, workers: [busy], exits: [crash] }
  assert.deepEqual(starts(10, fields), { base: 2, canary: 0 })
  const crashed = (crashes: number) =>
    canarySnapshot(10, { ...fields, rollout: { wasReady: false, crashes, working, canary: 10, stop: null } })
  assert.equal(findRolloutState(crashed(2), null), 'CANARY')
  assert.equal(findRolloutState(crashed(3), null), 'STOPPED')
  assert.equal(plannedRelease(crashed(3), null).canary, null)
})

test('why names the canary, its share and both ways on', () => {
  const snapshot = canarySnapshot(10, { queue: { inProgress: 2 }, workers: [busy, own] })
  const { notes } = withRollout(explainEndpoint(snapshot, { nowMs: NOW } as never), snapshot, null)
  const note = notes.find(({ text }) => text === 'release 2 is a canary with 10 % of the workers, 1 of 2 now')
  const commands = note?.actions.map(action => actionCommand(action, snapshot.endpoint.id))
  assert.match(`${commands}`, /^runyard endpoints promote \S+ 2,runyard endpoints rollback \S+ 1$/)
})

test('whatever the load, both together stay within max, the base serves, and the canary has no more than its share', () => {
  const worker = fc.record({
    version: fc.constantFrom(1, 2),
    state: fc.constantFrom('STARTING', 'READY', 'DRAINING', 'FROZEN'),
    held: fc.nat(2),
  })
  const load = fc.record({
    percent: fc.integer({ min: 1, max: 99 }),
    workers: fc.array(worker, { maxLength: 8 }),
    queued: fc.nat(12),
    workersMin: fc.nat(3),
    workersMax: fc.integer({ min: 2, max: 12 }),
    type: fc.constantFrom('QUEUE', 'LOAD_BALANCER'),
  })
  fc.assert(
    fc.property(load, ({ percent, workers, queued, workersMin, workersMax, type }) => {
      fc.pre(workers.length <= workersMax)
      const endpoint = { workersMax, workersMin: Math.min(workersMin, workersMax), type }
      const serving = {
        version: 1,
        configuration: { ...working.configuration, endpoint: { ...working.configuration.endpoint, type } },
      }
      const fields = {
        endpoint,
        queue: { queued, inProgress: workers.reduce((sum, { held }) => sum + held, 0) },
        workers,
        rollout: { wasReady: true, crashes: 0, working: serving, canary: percent, stop: null },
      }
      const { base, canary } = plans(percent, fields)
      assert.ok(workers.length + base.start + canary.start <= workersMax)
      const taking = workers.filter(one => one.version === 2 && takesJobs(one as never)).length
      const ofCanary = taking - canary.drain.filter(({ worker }) => takesJobs(worker)).length + canary.start
      const share = Math.min(workersMax - 1, Math.ceil((workersMax * percent) / 100))
      assert.ok(ofCanary <= share, `${ofCanary} of the canary, and its share of max is ${share}`)
      const ofBase = workers.filter(({ version }) => version === 1).length + base.start
      if (queued > 0 && workers.length < workersMax) assert.ok(ofBase >= 1, 'the base serves')
    }),
  )
})
