import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PlacementChecker } from '../../sim/checks/placement-checker.ts'
import type { EndpointId, WorkerId } from '../../src/core/ids.ts'
import type { WorkerSpec } from '../../src/ports/driver.ts'
import { aGpu, aMachine } from '../support/machines.ts'
import { given, gpus } from '../support/placing.ts'

const endpointId = 'endpoint' as EndpointId
const [w1, w2] = ['worker1', 'worker2'] as [WorkerId, WorkerId]

/** A machine with two GPUs, one endpoint and a worker that waits for a place. */
function places(row: Record<string, unknown> = {}, queued: Record<string, unknown>[] = []) {
  const problems: string[] = []
  const running = [w1, w2]
  const config = JSON.stringify({ compute: gpus(), scaler: { type: 'QUEUE_DELAY', queueDelayS: 5 } })
  const endpoint = { id: endpointId, workers_min: 0, workers_max: 3, config, waiting: 0, busy: 0, alive: 0 }
  const rest = { queued: queued.length, last_reason: null, has_exits: 0, working: 0, head: null, ...row }
  const query = <Row>(sql: string) =>
    (sql.includes('FROM queued_workers ORDER')
      ? queued
      : sql.startsWith('SELECT config')
        ? []
        : [{ ...endpoint, ...rest }]) as Row[]
  const view = {
    parts: () => aMachine([aGpu(0), aGpu(1)]),
    running: () => running,
    maxWorkers: 9,
    requests: () => ({ waiting: 0, all: 0 }),
  }
  const checker = new PlacementChecker(problem => problems.push(problem), { query }, view)
  const problemsAfter = (ms: number) => {
    for (let atMs = 0; atMs <= ms; atMs += 1_000) checker.inspect(atMs)
    return problems
  }
  const start = (workerId: WorkerId, index: number) =>
    checker.started({ workerId, placement: given(index) } as WorkerSpec)
  return { problems, running, start, problemsAfter, checker }
}

test('a GPU that two workers have is reported, and one that was let go of is not', () => {
  const { problems, running, start } = places()
  start(w1, 0)
  start(w2, 1)
  running.shift()
  start(w2, 0)
  assert.deepEqual(problems, [])
  running.push(w1)
  start(w1, 1)
  assert.deepEqual(problems, ['worker worker1 was placed on GPU 1, which worker worker2 has'])
})

test('queued workers that wait in vain, without need, or above the max are reported after a while', () => {
  const row = { id: 'q', endpoint_id: endpointId, resource: 'gpu', current: 1 }
  assert.match(places({ waiting: 1 }, [row]).problemsAfter(13_000).join(), /waits for a GPU, and one is free/)
  assert.match(
    places({}, [{ ...row, resource: 'cpu' }])
      .problemsAfter(9_000)
      .join(),
    /and is not needed/,
  )
  assert.match(
    places({ waiting: 1, workers_max: 0 }, [{ ...row, resource: 'cpu' }])
      .problemsAfter(9_000)
      .join(),
    /its max is 0/,
  )
  assert.match(
    places({ waiting: 1 }, [{ ...row, resource: 'cpu', current: 0 }])
      .problemsAfter(9_000)
      .join(),
    /an old version/,
  )
  assert.match(
    places({ waiting: 1 }).problemsAfter(41_000).join(),
    /neither a worker nor one that waits for a placement/,
  )
  assert.match(
    places({ waiting: 1 }, [{ ...row, resource: 'cpu' }])
      .problemsAfter(241_000)
      .join(),
    /gets no worker/,
  )
  assert.deepEqual(places({ waiting: 1, alive: 1 }).problemsAfter(300_000), [])
  assert.deepEqual(places({ waiting: 1 }, [{ ...row, resource: 'cpu' }]).problemsAfter(60_000), [])
})

test('a job that waits for busy workers for much longer than the queue delay is reported', () => {
  const held = { waiting: 1, alive: 1, working: 1, head: 'job1' }
  assert.match(places(held).problemsAfter(51_000).join(), /job job1 waits for one of 1 workers, all busy/)
  for (const row of [{ working: 0 }, { alive: 2 }, { workers_max: 1 }, { head: null }, { has_exits: 1 }]) {
    assert.deepEqual(places({ ...held, ...row }).problemsAfter(60_000), [])
  }
})

test('workers that are said to wait and that the store does not have are reported', () => {
  const { checker, problemsAfter } = places({ alive: 1 })
  checker.unplaced({ endpointId, count: 2, resource: 'gpu', reason: 'none is free' })
  assert.match(
    problemsAfter(9_000).join(),
    /has an event about workers without a placement, and the store has no such workers/,
  )
})
