/**
 * Seeds whose workers are pods of a cluster that forgets, repeats and delays events, loses nodes, refuses calls and
 * is away; half of them with two servers.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runTwice, settle } from '../../sim/run.ts'
import { runSeed } from '../../sim/simulation.ts'
import { SIMULATED_SEEDS } from '../support/simulated-seeds.ts'

const SEEDS = Math.ceil(SIMULATED_SEEDS / 2)
let faults = 0

for (let seed = 1; seed <= SEEDS; seed += 1) {
  const features = { kubernetes: true, pair: seed % 2 === 0 }
  const options = features.pair ? '--kubernetes --pair' : '--kubernetes'
  test(`seed ${seed} with ${features.pair ? 'two servers and ' : ''}a cluster has no problems`, async () => {
    const { problems, stats } = await (seed === 1 ? runTwice(seed, features) : runSeed(seed, { settle, ...features }))
    assert.deepEqual(problems, [], `again: ./bin/node sim/run.ts --seed ${seed} ${options} --verbose`)
    for (const [name, count] of Object.entries(stats.counts)) if (name.startsWith('kubernetes: ')) faults += count
  })
}

test('the cluster did not behave', () => {
  assert.ok(faults > 10 * SEEDS)
})
