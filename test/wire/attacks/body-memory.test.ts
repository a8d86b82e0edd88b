/** Memory for bodies and answers is shared: nobody who sends much, or reads nothing, takes the share of others. */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { type Answer, ask } from '../support/client.ts'
import { openWires, type Wire } from '../support/flood.ts'
import { type RawWorker, silentEndpoint, type TakenJob } from '../support/raw-worker.ts'
import type { Server } from '../support/server.ts'
import { until } from '../support/until.ts'
import { type ProbedServer, startProbedServer } from './probed-server.ts'
import { giveTo, makeTenant } from './tenant.ts'

const MB = 1024 * 1024
/** `--max-body-memory` of the server, in megabytes. */
const BODY_MB = 32

/** Pages that anybody may read, and how. */
const DOCUMENTS = [
  ['/graphql', 'text/html'],
  ['/v2/docs', '*/*'],
  ['/v2/openapi.json', '*/*'],
] as const

/** An account with an endpoint and a worker, for which the test speaks. */
interface Owner {
  readonly key: string
  readonly server: Server
  readonly worker: RawWorker
  readonly endpoint: string
}

async function makeOwner(server: Server, name: string): Promise<Owner> {
  const endpoint = await silentEndpoint(server, 1)
  const worker = await endpoint.worker()
  const tenant = await makeTenant(server, name)
  giveTo(tenant, endpoint.id)
  return { key: tenant.apiKey, server: tenant, worker, endpoint: endpoint.id }
}

async function jobsOf({ server, worker, endpoint }: Owner, count: number): Promise<TakenJob[]> {
  for (let n = 0; n < count; n += 1) await ask(server, `/v2/${endpoint}/run`, { body: { input: {} } })
  return worker.takeBatch(count)
}

/** Posts of which all but the last byte comes. */
async function unfinished(server: Server, count: number, path: string, key: string | null, bytes: number) {
  const authorization = key === null ? '' : `authorization: ${key}\r\n`
  const head = `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n${authorization}content-length: ${bytes}\r\n\r\n`
  const body = `{"output":"${'x'.repeat(bytes - 13)}"`
  const wires: Wire[] = []
  // Many that are read in one turn of the loop would look as if one had held it.
  while (wires.length < count) {
    const some = await openWires(server, Math.min(20, count - wires.length), head + body)
    await until('them to be sent', () => some.every(({ socket }) => socket.writableLength === 0))
    wires.push(...some)
  }
  return wires
}

async function end(wires: readonly Wire[]): Promise<void> {
  for (const wire of wires) {
    wire.socket.destroy()
    await wire.closed
  }
}

describe('memory for bodies', () => {
  let server: ProbedServer
  let mean: Owner
  let other: Owner

  before(async () => {
    server = await startProbedServer({
      args: ['--max-body-memory', String(BODY_MB), '--max-body-disk', '128', '--rate-limits', 'off'],
    })
    mean = await makeOwner(server, 'Mean')
    other = await makeOwner(server, 'Other')
    server.forgetHolds()
  })

  test("unfinished bodies of one account's worker do not lose the result of another account's job", async () => {
    const jobs = await jobsOf(other, 4)
    const path = mean.worker.path('job-done', jobs[0]!.id)
    const wires = await unfinished(server, 12, path, mean.worker.token, 4 * MB)
    const answers = await Promise.all(jobs.map(({ id }) => other.worker.done(id, `{"output":"${'x'.repeat(2 * MB)}"}`)))
    assert.deepEqual(answers.map(statusOf), [200, 200, 200, 200])
    for (const { id } of jobs) {
      const { json } = await ask(other.server, `/v2/${other.endpoint}/status/${id}`)
      assert.equal(json.status, 'COMPLETED')
    }
    await end(wires)
  })

  test('results that find no room in memory wait on disk, and each is taken the first time', async () => {
    const jobs = await jobsOf(mean, 40)
    assert.equal(jobs.length, 40)
    const wires: Wire[] = []
    for (const { id } of jobs) {
      wires.push(...(await unfinished(server, 1, mean.worker.path('job-done', id), mean.worker.token, MB)))
    }
    for (const { socket, received } of wires) {
      socket.write('}')
      await until('the answer', () => received().includes('\r\n\r\n'))
      assert.match(received(), /^HTTP\/1\.1 200 /)
    }
    for (const { id } of jobs) {
      const { json } = await ask(mean.server, `/v2/${mean.endpoint}/status/${id}`)
      assert.equal(json.output.length, MB - 13)
    }
    await end(wires)
  })

  test('unfinished bodies of one account do not keep another account from submitting', async () => {
    const wires = await unfinished(server, 60, `/v2/${mean.endpoint}/run`, mean.key, MB)
    const body = { input: { x: 'x'.repeat(2 * MB) } }
    for (let n = 0; n < 5; n += 1) {
      const { status, text } = await ask(other.server, `/v2/${other.endpoint}/run`, { body })
      assert.equal(status, 200, text)
    }
    await end(wires)
  })

  test('640 unfinished GraphQL bodies without a key do not refuse the operator', async () => {
    const wires = await unfinished(server, 640, '/graphql', null, 120_000)
    const query = `{ myself { id } } # ${'x'.repeat(MB)}`
    for (let n = 0; n < 5; n += 1) {
      const { status, text } = await ask(server, '/graphql', { body: { query } })
      assert.equal(status, 200, text)
    }
    await end(wires)
  })

  test('nor those without a key for longer than two seconds', async () => {
    const wires = await unfinished(server, 200, '/graphql', null, 120_000)
    await until('an anonymous question to be answered', async () => {
      const query = `{ gpuTypes { id } } # ${'x'.repeat(50_000)}`
      return (await ask(server, '/graphql', { body: { query }, headers: { authorization: null } })).status === 200
    })
    await end(wires)
  })

  test('nothing of it held the loop', () => server.assertNeverHeld())
})

