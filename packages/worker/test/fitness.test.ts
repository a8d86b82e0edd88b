import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as sdk from '../index.js'
import { atOnce, bench, Child, final, fixture } from './support/bench.ts'

const { registerFitnessCheck } = sdk as unknown as { registerFitnessCheck(check: unknown): void }

describe('fitness checks', atOnce, () => {
  it('run before the first take', async t => {
    const { stub, child } = await bench(t, { jobs: [{ do: 'echo' }], env: { WORKER_FITNESS: '[null, null]' } })
    await final(stub, 'j1')
    assert.equal(child.stdout.match(/fitness check passed: modelIsThere/g)?.length, 2)
    assert.ok(stub.of('ping').every(({ query }) => !query.has('status')))
  })

  it('report the first that fails to the platform, and exit with 1 without taking a job', async t => {
    const reason = 'no such model '.repeat(40)
    const env = { WORKER_FITNESS: JSON.stringify([null, reason, 'never run']) }
    const { stub, child } = await bench(t, { jobs: [{ do: 'echo' }], env })
    assert.equal((await child.ended).code, 1)
    assert.equal(stub.takes().length, 0)
    const [ping, ...others] = stub.of('ping')
    assert.equal(others.length, 0)
    const { status, check, reason: told, runpod_version } = Object.fromEntries(ping?.query ?? [])
    assert.deepEqual([status, check, runpod_version], ['unhealthy', 'modelIsThere', sdk.version])
    assert.equal(told, `RangeError: ${reason}`.slice(0, 256))
    assert.equal(ping?.headers.authorization, 'WORKERSECRET')
    assert.match(child.stdout, /ERROR \| fitness check failed: modelIsThere \| RangeError: no such model/)
  })

  it('exit also when the platform does not answer the report', async t => {
    const rules = { ping: () => ({ status: 200, afterMs: 60_000 }) }
    const { child } = await bench(t, { rules, env: { WORKER_FITNESS: '["gone"]' } })
    assert.equal((await child.ended).code, 1)
  })

  it('are not run without a platform', async () => {
    const child = new Child([fixture, '--test_input', '{"input": {"do": "echo"}}'], { WORKER_FITNESS: '["gone"]' })
    assert.equal((await child.ended).code, 0)
  })

  it('are refused where they are no function', () => {
    assert.throws(() => registerFitnessCheck('model'), /needs a function/)
  })
})
