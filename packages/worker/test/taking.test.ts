import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ClientRequest } from 'node:http'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { readConfig } from '../src/config.ts'
import { Worker } from '../src/worker.ts'
import { atOnce, bench, final, until } from './support/bench.ts'
import { Stub } from './support/stub.ts'

describe('taking jobs', atOnce, () => {
  it('takes the next job as soon as one is done', async t => {
    const { stub } = await bench(t, { jobs: Array(12).fill({ do: 'echo' }) })
    await final(stub, 'j12')
    const times = Array.from({ length: 12 }, (_, index) => stub.of('job-done', `j${index + 1}`)[0]!.at)
    const gaps = times.slice(1).map((at, index) => at - times[index]!)
    // The shortest pause between two of them would be 150 ms, between any two; a busy machine delays some of them.
    const [, , third] = gaps.toSorted((a, b) => a - b)
    assert.ok(third! < 140, `ms between results: ${gaps}`)
  })

  it('never runs more jobs at once than its concurrency, and that many when they are there', async t => {
    const jobs = Array(10).fill({ do: 'crowd', ms: 60 })
    const { stub } = await bench(t, { jobs, options: { concurrency: 4 } })
    const outputs = await Promise.all(jobs.map((_, index) => final(stub, `j${index + 1}`)))
    const most = outputs.map(({ output }) => (output as { most: number }).most)
    assert.equal(Math.max(...most), 4)
    const [first] = stub.takes()
    assert.equal(first?.url, '/v2/ep1/job-take-batch/w-1?gpu=NVIDIA+L4&batch_size=4&job_in_progress=0')
  })

  it('asks a concurrency function before every take', async t => {
    const jobs = Array(6).fill({ do: 'crowd', ms: 1000 })
    const { stub } = await bench(t, { jobs, options: { growTo: 3 } })
    const outputs = await Promise.all(jobs.map((_, index) => final(stub, `j${index + 1}`)))
    assert.equal(Math.max(...outputs.map(({ output }) => (output as { most: number }).most)), 3)
    assert.equal(stub.takes()[0]?.query.get('batch_size'), '2')
  })

  it('runs extra jobs one after the other when the platform sends more than was asked for', async t => {
    const extra = [1, 2, 3].map(n => ({ id: `x${n}`, input: { do: 'crowd', ms: 30 } }))
    const { stub } = await bench(t, {
      rules: { 'job-take': (_, count) => (count === 1 ? { status: 200, body: [...extra, { input: {} }] } : undefined) },
    })
    assert.deepEqual(await final(stub, 'x3'), { output: { most: 1 } })
  })

  it('pings behind the first take, which a job may wait for, and names the jobs it holds', async t => {
    const jobs = [1, 2].map(() => ({ do: 'sleep', ms: 700 }))
    const { stub } = await bench(t, { jobs, options: { concurrency: 2 } })
    const busy = await until('a busy ping', () => stub.of('ping').find(ping => ping.query.has('job_id')))
    assert.match(busy.url, /\/ping\/w-1\?gpu=NVIDIA\+L4&job_id=j1%2Cj2&runpod_version=\d/)
    const [first] = stub.of('ping')
    assert.ok(first !== undefined && first.at >= stub.takes()[0]!.at)
  })

  for (const joins of [true, false]) {
    it(`sends the results of quick handlers before the next take, ${joins ? 'several in one call' : 'each in a call'}`, async t => {
      const first = { status: 200, body: [1, 2].map(n => ({ id: `j${n}`, input: {} })) }
      const stub = new Stub({
        'job-take-batch': (_, count) => (count === 1 ? first : undefined),
        'job-done-batch': () => ({ status: 200, body: [200, 200] }),
      })
      await stub.listen()
      const sent: string[] = []
      const note = (message: unknown) => {
        const { request } = message as { request: ClientRequest }
        // Other tests run at the same time.
        if (request.getHeader('host') === `127.0.0.1:${stub.port}`) sent.push(request.path.split('/')[3]!)
      }
      subscribe('http.client.request.start', note)
      const { RUNPOD_WEBHOOK_PING: _, ...env } = stub.env(joins)
      const config = { ...readConfig(env), stopUrl: undefined }
      const worker = new Worker(config, { handler: () => 'quick', concurrency: 4, resultRetryMs: 0 })
      t.after(async () => {
        unsubscribe('http.client.request.start', note)
        worker.drain()
        await stub.close()
      })
      void worker.run()
      await until('a second take', () => stub.takes()[1])
      const results = joins ? ['job-done-batch'] : ['job-done', 'job-done']
      assert.deepEqual(sent, ['job-take-batch', ...results, 'job-take-batch'])
    })
  }

  it('waits as long as a 429 asks', async t => {
    const limited = { status: 429, headers: { 'Retry-After': '1' } }
    const { stub } = await bench(t, { rules: { 'job-take': (_, count) => (count === 1 ? limited : undefined) } })
    await until('a second take', () => stub.takes()[1])
    const gap = stub.takes()[1]!.at - stub.takes()[0]!.at
    assert.ok(gap > 950 && gap < 4000, `waited ${gap} ms`)
  })

  for (const status of [204, 404, 401, 500]) {
    it(`does not run in a busy loop against a platform that answers ${status} at once`, async t => {
      const refuse = () => ({ status })
      const { stub } = await bench(t, { rules: { 'job-take': refuse, 'job-stop': refuse } })
      await until('the first take', () => stub.takes()[0])
      await sleep(1000)
      assert.ok(stub.takes().length < 8, `${stub.takes().length} takes`)
      assert.ok(stub.of('job-stop').length < 8, `${stub.of('job-stop').length} stop polls`)
    })
  }

  it('asks again at once when a poll is ended early', async t => {
    const { stub } = await bench(t, {
      jobs: Array(8).fill({ do: 'echo' }),
      rules: { 'job-take': (_, count) => (count % 2 === 1 ? { status: 204 } : undefined) },
    })
    await final(stub, 'j8')
    const takes = stub.takes()
    const gaps = takes.flatMap(({ at }, index) => (index % 2 === 1 ? [at - takes[index - 1]!.at] : []))
    // The shortest pause is 150 ms; one of the gaps is shorter even on a busy machine.
    assert.ok(Math.min(...gaps) < 150, `waited ${gaps.join(', ')} ms`)
  })

  it('aborts the signal of a cancelled job, posts nothing for it and takes the next at once', async t => {
    const { stub } = await bench(t, { jobs: [{ do: 'untilCancelled' }] })
    await until('the job to run', () => stub.of('ping').find(ping => ping.query.get('job_id') === 'j1'))
    stub.stop('no-such-job')
    await until('the stop poll to be back', () => stub.of('job-stop')[1])
    assert.ok(stub.of('job-stop')[1]!.at - stub.of('job-stop')[0]!.at > 500, 'useless answers are not asked for again')
    stub.queue({ id: 'next', input: {} })
    const stopped = performance.now()
    stub.stop('j1')
    await final(stub, 'next')
    assert.ok(performance.now() - stopped < 900)
    assert.deepEqual(stub.bodies('job-done', 'j1'), [])
  })

  it('ends the generator of a cancelled stream', async t => {
    const { stub, child } = await bench(t, { jobs: [{ do: 'streamUntilCancelled' }] })
    await until('a chunk', () => stub.of('job-stream')[2])
    stub.stop('j1')
    await until('the generator to close', () => child.stdout.includes('generator closed'))
    await sleep(100)
    const chunks = stub.of('job-stream').length
    await sleep(100)
    assert.equal(stub.of('job-stream').length, chunks)
    assert.deepEqual(stub.of('job-done'), [])
  })
})