describe('unread responses', () => {
  let server: ProbedServer

  before(async () => {
    server = await startProbedServer()
    // The documents are made when somebody asks for them first.
    for (const [path, accept] of DOCUMENTS) await fetch(`${server.url}${path}`, { headers: { accept } })
  })

  test('unread pages cut no download, and can still be read', async () => {
    const [tenant, page] = [
      await makeOwner(server, 'Reader'),
      'GET /graphql HTTP/1.1\r\nhost: localhost\r\naccept: text/html\r\n\r\n',
    ]
    const [job] = await jobsOf(tenant, 1)
    assert.equal((await tenant.worker.done(job!.id, `{"output":"${'x'.repeat(19 * MB)}"}`)).status, 200)
    const path = `/v2/${tenant.endpoint}/status/${job!.id}`
    const [download] = (await openWires(
      server,
      1,
      `GET ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: ${tenant.key}\r\n\r\n`,
    )) as [Wire]
    download.socket.once('data', () => download.socket.pause())
    await until('the download to begin', () => download.received() !== '')
    // So large a result is read and answered in one go, which is not what this is about.
    server.forgetHolds()
    const pages = await openWires(server, 40, page)
    for (const { socket } of pages) socket.once('data', () => socket.pause())
    await until('the pages to begin', () => pages.every(wire => wire.received() !== '' || wire.isClosed()))
    assert.ok(
      pages.every(wire => !wire.isClosed()),
      'a page that is not read holds too little to be cut',
    )
    download.socket.resume()
    await until('the whole download', () => download.received().length > 19 * MB)
    assert.equal(download.isClosed(), false)
    const read = await fetch(`${server.url}/graphql`, { headers: { accept: 'text/html' } })
    assert.match(await read.text(), /Runyard GraphQL[\s\S]*<\/html>\s*$/)
    await end(pages)
  })

  test('the pages are compressed for clients that accept it', async () => {
    for (const [path, accept] of DOCUMENTS) {
      const plain = await fetch(`${server.url}${path}`, { headers: { accept, 'accept-encoding': 'identity' } })
      const small = await fetch(`${server.url}${path}`, { headers: { accept, 'accept-encoding': 'gzip' } })
      assert.equal(small.headers.get('content-encoding'), 'gzip')
      const [whole, sent] = [Number(plain.headers.get('content-length')), Number(small.headers.get('content-length'))]
      assert.ok(sent * 2 < whole, `${path}: ${sent} of ${whole}`)
      assert.equal(await small.text(), await plain.text())
    }
  })

  test('nothing of it held the loop', () => server.assertNeverHeld())
})

function statusOf({ status }: Answer): number {
  return status
}
