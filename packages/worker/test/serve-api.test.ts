import assert from 'node:assert/strict'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { Child, fixture, until } from './support/bench.ts'

let child: Child
let origin: string

before(async () => {
  const args = ['--rp_serve_api', '--rp_api_port', '0', '--rp_api_host', '127.0.0.1', '--rp_api_concurrency', '2']
  child = new Child([fixture, ...args], { RUNPOD_ENDPOINT_ID: 'mymodel' })
  origin = await until('the server', () => /is at (http:\S+),/.exec(child.stdout)?.[1])
})
after(() => child.end('SIGTERM'))

async function call(method: string, path: string, body?: unknown) {
  const answer = await fetch(origin + path, { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })
  return { code: answer.status, json: (await answer.json()) as Record<string, never> }
}
const submit = async (input: object) => (await call('POST', '/run', { input })).json.id as string
const over = (id: string) => call('GET', `/status-sync/${id}`)

/** `fetch` sets these headers itself. */
function callWith(headers: Record<string, string>): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request(`${origin}/run`, { method: 'POST', headers }, answer => {
      answer.resume()
      resolve(answer.statusCode)
    })
    sent.on('error', reject).end('{"input": {"do": "echo"}}')
  })
}

describe('the development server', () => {
  it('runs a job and answers with its output', async () => {
    const { json } = await call('POST', '/runsync', { input: { do: 'echo', text: 'wörld' } })
    assert.deepEqual([json.status, json.output], ['COMPLETED', { echo: { do: 'echo', text: 'wörld' } }])
    const again = await call('GET', `/v2/mymodel/status/${json.id}`)
    assert.deepEqual(again.json, json)
  })

  it('queues a job, shows how far it is, and runs as many at once as it was told', async () => {
    const ids = await Promise.all([1, 2, 3].map(() => submit({ do: 'untilCancelled' })))
    const statuses = await Promise.all(ids.map(async id => (await call('GET', `/status/${id}`)).json.status))
    assert.deepEqual(statuses, ['IN_PROGRESS', 'IN_PROGRESS', 'IN_QUEUE'])
    assert.deepEqual((await call('GET', '/health')).json.jobs, {
      completed: 1,
      failed: 0,
      inProgress: 2,
      inQueue: 1,
      retried: 0,
    })
    for (const id of ids.reverse()) assert.equal((await call('POST', `/cancel/${id}`)).json.status, 'CANCELLED')
    assert.equal((await over(await submit({ do: 'echo' }))).json.status, 'COMPLETED')
  })

  it('fails a job as its handler does', async () => {
    const { json } = await over(await submit({ do: 'throw' }))
    assert.equal(json.status, 'FAILED')
    assert.equal(JSON.parse(json.error!).error_message, 'too far')
  })

  it('hands out chunks once, as they come, and all of them as the output', async () => {
    const id = await submit({ do: 'stream', n: 3 })
    const stream: unknown[] = []
    for (;;) {
      const { json } = await call('GET', `/stream/${id}`)
      stream.push(...(json.stream as unknown[]))
      if (json.status !== 'IN_PROGRESS' && json.status !== 'IN_QUEUE') break
    }
    assert.deepEqual(
      stream,
      [0, 1, 2].map(index => ({ output: { index } })),
    )
    assert.deepEqual(
      (await call('POST', `/status/${id}`)).json.output,
      [0, 1, 2].map(index => ({ index })),
    )
    assert.deepEqual((await call('GET', `/stream/${id}`)).json.stream, [])
  })

  it('tells the end of a job to its webhook', async () => {
    const told: Record<string, unknown>[] = []
    const receiver = createServer(async (request, response) => {
      let text = ''
      for await (const chunk of request) text += chunk
      told.push({ ...JSON.parse(text), type: request.headers['content-type'] })
      response.writeHead(request.url?.startsWith('/broken') ? 500 : 200).end()
    })
    await new Promise<void>(resolve => receiver.listen(0, '127.0.0.1', resolve))
    const { port } = receiver.address() as AddressInfo
    const webhook = `http://127.0.0.1:${port}/told`
    const end = async (input: object) => {
      const { json } = await call('POST', '/run', { input, webhook })
      return until('the webhook', () => told.find(({ id }) => id === json.id))
    }
    try {
      const { type, ...echoed } = await end({ do: 'echo' })
      assert.equal(type, 'application/json')
      assert.deepEqual(echoed, (await call('GET', `/status/${echoed.id}`)).json)
      assert.deepEqual((await end({ do: 'stream', n: 2 })).output, [{ index: 0 }, { index: 1 }])
      assert.equal((await end({ do: 'throw' })).status, 'FAILED')
      const { json } = await call('POST', '/run', { input: { do: 'untilCancelled' }, webhook })
      await call('POST', `/cancel/${json.id}`)
      await until('the webhook', () => told.find(({ id, status }) => id === json.id && status === 'CANCELLED'))
      assert.equal(told.length, 4)
      const broken = `http://127.0.0.1:${port}/broken?key=secret`
      assert.equal(
        (await call('POST', '/runsync', { input: { do: 'echo' }, webhook: broken })).json.status,
        'COMPLETED',
      )
      await until('the log', () => /webhook was not delivered: the receiver answered 500/.test(child.stdout))
      assert.equal(child.stdout.includes('secret'), false)
      const { code, json: refused } = await call('POST', '/run', { input: {}, webhook: 'file:///etc/passwd' })
      assert.deepEqual([code, refused.error], [400, '"webhook" must be an http or https URL'])
    } finally {
      receiver.close()
      receiver.closeAllConnections()
    }
  })

  it('empties its queue', async () => {
    const ids = await Promise.all([1, 2, 3, 4].map(() => submit({ do: 'untilCancelled' })))
    assert.deepEqual((await call('POST', '/purge-queue')).json, { removed: 2, status: 'completed' })
    const statuses = await Promise.all(ids.map(async id => (await call('GET', `/status/${id}`)).json.status))
    assert.deepEqual(statuses, ['IN_PROGRESS', 'IN_PROGRESS', 'CANCELLED', 'CANCELLED'])
    for (const id of ids) await call('POST', `/cancel/${id}`)
  })

  it('answers a realtime request of its endpoint with what came out', async () => {
    const realtime = (body: object) => call('POST', '/mymodel/realtime', body)
    assert.deepEqual((await realtime({ id: 'r1', input: { do: 'echo' } })).json, { output: { echo: { do: 'echo' } } })
    assert.deepEqual((await realtime({ id: 'r1', input: { do: 'stream', n: 1 } })).json, { output: [{ index: 0 }] })
    const { json } = await realtime({ id: 'r2', input: { do: 'throw' } })
    assert.equal(JSON.parse(json.error!).error_message, 'too far')
    assert.deepEqual(await realtime({ input: {} }), { code: 400, json: { error: 'the body has no "id"' } })
    assert.equal((await call('POST', '/other/realtime', { id: 'r3', input: {} })).code, 404)
  })

  it('describes itself to people and programs', async () => {
    const page = await fetch(`${origin}/docs`)
    assert.deepEqual([page.url, page.headers.get('content-type')], [`${origin}/`, 'text/plain; charset=utf-8'])
    assert.match(await page.text(), /POST runsync: queues a job and waits/)
    const { json } = await call('GET', '/openapi.json')
    assert.deepEqual(Object.keys(json.paths!['/status/{id}']), ['get'])
  })

  it('says what is wrong with a request', async () => {
    const wrong = async (method: string, path: string, body?: unknown) => {
      const { code, json } = await call(method, path, body)
      return [code, json.error]
    }
    assert.deepEqual(await wrong('POST', '/run', { name: 'x' }), [400, 'the body has no "input": send {"input": ...}'])
    assert.deepEqual(await wrong('GET', '/status/nosuch'), [404, 'job nosuch does not exist'])
    const [code, error] = await wrong('GET', '/elsewhere')
    assert.deepEqual([code, /POST runsync/.test(error!)], [404, true])
  })

  it('refuses what other sites in a browser of this machine send', async () => {
    assert.equal(await callWith({}), 200)
    assert.equal(await callWith({ host: 'evil.example' }), 403)
    assert.equal(await callWith({ origin: 'http://evil.example' }), 403)
    assert.equal(await callWith({ origin: 'null' }), 403)
  })

  it('says which argument it cannot use', async () => {
    const bad = new Child([fixture, '--rp_serve_api', '--rp_api_port', 'many'], {})
    assert.equal((await bad.ended).code, 1)
    assert.match(bad.stderr, /--rp_api_port must be a whole number from 0 to 65535, not "many"/)
  })
})
