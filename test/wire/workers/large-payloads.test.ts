/** Inputs and results that no memory holds: they pass through relay, server and store piece by piece. */
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
const INPUT_MB = 100
/** Largest memory of the server at any time: it has 320 to 375 MB, and 460 MB where it holds an input once. */
const MOST_BYTES = 400 * MEGABYTE

const SETTINGS = ['--max-result-mb', '256', '--max-input-mb', '256']

/** One element of a list: characters of one and of several bytes, and a number that no double has. */
const ELEMENT = Buffer.from(`["${'x'.repeat(MEGABYTE - 60)}","é語","\\u00e9",12345678901234567890]`)

/** A list of so many elements, in pieces. */
function* listPieces(elements: number): Generator<Buffer> {
  for (let n = 0; n < elements; n += 1) {
    yield Buffer.from(n === 0 ? '[' : ',')
    yield ELEMENT
  }
  yield Buffer.from(']')
}

function listBytes(elements: number): number {
  return elements * (ELEMENT.length + 1) + 1
}

describe('large inputs and results', () => {
  let server: Server
  let endpoint: string
  let worker: RawWorker

  before(async () => {
    server = await startServer({ args: SETTINGS })
    const silent = await silentEndpoint(server)
    endpoint = silent.id
    worker = await silent.worker()
  })

  /**
   * Posts a body with a list in it.
   * @param around the texts before and behind the list
   * @returns the response, and the digest of the list
   */
  async function post(
    url: string,
    authorization: string,
    [head, tail]: readonly [string, string],
    elements: number,
  ): Promise<{ status: number; text: string; digest: string }> {
    const hash = createHash('sha256')
    const length = head.length + listBytes(elements) + tail.length
    const outgoing = request(url, { method: 'POST', headers: { authorization, 'content-length': length } })
    const answered = new Promise<{ status: number; text: string }>((resolve, reject) => {
      outgoing.on('error', reject).on('response', async response => {
        const text = (await response.toArray()).join('')
        resolve({ status: response.statusCode!, text })
      })
    })
    outgoing.write(head)
    for (const piece of listPieces(elements)) {
      hash.update(piece)
      if (!outgoing.write(piece)) await new Promise(resolve => outgoing.once('drain', resolve))
    }
    outgoing.end(tail)
    return { ...(await answered), digest: hash.digest('hex') }
  }

  /** Posts a result with a large output as a worker does. */
  const postResult = (job: string, elements: number) =>
    post(`${worker.url}${worker.path('job-done', job)}`, worker.token, ['{"output":', ',"error":null}'], elements)

  /**
   * Reads a response with a list in it.
   * @param mark the text before the list
   * @returns the text around the list, and the digest of the list
   */
  async function read(
    url: string,
    authorization: string,
    mark: string,
    bytes: number,
  ): Promise<{ around: string; digest: string }> {
    const get = () => fetch(url, { headers: { authorization } })
    let response = await get()
    // A take that got no job is repeated, as workers do: a server that starts slowly may outlast one.
    if (response.status === 204) response = await get()
    assert.equal(response.status, 200)
    const hash = createHash('sha256')
    let around = ''
    let left: number | null = null
    let total = 0
    for await (const piece of response.body!) {
      total += piece.byteLength
      let rest = Buffer.from(piece)
      if (left === null) {
        around += rest.toString('latin1')
        const at = around.indexOf(mark) + mark.length
        if (at < mark.length) continue
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

  /** Reads a job with a large output. */
  const readResult = (job: string, bytes: number) =>
    read(`${server.url}/v2/${endpoint}/status/${job}`, server.apiKey, '"output":', bytes)

  const peak = (pid: number) => Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024

  function assertLittleMemory(): void {
    const relay = JSON.parse(readFileSync(`${server.dataDir}/relay/relay.json`, 'utf8')).pid
    const peaks = { server: peak(server.pid), relay: peak(relay) }
    assert.ok(Math.max(peaks.server, peaks.relay) < MOST_BYTES, `bytes of memory: ${JSON.stringify(peaks)}`)
  }

  test(`a result of ${RESULT_MB} MB reaches its client as the worker wrote it, and no process holds it`, async () => {
    const job = await submit(server, endpoint, {})
    await worker.take()
    const sent = await postResult(job, RESULT_MB)
    assert.equal(sent.status, 200)
    const { around, digest } = await readResult(job, listBytes(RESULT_MB))
    assert.equal(digest, sent.digest)
    assert.equal(JSON.parse(`${around.replace('"output":', '"output":0')}`).status, 'COMPLETED')
    assertLittleMemory()

    // Its record has the address in place of the output, and goes with it.
    const { json: record } = await ask(server, `/v2/${endpoint}/requests/${job}`)
    assert.deepEqual([record.output, record.outputBytes], [null, listBytes(RESULT_MB)])
    assert.equal(record.outputUrl, `${server.url}/v2/${endpoint}/status/${job}`)
    await ask(server, `/v2/${endpoint}/requests/${job}`, { method: 'DELETE' })
    assert.equal((await ask(server, `/v2/${endpoint}/status/${job}`)).status, 404)
  })

  test(`an input of ${INPUT_MB} MB reaches its worker as the client wrote it, and no process holds it`, async () => {
    const sent = await post(`${server.url}/v2/${endpoint}/run`, server.apiKey, ['{"input":{"a":', '}}'], INPUT_MB)
    assert.equal(sent.status, 200, sent.text)
    const job = JSON.parse(sent.text).id
    const take = `${worker.url}${worker.path('job-take')}&job_in_progress=0`
    const { around, digest } = await read(take, worker.token, '"a":', listBytes(INPUT_MB))
    assert.equal(digest, sent.digest)
    assert.deepEqual(JSON.parse(around.replace('"a":', '"a":0')), { id: job, input: { a: 0 } })
    assertLittleMemory()
    await worker.done(job, { output: 1 })
    assert.equal((await ask(server, `/v2/${endpoint}/status/${job}`)).json.status, 'COMPLETED')
  })

  test('a server that is killed while it receives an input and sends another loses the one, and not the other', async () => {
    const sent = await post(`${server.url}/v2/${endpoint}/run`, server.apiKey, ['{"input":{"a":', '}}'], 40)
    const job = JSON.parse(sent.text).id
    const database = new DatabaseSync(`${server.dataDir}/runyard.sqlite`, { readOnly: true })
    const texts = () => database.prepare('SELECT id, job_id, record_id, parts FROM large_texts ORDER BY id').all()
    const known = texts().map(({ id }) => id)
    // An input that never comes wholly.
    const bytes = listBytes(40)
    const headers = { authorization: server.apiKey, 'content-length': bytes }
    const unfinished = request(`${server.url}/v2/${endpoint}/run`, { method: 'POST', headers })
    const cut = new Promise(resolve => unfinished.on('error', resolve))
    unfinished.write('{"input":{"a":')
    for (const piece of listPieces(20)) unfinished.write(piece)
    await until('parts of it', () => texts().some(({ id, parts }) => !known.includes(id!) && Number(parts) > 4))
    const take = `${worker.url}${worker.path('job-take')}&job_in_progress=0`
    const taken = read(take, worker.token, '"a":', bytes)
    const row = database.prepare('SELECT status, attempt FROM jobs WHERE id = ?')
    await until('the claim', () => row.get(job)!.status === 'IN_PROGRESS')
    await server.kill9()
    await cut
    server = await startServer({ dataDir: server.dataDir, port: server.port, args: SETTINGS })
    const { around, digest } = await taken
    assert.deepEqual([JSON.parse(around.replace('"a":', '"a":0')).id, digest], [job, sent.digest])
    assert.deepEqual({ ...row.get(job) }, { status: 'IN_PROGRESS', attempt: 1 })
    await worker.done(job, { output: 1 })
    // Nothing has the text of the other, so that it is removed as one that broke off.
    const left = texts().filter(({ id }) => !known.includes(id!))
    assert.deepEqual(
      left.map(({ job_id, record_id }) => [job_id, record_id]),
      [[null, null]],
    )
    const { jobs } = (await ask(server, `/v2/${endpoint}/health`)).json
    assert.deepEqual([jobs.inQueue, jobs.inProgress], [0, 0])
    database.close()
  })

  test('a server that is killed while it stores a result gets all of it again from the relay', async () => {
    const job = await submit(server, endpoint, {})
    await worker.take()
    const database = new DatabaseSync(`${server.dataDir}/runyard.sqlite`, { readOnly: true })
    // Those of the tests before are being removed.
    const older = JSON.stringify(
      database
        .prepare('SELECT id FROM large_texts')
        .all()
        .map(({ id }) => id),
    )
    const count = database.prepare(
      'SELECT COUNT(*) AS parts FROM large_text_parts WHERE text_id NOT IN (SELECT value FROM json_each(?))',
    )
    const posted = postResult(job, 60)
    await until('the first parts', () => Number(count.get(older)!.parts) > 4)
    await server.kill9()
    database.close()
    server = await startServer({ dataDir: server.dataDir, port: server.port, args: SETTINGS })
    const sent = await posted
    assert.equal(sent.status, 200)
    assert.equal((await readResult(job, listBytes(60))).digest, sent.digest)
  })
})
