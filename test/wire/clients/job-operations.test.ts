/** Every job operation over plain HTTP, answer by answer. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { before, describe, test } from 'node:test'
import { patient } from '../../support/patience.ts'
import { ask, healthOf, makeEndpoint, runJob, statusOf, submit, whenFinal, whenStatus } from '../support/client.ts'
import { root, type Server, startServer } from '../support/server.ts'
import { timed, until } from '../support/until.ts'

const JOB_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-u1$/
const folder = `${root}/examples/hello-node`

let server: Server
/** Runs jobs. */
let live: string
/** Has no workers, so its jobs wait. */
let paused: string
/** Balances load instead of running jobs. */
let balancer: string

before(async () => {
  server = await startServer()
  live = await makeEndpoint(server, { folder, settings: { workersMax: 2, idleTimeout: 3600 } })
  paused = await makeEndpoint(server, { folder, settings: { workersMax: 0 } })
  balancer = await makeEndpoint(server, { folder, settings: { type: 'LB', workersMax: 0 } })
})

/** Jobs that an endpoint accepted so far, by the server's log. */
function jobsOf(endpoint: string): string[] {
  return server
    .events('job.accepted')
    .flatMap(({ endpointId, jobId }) => (endpointId === endpoint ? [String(jobId)] : []))
}

test('repeated slashes in a path are one, and lead past no key, no right and no limit', async () => {
  const headers = { 'content-type': 'application/json' }
  const call = (path: string, key: string | null, body?: string) =>
    fetch(`${server.url}${path}`, {
      headers: key === null ? headers : { ...headers, authorization: `Bearer ${key}` },
      ...(body === undefined ? {} : { method: 'POST', body }),
    })
  const run = await call(`//v2//${paused}/run`, server.apiKey, '{"input": {}}')
  const { id } = (await run.json()) as { id: string }
  assert.match(id, JOB_ID)
  for (const path of [`/v2///${paused}//status/${id}`, `//v2/${paused}/status//${id}`]) {
    assert.equal(((await (await call(path, server.apiKey)).json()) as { id: string }).id, id)
  }
  const scope = { type: 'restricted', management: 'none', jobs: 'read' }
  const reader = (await ask(server, '/v2/account/keys', { body: { name: 'reader', scope } })).json.key
  for (const [path, key, body, status] of [
    [`//v2//${paused}//run`, null, '{"input": {}}', 401],
    [`//v2//${paused}//run`, 'rpa_wrong', '{"input": {}}', 401],
    [`//v2//${paused}//run`, reader, '{"input": {}}', 403],
    [`//v2//serverless//${paused}`, null, undefined, 401],
    [`//v2//serverless//${paused}`, reader, undefined, 403],
    ['//ops//status', reader, undefined, 403],
    [`//v2//${paused}//run`, server.apiKey, `{"input": {"a": "${'x'.repeat(10_485_760)}"}}`, 413],
    [`//lb//${balancer}//x`, null, undefined, 401],
  ] as const) {
    assert.equal((await call(path, key, body)).status, status, path)
  }
  await ask(server, `/v2/${paused}/cancel/${id}`, { method: 'POST' })
})

