/**
 * Connections are shared: a flood to one endpoint, with one key or without any leaves
 * management and workers reachable.
 */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { balancedEndpoint, inNode } from '../support/balanced.ts'
import { ask, statusOf, submit } from '../support/client.ts'
import { openWires, type Wire } from '../support/flood.ts'
import { type RawWorker, type SilentEndpoint, silentEndpoint } from '../support/raw-worker.ts'
import { runCommand } from '../support/server.ts'
import { until } from '../support/until.ts'
import { type ProbedServer, startProbedServer } from './probed-server.ts'
import { idleEndpoint, makeTenant, type Tenant } from './tenant.ts'

/** `--max-connections` of the server. */
const MOST = 64

async function end(wires: readonly Wire[]): Promise<void> {
  for (const { socket } of wires) socket.destroy()
  await Promise.all(wires.map(({ closed }) => closed))
}

describe('a flood of connections', () => {
  let server: ProbedServer
  let endpoint: SilentEndpoint
  let worker: RawWorker
  let mean: Tenant
  let other: Tenant

  before(async () => {
    server = await startProbedServer({ args: ['--max-connections', String(MOST), '--rate-limits', 'off'] })
    endpoint = await silentEndpoint(server, 1)
    worker = await endpoint.worker()
    mean = await makeTenant(server, 'Mean')
    other = await makeTenant(server, 'Other')
    server.forgetHolds()
  })

  /** Calls of operators and workers, which must work during a flood. */
  async function assertReachable(): Promise<void> {
    const { status } = await ask(server, '/v2/serverless')
    assert.equal(status, 200)
    assert.equal((await ask(server, '/graphql', { body: { query: '{ myself { id } }' } })).status, 200)
    assert.equal((await worker.ping()).status, 200)
    assert.equal((await ask(server, '/healthz')).status, 200)
  }

  test('held with the key of one account leaves job operations to other accounts', async () => {
    const meanEndpoint = await idleEndpoint(mean)
    const held = await submit(mean, meanEndpoint, {})
    const head = `GET /v2/${meanEndpoint}/status-sync/${held}?wait=60000 HTTP/1.1\r\nhost: localhost\r\nauthorization: ${mean.apiKey}\r\n\r\n`
    const wires = await openWires(server, MOST * 2, head)
    const isRefused = ({ received, isClosed }: Wire) => received() !== '' || isClosed()
    await until('those to be refused that are too many', () => wires.filter(isRefused).length >= MOST)
    const otherEndpoint = await idleEndpoint(other)
    const job = await submit(other, otherEndpoint, {})
    assert.equal((await statusOf(other, otherEndpoint, job)).status, 'IN_QUEUE')
    await assertReachable()
    assert.ok(wires.some(({ received }) => /^HTTP\/1\.1 (429|503) /.test(received())))
    await end(wires)
  })

  test('without a key, whose bodies do not come, leaves management and workers reachable', async () => {
    const head =
      'POST /graphql HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n'
    const wires = await openWires(server, MOST * 2, head)
    await until('some of them to be refused', () => wires.some(({ received }) => received().includes(' 503 ')))
    await assertReachable()
    await end(wires)
  })

  test('of strangers who only look like management leaves management and workers reachable', async () => {
    const looks = [
      'POST /graphql HTTP/1.1\r\nhost: localhost\r\nx-runyard-console: 1',
      'POST /graphql HTTP/1.1\r\nhost: localhost\r\nauthorization: ',
      'POST /graphql HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ',
      'POST /graphql?api_key= HTTP/1.1\r\nhost: localhost',
      'POST /healthz/../graphql HTTP/1.1\r\nhost: localhost',
      'POST /ops/%2e%2e/graphql HTTP/1.1\r\nhost: localhost',
      'POST /console/session HTTP/1.1\r\nhost: console.localhost\r\norigin: ORIGIN\r\nx-runyard-console: 1',
    ]
    const origin = `http://console.localhost:${server.port}`
    for (const look of looks) {
      const head = `${look.replace('ORIGIN', origin)}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n`
      const wires: Wire[] = []
      // A few at a time: the server closes connections that have sent nothing yet to make room.
      while (wires.length < MOST * 2) {
        wires.push(...(await openWires(server, 16, head)))
        // Its connection of the time before may be one that was closed.
        await ask(server, '/healthz').catch(() => null)
      }
      await assertReachable()
      await end(wires)
    }
  })

  test('with a key to management holds no place that others need there', async () => {
    const head = `POST /graphql HTTP/1.1\r\nhost: localhost\r\nauthorization: ${mean.apiKey}\r\ncontent-length: 100\r\n\r\n`
    const anonymous = await openWires(
      server,
      MOST,
      'POST /graphql HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n',
    )
    const wires = await openWires(server, MOST * 2, head)
    await until('some of them to be refused', () => wires.some(({ received }) => received() !== ''))
    await assertReachable()
    await end([...anonymous, ...wires])
  })

  test('to one load-balancing endpoint leaves management, workers and job operations reachable', async () => {
    const { id } = await balancedEndpoint(server, { ...inNode, workers: { max: 1 } })
    const head = `POST /lb/${id}/ HTTP/1.1\r\nhost: localhost\r\nauthorization: ${server.apiKey}\r\ncontent-length: 100\r\n\r\n`
    const wires = await openWires(server, MOST * 2, head)
    await until('some of them to be refused', () => wires.some(({ received }) => received().includes(' 503 ')))
    await assertReachable()
    const job = await submit(server, endpoint.id, {})
    assert.ok(job)
    await end(wires)
  })

  test('nothing of it held the loop', () => server.assertNeverHeld())
})

test('from one address is bounded, where that address is not the machine itself', async () => {
  const { sharedAddresses } = await import('../../../src/server/shares.ts')
  const isShared = sharedAddresses(['10.1.0.0/16', 'fd00::1'])
  const asked = ['127.0.0.1', '::1', '10.1.2.3', 'fd00::1', '::ffff:127.0.0.1', '10.2.0.1', 'fd00::2']
  assert.deepEqual(asked.map(isShared), [true, true, true, true, true, false, false])
})

describe('--admin-port', () => {
  test('has management for itself, which a flood of the public port does not reach, and commands find it', async () => {
    const args = ['--max-connections', String(MOST), '--admin-port', '0']
    const server = await startProbedServer({ args })
    const { managementUrl } = server
    assert.notEqual(managementUrl, server.url)
    const admin = { ...server, url: managementUrl }
    for (const path of ['/v2/serverless', '/graphql', '/metrics', '/healthz', '/ops/top', '/v1/endpoints']) {
      assert.equal((await ask(server, path)).status, 404, path)
      assert.notEqual((await ask(admin, path)).status, 404, path)
    }
    const endpoint = await silentEndpoint(admin, 1)
    const worker = await endpoint.worker()
    const wires = await openWires(server, MOST * 4)
    assert.equal((await ask(admin, '/v2/serverless')).status, 200)
    await end(wires)
    assert.equal((await ask(admin, '/lb/abc/')).status, 404)
    const job = await submit(server, endpoint.id, {})
    assert.equal((await worker.take()).id, job)
    assert.equal((await worker.done(job, { output: 1 })).status, 200)
    const listed = await runCommand(['endpoints', 'list', '--json', '--data-dir', server.dataDir])
    assert.equal(listed.code, 0, listed.stderr)
    assert.match(listed.stdout, new RegExp(endpoint.id))
    const read = await runCommand(['jobs', 'get', job, '--endpoint', endpoint.id, '--data-dir', server.dataDir])
    assert.match(read.stdout, /COMPLETED/)
    server.assertNeverHeld()
  })
})
