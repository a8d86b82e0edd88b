/**
 * Floods of connections: the memory of the server stays within stated bounds, and it serves others at the same time.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { patient } from '../../support/patience.ts'
import { ask, makeEndpoint } from '../support/client.ts'
import {
  floodable,
  MAX_MEMORY_MB,
  MAX_RESPONSE_MS,
  MB,
  memoryOf,
  openFilesOf,
  openWires,
  startBounded,
  type Wire,
  whileServing,
} from '../support/flood.ts'
import { silentEndpoint } from '../support/raw-worker.ts'
import { root } from '../support/server.ts'
import { sleep, timed, until } from '../support/until.ts'

describe('connections', () => {
  test('ten thousand that say nothing cost little, and others are served', async () => {
    const { server, endpoint } = await floodable()
    const before = memoryOf(server.pid)
    const { value, peakMb, worstMs } = await whileServing(server, endpoint, async () => {
      const wires = await openWires(server, 8_000)
      const kept = await openWires(server, 2_000, 'GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n')
      await until('the answers', () => kept.every(({ received }) => received().startsWith('HTTP/1.1 200 ')))
      assert.ok(openFilesOf(server.pid) >= 10_000)
      await sleep(2_000)
      return [...wires, ...kept]
    })
    assert.ok(value.every(({ isClosed }) => !isClosed()))
    assert.ok(peakMb - before < 300, `${Math.round(peakMb - before)} MB more`)
    assert.ok(worstMs < patient(MAX_RESPONSE_MS), `${Math.round(worstMs)} ms`)
    for (const { socket } of value) socket.destroy()
    await until('the connections to be gone', () => openFilesOf(server.pid) < 100)
  })

  test('beyond the most, the one that does nothing for longest makes room, those that never asked first', async () => {
    const { server, endpoint } = await floodable(['--max-connections', '100'])
    const [kept] = (await openWires(server, 1, 'GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n')) as [Wire]
    await until('its answer', () => kept.received().includes('200 OK'))
    const first = await openWires(server, 90)
    const { worstMs } = await whileServing(server, endpoint, async () => {
      for (let round = 0; round < 20; round += 1) await openWires(server, 50)
    })
    await until('the first to be closed', () => first.every(({ isClosed }) => isClosed()))
    assert.equal(kept.isClosed(), false, 'it has asked before, so it is not the first to go')
    assert.ok(openFilesOf(server.pid) < 200)
    assert.ok(worstMs < patient(MAX_RESPONSE_MS), `${Math.round(worstMs)} ms`)
  })

  test('when all are busy the next one gets 503', async () => {
    const { server, endpoint } = await floodable(['--max-connections', '64', '--max-connections-per-account', '64'])
    const { json } = await ask(server, `/v2/${endpoint}/run`, { body: { input: {} } })
    const head = `GET /v2/${endpoint}/status-sync/${json.id}?wait=60000 HTTP/1.1\r\nhost: localhost\r\n`
    const held: Wire[] = []
    while (held.length < 64) {
      held.push(...(await openWires(server, 1, `${head}authorization: ${server.apiKey}\r\n\r\n`)))
      await sleep(20)
    }
    const [refused] = (await openWires(server, 1, `${head}authorization: ${server.apiKey}\r\n\r\n`)) as [Wire]
    await refused.closed
    assert.match(refused.received(), /^HTTP\/1\.1 503 [\s\S]*retry-after: 5[\s\S]*too many connections/)
    assert.ok(held.every(({ isClosed }) => !isClosed()))
    held[0]!.socket.destroy()
    await until('room', async () => (await ask(server, '/healthz').catch(() => null))?.status === 200)
    assert.ok(server.events('connections are turned away because there are too many').length === 1)
  })

  test('too large headers are answered 431, many or long, thousands of times', async () => {
    const { server, endpoint } = await floodable()
    const many = Array.from({ length: 3_000 }, (_, n) => `x-${n}: 1\r\n`).join('')
    const { peakMb, worstMs } = await whileServing(server, endpoint, async () => {
      for (let round = 0; round < 4; round += 1) {
        for (const large of [`x-long: ${'x'.repeat(100_000)}\r\n`, many]) {
          const wires = await openWires(server, 250, `GET /healthz HTTP/1.1\r\nhost: localhost\r\n${large}\r\n`)
          await Promise.all(wires.map(({ closed }) => closed))
          for (const wire of wires) assert.match(wire.received(), /^HTTP\/1\.1 431 |^$/)
          assert.ok(wires.some(wire => wire.received().startsWith('HTTP/1.1 431 ')))
        }
      }
    })
    assert.ok(peakMb < MAX_MEMORY_MB, `${Math.round(peakMb)} MB`)
    assert.ok(worstMs < patient(MAX_RESPONSE_MS), `${Math.round(worstMs)} ms`)
  })
})

describe('requests that are held', () => {
  test('four thousand polls and a thousand streams at once cost little, and end when their clients go', async () => {
    const { server, endpoint } = await floodable()
    const before = memoryOf(server.pid)
    const { json } = await ask(server, `/v2/${endpoint}/run`, { body: { input: {} } })
    const get = (path: string, accept: string) =>
      `GET /v2/${endpoint}/${path} HTTP/1.1\r\nhost: localhost\r\naccept: ${accept}\r\nauthorization: ${server.apiKey}\r\n\r\n`
    const { value, peakMb, worstMs } = await whileServing(server, endpoint, async () => {
      const polls = await openWires(server, 4_000, get(`status-sync/${json.id}?wait=60000`, '*/*'))
      const streams = await openWires(server, 1_000, get(`stream/${json.id}`, 'text/event-stream'))
      await sleep(2_000)
      return [...polls, ...streams]
    })
    assert.ok(value.every(({ isClosed }) => !isClosed()))
    assert.ok(peakMb - before < 400, `${Math.round(peakMb - before)} MB more`)
    assert.ok(worstMs < patient(MAX_RESPONSE_MS), `${Math.round(worstMs)} ms`)
    const cancelled = await timed(() => ask(server, `/v2/${endpoint}/cancel/${json.id}`, { method: 'POST' }))
    assert.equal(cancelled.value.status, 200)
    await until('all to be told', () => value.slice(0, 4_000).every(({ received }) => received().includes('CANCELLED')))
    for (const { socket } of value) socket.destroy()
    await until('the connections to be gone', () => openFilesOf(server.pid) < 100)
  })

  test('unread responses are bounded in all', async () => {
    const server = await startBounded()
    const endpoint = await silentEndpoint(server, 1)
    const worker = await endpoint.worker()
    const idle = await makeEndpoint(server, { folder: `${root}/examples/hello-node`, settings: { workersMax: 0 } })
    await ask(server, `/v2/${endpoint.id}/run`, { body: { input: {} } })
    const job = await worker.take()
    assert.equal((await worker.done(job.id, `{"output":"${'x'.repeat(19 * MB)}"}`)).status, 200)
    const head = `GET /v2/${endpoint.id}/status/${job.id} HTTP/1.1\r\nhost: localhost\r\nauthorization: ${server.apiKey}\r\n\r\n`
    const { value, peakMb, worstMs } = await whileServing(server, idle, async () => {
      const wires: Wire[] = []
      // More in all than the memory that is allowed.
      for (let round = 0; round < 17; round += 1) {
        const some = await openWires(server, 5, head)
        for (const { socket } of some) socket.once('data', () => socket.pause())
        wires.push(...some)
        // As fast as answers begin, on however busy a machine.
        await until('the answers to begin', () => some.every(wire => wire.received() !== '' || wire.isClosed()))
      }
      return wires
    })
    assert.ok(peakMb < MAX_MEMORY_MB, `${Math.round(peakMb)} MB`)
    assert.ok(worstMs < patient(MAX_RESPONSE_MS), `${Math.round(worstMs)} ms`)
    for (const { socket } of value) socket.destroy()
    assert.equal((await ask(server, `/v2/${endpoint.id}/status/${job.id}`)).json.output.length, 19 * MB)
  })
})
