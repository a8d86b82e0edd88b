/**
 * Clients that read a long stream at a trickle: what they have not taken yet waits on disk,
 * not in the server's memory.
 */
import assert from 'node:assert/strict'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { patient } from '../../support/patience.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, makeEndpoint, runJob, submit } from '../support/client.ts'
import { parseAnswer } from '../support/raw-http.ts'
import { type RawWorker, silentEndpoint } from '../support/raw-worker.ts'
import { root, rootUrl, type Server, startServer } from '../support/server.ts'
import { sleep, timed, until } from '../support/until.ts'

const CHUNK_BYTES = 1_000_000
const CHUNKS = 70
/**
 * Form in which each client reads. Events are one answer for all chunks, so they show whether the socket slows the
 * server down.
 */
const READERS = ['envelope', 'array', 'events', 'events', 'events', 'events'] as const
/** Rate of the clients while the server is watched. */
const TRICKLE = { bytes: 16_384, everyMs: 50, forMs: 6_000 }
/**
 * The server may hold so much more than before the readers came, without garbage: a part of 4 MB for each of them, as
 * it was read, as text and as bytes for the socket.
 */
const MOST_BYTES = READERS.length * 3 * 4_194_304
/**
 * The memory of its process may grow by so much more, for all its threads: V8 keeps two halves of 32 MB for young
 * objects and as much for large ones, and gives them back when it likes.
 */
const YOUNG_BYTES = 3 * 33_554_432

const SHAPES = { envelope: '?format=envelope', array: '?format=array', events: '' } as const
type Shape = keyof typeof SHAPES

describe('slow readers', () => {
  let server: Server
  /** The file of what the server's main thread holds. */
  const held = join(temporaryFolder(), 'retained')
  let endpoint: string
  let worker: RawWorker
  /** Another endpoint, whose jobs are to go on as if nothing were. */
  let other: string

  before(async () => {
    const preload = `--import=${rootUrl}/test/wire/support/record-retained.ts`
    server = await startServer({ env: { NODE_OPTIONS: preload, RUNYARD_TEST_RETAINED: held } })
    const silent = await silentEndpoint(server)
    endpoint = silent.id
    worker = await silent.worker()
    const settings = { workersMin: 1, workersMax: 1, idleTimeout: 3600 }
    other = await makeEndpoint(server, { folder: `${root}/examples/hello-node`, settings })
    await runJob(server, other, {})
  })

  function open(job: string, shape: Shape): Socket {
    const accept = shape === 'events' ? 'text/event-stream' : '*/*'
    const socket = connect(server.port, '127.0.0.1')
    socket.pause()
    const headers = `Host: localhost\r\nConnection: close\r\nAccept: ${accept}\r\nAuthorization: ${server.apiKey}`
    socket.write(`GET /v2/${endpoint}/stream/${job}${SHAPES[shape]} HTTP/1.1\r\n${headers}\r\n\r\n`)
    return socket
  }

  /** Takes a little now and then; gives what it took. */
  async function trickle(socket: Socket): Promise<Buffer[]> {
    const taken: Buffer[] = []
    for (const end = performance.now() + TRICKLE.forMs; performance.now() < end; ) {
      const piece = socket.read(TRICKLE.bytes) ?? socket.read()
      if (piece !== null) taken.push(piece)
      await sleep(TRICKLE.everyMs)
    }
    return taken
  }

  async function takeRest(socket: Socket, taken: Buffer[]): Promise<string> {
    socket.on('data', (piece: Buffer) => taken.push(piece))
    socket.resume()
    await new Promise((resolve, reject) => socket.on('close', resolve).on('error', reject))
    return parseAnswer(Buffer.concat(taken)).body
  }

  const memory = () => Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))![1]) * 1024
  const retained = () => readFileSync(held, 'utf8').split('\n').filter(Boolean).map(Number)

  /** The numbers of the chunks in an answer. */
  function numbersOf(body: string, shape: Shape): number[] {
    const lines = shape === 'events' ? body.split('\n').filter(line => line.startsWith('data: {"output"')) : []
    const items = shape === 'events' ? lines.map(line => JSON.parse(line.slice(6))) : JSON.parse(body)
    return (shape === 'envelope' ? items.stream : items).map(({ output }: { output: { n: number } }) => output.n)
  }

  test(`${READERS.length} of them, ${(READERS.length * CHUNKS * CHUNK_BYTES) / 1e6} MB behind: memory stays bounded, and others are served`, async () => {
    const jobs = await Promise.all(READERS.map(() => submit(server, endpoint, {})))
    for (const _job of jobs) await worker.take(true)
    for (let n = 0; n < CHUNKS; n += 1) {
      const text = String(n % 10).repeat(CHUNK_BYTES)
      for (const job of jobs) await worker.chunk(job, { output: { n, text } })
    }
    for (const job of jobs) await worker.done(job, { output: [] })
    const before = memory()
    writeFileSync(held, '')
    const heldBefore = await until('a look at what the server holds', () => retained()[0])
    const sockets = jobs.map((job, index) => open(job, READERS[index]!))
    const reading = Promise.all(sockets.map(trickle))
    let most = 0
    let slowest = 0
    for (const end = performance.now() + TRICKLE.forMs; performance.now() < end; await sleep(50)) {
      const { value, ms } = await timed(() => runJob(server, other, {}))
      assert.equal(value.status, 'COMPLETED')
      slowest = Math.max(slowest, ms)
      most = Math.max(most, memory())
    }
    const grown = most - before
    const holds = Math.max(...retained()) - heldBefore
    rmSync(held)
    assert.ok(holds < MOST_BYTES, `the server holds ${Math.round(holds / 1e6)} MB more`)
    assert.ok(grown < MOST_BYTES + YOUNG_BYTES, `the server grew by ${Math.round(grown / 1e6)} MB`)
    assert.ok(slowest < patient(2_000), `a job of another endpoint took ${slowest} ms`)
    const taken = await reading
    for (const [index, socket] of sockets.entries()) {
      const shape = READERS[index]!
      const numbers = numbersOf(await takeRest(socket, taken[index]!), shape)
      while (shape !== 'events' && numbers.length < CHUNKS) {
        const { text } = await ask(server, `/v2/${endpoint}/stream/${jobs[index]}${SHAPES[shape]}`)
        numbers.push(...numbersOf(text, shape))
      }
      const expected = Array.from({ length: CHUNKS }, (_, n) => n)
      assert.deepEqual(numbers, expected, `${shape}: chunks are missing or came twice`)
    }
  })
})