describe('run, status and cancel', () => {
  test('run answers 200 with the id and IN_QUEUE, and nothing else', async () => {
    const answer = await ask(server, `/v2/${paused}/run`, { body: { input: { name: 'Ada' } } })
    assert.equal(answer.status, 200)
    assert.match(answer.headers.get('content-type') ?? '', /^application\/json/)
    assert.deepEqual(Object.keys(answer.json), ['id', 'status'])
    assert.match(answer.json.id, JOB_ID)
    assert.equal(answer.json.status, 'IN_QUEUE')
  })

  test('a finished job shows its output, its times as whole milliseconds and its worker', async () => {
    const done = await runJob(server, live, { name: 'Ada', sleepMs: 30 })
    assert.deepEqual(done.output, { message: 'Hello, Ada!', sleptMs: 30 })
    assert.deepEqual(Object.keys(done).sort(), ['delayTime', 'executionTime', 'id', 'output', 'status', 'workerId'])
    assert.ok(Number.isInteger(done.delayTime) && Number.isInteger(done.executionTime) && done.executionTime! >= 29)
    assert.match(done.workerId!, /^[a-z0-9]+$/)
  })

  test('status answers GET and POST alike, with and without a body', async () => {
    const { id } = await runJob(server, live, {})
    const path = `/v2/${live}/status/${id}`
    const first = await ask(server, path)
    const json = { 'content-type': 'application/json' }
    for (const request of [{ method: 'POST' }, { method: 'POST', headers: json }, { method: 'POST', body: {} }]) {
      assert.deepEqual((await ask(server, path, request)).json, first.json)
    }
  })

  test('a queued job shows how long it waits, and no worker', async () => {
    const id = await submit(server, paused, {})
    const { delayTime, ...rest } = await statusOf(server, paused, id)
    assert.ok(Number.isInteger(delayTime))
    assert.deepEqual(rest, { id, status: 'IN_QUEUE' })
  })

  test('cancelling a queued job, and cancelling it again, answer 200 with CANCELLED', async () => {
    const id = await submit(server, paused, {})
    for (const request of [
      { method: 'POST' },
      { method: 'POST', headers: { 'content-type': 'application/json' } },
      { body: {} },
    ]) {
      const answer = await ask(server, `/v2/${paused}/cancel/${id}`, request)
      assert.deepEqual([answer.status, answer.json], [200, { id, status: 'CANCELLED' }])
    }
    const { delayTime, ...rest } = await statusOf(server, paused, id)
    assert.ok(Number.isInteger(delayTime))
    assert.deepEqual(rest, { executionTime: 0, id, status: 'CANCELLED', workerId: '' })
  })

  test('cancelling a running job is final at once, and the worker takes the next one', async () => {
    const id = await submit(server, live, { sleepMs: 60_000 })
    await whenStatus(server, live, id, ['IN_PROGRESS'])
    const { value, ms } = await timed(() => ask(server, `/v2/${live}/cancel/${id}`, { method: 'POST' }))
    assert.deepEqual([value.status, value.json], [200, { id, status: 'CANCELLED' }])
    assert.ok(ms < patient(5_000), `it took ${ms} ms`)
    assert.equal((await statusOf(server, live, id)).status, 'CANCELLED')
    assert.equal((await runJob(server, live, {})).status, 'COMPLETED')
  })

  test('cancelling a job that has another final state answers 409 with a message', async () => {
    const { id } = await runJob(server, live, {})
    const answer = await ask(server, `/v2/${live}/cancel/${id}`, { method: 'POST' })
    assert.equal(answer.status, 409)
    assert.deepEqual(answer.json, { error: `job ${id} is COMPLETED and cannot be cancelled` })
  })

  test('a job of another endpoint, and one that never was, are 404', async () => {
    const id = await submit(server, paused, {})
    for (const path of [`${live}/status/${id}`, `${live}/cancel/${id}`, `${paused}/status/none`]) {
      const answer = await ask(server, `/v2/${path}`, { method: 'POST' })
      const job = path.split('/')[2]
      assert.deepEqual([answer.status, answer.json], [404, { error: `job ${job} not found` }])
    }
  })
})

