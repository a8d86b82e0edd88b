/** Webhooks over real sockets: a receiver of our own, and a server that is killed between tries. */
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { before, describe, test } from 'node:test'
import { createOutbound } from '../../../src/system/http/outbound.ts'
import { patient } from '../../support/patience.ts'
import { atEnd, temporaryFolder } from '../support/cleanup.ts'
import { ask, makeEndpoint, runJob, statusOf, submit, whenFinal } from '../support/client.ts'
import { root, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const folder = `${root}/examples/hello-node`

interface Message {
  readonly atMs: number
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** Answer of a receiver: a status, or never, or a body that does not end. */
type Behaviour = number | 'never' | 'endless'

interface Receiver {
  readonly url: string
  readonly port: number
  readonly messages: Message[]
}

/** A receiver whose answers come from a list; the last one goes on. */
async function receiver(...answers: Behaviour[]): Promise<Receiver> {
  const messages: Message[] = []
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', part => parts.push(part))
    request.on('end', () => {
      const answer = answers[Math.min(messages.length, answers.length - 1)]!
      const { url = '', headers } = request
      messages.push({ atMs: performance.now(), path: url, headers, body: Buffer.concat(parts).toString() })
      if (answer === 'never') return
      if (answer === 'endless') {
        response.writeHead(200)
        const more = () => {
          while (!response.destroyed && response.write('x'.repeat(16_384)));
        }
        response.on('drain', more)
        more()
      } else response.writeHead(answer, { location: `${url}/elsewhere` }).end('thank you')
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  atEnd(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/hook?a=1`, port, messages }
}

/** The one delivery of a job; undefined while the job goes on. */
async function deliveryOf(server: Server, endpoint: string, job: string) {
  const { json, text } = await ask(server, `/v2/${endpoint}/webhooks/${job}`)
  assert.ok(json.deliveries?.length <= 1, text)
  return json.deliveries[0]
}

/** The delivery as soon as it is over. */
function whenOver(server: Server, endpoint: string, job: string, forMs = 45_000) {
  const look = async () => {
    const delivery = await deliveryOf(server, endpoint, job)
    return delivery !== undefined && delivery.state !== 'PENDING' && delivery
  }
  return until(`the webhook of ${job} to be over`, look, forMs, 200)
}

// Most of it is waiting for the next try.
describe('a server with a receiver', { concurrency: true }, () => {
  let server: Server
  let endpoint: string
  before(async () => {
    server = await startServer()
    endpoint = await makeEndpoint(server, { folder, settings: { workersMax: 1, idleTimeout: 3600 } })
    await runJob(server, endpoint, {})
  })

  test('a result arrives once, as the status has it, with a signature that verifies', async () => {
    const { url, messages } = await receiver(200)
    const id = await submit(server, endpoint, { name: 'Ädä' }, { webhook: url })
    await whenFinal(server, endpoint, id)
    const [message] = await until('the message', () => messages.length > 0 && messages)
    assert.equal(message!.path, '/hook?a=1')
    const sent = { input: { name: 'Ädä' }, webhook: url }
    assert.deepEqual(JSON.parse(message!.body), { ...(await statusOf(server, endpoint, id)), ...sent })
    const { headers, body } = message!
    assert.equal(headers['content-type'], 'application/json')
    const { key } = (await ask(server, `/v2/${endpoint}/webhook-key`)).json
    const secret = Buffer.from(key.replace('whsec_', ''), 'base64')
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
    const wanted = createHmac('sha256', secret).update(signed).digest('base64')
    assert.equal(headers['webhook-signature'], `v1,${wanted}`)
    const delivery = await whenOver(server, endpoint, id)
    assert.deepEqual([delivery.state, delivery.tries.length, delivery.tries[0].status], ['DELIVERED', 1, 200])
    assert.equal(messages.length, 1)
    assert.ok(!server.lines.some(line => line.includes(key)))
  })

  test('after two answers of 500 the third try arrives, 10 seconds apart', async () => {
    const { url, messages } = await receiver(500, 500, 200)
    const id = await submit(server, endpoint, {}, { webhook: url })
    const { state, tries } = await whenOver(server, endpoint, id)
    assert.equal(state, 'DELIVERED')
    assert.deepEqual(
      tries.map(({ status }: { status: number }) => status),
      [500, 500, 200],
    )
    const gaps = messages.slice(1).map(({ atMs }, index) => atMs - messages[index]!.atMs)
    assert.ok(
      gaps.every(gap => gap > 9_900 && gap < patient(19_000)),
      String(gaps),
    )
    assert.equal(new Set(messages.map(({ headers }) => headers['webhook-id'])).size, 1)
  })

  test('a receiver that hangs is given up after 10 seconds, a redirect is not followed, a long body is cut', async () => {
    const hanging = await receiver('never')
    const moved = await receiver(307)
    const long = await receiver('endless')
    const [slow, redirected, endless] = await Promise.all(
      [hanging, moved, long].map(({ url }) => submit(server, endpoint, {}, { webhook: url })),
    )
    assert.equal((await whenOver(server, endpoint, endless!)).state, 'DELIVERED')
    const first = await until('the first try to be over', async () => {
      const delivery = await deliveryOf(server, endpoint, slow!)
      return delivery?.tries[0]
    })
    assert.equal(first.error, 'no answer within 10 s')
    assert.ok(first.tookMs >= 10_000 && first.tookMs < patient(19_000), first.tookMs)
    const [{ status }] = (await deliveryOf(server, endpoint, redirected!)).tries
    assert.equal(status, 307)
    assert.ok(moved.messages.every(({ path }) => path === '/hook?a=1'))
  })

  test('a forbidden address is refused with the reason, and so is a closed port', async () => {
    const job = (webhook: string) => submit(server, endpoint, {}, { webhook })
    const metadata = await job('http://169.254.169.254/latest/meta-data/')
    const mapped = await job('http://[::ffff:a9fe:a9fe]/')
    const closed = await job('http://127.0.0.1:1/')
    const errorOf = (id: string): Promise<string> =>
      until('a try', async () => (await deliveryOf(server, endpoint, id))?.tries[0]?.error)
    assert.match(await errorOf(metadata), /^the address 169\.254\.169\.254 is link-local or serves metadata/)
    assert.match(await errorOf(mapped), /is link-local or serves metadata/)
    assert.match(await errorOf(closed), /ECONNREFUSED/)
  })

  test('a server that is killed between tries delivers after its restart', async () => {
    const dataDir = temporaryFolder()
    const first = await startServer({ dataDir })
    const endpoint = await makeEndpoint(first, { folder, settings: { workersMax: 0 } })
    const { url, messages } = await receiver(500, 200)
    const id = await submit(first, endpoint, {}, { webhook: url })
    assert.equal((await ask(first, `/v2/${endpoint}/cancel/${id}`, { method: 'POST' })).status, 200)
    await until('the first try to be kept', async () => (await deliveryOf(first, endpoint, id)).tries.length === 1)
    await first.kill9()
    const second = await startServer({ dataDir })
    const delivery = await whenOver(second, endpoint, id)
    assert.deepEqual(
      [delivery.state, delivery.tries.map(({ status }: { status: number }) => status)],
      ['DELIVERED', [500, 200]],
    )
    assert.equal(JSON.parse(messages[1]!.body).status, 'CANCELLED')
    assert.equal(messages[0]!.body, messages[1]!.body)
    await second.stop()
  })
})

test('with --webhook-public-only private addresses are refused too', async () => {
  const server = await startServer({ args: ['--webhook-public-only'] })
  const endpoint = await makeEndpoint(server, { folder, settings: { workersMax: 0 } })
  const { url, messages, port } = await receiver(200)
  for (const webhook of [url, `http://localhost:${port}/`]) {
    const id = await submit(server, endpoint, {}, { webhook })
    await ask(server, `/v2/${endpoint}/cancel/${id}`, { method: 'POST' })
    const error = await until('a try', async () => (await deliveryOf(server, endpoint, id)).tries[0]?.error)
    assert.match(error, /is not public, and this server calls public ones only/)
  }
  assert.equal(messages.length, 0)
  await server.stop()
})

const signal = () => AbortSignal.timeout(patient(5_000))
const message = { headers: { 'content-type': 'application/json' }, body: '{}' }

test('a name is resolved once, and only the address that was checked is connected to', async () => {
  const { port, messages } = await receiver(200)
  let asked = 0
  const answers = [['127.0.0.1'], ['169.254.169.254'], ['fe80::1', '127.0.0.1'], []]
  const resolve = async () => answers[asked++]!.map(address => ({ address, family: address.includes(':') ? 6 : 4 }))
  const outbound = createOutbound({ publicOnly: false, resolve })
  const post = () => outbound.post({ url: `http://rebound.example:${port}/`, ...message, signal: signal() })
  assert.deepEqual(await post(), { status: 200 })
  assert.equal(messages[0]!.headers.host, `rebound.example:${port}`)
  const refused = (await post()) as { problem: string }
  assert.match(refused.problem, /^the address 169\.254\.169\.254 of rebound\.example is link-local/)
  assert.deepEqual(await post(), { status: 200 })
  assert.deepEqual(await post(), { problem: 'rebound.example has no address' })
  assert.equal(messages.length, 2)
  const unasked = createOutbound({ publicOnly: false, resolve: () => new Promise(() => {}) })
  const given = await unasked.post({ url: 'http://slow.example/', ...message, signal: AbortSignal.timeout(50) })
  assert.ok('problem' in given)
  assert.ok('problem' in (await outbound.post({ url: 'no address', ...message, signal: signal() })))
})
