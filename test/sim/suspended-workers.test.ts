/**
 * Seeds whose idle workers are suspended by the driver of their card, with failures of each call, other programs on
 * the cards, and restarts of the server.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settle } from '../../sim/run.ts'
import { runSeed } from '../../sim/simulation.ts'
import { SIMULATED_SEEDS } from '../support/simulated-seeds.ts'

const FIRST = 6
const SEEDS = Math.ceil(SIMULATED_SEEDS / 5)

for (let seed = FIRST; seed < FIRST + SEEDS; seed += 1) {
  test(`seed ${seed} with suspended workers: no job is lost or run twice, and no sleeper is forgotten`, async () => {
    const { problems, stats } = await runSeed(seed, { settle, suspends: true })
    assert.deepEqual(problems, [])
    assert.ok((stats.counts.suspends ?? 0) > 0, 'no worker was suspended')
    assert.ok((stats.counts.resumes ?? 0) > 0, 'no worker was resumed')
  })
}
