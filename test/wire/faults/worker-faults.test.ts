/**
 * Official Python workers that fail, block, crash, cannot be reached or have nothing to do. The tests run beside each
 * other; most of it is waiting.
 */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { patient } from '../../support/patience.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, healthOf, makeEndpoint, runJob, statusOf, submit, whenFinal } from '../support/client.ts'
import { startProxy, type Treatment } from '../support/proxy.ts'
import { python, skip } from '../support/python.ts'
import { fixture, type Server, startServer } from '../support/server.ts'
import { sleep, until } from '../support/until.ts'

const START_MS = 60_000
const MB = 1_048_576

describe('official Python workers with something wrong', { skip, concurrency: 5 }, () => {
  let server: Server
  let notes: string

  before(async () => {
    notes = temporaryFolder()
    server = await startServer()
  })

  function pythonEndpoint(env: Record<string, string> = {}, settings: object = {}) {
    return makeEndpoint(server, {
      folder: fixture('python-worker'),
      args: `"${python}" handler.py`,
      env: { WIRE_FOLDER: notes, ...env },
      settings: { workersMax: 1, idleTimeout: 3600, ...settings },
    })
  }

  const begun = (id: string) => until('the handler to begin', () => existsSync(join(notes, `begun-${id}`)), START_MS)

  const movesOf = (id: string) =>
    server.events('job.moved').flatMap(({ jobId, transition }) => (jobId === id ? [transition] : []))

  // Long, so these begin first.
  test('a worker whose loop is stuck while it keeps pinging is ended after two minutes, with the reason', async () => {
    const endpoint = await pythonEndpoint({ WIRE_STUCK: '1' })
    const id = await submit(server, endpoint, {})
    const ended = await until(
      'the worker to end',
      () => server.events('worker.exited').find(event => event.endpointId === endpoint),
      180_000,
      500,
    )
    assert.match(String(ended.cause), /^was ended because it pinged for 115 s without asking for a job/)
    assert.equal((await statusOf(server, endpoint, id)).status, 'IN_QUEUE')
    assert.match((await ask(server, `/v2/${endpoint}/explain/${id}`)).json.action, /concurrency_modifier/)
    await ask(server, '/graphql', {
      body: { query: `mutation { saveEndpoint(input: {id: "${endpoint}", name: "stuck", workersMax: 0}) { id } }` },
    })
  })

  test('an idle worker asks at most three times a minute for jobs and three times for stops', async () => {
    const folder = temporaryFolder()
    const endpoint = await pythonEndpoint({ WIRE_COUNT: '1', WIRE_FOLDER: folder }, { workersMin: 1 })
    const read = () => JSON.parse(readFileSync(join(folder, 'counts.json'), 'utf8')) as Record<string, number>
    await until(
      'the first take',
      () => existsSync(join(folder, 'counts.json')) && (read()['job-take'] ?? 0) > 0,
      START_MS,
    )
    await sleep(3_000)
    const first = read()
    await sleep(62_000)
    const last = read()
    for (const call of ['job-take', 'job-stop']) {
      const count = last[call]! - first[call]!
      assert.ok(count >= 2 && count <= 3, `${call} was called ${count} times in 62 s`)
    }
    assert.equal((await runJob(server, endpoint, {}, START_MS)).status, 'COMPLETED')
  })

  test('a concurrency_modifier that returns nothing shows as a crash with its last lines', async () => {
    const endpoint = await pythonEndpoint({ WIRE_CAPACITY: 'none' })
    const id = await submit(server, endpoint, {})
    const why = await until(
      'the crash to be explained',
      async () => {
        const { json } = await ask(server, `/v2/${endpoint}/explain/${id}`)
        return json.cause === 'crash_loop' && json
      },
      START_MS,
    )
    assert.match(why.evidence.join('\n'), /TypeError/)
    await ask(server, '/graphql', {
      body: { query: `mutation { saveEndpoint(input: {id: "${endpoint}", name: "none", workersMax: 0}) { id } }` },
    })
  })

  test('a job that waits inside a blocked worker is not run twice, and further ones wait outside', async () => {
    const endpoint = await pythonEndpoint({ WIRE_CAPACITY: '4', WIRE_MODE: 'sync' })
    const first = await submit(server, endpoint, { sleep: 40 })
    await begun(first)
    const inside = await submit(server, endpoint, {})
    await until('the second job to be handed over', async () => (await statusOf(server, endpoint, inside)).workerId)
    await sleep(24_000)
    const outside = await submit(server, endpoint, {})
    await sleep(4_000)
    assert.equal((await statusOf(server, endpoint, outside)).status, 'IN_QUEUE')
    assert.equal((await statusOf(server, endpoint, inside)).status, 'IN_PROGRESS')
    for (const id of [first, inside, outside]) {
      const { status, retries } = await whenFinal(server, endpoint, id, START_MS)
      assert.deepEqual([status, retries], ['COMPLETED', undefined])
      assert.deepEqual(movesOf(id), ['claim', 'finish'])
    }
  })

  const unsent: [what: string, reason: RegExp][] = [
    ['bytes', /Object of type bytes is not JSON serializable$/],
    ['surrogate', /surrogates not allowed$/],
    ['generator', /Object of type generator is not JSON serializable$/],
  ]
  test('results that the SDK cannot send fail their jobs within 3 s with the true reason, and the worker continues', async () => {
    for (const env of [{}, { WIRE_CAPACITY: '3' }]) {
      const endpoint = await pythonEndpoint(env)
      const { workerId } = await runJob(server, endpoint, {}, START_MS)
      const busy = 'WIRE_CAPACITY' in env ? await submit(server, endpoint, { sleep: 8 }) : null
      if (busy !== null) await begun(busy)
      for (const [what, reason] of unsent) {
        const done = await runJob(server, endpoint, { return: what })
        assert.deepEqual([what, done.status, done.retries, done.workerId], [what, 'FAILED', undefined, workerId])
        assert.match(done.error!, /^the worker could not send its result: /)
        assert.match(done.error!, reason)
        assert.ok(done.executionTime! < patient(3_000), `${what}: ${done.executionTime} ms`)
      }
      if (busy !== null) assert.equal((await whenFinal(server, endpoint, busy)).status, 'COMPLETED')
      assert.equal((await runJob(server, endpoint, {})).workerId, workerId)
    }
  })

  test('a result that is answered 503 twice is stored once, also when it was stored the first time', async () => {
    const treatments: Treatment[] = [
      { status: 503, pass: true },
      { status: 503, pass: false },
    ]
    const left = [...treatments]
    const proxy = await startProxy(server.url, call => (call === 'job-done' ? (left.shift() ?? 'pass') : 'pass'))
    const endpoint = await pythonEndpoint({ WIRE_PROXY: proxy.url })
    for (const again of [treatments, treatments.toReversed()]) {
      left.splice(0, 2, ...again)
      const { id, status, output, retries } = await runJob(server, endpoint, { n: 1 }, START_MS)
      assert.deepEqual([status, output.input, retries], ['COMPLETED', { n: 1 }, undefined])
      await until('the third post', () => left.length === 0)
      await sleep(6_000)
      assert.deepEqual(movesOf(id), ['claim', 'finish'])
    }
    assert.equal(proxy.calls.filter(call => call === 'POST job-done').length, 6)
    assert.equal((await healthOf(server, endpoint)).jobs.completed, 2)
  })

  test('a result that is refused for good fails its job, and one without a response is tried three times', async () => {
    let broken = 0
    const proxy = await startProxy(server.url, call => {
      if (call !== 'job-done' || broken > 0) return 'pass'
      broken += 1
      return { status: 409, pass: false }
    })
    const refused = await startProxy(server.url, call => (call === 'job-done' ? { status: 401, pass: false } : 'pass'))
    const endpoint = await pythonEndpoint({ WIRE_PROXY: proxy.url })
    const lost = await runJob(server, endpoint, {}, START_MS)
    assert.equal(lost.status, 'FAILED')
    assert.match(lost.error!, /could not send its result: 409/)
    const never = await pythonEndpoint({ WIRE_PROXY: refused.url })
    const done = await runJob(server, never, {}, START_MS)
    assert.equal(done.status, 'FAILED')
    assert.match(done.error!, /lost 3 times .* could not send its result: 401/)
    assert.equal(movesOf(done.id).filter(move => move === 'requeue').length, 3)
  })

  test('a worker that crashes in its job gives it back, and the third crash fails it with the exit code', async () => {
    const endpoint = await pythonEndpoint()
    const done = await runJob(server, endpoint, { exit: 7 }, START_MS)
    assert.equal(done.status, 'FAILED')
    assert.match(done.error!, /lost 3 times .* it exited with code 7/)
    const after = await runJob(server, endpoint, {}, START_MS)
    assert.equal(after.status, 'COMPLETED')
  })

  test('a job that ends its worker takes no neighbour with it: it fails alone, with exit code, last lines and worker', async () => {
    const endpoint = await pythonEndpoint({ WIRE_CAPACITY: '4' })
    // The worker runs already, so that it takes all four at once or while the first ones sleep.
    await runJob(server, endpoint, {}, START_MS)
    const neighbours = await Promise.all([1, 2, 3].map(() => submit(server, endpoint, { sleep: 5 })))
    for (const id of neighbours) await begun(id)
    const poison = await submit(server, endpoint, { exit: 9, print: 'about to end' })
    const failed = await whenFinal(server, endpoint, poison, 120_000)
    assert.equal(failed.status, 'FAILED')
    assert.match(
      failed.error!,
      /lost 3 times .* it exited with code 9; this was worker \w+, and its last lines were:\n/,
    )
    assert.match(failed.error!, new RegExp(`this was worker ${failed.workerId}, [^]*about to end`))
    assert.ok(!failed.error!.includes('rpw_'))
    for (const id of neighbours) assert.equal((await whenFinal(server, endpoint, id, 120_000)).status, 'COMPLETED')
  })

  test('a failed fitness check shows as unhealthy, with its name and reason, and starts back off', async () => {
    const endpoint = await pythonEndpoint({ WIRE_UNFIT: '1' })
    await submit(server, endpoint, {})
    const ended = await until(
      'two workers to end',
      () => {
        const exits = server.events('worker.exited').filter(event => event.endpointId === endpoint)
        return exits.length >= 2 && exits[0]
      },
      START_MS,
    )
    assert.equal(
      ended.cause,
      'exited with code 1 because its check device_check failed: RuntimeError: there is no such device',
    )
    // Between the end of a worker and the start of the next one, of which there are more and longer ones.
    const { cause } = await until(
      'the reason with the pause',
      async () => {
        const { json } = await ask(server, `/v2/${endpoint}/explain`)
        const { unhealthy } = (await healthOf(server, endpoint)).workers
        const told = /device_check failed: RuntimeError: there is no such device; the next one starts in \d+ s/
        return told.test(json.summary) && unhealthy === 1 && json
      },
      START_MS,
    )
    assert.equal(cause, 'fitness_failed')
    await ask(server, '/graphql', {
      body: { query: `mutation { saveEndpoint(input: {id: "${endpoint}", name: "unfit", workersMax: 0}) { id } }` },
    })
  })

  test('an output of 20 MB is kept, and one of 100 MB fails its job with both sizes', async () => {
    const endpoint = await pythonEndpoint()
    const kept = await runJob(server, endpoint, { megabytes: 20 }, START_MS)
    assert.deepEqual([kept.status, kept.output.length], ['COMPLETED', 20 * MB - 14])
    const large = await runJob(server, endpoint, { megabytes: 100 }, START_MS)
    assert.equal(large.status, 'FAILED')
    assert.match(large.error!, /^the result is too large: it has 104857600 bytes, the limit is 20971520 bytes$/)
    assert.equal((await runJob(server, endpoint, {})).status, 'COMPLETED')
  })

  test('the server makes ids that are safe in an address and in a list, whatever a client would like', async () => {
    const endpoint = await pythonEndpoint()
    for (const wish of ['a,b/c?d#e', '../../x', 'ä 😀', '']) {
      const { json } = await ask(server, `/v2/${endpoint}/run`, { body: { id: wish, jobId: wish, input: { wish } } })
      assert.match(json.id, /^[0-9A-Za-z_-]+$/)
      const done = await whenFinal(server, endpoint, json.id, START_MS)
      assert.deepEqual([done.status, done.output.id, done.output.input], ['COMPLETED', json.id, { wish }])
    }
  })
})
