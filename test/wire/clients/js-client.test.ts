/** The official JavaScript client against a real server and a real worker. */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import runpodSdk from 'runpod-sdk'
import { patient } from '../../support/patience.ts'
import { makeEndpoint, runJob, statusOf, submit, whenFinal, whenStatus } from '../support/client.ts'
import { type Gate, openGate } from '../support/gate.ts'
import { fixture, root, type Server, startServer } from '../support/server.ts'
import { sleep, timed } from '../support/until.ts'

const folder = `${root}/examples/hello-node`

describe('the official JavaScript client', () => {
  let server: Server
  let id: string

  before(async () => {
    server = await startServer()
    id = await makeEndpoint(server, { folder, settings: { workersMax: 1, idleTimeout: 3600 } })
  })

  const endpoint = (key = server.apiKey) => {
    const found = runpodSdk(key, { baseUrl: `${server.url}/v2` }).endpoint(id)
    assert.ok(found)
    return found
  }

  test('run gives an id, and status the output once the job is done', async () => {
    const { id: job, status } = await endpoint().run({ input: { name: 'Ada' } })
    assert.equal(status, 'IN_QUEUE')
    await whenFinal(server, id, job)
    const done = (await endpoint().status(job)) as unknown as Record<string, unknown>
    assert.deepEqual(
      [done.status, done.output, done.completed, done.succeeded],
      ['COMPLETED', { message: 'Hello, Ada!', sleptMs: 0 }, true, true],
    )
    assert.equal(typeof done.executionTime, 'number')
  })

  test('runSync gives the output', async () => {
    const done = await endpoint().runSync({ input: { name: 'Grace', sleepMs: 300 } })
    assert.deepEqual([done.status, done.output], ['COMPLETED', { message: 'Hello, Grace!', sleptMs: 300 }])
  })

  test('webhook, policy and the other fields of a request are taken', async () => {
    const policy = { executionTimeout: 60_000, ttl: 60_000, lowPriority: false }
    const s3Config = { accessId: 'a', accessSecret: 'b', bucketName: 'c', endpointUrl: 'http://127.0.0.1:9' }
    const { id: job } = await endpoint().run({ input: {}, policy, s3Config, webhookV2: 'x' })
    assert.equal((await whenFinal(server, id, job)).status, 'COMPLETED')
  })

  test('cancel ends a running job', async () => {
    const job = await submit(server, id, { sleepMs: 60_000 })
    await whenStatus(server, id, job, ['IN_PROGRESS'])
    const { value, ms } = await timed(() => endpoint().cancel(job))
    assert.deepEqual(value, { id: job, status: 'CANCELLED' })
    assert.ok(ms < patient(5_000), `it took ${ms} ms`)
    assert.equal((await endpoint().status(job)).status, 'CANCELLED')
  })

  test('health has the counters that its types name', async () => {
    const { jobs, workers } = await endpoint().health()
    for (const name of ['completed', 'failed', 'inProgress', 'inQueue', 'retried'] as const)
      assert.equal(typeof jobs[name], 'number')
    for (const name of ['idle', 'initializing', 'ready', 'running', 'throttled'] as const)
      assert.equal(typeof workers[name], 'number')
    assert.ok(jobs.completed >= 3)
  })

  test('a wrong key and an unknown job are thrown as errors', async () => {
    await assert.rejects(endpoint('rpa_wrong').run({ input: {} }), /401/)
    await assert.rejects(endpoint().status('nosuch'), /404/)
  })
})

