/** Floods of one kind each: what the server holds stays within stated bounds, and others are served meanwhile. */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { ask, healthOf, makeEndpoint } from './support/client.ts'
import { memoryOf, openFilesOf, openWires, sendLarge, type Wire, whileServing } from './support/flood.ts'
import { silentEndpoint } from './support/raw-worker.ts'
import { root, type Server, startServer } from './support/server.ts'
import { sleep, timed, until } from './support/until.ts'

const MB = 1024 * 1024
/** The longest that an ordinary run and a status together may take during a flood, on a small busy machine. */
const PATIENCE_MS = 8_000
/** `--max-body-memory` of these servers, in megabytes. */
const BODY_MB = 64
/** What they may need in all, in megabytes. */
const MOST_MB = 1_500
/** Without it most of the memory would be what the garbage collector has not got round to. A heap that is full ends the server. */
const HEAP = { NODE_OPTIONS: '--max-old-space-size=512' }

function startBounded(args: readonly string[] = []): Promise<Server> {
  const own = ['--max-body-memory', String(BODY_MB), '--log-level', 'warn']
  return startServer({ args: [...own, ...args], env: HEAP })
}

async function floodable(args: readonly string[] = []) {
  const server = await startBounded(args)
  const endpoint = await makeEndpoint(server, { folder: `${root}/examples/hello-node`, settings: { workersMax: 0 } })
  return { server, endpoint }
}

describe('bodies of 100 MB, twenty at once', () => {
  let server: Server
  let endpoint: string
  let files: number

  before(async () => {
    ;({ server, endpoint } = await floodable())
    files = openFilesOf(server.pid)
  })

  const routes: [name: string, path: () => string, status: string][] = [
    ['run', () => `/v2/${endpoint}/run`, '413'],
    ['runsync', () => `/v2/${endpoint}/runsync`, '413'],
    ['the OpenAI route', () => `/v2/${endpoint}/openai/v1/chat/completions`, '413'],
    ['GraphQL', () => '/graphql', '413'],
    ['REST', () => `/v2/serverless/${endpoint}`, '405'],
    ['job-done with no token of a worker', () => `/v2/${endpoint}/job-done/w/j`, '401'],
    ['a path that does not exist', () => '/nowhere', '404'],
  ]
  for (const [name, path, status] of routes) {
    for (const announced of [true, false]) {
      test(`${name} answers ${status} to each, ${announced ? 'announced' : 'in chunks'}`, async () => {
        const authorization = `Bearer ${server.apiKey}`
        const large = { path: path(), authorization, bytes: 100 * MB, announced }
        const { value, peakMb, worstMs } = await whileServing(server, endpoint, () => sendLarge(server, 20, large))
        assert.deepEqual(value, { [status]: 20 })
        assert.ok(peakMb < MOST_MB, `${Math.round(peakMb)} MB`)
        assert.ok(worstMs < PATIENCE_MS, `${Math.round(worstMs)} ms`)
      })
    }
  }

  test('afterwards no connection is left over', async () => {
    await until('the connections to be gone', () => openFilesOf(server.pid) <= files + 20, 20_000)
  })
})

describe('bodies that are just small enough, sixty at once', () => {
  let server: Server
  let endpoint: string

  before(async () => {
    ;({ server, endpoint } = await floodable())
  })

  const flood = (path: string, bytes: number) => {
    const large = { path, authorization: `Bearer ${server.apiKey}`, bytes, announced: false }
    return sendLarge(server, 60, { ...large, before: '{"input":{"x":"', after: '"}}' })
  }

  test('as many as there is room for are accepted, the others are told to come again', async () => {
    for (const [operation, bytes] of [
      ['run', 9 * MB],
      ['runsync?wait=1000', 19 * MB],
    ] as const) {
      const path = `/v2/${endpoint}/${operation}`
      const { value, peakMb, worstMs } = await whileServing(server, endpoint, () => flood(path, bytes))
      assert.deepEqual(Object.keys(value).sort(), ['200', '429'], JSON.stringify(value))
      assert.ok(peakMb < MOST_MB, `${Math.round(peakMb)} MB`)
      assert.ok(worstMs < PATIENCE_MS, `${Math.round(worstMs)} ms`)
    }
  })

  test('the room is free again: one more is accepted, and floods do not add up', async () => {
    for (let round = 0; round < 2; round += 1) await flood(`/v2/${endpoint}/run`, 9 * MB)
    const body = JSON.stringify({ input: { x: 'x'.repeat(9 * MB) } })
    assert.equal((await ask(server, `/v2/${endpoint}/run`, { body })).status, 200)
    assert.ok(memoryOf(server.pid) < MOST_MB, `${Math.round(memoryOf(server.pid))} MB`)
  })

  test('callers that wait for their jobs do not hold the inputs, half a gigabyte in all', async () => {
    const body = JSON.stringify({ input: { x: 'x'.repeat(5 * MB) } })
    const accepted = async () => (await healthOf(server, endpoint)).jobs.inQueue
    const callers = async () => {
      const waiting = []
      for (let sent = 0; sent < 100; sent += 5) {
        const before = await accepted()
        const path = `/v2/${endpoint}/runsync?wait=120000`
        waiting.push(...Array.from({ length: 5 }, () => ask(server, path, { body })))
        await until('these to be accepted', async () => (await accepted()) >= before + 5)
      }
      return waiting
    }
    const { value, peakMb } = await whileServing(server, endpoint, async () => ({ waiting: await callers() }))
    assert.ok(peakMb < MOST_MB, `${Math.round(peakMb)} MB`)
    const purge = () => ask(server, `/v2/${endpoint}/purge-queue`, { method: 'POST' })
    const purged = await whileServing(server, endpoint, purge)
    assert.ok(purged.peakMb < MOST_MB, `${Math.round(purged.peakMb)} MB at the purge`)
    assert.ok(purged.worstMs < PATIENCE_MS, `${Math.round(purged.worstMs)} ms at the purge`)
    const answers = await Promise.all(value.waiting)
    assert.deepEqual([...new Set(answers.map(({ json }) => json.status))], ['CANCELLED'])
  })
})

