import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { ApiError } from '../../console/client/api.ts'
import { LogStream, type StreamState } from '../../console/pages/endpoint/logs/log-stream.ts'

test('a stream that is cut resumes after the last line: no line is lost or repeated', async () => {
  await using page = openLogPage()
  const first = await page.opened(0)
  assert.equal(first.lastId, null)
  first.send(event(1), event(2), event(3).slice(0, 20))
  await page.until(() => page.lines.length === 2)
  first.cut()
  await page.until(() => page.state.is === 'lost')
  mock.timers.tick(1_000)
  const second = await page.opened(1)
  assert.equal(second.lastId, 'id-2')
  second.send(event(3), event(4))
  await page.until(() => page.lines.length === 4)
  assert.deepEqual(page.lines, ['line 1', 'line 2', 'line 3', 'line 4'])
  assert.equal(page.backs, 1)
  assert.equal(page.state.is, 'open')
})

test('a stream that was cut before its first line resumes from the position that the server sent', async () => {
  await using page = openLogPage()
  const first = await page.opened(0)
  first.send('id: start\n\n')
  await page.until(() => page.state.is === 'open')
  await new Promise(setImmediate)
  first.cut()
  await page.until(() => page.state.is === 'lost')
  mock.timers.tick(1_000)
  assert.equal((await page.opened(1)).lastId, 'start')
})

test('a held stream leaves its connection and goes on where it stopped, without a word about it', async () => {
  await using page = openLogPage()
  const first = await page.opened(0)
  first.send(event(1))
  await page.until(() => page.lines.length === 1)
  page.stream.hold(true)
  await page.until(() => page.state.is === 'held')
  assert.ok(first.signal.aborted)
  page.stream.hold(false)
  const second = await page.opened(1)
  assert.equal(second.lastId, 'id-1')
  await page.until(() => page.state.is === 'open')
  assert.equal(page.backs, 0)
})

test('a connection without a word for 40 s is given up', async () => {
  await using page = openLogPage()
  const first = await page.opened(0)
  first.send(event(1))
  await page.until(() => page.lines.length === 1)
  mock.timers.tick(39_000)
  first.send(': nothing new\n\n')
  await new Promise(setImmediate)
  await new Promise(setImmediate)
  mock.timers.tick(39_000)
  assert.equal(first.signal.aborted, false)
  mock.timers.tick(2_000)
  await page.until(() => page.state.is === 'lost')
  assert.equal(first.signal.aborted, true)
})

test('a stream that the server ends is over, and says why', async () => {
  await using page = openLogPage()
  const first = await page.opened(0)
  first.send(event(1), 'event: end\ndata: {}\n\n')
  await page.until(() => page.state.is === 'ended')
  assert.deepEqual(page.state, { is: 'ended', why: 'The worker has ended' })
})

test('a refusal is shown and not tried again; a server that is busy or away is', async () => {
  await using page = openLogPage([
    new ApiError(0, 'away'),
    new ApiError(503, 'stopping'),
    new ApiError(404, 'no such endpoint'),
  ])
  for (let tries = 0; tries < 2; tries += 1) {
    await page.until(() => page.state.is === 'lost')
    page.forgetState()
    mock.timers.tick(15_000)
  }
  await page.until(() => page.state.is === 'failed')
  assert.deepEqual(page.state, { is: 'failed', why: 'no such endpoint' })
})

interface Connection {
  readonly lastId: string | null
  readonly signal: AbortSignal
  readonly send: (...parts: string[]) => void
  readonly cut: () => void
}

/** A page that reads a stream, with timers that only tests advance. */
function openLogPage(refusals: Error[] = []) {
  mock.timers.enable({ apis: ['setTimeout'] })
  const connections: Connection[] = []
  const lines: string[] = []
  let state: StreamState = { is: 'opening' }
  let backs = 0
  const stream = new LogStream({
    endText: 'The worker has ended',
    open: async (lastId, signal) => {
      const refusal = refusals.shift()
      if (refusal !== undefined) throw refusal
      const connection = openConnection(lastId, signal)
      connections.push(connection)
      return connection.response
    },
    onLine: ({ text }) => lines.push(text),
    onState: now => {
      state = now
    },
    onBack: () => {
      backs += 1
    },
  })
  const until = async (holds: () => boolean) => {
    for (let turns = 0; !holds(); turns += 1) {
      assert.ok(turns < 1_000, 'it never happens')
      await new Promise(setImmediate)
    }
  }
  return {
    lines,
    stream,
    until,
    get state() {
      return state
    },
    get backs() {
      return backs
    },
    forgetState: () => {
      state = { is: 'opening' }
    },
    opened: async (at: number) => {
      await until(() => connections.length > at)
      return connections[at]!
    },
    [Symbol.asyncDispose]: async () => {
      stream.close()
      mock.timers.reset()
    },
  }
}

function openConnection(lastId: string | null, signal: AbortSignal): Connection & { readonly response: Response } {
  let body: ReadableStreamDefaultController<Uint8Array>
  const stream = new ReadableStream<Uint8Array>({
    start: controller => {
      body = controller
    },
  })
  signal.addEventListener('abort', () => body.error(signal.reason))
  return {
    lastId,
    signal,
    response: new Response(stream),
    send: (...parts) => body.enqueue(new TextEncoder().encode(parts.join(''))),
    cut: () => body.error(new TypeError('network error')),
  }
}

function event(number: number): string {
  const data = { workerId: 'w', jobId: null, source: 'container', ts: '2026-01-01T00:00:00Z', line: `line ${number}` }
  return `id: id-${number}\ndata: ${JSON.stringify(data)}\n\n`
}
