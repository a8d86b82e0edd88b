/** The official Python SDK as a worker. The tests run beside each other, since most of their time is waiting. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { patient } from '../../support/patience.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import {
  ask,
  changeEndpoint,
  healthOf,
  type JobStatus,
  makeEndpoint,
  runJob,
  statusOf,
  submit,
  whenFinal,
} from '../support/client.ts'
import { leaderOf, processesOf } from '../support/processes.ts'
import { python, skip } from '../support/python.ts'
import { RETURNED } from '../support/returned.ts'
import { fixture, type Server, startServer } from '../support/server.ts'
import { sleep, until } from '../support/until.ts'
import { inContainers } from '../support/workers.ts'

/** Starting the SDK takes seconds of computing, more when several do it at once. */
const START_MS = 60_000

describe('the official Python worker', { skip, concurrency: 5 }, () => {
  let server: Server
  let notes: string
  /** Answers at once; its one worker stays. */
  let quick: string

  before(async () => {
    notes = temporaryFolder()
    const home = temporaryFolder()
    mkdirSync(join(home, '.runpod'))
    writeFileSync(join(home, '.runpod', 'config.toml'), '[default]\napi_key = "rpa_planted"\n')
    server = await startServer({ env: { HOME: home, PLANTED: 'secret', RUNPOD_API_KEY: 'rpa_planted' } })
    quick = await pythonEndpoint()
  })

  function pythonEndpoint(env: Record<string, string> = {}, settings: object = {}, args = `"${python}" handler.py`) {
    return makeEndpoint(server, {
      folder: fixture('python-worker'),
      args,
      env: { WIRE_FOLDER: notes, WIRE_PYTHON: python, ...env },
      settings: { workersMax: 1, idleTimeout: 3600, ...settings },
    })
  }

  const run = (endpoint: string, input: object): Promise<JobStatus> => runJob(server, endpoint, input, START_MS)

  const running = async (endpoint: string, input: object, more: object = {}) => {
    const id = await submit(server, endpoint, input, { ...more })
    await until('the handler to begin', () => existsSync(join(notes, `begun-${id}`)), START_MS)
    const { workerId = '' } = await statusOf(server, endpoint, id)
    return { id, workerId }
  }

  const stopNote = (id: string) => join(notes, `stopped-${id}`)

  test('a job succeeds, unicode and all, and names its worker', async () => {
    const done = await run(quick, { hello: 'wörld 🌍', deep: { list: [1.5, null, true] } })
    assert.equal(done.status, 'COMPLETED')
    assert.deepEqual(done.output.input, { hello: 'wörld 🌍', deep: { list: [1.5, null, true] } })
    assert.equal(done.output.worker, done.workerId)
    assert.equal(done.output.id, done.id)
  })

  test('an empty input reaches the handler as an empty object', async () => {
    assert.deepEqual((await run(quick, {})).output.input, {})
  })

  test('an exception fails the job and keeps its six fields', async () => {
    const done = await run(quick, { raise: 'wörld' })
    assert.equal(done.status, 'FAILED')
    const error = JSON.parse(done.error!)
    assert.deepEqual(Object.keys(error).sort(), [
      ...['error_message', 'error_traceback', 'error_type', 'hostname', 'runpod_version', 'worker_id'],
    ])
    assert.deepEqual(
      [error.error_type, error.error_message, error.runpod_version, error.worker_id],
      ["<class 'ValueError'>", 'wörld', '1.12.0', done.workerId],
    )
    assert.match(error.hostname, new RegExp(`^${done.workerId}-[0-9a-f]{8}$`))
    assert.match(error.error_traceback, /handler\.py/)
  })

  test('whatever a handler returns becomes the outcome that the SDK means', async () => {
    for (const [what, status, output, error] of RETURNED) {
      const done = await run(quick, { return: what })
      assert.deepEqual([what, done.status, done.output, done.error], [what, status, output, error])
      assert.equal('output' in done, output !== undefined, what)
    }
  })

  test('NaN becomes null with a warning, and a large integer keeps its digits', async () => {
    const { id } = await run(quick, { return: 'nan' })
    const { text, json } = await ask(server, `/v2/${quick}/status/${id}`)
    assert.deepEqual([json.status, json.output.a, json.output.b], ['COMPLETED', null, [null]])
    assert.match(text, /"big": 123456789012345678901234567890\}/)
    assert.match(json.warning, /2 value\(s\)/)
  })

  test('a result that the SDK cannot send fails its job within seconds, instead of leaving it running forever', async () => {
    const endpoint = await pythonEndpoint()
    // A progress bar has no line break at its end.
    for (const more of [{}, { bar: '\r 40%|####      | 4/10 [00:04<00:06]' }]) {
      const done = await run(endpoint, { return: 'bytes', ...more })
      assert.equal(done.status, 'FAILED')
      assert.match(done.error!, /bytes is not JSON serializable/)
      assert.ok(done.executionTime! < patient(10_000))
    }
    assert.equal((await run(endpoint, {})).status, 'COMPLETED')
  })

  test('what the SDK downloads for a job lies in the private folder of its worker, not in the folder of all', async () => {
    const files = createServer((_request, answer) => answer.end('wörld')).listen(0, '127.0.0.1')
    await once(files, 'listening')
    const { port } = files.address() as AddressInfo
    // The SDK downloads nothing from private addresses by default.
    const id = await pythonEndpoint({ RUNPOD_ALLOW_PRIVATE_DOWNLOAD_URLS: '1' })
    const { output, workerId = '', error } = await run(id, { download: `http://127.0.0.1:${port}/file.txt` })
    files.close()
    assert.deepEqual([output?.text, error], ['wörld', undefined])
    assert.ok(
      output.path.startsWith(join(realpathSync(server.dataDir), 'workers', workerId, 'work', 'jobs')),
      output.path,
    )
    assert.ok(!existsSync(join(fixture('python-worker'), 'jobs')))
    await changeEndpoint(server, id, { workersMax: 0 })
  })

  test('progress shows in the status while the job runs', async () => {
    const { id } = await running(quick, { sleep: 5, progress: 'half' })
    const seen = await until('progress', async () => {
      const job = await statusOf(server, quick, id)
      return job.output !== undefined && job
    })
    assert.deepEqual([seen.status, seen.output], ['IN_PROGRESS', 'half'])
    assert.equal((await whenFinal(server, quick, id)).output.id, id)
  })

  test('the environment is an allowlist: no key or variable of the person who runs the server', async () => {
    const { env, key, config } = (await run(quick, { return: 'environment' })).output
    assert.deepEqual([key, config], [null, false])
    assert.match(env.RUNPOD_AI_API_KEY, /^rpw_/)
    assert.ok(inContainers ? env.HOME === '/root' : env.HOME.startsWith(`${server.dataDir}/workers/`))
    const known =
      /^(RUNPOD_|RUNYARD_WEBHOOK_POST_OUTPUTS$|WIRE_|CUDA_|ROCR_|HIP_|NVIDIA_|LC_|PATH$|LANG$|TZ$|HOME$|TMPDIR$|PWD$|NO_PROXY$|HF_HOME$|XDG_CACHE_HOME$|TRITON_CACHE_DIR$|TORCHINDUCTOR_CACHE_DIR$|LD_LIBRARY_PATH$|PYTHON|HOSTNAME$|TINI_)/
    assert.deepEqual(
      Object.keys(env).filter(name => !known.test(name)),
      [],
    )
    assert.equal(env.RUNPOD_API_KEY, undefined)
  })

  test('a worker with capacity 4 never runs more at once, and all jobs are done', async () => {
    const endpoint = await pythonEndpoint({ WIRE_CAPACITY: '4' })
    const ids = await Promise.all(Array.from({ length: 10 }, () => submit(server, endpoint, { sleep: 1 })))
    const done = await Promise.all(ids.map(id => whenFinal(server, endpoint, id, START_MS)))
    const most = Math.max(...done.map(({ output }) => output.atOnce))
    assert.ok(done.every(({ status }) => status === 'COMPLETED'))
    assert.ok(most >= 2 && most <= 4, `${most} ran at once`)
    assert.equal(new Set(done.map(({ output }) => output.id)).size, 10)
  })

  test('cancelling stops a handler that awaits, and its worker takes the next job', async () => {
    const endpoint = await pythonEndpoint()
    const { id, workerId } = await running(endpoint, { sleep: 60 })
    const queued = await submit(server, endpoint, {})
    const dropped = await submit(server, endpoint, {})
    for (const job of [dropped, id]) {
      const answer = await ask(server, `/v2/${endpoint}/cancel/${job}`, { method: 'POST' })
      assert.deepEqual([answer.status, answer.json.status], [200, 'CANCELLED'])
      assert.equal((await statusOf(server, endpoint, job)).status, 'CANCELLED')
    }
    const next = await whenFinal(server, endpoint, queued)
    assert.deepEqual([next.status, next.workerId], ['COMPLETED', workerId])
    assert.ok(existsSync(stopNote(id)))

    const swallowing = await running(endpoint, { sleep: 60, swallow: true })
    await ask(server, `/v2/${endpoint}/cancel/${swallowing.id}`, { method: 'POST' })
    await until('the handler to be stopped', () => existsSync(stopNote(swallowing.id)))
    const after = await run(endpoint, {})
    const cancelled = await statusOf(server, endpoint, swallowing.id)
    assert.deepEqual([after.workerId, cancelled.status, cancelled.output], [workerId, 'CANCELLED', undefined])
    assert.deepEqual(await healthJobs(endpoint), { completed: 2, failed: 0, inProgress: 0, inQueue: 0, retried: 0 })
  })

  test('thirty jobs that are cancelled in their first 100 ms all stop, and their worker stays', async () => {
    const endpoint = await pythonEndpoint({ WIRE_CAPACITY: '10' })
    const { workerId } = await run(endpoint, {})
    const cancelEarly = async (afterMs: number) => {
      const id = await submit(server, endpoint, { sleep: 60 })
      await until(
        'the job to be dispatched',
        async () => (await statusOf(server, endpoint, id)).status === 'IN_PROGRESS',
      )
      await sleep(afterMs)
      await ask(server, `/v2/${endpoint}/cancel/${id}`, { method: 'POST' })
      return id
    }
    for (let round = 0; round < 3; round += 1) {
      const ids = await Promise.all(Array.from({ length: 10 }, (_, index) => cancelEarly(8 * index)))
      await until('the worker to be idle', async () => (await healthOf(server, endpoint)).workers.idle === 1)
      // A job may be stopped before its handler has begun.
      const runs = (id: string) => existsSync(join(notes, `begun-${id}`)) && !existsSync(stopNote(id))
      assert.deepEqual(ids.filter(runs), [])
    }
    assert.equal((await run(endpoint, {})).workerId, workerId)
    assert.equal(exitOf(workerId!), undefined)
  })

  const healthJobs = async (endpoint: string) => (await healthOf(server, endpoint)).jobs

  test('a handler that blocks is cancelled at once for the caller, and its worker is replaced after the grace', async () => {
    const endpoint = await pythonEndpoint({ WIRE_MODE: 'sync' })
    const { id, workerId } = await running(endpoint, { sleep: 90 })
    await ask(server, `/v2/${endpoint}/cancel/${id}`, { method: 'POST' })
    assert.equal((await statusOf(server, endpoint, id)).status, 'CANCELLED')
    const next = await run(endpoint, {})
    assert.equal(next.status, 'COMPLETED')
    assert.notEqual(next.workerId, workerId)
    assert.deepEqual(processesOf(server.dataDir, workerId), [])
    assert.equal(exitOf(workerId)?.asked, true)
  })

  test('a job past its execution timeout is TIMED_OUT, and its handler is stopped', async () => {
    const endpoint = await pythonEndpoint()
    const { id, workerId } = await running(endpoint, { sleep: 60 }, { policy: { executionTimeout: 5_000 } })
    const done = await whenFinal(server, endpoint, id)
    assert.equal(done.status, 'TIMED_OUT')
    assert.match(done.error!, /execution timeout of 5000 ms/)
    await until('the handler to be stopped', () => existsSync(stopNote(id)))
    const next = await run(endpoint, {})
    assert.deepEqual([next.status, next.workerId], ['COMPLETED', workerId])
  })

  test('a worker that blocks past the execution timeout is replaced', async () => {
    const endpoint = await pythonEndpoint({ WIRE_MODE: 'sync' })
    const { id, workerId } = await running(endpoint, { sleep: 90 }, { policy: { executionTimeout: 5_000 } })
    assert.equal((await whenFinal(server, endpoint, id)).status, 'TIMED_OUT')
    const next = await run(endpoint, {})
    assert.equal(next.status, 'COMPLETED')
    assert.notEqual(next.workerId, workerId)
  })

  test('scaling down loses no job: the running one is finished, waiting ones wait, and the worker ends soon after', async () => {
    const endpoint = await pythonEndpoint()
    const { id, workerId } = await running(endpoint, { sleep: 3 })
    await changeEndpoint(server, endpoint, { workersMax: 0 })
    const waiting = await submit(server, endpoint, {})
    const done = await whenFinal(server, endpoint, id)
    assert.deepEqual([done.status, done.workerId], ['COMPLETED', workerId])
    await until('the worker to end', () => exitOf(workerId))
    // Python gives its handler of the signal up while it ends, so a signal that comes again then kills it.
    assert.match(String(exitOf(workerId)?.cause), /^(exited with code 0|was killed by SIGTERM)$/)
    assert.equal(exitOf(workerId)?.asked, true)
    assert.equal((await statusOf(server, endpoint, waiting)).status, 'IN_QUEUE')
    await changeEndpoint(server, endpoint, { workersMax: 1 })
    const next = await whenFinal(server, endpoint, waiting, START_MS)
    assert.deepEqual([next.status, next.retries], ['COMPLETED', undefined])

    // Now the worker is polling when it is scaled down, and jobs come at that very moment.
    const [, ...ids] = await Promise.all([
      changeEndpoint(server, endpoint, { workersMax: 0 }),
      ...Array.from({ length: 5 }, () => submit(server, endpoint, {})),
    ])
    await until('the worker to end', () => exitOf(next.workerId!))
    await changeEndpoint(server, endpoint, { workersMax: 1 })
    for (const job of ids) {
      const { status, retries } = await whenFinal(server, endpoint, job, START_MS)
      assert.deepEqual([status, retries], ['COMPLETED', undefined])
    }
  })

  test('the job of a worker that is killed is queued again within seconds and done by another', async () => {
    const endpoint = await pythonEndpoint()
    const { id, workerId } = await running(endpoint, { sleepOnce: 60 })
    process.kill(leaderOf(server.dataDir, workerId).pid, 'SIGKILL')
    await until('the job to be queued again', async () => (await statusOf(server, endpoint, id)).status === 'IN_QUEUE')
    const done = await whenFinal(server, endpoint, id, START_MS)
    assert.deepEqual([done.status, done.retries], ['COMPLETED', 1])
    assert.notEqual(done.workerId, workerId)
    assert.equal((await healthJobs(endpoint)).retried, 1)
    assert.equal(exitOf(workerId)?.cause, 'was killed by SIGKILL')
  })

  test('behind a shell script, the end of the main process ends all of the worker and gives its job back', async () => {
    const endpoint = await pythonEndpoint({}, {}, 'sh start.sh')
    const { id, workerId } = await running(endpoint, { sleepOnce: 60 })
    const shell = leaderOf(server.dataDir, workerId)
    const main = processesOf(server.dataDir, workerId).find(({ parent }) => parent === shell.pid)!
    const others = processesOf(server.dataDir, workerId).filter(({ pid }) => pid !== shell.pid && pid !== main.pid)
    assert.ok(others.length >= 1, 'the SDK pings from a process of its own')
    process.kill(main.pid, 'SIGKILL')
    await until('all of the worker to be gone', () => processesOf(server.dataDir, workerId).length === 0)
    const done = await whenFinal(server, endpoint, id, START_MS)
    assert.deepEqual([done.status, done.retries], ['COMPLETED', 1])
    // The engine's init says the same of a program that was killed and of one that ends like the one it ran.
    assert.equal(exitOf(workerId)?.cause, inContainers ? 'was killed by SIGKILL' : 'exited with code 137')
  })

  test('refresh_worker replaces the worker after its job, in both forms, and counts as no crash', async () => {
    const byValue = await pythonEndpoint()
    const byConfig = await pythonEndpoint({ WIRE_REFRESH: '1' })
    for (const [endpoint, input] of [
      [byValue, { return: 'refresh' }],
      [byConfig, {}],
    ] as const) {
      const first = await run(endpoint, input)
      assert.equal(first.status, 'COMPLETED')
      const second = await run(endpoint, {})
      assert.equal(second.status, 'COMPLETED')
      assert.notEqual(second.workerId, first.workerId)
      assert.deepEqual([exitOf(first.workerId!)?.asked, exitOf(first.workerId!)?.cause], [true, 'exited with code 0'])
      assert.equal((await healthOf(server, endpoint)).workers.unhealthy, 0)
    }
  })

  const exitOf = (workerId: string) => server.events('worker.exited').find(event => event.workerId === workerId)
})