describe('runsync', () => {
  test('a job that is done in time is answered whole', async () => {
    const answer = await ask(server, `/v2/${live}/runsync`, { body: { input: { name: 'Grace' } } })
    assert.equal(answer.status, 200)
    assert.equal(answer.json.status, 'COMPLETED')
    assert.equal(answer.json.output.message, 'Hello, Grace!')
    assert.match(answer.json.id, /^sync-[0-9a-f-]{36}-u1$/)
    assert.ok(Number.isInteger(answer.json.delayTime) && Number.isInteger(answer.json.executionTime))
  })

  test('a running job past its wait is answered 200 with id, status and the times so far', async () => {
    const path = `/v2/${live}/runsync?wait=1000`
    const { value, ms } = await timed(() => ask(server, path, { body: { input: { sleepMs: 5_000 } } }))
    assert.ok(ms >= 990 && ms < patient(4_000), `it took ${ms} ms`)
    const { id, status, delayTime, executionTime } = value.json
    assert.deepEqual([value.status, status], [200, 'IN_PROGRESS'])
    assert.ok(Number.isInteger(delayTime) && Number.isInteger(executionTime))
    assert.equal((await whenFinal(server, live, id)).output.sleptMs, 5_000)
  })

  test('a queued job past its wait is answered 200 and stays in the queue', async () => {
    const answer = await ask(server, `/v2/${paused}/runsync?wait=1000`, { body: { input: {} } })
    const { id, delayTime, ...rest } = answer.json
    assert.deepEqual([answer.status, rest], [200, { status: 'IN_QUEUE' }])
    assert.ok(delayTime >= 990 && delayTime < patient(10_000))
    assert.equal((await statusOf(server, paused, id)).status, 'IN_QUEUE')
  })

  test('a waiting caller is answered as soon as the job is cancelled', async () => {
    const known = new Set(jobsOf(live))
    const waiting = timed(() => ask(server, `/v2/${live}/runsync?wait=20000`, { body: { input: { sleepMs: 15_000 } } }))
    const job = await until('the job', () => jobsOf(live).find(id => !known.has(id)))
    await whenStatus(server, live, job, ['IN_PROGRESS'])
    await ask(server, `/v2/${live}/cancel/${job}`, { method: 'POST' })
    const { value, ms } = await waiting
    assert.deepEqual([value.status, value.json.id, value.json.status], [200, job, 'CANCELLED'])
    assert.ok(ms < patient(10_000))
  })
})

describe('health', () => {
  test('it has all counters of jobs and workers', async () => {
    const endpoint = await makeEndpoint(server, { folder, settings: { workersMax: 1, idleTimeout: 3600 } })
    const none = { idle: 0, initializing: 0, ready: 0, running: 0, throttled: 0, unhealthy: 0 }
    const noJobs = { completed: 0, failed: 0, inProgress: 0, inQueue: 0, retried: 0 }
    assert.deepEqual(await healthOf(server, endpoint), { jobs: noJobs, workers: none })
    const running = await submit(server, endpoint, { sleepMs: 4_000 })
    await whenStatus(server, endpoint, running, ['IN_PROGRESS'])
    await submit(server, endpoint, {})
    assert.deepEqual(await healthOf(server, endpoint), {
      jobs: { ...noJobs, inProgress: 1, inQueue: 1 },
      workers: { ...none, ready: 1, running: 1 },
    })
    await until('both jobs to be done', async () => (await healthOf(server, endpoint)).jobs.completed === 2)
    assert.deepEqual((await healthOf(server, endpoint)).workers, { ...none, idle: 1, ready: 1 })
  })

  test('looking at the health of an endpoint starts no worker', async () => {
    const endpoint = await makeEndpoint(server, { folder })
    for (let count = 0; count < 5; count += 1) await healthOf(server, endpoint)
    assert.equal(server.events('worker.created').filter(({ endpointId }) => endpointId === endpoint).length, 0)
  })
})

