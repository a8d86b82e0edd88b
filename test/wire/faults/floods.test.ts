/**
 * Floods of bodies and results: the memory of the server stays within stated bounds, and it
 * serves others at the same time.
 */
import assert from 'node:assert/strict'
import { readdirSync, statSync } from 'node:fs'
import { before, describe, test } from 'node:test'
import { listParts, OUTPUT_BYTES } from '../../../src/disk/worker-output.ts'
import { readProcess } from '../../../src/drivers/base/process-table.ts'
import { readPump } from '../../../src/pump/pump-file.ts'
import { patient } from '../../support/patience.ts'
import { ask, healthOf, makeEndpoint } from '../support/client.ts'
import {
  floodable,
  MAX_MEMORY_MB,
  MAX_RESPONSE_MS,
  MB,
  memoryOf,
  openFilesOf,
  sendLarge,
  startBounded,
  whileServing,
} from '../support/flood.ts'
import { workerProcesses } from '../support/processes.ts'
import { silentEndpoint } from '../support/raw-worker.ts'
import { root, type Server, startServer } from '../support/server.ts'
import { sleep, until } from '../support/until.ts'

describe('bodies of 100 MB, twenty at once, half of them with their length', () => {
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
    test(`${name} answers ${status} to each, announced or in chunks`, async () => {
      const large = { path: path(), authorization: `Bearer ${server.apiKey}`, bytes: 100 * MB }
      const flood = () => Promise.all([true, false].map(announced => sendLarge(server, 10, { ...large, announced })))
      const { value, peakMb, worstMs } = await whileServing(server, endpoint, flood)
      assert.deepEqual(value, [{ [status]: 10 }, { [status]: 10 }])
      assert.ok(peakMb < MAX_MEMORY_MB, `${Math.round(peakMb)} MB`)
      assert.ok(worstMs < patient(MAX_RESPONSE_MS), `${Math.round(worstMs)} ms`)
    })
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

  test('as many as there is room for are accepted, the others get 429', async () => {
    for (const [operation, bytes] of [
      ['run', 9 * MB],
      ['runsync?wait=1000', 19 * MB],
    ] as const) {
      const path = `/v2/${endpoint}/${operation}`
      const { value, peakMb, worstMs } = await whileServing(server, endpoint, () => flood(path, bytes))
      assert.deepEqual(Object.keys(value).sort(), ['200', '429'], JSON.stringify(value))
      assert.ok(peakMb < MAX_MEMORY_MB, `${Math.round(peakMb)} MB`)
      assert.ok(worstMs < patient(MAX_RESPONSE_MS), `${Math.round(worstMs)} ms`)
    }
  })

  test('the room is free again: one more is accepted, and floods do not add up', async () => {
    // With those of the test before, more in all than the memory that is allowed.
    await flood(`/v2/${endpoint}/run`, 9 * MB)
    const body = JSON.stringify({ input: { x: 'x'.repeat(9 * MB) } })
    assert.equal((await ask(server, `/v2/${endpoint}/run`, { body })).status, 200)
    assert.ok(memoryOf(server.pid) < MAX_MEMORY_MB, `${Math.round(memoryOf(server.pid))} MB`)
  })

  test('callers that wait for their jobs do not hold the inputs, half a gigabyte in all', async () => {
    const body = JSON.stringify({ input: { x: 'x'.repeat(5 * MB) } })
    // The jobs of others would be counted as accepted ones.
    const other = await makeEndpoint(server, { folder: `${root}/examples/hello-node`, settings: { workersMax: 0 } })
    const accepted = async () => (await healthOf(server, endpoint)).jobs.inQueue
    const callers = async () => {
      const waiting = []
      for (let sent = 0; sent < 100; sent += 5) {
        const before = await accepted()
        const path = `/v2/${endpoint}/runsync?wait=300000`
        waiting.push(...Array.from({ length: 5 }, () => ask(server, path, { body })))
        await until('these to be accepted', async () => (await accepted()) >= before + 5)
      }
      return waiting
    }
    const { value, peakMb } = await whileServing(server, other, async () => ({ waiting: await callers() }))
    assert.ok(peakMb < MAX_MEMORY_MB, `${Math.round(peakMb)} MB`)
    const purge = () => ask(server, `/v2/${endpoint}/purge-queue`, { method: 'POST' })
    const purged = await whileServing(server, other, purge)
    assert.ok(purged.peakMb < MAX_MEMORY_MB, `${Math.round(purged.peakMb)} MB at the purge`)
    assert.ok(purged.worstMs < patient(MAX_RESPONSE_MS), `${Math.round(purged.worstMs)} ms at the purge`)
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
        await sleep(1_000)
      }
    }
    const flood = () => Promise.all(jobs.map(({ id }) => post(id)))
    const { value, peakMb, worstMs } = await whileServing(server, idle, flood)
    assert.ok(
      value.some(tries => tries > 0),
      'some had to come again',
    )
    assert.ok(peakMb < MAX_MEMORY_MB, `${Math.round(peakMb)} MB`)
    assert.ok(worstMs < patient(MAX_RESPONSE_MS), `${Math.round(worstMs)} ms`)
    for (const { id } of jobs) {
      const { json } = await ask(server, `/v2/${endpoint.id}/status/${id}`)
      assert.equal(json.status, 'COMPLETED')
    }
  })
})

test('workers that print without end wait, neither fill the disk nor delay others, and go on so while no server runs', async () => {
  const server = await startServer({ args: ['--log-level', 'warn'] })
  const { dataDir } = server
  const folder = `${root}/examples/hello-node`
  const quiet = await makeEndpoint(server, { folder, settings: { workersMax: 0 } })
  const settings = { workersMin: 1, workersMax: 1 }
  for (const args of ['yes flood', 'cat /dev/zero']) await makeEndpoint(server, { folder, args, settings })
  const outputs = () => readdirSync(`${dataDir}/logs`).map(worker => `${dataDir}/logs/${worker}`)
  /** Waits until each output has grown by more than is kept of it. */
  const grown = async () => {
    await until('two outputs', () => outputs().length === 2)
    const from = outputs().map(output => listParts(output).at(-1) ?? 0)
    await until(
      'outputs that grow',
      () => outputs().every((output, n) => (listParts(output).at(-1) ?? 0) > from[n]! + OUTPUT_BYTES),
      60_000,
    )
  }
  const { worstMs } = await whileServing(server, quiet, grown)
  assert.ok(worstMs < patient(MAX_RESPONSE_MS), `${Math.round(worstMs)} ms`)
  await server.kill9()
  await grown()
  for (const output of outputs()) {
    const bytes = readdirSync(output).reduce((sum, name) => sum + statSync(`${output}/${name}`).size, 0)
    // The parts, the part that begins while this is counted, and when they were written.
    assert.ok(bytes < 1.5 * OUTPUT_BYTES, `${bytes} bytes`)
  }
  const pump = readPump(`${dataDir}/pump`)!
  const next = await startServer({ dataDir, args: ['--log-level', 'warn'] })
  await next.stop()
  await until('the pump to end', () => readProcess(pump.pid)?.startTime !== pump.startTime)
  assert.deepEqual(workerProcesses(dataDir), [])
})
