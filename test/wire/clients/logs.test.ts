/**
 * Logs as server-sent events over real sockets: bursts, slow and lost readers, restarts of
 * the server, the command line.
 */
import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { before, describe, test } from 'node:test'
import { patient } from '../../support/patience.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, changeEndpoint, healthOf, makeEndpoint, runJob } from '../support/client.ts'
import { skip as noPython, python } from '../support/python.ts'
import { rawAsk } from '../support/raw-http.ts'
import { fixture, runCommand, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

interface Frame {
  readonly id: string
  readonly ts: string
  readonly source: string
  readonly line: string
  /** Arrival, on the clock of this process. */
  readonly atMs: number
}

/** A reader like curl -N: a socket of its own, whose bytes are read as they come. */
class SocketReader {
  readonly socket: Socket
  readonly frames: Frame[] = []
  head = ''
  closed = false
  #text = ''

  constructor(server: Server, path: string, lastId?: string) {
    this.socket = connect(server.port, '127.0.0.1')
    const resume = lastId === undefined ? '' : `Last-Event-ID: ${lastId}\r\n`
    const head = `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.apiKey}\r\n${resume}\r\n`
    this.socket.write(head)
    this.socket.setEncoding('utf8')
    this.socket.on('data', text => this.#take(String(text)))
    this.socket.on('error', () => {})
    this.socket.on('close', () => (this.closed = true))
  }

  /** The numbers of the lines that came. */
  get numbers(): number[] {
    return this.frames.flatMap(({ line }) => Number(/line (\d+)/.exec(line)?.[1] ?? Number.NaN)).filter(n => n >= 0)
  }

  async until(number: number): Promise<void> {
    await until(`line ${number}`, () => this.numbers.at(-1) === number, 20_000, 5)
  }

  #take(text: string): void {
    this.#text += text
    if (this.head === '') {
      const end = this.#text.indexOf('\r\n\r\n')
      if (end === -1) return
      this.head = this.#text.slice(0, end)
      this.#text = this.#text.slice(end + 4)
    }
    // Chunk sizes stand on lines of their own between parts, and frames hold no CR.
    const whole = this.#text.replaceAll(/\r\n[0-9a-f]+\r\n|^[0-9a-f]+\r\n/g, '')
    const blocks = whole.split('\n\n')
    this.#text = blocks.pop()!
    for (const block of blocks) {
      const found = /^id: (.+)\ndata: (.+)$/m.exec(block)
      if (found !== null) this.frames.push({ id: found[1]!, ...JSON.parse(found[2]!), atMs: performance.now() })
    }
  }
}

describe('logs as events', () => {
  let server: Server
  let endpoint: string
  let everyday: string
  let path: string
  let workerId: string
  let printed = 0
  const dataDir = temporaryFolder()
  const print = async (count: number, wide = 0) => {
    const job = await runJob(server, endpoint, { from: printed, count, wide })
    printed += count
    return job
  }

  before(async () => {
    server = await startServer({ dataDir })
    const settings = { workersMin: 1, workersMax: 1, idleTimeout: 3600 }
    everyday = await makeEndpoint(server, { folder: fixture('node-everyday'), settings })
    endpoint = await makeEndpoint(server, { folder: fixture('node-printing'), settings })
    workerId = (await print(3_000)).workerId!
    path = `/v2/serverless/${endpoint}/workers/${workerId}/logs`
    // The output of a container is copied after a while.
    const copied = new SocketReader(server, `${path}?tail=1&source=container`)
    await copied.until(2_999)
    copied.socket.destroy()
  })

  test('the old lines come in one burst, and new ones as they are printed', async () => {
    const reader = new SocketReader(server, `${path}?tail=2000`)
    await reader.until(2_999)
    const [status, ...headers] = reader.head.toLowerCase().split('\r\n')
    assert.match(status!, / 200 /)
    for (const header of ['content-type: text/event-stream', 'cache-control: no-cache', 'x-accel-buffering: no'])
      assert.ok(
        headers.some(line => line.startsWith(header)),
        reader.head,
      )
    assert.deepEqual([headers.filter(line => line.startsWith('connection:')).length, reader.frames.length], [1, 2_000])
    const gaps = reader.frames.slice(1).map(({ atMs }, index) => atMs - reader.frames[index]!.atMs)
    assert.ok(Math.max(...gaps) < patient(900), `a silence of ${Math.max(...gaps)} ms`)
    await print(10)
    await reader.until(3_009)
    assert.deepEqual(
      reader.numbers.slice(-12),
      Array.from({ length: 12 }, (_, n) => 2_998 + n),
    )
    const late = Math.abs(Date.now() - Date.parse(reader.frames.at(-1)!.ts))
    assert.ok(late < patient(10_000), `its time is ${late} ms off`)
    reader.socket.destroy()
  })

  test('refusals are problems, before a stream begins', async () => {
    const problem = async (where: string, headers: Readonly<Record<string, string>> = {}) => {
      const authorization = `Bearer ${server.apiKey}`
      const answer = await rawAsk(server.port, `GET ${where}`, { headers: { authorization, ...headers } })
      const type = answer.headers.find(([name]) => name === 'content-type')![1]
      return [Number(answer.statusLine.split(' ')[1]), type]
    }
    const json = 'application/problem+json'
    assert.deepEqual(await problem(`${path}?tail=x`), [400, json])
    assert.deepEqual(await problem(path.replace(workerId, 'nothing')), [404, json])
    assert.deepEqual(await problem(path, { authorization: 'Bearer nobody' }), [401, json])
  })

  test('a reader that takes nothing for a while gets all of it later', async () => {
    const reader = new SocketReader(server, `${path}?tail=0&source=container`)
    await until('the stream', () => reader.head !== '')
    reader.socket.pause()
    const first = printed
    await print(3_000, 1_000)
    await print(3_000, 1_000)
    reader.socket.resume()
    await reader.until(printed - 1)
    assert.deepEqual(
      reader.numbers,
      Array.from({ length: 6_000 }, (_, n) => first + n),
    )
    reader.socket.destroy()
  })

  test('readers that have gone away make room for others', async () => {
    const readers: SocketReader[] = []
    // Readers of the tests before may have their places a moment longer.
    await until('all streams', async () => {
      const more = Array.from({ length: 100 - readers.length }, () => new SocketReader(server, `${path}?tail=0`))
      await until('their answers', () => more.every(({ head }) => head !== ''))
      readers.push(...more.filter(({ head }) => head.includes(' 200 ')))
      return readers.length === 100
    })
    assert.equal((await ask(server, path)).status, 429)
    for (const { socket } of readers) socket.destroy()
    await until('room', async () => {
      const reader = new SocketReader(server, `${path}?tail=0`)
      await until('an answer', () => reader.head !== '')
      reader.socket.destroy()
      return reader.head.includes(' 200 ')
    })
  })

  test('a reader and the command line resume where they were when the server is killed, and each line comes once', async () => {
    const first = printed
    const following = runCommand([
      'logs',
      workerId,
      '-f',
      '--json',
      '--tail',
      '0',
      '--source',
      'container',
      '--data-dir',
      dataDir,
    ])
    const searching = runCommand([
      'logs',
      endpoint,
      '-f',
      '--json',
      '--tail',
      '0',
      '--grep',
      'LINE',
      '--data-dir',
      dataDir,
    ])
    const reader = new SocketReader(server, `${path}?tail=0&source=container`)
    await until('the stream', () => reader.head !== '')
    await until(
      'the commands',
      () => server.events('request.answered').filter(({ surface }) => surface === 'ops').length >= 2,
    )
    const streaming = runCommand([
      'run',
      everyday,
      '--stream',
      '--json',
      '-i',
      '{"n":30,"sleepMs":100}',
      '--data-dir',
      dataDir,
    ])
    await print(20)
    await reader.until(first + 19)
    await until('the job', async () => (await healthOf(server, everyday)).jobs.inProgress === 1)
    await server.kill9()
    await until('the end of the connection', () => reader.closed)
    server = await startServer({ dataDir, port: server.port })
    await print(20)
    const again = new SocketReader(server, `${path}?source=container`, reader.frames.at(-1)!.id)
    await again.until(first + 39)
    assert.deepEqual(
      [...reader.numbers, ...again.numbers],
      Array.from({ length: 40 }, (_, n) => first + n),
    )
    again.socket.destroy()
    await changeEndpoint(server, endpoint, { workersMax: 0, workersMin: 0 })
    const streamed = await streaming
    const outputs = streamed.stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
    assert.deepEqual([streamed.code, outputs.pop().status], [0, 'COMPLETED'], streamed.stderr)
    // A chunk whose receipt could not be noted comes again.
    const chunks = [...new Set(outputs.map(({ chunk }) => chunk.number))]
    assert.deepEqual(
      chunks,
      Array.from({ length: 30 }, (_, n) => n),
    )
    const { code, stdout, stderr } = await following
    assert.deepEqual([code, stderr], [0, ''])
    const numbersOf = (text: string) => [...text.matchAll(/"line":"line (\d+) "/g)].map(found => Number(found[1]))
    assert.deepEqual(
      numbersOf(stdout),
      Array.from({ length: 40 }, (_, n) => first + n),
    )
    await ask(server, `/v2/serverless/${endpoint}`, { method: 'DELETE' })
    assert.deepEqual(
      numbersOf((await searching).stdout),
      Array.from({ length: 40 }, (_, n) => first + n),
    )
  })
})

describe('what a Python handler prints', { skip: noPython }, () => {
  test('is in the logs of its job, and nothing that it prints for others', async () => {
    const server = await startServer()
    const settings = { workersMin: 1, workersMax: 1, idleTimeout: 3600 }
    const folder = fixture('python-worker')
    const env = { WIRE_FOLDER: temporaryFolder() }
    const id = await makeEndpoint(server, { folder, args: `"${python}" handler.py`, settings, env })
    const jobs: string[] = []
    for (const word of ['first', 'second', 'third']) {
      const { id: job, status } = await runJob(server, id, { print: `the ${word} job` }, 60_000)
      assert.equal(status, 'COMPLETED')
      jobs.push(job)
    }
    const connection = { RUNYARD_URL: server.url, RUNYARD_API_KEY: server.apiKey }
    for (const [index, word] of ['first', 'second', 'third'].entries()) {
      const { stdout } = await runCommand(['logs', jobs[index]!, '--grep', 'the '], connection)
      const printed = [...stdout.matchAll(/\| (the \w+ job)$/gm)].map(([, line]) => line)
      assert.deepEqual(printed, [`the ${word} job`], stdout)
    }
  })
})
