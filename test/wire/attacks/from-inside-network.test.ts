/**
 * Reach of a worker in a cage over the network: the addresses that workers call and the outside; nothing else of this
 * machine.
 */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { tryOwnNetwork } from '../../../src/drivers/cage/network-trial.ts'
import { tryCage } from '../../../src/drivers/cage/trial.ts'
import { patient } from '../../support/patience.ts'
import { type Balanced, balancedEndpoint, call } from '../support/balanced.ts'
import { atEnd, temporaryFolder } from '../support/cleanup.ts'
import { makeEndpoint, runJob } from '../support/client.ts'
import { root, rootUrl, type Server, startServer } from '../support/server.ts'
import { sleep, until } from '../support/until.ts'
import { HERE, makeOutside } from './outside-world.ts'
import { type ProbedServer, startProbedServer } from './probed-server.ts'

const trial = tryCage()
const skipUnless = (open: boolean) => {
  const lack = 'problem' in trial ? trial : tryOwnNetwork(trial.bwrap, open)
  return lack !== null && process.env.RUNYARD_NO_SKIP !== '1' ? lack.problem : false
}

/** Tries the call in its job and reports the result. */
const HANDLER = `
import { connect } from 'node:net'
import { start } from '@runyard/worker'
const reach = ({ host, port }) => new Promise(resolve => {
  const socket = connect({ host, port, timeout: 5000 })
  socket.on('connect', () => { socket.destroy(); resolve('reached') })
  socket.on('timeout', () => { socket.destroy(); resolve('ETIMEDOUT') })
  socket.on('error', error => resolve(error.code))
})
const ask = ({ path, headers, method }) => {
  const { origin } = new URL(process.env.RUNPOD_WEBHOOK_GET_JOB)
  return fetch(origin + path, { method, headers }).then(async answer => ({ status: answer.status, text: await answer.text() }))
}
start({ async handler({ input }) {
  if (input.reach) return Promise.all(input.reach.map(reach))
  if (input.ask) return ask(input.ask)
  return 'well'
} })
`

/** Serves by itself, on loopback alone; answers a WebSocket with what it is sent. */
const SERVES = `
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
const server = createServer((request, response) => response.end(request.url === '/ping' ? 'well' : process.env.PORT))
server.on('upgrade', ({ headers }, socket) => {
  const key = createHash('sha1').update(headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64')
  socket.write('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: ' + key + '\\r\\n\\r\\n')
  socket.on('error', () => {})
  socket.on('data', frame => {
    const length = frame[1] & 127
    const text = frame.subarray(6, 6 + length).map((byte, at) => byte ^ frame[2 + (at % 4)])
    socket.write(Buffer.concat([Buffer.from([0x81, length]), text]))
  })
})
server.listen(Number(process.env.PORT), '127.0.0.1')
`

const images = temporaryFolder()
for (const [name, file, text] of [
  ['evil', 'handler.mjs', HANDLER.replace('@runyard/worker', `${rootUrl}/packages/worker/index.js`)],
  ['serves', 'server.mjs', SERVES],
] as const) {
  mkdirSync(join(images, name))
  writeFileSync(join(images, name, file), text)
}
const args = ['--process-root', images, '--worker-sandbox', 'required', '--worker-readable', `${root}/packages`]
const settings = { workersMax: 1, idleTimeout: 3600 }

/** The metadata services of clouds, and the addresses around them. */
const METADATA = [
  { host: '169.254.169.254', port: 80 },
  { host: '169.254.170.2', port: 80 },
  { host: '100.100.100.200', port: 80 },
  { host: '168.63.129.16', port: 80 },
  { host: 'fd00:ec2::254', port: 80 },
  { host: 'fe80::1', port: 80 },
]

function addressesOfThisMachine(): string[] {
  return Object.values(networkInterfaces()).flatMap(list => (list ?? []).map(({ address }) => address))
}

const NO_WAY = /^(?:EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|EINVAL)$/

async function done(server: Server, endpoint: string, input: object) {
  const job = await runJob(server, endpoint, input, 60_000)
  assert.equal(job.status, 'COMPLETED', JSON.stringify(job))
  return job.output
}

/** A port of all addresses of this machine, loopback among them. */
async function listener(): Promise<number> {
  const server = createServer((_request, response) => response.end('secret')).listen(0, '0.0.0.0')
  await new Promise(resolve => server.once('listening', resolve))
  atEnd(() => {
    server.close()
  })
  return (server.address() as AddressInfo).port
}

