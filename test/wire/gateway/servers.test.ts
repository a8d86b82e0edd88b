/**
 * Real servers as workers of load-balancing endpoints: their own paths behind one address,
 * from zero, and who gets what.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { patient } from '../../support/patience.ts'
import {
  type Balanced,
  balancedEndpoint,
  Chat,
  call,
  changeBalanced,
  inFastApi,
  inNode,
  ofSockets,
} from '../support/balanced.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, healthOf } from '../support/client.ts'
import { explanationOf } from '../support/containers.ts'
import { leaderOf, workerProcesses } from '../support/processes.ts'
import { python, skip } from '../support/python.ts'
import { runCommand, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

/** Long enough for a Python to start on a machine with much to do. */
const START_MS = 60_000

describe('servers as workers', { timeout: patient(240_000) }, () => {
  let server: Server
  before(async () => {
    server = await startServer()
  })

  const whenAlone = (endpoint: Balanced) =>
    until('its workers to be gone', async () => {
      const { workers } = await healthOf(server, endpoint.id)
      return Object.values(workers).every(count => count === 0)
    })

  test('an application of FastAPI answers at its own paths and below a host of its own, from zero', {
    skip,
  }, async () => {
    const fastApi = await balancedEndpoint(server, inFastApi)
    assert.equal(workerProcesses(server.dataDir).length, 0)
    const { status, json, worker, headers } = await call(fastApi, '/items/7?q=a%20b%26c')
    assert.deepEqual([status, json], [200, { item: 7, q: 'a b&c', worker }])
    assert.equal(headers.server, 'uvicorn')
    const invalid = await call(fastApi, '/items/seven', { byHost: true })
    assert.deepEqual([invalid.status, invalid.json.detail[0].type], [422, 'int_parsing'])
    const body = JSON.stringify({ name: 'tea', price: 2.5 })
    const type = { 'content-type': 'application/json' }
    const made = await call(fastApi, '/items/8', { method: 'PUT', headers: type, body })
    assert.deepEqual([made.status, made.json], [201, { item: 8, name: 'tea', price: 2.5 }])
    const below = `Path=/lb/${fastApi.id}`
    const cookies = [`first=1; ${below}`, `second=2; ${below}`]
    assert.deepEqual([made.headers.location, made.headers['set-cookie']], [`/lb/${fastApi.id}/items/8`, cookies])
    const removed = await call(fastApi, '/items/8', { method: 'DELETE', byHost: true })
    assert.deepEqual([removed.status, removed.text], [204, ''])
    assert.equal((await call(fastApi, '/nowhere')).json.detail, 'Not Found')
    const { paths } = (await call(fastApi, '/openapi.json')).json
    assert.ok(Object.keys(paths).includes('/items/{item}'))
  })

  test('clients of Python call the address that REST shows, and follow the redirects of FastAPI to its slash', {
    skip,
  }, async () => {
    const fastApi = await balancedEndpoint(server, inFastApi)
    const script = `
import json, sys, httpx, requests
base, key = sys.argv[1:]
headers = {"Authorization": f"Bearer {key}"}
asked = {"url": f"{base}/things", "params": {"q": "tea"}, "headers": headers}
answers = [requests.get(**asked), httpx.get(**asked, follow_redirects=True)]
print(json.dumps([[answer.status_code, str(answer.url), answer.json()] for answer in answers]))`
    const { stdout } = await promisify(execFile)(python, ['-c', script, fastApi.base, server.apiKey])
    const expected = [200, `${server.url}/lb/${fastApi.id}/things/?q=tea`, { things: [], q: 'tea' }]
    assert.deepEqual(JSON.parse(stdout), [expected, expected])
  })

  test('what a server sees of a request is what its client sent, without the key', { skip }, async () => {
    const fastApi = await balancedEndpoint(server, inFastApi)
    const headers = { 'x-mine': 'a, b', accept: 'text/plain' }
    for (const method of ['POST', 'PATCH', 'OPTIONS', 'HEAD']) {
      const body = `body of ${method}`
      const byHost = method !== 'PATCH'
      const { status, json, text } = await call(fastApi, '/seen?a=1&a=2', {
        method,
        headers,
        byHost,
        ...(method === 'HEAD' ? {} : { body }),
      })
      assert.equal(status, 200)
      if (method === 'HEAD') assert.equal(text, '')
      else {
        assert.deepEqual([json.method, json.body, json.client], [method, body, '127.0.0.1'])
        assert.deepEqual([json.headers['x-mine'], json.headers.accept], ['a, b', 'text/plain'])
        assert.match(json.url, /\/seen\?a=1&a=2$/)
        assert.equal(json.headers['x-forwarded-prefix'], byHost ? undefined : `/lb/${fastApi.id}`)
        assert.ok(!JSON.stringify(json).includes(server.apiKey))
      }
    }
    const { text } = await call(fastApi, '/events?n=100')
    assert.equal(text, Array.from({ length: 100 }, (_, n) => `data: ${n}\n\n`).join(''))
  })

  test('WebSockets of FastAPI and of a server of nothing else, each with its own close code', { skip }, async () => {
    const [fastApi, sockets] = [await balancedEndpoint(server, inFastApi), await balancedEndpoint(server, ofSockets)]
    const chat = new Chat(fastApi, '/chat/tea')
    assert.equal(await chat.say('hello'), 'tea: hello')
    chat.socket.send('bye')
    assert.deepEqual(await chat.ended(), { code: 4001, reason: 'bye from tea' })
    const echo = new Chat(sockets, '/')
    const { said, worker } = JSON.parse(String(await echo.say('hello')))
    assert.deepEqual([said, leaderOf(server.dataDir, worker).workerId], ['hello', worker])
    const large = new Uint8Array(900_000).fill(7)
    assert.deepEqual(new Uint8Array((await echo.say(large)) as ArrayBuffer), large)
    assert.equal((await echo.end()).code, 1000)
  })

  test('a server in Node: every status goes through as it is', async () => {
    const node = await balancedEndpoint(server, inNode)
    for (const status of [200, 206, 304, 404, 418, 500, 503]) {
      const answer = await call(node, `/seen?status=${status}`)
      assert.equal(answer.status, status)
      assert.notEqual(answer.worker, '')
    }
    assert.equal((await healthOf(server, node.id)).workers.ready, 1)
  })

  test('a worker that loads its model gets nothing, and what waits is answered once it says 200', async () => {
    const loaded = join(temporaryFolder(), 'loaded')
    const node = await balancedEndpoint(server, { ...inNode, env: { WIRE_LOADED: loaded } })
    const waits = call(node, '/')
    const { summary } = await until('the explanation', async () => {
      const found = await explanationOf(server, node.id)
      return found.summary.includes('204') && found
    })
    assert.match(summary, /answers 204 at \/ping, so it initializes/)
    assert.equal((await healthOf(server, node.id)).workers.initializing, 1)
    writeFileSync(loaded, '')
    const { status, json } = await waits
    assert.equal(status, 200)
    assert.equal(typeof json.started, 'number')
  })

  test('the address of the health check wakes a worker, and the health of the endpoint does not', async () => {
    const node = await balancedEndpoint(server, { ...inNode, workers: { idleTimeout: 1 } })
    assert.equal((await healthOf(server, node.id)).workers.initializing, 0)
    assert.equal(server.events('worker.moved').filter(({ endpointId }) => endpointId === node.id).length, 0)
    assert.equal(node.health, `${node.base}/ping`)
    assert.equal((await call(node, '/ping')).status, 200)
    await whenAlone(node)
  })

  test('a worker that listens on another port than its own is named as the reason', async () => {
    const other = createServer().listen(0)
    const { port } = other.address() as { port: number }
    await new Promise(resolve => other.close(resolve))
    const node = await balancedEndpoint(server, { ...inNode, env: { WIRE_PORT: String(port) } })
    const given = new AbortController()
    const waits = fetch(`${server.url}/lb/${node.id}/`, {
      headers: { authorization: `Bearer ${server.apiKey}` },
      signal: given.signal,
    }).catch(() => 'given up')
    const connection = { RUNYARD_URL: server.url, RUNYARD_API_KEY: server.apiKey }
    const stdout = await until(
      'the reason',
      async () => {
        const said = await runCommand(['why', node.id, '--json'], connection)
        return said.stdout.includes('PORT') && said.stdout
      },
      START_MS,
    )
    assert.match(stdout, /nothing listens on port \d+ \(its variable PORT\)/)
    given.abort()
    assert.equal(await waits, 'given up')
    await changeBalanced(node, { workers: { max: 0 } })
    await whenAlone(node)
    const refused = await call(node, '/')
    assert.deepEqual([refused.status, refused.json], [400, { error: 'no workers available' }])
    assert.ok(Number(refused.headers['retry-after']) > 0)
  })

  test('where a secret is missing requests are refused with the cause, and answered once it is there', async () => {
    const node = await balancedEndpoint(server, { ...inNode, env: { TOKEN: '{{ RUNPOD_SECRET_wire_lb }}' } })
    const refused = await call(node, '/')
    const cause = 'no worker can be started: the environment refers to secrets that do not exist: wire_lb'
    assert.deepEqual([refused.status, refused.json], [400, { error: `no workers available: ${cause}` }])
    assert.equal(refused.headers['retry-after'], '30')
    assert.match((await explanationOf(server, node.id)).summary, /secrets that do not exist: wire_lb/)
    await ask(server, '/graphql', {
      body: { query: 'mutation { secretCreate(input: { name: "wire_lb", value: "x" }) { id } }' },
    })
    const answered = await until('an answer', async () => {
      const { status, json } = await call(node, '/')
      return status === 200 && json
    })
    assert.equal(typeof answered.started, 'number')
  })

  test('the only worker is gone and the server has not noticed: requests that reached no one wait for the next worker', async () => {
    const node = await balancedEndpoint(server, { ...inNode, workers: { max: 1 } })
    const { worker } = await call(node, '/leave?ms=1500')
    const body = 'not lost'
    const post = call(node, '/seen', { method: 'POST', body })
    const answers = await Promise.all([post, call(node, '/seen'), call(node, '/seen', { method: 'PATCH', body })])
    const bodies = answers.map(({ status, text, json }) => [status, json?.bytes ?? text])
    assert.deepEqual(bodies, [
      [200, body.length],
      [200, 0],
      [200, body.length],
    ])
    assert.ok(answers.every(answer => answer.worker !== worker))
  })

  test('where workers crash a request outlasts the first crashes, and the next one is refused with the exit', async () => {
    const node = await balancedEndpoint(server, { ...inNode, args: `'${process.execPath}' -e process.exit(3)` })
    const first = await call(node, '/')
    const exits = () => server.events('worker.exited').filter(({ endpointId }) => endpointId === node.id)
    await until('the fourth crash in the log', () => exits().length >= 4)
    const cause =
      /^no workers available: the last \d+ workers crashed; the last one exited with code 3; the next one starts in \d+ s$/
    assert.deepEqual([first.status, cause.test(first.json.error)], [400, true], first.text)
    const second = await call(node, '/')
    assert.deepEqual([second.status, cause.test(second.json.error)], [400, true], second.text)
    assert.ok(Number(second.headers['retry-after']) > 0)
  })

  test('a program that does not exist is the reason of the refusal', async () => {
    const node = await balancedEndpoint(server, { ...inNode, args: 'no-such-program server.mjs' })
    const { status, json } = await call(node, '/')
    assert.equal(status, 400)
    assert.match(json.error, /^no workers available: .*no-such-program/)
  })

  test('a client that names a worker gets that one, is refused when it is gone, and can have it started again', async () => {
    const node = await balancedEndpoint(server, { ...inNode, workers: { min: 2, max: 2 } })
    await until('both workers', async () => (await healthOf(server, node.id)).workers.ready === 2)
    const seen = new Set<string>()
    for (let n = 0; n < 4; n += 1) seen.add((await call(node, '/')).worker)
    const [first = '', second = ''] = [...seen]
    assert.equal(seen.size, 2)
    const naming = (name: string) => call(node, '/', { headers: { 'x-runpod-worker-id': name } })
    for (const worker of [second, second, first, second]) {
      for (const kind of ['', 'strict ', 'strict-resume ']) assert.equal((await naming(kind + worker)).worker, worker)
    }
    await changeBalanced(node, { workers: { min: 0, max: 2, idleTimeout: 1 } })
    await whenAlone(node)
    const gone = await naming(`strict ${first}`)
    assert.deepEqual([gone.status, gone.json], [404, { error: 'affinity_worker_gone' }])
    const again = await naming(`strict-resume ${first}`)
    assert.deepEqual([again.status, again.worker], [200, first])
    assert.equal((await naming(second)).status, 200)
  })

  test('health, the reason and the metrics of an endpoint show its requests', async () => {
    const node = await balancedEndpoint(server, { ...inNode, workers: { max: 1 }, requestCount: 2 })
    const { worker } = await call(node, '/')
    const slow = [1, 2, 3].map(() => call(node, '/wait?ms=5000'))
    const { workers } = await until('the requests in flight', async () => {
      const health = await healthOf(server, node.id)
      return health.jobs.inProgress === 3 && health
    })
    assert.deepEqual([workers.running, workers.idle], [1, 0])
    const metrics = async () => (await ask(server, '/metrics')).text.split('\n').filter(line => line.includes(node.id))
    const flying = (await metrics()).filter(line => /^runyard_gateway_.*requests.* 3$/.test(line))
    assert.ok(flying.length > 0, (await metrics()).join('\n'))
    const { stdout } = await runCommand(['why', node.id, '--json'], {
      RUNYARD_URL: server.url,
      RUNYARD_API_KEY: server.apiKey,
    })
    assert.equal(typeof JSON.parse(stdout).summary, 'string')
    const done = await Promise.all(slow)
    assert.deepEqual(
      done.map(answer => [answer.status, answer.worker]),
      Array(3).fill([200, worker]),
    )
    const after = await until('the count', async () => {
      const lines = (await metrics()).filter(line => /status="2xx".* 4$/.test(line))
      return lines.length > 0 && lines
    })
    assert.match(after[0]!, /^runyard_gateway/)
  })
})

