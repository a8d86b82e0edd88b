/** Streams of official Python workers, read by the official clients and by hand. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import runpodSdk from 'runpod-sdk'
import { patient } from '../../support/patience.ts'
import { ask, makeEndpoint, submit, whenFinal } from '../support/client.ts'
import { python, skip } from '../support/python.ts'
import { fixture, type Server, startServer } from '../support/server.ts'
import { sleep } from '../support/until.ts'

const folder = fixture('python-stream')
/** Between two reads of a long stream, so that an answer has more than one chunk. */
const PAUSE_MS = 50

interface StreamAnswer {
  readonly status: string
  readonly stream: readonly { readonly output: { readonly number: number } }[]
}

describe('streams of official Python workers', { skip }, () => {
  let server: Server
  const endpoints = new Map<string, string>()

  before(async () => {
    server = await startServer()
    const modes: [string, Record<string, string>][] = [
      ['sync', {}],
      ['async', { WIRE_MODE: 'async' }],
      ['aggregate', { WIRE_AGGREGATE: '1' }],
    ]
    for (const [name, env] of modes) {
      const settings = { workersMin: 1, workersMax: 1, idleTimeout: 3600 }
      endpoints.set(name, await makeEndpoint(server, { folder, args: `${python} handler.py`, env, settings }))
    }
  })

  const of = (name: string) => endpoints.get(name)!

  async function readAll(
    endpoint: string,
    job: string,
    pauseMs = 0,
  ): Promise<{ numbers: number[]; status: string; answers: number }> {
    const numbers: number[] = []
    for (let answers = 1; ; answers += 1) {
      const { json } = await ask(server, `/v2/${endpoint}/stream/${job}`)
      const { status, stream } = json as StreamAnswer
      numbers.push(...stream.map(({ output }) => output.number))
      if (status !== 'IN_QUEUE' && status !== 'IN_PROGRESS') return { numbers, status, answers }
      await sleep(pauseMs)
    }
  }

  for (const mode of ['sync', 'async']) {
    test(`chunks of ${mode} generators come one by one, in order, and the job ends without an output of its own`, async () => {
      const job = await submit(server, of(mode), { n: 5, sleep: 0.5 })
      const { numbers, status, answers } = await readAll(of(mode), job)
      assert.deepEqual([numbers, status], [[0, 1, 2, 3, 4], 'COMPLETED'])
      assert.ok(answers >= 4, `only ${answers} answers: the chunks were held back`)
      assert.deepEqual((await whenFinal(server, of(mode), job)).output, [])
    })
  }

  test('with return_aggregate_stream the status has the list of all chunks', async () => {
    const job = await submit(server, of('aggregate'), { n: 3 })
    assert.deepEqual((await readAll(of('aggregate'), job)).numbers, [0, 1, 2])
    const expected = [{ number: 0 }, { number: 1 }, { number: 2 }]
    assert.deepEqual((await whenFinal(server, of('aggregate'), job)).output, expected)
  })

  test('an exception and an error item end the stream with FAILED, after the chunks before them', async () => {
    for (const [field, reason] of [
      ['error_at', /generator boom/],
      ['item_at', /400/],
    ] as const) {
      const job = await submit(server, of('sync'), { n: 3, [field]: 1 })
      const { numbers, status } = await readAll(of('sync'), job)
      assert.deepEqual([numbers, status], [[0], 'FAILED'])
      assert.match(String((await whenFinal(server, of('sync'), job)).error), reason)
    }
  })

  test('500 small chunks arrive complete and in order, in each of the three shapes', {
    timeout: patient(600_000),
  }, async () => {
    const CHUNKS = 500
    const upTo = (length: number) => Array.from({ length }, (_, number) => number)
    // Each chunk is a call of its own that is on stable storage before the worker makes the next one.
    const settings = { workersMin: 3, workersMax: 3, idleTimeout: 3600 }
    const env = { WIRE_MODE: 'async' }
    const endpoint = await makeEndpoint(server, { folder, args: `${python} handler.py`, env, settings })
    const job = (n: number) => submit(server, endpoint, { n })
    const asArray = async (id: string) => {
      const numbers: number[] = []
      while (numbers.length < CHUNKS) {
        const { json } = await ask(server, `/v2/${endpoint}/stream/${id}?format=array`)
        numbers.push(...(json as StreamAnswer['stream']).map(({ output }) => output.number))
        await sleep(PAUSE_MS)
      }
      return numbers
    }
    const asEvents = async (id: string) => {
      const headers = { accept: 'text/event-stream' }
      const { text } = await ask(server, `/v2/${endpoint}/stream/${id}`, { headers })
      assert.match(text, /event: status\ndata: .*"status":"COMPLETED"/)
      const lines = text.split('\n\n').filter(event => event.startsWith('data: '))
      return lines.map(line => JSON.parse(line.slice(6)).output.number)
    }
    const [envelope, array, events] = await Promise.all([
      readAll(endpoint, await job(CHUNKS), PAUSE_MS),
      asArray(await job(CHUNKS)),
      asEvents(await job(CHUNKS)),
    ])
    for (const numbers of [envelope.numbers, array, events]) assert.deepEqual(numbers, upTo(CHUNKS))
  })

  test('the official Python client streams a job to its end', async () => {
    const script = `${fixture('python-client')}/stream.py`
    const args = [script, server.url, server.apiKey, of('sync'), '{"n": 4, "sleep": 0.3}']
    const { stdout } = await promisify(execFile)(python!, args, { timeout: patient(60_000) })
    assert.deepEqual(JSON.parse(stdout), [{ number: 0 }, { number: 1 }, { number: 2 }, { number: 3 }])
  })

  test('the official JavaScript client streams a job to its end, and waits for results with runSync', async () => {
    const endpoint = runpodSdk(server.apiKey, { baseUrl: `${server.url}/v2` }).endpoint(of('sync'))!
    const job = await submit(server, of('sync'), { n: 4, sleep: 0.2 })
    const numbers: number[] = []
    for await (const chunk of endpoint.stream(job)) numbers.push((chunk as StreamAnswer['stream'][0]).output.number)
    assert.deepEqual(numbers, [0, 1, 2, 3])
    // Longer than one of its polls.
    const value = await endpoint.runSync({ input: { n: 2, sleep: 1.2 } }, patient(2_000))
    assert.equal(value.status, 'COMPLETED')
  })

  test('retry and purge-queue work through the clients', async () => {
    const failed = await submit(server, of('sync'), { n: 2, error_at: 1 })
    await whenFinal(server, of('sync'), failed)
    const retried = await ask(server, `/v2/${of('sync')}/retry/${failed}`, { method: 'POST' })
    assert.deepEqual([retried.status, retried.json], [200, { id: failed, status: 'IN_QUEUE' }])
    assert.deepEqual((await readAll(of('sync'), failed)).numbers, [0])
    const endpoint = runpodSdk(server.apiKey, { baseUrl: `${server.url}/v2` }).endpoint(of('sync'))!
    const running = await submit(server, of('sync'), { n: 3, sleep: 2 })
    const { json } = await ask(server, `/v2/${of('sync')}/stream/${running}`)
    assert.equal((json as StreamAnswer).stream.length, 1)
    const waiting = await submit(server, of('sync'), { n: 1 })
    assert.deepEqual(await endpoint.purgeQueue(), { removed: 1, status: 'completed' })
    assert.equal((await whenFinal(server, of('sync'), waiting)).status, 'CANCELLED')
    assert.equal((await whenFinal(server, of('sync'), running)).status, 'COMPLETED')
  })
})