describe('the rest of the official JavaScript client', () => {
  let server: Server
  let gate: Gate
  let id: string
  let balancer: string

  before(async () => {
    server = await startServer()
    gate = await openGate(server)
    const folder = fixture('node-everyday')
    id = await makeEndpoint(server, { folder, settings: { workersMax: 1, idleTimeout: 3600 } })
    balancer = await makeEndpoint(server, { folder, settings: { type: 'LB', workersMax: 0 } })
    await runJob(server, id, {})
  })

  const endpoint = (key = server.apiKey, of = id) => {
    const found = runpodSdk(key, { baseUrl: `${gate.url}/v2` }).endpoint(of)
    assert.ok(found)
    return found
  }

  async function numbers(job: string, timeoutMs = 0): Promise<number[]> {
    const seen: number[] = []
    for await (const { output } of endpoint().stream(job, timeoutMs)) seen.push(output.number)
    return seen
  }

  test('stream yields each chunk once and ends with the job, however it ends', async () => {
    const done = await submit(server, id, { n: 4, sleepMs: 100 })
    assert.deepEqual(await numbers(done), [0, 1, 2, 3])
    const broken = await submit(server, id, { n: 4, failAt: 2 })
    assert.deepEqual(await numbers(broken), [0, 1])
    const cancelled = await submit(server, id, { n: 100, sleepMs: 200 })
    const seen: number[] = []
    for await (const { output } of endpoint().stream(cancelled)) {
      seen.push(output.number)
      if (seen.length === 2) await endpoint().cancel(cancelled)
    }
    assert.ok(seen.length >= 2 && seen.length < 10, `${seen.length} chunks`)
    const whole = await submit(server, id, { a: 1 })
    assert.deepEqual(await numbers(whole), [])
  })

  test('a stream with a timeout of its own ends with that, and the job continues', async () => {
    const job = await submit(server, id, { n: 16, sleepMs: 400 })
    const { value, ms } = await timed(() => numbers(job, 2_000))
    assert.ok(value.length >= 1 && value.length < 16 && ms < patient(5_000), `${value.length} chunks in ${ms} ms`)
    assert.equal((await whenFinal(server, id, job)).status, 'COMPLETED')
  })

  test('statusSync waits for the end, and gives the job as it is when its time is over', async () => {
    const job = await submit(server, id, { sleepMs: 4_000, a: 1 })
    await whenStatus(server, id, job, ['IN_PROGRESS'])
    const early = (await endpoint().statusSync(job, 1_000)) as unknown as Record<string, unknown>
    assert.deepEqual([early.status, early.completed, early.succeeded], ['IN_PROGRESS', false, false])
    const { value, ms } = await timed(() => endpoint().statusSync(job))
    assert.ok(ms < patient(6_000), `it took ${ms} ms`)
    assert.deepEqual([value.status, 'output' in value && value.output], ['COMPLETED', { echo: { a: 1 } }])
  })

  test('runSync past its wait continues with statusSync; a failed job is answered with its error', async () => {
    gate.lines.length = 0
    gate.rule = line => (line.includes('/runsync') ? { path: `/v2/${id}/runsync?wait=1000` } : undefined)
    const done = await endpoint().runSync({ input: { sleepMs: 1_800, a: 1 } })
    gate.rule = () => undefined
    assert.deepEqual([done.status, done.output], ['COMPLETED', { echo: { a: 1 } }])
    assert.equal(gate.lines.filter(line => line.includes('/status-sync/')).length, 1)
    const failed = (await endpoint().runSync({ input: { fail: 'boom' } })) as unknown as Record<string, unknown>
    assert.deepEqual([failed.status, failed.completed, failed.succeeded], ['FAILED', true, false])
    assert.match(String(failed.error), /boom/)
  })

  test('runSync with a short timeout gives up waiting, and the job continues', async () => {
    const { value, ms } = await timed(() => endpoint().runSync({ input: { sleepMs: 4_000 } }, 1_000))
    const { id: job, status, completed } = value as unknown as Record<string, unknown>
    assert.deepEqual([status, completed], ['IN_PROGRESS', false])
    assert.ok(ms < patient(3_500), `it took ${ms} ms`)
    assert.equal((await whenFinal(server, id, String(job))).status, 'COMPLETED')
  })

  test('purgeQueue removes what waits', async () => {
    const running = await submit(server, id, { sleepMs: 60_000 })
    await whenStatus(server, id, running, ['IN_PROGRESS'])
    const waiting = await submit(server, id, {})
    assert.deepEqual(await endpoint().purgeQueue(), { removed: 1, status: 'completed' })
    assert.equal((await statusOf(server, id, waiting)).status, 'CANCELLED')
    assert.deepEqual(await endpoint().cancel(waiting), { id: waiting, status: 'CANCELLED' })
    await endpoint().cancel(running)
  })

  test('each refusal is thrown with its status', async () => {
    const { id: done } = await runJob(server, id, {})
    const wrong = endpoint('rpa_wrong')
    const calls: (readonly [status: number, call: () => Promise<unknown>])[] = [
      [401, () => wrong.run({ input: {} })],
      [401, () => wrong.runSync({ input: {} })],
      [401, () => wrong.status(done)],
      [401, () => wrong.statusSync(done)],
      [401, () => wrong.cancel(done)],
      [401, () => wrong.health()],
      [401, () => wrong.purgeQueue()],
      [401, () => wrong.stream(done).next()],
      [404, () => endpoint().status('nosuch')],
      [404, () => endpoint().statusSync('nosuch')],
      [404, () => endpoint().cancel('nosuch')],
      [404, () => endpoint().stream('nosuch').next()],
      [404, () => endpoint(server.apiKey, 'nosuch').run({ input: {} })],
      [400, () => endpoint().run({ input: null })],
      [400, () => endpoint(server.apiKey, balancer).run({ input: {} })],
      [409, () => endpoint().cancel(done)],
      [413, () => endpoint().run({ input: { text: 'x'.repeat(11_000_000) } })],
    ]
    for (const [status, call] of calls) await assert.rejects(call, (error: object) => statusOfError(error) === status)
  })

  test('429 is thrown at once, and an answer that comes too late after 3 s', async () => {
    gate.rule = () => ({ status: 429, headers: { 'retry-after': '1' }, body: '{"error":"too many requests"}' })
    await assert.rejects(endpoint().run({ input: {} }), (error: object) => statusOfError(error) === 429)
    gate.rule = () => sleep(5_000)
    const { ms } = await timed(() => assert.rejects(endpoint().health()))
    gate.rule = () => undefined
    assert.ok(ms > 2_800 && ms < patient(4_500), `it took ${ms} ms`)
    const job = await submit(server, id, {})
    assert.equal((await whenFinal(server, id, job)).status, 'COMPLETED')
  })
})

function statusOfError(error: { response?: { status?: number } }): number | undefined {
  return error.response?.status
}
