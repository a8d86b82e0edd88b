import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SuspendChecker } from '../../sim/checks/suspend-checker.ts'
import { VirtualClock } from '../../sim/clock.ts'
import { PlayedGpus } from '../../sim/played-gpus.ts'
import type { WorkerId } from '../../src/core/ids.ts'

const W = 'w' as WorkerId

function checked() {
  const problems: string[] = []
  const rows: object[] = []
  const gpus = new PlayedGpus({ clock: new VirtualClock(), isFrozen: () => false, isAlive: () => true })
  gpus.start(W, ['GPU-0'], 20)
  const query = <Row>() => rows as Row[]
  return { problems, rows, gpus, checker: new SuspendChecker(problem => problems.push(problem), { query }, gpus) }
}

test('a job for a worker whose threads are held is reported, and none for one that runs', async () => {
  const { problems, gpus, checker } = checked()
  checker.claimed(W, 'a')
  assert.deepEqual(problems, [])
  await gpus.family(W)!.hold([])
  checker.claimed(W, 'b')
  assert.deepEqual(problems, ['worker w got job b while its process was running'])
})

test('a worker that stays between two states, or runs while it is suspended, is reported after a minute', () => {
  const { problems, rows, checker } = checked()
  const row = { id: W, state: 'FROZEN', suspension: '{}', asleep_at_ms: null as number | null }
  rows.push(row)
  checker.inspect(0)
  checker.inspect(59_999)
  assert.deepEqual(problems, [])
  checker.inspect(60_000)
  assert.deepEqual(problems, ['worker w is FROZEN and between two states, since 60000 ms'])
  row.asleep_at_ms = 1
  checker.inspect(70_000)
  checker.inspect(130_000)
  assert.equal(problems[1], 'worker w is suspended in the store, and its process runs, since 60000 ms')
})
