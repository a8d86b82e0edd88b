/** Many requests at once: from zero, while a worker is killed, and while workers are replaced and scaled down. */
import assert from 'node:assert/strict'
import { Agent } from 'node:http'
import { connect, type Socket } from 'node:net'
import { before, describe, test } from 'node:test'
import { patient } from '../../support/patience.ts'
import {
  answerOf,
  type Balanced,
  balancedEndpoint,
  type Called,
  call,
  changeBalanced,
  inNode,
  open,
  whole,
  workerOf,
} from '../support/balanced.ts'
import { atEnd } from '../support/cleanup.ts'
import { healthOf } from '../support/client.ts'
import { leaderOf } from '../support/processes.ts'
import { type Server, startServer } from '../support/server.ts'
import { sleep, until } from '../support/until.ts'

const CONCURRENCY = 200
/** A burst every so many milliseconds: 500 requests a second. */
const BURST = { requests: 10, everyMs: 20 }
const PATIENCE_MS = 60_000

describe('many requests at once', { timeout: patient(240_000) }, () => {
  let server: Server
  before(async () => {
    server = await startServer()
  })

  const ready = (endpoint: Balanced, count: number) =>
    until(`${count} workers`, async () => (await workersOf(endpoint)).ready === count, PATIENCE_MS)
  const workersOf = async ({ id }: Balanced) => (await healthOf(server, id)).workers
  const eventsOf = ({ id }: Balanced, message: string) =>
    server.events(message).filter(({ endpointId }) => endpointId === id)

  test('two hundred requests while no worker runs: all are answered, in the order in which they came', async () => {
    const node = await balancedEndpoint(server, {
      ...inNode,
      env: { RUNYARD_MAX_CONCURRENCY: '1' },
      workers: { max: 1, idleTimeout: 600 },
    })
    const sockets = await Promise.all(Array.from({ length: CONCURRENCY }, () => connected(server.port)))
    const answers = sockets.map(statusOn)
    for (const [n, socket] of sockets.entries()) {
      const head = `GET /lb/${node.id}/arrive?n=${n} HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${server.apiKey}\r\n\r\n`
      socket.write(head)
    }
    assert.deepEqual(await Promise.all(answers), Array(CONCURRENCY).fill('HTTP/1.1 200 OK'))
    const { json } = await call(node, '/arrivals')
    // Threads read their connections each at its own pace.
    const arrivals =
      process.env.RUNYARD_TEST_HTTP_THREADS === undefined ? json : (json as number[]).toSorted((a, b) => a - b)
    assert.deepEqual(
      arrivals,
      Array.from({ length: CONCURRENCY }, (_, n) => n),
    )
  })

  test('a worker is killed under 500 requests a second: others answer what had no answer yet, and no part passes for a whole', async t => {
    const node = await balancedEndpoint(server, { ...inNode, requestCount: 100, workers: { min: 3, max: 3 } })
    await ready(node, 3)
    const load = startLoad(node, () => '/wait?ms=20')
    await until('some answers', () => load.answered() > 200, PATIENCE_MS)
    const began = await Promise.all(
      Array.from({ length: 30 }, async () => {
        const opened = open(node, '/slow?n=50&ms=100', { agent: new Agent() })
        opened.end()
        return answerOf(opened)
      }),
    )
    const victim = workerOf(began[0]!)
    const ends = began.map(answer =>
      whole(answer).then(
        ({ text }) => text.endsWith('the end'),
        () => false,
      ),
    )
    const inFlight = load.sent() - load.answered()
    process.kill(leaderOf(server.dataDir, victim).pid, 'SIGKILL')
    const killedAt = load.sent()
    await until('more requests', () => load.sent() > killedAt + 1_000, PATIENCE_MS)
    const answers = await load.end()
    t.diagnostic(`${answers.length} requests, about ${inFlight} of them in flight at the kill`)
    assert.deepEqual(
      answers.filter(({ status }) => status !== 200),
      [],
    )
    assert.ok(answers.some(({ worker }) => worker === victim))
    const areWhole = await Promise.all(ends)
    assert.deepEqual(
      areWhole,
      began.map(answer => workerOf(answer) !== victim),
      'those of the killed worker, and no others, end broken',
    )
    await ready(node, 3)
  })

  test('a new version and another max under load fail no request', async () => {
    const node = await balancedEndpoint(server, {
      ...inNode,
      env: { WIRE_VERSION: 'old' },
      requestCount: 3,
      workers: { min: 2, max: 4, idleTimeout: 1 },
    })
    await ready(node, 2)
    const load = startLoad(node, n => (n % 10 === 0 ? '/wait?ms=1500' : '/wait?ms=5'), { requests: 2, everyMs: 20 })
    await until('the old version', () => load.last()?.json.version === 'old', PATIENCE_MS)
    await changeBalanced(node, { env: { WIRE_VERSION: 'new' } })
    await until('the new version', () => load.last()?.json.version === 'new', PATIENCE_MS)
    await until('the old workers to be gone', () => eventsOf(node, 'worker.exited').length >= 2, PATIENCE_MS)
    await changeBalanced(node, { workers: { min: 0, max: 1, idleTimeout: 1 } })
    await until('one worker', async () => sum(await workersOf(node)) === 1, PATIENCE_MS)
    const answers = await load.end()
    const versions = answers.map(({ status, json }) => `${status} ${json?.version}`)
    assert.deepEqual([...new Set(versions)].sort(), ['200 new', '200 old'])
    await until('zero', async () => sum(await workersOf(node)) === 0, PATIENCE_MS)
  })

  test('a worker is idle from the last byte of its last answer, and not before', async () => {
    const node = await balancedEndpoint(server, { ...inNode, workers: { max: 1, idleTimeout: 1 } })
    const { status, worker } = await call(node, '/slow?n=30&ms=100')
    assert.equal(status, 200)
    assert.deepEqual(eventsOf(node, 'worker.exited'), [], 'it outlives an answer that is longer than the idle time')
    const drained = await until('its end', () =>
      server.events('worker.moved').find(event => event.workerId === worker && event.to === 'DRAINING'),
    )
    const passed = eventsOf(node, 'gateway.request_finished').find(({ path }) => path === '/slow')
    const idleMs = Date.parse(String(drained.time)) - Date.parse(String(passed?.time))
    assert.ok(idleMs > 900, `it drained ${idleMs} ms after the last byte`)
  })
})