describe('a server that goes and comes again', { timeout: patient(120_000) }, () => {
  test('a kill touches no worker of a load-balancing endpoint, and the same ones serve after the next start', async () => {
    let server = await startServer()
    const wish = { ...inNode, workers: { min: 2, max: 2 } }
    let node = await balancedEndpoint(server, wish)
    await until('both workers', async () => (await healthOf(server, node.id)).workers.ready === 2)
    const atDomain = () => call(node, '/', { byHost: true, headers: { host: 'chat.example.org' } })
    assert.equal((await atDomain()).status, 421)
    await changeBalanced(node, { domain: 'chat.example.org' })
    assert.equal((await atDomain()).status, 200)
    const before = await everyone(node)
    await server.kill9()
    server = await startServer({ dataDir: server.dataDir, port: server.port })
    node = { ...node, server }
    assert.deepEqual(await everyone(node), before)
    assert.equal(server.events('worker.adopted').length, 2)
    assert.equal((await atDomain()).status, 200)

    const last = call(node, '/wait?ms=2000')
    await until('it to be in flight', async () => (await healthOf(server, node.id)).jobs.inProgress === 1)
    const stopped = server.stop()
    assert.equal((await last).status, 200, 'a stop waits for what is in flight')
    assert.deepEqual(await stopped, { code: 0, signal: null })
    assert.deepEqual(workerProcesses(server.dataDir), [])
    server = await startServer({ dataDir: server.dataDir, port: server.port })
    assert.equal((await call({ ...node, server }, '/')).status, 200)
    await server.stop()
  })

  /** Both workers with when they began. */
  async function everyone(node: Balanced): Promise<[worker: string, started: number][]> {
    const found = new Map<string, number>()
    await until('both to answer', async () => {
      const { json } = await call(node, '/')
      found.set(json.worker, json.started)
      return found.size === 2
    })
    return [...found].sort()
  }
})
