/**
 * RunPod's SDK 2.0 as a worker: hooks that run before its handler, and takes that must not get more than
 * they ask for. And its apps.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { temporaryFolder } from '../support/cleanup.ts'
import {
  ask,
  changeEndpoint,
  graphql,
  type JobStatus,
  makeEndpoint,
  runJob,
  statusOf,
  submit,
  whenFinal,
} from '../support/client.ts'
import { leaderOf, processesOf } from '../support/processes.ts'
import { sdk2, sdk2Skip } from '../support/python.ts'
import { RETURNED } from '../support/returned.ts'
import { fixture, type Server, startServer } from '../support/server.ts'
import { sleep, until } from '../support/until.ts'

const START_MS = 60_000

describe('a worker on SDK 2.0', {
  skip: sdk2Skip,
  concurrency: 4,
}, () => {
  let server: Server
  let notes: string

  before(async () => {
    notes = temporaryFolder()
    server = await startServer()
  })

  const endpointOf = (worker: string, env: Record<string, string>) =>
    makeEndpoint(server, {
      folder: fixture(worker),
      args: `"${sdk2}" handler.py`,
      env: { WIRE_FOLDER: notes, ...env },
      settings: { workersMax: 1, idleTimeout: 3600 },
    })
  const endpointWith = (env: Record<string, string>) => endpointOf('python-hooks', env)

  const run = (endpoint: string, input: object): Promise<JobStatus> => runJob(server, endpoint, input, START_MS)
  const exitsOf = (endpoint: string) => server.events('worker.exited').filter(event => event.endpointId === endpoint)
  const why = async (endpoint: string) => (await ask(server, `/v2/${endpoint}/explain`)).json
  const whenHookRuns = (endpoint: string) =>
    until(
      'the hook to run',
      () => {
        try {
          return readFileSync(join(notes, `hook-${endpoint}`), 'utf8').split('\n')[0]
        } catch {
          return null
        }
      },
      START_MS,
    )

  test('the time of its hook counts as initializing, not as execution', async () => {
    const endpoint = await endpointWith({ WIRE_HOOK_SECONDS: '3' })
    const id = await submit(server, endpoint, {}, { policy: { executionTimeout: 5_000 } })
    await whenHookRuns(endpoint)
    assert.equal((await statusOf(server, endpoint, id)).status, 'IN_QUEUE')
    const done = await whenFinal(server, endpoint, id, START_MS)
    assert.equal(done.status, 'COMPLETED')
    assert.ok(done.executionTime! < 1_000, `${done.executionTime} ms`)
    const { json } = await ask(server, `/v2/serverless/${endpoint}/workers/${done.workerId}`)
    const steps: { phase: string; ms: number }[] = json.timeLine
    assert.ok(steps.find(({ phase }) => phase === 'initializing')!.ms >= 3_000)
  })

  test('a release whose hook fails loses no job: the rollout stops, and the last release does the jobs', async () => {
    const endpoint = await endpointWith({})
    assert.equal((await run(endpoint, {})).status, 'COMPLETED')
    const { myself } = await graphql(
      server,
      'query ($id: String!) { myself { endpoint(id: $id) { template { id name imageName env { key value } } } } }',
      { id: endpoint },
    )
    const { id: templateId, name, imageName, env } = myself.endpoint.template
    const input = {
      id: templateId,
      name,
      imageName,
      dockerArgs: `"${sdk2}" handler.py`,
      containerDiskInGb: 1,
      volumeInGb: 0,
      env: [...env, { key: 'WIRE_HOOK_FAILS', value: 'no weights' }],
    }
    await graphql(server, 'mutation ($input: SaveTemplateInput) { saveTemplate(input: $input) { id } }', { input })
    const ids = await Promise.all(Array.from({ length: 5 }, () => submit(server, endpoint, {})))
    const stopped = await until(
      'the rollout to stop',
      () => server.events('rollout.stopped').find(event => event.endpointId === endpoint),
      START_MS,
    )
    assert.match(String(stopped.cause), /its prestart hook load_weights failed: RuntimeError: no weights/)
    assert.match(JSON.stringify(await why(endpoint)), /load_weights failed: RuntimeError: no weights/)
    for (const id of ids) {
      const { status, retries } = await whenFinal(server, endpoint, id, START_MS)
      assert.deepEqual([status, retries], ['COMPLETED', undefined])
    }
  })

  for (const [what, env] of [
    ['whose output says so', {}],
    ['that prints no messages below ERROR', { RUNPOD_LOG_LEVEL: 'ERROR' }],
    ['that prints no messages at all', { RUNPOD_LOG_LEVEL: 'NOTSET' }],
  ] as const) {
    test(`where no release works, a worker ${what} keeps its job waiting, and why names the hook`, async () => {
      const endpoint = await endpointWith({ WIRE_HOOK_FAILS: 'no weights', ...env })
      const id = await submit(server, endpoint, {})
      await until('two workers to end', () => exitsOf(endpoint).length >= 2, START_MS)
      const { cause, summary } = await until('the reason', async () => {
        const explained = await why(endpoint)
        return explained.cause === 'crash_loop' && explained
      })
      assert.deepEqual([cause, /load_weights failed: RuntimeError: no weights/.test(summary)], ['crash_loop', true])
      const { status, retries } = await statusOf(server, endpoint, id)
      assert.deepEqual([status, retries], ['IN_QUEUE', undefined])
      assert.ok(exitsOf(endpoint).every(({ asked }) => asked === false))
      await ask(server, `/v2/${endpoint}/purge-queue`, { method: 'POST' })
    })
  }

  test('a job of a worker that is asked to end in its hook goes to another one, and no attempt is counted', async () => {
    // At this level nothing shows that the hook runs, so the worker gets the job.
    const endpoint = await endpointWith({ WIRE_HOOK_SECONDS: '10', WIRE_HOOK_ONCE: '1', RUNPOD_LOG_LEVEL: 'WARN' })
    const id = await submit(server, endpoint, {})
    const { workerId = '' } = await until(
      'the worker to have the job',
      async () => {
        const job = await statusOf(server, endpoint, id)
        return job.status === 'IN_PROGRESS' && job
      },
      START_MS,
    )
    // A job that comes in the moment of the signal is lost by the SDK.
    await sleep(500)
    for (const { pid } of processesOf(server.dataDir, workerId)) process.kill(pid, 'SIGTERM')
    await until('the job to be back', async () => (await statusOf(server, endpoint, id)).status === 'IN_QUEUE')
    const done = await whenFinal(server, endpoint, id, START_MS)
    assert.deepEqual([done.status, done.retries], ['COMPLETED', undefined])
    assert.notEqual(done.workerId, workerId)
    assert.deepEqual(
      exitsOf(endpoint).map(({ asked }) => asked),
      [true],
    )
  })

  test('a failed check at its import is shown at once with its reason, the next start waits, and no job is touched', async () => {
    const endpoint = await endpointWith({ RUNPOD_SKIP_AUTO_SYSTEM_CHECKS: 'false', RUNPOD_MIN_MEMORY_GB: '9999' })
    const id = await submit(server, endpoint, {})
    const of = (name: string) => server.events(name).filter(event => event.endpointId === endpoint)
    // It is known from the report of the worker, before that has ended.
    const [problem] = await until('the report', () => of('worker.problem').length > 0 && of('worker.problem'), START_MS)
    assert.match(String(problem!.problem), /its check \S*memory\S* failed: .*9999/)
    const [exit] = await until(
      'two workers to end',
      () => of('worker.exited').length > 1 && of('worker.exited'),
      START_MS,
    )
    assert.match(String(exit!.cause), /its check \S*memory\S* failed/)
    const [, second] = of('worker.created')
    const [reportMs, exitMs, secondMs] = [problem, exit, second].map(event => Date.parse(String(event?.time)))
    assert.ok(reportMs! <= exitMs!)
    // The pause of a second begins with the end, whose event comes after its record.
    assert.ok(secondMs! - exitMs! >= 500, `the next start came ${secondMs! - exitMs!} ms later`)
    const { workers } = (await ask(server, `/v2/serverless/${endpoint}/workers?status=UNHEALTHY`)).json
    assert.match(workers[0].reason, /its check \S*memory\S* failed/)
    const explained = await until('the reason', async () => {
      const seen = await why(endpoint)
      return seen.cause === 'fitness_failed' && seen
    })
    assert.match(explained.summary, /memory/i)
    const { status, retries } = await statusOf(server, endpoint, id)
    assert.deepEqual([status, retries], ['IN_QUEUE', undefined])
    await ask(server, `/v2/${endpoint}/purge-queue`, { method: 'POST' })
  })

  test('takes get no more jobs than they ask for, with one job at a time and with four: it hangs otherwise', async () => {
    for (const capacity of ['1', '4']) {
      const endpoint = await endpointWith({ WIRE_CAPACITY: capacity, WIRE_NO_HOOK: '1' })
      const count = capacity === '1' ? 5 : 20
      const ids = await Promise.all(Array.from({ length: count }, () => submit(server, endpoint, {})))
      for (const id of ids) assert.equal((await whenFinal(server, endpoint, id, START_MS)).status, 'COMPLETED')
    }
  })

  test('its apps save an endpoint with empty volumes, find empty lists of what is not here, and a reason for the rest', async () => {
    const addresses = { RUNPOD_API_BASE_URL: server.url, RUNPOD_ENDPOINT_BASE_URL: `${server.url}/v2` }
    const env = { PATH: process.env.PATH, HOME: temporaryFolder(), RUNPOD_API_KEY: server.apiKey, ...addresses }
    const args = [`${fixture('python-client')}/apps.py`, `dir:${fixture('node-everyday')}`]
    const { stdout } = await promisify(execFile)(sdk2, args, { env, timeout: START_MS })
    const seen = JSON.parse(stdout)
    assert.deepEqual([seen.again, seen.job, seen.pod], [true, { echo: { name: 'Ada' } }, null])
    assert.ok(seen.endpoints.includes('dev-hello-greet'))
    assert.deepEqual(seen.lists, [[], [], []])
    for (const { error, text } of seen.refused) {
      assert.equal(error, 'QueryError')
      assert.match(text, /tasks of apps \(@app.task\), and has no other pods$|^pod p1 not found$/)
    }
  })

  test('results and errors of all kinds become the outcomes that they are with older SDKs', async () => {
    const endpoint = await endpointOf('python-worker', { WIRE_CAPACITY: '16' })
    const input = { hello: 'wörld 🌍', deep: { list: [1.5, null, true] } }
    const [done, empty, raised, unsent, nan, partly] = await Promise.all([
      run(endpoint, input),
      run(endpoint, {}),
      run(endpoint, { raise: 'wörld' }),
      run(endpoint, { return: 'bytes' }),
      run(endpoint, { return: 'nan' }),
      submit(server, endpoint, { waitFor: 'seen', progress: 'half' }),
      ...RETURNED.map(async ([what, status, output, error]) => {
        const seen = await run(endpoint, { return: what })
        assert.deepEqual([what, seen.status, seen.output, seen.error], [what, status, output, error])
        assert.equal('output' in seen, output !== undefined, what)
      }),
    ])
    assert.deepEqual([done.status, done.output.input, done.output.worker], ['COMPLETED', input, done.workerId])
    assert.deepEqual(empty.output.input, {})
    const error = JSON.parse(raised.error!)
    assert.deepEqual(Object.keys(error).sort(), [
      ...['error_message', 'error_traceback', 'error_type', 'hostname', 'runpod_version', 'worker_id'],
    ])
    assert.deepEqual(
      [error.error_type, error.error_message, error.runpod_version, error.worker_id],
      ["<class 'ValueError'>", 'wörld', '2.0.0rc2', raised.workerId],
    )
    assert.equal(unsent.status, 'FAILED')
    assert.match(unsent.error!, /bytes is not JSON serializable/)
    const { text, json } = await ask(server, `/v2/${endpoint}/status/${nan.id}`)
    assert.deepEqual([json.status, json.output.a, json.output.b], ['COMPLETED', null, [null]])
    assert.match(text, /"big": 123456789012345678901234567890\}/)
    assert.match(json.warning, /2 value\(s\)/)
    const halfway = await until('progress', async () => {
      const job = await statusOf(server, endpoint, partly)
      return job.output !== undefined && job
    })
    assert.deepEqual([halfway.status, halfway.output], ['IN_PROGRESS', 'half'])
    writeFileSync(join(notes, 'seen'), '')
    assert.equal((await whenFinal(server, endpoint, partly)).output.id, partly)
  })

  test('a job is cancelled, passes its timeout, loses its worker or asks for a new one, as with older SDKs', async () => {
    const endpoint = await endpointOf('python-worker', {})
    const begin = async (input: object, more: object = {}) => {
      const id = await submit(server, endpoint, input, { ...more })
      await until('the handler to begin', () => existsSync(join(notes, `begun-${id}`)), START_MS)
      const { workerId = '' } = await statusOf(server, endpoint, id)
      return { id, workerId }
    }
    const isStopped = (id: string) => existsSync(join(notes, `stopped-${id}`))
    const late = await begin({ sleep: 60 }, { policy: { executionTimeout: 5_000 } })
    const queued = await submit(server, endpoint, { sleep: 60 })
    const dropped = await submit(server, endpoint, {})
    await ask(server, `/v2/${endpoint}/cancel/${dropped}`, { method: 'POST' })
    const { status, error = '' } = await whenFinal(server, endpoint, late.id)
    assert.deepEqual([status, /execution timeout of 5000 ms/.test(error)], ['TIMED_OUT', true])
    await until('the next job to begin', () => existsSync(join(notes, `begun-${queued}`)))
    await ask(server, `/v2/${endpoint}/cancel/${queued}`, { method: 'POST' })
    assert.equal((await statusOf(server, endpoint, queued)).status, 'CANCELLED')
    await until('both handlers to be stopped', () => isStopped(late.id) && isStopped(queued))

    const lost = await begin({ sleepOnce: 60 })
    assert.equal(lost.workerId, late.workerId, 'the worker stays')
    process.kill(leaderOf(server.dataDir, lost.workerId).pid, 'SIGKILL')
    const again = await whenFinal(server, endpoint, lost.id, START_MS)
    assert.deepEqual([again.status, again.retries], ['COMPLETED', 1])
    assert.notEqual(again.workerId, lost.workerId)

    const last = await run(endpoint, { return: 'refresh' })
    assert.deepEqual([last.status, last.workerId], ['COMPLETED', again.workerId])
    const fresh = await begin({ sleep: 2 })
    assert.notEqual(fresh.workerId, again.workerId)
    // It is scaled down while it works.
    await changeEndpoint(server, endpoint, { workersMax: 0 })
    const finished = await whenFinal(server, endpoint, fresh.id)
    assert.deepEqual([finished.status, finished.workerId], ['COMPLETED', fresh.workerId])
    await until('its worker to end', () => exitsOf(endpoint).length === 3)
    assert.deepEqual(
      exitsOf(endpoint).map(({ cause, asked }) => [cause, asked]),
      [
        ['was killed by SIGKILL', false],
        ['exited with code 0', true],
        [exitsOf(endpoint)[2]!.cause, true],
      ],
    )
  })

  test('its chunks arrive in order, a thousand of them, and those before an error', async () => {
    const endpoint = await endpointOf('python-stream', {})
    const read = async (input: object) => {
      const id = await submit(server, endpoint, input)
      const numbers: number[] = []
      for (;;) {
        const { json } = await ask(server, `/v2/${endpoint}/stream/${id}`)
        for (const { output } of json.stream) numbers.push(output.number)
        if (json.status !== 'IN_QUEUE' && json.status !== 'IN_PROGRESS') return { id, numbers, status: json.status }
      }
    }
    const many = await read({ n: 1_000 })
    assert.deepEqual([many.status, many.numbers], ['COMPLETED', Array.from({ length: 1_000 }, (_, n) => n)])
    const broken = await read({ n: 3, error_at: 1 })
    assert.deepEqual([broken.status, broken.numbers], ['FAILED', [0]])
    assert.match(String((await whenFinal(server, endpoint, broken.id)).error), /generator boom/)
  })

  test('its error has the last lines of its output, where it captures them', async () => {
    const endpoint = await endpointWith({ RUNPOD_LOG_CAPTURE: 'all' })
    const { status, error = '' } = await run(endpoint, { raise: 'no' })
    assert.equal(status, 'FAILED')
    assert.match(JSON.parse(error).logs, /about to raise/)
  })
})
