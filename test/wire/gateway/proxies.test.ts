/** Caddy and nginx in front of a server, configured as docs/guides/https.md shows it. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect as connectHttp2 } from 'node:http2'
import { Agent, request } from 'node:https'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { connect } from 'node:tls'
import { makeCertificate, writePair } from '../../support/certificates.ts'
import { freePorts } from '../../support/free-ports.ts'
import { noProxies, programs } from '../../support/proxies.ts'
import { type Balanced, balancedEndpoint, inNode } from '../support/balanced.ts'
import { atEnd, atExit, temporaryFolder } from '../support/cleanup.ts'
import { ask, makeEndpoint, runJob } from '../support/client.ts'
import { secureCall } from '../support/https.ts'
import { root, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { readFrame } from '../support/websocket.ts'

const GUIDE = readFileSync(`${root}/docs/guides/https.md`, 'utf8')
const pair = makeCertificate({ names: ['runyard.example', 'console.example', '*.lb.example'] })

/** The block of the guide that is a file of this path: its first line says so. */
function fileOf(path: string): string {
  const blocks = [...GUIDE.matchAll(/^```\w+\n(.*?)^```/gms)].map(([, text]) => text!)
  return blocks.find(text => text.startsWith(`# ${path}\n`)) ?? assert.fail(`the guide has no ${path}`)
}

/** The options of the server that the guide gives behind a proxy. */
function optionsOfGuide(): string[] {
  const line = GUIDE.split('\n').find(text => text.includes('--trusted-proxy 127.0.0.1')) ?? assert.fail()
  return line.replace('runyard serve ', '').split(' ')
}

/** Replaces what stands in the guide for what a machine has. Everything else stays as it is. */
function adapted(text: string, changes: readonly (readonly [from: string, to: string])[]): string {
  return changes.reduce((rest, [from, to]) => {
    assert.ok(rest.includes(from), `the guide has no ${from}`)
    return rest.replaceAll(from, to)
  }, text)
}

interface Ports {
  readonly http: number
  readonly https: number
  readonly server: number
}

type Start = (folder: string, ports: Ports) => string[]

const files = (folder: string) => {
  const { certFile, keyFile } = writePair(folder, pair)
  return [
    ['/etc/runyard/fullchain.pem', certFile],
    ['/etc/runyard/privkey.pem', keyFile],
  ] as const
}

const startNginx: Start = (folder, { http, https, server }) => {
  const page = adapted(fileOf('/etc/nginx/conf.d/runyard.conf'), [
    ...files(folder),
    ['listen 80;', `listen 127.0.0.1:${http};`],
    ['listen 443 ssl', `listen 127.0.0.1:${https} ssl`],
    ['server 127.0.0.1:8080;', `server 127.0.0.1:${server};`],
  ])
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(name => `${name}_temp_path ${folder}/${name};`)
  const whole = `daemon off; pid ${folder}/pid; error_log stderr; events {} http { access_log off; ${paths.join(' ')}\n${page}}`
  writeFileSync(join(folder, 'nginx.conf'), whole)
  return [programs.nginx, '-p', folder, '-e', 'stderr', '-c', join(folder, 'nginx.conf')]
}

const startCaddy: Start = (folder, { http, https, server }) => {
  const page = adapted(fileOf('/etc/caddy/Caddyfile'), [...files(folder), ['127.0.0.1:8080', `127.0.0.1:${server}`]])
  const options = `{\n\tadmin off\n\thttp_port ${http}\n\thttps_port ${https}\n\tdefault_bind 127.0.0.1\n}\n`
  writeFileSync(join(folder, 'Caddyfile'), options + page)
  return [programs.caddy, 'run', '--config', join(folder, 'Caddyfile'), '--adapter', 'caddyfile']
}