describe('times', () => {
  test('?ttl= on status sets the expiry, after which the job is gone', async () => {
    const id = await submit(server, paused, {})
    const answer = await ask(server, `/v2/${paused}/status/${id}?ttl=1000`)
    assert.deepEqual([answer.status, answer.json.status], [200, 'IN_QUEUE'])
    await until(
      'the job to be gone',
      async () => (await ask(server, `/v2/${paused}/status/${id}`)).status === 404,
      10_000,
    )
    assert.equal((await ask(server, `/v2/${paused}/cancel/${id}`, { method: 'POST' })).status, 404)
  })

  test('a caller that waits for a job past its ttl is answered TIMED_OUT', async () => {
    const known = new Set(jobsOf(paused))
    const waiting = ask(server, `/v2/${paused}/runsync?wait=20000`, { body: { input: {} } })
    const id = await until('the job', () => jobsOf(paused).find(job => !known.has(job)))
    await ask(server, `/v2/${paused}/status/${id}?ttl=1500`)
    const answer = await waiting
    assert.deepEqual([answer.status, answer.json.id, answer.json.status], [200, id, 'TIMED_OUT'])
    assert.equal((await ask(server, `/v2/${paused}/status/${id}`)).status, 404)
  })

  test('policy.ttl counts from the submission', async () => {
    const id = await submit(server, paused, {}, { policy: { ttl: 10_000 } })
    assert.equal((await statusOf(server, paused, id)).status, 'IN_QUEUE')
    await until(
      'the job to be gone',
      async () => (await ask(server, `/v2/${paused}/status/${id}`)).status === 404,
      20_000,
      250,
    )
  })

  test('policy.executionTimeout ends a job as TIMED_OUT with the limit in its error', async () => {
    const id = await submit(server, live, { sleepMs: 60_000 }, { policy: { executionTimeout: 5_000 } })
    const done = await whenFinal(server, live, id)
    assert.equal(done.status, 'TIMED_OUT')
    assert.match(done.error!, /execution timeout of 5000 ms/)
    assert.ok(done.executionTime! >= 5_000 && done.executionTime! < patient(15_000))
  })
})

describe('authentication', () => {
  test('the key is taken with and without the word Bearer', async () => {
    for (const authorization of [server.apiKey, `Bearer ${server.apiKey}`, `bearer ${server.apiKey}`]) {
      assert.equal((await ask(server, `/v2/${paused}/health`, { headers: { authorization } })).status, 200)
    }
  })

  test('a bad key and a missing one are 401 with a message', async () => {
    for (const authorization of ['Bearer rpa_wrong', 'rpa_wrong', null]) {
      for (const path of [`${paused}/run`, `${paused}/runsync`, `${paused}/status/x`, `${paused}/cancel/x`]) {
        const answer = await ask(server, `/v2/${path}`, { method: 'POST', headers: { authorization } })
        assert.equal(answer.status, 401, path)
        assert.match(answer.json.error, /API key/)
      }
    }
  })
})

