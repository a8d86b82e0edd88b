import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { toJson } from '../src/json.ts'
import { encodeResult } from '../src/result.ts'
import { version } from '../src/version.ts'
import { atOnce, bench, final, until } from './support/bench.ts'

describe('results', atOnce, () => {
  it('delivers what the handler returned, with the headers and query the platform expects', async t => {
    const { stub } = await bench(t, { jobs: [{ do: 'echo', text: 'wörld' }] })
    assert.deepEqual(await final(stub, 'j1'), { output: { echo: { do: 'echo', text: 'wörld' } } })
    const [take] = stub.of('job-take')
    assert.equal(take?.url, '/v2/ep1/job-take/w-1?gpu=NVIDIA+L4&job_in_progress=0')
    assert.equal(take?.headers.authorization, 'WORKERSECRET')
    assert.match(take?.headers['user-agent'] ?? '', /^Runyard-Worker-SDK\/\d+\.\d+\.\d+ \(\w+; \w+\) Language\/Node 2/)
    const [done] = stub.of('job-done')
    assert.equal(done?.url, '/v2/ep1/job-done/w-1/j1?gpu=NVIDIA+L4&isStream=false')
    assert.match(done?.body ?? '', /wörld/)
    assert.equal(done?.headers['x-request-id'], 'j1')
  })

  it('turns each kind of returned value into the body the protocol has for it', async t => {
    const jobs = ['nothing', 'empty', 'errorObject', 'refresh', 'big'].map(name => ({ do: name }))
    const { stub } = await bench(t, { jobs })
    assert.deepEqual(await final(stub, 'j1'), { output: null })
    assert.deepEqual(await final(stub, 'j2'), {})
    assert.deepEqual(await final(stub, 'j3'), { error: { code: 7 }, output: { kept: 1 } })
    assert.deepEqual(await final(stub, 'j4'), { output: { done: true }, stopPod: true })
    await final(stub, 'j5')
    assert.equal(stub.of('job-done', 'j5')[0]?.body, '{"output":{"exact":12345678901234567890}}')
  })

  it('reports a thrown error with its type, message, traceback, cause and worker', async t => {
    const { stub } = await bench(t, { jobs: [{ do: 'throw' }] })
    const { error } = await final(stub, 'j1')
    const report = JSON.parse(String(error))
    assert.equal(report.error_type, 'RangeError')
    assert.equal(report.error_message, 'too far')
    assert.match(report.error_traceback, /handler\.mjs[\s\S]*Caused by: Error: the map ends/)
    assert.equal(report.hostname, 'w-1-00c0ffee')
    assert.equal(report.worker_id, 'w-1')
    assert.equal(report.runpod_version, version)
  })

  it('leaves what a handler throws in its log, with the job, and nothing of one whose job was withdrawn', async t => {
    const env = { RUNPOD_ENDPOINT_ID: 'ep1' }
    const { stub, child } = await bench(t, { jobs: [{ do: 'throw' }, { do: 'chat' }], env })
    await final(stub, 'j2')
    await until('all lines', () => child.stdout.includes('from log'))
    const [thrown] = child.logLines() as { requestId: string; message: string; level: string }[]
    assert.deepEqual([thrown?.requestId, thrown?.level], ['j1', 'ERROR'])
    assert.match(
      thrown?.message ?? '',
      /^RangeError: too far\n {4}at .*handler\.mjs[\s\S]*Caused by: Error: the map ends/,
    )
  })

  it('fails a job whose output JSON cannot hold, saying why, and goes on with the next', async t => {
    const { stub } = await bench(t, { jobs: [{ do: 'circular' }, { do: 'method' }, { do: 'echo' }] })
    assert.match(String((await final(stub, 'j1')).error), /cannot be sent as JSON.*circular/)
    assert.match(String((await final(stub, 'j2')).error), /run.* is a function/)
    assert.ok((await final(stub, 'j3')).output)
  })

  it('sends progress updates in order and all of them before the result', async t => {
    // Each answer is faster than the previous one, so parallel posts would overtake each other.
    const slow = (_: unknown, count: number) => ({ status: 200, body: {}, afterMs: 70 - 10 * count })
    const { stub } = await bench(t, { jobs: [{ do: 'progress' }], rules: { 'job-done': slow } })
    await final(stub, 'j1')
    const update = (step: number) => ({ status: 'IN_PROGRESS', output: { step } })
    assert.deepEqual(stub.bodies('job-done', 'j1'), [...[1, 2, 3, 4, 5].map(update), { output: 'complete' }])
  })

  it('exits by itself after one job, result marked, when every job is to get a fresh worker', async t => {
    const { stub, child } = await bench(t, { jobs: [{ do: 'echo' }, { do: 'echo' }], options: { refreshWorker: true } })
    assert.equal((await final(stub, 'j1')).stopPod, true)
    assert.equal((await child.ended).code, 0)
    assert.equal(stub.of('job-take').length, 1)
  })

  it('logs JSON lines that name the job, from console.log as well', async t => {
    const env = { RUNPOD_ENDPOINT_ID: 'ep1' }
    const { stub, child } = await bench(t, { jobs: [{ do: 'chat' }], env })
    await final(stub, 'j1')
    await until('both lines', () => child.stdout.includes('from log'))
    assert.deepEqual(child.logLines(), [
      { requestId: 'j1', message: 'from console', level: 'INFO' },
      { requestId: 'j1', message: 'from log', level: 'INFO' },
    ])
  })

  it('states the version of the package', () => {
    const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
    assert.equal(version, JSON.parse(text).version)
  })
})

describe('result encoding', () => {
  it('keeps strings that look like numbers apart from BigInts', () => {
    assert.equal(toJson({ a: 10n, b: '10', c: [-3n] }), '{"a":10,"b":"10","c":[-3]}')
  })

  it('refuses what JSON.stringify would drop or empty', () => {
    for (const lost of [() => 1, Symbol('s'), new Map([[1, 2]]), new Set([1]), Promise.resolve(1)]) {
      assert.throws(() => toJson({ deep: [lost] }), /cannot be sent as JSON/)
    }
  })

  it('treats a falsy error as none and leaves other objects as they serialise themselves', () => {
    assert.equal(encodeResult({ error: '', a: 1 }, false).text, '{"output":{"a":1}}')
    assert.equal(encodeResult({ error: null }, false).text, '{}')
    assert.equal(encodeResult(new Date(0), false).text, '{"output":"1970-01-01T00:00:00.000Z"}')
    assert.equal(encodeResult([], false).text, '{"output":[]}')
  })
})
