import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runTwice, settle } from '../../sim/run.ts'
import { runSeed } from '../../sim/simulation.ts'

const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]

for (const seed of SEEDS) {
  test(`seed ${seed} has no problems and the same trace twice`, async () => {
    const { problems, stats } = await runTwice(seed)
    assert.deepEqual(problems, [], `again: ./bin/node sim/run.ts --seed ${seed} --verbose`)
    assert.ok(stats.jobs >= 20 && stats.restarts >= 1, `only ${stats.jobs} jobs and ${stats.restarts} restarts`)
  })
}

test('seeds differ in what happens', async () => {
  const [first, second] = [await runSeed(1, { settle }), await runSeed(2, { settle })]
  assert.notEqual(first.hash, second.hash)
})
