import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { atOnce, bench, final } from './support/bench.ts'

const chunk = (index: number) => ({ output: { index } })

describe('streaming', atOnce, () => {
  it('posts each yielded value in order, then an empty list', async t => {
    const { stub } = await bench(t, { jobs: [{ do: 'stream', n: 20 }] })
    assert.deepEqual(await final(stub, 'j1'), { output: [] })
    assert.deepEqual(
      stub.bodies('job-stream', 'j1'),
      Array.from({ length: 20 }, (_, index) => chunk(index)),
    )
    assert.equal(stub.of('job-stream')[0]?.url, '/v2/ep1/job-stream/w-1/j1?gpu=NVIDIA+L4&isStream=false')
    assert.equal(stub.of('job-done')[0]?.query.get('isStream'), 'true')
  })

  it('delivers all values as the output too when asked to', async t => {
    const options = { returnAggregateStream: true }
    const { stub } = await bench(t, { jobs: [{ do: 'stream', n: 3 }], options })
    assert.deepEqual(await final(stub, 'j1'), { output: [{ index: 0 }, { index: 1 }, { index: 2 }] })
    assert.equal(stub.of('job-stream').length, 3)
  })

  it('fails the job when the generator throws, after the chunks it yielded', async t => {
    const { stub } = await bench(t, { jobs: [{ do: 'stream', n: 3, failAt: 1 }] })
    assert.equal(JSON.parse(String((await final(stub, 'j1')).error)).error_message, 'the stream broke')
    assert.deepEqual(stub.bodies('job-stream', 'j1'), [chunk(0)])
    assert.equal(stub.of('job-done')[0]?.query.get('isStream'), 'true')
  })

  it('fails the job when an error object is yielded, and does not stream that one', async t => {
    const { stub } = await bench(t, { jobs: [{ do: 'stream', n: 3, errorAt: 2 }] })
    assert.deepEqual(await final(stub, 'j1'), { error: 'bad chunk' })
    assert.equal(stub.of('job-stream').length, 2)
  })

  it('retries a chunk the platform could not store before it goes on', async t => {
    const { stub } = await bench(t, {
      jobs: [{ do: 'stream', n: 3 }],
      rules: { 'job-stream': (_, count) => (count === 2 ? { status: 503 } : undefined) },
    })
    assert.deepEqual(await final(stub, 'j1'), { output: [] })
    assert.deepEqual(stub.bodies('job-stream', 'j1'), [chunk(0), chunk(1), chunk(1), chunk(2)])
  })

  it('fails the job rather than leaving a hole in its stream', async t => {
    const { stub } = await bench(t, {
      jobs: [{ do: 'stream', n: 3 }],
      rules: { 'job-stream': (_, count) => (count === 2 ? { status: 413 } : undefined) },
    })
    assert.match(String((await final(stub, 'j1')).error), /chunk could not be delivered/)
  })
})
