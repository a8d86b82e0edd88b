import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { JoinedResults } from '../src/joined-results.ts'
import { atOnce, bench, until } from './support/bench.ts'
import type { Call, Stub } from './support/stub.ts'

const jobs = [0, 0, 50, 50].map(ms => ({ do: 'sleep', ms }))
const options = { concurrency: 4 }

/** The jobs of a call with several results. */
const idsOf = ({ body }: Call) => body.split('\n').filter((_, line) => line % 2 === 0)
const accepted = (call: Call) => ({ status: 200, body: idsOf(call).map(() => 200) })

/** The jobs whose results came, alone or together. */
const delivered = (stub: Stub) =>
  new Set([...stub.of('job-done').map(({ jobId }) => jobId), ...stub.of('job-done-batch').flatMap(idsOf)])

describe('results that are ready at the same time', atOnce, () => {
  it('go in one call where the platform has one', async t => {
    const echoes = Array(4).fill({ do: 'echo' })
    const { stub } = await bench(t, { jobs: echoes, options, joins: true, rules: { 'job-done-batch': accepted } })
    await until('all results', () => delivered(stub).size === 4)
    const [call] = stub.of('job-done-batch')
    assert.equal(call?.url, '/v2/ep1/job-done-batch/w-1?gpu=NVIDIA+L4')
    assert.equal(call.body, ['j1', 'j2', 'j3', 'j4'].map(id => `${id}\n{"output":{"echo":{"do":"echo"}}}`).join('\n'))
    assert.deepEqual(stub.of('job-done'), [])
    assert.equal(call.headers['x-request-id'], undefined)
  })

  it('go one by one on another platform', async t => {
    const { stub } = await bench(t, { jobs, options })
    await until('all results', () => delivered(stub).size === 4)
    assert.deepEqual(stub.of('job-done-batch'), [])
  })

  for (const [program, status] of [
    ['relay', 404],
    ['server', 401],
  ] as const) {
    it(`go one by one from then on where a ${program} of an earlier version does not know the call`, async t => {
      const rules = { 'job-done-batch': () => ({ status, body: { error: 'unknown' } }) }
      const echoes = Array(8).fill({ do: 'echo' })
      const { stub } = await bench(t, { jobs: echoes, options, joins: true, rules })
      await until('all results', () => new Set(stub.of('job-done').map(({ jobId }) => jobId)).size === 8)
      assert.equal(stub.of('job-done-batch').length, 1)
      assert.equal(stub.of('job-done').length, 8)
    })
  }

  it('are offered again without those that were accepted', async t => {
    const rules = {
      'job-done-batch': (call: Call, count: number) => ({
        status: 200,
        body: idsOf(call).map(id => (id === 'j1' && count === 1 ? 503 : 200)),
      }),
    }
    const { stub } = await bench(t, { jobs: Array(3).fill({ do: 'echo' }), options, joins: true, rules })
    await until('the second attempt', () => stub.of('job-done', 'j1')[0])
    assert.deepEqual(stub.of('job-done-batch').map(idsOf), [['j1', 'j2', 'j3']])
    assert.equal(stub.of('job-done').length, 1)
  })

  it('are offered again when their connection is cut', async t => {
    const rules = {
      'job-done-batch': (call: Call, count: number) => (count === 1 ? { status: 500 } : accepted(call)),
    }
    const { stub } = await bench(t, { jobs: Array(3).fill({ do: 'echo' }), options, joins: true, rules })
    await until('each alone', () => new Set(stub.of('job-done').map(({ jobId }) => jobId)).size === 3)
  })
})

it('the result of the only job of a worker waits for no other', () => {
  const urls: string[] = []
  const client = {
    send: ({ url }: { url: string }) => {
      urls.push(url)
      return new Promise<never>(() => {})
    },
  }
  let isAlone = true
  const results = new JoinedResults(client, 'http://platform/together', () => isAlone)
  const send = (jobId: string) => void results.send({ url: jobId, jobId, body: '{}', timeoutMs: 1000 })
  send('j1')
  assert.deepEqual(urls, ['j1'])
  isAlone = false
  send('j2')
  isAlone = true
  send('j3')
  assert.deepEqual(urls, ['j1'], 'the third goes with the second')
})
