/** The worker protocol over plain HTTP, spoken by the test itself with the token of a worker that only idles. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import { before, describe, test } from 'node:test'
import { patient } from '../../support/patience.ts'
import { ask, changeEndpoint, statusOf, submit, whenFinal, whenStatus } from '../support/client.ts'
import { leaderOf, relayPid } from '../support/processes.ts'
import { type RawWorker, type SilentEndpoint, silentEndpoint } from '../support/raw-worker.ts'
import { type Server, startServer } from '../support/server.ts'
import { sleep, timed, until } from '../support/until.ts'

const MB = 1_048_576

let server: Server
let endpoint: string
let worker: RawWorker
let workers: SilentEndpoint

before(async () => {
  server = await startServer()
  workers = await silentEndpoint(server)
  endpoint = workers.id
  worker = await workers.worker()
})

/** Submits a job and takes it. */
async function taken(input: object = {}): Promise<string> {
  const id = await submit(server, endpoint, input)
  assert.equal((await worker.take()).id, id)
  return id
}

/** Submits a job, takes it, and posts this body; gives what the client sees then. */
async function finishedWith(body: unknown) {
  const id = await taken()
  const answer = await worker.done(id, body)
  assert.deepEqual([answer.status, answer.text], [200, '{}'])
  return whenFinal(server, endpoint, id, 2_000)
}

