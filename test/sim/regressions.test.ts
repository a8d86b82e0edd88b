/**
 * Seeds that have found a mistake. Those with a smaller test, whose own run no longer meets the mistake, run only
 * where `RUNYARD_SEEDS` is ten or more.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { settle } from '../../sim/run.ts'
import { runSeed } from '../../sim/simulation.ts'
import { SIMULATED_SEEDS } from '../support/simulated-seeds.ts'
import { regressions } from './regressions.ts'

const runsAll = SIMULATED_SEEDS >= 10

for (const { seed, found, features, test: smaller, untilS } of regressions) {
  if (smaller !== undefined) {
    const [file, title] = smaller
    test(`a smaller test holds what seed ${seed} has found: ${title}`, () => {
      assert.ok(
        readFileSync(new URL(`../${file}`, import.meta.url), 'utf8').includes(title),
        `${file} has no such test`,
      )
    })
    if (!runsAll) continue
  }
  test(`seed ${seed} finds no more that ${found}`, async () => {
    const endsAtMs = runsAll || untilS === undefined ? Number.POSITIVE_INFINITY : untilS * 1_000
    assert.deepEqual((await runSeed(seed, { settle, ...features, endsAtMs })).problems, [])
  })
}
