/** Clients that are slow or silent: they are cut off after a while, and the server serves others at the same time. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { patient } from '../../support/patience.ts'
import { floodable, MAX_MEMORY_MB, MAX_RESPONSE_MS, openWires, type Wire, whileServing } from '../support/flood.ts'
import { until } from '../support/until.ts'

// Each of these waits for half a minute, so they wait together.
describe('slow and silent clients', { concurrency: true }, () => {
  test('bodies at a byte a second are cut off after half a minute; a slow but steady one comes through', async () => {
    const { server, endpoint } = await floodable()
    const head = (length: number) =>
      `POST /v2/${endpoint}/run HTTP/1.1\r\nhost: localhost\r\nauthorization: ${server.apiKey}\r\ncontent-length: ${length}\r\n\r\n`
    const wires = await openWires(server, 500, head(10_000))
    const [steady] = (await openWires(server, 1, head(24_000))) as [Wire]
    const text = JSON.stringify({ input: { x: 'x'.repeat(23_982) } })
    assert.equal(text.length, 24_000)
    let second = 0
    const ticker = setInterval(() => {
      for (const { socket } of wires) socket.write('x')
      if (second < 30) steady.socket.write(text.slice(second * 800, (second + 1) * 800))
      second += 1
    }, 1_000)
    const { peakMb, worstMs } = await whileServing(server, endpoint, async () => {
      await until('all to be cut off', () => wires.every(({ isClosed }) => isClosed()), 45_000)
      assert.ok(second >= 19, `they were cut off after ${second} s`)
      await until('the steady one', () => steady.received().includes('\r\n\r\n'), 60_000)
    })
    clearInterval(ticker)
    assert.match(steady.received(), /^HTTP\/1\.1 200 /)
    assert.ok(peakMb < MAX_MEMORY_MB, `${Math.round(peakMb)} MB`)
    assert.ok(worstMs < patient(MAX_RESPONSE_MS), `${Math.round(worstMs)} ms`)
    steady.socket.destroy()
  })

  test('headers at a byte a second, and silent connections, get 408 after half a minute', async () => {
    const { server, endpoint } = await floodable()
    const slow = await openWires(server, 500, 'GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-slow: ')
    const silent = await openWires(server, 500)
    const ticker = setInterval(() => {
      for (const { socket } of slow) socket.write('x')
    }, 1_000)
    const { worstMs } = await whileServing(server, endpoint, () =>
      until('all to be closed', () => [...slow, ...silent].every(({ isClosed }) => isClosed()), 50_000),
    )
    clearInterval(ticker)
    for (const wire of [...slow, ...silent]) assert.match(wire.received(), /^HTTP\/1\.1 408 |^$/)
    assert.ok(slow.some(wire => wire.received().startsWith('HTTP/1.1 408 ')))
    assert.ok(worstMs < patient(MAX_RESPONSE_MS), `${Math.round(worstMs)} ms`)
  })
})