describe('taking jobs', () => {
  test('the worker gets addresses that already have a query', () => {
    const base = `${worker.url}/v2/${endpoint}`
    assert.equal(worker.env.RUNPOD_WEBHOOK_GET_JOB, `${base}/job-take/$ID?gpu=CPU`)
    assert.equal(worker.env.RUNPOD_WEBHOOK_POST_OUTPUT, `${base}/job-done/$RUNPOD_POD_ID/$ID?gpu=CPU`)
    assert.equal(worker.env.RUNPOD_WEBHOOK_POST_STREAM, `${base}/job-stream/$RUNPOD_POD_ID/$ID?gpu=CPU`)
    assert.equal(worker.env.RUNPOD_WEBHOOK_PING, `${base}/ping/$RUNPOD_POD_ID?gpu=CPU`)
    assert.equal(Number(worker.env.RUNPOD_PING_INTERVAL) % 1000, 0)
  })

  test('a take gets one job with its id and its input as it was sent', async () => {
    const text = '{"a": 12345678901234567890, "wörld": [1.0, null]}'
    const run = await ask(server, `/v2/${endpoint}/run`, { body: `{"input": ${text}, "policy": {"ttl": 60000}}` })
    const answer = await worker.takeAnswer()
    assert.match(answer.headers.get('content-type') ?? '', /^application\/json/)
    assert.equal(answer.text, `{"id":"${run.json.id}","input":${text},"policy":{"ttl": 60000}}`)
    await worker.done(run.json.id, {})
  })

  test('a result is taken with repeated slashes in its path, also where the name of the worker is missing', async () => {
    for (const path of ['job-done//JOB', 'job-done//w1//JOB']) {
      const id = await taken()
      const answer = await worker.send(`//v2//${endpoint}/${path.replace('JOB', id)}?isStream=false`, {
        method: 'POST',
        body: { output: path },
      })
      assert.deepEqual([answer.status, answer.text], [200, '{}'])
      assert.equal((await whenFinal(server, endpoint, id, 2_000)).output, path)
    }
  })

  test('a worker that sends its result only when its next take has ended gets an end of that take after a second', async () => {
    const id = await taken()
    const { value, ms } = await timed(() => worker.takeAnswer(true))
    assert.equal(value.status, 204)
    assert.ok(ms < patient(10_000), `the take was held for ${ms} ms`)
    await worker.done(id, { output: 'late' })
    assert.equal((await whenFinal(server, endpoint, id, 2_000)).output, 'late')
  })

  test('a held take is answered within 150 ms of a job coming', async () => {
    const latencies: number[] = []
    for (let count = 0; count < 10; count += 1) {
      const take = worker.take()
      await sleep(30)
      const id = await submit(server, endpoint, {})
      const { value, ms } = await timed(() => take)
      assert.equal(value.id, id)
      latencies.push(ms)
      await worker.done(id, {})
    }
    // One that looked now and then would be late most of the time; any may be late on a machine that is busy.
    const median = latencies.toSorted((a, b) => a - b)[5]!
    assert.ok(median < patient(150), `latencies in ms: ${latencies.map(Math.round)}`)
  })

  test('a batch take gets an array of at most the size that it asks for, first in, first out', async () => {
    const ids = [
      await submit(server, endpoint, {}),
      await submit(server, endpoint, {}),
      await submit(server, endpoint, {}),
    ]
    const first = await worker.takeBatch(2)
    assert.deepEqual(
      first.map(({ id }) => id),
      ids.slice(0, 2),
    )
    const second = await worker.takeBatch(2, true)
    assert.deepEqual(
      second.map(({ id }) => id),
      ids.slice(2),
    )
    for (const id of ids) await worker.done(id, {})
  })

  test('the literal placeholder with parameters behind a bare & is understood', async () => {
    const id = await submit(server, endpoint, {})
    const answer = await worker.send(`/v2/${endpoint}/job-take/$RUNPOD_POD_ID&job_in_progress=0`)
    assert.deepEqual([answer.status, answer.json.id], [200, id])
    const done = await worker.send(`/v2/${endpoint}/job-done/$RUNPOD_POD_ID/${id}&isStream=false`, {
      method: 'POST',
      body: '{"output": 1}',
    })
    assert.equal(done.status, 200)
    assert.equal((await whenFinal(server, endpoint, id)).workerId, worker.id)
  })

  test('a result without the job in its path is known by X-Request-ID', async () => {
    // The SDK takes a UUID where its environment has no id.
    for (const name of [worker.id, randomUUID()]) {
      const id = await taken()
      const headers = { 'x-request-id': id }
      await worker.send(`/v2/${endpoint}/job-done/${name}?gpu=CPU`, { method: 'POST', body: '{"output": 2}', headers })
      assert.equal((await whenFinal(server, endpoint, id)).output, 2)
    }
  })

  test('an unknown token, and that of a worker of another endpoint, are 401 on each call', async () => {
    const other = await silentEndpoint(server)
    const { token } = await other.worker()
    for (const call of ['job-take', 'job-take-batch', 'job-stop', 'ping', 'job-done', 'job-stream']) {
      const body = /done|stream/.test(call) ? { body: '{}' } : {}
      for (const authorization of ['rpw_wrong', server.apiKey, token, null]) {
        const answer = await worker.send(worker.path(call, 'x'), { ...body, headers: { authorization } })
        assert.equal(answer.status, 401, call)
      }
    }
  })

  test('the token of a worker opens nothing else', async () => {
    const asWorker = { url: server.url, apiKey: '' }
    const headers = { authorization: worker.token }
    for (const path of [`/v2/${endpoint}/health`, `/v2/serverless/${endpoint}`, '/ops/why']) {
      assert.equal((await ask(asWorker, path, { headers })).status, 401, path)
      assert.equal((await worker.send(path)).status, 404, `${path} at the address of workers`)
    }
    const query = { body: { query: '{ myself { id } }' }, headers }
    assert.equal((await ask(asWorker, '/graphql', query)).status, 401)
    assert.equal((await worker.send('/graphql', query)).status, 404)
  })
})

