/** A new release until one of its workers has been ready, and what stops it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { keptConfiguration } from '../../../src/core/endpoints/release.ts'
import type { WorkingRelease } from '../../../src/core/endpoints/rollout-facts.ts'
import type { EndpointId } from '../../../src/core/ids.ts'
import { actionCommand } from '../../../src/core/observing/action.ts'
import { explainEndpoint } from '../../../src/core/observing/explain.ts'
import { withRollout } from '../../../src/core/observing/explain-rollout.ts'
import type { Explanation } from '../../../src/core/observing/explanation.ts'
import { planWorkers } from '../../../src/core/scaling/plan.ts'
import {
  countsAgainstRelease,
  findRolloutState,
  MAX_ROLLOUT_CRASHES,
  plannedRelease,
  rolloutProblem,
} from '../../../src/core/scaling/rollout.ts'
import { PLATFORM_SURGE_MS, SURGE_MS } from '../../../src/core/scaling/rollout-room.ts'
import type { EndpointSnapshot } from '../../../src/core/scaling/scale.ts'
import { takesJobs, type WorkerLoad } from '../../../src/core/workers/worker.ts'
import { makeTemplate } from '../../contract/store-world.ts'
import { anEndpoint, anExit, aQueued, aSnapshot, NOW } from '../../support/snapshots.ts'

const WORKING: WorkingRelease = {
  version: 1,
  configuration: keptConfiguration({
    endpoint: anEndpoint({ env: { GOOD: '1' } }),
    template: makeTemplate('t' as never, { image: 'good' }),
  }),
}
const rollout = { wasReady: false, crashes: 0, working: WORKING, canary: null, stop: null }
const scaler = { type: 'REQUEST_COUNT', requestCount: 1 } as const
type Fields = Parameters<typeof aSnapshot>[0]

function rolling(fields: Fields): EndpointSnapshot {
  return aSnapshot({ rollout, ...fields, endpoint: { version: 2, scaler, workersMax: 6, ...fields.endpoint } })
}

function plan(fields: Fields): { start: number; drain: string[] } {
  const { start, drain } = planWorkers(rolling(fields), NOW)
  return { start, drain: drain.map(({ worker, reason }) => `${worker.id} ${reason}`) }
}

const busy: Partial<WorkerLoad> = { held: 1, idleSinceMs: null }
const crash = anExit({ version: 2, readyAtMs: null, startedAtMs: NOW - 10, exitedAtMs: NOW - 60_000 })

test('old workers go on until a new one has been ready; then idle ones go at once, and busy ones after their jobs', () => {
  const workers = [busy, busy]
  assert.deepEqual(plan({ queue: { inProgress: 2 }, workers }), { start: 2, drain: [] })
  const started = [...workers, { version: 2, state: 'STARTING' }] as const
  assert.deepEqual(plan({ queue: { inProgress: 2 }, workers: started }), { start: 1, drain: [] })
  const ready = { ...rollout, wasReady: true }
  assert.deepEqual(plan({ rollout: ready, queue: { inProgress: 2 }, workers: started }), {
    start: 1,
    drain: ['w1 outdated', 'w2 outdated'],
  })
})

test('an idle old worker that was in use lately gets a successor, one that was not ends without', () => {
  assert.deepEqual(plan({ workers: [{}] }), { start: 1, drain: [] })
  assert.deepEqual(plan({ workers: [{ idleSinceMs: NOW - 5_000 }] }), { start: 0, drain: ['w1 idle'] })
  assert.deepEqual(plan({ endpoint: { workersMin: 1 }, workers: [{ idleSinceMs: NOW - 5_000 }] }).drain, [])
})

test('old workers that are not ready end at once', () => {
  assert.deepEqual(plan({ workers: [{}, { state: 'STARTING' }] }).drain, ['w2 outdated'])
})

test('without room for both, one old worker at a time makes room while another one is ready', () => {
  const endpoint = { workersMax: 2 }
  const queue = { inProgress: 2 }
  assert.deepEqual(plan({ endpoint, queue, workers: [busy, busy] }), { start: 0, drain: ['w1 outdated'] })
  const leaving = [busy, { ...busy, state: 'DRAINING' }] as const
  assert.deepEqual(plan({ endpoint, queue, workers: leaving }), { start: 0, drain: [] })
  assert.deepEqual(plan({ endpoint, queue, workers: [busy, { version: 2, state: 'STARTING' }] }).drain, [])
  assert.deepEqual(plan({ endpoint, queue, workers: [busy], exits: [{ ...crash, exitedAtMs: NOW }] }), {
    start: 0,
    drain: [],
  })
  assert.deepEqual(plan({ endpoint: { workersMax: 1 }, queue, workers: [busy] }), { start: 0, drain: ['w1 outdated'] })
})

test('on a full machine the only old worker makes room after a moment, but for no worker that can never have a place', () => {
  const since = (ms: number, more = {}) =>
    plan({ workers: [busy], queue: { inProgress: 1 }, queuedWorkers: [aQueued({ queuedAtMs: NOW - ms, ...more })] })
      .drain
  assert.deepEqual(since(SURGE_MS - 1), [])
  assert.deepEqual(since(SURGE_MS), ['w1 outdated'])
  assert.deepEqual(since(SURGE_MS, { resource: 'gpu_type' }), [])
  assert.deepEqual(since(SURGE_MS, { resource: 'models' }), [])
})

test('on a platform without room the old worker makes room after a longer moment, in which the platform may get a machine', () => {
  const since = (ms: number, kind: 'no_room' | 'no_such_node' = 'no_room') => {
    const platform = { place: null, waits: { kind, said: '' }, leaves: null }
    const waiting = { version: 2, state: 'STARTING', createdAtMs: NOW - ms, platform } as const
    return plan({ workers: [busy, waiting], queue: { inProgress: 1 } }).drain
  }
  assert.deepEqual(since(PLATFORM_SURGE_MS - 1), [])
  assert.deepEqual(since(PLATFORM_SURGE_MS), ['w1 outdated'])
  assert.deepEqual(since(PLATFORM_SURGE_MS, 'no_such_node'), [])
})

test('three crashes stop the rollout, unless a worker has been ready or there is nothing to fall back to', () => {
  const state = (fields: Partial<typeof rollout>, endpoint = {}) =>
    findRolloutState(rolling({ endpoint, workers: [busy], rollout: { ...rollout, ...fields } }), null)
  assert.equal(state({ crashes: MAX_ROLLOUT_CRASHES - 1 }), 'IN_PROGRESS')
  assert.equal(state({ crashes: MAX_ROLLOUT_CRASHES }), 'STOPPED')
  assert.equal(state({ crashes: 9, wasReady: true }), 'IN_PROGRESS')
  assert.equal(state({ crashes: 9, working: null as never }), 'IN_PROGRESS')
  assert.equal(state({ crashes: 9 }, { type: 'LOAD_BALANCER' }), 'IN_PROGRESS')
  assert.equal(findRolloutState(rolling({ workers: [{ version: 2 }] }), null), 'COMPLETE')
})

test('a release that cannot be started at all is stopped while that is so, but not for an engine that is away', () => {
  const snapshot = rolling({ workers: [busy] })
  assert.equal(findRolloutState(snapshot, { kind: 'secrets_missing', names: ['a'] }), 'STOPPED')
  assert.match(rolloutProblem(snapshot, { kind: 'secrets_missing', names: ['a'] })!, /no worker of it can be started/)
  const absence = { how: 'not_found', address: null, said: '' } as const
  assert.equal(findRolloutState(snapshot, { kind: 'engine_away', absence } as never), 'IN_PROGRESS')
})

test('an end that nobody saw says nothing against a release, a crash does', () => {
  assert.equal(countsAgainstRelease(crash), true)
  assert.equal(countsAgainstRelease({ ...crash, stopReason: 'outdated' }), false)
  assert.equal(countsAgainstRelease(anExit({}, { cause: { kind: 'unseen', when: 'server_away' } })), false)
  assert.equal(countsAgainstRelease(anExit({}, { cause: { kind: 'engine_stopped' } })), false)
})

test('while the rollout is stopped, the release that worked is scaled up and down, with the present range of workers', () => {
  const stopped = { ...rollout, crashes: 3 }
  const snapshot = rolling({
    rollout: stopped,
    endpoint: { workersMax: 9 },
    queue: { queued: 3, inProgress: 1 },
    workers: [busy, { version: 2, state: 'STARTING' }],
    exits: [crash, crash, crash],
  })
  const { snapshot: planned, template, presentVersion } = plannedRelease(snapshot, null)
  assert.deepEqual([planned.endpoint.version, planned.endpoint.env, presentVersion], [1, { GOOD: '1' }, 2])
  assert.deepEqual([planned.endpoint.workersMax, template?.image], [9, 'good'])
  const { start, drain } = planWorkers(planned, NOW)
  assert.deepEqual([start, drain.map(({ worker }) => worker.id)], [3, ['w2']])
})

test('why names the cause while the rollout is under way and when it has stopped, with the command that undoes it', () => {
  const said = (fields: Fields) => {
    const snapshot = rolling({ workers: [busy], queue: { inProgress: 1 }, ...fields })
    const capacity = { freeWorkers: null, bound: '' }
    const planned = plannedRelease(snapshot, null).snapshot
    return withRollout(explainEndpoint(planned, { capacity, startFailure: null, nowMs: NOW }), snapshot, null)
  }
  const textOf = ({ notes }: Explanation) => notes.map(({ text }) => text).join()
  const last = anExit({ version: 2, readyAtMs: null }, { code: 3, lastLines: ["No module named 'torch'"] })
  const once = said({ rollout: { ...rollout, crashes: 1 }, exits: [last] })
  assert.equal(once.cause, 'running')
  assert.match(textOf(once), /release 2 is being rolled out: a worker of it crashed .* exited with code 3/)
  const stopped = said({ rollout: { ...rollout, crashes: 3 }, exits: [last, last, last] })
  assert.equal(stopped.cause, 'rollout_stopped')
  assert.match(
    stopped.summary,
    /^the rollout of release 2 has stopped: 3 workers of it crashed .*code 3; workers of release 1 go on/,
  )
  assert.deepEqual(
    actionCommand(stopped.actions[0]!, 'endpoint' as EndpointId),
    'runyard endpoints rollback endpoint 1',
  )
  assert.deepEqual(stopped.facts, ["No module named 'torch'"])
  const full = said({
    rollout: { ...rollout, crashes: 3 },
    endpoint: { workersMax: 1 },
    queue: { queued: 1, inProgress: 1 },
  })
  assert.equal(full.cause, 'max_reached')
  assert.match(textOf(full), /the rollout of release 2 has stopped/)
  assert.ok(full.actions.some(action => action.kind === 'rollback' && action.version === 1))
})

const WORKERS: fc.Arbitrary<Partial<WorkerLoad>> = fc.record({
  state: fc.constantFrom('STARTING', 'READY', 'READY', 'READY', 'DRAINING', 'STOPPING'),
  version: fc.constantFrom(1, 1, 2),
  held: fc.constantFrom(0, 1, 3),
  idleSinceMs: fc.nat(30_000).map(ms => NOW - ms),
  createdAtMs: fc.nat(60_000).map(ms => NOW - ms),
})
const SITUATIONS = fc
  .record({
    range: fc.tuple(fc.nat(6), fc.nat(6)),
    queue: fc.record({ queued: fc.constantFrom(0, 0, 1, 4), inProgress: fc.nat(9) }),
    workers: fc.array(WORKERS, { maxLength: 8 }),
    crashes: fc.nat(5),
    waits: fc.option(fc.nat(20_000)),
  })
  .map(({ range, crashes, waits, ...rest }) =>
    rolling({
      ...rest,
      endpoint: { workersMin: Math.min(...range), workersMax: Math.max(...range) },
      // No worker of the release may have been ready.
      workers: rest.workers.map(worker =>
        worker.version === 2 && worker.state === 'READY' ? { ...worker, state: 'STARTING' } : worker,
      ),
      rollout: { ...rollout, crashes },
      queuedWorkers: waits === null ? [] : [aQueued({ version: 2, queuedAtMs: NOW - waits })],
      exits: Array.from({ length: crashes }, () => crash),
    }),
  )

test('whatever the situation: max is never exceeded, and a crashing release is not started after three crashes', () => {
  fc.assert(
    fc.property(SITUATIONS, situation => {
      const { snapshot } = plannedRelease(situation, null)
      const { start } = planWorkers(snapshot, NOW)
      assert.equal(snapshot.endpoint.version, situation.rollout.crashes >= MAX_ROLLOUT_CRASHES ? 1 : 2)
      if (start > 0) assert.ok(snapshot.workers.length + start <= snapshot.endpoint.workersMax)
    }),
  )
})

test('whatever the situation: before a new worker was ready, an old one that is ready goes only for its idle time, for max, or for room', () => {
  fc.assert(
    fc.property(SITUATIONS, situation => {
      if (situation.rollout.crashes >= MAX_ROLLOUT_CRASHES) return
      const { drain, desired } = planWorkers(situation, NOW)
      const { workers, endpoint } = situation
      const ready = workers.filter(({ version, state }) => version === 1 && state === 'READY')
      const gone = ready.filter(worker => drain.some(one => one.worker === worker))
      const outdated = drain.filter(({ worker, reason }) => gone.includes(worker) && reason === 'outdated')
      const idle = drain.filter(({ worker, reason }) => gone.includes(worker) && reason === 'idle')
      for (const { worker } of idle) assert.ok(worker.held === 0 && worker.idleSinceMs! + 5_000 <= NOW)
      if (idle.length > 0) assert.ok(ready.length - gone.length >= Math.min(desired, ready.length))
      const over = workers.filter(takesJobs).length > endpoint.workersMax
      if (!over) assert.ok(outdated.length <= 1, 'one at a time makes room')
      const isFull = workers.length >= endpoint.workersMax
      if (!over && outdated.length > 0) assert.ok(isFull || situation.queuedWorkers[0]!.queuedAtMs + SURGE_MS <= NOW)
    }),
  )
})
