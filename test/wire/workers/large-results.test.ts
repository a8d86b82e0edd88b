/** Results that no memory holds: they pass through relay, server and store to the client piece by piece. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { DatabaseSync } from 'node:sqlite'
import { before, describe, test } from 'node:test'
import { ask, submit } from '../support/client.ts'
import { type RawWorker, silentEndpoint } from '../support/raw-worker.ts'
import { type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const MEGABYTE = 1_048_576
const RESULT_MB = 200
/** Largest memory of the server at any time. */
const MOST_BYTES = 350 * MEGABYTE

/** One element of the output: characters of one and of several bytes, and a number that no double has. */
const ELEMENT = Buffer.from(`["${'x'.repeat(MEGABYTE - 60)}","é語","\\u00e9",12345678901234567890]`)

/** An output of so many elements, in pieces. */
function* outputPieces(elements: number): Generator<Buffer> {
  for (let n = 0; n < elements; n += 1) {
    yield Buffer.from(n === 0 ? '[' : ',')
    yield ELEMENT
  }
  yield Buffer.from(']')
}

function outputBytes(elements: number): number {
  return elements * (ELEMENT.length + 1) + 1
}

describe('large results', () => {
  let server: Server
  let endpoint: string
  let worker: RawWorker

  before(async () => {
    server = await startServer({ args: ['--max-result-mb', '256'] })
    const silent = await silentEndpoint(server)
    endpoint = silent.id
    worker = await silent.worker()
  })

  /** Posts a result with a large output as a worker does. @returns the status and the digest of the output */
  async function post(job: string, elements: number): Promise<{ status: number; digest: string }> {
    const hash = createHash('sha256')
    const [head, tail] = ['{"output":', ',"error":null}']
    const length = head.length + outputBytes(elements) + tail.length
    const outgoing = request(`${worker.url}${worker.path('job-done', job)}`, {
      method: 'POST',
      headers: { authorization: worker.token, 'content-length': length },
    })
    const status = new Promise<number>((resolve, reject) => {
      outgoing.on('error', reject).on('response', response => {
        response.resume()
        resolve(response.statusCode!)
      })
    })
    outgoing.write(head)
    for (const piece of outputPieces(elements)) {
      hash.update(piece)
      if (!outgoing.write(piece)) await new Promise(resolve => outgoing.once('drain', resolve))
    }
    outgoing.end(tail)
    return { status: await status, digest: hash.digest('hex') }
  }

  /** Reads a job with a large output. @returns the text around the output, and the digest of the output */
  async function read(job: string, bytes: number): Promise<{ around: string; digest: string }> {
    const response = await fetch(`${server.url}/v2/${endpoint}/status/${job}`, {
      headers: { authorization: server.apiKey },
    })
    const hash = createHash('sha256')
    let around = ''
    let left: number | null = null
    let total = 0
    for await (const piece of response.body!) {
      total += piece.byteLength
      let rest = Buffer.from(piece)
      if (left === null) {
        around += rest.toString('latin1')
        const at = around.indexOf('"output":') + '"output":'.length
        if (at < '"output":'.length) continue
        rest = Buffer.from(around.slice(at), 'latin1')
        around = around.slice(0, at)
        left = bytes
      }
      hash.update(rest.subarray(0, left))
      around += rest.subarray(left).toString()
      left -= Math.min(left, rest.byteLength)
    }
    assert.equal(total, Number(response.headers.get('content-length')))
    return { around, digest: hash.digest('hex') }
  }

  const peak = (pid: number) => Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024

  test(`a result of ${RESULT_MB} MB reaches its client as the worker wrote it, and no process holds it`, async () => {
    const job = await submit(server, endpoint, {})
    await worker.take()
    const sent = await post(job, RESULT_MB)
    assert.equal(sent.status, 200)
    const { around, digest } = await read(job, outputBytes(RESULT_MB))
    assert.equal(digest, sent.digest)
    assert.equal(JSON.parse(`${around.replace('"output":', '"output":0')}`).status, 'COMPLETED')
    const relay = JSON.parse(readFileSync(`${server.dataDir}/relay/relay.json`, 'utf8')).pid
    for (const pid of [server.pid, relay]) assert.ok(peak(pid) < MOST_BYTES, `${pid} had ${peak(pid) / 1e6} MB`)

    // Its record has the address in place of the output, and goes with it.
    const { json: record } = await ask(server, `/v2/${endpoint}/requests/${job}`)
    assert.deepEqual([record.output, record.outputBytes], [null, outputBytes(RESULT_MB)])
    assert.equal(record.outputUrl, `${server.url}/v2/${endpoint}/status/${job}`)
    await ask(server, `/v2/${endpoint}/requests/${job}`, { method: 'DELETE' })
    assert.equal((await ask(server, `/v2/${endpoint}/status/${job}`)).status, 404)
  })

  test('a server that is killed while it stores a result gets all of it again from the relay', async () => {
    const job = await submit(server, endpoint, {})
    await worker.take()
    const database = new DatabaseSync(`${server.dataDir}/runyard.sqlite`, { readOnly: true })
    const count = database.prepare('SELECT COUNT(*) AS parts FROM large_text_parts')
    const before = Number(count.get()!.parts)
    const posted = post(job, 60)
    await until('the first parts', () => Number(count.get()!.parts) > before + 4)
    await server.kill9()
    database.close()
    server = await startServer({ dataDir: server.dataDir, port: server.port, args: ['--max-result-mb', '256'] })
    const sent = await posted
    assert.equal(sent.status, 200)
    assert.equal((await read(job, outputBytes(60))).digest, sent.digest)
  })
})
