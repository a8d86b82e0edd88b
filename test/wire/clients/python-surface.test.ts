/** Every public method of the official Python client, both of them, against a real server. */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { patient } from '../../support/patience.ts'
import { ask, makeEndpoint, runJob } from '../support/client.ts'
import { type Gate, openGate } from '../support/gate.ts'
import { skip } from '../support/python.ts'
import { callAll } from '../support/python-surface.ts'
import { fixture, type Server, startServer } from '../support/server.ts'
import { sleep, until } from '../support/until.ts'

const folder = fixture('node-everyday')
const NUMBERS = [{ number: 0 }, { number: 1 }, { number: 2 }, { number: 3 }]
const COUNTERS = ['completed', 'failed', 'inProgress', 'inQueue', 'retried']

interface Caught {
  readonly result?: unknown
  readonly error?: string
  readonly text?: string
  readonly status?: number | null
  readonly seconds?: number
}

describe('every method of the official Python client', { skip }, () => {
  let server: Server
  let gate: Gate
  let id: string
  let balancer: string

  before(async () => {
    server = await startServer()
    gate = await openGate(server)
    id = await makeEndpoint(server, { folder, settings: { workersMax: 1, idleTimeout: 3600 } })
    balancer = await makeEndpoint(server, { folder, settings: { type: 'LB', workersMax: 0 } })
    await runJob(server, id, {})
  })

  /** By way of the gate. */
  const client = (part: string) => callAll(part, { url: gate.url, key: server.apiKey, endpoints: [id, balancer] })

  test('the synchronous one: run, status, output, stream, cancel, run_sync, purge_queue, health', async () => {
    const seen = await client('sync')
    assert.deepEqual([seen.once, seen.impatient.error, seen.impatient.text], [null, 'TimeoutError', 'Job timed out.'])
    assert.deepEqual([seen.output, seen.status], [{ echo: { a: 1 } }, 'COMPLETED'])
    assert.deepEqual([seen.streamed, seen.broken], [NUMBERS, NUMBERS.slice(0, 1)])
    assert.deepEqual([seen.brokenStatus, seen.brokenOutput], ['FAILED', null])
    assert.deepEqual([seen.purged, seen.purgedStatus], [{ removed: 1, status: 'completed' }, 'CANCELLED'])
    assert.deepEqual([seen.cancel.status, seen.cancelledOutput, seen.failedSync], ['CANCELLED', null, null])
    // It treats an empty input as missing, and wraps its argument.
    const wrapped = [{ c: 3 }, { c: 3 }, {}, { input: {} }]
    assert.deepEqual(
      seen.wrapped,
      wrapped.map(echo => ({ echo })),
    )
    assert.deepEqual(Object.keys(seen.health.jobs).sort(), COUNTERS)
  })

  test('the asynchronous one: run, status, output, stream, cancel, purge_queue, health', async () => {
    const seen = await client('async')
    assert.deepEqual([seen.atOnce.error, seen.impatient.error], ['TimeoutError', 'TimeoutError'])
    assert.deepEqual([seen.output, seen.status], [{ echo: { a: 1 } }, 'COMPLETED'])
    assert.deepEqual([seen.streamed, seen.streamedStatus], [NUMBERS, 'COMPLETED'])
    assert.deepEqual([seen.purged, seen.purgedStatus], [{ removed: 1, status: 'completed' }, 'CANCELLED'])
    assert.deepEqual([seen.cancel.status, seen.cancelled], ['CANCELLED', 'CANCELLED'])
    assert.deepEqual(Object.keys(seen.health.jobs).sort(), COUNTERS)
  })

  test('what is refused is the error that the client has for it', async () => {
    const seen = await client('errors')
    for (const caught of seen.wrongKey as Caught[]) {
      assert.equal(caught.error, 'RuntimeError')
      assert.match(caught.text!, /^401 Unauthorized/)
    }
    const http = (caught: Caught) => [caught.error, caught.status]
    for (const caught of seen.unknownJob) assert.deepEqual(http(caught), ['HTTPError', 404])
    assert.deepEqual(http(seen.unknownEndpoint), ['HTTPError', 404])
    assert.deepEqual(http(seen.balancer), ['HTTPError', 400])
    assert.deepEqual(http(seen.cancelDone), ['HTTPError', 409])
    assert.deepEqual(http(seen.tooLarge), ['HTTPError', 413])
  })

  test('the asynchronous one looks at no status, and finds a JSON object whatever it is', async () => {
    const seen = await client('async_errors')
    assert.deepEqual([seen.wrongKey.error, seen.wrongKey.text], ['KeyError', "'id'"])
    assert.match(seen.wrongHealth.error, /API key/)
    assert.deepEqual([seen.unknownStatus.error, seen.unknownStatus.text], ['KeyError', "'status'"])
    assert.deepEqual(seen.unknownCancel, { error: 'job nosuch not found' })
  })

  test('run_sync past the wait polls the status until the job is done', async () => {
    gate.rule = line => (line.endsWith('/runsync') ? { path: `/v2/${id}/runsync?wait=1000` } : undefined)
    gate.lines.length = 0
    assert.deepEqual(await client('past_wait'), { echo: { a: 1 } })
    const polls = gate.lines.filter(line => line.startsWith(`GET /v2/${id}/status/sync-`)).length
    assert.ok(polls >= 1 && polls <= 5, `${polls} polls`)
  })

  test('429 makes it ask again after Retry-After what it may ask again, and is an error for the rest', async () => {
    const body = '{"error":"too many requests are waiting on this server"}'
    let times = 0
    gate.lines.length = 0
    gate.rule = line => {
      if (line.startsWith('GET') && times++ >= 2) return undefined
      return { status: 429, headers: { 'retry-after': '1' }, body }
    }
    const seen = await client('limited')
    gate.rule = () => undefined
    assert.deepEqual([seen.jobs, times], [COUNTERS, 3])
    assert.ok(seen.seconds >= 1.9 && seen.seconds * 1_000 < patient(5_000), `it took ${seen.seconds} s`)
    assert.deepEqual([seen.run.error, seen.run.status], ['HTTPError', 429])
    assert.equal(gate.lines.filter(line => line.startsWith('POST')).length, 1)
  })

  test('its stream of a cancelled job, which it never ends, costs a request in five seconds and ends with the job', async () => {
    gate.rule = () => undefined
    gate.lines.length = 0
    const ended = client('cancelled')
    const line = await until(
      'the job to be cancelled',
      () => gate.lines.find(seen => seen.includes('/cancel/')),
      20_000,
    )
    const job = line.split('/').at(-1)!
    const polls = () => gate.lines.filter(seen => seen.includes('/stream/')).length
    const first = polls()
    await sleep(6_000)
    assert.ok(polls() - first <= 2, `${polls() - first} requests in 6 s`)
    await ask(server, `/v2/${id}/status/${job}?ttl=1000`)
    const { error, status } = await ended
    assert.deepEqual([error, status], ['HTTPError', 404])
  })
})
