import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { atOnce, bench, final, until } from './support/bench.ts'

describe('delivering results', atOnce, () => {
  it('keeps a result that the platform could not store and offers it again', async t => {
    const { stub } = await bench(t, {
      jobs: [{ do: 'echo' }],
      rules: { 'job-done': (_, count) => (count <= 2 ? { status: 503 } : undefined) },
    })
    await until('three attempts', () => stub.of('job-done')[2])
    assert.equal(new Set(stub.of('job-done').map(call => call.body)).size, 1)
  })

  it('keeps a result while the platform is down and works on afterwards', async t => {
    const { stub } = await bench(t, { jobs: [{ do: 'sleep', ms: 500 }] })
    await until('the job to run', () => stub.of('ping').find(ping => ping.query.get('job_id') === 'j1'))
    await stub.close()
    await sleep(3000)
    assert.deepEqual(stub.of('job-done'), [])
    await stub.listen()
    assert.deepEqual(await final(stub, 'j1'), { output: 'slept' })
    stub.queue({ id: 'next', input: {} })
    await final(stub, 'next')
  })

  it('gives up on a result that is refused for good, says so, and goes on', async t => {
    const { stub, child } = await bench(t, {
      jobs: [{ do: 'echo' }, { do: 'echo' }],
      rules: { 'job-done': call => (call.jobId === 'j1' ? { status: 400 } : undefined) },
    })
    await final(stub, 'j2')
    assert.equal(stub.of('job-done', 'j1').length, 1)
    assert.match(child.stdout, /ERROR \| j1 \| the result was not delivered: the platform answered 400/)
  })

  it('stops offering a result after the time it was given for that', async t => {
    const { stub, child } = await bench(t, {
      jobs: [{ do: 'echo' }, { do: 'echo' }],
      options: { resultRetryMs: 600 },
      rules: { 'job-done': call => (call.jobId === 'j1' ? { status: 500 } : undefined) },
    })
    await final(stub, 'j2')
    assert.ok(stub.of('job-done', 'j1').length >= 2)
    assert.match(child.stdout, /the result was not delivered: the platform answered 500/)
  })
})