describe('results of workers, sixteen of 19 MB at once', () => {
  test('one without room in memory and on disk is answered 503, never 4xx, and is taken when it is sent again', async () => {
    const server = await startBounded(['--max-body-disk', '32'])
    const endpoint = await silentEndpoint(server, 1)
    const worker = await endpoint.worker()
    const idle = await makeEndpoint(server, { folder: `${root}/examples/hello-node`, settings: { workersMax: 0 } })
    for (let n = 0; n < 16; n += 1) await ask(server, `/v2/${endpoint.id}/run`, { body: { input: {} } })
    const jobs = await worker.takeBatch(16)
    assert.equal(jobs.length, 16)
    const body = `{"output":"${'x'.repeat(19 * MB)}"}`
    const post = async (job: string) => {
      for (let tries = 0; ; tries += 1) {
        const { status } = await worker.done(job, body)
        if (status === 200) return tries
        assert.equal(status, 503)
        await sleep(200)
      }
    }
    const flood = () => Promise.all(jobs.map(({ id }) => post(id)))
    const { value, peakMb, worstMs } = await whileServing(server, idle, flood)
    assert.ok(
      value.some(tries => tries > 0),
      'some had to come again',
    )
    assert.ok(peakMb < MOST_MB, `${Math.round(peakMb)} MB`)
    assert.ok(worstMs < PATIENCE_MS, `${Math.round(worstMs)} ms`)
    for (const { id } of jobs) {
      const { json } = await ask(server, `/v2/${endpoint.id}/status/${id}`)
      assert.equal(json.status, 'COMPLETED')
    }
  })
})

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
    assert.ok(peakMb < MOST_MB, `${Math.round(peakMb)} MB`)
    assert.ok(worstMs < PATIENCE_MS, `${Math.round(worstMs)} ms`)
    steady.socket.destroy()
  })

  test('headers at a byte a second, and connections that say nothing, are told 408 after half a minute', async () => {
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
    assert.ok(worstMs < PATIENCE_MS, `${Math.round(worstMs)} ms`)
  })
})

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
    assert.ok(worstMs < PATIENCE_MS, `${Math.round(worstMs)} ms`)
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
    assert.ok(worstMs < PATIENCE_MS, `${Math.round(worstMs)} ms`)
  })

  test('when all are busy the next one is told so with 503', async () => {
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
    assert.ok(peakMb < MOST_MB, `${Math.round(peakMb)} MB`)
    assert.ok(worstMs < PATIENCE_MS, `${Math.round(worstMs)} ms`)
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
    assert.ok(worstMs < PATIENCE_MS, `${Math.round(worstMs)} ms`)
    const cancelled = await timed(() => ask(server, `/v2/${endpoint}/cancel/${json.id}`, { method: 'POST' }))
    assert.equal(cancelled.value.status, 200)
    await until('all to be told', () => value.slice(0, 4_000).every(({ received }) => received().includes('CANCELLED')))
    for (const { socket } of value) socket.destroy()
    await until('the connections to be gone', () => openFilesOf(server.pid) < 100)
  })

  test('answers that nobody reads are bounded in all', async () => {
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
      for (let round = 0; round < 20; round += 1) {
        const some = await openWires(server, 5, head)
        for (const { socket } of some) socket.once('data', () => socket.pause())
        wires.push(...some)
        // As fast as answers begin, on however busy a machine.
        await until('the answers to begin', () => some.every(wire => wire.received() !== '' || wire.isClosed()))
      }
      return wires
    })
    assert.ok(peakMb < MOST_MB, `${Math.round(peakMb)} MB`)
    assert.ok(worstMs < PATIENCE_MS, `${Math.round(worstMs)} ms`)
    for (const { socket } of value) socket.destroy()
    assert.equal((await ask(server, `/v2/${endpoint.id}/status/${job.id}`)).json.output.length, 19 * MB)
  })
})
