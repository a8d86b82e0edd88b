/** Calls of a container engine, at a server that plays one. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { type TestContext, test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { connectEngine } from '../../../src/drivers/docker/engine/connection.ts'
import { engineAddresses } from '../../../src/drivers/docker/engine/engine-address.ts'
import { EngineClient, type EngineClientOptions } from '../../../src/drivers/docker/engine/engine-client.ts'
import { engineError } from '../../../src/drivers/docker/engine/engine-error.ts'
import { makeCertificate } from '../../support/certificates.ts'

/** Request and body that an engine received. */
interface Received {
  readonly line: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** An engine on TCP that gives each request to a handler once its body has come. */
async function engineOf(
  context: TestContext,
  answer: (response: ServerResponse) => void,
  options: EngineClientOptions = {},
) {
  const received: Received[] = []
  const server = createServer(collecting(received, answer))
  const url = await listening(context, server, 'tcp')
  return { client: new EngineClient(engineAddresses(url, {})[0]!, options), received, url }
}

function collecting(received: Received[], answer: (response: ServerResponse) => void): RequestListener {
  return async (request, response) => {
    let body = ''
    for await (const piece of request) body += String(piece)
    received.push({ line: `${request.method} ${request.url}`, headers: request.headers, body })
    answer(response)
  }
}

async function listening(context: TestContext, server: ReturnType<typeof createServer>, scheme: string) {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  context.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const json = (value: unknown) => (response: ServerResponse) => void response.end(JSON.stringify(value))

test('a call has its version, query, body and credentials, and a connection of its own', async context => {
  const { client, received } = await engineOf(context, json({ Id: 'c' }), { version: '1.41' })
  const query = { name: 'a b', all: true, filters: { label: ['x=y'] }, names: ['one', 'two'] }
  const call = {
    method: 'POST',
    path: '/containers/create',
    query,
    body: { Image: 'é' },
    auth: { username: '?>~' },
  } as const
  assert.deepEqual(await client.call(call), { Id: 'c' })
  const [{ line, headers, body }] = received as [Received]
  const url = new URL(line.replace('POST ', ''), 'http://engine')
  assert.equal(url.pathname, '/v1.41/containers/create')
  assert.deepEqual(
    [...url.searchParams],
    [
      ...[
        ['name', 'a b'],
        ['all', 'true'],
        ['filters', '{"label":["x=y"]}'],
        ['names', 'one'],
        ['names', 'two'],
      ],
    ],
  )
  assert.deepEqual([body, headers['content-type'], headers.connection], ['{"Image":"é"}', 'application/json', 'close'])
  const auth = String(headers['x-registry-auth'])
  assert.match(auth, /^[\w-]+=*$/)
  assert.deepEqual(JSON.parse(Buffer.from(auth, 'base64url').toString()), { username: '?>~' })
})

test('a response is JSON, text or nothing', async context => {
  const answers = ['[1]', 'OK', '']
  const { client, received } = await engineOf(context, response => void response.end(answers[received.length - 1]))
  for (const expected of [[1], 'OK', '']) assert.deepEqual(await client.call({ method: 'GET', path: '/x' }), expected)
})

test('an archive is sent as it is read, and one that cannot be read ends the call', async context => {
  const { client, received } = await engineOf(context, json({}))
  await client.call({ method: 'POST', path: '/build', archive: Readable.from(['one', 'two']) })
  assert.deepEqual([received[0]?.body, received[0]?.headers['content-type']], ['onetwo', 'application/tar'])
  const broken = new Readable({ read: () => broken.destroy(new Error('cannot be read')) })
  await assert.rejects(client.call({ method: 'POST', path: '/build', archive: broken }), /cannot be read/)
})

test('an archive is read no further once the engine hangs up', async context => {
  const server = createServer(request => void request.socket.destroy())
  const url = await listening(context, server, 'tcp')
  const client = new EngineClient(engineAddresses(url, {})[0]!, {})
  const archive = new Readable({ read: () => void archive.push('part') })
  await assert.rejects(client.call({ method: 'POST', path: '/build', archive }))
  assert.equal(archive.destroyed, true)
})

test('a refusal has its status and the message of the engine', async context => {
  const bodies = ['{"message":"no such image"}', '{"cause":"x","error":"of podman"}', 'a gateway', '']
  const { client, received } = await engineOf(context, response =>
    response.writeHead(404).end(bodies[received.length - 1]),
  )
  for (const message of ['no such image', 'of podman', 'a gateway', 'status 404'])
    await assert.rejects(client.call({ method: 'GET', path: '/x' }), { name: 'RefusedCall', status: 404, message })
})

test('a refusal that is too large to read keeps its status', async context => {
  const { client } = await engineOf(context, response => {
    response.statusCode = 404
    response.end(JSON.stringify({ message: 'x'.repeat(70_000) }))
  })
  const call = client.call({ method: 'GET', path: '/containers/c/json' })
  await assert.rejects(call, { name: 'RefusedCall', message: 'status 404', status: 404 })
})

test('a signal ends a call and a stream whose responses have begun', async context => {
  let stop = new AbortController()
  const { client } = await engineOf(context, response => response.write('{', () => stop.abort()))
  await assert.rejects(client.call({ method: 'GET', path: '/x', signal: stop.signal }))
  stop = new AbortController()
  await assert.rejects(async () => {
    for await (const _ of await client.stream({ method: 'GET', path: '/x', signal: stop.signal }));
  })
})

test('an engine that says nothing is given up after the idle time, in a response too', async context => {
  const { client, received } = await engineOf(context, response => void (received.length > 1 && response.write('{')), {
    idleMs: 50,
  })
  for (let call = 0; call < 2; call += 1) {
    const thrown = await client.call({ method: 'GET', path: '/x' }).catch(error => error)
    assert.deepEqual([engineError(thrown).status, engineError(thrown).away], [null, true])
  }
})

/** A program that listens with a queue of two connections and accepts none: the system ignores a third one. */
const FULL = `
  const server = require('node:net').createServer()
  server.listen({ host: '127.0.0.1', port: 0, backlog: 1 }, () => {
    require('node:fs').writeSync(1, String(server.address().port))
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  })`

test('an engine whose machine does not take the connection is given up after the idle time', async context => {
  const engine = spawn(process.execPath, ['--eval', FULL], { stdio: ['ignore', 'pipe', 'inherit'] })
  context.after(() => engine.kill('SIGKILL'))
  const port = Number(String(await once(engine.stdout, 'data')))
  for (let count = 0; count < 2; count += 1) {
    const socket = connect(port, '127.0.0.1')
    context.after(() => socket.destroy())
    await once(socket, 'connect')
  }
  const client = new EngineClient(engineAddresses(`tcp://127.0.0.1:${port}`, {})[0]!, { idleMs: 50 })
  const thrown = await client.call({ method: 'GET', path: '/x' }).catch(error => error)
  assert.deepEqual([engineError(thrown).status, engineError(thrown).away], [null, true])
})

test('DOCKER_HOST with TLS uses the certificates of DOCKER_CERT_PATH, and refuses a server with another one', async context => {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-certificates-'))
  context.after(() => rmSync(folder, { recursive: true }))
  const own = makeCertificate()
  const options = { cert: own.cert, key: own.key, requestCert: true, rejectUnauthorized: false }
  const server = createSecureServer(options, (request, response) =>
    response.end((request.socket as TLSSocket).getPeerCertificate().fingerprint256),
  )
  const url = await listening(context, server, 'tcp')
  const env = { DOCKER_HOST: url, DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: folder }
  const write = (ca: string) => {
    for (const [name, text] of Object.entries({ ca, cert: own.cert, key: own.key }))
      writeFileSync(join(folder, `${name}.pem`), text)
  }
  const ask = () => connectEngine('auto', env)!.engine.call({ method: 'GET', path: '/_ping' })
  write(own.cert)
  assert.equal(await ask(), own.fingerprint)
  write(makeCertificate().cert)
  await assert.rejects(ask(), { code: /CERT|SELF_SIGNED|ISSUER/ })
})

test('an address of IPv6 stands in brackets', () => {
  assert.deepEqual(engineAddresses('tcp://[::1]:2375', {})[0]?.connection, { host: '::1', port: 2375 })
})
