/** A server that speaks HTTPS by itself, and its clients: commands, official SDKs, the console, workers. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { before, describe, test } from 'node:test'
import runpodSdk from 'runpod-sdk'
import { WebSocket } from 'undici'
import { makeCertificate, trustHere, writePair } from '../../support/certificates.ts'
import { patient } from '../../support/patience.ts'
import { type Balanced, balancedEndpoint, inNode } from '../support/balanced.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, makeEndpoint, runJob, submit, whenFinal, whenStatus } from '../support/client.ts'
import { secureCall } from '../support/https.ts'
import { workerProcesses } from '../support/processes.ts'
import { python, skip } from '../support/python.ts'
import { rawAsk } from '../support/raw-http.ts'
import { fixture, root, runCommand, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const folder = `${root}/examples/hello-node`

describe('a server with a certificate of its own', () => {
  let server: Server
  let queue: string
  let balanced: Balanced
  let certificate: string

  before(async () => {
    server = await startServer({
      args: ['--tls-self-signed', '--hsts', '300', '--http-redirect-port', '0', '--admin-port', '0'],
    })
    certificate = join(server.dataDir, 'tls', 'certificate.pem')
    trustHere(readFileSync(certificate, 'utf8'))
    const management = { ...server, url: server.managementUrl }
    queue = await makeEndpoint(management, { folder, settings: { workersMin: 1, workersMax: 1 } })
    balanced = await balancedEndpoint(management, { ...inNode, workers: { min: 1, max: 1 } })
    await until('a healthy worker', async () => (await ask(server, `/lb/${balanced.id}/`)).status === 200)
  })

  test('answers on both ports, and says its addresses in HTTPS', async () => {
    assert.match(server.url, /^https:/)
    assert.match(server.managementUrl, /^https:/)
    assert.equal((await runJob(server, queue, { name: 'Ada' })).output.message, 'Hello, Ada!')
    assert.equal((await ask({ ...server, url: server.managementUrl }, '/v2/serverless')).status, 200)
    assert.match(balanced.base, /^https:/)
    const [loaded] = server.events('tls.loaded')
    assert.ok(Date.parse(String(loaded?.expiresAt)) > Date.now())
    const metrics = (await ask({ ...server, url: server.managementUrl }, '/metrics')).text
    const expiry = /^runyard_tls_certificate_expiry_seconds\{subject="[^"]+"\} (\d+)/m.exec(metrics)?.[1]
    assert.equal(Number(expiry) * 1000, Date.parse(String(loaded?.expiresAt)))
  })

  test('orders browsers to use HTTPS alone, in every answer, and no other server does', async () => {
    for (const path of ['/healthz', `/v2/${queue}/health`, `/lb/${balanced.id}/`, '/nothing']) {
      const { headers } = await ask(server, path)
      assert.equal(headers.get('strict-transport-security'), 'max-age=300', path)
    }
    const { headers } = await fetch(`${server.redirectUrl}/`, { redirect: 'manual' })
    assert.equal(headers.get('strict-transport-security'), null)
  })

  test('reports to servers of endpoints that their clients speak HTTPS, at their paths and their hosts', async () => {
    const host = `${balanced.id}.lb.localhost`
    for (const seen of [
      await secureCall(server, `/lb/${balanced.id}/seen`, { headers: { 'x-forwarded-proto': 'http' } }),
      await secureCall(server, '/seen', { host }),
    ]) {
      assert.equal(seen.status, 200, seen.text)
      assert.equal(JSON.parse(seen.text).headers['x-forwarded-proto'], 'https')
    }
  })

  test('has a certificate for each domain of an endpoint, which changes the one of nobody else', async () => {
    const host = 'chat.example.org'
    const management = { ...server, url: server.managementUrl }
    const named = (domain: string | null) =>
      ask(management, `/v2/serverless/${balanced.id}`, { method: 'PATCH', body: { domain } })
    const before = await secureCall(server, `/lb/${balanced.id}/seen`)
    await assert.rejects(secureCall(server, '/seen', { host }), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' })
    assert.equal((await named('Chat.Example.org')).json.browserUrl, `https://${host}:${server.port}`)
    const own = { host, ca: '' }
    await assert.rejects(secureCall(server, '/seen', own), 'the certificate is made when somebody asks for it')
    own.ca = readFileSync(join(server.dataDir, 'tls', 'domains', `${host}.crt`), 'utf8')
    const seen = await secureCall(server, '/seen', own)
    assert.deepEqual([seen.status, JSON.parse(seen.text).headers.host], [200, `${host}:${server.port}`], seen.text)
    assert.notEqual(seen.fingerprint, before.fingerprint)
    assert.equal((await secureCall(server, '/seen', own)).fingerprint, seen.fingerprint)
    assert.equal((await secureCall(server, `/lb/${balanced.id}/seen`)).fingerprint, before.fingerprint)
    const led = await rawAsk(Number(new URL(server.redirectUrl!).port), 'GET /a', { headers: { Host: host } })
    assert.deepEqual(led.headers.find(([name]) => name === 'location')?.[1], `https://${host}:${server.port}/a`)
    const port = Number(new URL(server.managementUrl).port)
    await assert.rejects(secureCall(server, '/v2/serverless', { ...own, port }), 'management has no domains')
    assert.equal((await named(null)).status, 200)
    await assert.rejects(secureCall(server, '/seen', own))
    const gone = await secureCall(server, '/seen', { headers: { host } })
    assert.deepEqual([gone.status, gone.fingerprint], [421, before.fingerprint])
  })

  test('passes WebSockets on', async () => {
    const headers = { authorization: `Bearer ${server.apiKey}` }
    const socket = new WebSocket(`${server.url.replace('https', 'wss')}/lb/${balanced.id}/`, { headers } as never)
    const said = await new Promise((resolve, reject) => {
      socket.addEventListener('open', () => socket.send('over TLS'))
      socket.addEventListener('message', ({ data }) => resolve(data))
      socket.addEventListener('error', ({ error }) => reject(error))
    })
    socket.close()
    assert.equal(said, 'over TLS')
  })

  test('is found and trusted by commands with its data directory', async () => {
    const known = ['--data-dir', server.dataDir]
    const status = await runCommand(['status', ...known])
    assert.deepEqual([status.code, status.stderr], [0, ''])
    assert.ok(status.stdout.includes(server.managementUrl))
    const ran = await runCommand(['run', queue, '-i', '{"name":"Grace"}', ...known])
    assert.match(ran.stdout, /Hello, Grace!/)
    const byName = ['--url', server.managementUrl.replace('127.0.0.1', 'localhost')]
    assert.equal((await runCommand(['status', ...byName, ...known])).code, 0)
    const doctor = await runCommand(['doctor', ...known, '--docker', 'off', '--tls-self-signed'])
    assert.match(doctor.stdout, /certificate +the one of CN=localhost, .* is valid for 36\d days/)
    assert.ok(doctor.stdout.includes(`it runs and answers at ${server.managementUrl}`), doctor.stdout)
  })

  test('is trusted by commands elsewhere that are given its certificate, and by no others', async () => {
    const given = ['--url', server.managementUrl, '--api-key', server.apiKey, '--data-dir', temporaryFolder()]
    const untrusted = await runCommand(['status', ...given])
    assert.equal(untrusted.code, 69)
    const advice = 'give it, or the one of its authority, with --ca-file or RUNYARD_CA_FILE'
    assert.equal(
      untrusted.stderr,
      `runyard: the certificate of ${server.managementUrl} is not trusted (unable to get local issuer certificate); ${advice}`,
    )
    assert.equal((await runCommand(['status', ...given, '--ca-file', certificate])).code, 0)
    assert.equal((await runCommand(['status', ...given], { RUNYARD_CA_FILE: certificate })).code, 0)
    assert.equal((await runCommand(['status', ...given], { NODE_EXTRA_CA_CERTS: certificate })).code, 0)
    const missing = await runCommand(['status', ...given, '--ca-file', '/nowhere'])
    assert.deepEqual([missing.code, missing.stderr], [64, 'runyard: --ca-file: there is no file /nowhere'])
  })

  test('says to commands in plain HTTP where it is', async () => {
    const key = ['--api-key', server.apiKey, '--data-dir', temporaryFolder()]
    const wrong = await runCommand(['status', '--url', server.managementUrl.replace('https', 'http'), ...key])
    assert.match(wrong.stderr, /answered 400: This port speaks HTTPS, .* Use https:\/\/127\.0\.0\.1:\d+$/)
    const led = await runCommand(['status', '--url', server.redirectUrl!.replace('127.0.0.1', 'localhost'), ...key])
    const own = `https://localhost:${server.port}`
    assert.equal(
      led.stderr,
      `runyard: ${server.redirectUrl!.replace('127.0.0.1', 'localhost')} redirects to ${own}/ops/status; give --url ${own}`,
    )
  })

  test('keeps the session of the console in a cookie that never goes out in plain HTTP', async () => {
    const { stdout } = await runCommand(['console', '--data-dir', server.dataDir])
    const { port } = new URL(server.managementUrl)
    const origin = `https://console.localhost:${port}`
    assert.ok(stdout.startsWith(`${origin}/#link=`), stdout)
    const link = stdout.trim().split('#link=')[1]
    const headers = {
      origin,
      'sec-fetch-site': 'same-origin',
      'x-runyard-console': '1',
      'content-type': 'application/json',
    }
    const at = { host: 'console.localhost', port: Number(port) }
    const page = await secureCall(server, '/', at)
    assert.deepEqual([page.status, page.headers['content-type']], [200, 'text/html; charset=utf-8'])
    const answer = await secureCall(server, '/console/session', { ...at, headers, body: { link } })
    assert.equal(answer.status, 200, answer.text)
    const [cookie = ''] = answer.headers['set-cookie'] ?? []
    assert.match(cookie, new RegExp(`^__Host-runyard-console-${port}-[\\w-]{12}=.*; Secure$`))
  })

  test('serves the official JavaScript client', async () => {
    const endpoint = runpodSdk(server.apiKey, { baseUrl: `${server.url}/v2` }).endpoint(queue)
    const done = await endpoint!.runSync({ input: { name: 'Ada' } })
    assert.deepEqual(done.output, { message: 'Hello, Ada!', sleptMs: 0 })
  })

  for (const [client, variable] of [
    ['sync', 'REQUESTS_CA_BUNDLE'],
    ['async', 'SSL_CERT_FILE'],
  ] as const)
    test(`serves the official Python client, ${client}, with ${variable}`, { skip }, async () => {
      const env = {
        PATH: process.env.PATH ?? '',
        HOME: temporaryFolder(),
        RUNPOD_ENDPOINT_BASE_URL: `${server.url}/v2`,
        [variable]: certificate,
      }
      const printed = await new Promise<string>((resolve, reject) => {
        const script = `${fixture('python-client')}/client.py`
        const child = execFile(
          python,
          [script, client, queue],
          { env, timeout: patient(90_000) },
          (error, stdout, stderr) => (error === null ? resolve(stdout) : reject(new Error(stderr))),
        )
        child.stdin?.end(`${server.apiKey}\n`)
      })
      const { output, status } = JSON.parse(printed)
      assert.deepEqual([output, status], [{ message: 'Hello, Ada!', sleptMs: 300 }, 'COMPLETED'])
    })
})

describe('plain HTTP beside HTTPS', () => {
  let server: Server

  before(async () => {
    const files = writePair(temporaryFolder(), makeCertificate())
    server = await startServer({
      args: [...files.args, '--http-redirect-port', '0', '--allowed-host', 'api.example', '--lb-domain', 'lb.example'],
    })
  })

  /** Target of the redirect of a request, or its status without a redirect. */
  async function led(head: string): Promise<string> {
    const { connect } = await import('node:net')
    const port = Number(new URL(server.redirectUrl!).port)
    const socket = connect({ port, host: '127.0.0.1' })
    socket.end(`${head}\r\n\r\n`)
    const answer = await text(socket)
    const status = /^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]
    return /\r\nlocation: (\S+)\r\n/i.exec(answer)?.[1]?.replace(`:${server.port}`, ':TLS') ?? `${status}`
  }

  const cases: [head: string, answer: string][] = [
    ['GET /v2/x/run?a=1&b=%20 HTTP/1.1\r\nHost: localhost', 'https://localhost:TLS/v2/x/run?a=1&b=%20'],
    ['POST /v2/x/run HTTP/1.1\r\nHost: API.example:80\r\nContent-Length: 0', 'https://api.example:TLS/v2/x/run'],
    ['GET / HTTP/1.1\r\nHost: abc.lb.example', 'https://abc.lb.example:TLS/'],
    ['GET / HTTP/1.1\r\nHost: [::1]:9', 'https://[::1]:TLS/'],
    ['GET http://api.example/a HTTP/1.1\r\nHost: localhost', 'https://api.example:TLS/a'],
    ['GET //evil.example/%2e%2e HTTP/1.1\r\nHost: localhost', 'https://localhost:TLS//evil.example/%2e%2e'],
    ['OPTIONS * HTTP/1.1\r\nHost: localhost', 'https://localhost:TLS/'],
    ['GET / HTTP/1.1\r\nHost: evil.example', '421'],
    ['GET http://evil.example/ HTTP/1.1\r\nHost: localhost', '421'],
    ['GET / HTTP/1.1\r\nHost: evil.example#.localhost', '400'],
    ['GET / HTTP/1.1\r\nHost: localhost@evil.example', '400'],
    ['GET / HTTP/1.1', '400'],
    ['GET / HTTP/1.0', '400'],
    [
      'GET /lb/abc/ HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket',
      'https://localhost:TLS/lb/abc/',
    ],
    ['CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost', 'undefined'],
    ['nonsense', '400'],
  ]
  for (const [head, answer] of cases)
    test(`leads ${JSON.stringify(head)} to ${answer}`, async () => assert.equal(await led(head), answer))

  test('takes no job, and does not wait for bodies', async () => {
    assert.equal(
      await led('POST /v2/x/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5'),
      'https://localhost:TLS/v2/x/run',
    )
    assert.equal((await fetch(`${server.redirectUrl}/healthz`, { redirect: 'manual' })).status, 308)
  })
})

