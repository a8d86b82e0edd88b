import assert from 'node:assert/strict'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { atOnce, bench, Child, final, fixture, until } from './support/bench.ts'
import { Stub } from './support/stub.ts'

describe('shutting down', atOnce, () => {
  it('exits with 0 as soon as the platform releases its open poll', async t => {
    const { stub, child } = await bench(t, { rules: { holdMs: 600 } })
    await until('both polls', () => stub.of('job-take')[0] && stub.of('job-stop')[0])
    const { code, ms } = await child.end('SIGTERM')
    assert.equal(code, 0)
    assert.ok(ms < 1900, `it took ${ms} ms`)
  })

  it('exits with 0 within seconds when the platform holds on to the poll', async t => {
    const { stub, child } = await bench(t)
    const take = await until('a take', () => stub.of('job-take')[0])
    const { code, ms } = await child.end('SIGTERM')
    assert.equal(code, 0)
    assert.ok(ms < 8000, `it took ${ms} ms`)
    await until('the stub to notice', () => take.gone)
  })

  it('finishes and delivers the job that is running, taking no other', async t => {
    const { stub, child } = await bench(t, { jobs: [{ do: 'sleep', ms: 3000 }, { do: 'echo' }] })
    await until('the job to run', () => stub.of('ping').find(ping => ping.query.get('job_id') === 'j1'))
    assert.equal((await child.end('SIGTERM')).code, 0)
    assert.deepEqual(stub.bodies('job-done', 'j1'), [{ output: 'slept' }])
    assert.equal(stub.takes().length, 1)
  })

  it('runs a job that is handed out on the poll still open', async t => {
    const { stub, child } = await bench(t)
    await until('a take', () => stub.of('job-take')[0])
    const ended = child.end('SIGTERM')
    await sleep(300)
    stub.queue({ id: 'late', input: { do: 'sleep', ms: 100 } })
    assert.deepEqual(await final(stub, 'late'), { output: 'slept' })
    assert.equal((await ended).code, 0)
    assert.equal(stub.takes().length, 1)
  })

  it('runs a job whose answer crosses the withdrawal of the poll', async t => {
    const asked: string[] = []
    const send = (socket: Socket, body: string) =>
      socket.write(`HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    const server = createServer({ allowHalfOpen: true }, socket => {
      socket.on('error', () => {})
      socket.on('data', data => {
        const text = data.toString()
        asked.push(text)
        if (text.includes('/job-take/'))
          socket.prependListener('end', () => send(socket, '{"id":"crossed","input":{}}'))
        else if (!text.includes('/job-stop/')) send(socket, '{}')
      })
      socket.on('end', () => socket.end())
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    t.after(() => server.close())
    const stub = new Stub()
    stub.port = (server.address() as AddressInfo).port
    const child = new Child([fixture], stub.env())
    await until('a take', () => asked.some(text => text.includes('/job-take/')))
    assert.equal((await child.end('SIGTERM')).code, 0)
    assert.ok(asked.some(text => text.includes('/job-done/w-1/crossed')))
  })

  it('can still be told to cancel a job while it finishes', async t => {
    const { stub, child } = await bench(t, { jobs: [{ do: 'untilCancelled' }] })
    await until('the job to run', () => stub.of('ping').find(ping => ping.query.get('job_id') === 'j1'))
    const ended = child.end('SIGTERM')
    await sleep(100)
    stub.stop('j1')
    assert.equal((await ended).code, 0)
  })

  for (const [signal, code] of [
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ] as const) {
    it(`exits at once, with ${code}, on a second ${signal}`, async t => {
      const { stub, child } = await bench(t, { jobs: [{ do: 'sleep', ms: 30_000 }] })
      await until('the job to run', () => stub.of('ping').find(ping => ping.query.get('job_id') === 'j1'))
      child.process.kill('SIGTERM')
      await until('the first to be seen', () => child.stdout.includes('SIGTERM'))
      const ended = await child.end(signal)
      assert.equal(ended.code, code)
      assert.ok(ended.ms < 5000, `it took ${ended.ms} ms`)
    })
  }
})
