/** Reach of a container: the calls of its own worker, and nothing else of this installation. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { describe, test } from 'node:test'
import { patient } from '../../support/patience.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { submit } from '../support/client.ts'
import { engine, openContainer, openedServer, probeSkip } from '../support/probe.ts'
import { type RawWorker, silentEndpoint } from '../support/raw-worker.ts'
import { until } from '../support/until.ts'

/** Calls of other clients of a server. */
const OTHERS = [
  '/v2/serverless',
  '/v1/endpoints',
  '/graphql',
  '/ops/why',
  '/metrics',
  '/healthz',
  '/v2/openapi.json',
  '/',
]

function ownAddresses(): string[] {
  const all = Object.values(networkInterfaces()).flatMap(list => list ?? [])
  return all.filter(({ family, internal }) => family === 'IPv4' && !internal).map(({ address }) => address)
}

const call = (base: string, worker: RawWorker, name: string, more = '') => ({
  url: `${base}/v2/${worker.endpoint}/${name}/${worker.id}${more}?gpu=CPU`,
  headers: { authorization: worker.token },
})

describe('from inside of a container', { skip: probeSkip, timeout: patient(120_000) }, () => {
  test('a server that listens everywhere shows nothing but the calls of the worker', async () => {
    const dataDir = temporaryFolder()
    const { server, url, network } = await openedServer(dataDir, '0.0.0.0')
    const mine = await silentEndpoint(server)
    const another = await silentEndpoint(server)
    const [worker, other] = await Promise.all([mine.worker(), another.worker()])
    const theirs = await submit(server, another.id, { secret: 'of another endpoint' })
    const probe = await openContainer(network)
    const authorization = `Bearer ${server.apiKey}`

    const run = { url: `/v2/${mine.id}/run`, method: 'POST', body: '{"input":{}}' }
    const anything = [...OTHERS.map(path => ({ url: path })), run, { url: `/v2/${mine.id}/health` }]
    const keyed = (base: string) =>
      anything.map(asked => ({ ...asked, url: `${base}${asked.url}`, headers: { authorization } }))

    const addresses = ownAddresses()
    assert.ok(addresses.length >= 2, `${addresses}`)
    const [ping, tokenOfAnother, guess, ...answers] = await probe.attempt([
      call(url, worker, 'ping'),
      { ...call(url, other, 'job-take'), headers: { authorization: worker.token } },
      { ...call(url, worker, 'job-take'), headers: { authorization: 'guess' } },
      ...keyed(url),
      ...addresses.flatMap(address => [
        ...keyed(`http://${address}:${server.port}`),
        call(`http://${address}:${server.port}`, worker, 'job-take'),
      ]),
    ])
    assert.match(ping!, /^200 /)
    assert.match(tokenOfAnother!, /^401 /)
    assert.match(guess!, /^401 /)
    const atWorkerAddress = answers.slice(0, anything.length)
    for (const [index, answer] of atWorkerAddress.entries()) assert.match(answer, /^404 /, anything[index]!.url)
    for (const answer of answers.slice(anything.length)) assert.match(answer, /^403 .*their worker address only/)

    const relay = JSON.parse(readFileSync(`${dataDir}/relay/relay.json`, 'utf8')) as { secret: string; port: number }
    const commands = ['/relay/end', '/relay/tether', '/relay/listen'].map(path => ({
      url: `${url}${path}`,
      method: 'POST',
      body: '',
      headers: { authorization: relay.secret, 'x-runyard-server': '127.0.0.1:1', 'x-runyard-listen': '127.0.0.1:0' },
    }))
    const loopback = ['127.0.0.1', '[::1]'].flatMap(host => [
      { url: `http://${host}:${server.port}/healthz` },
      { url: `http://${host}:${relay.port}/` },
    ])
    const [end, tether, listen, ...local] = await probe.attempt([...commands, ...loopback])
    for (const answer of [end, tether, listen]) assert.match(answer!, /^404 /)
    assert.deepEqual(new Set(local), new Set(['no connection']))

    assert.equal((await other.take()).id, theirs, 'the job of the other endpoint was touched by nobody')
    await Promise.all([probe.remove(), other.done(theirs, { output: 1 })])
    assert.deepEqual(await server.stop(), { code: 0, signal: null })
  })

  test('other workers and the engine cannot be reached, and the outside can', async () => {
    const dataDir = temporaryFolder()
    const { server, url, network } = await openedServer(dataDir, '127.0.0.1', ['--direct-workers'])
    const serves = ['python3', '-m', 'http.server', '8000']
    const [probe, neighbour] = await Promise.all([openContainer(network), openContainer(network, { command: serves })])
    const theirs = `http://${neighbour.address}:8000/`
    const shown = await until('the neighbour to serve', () => fetch(theirs).catch(() => false as const))
    assert.equal(shown.status, 200, 'it can be reached from this machine')
    const gateway = new URL(url).hostname
    const [fromNeighbour, api, ...outside] = await probe.attempt([
      { url: theirs },
      { url: `${url}/v2/serverless`, headers: { authorization: `Bearer ${server.apiKey}` } },
      ...ownAddresses().map(address => ({ url: `http://${address}:${server.port}/healthz` })),
    ])
    assert.equal(fromNeighbour, 'no connection')
    assert.match(api!, /^404 /)
    assert.deepEqual(new Set(outside), new Set(['no connection']))
    const seen = await probe.run([
      'sh',
      '-c',
      'ls /var/run/docker.sock /run/docker.sock 2>&1; ip route 2>/dev/null; cat /proc/net/route',
    ])
    assert.doesNotMatch(seen, /^\/(var\/)?run\/docker\.sock$/m)
    const routed = seen
      .split('\n')
      .some(line => line.split(/\s+/)[1] === '00000000' && line.split(/\s+/)[2] === inHex(gateway))
    assert.ok(routed, `its way out is through ${gateway}: ${seen}`)

    const [found] = await engine.listNetworks({ filters: { name: [network] } })
    assert.equal(found?.Options?.['com.docker.network.bridge.enable_icc'], 'false')
    assert.match(found?.Labels?.['runyard.installation'] ?? '', /^[0-9a-f]{12}$/)

    await Promise.all([probe.remove(), neighbour.remove()])
    await server.stop()
    assert.deepEqual(await engine.listNetworks({ filters: { name: [network] } }), [], 'a stop takes the network away')
    assert.ok(!existsSync(`${dataDir}/container-address.json`))
  })

  test('the address is there while the server is away, and outlives a network that was removed', async () => {
    const dataDir = temporaryFolder()
    const { server: first, url, network } = await openedServer(dataDir)
    const silent = await silentEndpoint(first)
    const worker = await silent.worker()
    const id = await submit(first, silent.id, {})
    assert.equal((await worker.take()).id, id)
    const probe = await openContainer(network)
    await first.kill9()

    const [away] = await probe.attempt([call(url, worker, 'ping')])
    assert.match(away!, /^200 /, 'a worker does not notice')
    const result = { ...call(url, worker, 'job-done', `/${id}`), method: 'POST', body: '{"output":"kept"}' }
    const sent = probe.run(['python3', '-c', POST], { ATTEMPT: JSON.stringify(result) })
    const { server: second, ...later } = await openedServer(dataDir)
    assert.equal(await sent, '200')
    assert.equal(later.url, url)
    const status = await fetch(`${second.url}/v2/${silent.id}/status/${id}`, {
      headers: { authorization: `Bearer ${second.apiKey}` },
    })
    assert.deepEqual(
      (({ status, output }) => ({ status, output }))((await status.json()) as { status: string; output: string }),
      { status: 'COMPLETED', output: 'kept' },
    )

    await second.kill9()
    await probe.remove()
    await engine.getNetwork(network).remove()
    const { server: third, ...anew } = await openedServer(dataDir)
    assert.equal(anew.url, url)
    const again = await openContainer(anew.network)
    const [back] = await again.attempt([call(url, worker, 'ping')])
    assert.match(back!, /^200 /)
    await again.remove()
    await third.stop()
  })
})

const POST = `
import json, os, urllib.request
a = json.loads(os.environ["ATTEMPT"])
request = urllib.request.Request(a["url"], method="POST", headers=a["headers"], data=a["body"].encode())
print(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60).status)
`

/** As the kernel's table of routes writes an address. */
function inHex(address: string): string {
  return address
    .split('.')
    .reverse()
    .map(part => Number(part).toString(16).padStart(2, '0').toUpperCase())
    .join('')
}