describe('workers beside HTTPS', () => {
  const pair = makeCertificate()
  before(() => trustHere(pair.cert))

  for (const [how, more, survives] of [
    ['with a relay', [], true],
    ['without a relay', ['--direct-workers'], false],
  ] as const)
    test(`${how}: they finish their jobs while HTTPS is turned on, kept and turned off`, async () => {
      const dataDir = temporaryFolder()
      const files = writePair(temporaryFolder(), pair)
      const args = ['--processes', 'auto', ...more]
      const plain = await startServer({ dataDir, args })
      const queue = await makeEndpoint(plain, { folder, settings: { workersMax: 1, idleTimeout: 3600 } })
      const { workerId: first } = await runJob(plain, queue, {})
      await plain.kill9()

      const secure = await startServer({ dataDir, port: plain.port, args: [...args, ...files.args] })
      const job = await submit(secure, queue, { name: 'on', sleepMs: 1 })
      const on = await whenFinal(secure, queue, job)
      assert.equal(on.output.message, 'Hello, on!')
      assert.equal(on.workerId === first, survives, 'who knows another address is replaced in order')
      if (!survives) await offersWorkersAlone(secure, queue)
      const long = await submit(secure, queue, { name: 'kept', sleepMs: 3_000 })
      await whenStatus(secure, queue, long, ['IN_PROGRESS'])
      await secure.kill9()
      assert.equal(workerProcesses(dataDir).length, 1)

      const kept = await startServer({ dataDir, port: plain.port, args: [...args, ...files.args] })
      const result = await whenFinal(kept, queue, long)
      assert.deepEqual([result.status, result.workerId, result.retries ?? 0], ['COMPLETED', on.workerId, 0])
      await kept.kill9()

      const again = await startServer({ dataDir, port: plain.port, args })
      const off = await runJob(again, queue, { name: 'off' })
      assert.equal(off.output.message, 'Hello, off!')
      assert.equal(off.workerId === on.workerId, survives)
      assert.equal((await again.stop()).code, 0)
    })
})