describe('results', () => {
  test('an exception arrives as the string that the worker made of it', async () => {
    const six = {
      error_type: "<class 'ValueError'>",
      error_message: 'x',
      error_traceback: 'Traceback: "ö"',
      hostname: 'h',
      worker_id: worker.id,
      runpod_version: '1.12.0',
    }
    const done = await finishedWith({ error: JSON.stringify(six) })
    assert.equal(done.status, 'FAILED')
    assert.deepEqual(JSON.parse(done.error!), six)
    assert.equal('output' in done, false)
  })

  const failures: [what: string, body: unknown, error: string, output?: unknown][] = [
    ['a plain error text', { error: 'handler: x \ntraceback: y' }, 'handler: x \ntraceback: y'],
    ['a text with what is left of the output', { error: 'no', output: { a: 1 } }, 'no', { a: 1 }],
    [
      'an error that is an object',
      '{"error": {"code": 7,"big":12345678901234567890}}',
      '{"code": 7,"big":12345678901234567890}',
    ],
    ['an error that is a number', { error: 5 }, '5'],
  ]
  for (const [what, body, error, output] of failures) {
    test(`${what} makes the job FAILED with it as a string`, async () => {
      const done = await finishedWith(body)
      assert.deepEqual([done.status, done.error, done.output], ['FAILED', error, output])
    })
  }

  const successes: [body: unknown, output: unknown][] = [
    ['{}', undefined],
    [{ output: null }, null],
    [{ output: { a: 'wörld 🌍' } }, { a: 'wörld 🌍' }],
    [{ output: [1, 'two'] }, [1, 'two']],
    [{ output: false, error: '' }, false],
    [{ output: 1, error: null }, 1],
    [{ output: 1, error: {} }, 1],
  ]
  for (const [body, output] of successes) {
    test(`${JSON.stringify(body)} makes the job COMPLETED`, async () => {
      const done = await finishedWith(body)
      assert.deepEqual([done.status, done.output, done.error], ['COMPLETED', output, undefined])
      assert.equal('output' in done, output !== undefined)
    })
  }

  test('NaN becomes null with a warning, and large integers keep their digits', async () => {
    const id = await taken()
    await worker.done(id, '{"output": {"a": NaN, "b": [-Infinity], "c": "NaN", "big": 123456789012345678901234567890}}')
    await whenFinal(server, endpoint, id)
    const { text, json } = await ask(server, `/v2/${endpoint}/status/${id}`)
    assert.equal(json.status, 'COMPLETED')
    assert.deepEqual([json.output.a, json.output.b, json.output.c], [null, [null], 'NaN'])
    assert.match(text, /"big": 123456789012345678901234567890[},]/)
    assert.match(json.warning, /2 value\(s\) that JSON cannot hold/)
  })

  for (const body of ['not json', '', '{"output": ', '<html></html>']) {
    test(`the body ${JSON.stringify(body)} is answered 200 and fails the job with the reason`, async () => {
      const done = await finishedWith(body)
      assert.equal(done.status, 'FAILED')
      assert.match(done.error!, /^the worker sent a result that is not JSON: /)
    })
  }

  test('a result of 20 MB is kept, a larger one fails the job with both sizes', async () => {
    const kept = await finishedWith(`{"output":"${'x'.repeat(20 * MB - 13)}"}`)
    assert.deepEqual([kept.status, kept.output.length], ['COMPLETED', 20 * MB - 13])
    const large = await finishedWith(`{"output":"${'x'.repeat(21 * MB - 13)}"}`)
    assert.deepEqual(
      [large.status, large.error],
      ['FAILED', `the result is too large: it has ${21 * MB} bytes, the limit is ${20 * MB} bytes`],
    )
  })

  test('a result of 101 MB is answered 200 as well, and its connection stays usable', async () => {
    const done = await finishedWith(`{"output":"${'x'.repeat(101 * MB)}"}`)
    assert.equal(done.status, 'FAILED')
    assert.match(done.error!, /^the result is too large: it has more than \d+ bytes, the limit is 20971520 bytes$/)
    const deadline = performance.now() + 1_000
    while (performance.now() < deadline) assert.equal((await worker.ping()).status, 200)
  })

  test('progress shows as the output while the job runs, and not after it', async () => {
    const id = await taken()
    await worker.done(id, { status: 'IN_PROGRESS', output: { step: 1 } })
    await worker.done(id, { status: 'IN_PROGRESS', output: 'half' })
    assert.deepEqual(pick(await statusOf(server, endpoint, id)), ['IN_PROGRESS', 'half', worker.id])
    await worker.done(id, { output: 'whole' })
    const late = await worker.done(id, { status: 'IN_PROGRESS', output: 'late' })
    assert.equal(late.status, 200)
    assert.deepEqual(pick(await statusOf(server, endpoint, id)), ['COMPLETED', 'whole', worker.id])
  })

  test('the first result stays, whatever comes later', async () => {
    const id = await taken()
    for (const body of [{ output: 'first' }, { output: 'second' }, { error: 'third' }, 'rubbish']) {
      assert.equal((await worker.done(id, body)).status, 200)
    }
    assert.deepEqual(pick(await statusOf(server, endpoint, id)), ['COMPLETED', 'first', worker.id])
  })

  test('a result for a job that never was is answered 200', async () => {
    assert.equal((await worker.done('never-was', { output: 1 })).status, 200)
    assert.equal((await worker.chunk('never-was', { output: 1 })).status, 200)
  })

  test('chunks are answered 200 while the job runs and after it, and those of the running job are kept in order', async () => {
    const id = await taken()
    for (const chunk of [{ output: 'wörld' }, { output: { b: 1 } }, '{"output": NaN}', 'rubbish']) {
      assert.equal((await worker.chunk(id, chunk)).status, 200)
    }
    await worker.done(id, { output: [] })
    assert.equal((await worker.chunk(id, { output: 'late' })).status, 200)
    assert.deepEqual(pick(await statusOf(server, endpoint, id)), ['COMPLETED', [], worker.id])
    const database = new DatabaseSync(`${server.dataDir}/runyard.sqlite`, { readOnly: true })
    const rows = database.prepare('SELECT chunk FROM chunks WHERE job_id = ? ORDER BY seq').all(id)
    database.close()
    assert.deepEqual(
      rows.map(row => JSON.parse(String(row.chunk))),
      [{ output: 'wörld' }, { output: { b: 1 } }, { output: null }, { output: 'rubbish' }],
    )
  })

  function pick({ status, output, workerId }: Awaited<ReturnType<typeof statusOf>>) {
    return [status, output, workerId]
  }
})