describe('what is refused', () => {
  const run = async (body: unknown, path = 'run') => ask(server, `/v2/${paused}/${path}`, { method: 'POST', body })

  const bodies: [what: string, body: unknown, error: RegExp][] = [
    ['a body that is not JSON', '{"input": {', /^the body is not JSON: /],
    ['an empty body', '', /^the body is not JSON: /],
    ['an array', [], /^the body must be a JSON object with an "input" object$/],
    ['a string', '"text"', /^the body must be a JSON object with an "input" object$/],
    ['a body without input', {}, /^"input" is missing; it must be a JSON object$/],
    ['a null input', { input: null }, /^"input" must be a JSON object, not null$/],
    ['an array as input', { input: [1] }, /^"input" must be a JSON object, not an array$/],
    ['a string as input', { input: 'text' }, /^"input" must be a JSON object, not a string$/],
    ['a webhook that is no URL', { input: {}, webhook: 'nowhere' }, /^"webhook" must be an http or https URL$/],
    ['a webhook of another scheme', { input: {}, webhook: 'ftp://a/b' }, /^"webhook" must be an http or https URL$/],
    ['a policy that is no object', { input: {}, policy: 5 }, /^"policy" must be an object$/],
    ['an s3Config that is no object', { input: {}, s3Config: 'x' }, /^"s3Config" must be an object$/],
  ]
  for (const [what, body, error] of bodies) {
    test(`run and runsync refuse ${what} with 400`, async () => {
      for (const path of ['run', 'runsync']) {
        const answer = await run(body, path)
        assert.equal(answer.status, 400)
        assert.deepEqual(Object.keys(answer.json), ['error'])
        assert.match(answer.json.error, error)
      }
    })
  }

  test('everything that is wrong is reported at once', async () => {
    const policy = { executionTimeout: 4_999, ttl: 9_999, lowPriority: 'yes' }
    const answer = await run({ input: 1, webhook: 'x', policy, s3Config: [] }, 'runsync?wait=999')
    assert.equal(answer.status, 400)
    assert.deepEqual(answer.json.error.split('; '), [
      '"wait" must be an integer from 1000 to 300000 milliseconds',
      '"input" must be a JSON object, not a number',
      '"webhook" must be an http or https URL',
      '"s3Config" must be an object',
      '"policy.executionTimeout" must be an integer from 5000 to 604800000 milliseconds',
      '"policy.ttl" must be an integer from 10000 to 604800000 milliseconds',
      '"policy.lowPriority" must be true or false',
    ])
  })

  test('the bounds themselves are allowed', async () => {
    for (const policy of [
      { executionTimeout: 5_000, ttl: 10_000 },
      { executionTimeout: 604_800_000, ttl: 604_800_000, lowPriority: true },
    ]) {
      assert.equal((await run({ input: {}, policy })).status, 200)
    }
    for (const more of [
      { unknown: 1, webhookV2: 'x' },
      { webhook: '', policy: null, s3Config: null, webhookV2: null },
    ]) {
      assert.equal((await run({ input: {}, ...more })).status, 200)
    }
  })

  for (const wait of ['999', '300001', '-1', '1.5', 'soon', '']) {
    test(`runsync refuses wait=${wait}`, async () => {
      const answer = await run({ input: {} }, `runsync?wait=${wait}`)
      assert.deepEqual(
        [answer.status, answer.json],
        [400, { error: '"wait" must be an integer from 1000 to 300000 milliseconds' }],
      )
    })
  }

  for (const ttl of ['999', '604800001', 'x', '']) {
    test(`status refuses ttl=${ttl}`, async () => {
      const id = await submit(server, paused, {})
      const answer = await ask(server, `/v2/${paused}/status/${id}?ttl=${ttl}`)
      assert.deepEqual(
        [answer.status, answer.json],
        [400, { error: '"ttl" must be an integer from 1000 to 604800000 milliseconds' }],
      )
    })
  }

  test('an endpoint that does not exist, or cannot, is 404', async () => {
    for (const id of ['nosuch', 'No-Such', 'x'.repeat(64)]) {
      const answer = await ask(server, `/v2/${id}/run`, { body: { input: {} } })
      assert.deepEqual([answer.status, answer.json], [404, { error: `endpoint ${id} not found` }])
    }
  })

  test('a word that belongs to the management API is no endpoint id', async () => {
    for (const word of ['catalog', 'clusters', 'docs', 'openapi.json']) {
      const answer = await ask(server, `/v2/${word}/run`, { body: { input: {} } })
      assert.deepEqual([answer.status, answer.headers.get('content-type')], [404, 'application/problem+json'], word)
    }
    const ofApps = await ask(server, '/v2/flash/run', { body: { input: {} } })
    assert.equal(ofApps.status, 400)
    assert.match(ofApps.text, /X-Flash-App/i)
  })

  test('an operation that does not exist is 404, in JSON', async () => {
    for (const path of [`/v2/${paused}/fly`, `/v2/${paused}`, '/v2', '/nowhere', `/v2/${paused}/status`]) {
      const answer = await ask(server, path)
      assert.equal(answer.status, 404, path)
      assert.equal(typeof answer.json.error, 'string')
    }
  })

  const wrongMethods: [method: string, path: string, allow: string][] = [
    ['GET', 'run', 'POST'],
    ['PUT', 'runsync', 'POST'],
    ['DELETE', 'status/x', 'GET, POST'],
    ['GET', 'cancel/x', 'POST'],
    ['DELETE', 'health', 'GET, POST'],
  ]
  for (const [method, path, allow] of wrongMethods) {
    test(`${method} ${path} is 405 and says which methods it takes`, async () => {
      const answer = await ask(server, `/v2/${paused}/${path}`, { method })
      assert.deepEqual([answer.status, answer.headers.get('allow')], [405, allow])
      assert.match(answer.json.error, new RegExp(`not ${method}$`))
    })
  }
})

