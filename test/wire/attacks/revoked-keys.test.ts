/**
 * A key that is revoked, disabled, narrowed or expired holds nothing open: no stream, no socket, no call that waits.
 */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { type Balanced, balancedEndpoint, inNode } from '../support/balanced.ts'
import { ask, statusOf, submit } from '../support/client.ts'
import { openWires, type Wire } from '../support/flood.ts'
import { type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { idleEndpoint } from './tenant.ts'

interface Key {
  readonly id: string
  readonly key: string
}

describe('what a key holds open', () => {
  let server: Server
  let balanced: Balanced
  let queue: string

  before(async () => {
    server = await startServer()
    balanced = await balancedEndpoint(server, { ...inNode, requestCount: 100, workers: { min: 1, max: 1 } })
    queue = await idleEndpoint({ ...server, account: '' })
  })

  async function makeKey(more: object = {}): Promise<Key> {
    const { json, text } = await ask(server, '/v2/account/keys', { body: { name: 'held', ...more } })
    assert.ok(json?.key, text)
    return json
  }

  /**
   * Sends a request with the key, and waits until something of its answer has come, or until
   * it is waiting for certain.
   */
  async function hold({ key }: Key, line: string, more = ''): Promise<Wire> {
    const head = `${line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n${more}`
    const [wire] = await openWires(server, 1, `${head}${/^POST/.test(line) ? '' : '\r\n'}`)
    return wire!
  }

  /** Streams and a socket, each of which has begun. */
  async function holdStreams(key: Key): Promise<Wire[]> {
    const job = await submit(server, queue, {})
    const close = 'Connection: close\r\n'
    const wires = await Promise.all([
      hold(key, `GET /v2/${queue}/stream/${job}`, `Accept: text/event-stream\r\n${close}`),
      hold(key, `GET /lb/${balanced.id}/steps?n=2`, close),
      hold(key, `GET /lb/${balanced.id}/`, 'Connection: Upgrade\r\nUpgrade: echo\r\n'),
    ])
    await until('streams to have begun', () => wires.every(({ received }) => /^HTTP\/1.1 (200|101) /.test(received())))
    return wires
  }

  const allEnded = (wires: readonly Wire[]) =>
    until('all to have ended', () => wires.every(({ isClosed }) => isClosed()), 5_000)

  test('ends when the key is revoked: streams, sockets, requests to workers; a call that waits is refused', async () => {
    const key = await makeKey()
    const operator = await makeKey()
    const wires = await holdStreams(key)
    const others = await holdStreams(operator)
    const job = await submit(server, queue, {})
    const logs = hold(key, `GET /ops/logs/${queue}?follow=1`, 'Connection: close\r\n')
    const waits = hold(key, `GET /lb/${balanced.id}/wait?ms=600000`)
    const body = JSON.stringify({ input: { of: 'a revoked key' } })
    const runsync = ask({ ...server, apiKey: key.key }, `/v2/${queue}/runsync?wait=300000`, { body })
    const statusSync = ask({ ...server, apiKey: key.key }, `/v2/${queue}/status-sync/${job}?wait=300000`)
    const inQueue = async () => (await ask(server, `/v2/${queue}/requests`)).json.requests.length
    await until('the job of the call that waits', async () => (await inQueue()) === 4)
    const revoked = await ask(server, `/v2/account/keys/${key.id}`, { method: 'DELETE' })
    assert.equal(revoked.status, 204)
    for (const refused of [await runsync, await statusSync]) {
      assert.equal(refused.status, 401)
      assert.deepEqual(refused.json, { error: 'the API key is invalid or has expired' })
    }
    await allEnded([...wires, await logs, await waits])
    assert.ok(others.every(({ isClosed }) => !isClosed()))
    assert.equal((await statusOf(server, queue, job)).status, 'IN_QUEUE')
    assert.equal(await inQueue(), 4)
    for (const { socket } of others) socket.destroy()
  })

  test('ends when the key is disabled, and when it loses the right to the endpoints', async () => {
    for (const body of [{ disabled: true }, { scope: { type: 'restricted', management: 'write', jobs: 'none' } }]) {
      const key = await makeKey()
      const wires = await holdStreams(key)
      const changed = await ask(server, `/v2/account/keys/${key.id}`, { method: 'PATCH', body })
      assert.equal(changed.status, 200, changed.text)
      await allEnded(wires)
    }
  })

  test('ends when the key expires', async () => {
    const key = await makeKey({ expiresAt: new Date(Date.now() + 4_000).toISOString() })
    await allEnded(await holdStreams(key))
  })
})
