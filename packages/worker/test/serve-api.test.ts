import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { Child, fixture, until } from './support/bench.ts'

let child: Child
let origin: string

before(async () => {
  const args = ['--rp_serve_api', '--rp_api_port', '0', '--rp_api_host', '127.0.0.1', '--rp_api_concurrency', '2']
  child = new Child([fixture, ...args], {})
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
      ...{ completed: 1, failed: 0, inProgress: 2, inQueue: 1, retried: 0 },
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

  it('says what is wrong with a request', async () => {
    const wrong = async (method: string, path: string, body?: unknown) => {
      const { code, json } = await call(method, path, body)
      return [code, json.error]
    }
    assert.deepEqual(await wrong('POST', '/run', { name: 'x' }), [400, 'the body has no "input": send {"input": ...}'])
    assert.deepEqual(await wrong('GET', '/status/nosuch'), [404, 'there is no job nosuch'])
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
