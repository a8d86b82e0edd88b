import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runTwice } from '../../sim/run.ts'
import { regressions } from './regressions.ts'

for (const { seed, found } of regressions) {
  test(`seed ${seed} finds no more that ${found}`, async () => {
    assert.deepEqual((await runTwice(seed)).problems, [])
  })
}
