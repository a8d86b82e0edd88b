import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settle } from '../../sim/run.ts'
import { runSeed } from '../../sim/simulation.ts'
import { collect } from '../support/collect.ts'

/** Time until which servers are killed amid their calls and waits. */
const ENDS_AT_MS = 60_000

/** Runs a seed, and gives a reference to what its whole world refers to. */
async function run(seed: number, features: object): Promise<WeakRef<object>> {
  const listen = () => {}
  await runSeed(seed, { settle, listen, endsAtMs: ENDS_AT_MS, ...features })
  return new WeakRef(listen)
}

for (const [what, seed, features] of [
  ['', 4, {}],
  [' with two servers', 1, { pair: true }],
  [' with a cluster', 1, { kubernetes: true }],
] as const)
  test(`nothing keeps a seed${what} that has ended, so that hundreds run in one process`, async () => {
    const world = await run(seed, features)
    await collect()
    assert.equal(world.deref(), undefined)
  })
