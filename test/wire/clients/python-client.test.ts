/** The official Python client against a real server and a real worker. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { before, describe, test } from 'node:test'
import { patient } from '../../support/patience.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { graphql, makeEndpoint, runJob } from '../support/client.ts'
import { python, sdk2, sdk2Skip, skip } from '../support/python.ts'
import { fixture, root, type Server, startServer } from '../support/server.ts'
import { imageFor } from '../support/workers.ts'

const folder = `${root}/examples/hello-node`

let server: Server

before(async () => {
  server = await startServer()
})

describe('the official Python client', { skip }, () => testClient(python, true))

describe("the client of RunPod's SDK 2.0", { skip: sdk2Skip }, () => testClient(sdk2, false))

/** @param isWhole true to use its management functions, too, whose results differ between versions */
function testClient(program: string, isWhole: boolean): void {
  let id: string

  before(async () => {
    id = await makeEndpoint(server, { folder, settings: { workersMax: 1, idleTimeout: 3600 } })
    await runJob(server, id, {})
  })

  /** Runs one part of the script and gives what it printed. */
  // biome-ignore lint/suspicious/noExplicitAny: it is compared with what the test expects
  function client(...words: string[]): Promise<any> {
    const env = {
      PATH: process.env.PATH ?? '',
      HOME: temporaryFolder(),
      RUNPOD_ENDPOINT_BASE_URL: `${server.url}/v2`,
      RUNPOD_API_BASE_URL: server.url,
    }
    return new Promise((resolve, reject) => {
      const script = `${fixture('python-client')}/client.py`
      const child = execFile(
        program,
        [script, ...words],
        { env, timeout: patient(90_000) },
        (error, stdout, stderr) => {
          if (error === null) resolve(JSON.parse(stdout))
          else reject(new Error(`the script failed: ${stderr}`))
        },
      )
      child.stdin?.end(`${server.apiKey}\n`)
    })
  }

  test('run, status, output, run_sync, cancel and health work', async () => {
    const seen = await client('sync', id)
    assert.ok(['IN_QUEUE', 'IN_PROGRESS'].includes(seen.early))
    assert.deepEqual([seen.output, seen.status], [{ message: 'Hello, Ada!', sleptMs: 300 }, 'COMPLETED'])
    assert.deepEqual(seen.sync, { message: 'Hello, Grace!', sleptMs: 0 })
    const { answer, ...cancelled } = seen.cancel
    assert.deepEqual(answer, { id: cancelled.id, status: 'CANCELLED' })
    assert.equal(cancelled.status, 'CANCELLED')
    assert.ok(seen.health.jobs.completed >= 3)
    assert.equal(seen.health.workers.ready, 1)
  })

  test('the asynchronous client does the same', async () => {
    const seen = await client('async', id)
    assert.ok(['IN_QUEUE', 'IN_PROGRESS'].includes(seen.early))
    assert.deepEqual([seen.output, seen.status], [{ message: 'Hello, Ada!', sleptMs: 300 }, 'COMPLETED'])
    assert.deepEqual(seen.cancel.answer, { id: seen.cancel.id, status: 'CANCELLED' })
    assert.equal(seen.cancel.status, 'CANCELLED')
    assert.equal(typeof seen.health.jobs.completed, 'number')
  })

  test('a wrong key is its authentication error, an unknown endpoint an HTTP error', async () => {
    const seen = await client('refused', id)
    for (const call of ['run', 'health']) {
      assert.equal(seen[call].error, 'RuntimeError')
      assert.match(seen[call].text, /401|[Uu]nauthorized/)
    }
    assert.equal(seen.unknown.error, 'HTTPError')
    assert.match(seen.unknown.text, /404/)
  })

  if (!isWhole) return
  test('its management functions make a template and an endpoint that runs jobs, and list it', async () => {
    const seen = await client('management', await imageFor(folder))
    assert.deepEqual([seen.template.name, seen.template.env], ['from-python', [{ key: 'GREETING', value: 'hello' }]])
    assert.deepEqual(
      [seen.endpoint.templateId, seen.endpoint.gpuIds, seen.endpoint.workersMax, seen.endpoint.flashBootType],
      [seen.template.id, 'AMPERE_16', 1, 'FLASHBOOT'],
    )
    assert.deepEqual(seen.output, { message: 'Hello, Ada!', sleptMs: 0 })
    const [listed] = seen.listed
    assert.deepEqual([listed.name, listed.type, listed.env, listed.networkVolume], ['from-python', 'QB', [], null])
    assert.deepEqual([seen.again.error, /already exists/.test(seen.again.text)], ['QueryError', true])
    assert.equal(seen.stranger.error, 'AuthenticationError')
    const { myself } = await graphql(server, '{ myself { podTemplates { name } } }')
    assert.ok(myself.podTemplates.some(({ name }: { name: string }) => name === 'from-python'))
  })
}
