/**
 * Seeds with two servers over one store: leases are lost, processes stand still and wake up deposed, clocks are
 * wrong, the store fails over.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runTwice, settle } from '../../sim/run.ts'
import { runSeed } from '../../sim/simulation.ts'
import { SIMULATED_SEEDS } from '../support/simulated-seeds.ts'

const SEEDS = Math.ceil(SIMULATED_SEEDS / 2)
const counts = new Map<string, number>()

for (let seed = 1; seed <= SEEDS; seed += 1) {
  const twice = seed === 1
  test(`seed ${seed} with two servers has no problems${twice ? ' and the same trace twice' : ''}`, async () => {
    const { problems, stats } = await (twice ? runTwice(seed, { pair: true }) : runSeed(seed, { settle, pair: true }))
    assert.deepEqual(problems, [], `again: ./bin/node sim/run.ts --seed ${seed} --pair --verbose`)
    for (const [name, count] of Object.entries(stats.counts)) counts.set(name, (counts.get(name) ?? 0) + count)
  })
}

test('there were takeovers', () => {
  assert.ok((counts.get('takeovers') ?? 0) >= SEEDS)
})