for (const [name, start] of [
  ['nginx', startNginx],
  ['Caddy', startCaddy],
] as const)
  describe(`${name} in front, as the guide says`, { skip: noProxies }, () => {
    let server: Server
    let ports: Ports
    let queue: string
    let balanced: Balanced

    before(async () => {
      server = await startServer({ args: optionsOfGuide() })
      const [http = 0, https = 0] = await freePorts(2)
      ports = { http, https, server: server.port }
      await startProxy(start, ports)
      queue = await makeEndpoint(server, { folder: `${root}/examples/hello-node`, settings: { workersMin: 1 } })
      balanced = await balancedEndpoint(server, { ...inNode, workers: { min: 1, max: 1 } })
      await runJob(server, queue, {})
      await until('a healthy worker', async () => (await ask(server, `/lb/${balanced.id}/`)).status === 200)
      await until('the proxy', () => call('/healthz').catch(() => null))
    })

    /** A call by way of the proxy. */
    function call(
      path: string,
      more: { host?: string; body?: unknown; headers?: Record<string, string>; agent?: Agent } = {},
    ) {
      return secureCall(server, path, { host: 'runyard.example', port: ports.https, ca: pair.cert, ...more })
    }
    const endpointHost = () => `${balanced.id}.lb.example`

    test('run, status and runsync work', async () => {
      const queued = JSON.parse((await call(`/v2/${queue}/run`, { body: { input: { name: 'Ada' } } })).text)
      await until('the job', async () => {
        const { text } = await call(`/v2/${queue}/status/${queued.id}`)
        return JSON.parse(text).output?.message === 'Hello, Ada!'
      })
      const synced = await call(`/v2/${queue}/runsync`, { body: { input: { name: 'Grace' } } })
      assert.equal(JSON.parse(synced.text).output.message, 'Hello, Grace!')
    })

    test('requests reach endpoints at their hosts, with the client and its HTTPS', async () => {
      assert.equal(new URL(balanced.base).host, endpointHost())
      const seen = await call('/seen', { host: endpointHost(), headers: { 'x-forwarded-for': '203.0.113.9' } })
      assert.equal(seen.status, 200, seen.text)
      const { headers } = JSON.parse(seen.text)
      assert.equal(headers['x-forwarded-proto'], 'https')
      assert.match(headers['x-forwarded-for'], /127\.0\.0\.1/)
      assert.equal(headers['x-forwarded-host'].replace(/:\d+$/, ''), endpointHost())
    })

    test('the console is at its host, with the session in a cookie for HTTPS alone', async () => {
      const { status, headers } = await call('/', { host: 'console.example' })
      assert.deepEqual([status, headers['content-type']], [200, 'text/html; charset=utf-8'])
    })

    test('a stream comes piece by piece: each waits until its reader has the one before', async () => {
      const agent = new Agent({ keepAlive: true })
      const step = () => call('/step', { host: endpointHost(), agent })
      const pieces: string[] = []
      await new Promise<void>((resolve, reject) => {
        const sent = request(
          {
            host: '127.0.0.1',
            port: ports.https,
            servername: endpointHost(),
            ca: pair.cert,
            agent: false,
            path: '/steps?n=20',
            headers: { host: endpointHost(), authorization: `Bearer ${server.apiKey}` },
          },
          answer => {
            answer.setEncoding('utf8').on('data', text => {
              pieces.push(text)
              step().catch(reject)
            })
            answer.on('end', resolve).on('error', reject)
          },
        )
        sent.on('error', reject).end()
      })
      agent.destroy()
      assert.equal(pieces.join(''), Array.from({ length: 20 }, (_, n) => `data: ${n}\n\n`).join(''))
    })

    test('a WebSocket is passed on', async () => {
      const socket = connect({ host: '127.0.0.1', port: ports.https, servername: endpointHost(), ca: pair.cert })
      const head = [
        'GET /chat HTTP/1.1',
        `Host: ${endpointHost()}`,
        `Authorization: Bearer ${server.apiKey}`,
        'Connection: Upgrade',
        'Upgrade: websocket',
        'Sec-WebSocket-Version: 13',
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      ]
      socket.write(`${head.join('\r\n')}\r\n\r\n`)
      let come: Buffer = Buffer.alloc(0)
      socket.on('data', (bytes: Buffer) => (come = Buffer.concat([come, bytes])))
      await until('the answer', () => come.includes('\r\n\r\n'))
      assert.match(
        come.toString('latin1'),
        /^HTTP\/1\.1 101 [\s\S]*sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=/i,
      )
      const text = Buffer.from('hello')
      // Masked with zeros, which change nothing.
      const frame = Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), text])
      assert.deepEqual(readFrame(frame)?.payload, text)
      socket.write(frame)
      const answer = Buffer.concat([Buffer.from([0x81, text.length]), text])
      await until('the message', () => come.subarray(-answer.length).equals(answer))
      socket.destroy()
    })

    test('a body of 25 MB arrives whole', async () => {
      const body = Buffer.alloc(25 * 1024 * 1024, 'runyard ')
      const { status, text } = await call('/upload', { host: endpointHost(), body })
      assert.equal(status, 200, text)
      assert.deepEqual(JSON.parse(text), {
        bytes: body.length,
        sha256: createHash('sha256').update(body).digest('hex'),
      })
    })

    test('clients may speak HTTP/2', async () => {
      const session = connectHttp2(`https://runyard.example:${ports.https}`, {
        ca: pair.cert,
        createConnection: () =>
          connect({
            host: '127.0.0.1',
            port: ports.https,
            servername: 'runyard.example',
            ca: pair.cert,
            ALPNProtocols: ['h2'],
          }),
      })
      const sent = session.request({ ':path': `/v2/${queue}/health`, authorization: `Bearer ${server.apiKey}` })
      const status = await new Promise((resolve, reject) => {
        sent.on('response', headers => resolve(headers[':status'])).on('error', reject)
        session.on('error', reject)
      })
      session.destroy()
      assert.equal(status, 200)
    })

    test('plain HTTP is led to HTTPS', async () => {
      const { get } = await import('node:http')
      const headers = { host: `runyard.example:${ports.http}` }
      const answer = await new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
        get({ host: '127.0.0.1', port: ports.http, path: '/v2/x?y=1', headers, agent: false }, resolve).on(
          'error',
          reject,
        )
      })
      answer.resume()
      assert.equal(answer.statusCode, 308)
      assert.match(String(answer.headers.location), /^https:\/\/runyard\.example(?::\d+)?\/v2\/x\?y=1$/)
    })
  })

/** Starts a proxy in a folder of its own. Ends with the test file. */
async function startProxy(start: Start, ports: Ports): Promise<void> {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'home'))
  const [program, ...words] = start(folder, ports)
  const env = { HOME: join(folder, 'home'), PATH: '/usr/bin:/bin' }
  const child = spawn(program!, words, { cwd: folder, env, stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', text => (said += text))
  const ended = new Promise<void>(resolve => child.on('close', () => resolve()))
  atExit(() => child.kill('SIGKILL'))
  atEnd(async () => {
    child.kill('SIGTERM')
    await ended
  })
  await until('the proxy to listen', () => {
    if (child.exitCode !== null) assert.fail(said)
    return listensAt(ports.https)
  })
}

function listensAt(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => resolve(true))
    socket.on('error', error => resolve(!/ECONNREFUSED/.test(String(error))))
    socket.on('close', () => socket.destroy())
  })
}
