/** The relay against servers that end at the worst moment: they are played by the test. */
import assert from 'node:assert/strict'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { Relay } from '../../../src/relay/relay.ts'
import { patient } from '../../support/patience.ts'
import { atEnd, temporaryFolder } from '../support/cleanup.ts'
import { playServer, sendTokens } from '../support/played-server.ts'
import { sleep, timed, until } from '../support/until.ts'

type Handler = (call: string, request: IncomingMessage, response: ServerResponse, body: string) => void

interface Seen {
  readonly call: string
  readonly body: string
  readonly headers: IncomingMessage['headers']
}

const HEADERS = { authorization: 'token-of-w' }

async function openRelay() {
  const relay = new Relay({ folder: temporaryFolder(), setAside: temporaryFolder(), secret: 'secret', onEnd: () => {} })
  const port = await relay.listen(0)
  atEnd(() => relay.close())
  const url = `http://127.0.0.1:${port}`
  await sendTokens(url, { live: ['token-of-w', 't'] })
  const seen: Seen[] = []
  const server = (handler: Handler) =>
    playServer(url, (incoming, outgoing, body) => {
      const call = (incoming.url ?? '').split('/')[3] ?? ''
      seen.push({ call, body, headers: incoming.headers })
      handler(call, incoming, outgoing, body)
    })
  const path = (call: string, more = '') => `${url}/v2/ep/${call}/w${more}`
  return { port, path, url, seen, server }
}

describe('a call that was cut off by the end of its server', () => {
  test('a result goes to the next server, whole', async () => {
    const { path, seen, server } = await openRelay()
    const first = await server(() => first.kill())
    const large = JSON.stringify({ output: 'x'.repeat(3_000_000) })
    const post = fetch(path('job-done', '/job?isStream=false'), { method: 'POST', body: large, headers: HEADERS })
    await until('the first server to have it', () => seen.length === 1)
    await sleep(300)
    await server((_, __, response) => response.end('{}'))
    const answer = await post
    assert.deepEqual([answer.status, await answer.text()], [200, '{}'])
    // The second one was first asked whether it answers.
    const results = seen.filter(({ call }) => call === 'job-done')
    assert.deepEqual(
      results.map(({ body, headers }) => [body === large, headers.authorization]),
      [
        [true, 'token-of-w'],
        [true, 'token-of-w'],
      ],
    )
  })

  test('it goes there also if its worker ended since', async () => {
    const { path, seen, server } = await openRelay()
    const post = request(path('job-done', '/job?a'), { method: 'POST', headers: HEADERS }).end('{"output":1}')
    post.on('error', () => {})
    await sleep(200)
    post.destroy()
    await server((_, __, response) => response.end('{}'))
    await until('the result', () => seen.length === 1)
    assert.equal(seen[0]!.body, '{"output":1}')
  })

  test('a chunk says that it may be there, and how many there are then', async () => {
    const { path, seen, server } = await openRelay()
    const chunk = () => fetch(path('job-stream', '/job?a'), { method: 'POST', body: '"x"', headers: HEADERS })
    const first = await server((_, __, response) => (seen.length < 3 ? response.end('{}') : first.kill()))
    await (await chunk()).text()
    await (await chunk()).text()
    const third = chunk()
    await until('the third', () => seen.length === 3)
    await server((_, __, response) => response.end('{}'))
    assert.equal((await third).status, 200)
    assert.deepEqual(
      seen.map(({ headers }) => headers['x-runyard-again']),
      [undefined, undefined, undefined, '3'],
    )
  })

  test('what was claimed for a take is reported before the take is passed on again', async () => {
    const { path, seen, server } = await openRelay()
    const before = Date.now()
    const first = await server(() => first.kill())
    const take = fetch(path('job-take', '?a&job_in_progress=0'), { headers: HEADERS })
    await until('the take', () => seen.length === 1)
    const after = Date.now()
    await sleep(200)
    await server((_, { headers }, response) => {
      const isReport = headers['x-runyard-undelivered-since'] !== undefined
      if (isReport) response.writeHead(204).end()
      else response.end('{"id":"a"}')
    })
    assert.deepEqual(await (await take).json(), { id: 'a' })
    const [, report, again] = seen
    const sinceMs = Number(report!.headers['x-runyard-undelivered-since'])
    assert.ok(sinceMs >= before - 1 && sinceMs <= after, `${sinceMs}`)
    assert.deepEqual([report!.headers.authorization, report!.call], ['token-of-w', 'job-take'])
    assert.equal(again!.headers['x-runyard-undelivered-since'], undefined)
    assert.equal(seen.length, 3)
  })

  test('a take whose worker goes away is reported at once', async () => {
    const { path, port, seen, server } = await openRelay()
    await server((_, { headers }, response) => {
      if (headers['x-runyard-undelivered-since'] !== undefined) response.writeHead(204).end()
    })
    const socket = connect(port, '127.0.0.1')
    socket.write(
      `GET ${new URL(path('job-take', '?a')).pathname} HTTP/1.1\r\nHost: localhost\r\nAuthorization: t\r\n\r\n`,
    )
    await until('the take', () => seen.length === 1)
    socket.destroy()
    await until('the report', () => seen.length === 2)
    assert.ok(seen[1]!.headers['x-runyard-undelivered-since'] !== undefined)
  })
})

