/**
 * Seeds whose changes of endpoints run on a share of the workers first, and are promoted, undone or left,
 * among faults and restarts.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settle } from '../../sim/run.ts'
import { runSeed } from '../../sim/simulation.ts'
import { SIMULATED_SEEDS } from '../support/simulated-seeds.ts'

const SEEDS = Math.ceil(SIMULATED_SEEDS / 5)
let canaries = 0

for (let seed = 1; seed <= SEEDS; seed += 1) {
  test(`seed ${seed} with canaries: no job is lost or run twice, and limits of workers hold`, async () => {
    const { problems, stats } = await runSeed(seed, { settle, canaries: true })
    assert.deepEqual(problems, [], `again: ./bin/node sim/run.ts --seed ${seed} --canaries --verbose`)
    canaries += stats.counts.canaries ?? 0
  })
}

test('there were canaries', () => {
  assert.ok(canaries > 0)
})
