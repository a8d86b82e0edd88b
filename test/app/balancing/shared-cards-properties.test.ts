/**
 * Models that share cards, with servers that sleep, fail to, or are slow, and crashes of the
 * control plane at any moment.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { HealthAnswer } from '../../../src/core/balancing/health-check.ts'
import type { EndpointId, WorkerId } from '../../../src/core/ids.ts'
import { balancedEndpoint, openBalancedRig } from '../../support/balanced.ts'
import { aGpu, aMachine } from '../../support/machines.ts'
import { randomSeed } from '../../support/random-seed.ts'

const MODEL = {
  flashBootType: 'FLASHBOOT',
  instanceIds: undefined,
  gpuIds: 'ADA_24',
  workersMax: 1,
  idleTimeout: 600,
  env: [
    { key: 'RUNYARD_SLEEP_URL', value: '/sleep' },
    { key: 'RUNYARD_WAKE_URL', value: '/wake_up' },
  ],
}
const MODELS = 3
const OK: HealthAnswer = { status: 200 }

const STEP = fc.oneof(
  { weight: 4, arbitrary: fc.record({ ask: fc.nat(MODELS - 1) }) },
  { weight: 3, arbitrary: fc.record({ passMs: fc.constantFrom(1, 50, 500, 5_000, 35_000) }) },
  { weight: 2, arbitrary: fc.record({ answers: fc.constantFrom('at once', 'late', 'with 500' as const) }) },
  { weight: 1, arbitrary: fc.constant('crash' as const) },
)

test('no card has two servers that are awake, whatever they answer and whenever the control plane crashes; then each model answers', async t => {
  const property = fc.asyncProperty(
    fc.array(STEP, { maxLength: 25 }),
    fc.integer({ min: 1, max: 2 }),
    async (steps, cards) => {
      const balanced = await openBalancedRig(t)
      const { rig } = balanced
      rig.machine = aMachine(Array.from({ length: cards }, (_, index) => aGpu(index)))
      const models: EndpointId[] = []
      for (let count = 0; count < MODELS; count += 1) models.push(await balancedEndpoint(rig, MODEL))
      const asleep = new Set<WorkerId>()
      const late: (() => void)[] = []
      let answers: 'at once' | 'late' | 'with 500' = 'at once'
      rig.probes.posted = path => {
        const { worker } = rig.probes.posts.at(-1)!
        const sleeps = path === '/sleep'
        // A server that wakes has its memory from the first moment on, and one that fails to sleep keeps it.
        if (!sleeps) asleep.delete(worker)
        if (answers === 'with 500') return { status: 500 }
        if (answers === 'at once') {
          if (sleeps) asleep.add(worker)
          return OK
        }
        return new Promise(resolve => {
          late.push(() => {
            if (sleeps) asleep.add(worker)
            resolve(OK)
          })
        })
      }
      const check = async () => {
        const users = new Map<number, WorkerId>()
        for (const id of rig.fleet.running()) {
          const index = (await rig.store.workers.find(id))?.placement?.gpus[0]?.index
          if (asleep.has(id) || index === undefined) continue
          assert.equal(users.get(index), undefined, `card ${index} has ${users.get(index)} and ${id}`)
          users.set(index, id)
        }
      }
      const pass = async (ms: number) => {
        await rig.clock.advance(ms)
        await check()
      }
      /** The requests of a model wait until a worker is ready, and are served then. */
      const serve = async () => {
        for (const id of models) {
          const [ready] = balanced.gateway.ready(id)
          if (ready === undefined || balanced.gateway.load(id).waiting === 0) continue
          balanced.gateway.wait(id, 0)
          balanced.gateway.serve(id, ready, 1)
          await pass(10)
          balanced.gateway.serve(id, ready, 0)
        }
      }
      for (const step of steps) {
        if (step === 'crash') {
          await rig.crash()
          await rig.start()
        } else if ('ask' in step) balanced.gateway.wait(models[step.ask]!, 1)
        else if ('passMs' in step) await pass(step.passMs)
        else answers = step.answers
        await pass(20)
        if (answers !== 'late') for (const answer of late.splice(0)) answer()
        await serve()
      }
      answers = 'at once'
      for (const answer of late.splice(0)) answer()
      for (const id of models) {
        balanced.gateway.wait(id, 1)
        for (let tries = 0; balanced.gateway.load(id).waiting > 0; tries += 1) {
          assert.ok(tries < 1_000, `model ${models.indexOf(id)} is not served: ${JSON.stringify(await rig.why(id))}`)
          await pass(500)
          await serve()
        }
      }
    },
  )
  await fc.assert(property, { seed: randomSeed, numRuns: 25 })
})
