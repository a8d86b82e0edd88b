/** Plain HTTP at the port of HTTPS: answered where a base address in plain HTTP leads there, and else refused. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request as plainly } from 'node:http'
import { request as securely } from 'node:https'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:net'
import { test } from 'node:test'
import { listen } from '../../src/server/listener.ts'
import { makeCertificate } from '../support/certificates.ts'

const pair = makeCertificate()

/** A listener that answers with what it received, until the test is over. */
async function open(t: { after(end: () => Promise<void>): void }, answersPlain: boolean) {
  const listener = await listen(async request => new Response(`${request.url} ${await request.text()}`), {
    host: '127.0.0.1',
    port: 0,
    maxConnections: 100,
    tls: { current: pair, watch: () => () => {}, answersPlain },
  })
  t.after(() => listener.close(0))
  return listener.port
}

async function ask(send: typeof plainly | typeof securely, port: number, body = ''): Promise<[number, string]> {
  const sent = send({ host: 'localhost', port, method: 'POST', path: '/a', ca: pair.cert, agent: false })
  sent.end(body)
  const [answer] = await once(sent, 'response')
  let text = ''
  for await (const part of answer) text += part
  return [answer.statusCode, text]
}

test('a port of HTTPS answers plain HTTP where it should, and the body arrives whole', async t => {
  const port = await open(t, true)
  const body = 'x'.repeat(300_000)
  assert.deepEqual(await ask(plainly, port, body), [200, `http://localhost:${port}/a ${body}`])
  assert.deepEqual(await ask(securely, port, body), [200, `https://localhost:${port}/a ${body}`])
})

test('a connection in plain HTTP stays open for further requests', async t => {
  const port = await open(t, true)
  const socket = connect(port, 'localhost')
  for (const path of ['/one', '/two']) {
    socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost:${port}\r\n\r\n`)
    const [part] = (await once(socket, 'data')) as [Buffer]
    assert.match(part.toString(), new RegExp(`^HTTP/1.1 200 [^]*localhost:${port}${path} `))
  }
  assert.equal((socket.address() as AddressInfo).address, '127.0.0.1')
  socket.destroy()
})

test('a port of HTTPS refuses plain HTTP by default, with its address', async t => {
  const port = await open(t, false)
  const [status, text] = await ask(plainly, port)
  assert.deepEqual([status, text.includes(`Use https://127.0.0.1:${port}`)], [400, true])
})