function sum(counts: Awaited<ReturnType<typeof healthOf>>['workers']): number {
  return counts.initializing + counts.ready + counts.throttled + counts.unhealthy
}

function connected(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket)).on('error', reject)
    atEnd(() => socket.destroy())
  })
}

/** The first line of what comes. */
function statusOn(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    socket.on('error', reject).on('end', () => reject(new Error('it ended')))
    socket.once('data', bytes => resolve(bytes.toString('latin1').split('\r\n')[0]!))
  })
}

interface Load {
  sent(): number
  answered(): number
  /** The latest answer. */
  last(): Called | undefined
  /** Stops sending, and returns all answers. */
  end(): Promise<Called[]>
}

/** Sends requests at a steady rate, whatever becomes of them; what is broken has the status 0. */
function startLoad(endpoint: Balanced, pathOf: (n: number) => string, burst = BURST): Load {
  const agent = new Agent({ keepAlive: true, maxSockets: 512 })
  const calls: Promise<Called>[] = []
  const answers: Called[] = []
  let isOver = false
  const send = async () => {
    const path = pathOf(calls.length)
    const answer = await call(endpoint, path, { agent }).catch(
      (error): Called => ({ status: 0, headers: {}, worker: '', text: String(error), json: undefined }),
    )
    answers.push(answer)
    return answer
  }
  const sending = (async () => {
    while (!isOver) {
      for (let n = 0; n < burst.requests; n += 1) calls.push(send())
      await sleep(burst.everyMs)
    }
  })()
  return {
    sent: () => calls.length,
    answered: () => answers.length,
    last: () => answers.at(-1),
    async end() {
      isOver = true
      await sending
      const all = await Promise.all(calls)
      agent.destroy()
      return all
    },
  }
}
