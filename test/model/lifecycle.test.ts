/**
 * Random steps of clients, workers and faults, on both databases, compared with a model of jobs. RUNYARD_TEST_SEED
 * repeats one run; a failure prints the shortest list of steps that causes it.
 */
import { test } from 'node:test'
import fc from 'fast-check'
import { openPostgresStore } from '../../src/store/engines/postgres.ts'
import { noPostgres, testSchema } from '../support/postgres-database.ts'
import { randomSeed } from '../support/random-seed.ts'
import { openRig, type Rig } from '../support/rig.ts'
import type { Wish } from './job-model.ts'
import { Runner, type Step } from './runner.ts'

/** A seed that always runs, so that a failure recurs, beside one that differs each time. */
const SEED = 1

const index = fc.nat({ max: 11 })
const mostly = fc.constantFrom(true, true, true, false)
const by = fc.constantFrom('holder' as const, 'holder' as const, 'holder' as const, 'stranger' as const)
const wish = (kind: Wish['kind']): fc.Arbitrary<Wish> =>
  fc.record({
    kind: fc.constant(kind),
    ttlMs: fc.constantFrom(86_400_000, 86_400_000, 12_000),
    timeoutMs: fc.constantFrom(600_000, 600_000, 5_000),
    lowPriority: fc.constantFrom(false, false, true),
  })
/** Relative frequency of each step. */
const STEPS: readonly (readonly [weight: number, name: Step['do'], fields?: object])[] = [
  [12, 'run', { wish: wish('run') }],
  [1, 'runsync', { wish: wish('runsync') }],
  [16, 'take', { worker: index, batch: fc.constantFrom(null, null, 1, 3), delivered: mostly }],
  [6, 'done', { job: index, by, ok: fc.boolean() }],
  [16, 'chunk', { job: index, by, value: fc.nat({ max: 99 }) }],
  [4, 'progress', { job: index, by, value: fc.nat({ max: 99 }) }],
  [14, 'read', { job: index, delivered: mostly }],
  [5, 'retry', { job: index }],
  [3, 'cancel', { job: index }],
  [3, 'lose', { worker: index }],
  [6, 'forget', { worker: index }],
  [3, 'watch', { job: index }],
  [1, 'purge'],
  [1, 'expire', { job: index }],
  [5, 'pass', { ms: fc.constantFrom(1, 1, 700, 2_500, 5_200, 30_000) }],
]

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    ...STEPS.map(([weight, name, fields = {}]) => ({
      weight,
      arbitrary: fc.record({ do: fc.constant(name), ...fields }) as fc.Arbitrary<Step>,
    })),
  ),
  { minLength: 10, maxLength: 80, size: 'max' },
)

async function hold(rig: Rig, seed: number, runs: number): Promise<void> {
  const property = fc.asyncProperty(steps, list => new Runner(rig).run(list))
  await fc.assert(property, { seed, numRuns: runs, endOnFailure: false, interruptAfterTimeLimit: 120_000 })
}

for (const seed of [SEED, randomSeed]) {
  test(`jobs on SQLite behave like the model for random steps: seed ${seed}`, async context => {
    await hold(await openRig(context), seed, 25)
  })

  test(`jobs on PostgreSQL behave like the model for random steps: seed ${seed}`, {
    skip: noPostgres,
  }, async context => {
    const schema = await testSchema()
    context.after(() => schema.drop())
    await hold(await openRig(context, { openStore: () => openPostgresStore({ url: schema.url }) }), seed, 4)
  })
}