describe('while no server is there', () => {
  test('pings are answered at once, polls after 25 s with nothing', { concurrency: true }, async () => {
    const { path } = await openRelay()
    const ask = (call: string) => timed(async () => (await fetch(path(call, '?a'), { headers: HEADERS })).status)
    const [ping, take, batch, stop] = await Promise.all(['ping', 'job-take', 'job-take-batch', 'job-stop'].map(ask))
    assert.equal(ping!.value, 200)
    assert.ok(ping!.ms < patient(10_000), `${ping!.ms} ms`)
    for (const poll of [take!, batch!, stop!]) {
      assert.equal(poll.value, 204)
      assert.ok(poll.ms > 24_000 && poll.ms < patient(35_000), `${poll.ms} ms`)
    }
  })

  test('a held poll is passed on when one comes', async () => {
    const { path, server } = await openRelay()
    const stop = fetch(path('job-stop', '?a'), { headers: HEADERS })
    await sleep(200)
    await server((_, __, response) => response.end('{"jobsToStop":["a"]}'))
    assert.deepEqual(await (await stop).json(), { jobsToStop: ['a'] })
  })
})

describe('what a relay does not do', () => {
  test('it forwards only calls of workers, and obeys only callers with its secret', async () => {
    const { url, seen, server } = await openRelay()
    await server((_, __, response) => response.end('{}'))
    for (const path of ['/', '/graphql', '/v2/ep/run', '/v2/ep/health', '/metrics']) {
      assert.equal((await fetch(`${url}${path}`)).status, 404, path)
    }
    for (const path of ['/relay/tether', '/relay/end']) {
      const headers = { authorization: 'guess', 'x-runyard-server': '127.0.0.1:1' }
      assert.equal((await fetch(`${url}${path}`, { method: 'POST', headers })).status, 404, path)
    }
    assert.deepEqual(seen, [])
  })

  test('it lets no worker speak in its own name, and changes no answer', async () => {
    const { path, seen, server } = await openRelay()
    await server((_, __, response) => {
      response.writeHead(429, { 'retry-after': '5', 'content-type': 'application/json' }).end('{"error":"slow"}')
    })
    const headers = { ...HEADERS, 'x-runyard-undelivered-since': '1', 'user-agent': 'RunPod-Python-SDK/1.12.0' }
    const answer = await fetch(path('job-take', '?gpu=a+b&job_in_progress=1'), { headers })
    assert.deepEqual(
      [answer.status, answer.headers.get('retry-after'), await answer.text()],
      [429, '5', '{"error":"slow"}'],
    )
    assert.equal(seen[0]!.headers['x-runyard-undelivered-since'], undefined)
    assert.equal(seen[0]!.headers['user-agent'], 'RunPod-Python-SDK/1.12.0')
  })
})

describe('the address for containers', () => {
  const listen = (url: string, at: string, authorization = 'secret') =>
    fetch(`${url}/relay/listen`, { method: 'POST', headers: { authorization, 'x-runyard-listen': at } })

  test('a server has the relay listen there; calls are passed on and commands are not taken', async () => {
    const { url, seen, server } = await openRelay()
    await server((_, __, response) => response.end('{"jobsToStop":[]}'))
    const { port } = (await (await listen(url, '127.0.0.2:0')).json()) as { port: number }
    const outer = `http://127.0.0.2:${port}`
    assert.equal((await fetch(`${outer}/v2/ep/job-stop/w?a`, { headers: HEADERS })).status, 200)
    assert.equal(seen.length, 1)
    for (const path of ['/', '/v2/ep/run', '/relay/tether', '/relay/end', '/relay/listen']) {
      const headers = { authorization: 'secret', 'x-runyard-server': '127.0.0.1:1', 'x-runyard-listen': '127.0.0.3:0' }
      assert.equal((await fetch(`${outer}${path}`, { method: 'POST', headers })).status, 404, path)
    }
    assert.equal((await listen(url, '127.0.0.4:0', 'guess')).status, 404)
  })

  test('a result that a container sends while the server is away reaches the next one', async () => {
    const { url, seen, server } = await openRelay()
    const first = await server(() => {})
    const { port } = (await (await listen(url, '127.0.0.2:0')).json()) as { port: number }
    first.kill()
    const post = { method: 'POST', body: '{"output":1}', headers: HEADERS }
    const result = fetch(`http://127.0.0.2:${port}/v2/ep/job-done/w/job?a`, post)
    await sleep(200)
    await server((_, __, response) => response.end('{}'))
    assert.equal((await result).status, 200)
    assert.deepEqual(
      seen.map(({ call, body }) => `${call} ${body}`),
      ['job-done {"output":1}'],
    )
  })

  test('it keeps its port when it is asked again, moves when another address is wanted, and says why it cannot', async () => {
    const { url } = await openRelay()
    const asked = async (at: string) => (await (await listen(url, at)).json()) as { port: number }
    const { port } = await asked('127.0.0.2:0')
    assert.deepEqual(await asked('127.0.0.2:1'), { port })
    const moved = await asked(`127.0.0.3:${port}`)
    assert.deepEqual(moved, { port })
    await assert.rejects(fetch(`http://127.0.0.2:${port}/`))
    const nowhere = await listen(url, '203.0.113.9:0')
    assert.equal(nowhere.status, 409)
    assert.match(await nowhere.text(), /EADDRNOTAVAIL/)
    assert.equal((await fetch(`http://127.0.0.3:${port}/`)).status, 404)
  })
})
