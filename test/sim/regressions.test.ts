import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settle } from '../../sim/run.ts'
import { runSeed } from '../../sim/simulation.ts'
import { regressions } from './regressions.ts'

for (const { seed, found, features } of regressions) {
  test(`seed ${seed} finds no more that ${found}`, async () => {
    assert.deepEqual((await runSeed(seed, { settle, ...features })).problems, [])
  })
}
