import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runTwice, settle } from '../../sim/run.ts'
import { runSeed } from '../../sim/simulation.ts'
import { SIMULATED_SEEDS } from '../support/simulated-seeds.ts'
import { SpanRecorder } from '../support/span-trees.ts'

/** Seeds that run twice. */
const TWICE = 1
const hashes = new Set<string>()

for (let seed = 1; seed <= SIMULATED_SEEDS; seed += 1) {
  test(`seed ${seed} has no problems${seed > TWICE ? '' : ' and the same trace twice'}`, async () => {
    const recorder = new SpanRecorder()
    const { onEvent } = recorder
    const { problems, stats, hash } = await (seed > TWICE ? runSeed(seed, { settle, onEvent }) : runTwice(seed))
    hashes.add(hash)
    assert.deepEqual(problems, [], `again: ./bin/node sim/run.ts --seed ${seed} --verbose`)
    assert.deepEqual(recorder.problems(), [], 'the spans of the jobs are no trees')
    assert.ok(stats.jobs >= 20 && stats.restarts >= 1, `only ${stats.jobs} jobs and ${stats.restarts} restarts`)
  })
}

test('seeds differ in what happens', () => {
  assert.equal(hashes.size, SIMULATED_SEEDS)
})