for (const to of ['the relay', 'the server'] as const) {
  describe(`a connection to ${to} that breaks`, () => {
    test('a job is not handed to a poll whose worker has gone away', async () => {
      const poll = await openPoll()
      poll.destroy()
      await sleep(50)
      const id = await submit(server, endpoint, {})
      assert.equal((await worker.take()).id, id)
      assert.equal((await statusOf(server, endpoint, id)).retries, undefined)
      await worker.done(id, {})
    })

    test('a job whose answer could not be written whole goes back to the head of the queue, uncounted', async () => {
      const poll = await openPoll()
      poll.pause()
      const large = await submit(server, endpoint, { text: 'x'.repeat(10 * MB - 100) })
      const next = await submit(server, endpoint, {})
      await whenStatus(server, endpoint, large, ['IN_PROGRESS'])
      poll.destroy()
      await whenStatus(server, endpoint, large, ['IN_QUEUE'], 3_000)
      const moves = () => server.events('job.moved').filter(({ jobId }) => jobId === large)
      await until('both moves in the log', () => moves().length >= 2)
      assert.deepEqual(
        moves().map(({ transition }) => transition),
        ['claim', 'release'],
      )
      assert.equal((await worker.take()).id, large)
      await worker.done(large, { output: 1 })
      const { status, retries } = await whenFinal(server, endpoint, large)
      assert.deepEqual([status, retries], ['COMPLETED', undefined])
      assert.equal((await worker.take()).id, next)
      await worker.done(next, {})
    })

    test('a job that comes in the moment in which its poll breaks goes to the next one, uncounted', async () => {
      for (let round = 0; round < 20; round += 1) {
        const poll = await openPoll()
        if (round % 2 === 0) poll.destroy()
        else poll.resetAndDestroy()
        const id = await submit(server, endpoint, { round })
        await sleep(50)
        assert.equal((await worker.take()).id, id, `round ${round}`)
        await worker.done(id, {})
        assert.equal((await statusOf(server, endpoint, id)).retries, undefined)
      }
    })

    test('a job is not lost at whatever moment its poll breaks, also when it was answered already', async () => {
      for (let round = 0; round < 20; round += 1) {
        const poll = await openPoll()
        const submission = submit(server, endpoint, { round })
        setTimeout(() => (round % 2 === 0 ? poll.destroy() : poll.resetAndDestroy()), round / 2)
        const id = await submission
        await sleep(20)
        const answer = await worker.takeAnswer()
        // A worker that received the job and does not hold it is replaced.
        if (answer.status === 204) worker = await workers.worker()
        const taken = answer.status === 204 ? await worker.take() : answer.json
        assert.equal(taken.id, id, `round ${round}`)
        await worker.done(id, {})
      }
    })

    /** A take over a socket of its own that the server has begun to hold. */
    function openPoll(): Promise<Socket> {
      const socket = connect(to === 'the relay' ? Number(new URL(worker.url).port) : server.port, '127.0.0.1')
      const path = `${worker.path('job-take')}&job_in_progress=0`
      socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${worker.token}\r\n\r\n`)
      socket.on('error', () => {})
      return sleep(40, socket)
    }
  })
}

describe('a relay that is held up', () => {
  test('a job for a poll that ended in the meantime goes to the next one, uncounted', async () => {
    const relay = relayPid(server.dataDir)!
    for (let round = 0; round < 3; round += 1) {
      const poll = connect(Number(new URL(worker.url).port), new URL(worker.url).hostname)
      poll.write(
        `GET ${worker.path('job-take')}&job_in_progress=0 HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${worker.token}\r\n\r\n`,
      )
      // Leaves a connection behind that needs not be made, too.
      await worker.ping()
      await sleep(200)
      process.kill(relay, 'SIGSTOP')
      poll.destroy()
      const id = await submit(server, endpoint, { round })
      await whenStatus(server, endpoint, id, ['IN_PROGRESS'])
      const take = worker.take()
      await sleep(100)
      process.kill(relay, 'SIGCONT')
      assert.equal((await take).id, id)
      assert.equal((await statusOf(server, endpoint, id)).retries, undefined)
      await worker.done(id, {})
    }
  })
})

describe('stopping jobs', () => {
  test('a cancelled job is reported to its worker on the stop poll', async () => {
    const stops = worker.stops()
    const id = await taken()
    await ask(server, `/v2/${endpoint}/cancel/${id}`, { method: 'POST' })
    const { value, ms } = await timed(() => stops)
    assert.deepEqual(value, [id])
    assert.ok(ms < patient(1_000), `it took ${ms} ms`)
    await worker.ping([])
    assert.equal((await worker.done(id, { output: 'late' })).status, 200)
    assert.equal((await statusOf(server, endpoint, id)).status, 'CANCELLED')
  })

  test('a job past its execution timeout is reported too, and its late result changes nothing', async () => {
    const stops = worker.stops()
    const id = await submit(server, endpoint, {}, { policy: { executionTimeout: 5_000 } })
    await worker.take()
    assert.deepEqual(await stops, [id])
    await worker.done(id, { output: 'late' })
    assert.equal((await statusOf(server, endpoint, id)).status, 'TIMED_OUT')
  })
})

describe('workers that are lost', () => {
  test('the result of the last holder counts until another worker has claimed the job, and not after', async () => {
    const silent = await silentEndpoint(server, 1)
    const first = await silent.worker()
    const early = await submit(server, silent.id, {})
    await first.take()
    await kill(first)
    await whenStatus(server, silent.id, early, ['IN_QUEUE'])
    assert.equal((await first.done(early, { output: 'from the first' })).status, 200)
    assert.equal((await statusOf(server, silent.id, early)).output, 'from the first')

    const second = await silent.worker()
    const late = await submit(server, silent.id, {})
    await second.take()
    await kill(second)
    await whenStatus(server, silent.id, late, ['IN_QUEUE'])
    const third = await silent.worker()
    assert.equal((await third.take()).id, late)
    assert.equal((await second.done(late, { output: 'from the second' })).status, 401)
    assert.equal((await statusOf(server, silent.id, late)).status, 'IN_PROGRESS')
    assert.equal((await third.done(late, { output: 'from the third' })).status, 200)
    const done = await whenFinal(server, silent.id, late)
    assert.deepEqual([done.output, done.workerId, done.retries], ['from the third', third.id, 1])
    await changeEndpoint(server, silent.id, { workersMin: 0, workersMax: 0 })
  })

  test('a result from a worker that never had the job is answered 200 and ignored', async () => {
    const silent = await silentEndpoint(server, 2)
    const [holder, other] = [await silent.worker(), await silent.worker()]
    const id = await submit(server, silent.id, {})
    await holder.take()
    assert.equal((await other.done(id, { output: 'foreign' })).status, 200)
    assert.equal((await other.chunk(id, { output: 'foreign' })).status, 200)
    assert.equal((await statusOf(server, silent.id, id)).status, 'IN_PROGRESS')
    await holder.done(id, { output: 'own' })
    assert.equal((await statusOf(server, silent.id, id)).output, 'own')
    await changeEndpoint(server, silent.id, { workersMin: 0, workersMax: 0 })
  })

  test('a job that loses its worker three times is FAILED with the reason', async () => {
    const silent = await silentEndpoint(server, 1)
    const id = await submit(server, silent.id, {})
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      const holder = await silent.worker()
      assert.equal((await holder.take()).id, id)
      await kill(holder)
      if (attempt < 3) await whenStatus(server, silent.id, id, ['IN_QUEUE'])
    }
    const done = await whenFinal(server, silent.id, id)
    assert.equal(done.status, 'FAILED')
    assert.match(done.error!, /lost 3 times .* killed by SIGKILL/)
    await changeEndpoint(server, silent.id, { workersMin: 0, workersMax: 0 })
  })

  test('a worker that asks for other work without a result has lost its job and is replaced, unless its SDK is known to say so too early', async () => {
    const silent = await silentEndpoint(server, 1)
    const forgetful = await silent.worker()
    const id = await submit(server, silent.id, {})
    await forgetful.take()
    const polls = new AbortController()
    const early = { 'user-agent': 'RunPod-Python-SDK/1.10.0 (test)' }
    void forgetful.send(`${forgetful.path('job-take')}&job_in_progress=1`, { signal: polls.signal }).catch(() => {})
    void forgetful
      .send(`${forgetful.path('job-take')}&job_in_progress=0`, { signal: polls.signal, headers: early })
      .catch(() => {})
    await sleep(100)
    assert.equal((await statusOf(server, silent.id, id)).status, 'IN_PROGRESS')
    polls.abort()
    await sleep(50)
    assert.equal((await forgetful.takeAnswer()).status, 204, 'it gets nothing more')
    const next = await silent.worker()
    assert.equal((await next.take()).id, id)
    const { status, retries, workerId } = await statusOf(server, silent.id, id)
    assert.deepEqual([status, retries, workerId], ['IN_PROGRESS', 1, next.id])
    await next.done(id, {})
    await changeEndpoint(server, silent.id, { workersMin: 0, workersMax: 0 })
  })

  test('a worker that has been ended is slowed down with 429 when it asks for jobs, and has no other right', async () => {
    const silent = await silentEndpoint(server, 1)
    const gone = await silent.worker()
    await kill(gone)
    await until('its end to be seen', () => server.events('worker.exited').some(({ workerId }) => workerId === gone.id))
    const answer = await gone.takeAnswer()
    assert.deepEqual([answer.status, answer.headers.get('retry-after')], [429, '5'])
    for (const call of ['job-stop', 'ping']) {
      const { token: authorization } = gone
      const path = `${server.url}/v2/${silent.id}/${call}/${gone.id}`
      assert.equal((await fetch(path, { headers: { authorization } })).status, 401, call)
    }
    await changeEndpoint(server, silent.id, { workersMin: 0, workersMax: 0 })
  })

  async function kill(lost: RawWorker): Promise<void> {
    process.kill(leaderOf(server.dataDir, lost.id).pid, 'SIGKILL')
  }
})
