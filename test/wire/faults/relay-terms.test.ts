/**
 * Servers of one database take the relay over from each other: a later term has it, whatever an
 * earlier one still believes.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { RELAY_HEADERS } from '../../../src/core/workers/relay-headers.ts'
import { Relay, SERVER_HEADER, type ServerTerm, TERM_HEADER, TETHER_PATH } from '../../../src/relay/relay.ts'
import { rawClient } from '../support/gateway.ts'

const SECRET = 'the secret'
const TAKE = '/v2/endpoint/job-take/worker?gpu=none'

async function startRelay(context: TestContext): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-relay-'))
  const relay = new Relay({ folder, setAside: join(folder, 'aside'), secret: SECRET, onEnd: () => {} })
  context.after(() => {
    relay.close()
    rmSync(folder, { recursive: true })
  })
  return relay.listen(0)
}

/** A server that answers workers with its name, or never. */
async function startServer(context: TestContext, name: string | null): Promise<{ port: number; asked: Promise<void> }> {
  const asked = Promise.withResolvers<void>()
  const server: Server = createServer((incoming, outgoing) => {
    if (incoming.url === TAKE) asked.resolve()
    if (incoming.headers[RELAY_HEADERS.undeliveredSince] !== undefined) outgoing.writeHead(204).end()
    else if (name !== null) outgoing.end(name)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  context.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return { port: (server.address() as AddressInfo).port, asked: asked.promise }
}

/** @returns the status of the relay's answer */
async function tie(context: TestContext, relay: number, server: number, term: ServerTerm | null): Promise<number> {
  const headers = {
    authorization: SECRET,
    [SERVER_HEADER]: `127.0.0.1:${server}`,
    ...(term !== null && { [TERM_HEADER]: `${term.database} ${term.epoch}` }),
  }
  const sent = request({ host: '127.0.0.1', port: relay, path: TETHER_PATH, method: 'POST', agent: false, headers })
  sent.end()
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    sent.once('response', resolve)
    sent.once('error', reject)
  })
  sent.on('error', () => {})
  answer.on('error', () => {}).resume()
  context.after(() => sent.destroy())
  return answer.statusCode ?? 0
}

async function take(relay: number): Promise<string> {
  const headers = { authorization: 'rpw_token' }
  const sent = request({ host: '127.0.0.1', port: relay, path: TAKE, agent: false, headers }).end()
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    sent.once('response', resolve)
    sent.once('error', reject)
  })
  return text(answer)
}

test('what a stopped server of an earlier term still has goes to the one that took over', async context => {
  const relay = await startRelay(context)
  const stopped = await startServer(context, null)
  const next = await startServer(context, 'from the next')
  assert.equal(await tie(context, relay, stopped.port, { database: 'a', epoch: 4 }), 200)
  const taking = take(relay)
  await stopped.asked
  assert.equal(await tie(context, relay, next.port, { database: 'a', epoch: 5 }), 200)
  assert.equal(await taking, 'from the next')
})

test('a server of an earlier term that wakes up does not get the relay back', async context => {
  const relay = await startRelay(context)
  const early = await startServer(context, 'from the early one')
  const late = await startServer(context, 'from the late one')
  assert.equal(await tie(context, relay, late.port, { database: 'a', epoch: 5 }), 200)
  assert.equal(await tie(context, relay, early.port, { database: 'a', epoch: 4 }), 409)
  assert.equal(await take(relay), 'from the late one')
  assert.equal(await tie(context, relay, early.port, { database: 'b', epoch: 1 }), 200, 'another database counts anew')
  assert.equal(await take(relay), 'from the early one')
  assert.equal(await tie(context, relay, late.port, null), 200, 'the embedded database has no terms')
  assert.equal(await take(relay), 'from the late one')
})

test('a worker that shuts its writing side gets the answer to its result, and its take ends without jobs', async context => {
  const relay = await startRelay(context)
  const server = await startServer(context, 'kept')
  assert.equal(await tie(context, relay, server.port, null), 200)
  const asking = (line: string, body = '') => {
    const client = rawClient(relay)
    const length = body === '' ? '' : `Content-Length: ${body.length}\r\n`
    client.socket.end(`${line} HTTP/1.1\r\nHost: relay\r\nAuthorization: rpw_token\r\n${length}\r\n${body}`)
    return client.untilEnd()
  }
  const result = asking('POST /v2/endpoint/job-done/worker/job?gpu=none', '{"output":1}')
  assert.match(await result, /^HTTP\/1\.1 200 OK\r\n[\s\S]*kept$/)
  assert.match(await asking(`GET ${TAKE}`), /^HTTP\/1\.1 204 /)
  assert.match(await asking(`GET ${TAKE} HTTP/1.1\r\nContent-Length: 00\r\nX-Rest:`), /^HTTP\/1\.1 400 /)
})
