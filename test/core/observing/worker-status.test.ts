import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { WorkerId } from '../../../src/core/ids.ts'
import { countWorkers, isReady, shownWorkers, WORKER_STATUSES } from '../../../src/core/observing/worker-status.ts'
import { exitText, storedExit, type WorkerLoad } from '../../../src/core/workers/worker.ts'
import type { ObservedExit } from '../../../src/core/workers/worker-exit.ts'
import type { WorkerProblem } from '../../../src/core/workers/worker-problem.ts'
import { anExit, aQueued, aSnapshot, NOW } from '../../support/snapshots.ts'

const CHECK: WorkerProblem = { kind: 'check_failed', check: 'gpu', reason: '' }

const statuses: [what: string, fields: Partial<WorkerLoad>, status: string, ready: boolean][] = [
  ['holds a job', { held: 1 }, 'RUNNING', true],
  ['holds a job and drains', { held: 1, state: 'DRAINING' }, 'RUNNING', true],
  ['waits for a job', {}, 'IDLE', true],
  ['was told to end and holds none', { state: 'STOPPING' }, 'IDLE', false],
  ['has not asked for a job', { state: 'STARTING', readyAtMs: null }, 'INITIALIZING', false],
  ['ends without ever having asked', { state: 'STOPPING', readyAtMs: null }, 'INITIALIZING', false],
  ['reports a problem', { problem: CHECK, held: 1 }, 'UNHEALTHY', false],
  ['reports a problem while it starts', { problem: CHECK, state: 'STARTING', readyAtMs: null }, 'UNHEALTHY', false],
]

for (const [what, fields, status, ready] of statuses) {
  test(`a worker that ${what} is ${status}${ready ? ' and ready' : ''}`, () => {
    const [shown] = shownWorkers(aSnapshot({ workers: [fields] }))
    assert.deepEqual([shown?.status, isReady(shown!)], [status, ready])
  })
}

test('a worker without a place is THROTTLED with the reason, and one of an older version is stale', () => {
  const queued = aQueued({ version: 0 })
  const [shown] = shownWorkers(aSnapshot({ queuedWorkers: [queued] }))
  assert.deepEqual([shown?.status, shown?.reason, shown?.isStale], ['THROTTLED', 'no GPU is free', true])
})

test('the last worker that crashed is shown as UNHEALTHY until another one works in its place', () => {
  const exits = [anExit({ id: 'x' as WorkerId })]
  const ids = (workers: Partial<WorkerLoad>[]) => shownWorkers(aSnapshot({ workers, exits })).map(({ id }) => id)
  assert.deepEqual(ids([]), ['x'])
  assert.deepEqual(ids([{ state: 'STARTING', readyAtMs: null }]), ['x', 'w1'])
  assert.deepEqual(ids([{}]), ['w1'])
  const shown = (fields: Parameters<typeof anExit>[0]) => shownWorkers(aSnapshot({ exits: [anExit(fields)] })).length
  assert.deepEqual([shown({}), shown({ stopReason: 'idle' }), shown({ version: 0 })], [1, 0, 0])
})

const anyWorker: fc.Arbitrary<Partial<WorkerLoad>> = fc.record({
  state: fc.constantFrom('STARTING', 'READY', 'DRAINING', 'STOPPING'),
  held: fc.nat(2),
  problem: fc.constantFrom(null, null, CHECK),
  readyAtMs: fc.constantFrom(null, NOW),
})

test('whatever workers there are, each has one status, and the counts sum to their number', () => {
  fc.assert(
    fc.property(fc.array(anyWorker), fc.boolean(), fc.nat(3), (workers, crash, waiting) => {
      const queuedWorkers = Array.from({ length: waiting }, (_, index) => aQueued({ id: `q${index}` as WorkerId }))
      const shown = shownWorkers(
        aSnapshot({ workers, queuedWorkers, exits: crash ? [anExit({ id: 'x' as WorkerId })] : [] }),
      )
      const { running, idle, initializing, throttled, unhealthy, total, ready } = countWorkers(shown)
      assert.equal(running + idle + initializing + throttled + unhealthy, total)
      assert.equal(total, shown.length)
      assert.equal(throttled, waiting)
      assert.ok(ready <= running + idle && ready >= running)
      assert.ok(shown.every(({ status }) => WORKER_STATUSES.includes(status)))
      assert.equal(new Set(shown.map(({ id }) => id)).size, shown.length)
    }),
  )
})

test('a possible cause of the end of a worker is given where it failed before it did any work', () => {
  const suspicion = { port: 8001, variable: 'VLLM_PORT', with: 'worker' } as const
  const observed = { code: 1, signal: null, cause: { kind: 'ended' } } as const
  const taken = 'port 8001, which its variable VLLM_PORT names, is in use by another worker'
  const fresh = { problem: null, stopReason: null, readyAtMs: null, jobsFinished: 0, serves: null }
  const told = (worker: Parameters<typeof storedExit>[0] & Parameters<typeof exitText>[0], exit: ObservedExit) =>
    exitText(worker, storedExit(worker, exit))
  assert.equal(told(fresh, { ...observed, suspicion }), `exited with code 1; ${taken}`)
  assert.equal(told(fresh, observed), 'exited with code 1')
  assert.equal(
    told(
      { ...fresh, problem: { kind: 'hung_start', limitS: 420 }, stopReason: 'hung_start' },
      { ...observed, suspicion },
    ),
    `was ended because it did not ask for a job within 420 s of its start; ${taken}`,
  )
  assert.equal(told({ ...fresh, stopReason: 'idle' }, { ...observed, suspicion }), 'exited with code 1')
  assert.equal(told({ ...fresh, readyAtMs: 1, jobsFinished: 3 }, { ...observed, suspicion }), 'exited with code 1')
})