/** Beside HTTPS there is a port for workers on loopback, which has their calls alone. */
async function offersWorkersAlone(server: Server, queue: string): Promise<void> {
  const url = `http://127.0.0.1:${readFileSync(join(server.dataDir, 'worker-port'), 'utf8').trim()}`
  for (const path of ['/', '/v2/serverless', '/graphql', '/metrics', '/ops/status', `/v2/${queue}/health`, '/lb/x/'])
    assert.equal((await ask({ ...server, url }, path)).status, 404, path)
  assert.equal((await ask({ ...server, url }, `/v2/${queue}/run`, { body: { input: {} } })).status, 404)
  assert.equal((await ask({ ...server, url }, `/v2/${queue}/job-take/w`)).status, 401)
}

test('a server that others reach warns of plain HTTP, and not where it speaks HTTPS', async () => {
  const args = ['--host', '0.0.0.0', '--allowed-host', 'a.example']
  const warned = ({ lines }: Server) => lines.some(line => line.includes('can be reached from outside in plain HTTP'))
  assert.equal(warned(await startServer({ args })), true)
  const secure = await startServer({ args: [...args, '--tls-self-signed'] })
  assert.equal(warned(secure), false)
  const [loaded] = secure.events('tls.loaded')
  assert.ok((loaded!.names as string[]).includes('a.example'))
})

describe('a certificate that cannot be used', () => {
  const good = makeCertificate()
  const wrong: [what: string, pair: { cert?: string; key?: string }, reason: RegExp][] = [
    ['of another key', { key: makeCertificate().key }, /the key in \S+ is not that of the first certificate in \S+/],
    ['that has expired', makeCertificate({ fromMs: 0, untilMs: 86_400_000 }), /the certificate in \S+ expired at 1970/],
    ['that is none', { cert: 'x' }, /\S+ has no certificate in PEM/],
  ]
  for (const [what, pair, reason] of wrong)
    test(`${what} ends the start with a sentence, before anything is done`, async () => {
      const dataDir = temporaryFolder()
      const files = writePair(temporaryFolder(), { ...good, ...pair })
      const { code, stderr } = await runCommand(['serve', '--port', '0', '--data-dir', dataDir, ...files.args])
      assert.equal(code, 69)
      assert.match(stderr, reason)
      assert.ok(!stderr.includes('PRIVATE KEY'))
    })
})