describe('the network of a caged process', { skip: skipUnless(true), timeout: patient(180_000) }, () => {
  let server: ProbedServer
  let endpoint: string
  let balanced: Balanced
  let port: number
  const reach = (...targets: { host: string; port: number }[]): Promise<string[]> =>
    done(server, endpoint, { reach: targets })

  before(async () => {
    port = await listener()
    server = await startProbedServer({ args })
    endpoint = await makeEndpoint(server, { folder: join(images, 'evil'), settings })
    const image = `dir:${join(images, 'serves')}`
    const workers = { min: 1, max: 1, idleTimeout: 3600 }
    balanced = await balancedEndpoint(server, { image, args: `'${process.execPath}' server.mjs`, workers })
    await done(server, endpoint, {})
    server.forgetHolds()
  })

  test('metadata services of clouds are not reached', async () => {
    for (const outcome of await reach(...METADATA)) assert.match(outcome, NO_WAY)
  })

  test('listeners of this machine are not reached, at any of its addresses', async () => {
    const own = ['127.0.0.1', '::1', '0.0.0.0', '198.18.0.2', ...addressesOfThisMachine()]
    const reached = async (hosts: readonly string[]) => {
      const outcomes = await reach(...hosts.map(host => ({ host, port })))
      return hosts.filter((_host, at) => outcomes[at] === 'reached')
    }
    const first = await reached(own)
    // Another test may have given this machine an address a moment ago, which is open for two seconds (ADR 41).
    if (first.length > 0) await sleep(patient(3_000))
    assert.deepEqual(await reached(first), [])
  })

  test('management is not reached, not even with a key', async () => {
    const { port: management } = new URL(server.url)
    assert.deepEqual(await reach({ host: '127.0.0.1', port: Number(management) }), ['ECONNREFUSED'])
    const headers = { authorization: `Bearer ${server.apiKey}` }
    for (const path of ['/graphql', '/v2/serverless', `/v2/${endpoint}/health`, '/ops/workers', '/metrics']) {
      const { status, text } = await done(server, endpoint, { ask: { path, headers, method: 'GET' } })
      assert.equal(status, 404, `${path}: ${text}`)
    }
    for (const path of ['/relay/end', '/relay/tokens', '/relay/listen']) {
      const { status } = await done(server, endpoint, { ask: { path, headers, method: 'POST' } })
      assert.equal(status, 404, path)
    }
  })

  test('a worker that serves is reached by the gateway, and by no other worker', async () => {
    const first = await until('the worker to answer', async () => {
      const answer = await call(balanced, '/')
      return answer.status === 200 && answer
    })
    const reached = Number(first.text)
    assert.deepEqual(await reach({ host: '127.0.0.1', port: reached }), ['ECONNREFUSED'])
    const headers = { authorization: `Bearer ${server.apiKey}` }
    const socket = new WebSocket(`${server.url.replace('http', 'ws')}/lb/${balanced.id}/talk`, { headers } as never)
    const said = await new Promise((resolve, reject) => {
      socket.onopen = () => socket.send('hello')
      socket.onmessage = ({ data }) => resolve(data)
      socket.onerror = () => reject(new Error('the WebSocket failed'))
    })
    socket.close()
    assert.equal(said, 'hello')
  })

  test('the outside is reached', async t => {
    const outside = await makeOutside()
    if (typeof outside === 'string') return t.skip(outside)
    assert.deepEqual(await reach(outside), ['reached'])
    await until('the address that this machine has now to be closed', async () => {
      const [outcome] = await reach({ host: HERE, port })
      return outcome === 'EHOSTUNREACH'
    })
  })

  test('nothing of it held the server', () => server.assertNeverHeld())

  test('a worker continues when its server is killed and started again, and is still reached', async () => {
    const before = await call(balanced, '/')
    await server.kill9()
    const next = await startServer({ args, dataDir: server.dataDir, port: server.port })
    const after = await until('the worker to answer', async () => {
      const answer = await call({ ...balanced, server: next }, '/')
      return answer.status === 200 && answer
    })
    assert.equal(after.worker, before.worker)
    assert.equal(await done(next, endpoint, {}), 'well')
  })
})

for (const [relay, more] of [
  ['a relay', []],
  ['no relay', ['--direct-workers']],
] as const) {
  test(`with --worker-network server and ${relay} a worker reaches its server and nothing else`, {
    skip: skipUnless(false),
  }, async t => {
    const outside = await makeOutside()
    const server = await startServer({ args: [...args, ...more, '--worker-network', 'server'] })
    const endpoint = await makeEndpoint(server, { folder: join(images, 'evil'), settings })
    assert.equal(await done(server, endpoint, {}), 'well')
    const targets = typeof outside === 'string' ? METADATA : [...METADATA, outside]
    for (const outcome of await done(server, endpoint, { reach: targets })) assert.match(outcome, NO_WAY)
    const headers = { authorization: `Bearer ${server.apiKey}` }
    const { status } = await done(server, endpoint, { ask: { path: '/graphql', headers, method: 'GET' } })
    assert.equal(status, 404)
    await server.stop()
    if (typeof outside === 'string') t.diagnostic(outside)
  })
}
