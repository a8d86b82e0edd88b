/** Attacks on the relay that all workers share, by callers without a worker's token and by malicious workers. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { Relay } from '../../../src/relay/relay.ts'
import { atEnd, temporaryFolder } from '../support/cleanup.ts'
import { type LiveTokens, type PlayedHandler, playServer, sendTokens } from '../support/played-server.ts'
import { until } from '../support/until.ts'

const ALIVE = 'token-of-a-worker'

async function openRelay(folder = temporaryFolder()) {
  const relay = new Relay({ folder, setAside: temporaryFolder(), secret: 'secret', onEnd: () => {} })
  const port = await relay.listen(0)
  atEnd(() => relay.close())
  const url = `http://127.0.0.1:${port}`
  const tell = (tokens: LiveTokens) => sendTokens(url, tokens)
  const server = async (handler: PlayedHandler) => {
    const seen: string[] = []
    const { kill } = await playServer(url, (incoming, response, body) => {
      seen.push(`${incoming.method} ${incoming.url}`)
      handler(incoming, response, body)
    })
    return { seen, kill }
  }
  return { relay, port, url, tell, server }
}

/** Sends the head of a result and nothing of its body; gives the first line of the answer. */
async function sendHead(port: number, token: string | null, bytes = 10_000_000): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  const authorization = token === null ? '' : `Authorization: ${token}\r\n`
  socket.write(
    `POST /v2/ep/job-done/w/job HTTP/1.1\r\nHost: a\r\n${authorization}Content-Length: ${bytes}\r\n\r\n{"output":`,
  )
  const answer = await new Promise<string>(resolve => {
    socket.once('data', data => resolve(data.toString().split('\r\n')[0]!))
    socket.on('error', () => resolve('cut off'))
  })
  socket.destroy()
  return answer
}

const post = (url: string, token: string, body = '{"output":1}') =>
  fetch(`${url}/v2/ep/job-done/w/job`, { method: 'POST', headers: { authorization: token }, body })

describe('who has no token of a worker', () => {
  test('is refused before anything of a body is read, also while the server is away', async () => {
    const { port, url, tell, server } = await openRelay()
    await tell({ live: [ALIVE] })
    assert.match(await sendHead(port, null), / 401 /)
    assert.match(await sendHead(port, 'guess'), / 503 /, 'nobody can tell, and workers send again after a 503')
    const take = await fetch(`${url}/v2/ep/job-take/w`, { headers: { authorization: 'guess' } })
    assert.deepEqual([take.status, take.headers.get('retry-after')], [429, '5'])
    const { seen } = await server((_, response) => response.writeHead(401).end('{}'))
    assert.match(await sendHead(port, 'guess'), / 401 /)
    assert.deepEqual(seen, ['GET /v2/ep/job-take/w'], 'the server is asked once, without the body')
  })

  test('cannot use up the connections that workers need', async () => {
    const { port, url, tell, server } = await openRelay()
    await tell({ live: [ALIVE] })
    await server((_, response) => response.end('{}'))
    const idle: Socket[] = []
    for (let n = 0; n < 2_200; n += 1) {
      const socket = connect(port, '127.0.0.1')
      socket.on('error', () => {})
      socket.resume()
      idle.push(socket)
      if (n % 100 === 99) await new Promise(resolve => socket.once('connect', resolve))
    }
    await until('the oldest of them to be cut off', () => idle[0]!.closed)
    assert.equal((await post(url, ALIVE)).status, 200)
    for (const socket of idle) socket.destroy()
  })
})

describe('a worker that the server has started', () => {
  test('is let in at once, and while the server is away; also by the next relay of the same folder', async () => {
    const folder = temporaryFolder()
    const first = await openRelay(folder)
    await first.tell({ live: [ALIVE] })
    const { kill } = await first.server((_, response) => response.end('{}'))
    assert.equal((await post(first.url, ALIVE)).status, 200)
    kill()
    await until('its file', () => first.relay.hasServer === false && readable(folder))
    const next = await openRelay(folder)
    const result = post(next.url, ALIVE)
    const { seen } = await next.server((_, response) => response.end('{}'))
    assert.equal((await result).status, 200)
    assert.deepEqual(seen, ['POST /v2/ep/job-done/w/job'])
  })

  test('is requested once where the server has sent nothing, as an older one does', async () => {
    const { url, server } = await openRelay()
    const result = post(url, ALIVE)
    const { seen, kill } = await server(({ method }, response) => {
      if (method === 'GET') response.writeHead(204).end()
      else response.end('{}')
    })
    assert.equal((await result).status, 200)
    kill()
    const next = post(url, ALIVE)
    const after = await server((_, response) => response.end('{}'))
    assert.equal((await next).status, 200)
    assert.deepEqual(
      [...seen, ...after.seen],
      [...['GET /v2/ep/job-take/w', 'POST /v2/ep/job-done/w/job'], 'POST /v2/ep/job-done/w/job'],
    )
  })

  test('may deliver what it has finished for a while after its end', async () => {
    const { url, tell, server } = await openRelay()
    await tell({ live: [ALIVE] })
    await tell({ first: false, last: false, ended: [ALIVE] })
    const late = post(url, ALIVE)
    await server((_, response) => response.end('{}'))
    assert.equal((await late).status, 200)
  })
})

function readable(folder: string): boolean {
  return existsSync(join(folder, 'tokens.json'))
}
