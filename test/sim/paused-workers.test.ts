/**
 * Seeds whose workers are paused in the middle of jobs for endpoints of higher priority, with failures of each call of
 * the driver, other programs on the cards, and kills of the server.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PauseChecker } from '../../sim/checks/pause-checker.ts'
import { settle } from '../../sim/run.ts'
import { runSeed } from '../../sim/simulation.ts'
import type { JobId, WorkerId } from '../../src/core/ids.ts'
import { SIMULATED_SEEDS } from '../support/simulated-seeds.ts'

const FIRST = 23
const SEEDS = Math.ceil(SIMULATED_SEEDS / 5)

for (let seed = FIRST; seed < FIRST + SEEDS; seed += 1) {
  test(`seed ${seed} with paused workers: no job is lost or run twice, and nobody is paused for too long`, async () => {
    const { problems, stats } = await runSeed(seed, { settle, pauses: true })
    assert.deepEqual(problems, [])
    if (seed !== FIRST) return
    assert.ok((stats.counts['paused workers'] ?? 0) > 0, 'no worker was paused')
    assert.ok((stats.counts['ended pauses of workers'] ?? 0) > 0, 'no worker went on')
  })
}

test('the checker finds clocks that run in a pause, and workers that stay paused beside a free card', () => {
  const problems: string[] = []
  const placement = JSON.stringify({ gpus: [{ uuid: 'GPU-0' }] })
  const paused = { id: 'w1', state: 'FROZEN', placement, pausedMs: 0 }
  const rows: Record<string, readonly object[]> = { paused: [], awake: [], stopped: [] }
  const query = (sql: string) => {
    if (sql.includes('FROM jobs JOIN')) return rows.stopped
    if (sql.includes('asleep_at_ms IS NULL')) return rows.awake
    return rows.paused
  }
  const view = { nowMs: () => 200_000, isUsed: () => false, maxGpus: 2 }
  const checker = new PauseChecker(problem => problems.push(problem), { query } as never, view)
  const inspect = (given: Partial<typeof rows>) => {
    Object.assign(rows, { paused: [], awake: [], stopped: [] }, given)
    for (const atMs of [0, 61_000]) checker.inspect(atMs)
    checker.resync()
    return problems.splice(0)
  }
  assert.deepEqual(inspect({ paused: [paused], awake: [{ placement }] }), [], 'another worker has its card')
  assert.match(inspect({ paused: [paused] })[0] ?? '', /worker w1 is paused for too long, and its card is free/)
  const elsewhere = { placement: JSON.stringify({ gpus: [{ uuid: 'GPU-1' }] }) }
  assert.match(inspect({ paused: [paused], awake: [elsewhere] })[0] ?? '', /paused for too long/)
  assert.deepEqual(inspect({ paused: [paused], awake: [elsewhere, elsewhere] }), [], 'its account is at its limit')
  assert.match(inspect({ stopped: [{ id: 'j1' }] })[0] ?? '', /the clock of job j1 does not agree/)
  assert.match(inspect({ paused: [{ ...paused, state: 'READY' }] })[0] ?? '', /about to go on/)
  rows.paused = [paused]
  checker.timedOut('j1' as JobId, 'w1' as WorkerId)
  assert.match(problems[0] ?? '', /job j1 timed out while worker w1 was paused/)
})