describe('sizes', () => {
  const LIMIT = 10_485_760
  const bodyOf = (bytes: number) => `{"input":{"a":"${'x'.repeat(bytes - 18)}"}}`

  test('a body of exactly 10 MB is accepted by run, one byte more is 413', async () => {
    assert.equal((await ask(server, `/v2/${paused}/run`, { body: bodyOf(LIMIT) })).status, 200)
    const answer = await ask(server, `/v2/${paused}/run`, { body: bodyOf(LIMIT + 1) })
    assert.equal(answer.status, 413)
    assert.deepEqual(answer.json, {
      error: `the request body is too large: ${LIMIT + 1} bytes, the limit is ${LIMIT} bytes`,
    })
  })

  test('runsync takes 20 MB', async () => {
    const path = `/v2/${paused}/runsync?wait=1000`
    assert.equal((await ask(server, path, { body: bodyOf(2 * LIMIT) })).status, 200)
    assert.equal((await ask(server, path, { body: bodyOf(2 * LIMIT + 1) })).status, 413)
  })

  test('a body without a length is refused while it is read, long before its end', async () => {
    const { answer, sent } = await sendForever(`/v2/${paused}/run`, 'Transfer-Encoding: chunked')
    assert.match(answer, /^HTTP\/1\.1 413 /)
    assert.match(answer, /the request body is too large: more than 10485760 bytes/)
    assert.ok(sent > LIMIT && sent < 4 * LIMIT, `${sent} bytes were taken`)
  })

  test('a body with an announced length over the limit is refused before it is sent', async () => {
    const { answer, sent } = await sendForever(`/v2/${paused}/run`, 'Content-Length: 900000000', 0)
    assert.match(answer, /^HTTP\/1\.1 413 /)
    assert.equal(sent, 0)
  })

  /** Sends chunks until there is an answer. */
  function sendForever(path: string, header: string, most = Number.POSITIVE_INFINITY) {
    return new Promise<{ answer: string; sent: number }>((resolve, reject) => {
      const socket = connect(server.port, '127.0.0.1')
      const piece = `10000\r\n${'x'.repeat(65_536)}\r\n`
      let sent = 0
      let answer = ''
      const send = () => {
        while (answer === '' && sent < most) {
          sent += 65_536
          if (!socket.write(piece)) return
        }
      }
      const patience = setTimeout(() => socket.destroy(new Error('no answer in time')), patient(10_000))
      socket.on('connect', () => {
        const key = `Authorization: ${server.apiKey}`
        socket.write(
          `POST ${path} HTTP/1.1\r\nHost: localhost\r\n${key}\r\nContent-Type: application/json\r\n${header}\r\n\r\n`,
        )
        send()
      })
      socket.on('drain', send)
      socket.on('data', data => {
        answer += data
        if (answer.includes('limit is')) socket.destroy()
      })
      socket.on('error', error => answer === '' && reject(error))
      socket.on('close', () => {
        clearTimeout(patience)
        resolve({ answer, sent })
      })
    })
  }
})

describe('load-balancing endpoints', () => {
  test('queue operations are 400 with the words that clients know', async () => {
    for (const path of ['run', 'runsync', 'status/x', 'cancel/x']) {
      const answer = await ask(server, `/v2/${balancer}/${path}`, { body: { input: {} } })
      assert.equal(answer.status, 400)
      assert.match(answer.json.error, /^not allowed for LB API\b/)
    }
  })

  test('health works', async () => {
    assert.equal((await ask(server, `/v2/${balancer}/health`)).status, 200)
  })
})
