/** Seeds whose idle workers are frozen again and again, among faults and restarts of the server. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settle } from '../../sim/run.ts'
import { runSeed } from '../../sim/simulation.ts'
import { SIMULATED_SEEDS } from '../support/simulated-seeds.ts'

const SEEDS = Math.ceil(SIMULATED_SEEDS / 5)

for (let seed = 1; seed <= SEEDS; seed += 1) {
  test(`seed ${seed} with frozen workers: no job is lost or run twice, and no worker stays frozen`, async () => {
    const { problems, stats } = await runSeed(seed, { settle, freezes: true })
    assert.deepEqual(problems, [])
    assert.ok((stats.counts.freezes ?? 0) > 0, 'no worker was frozen')
  })
}
