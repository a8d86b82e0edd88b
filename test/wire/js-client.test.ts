/** The official JavaScript client against a real server and a real worker. */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import runpodSdk from 'runpod-sdk'
import { makeEndpoint, submit, whenFinal, whenStatus } from './support/client.ts'
import { root, type Server, startServer } from './support/server.ts'
import { timed } from './support/until.ts'

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
    assert.ok(ms < 1_000)
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
