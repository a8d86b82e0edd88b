/** Workers on SDKs of earlier years: what they say differs, and no job of theirs may be lost or run twice. */
import assert from 'node:assert/strict'
import { cpSync, existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, changeEndpoint, makeEndpoint, runJob, submit, whenFinal } from '../support/client.ts'
import { leaderOf } from '../support/processes.ts'
import { OLD_SDKS, oldSdk, oldSdkPath, oldSdksSkip, python } from '../support/python.ts'
import { RETURNED } from '../support/returned.ts'
import { fixture, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { inContainers } from '../support/workers.ts'

const START_MS = 60_000

/** One of each generation; they differ in reports, in concurrent takes, and in the list of their jobs. */
const GENERATIONS: readonly Version[] = ['1.6.2', '1.7.4', '1.7.13', '1.9.1']

/** With these a worker takes another job while it works on one, and lets it wait inside. */
const WITH_A_QUEUE: readonly Version[] = ['1.7.0', '1.7.4']

/**
 * These keep the list of their jobs in a file of their working folder, and read it again before each poll and ping.
 */
const WITH_A_FILE: readonly Version[] = ['1.7.13', '1.8.1', '1.9.1', '1.10.0']

/**
 * The first and the last of those that share a working folder in their own way: without a
 * queue, with one, with a file.
 */
const FOLDER_BORDERS: readonly Version[] = ['1.6.2', '1.7.0', '1.7.13', '1.10.0']

/** A worker for each job, up to two. */
const PER_JOB = { workersMax: 2, scalerType: 'REQUEST_COUNT', scalerValue: 1 }

type Version = (typeof OLD_SDKS)[number]

describe('workers on older SDKs', { skip: oldSdksSkip, concurrency: 6 }, () => {
  let server: Server
  let root: string

  before(async () => {
    root = temporaryFolder()
    server = await startServer({ args: ['--process-root', root] })
  })

  /** An endpoint with a folder of its own, in which its workers leave their notes. */
  async function endpointOn(version: Version, name: string, env: Record<string, string> = {}, settings: object = {}) {
    made += 1
    const folder = join(root, `${name}-${made}`)
    cpSync(fixture(name), folder, { recursive: true })
    if (inContainers) cpSync(oldSdk(version), join(folder, 'sdk'), { recursive: true })
    const id = await makeEndpoint(server, {
      folder,
      args: `"${python}" handler.py`,
      env: { WIRE_FOLDER: folder, PYTHONPATH: inContainers ? '/app/sdk:/opt/python' : oldSdkPath(version), ...env },
      settings: { workersMax: 1, idleTimeout: 3600, ...settings },
    })
    return { id, folder }
  }
  let made = 0

  // An image is built for each in containers.
  const versions = inContainers ? GENERATIONS : OLD_SDKS
  for (const version of versions) {
    test(`${version}: results and errors of all kinds become outcomes, and a result that cannot be sent fails its job`, async () => {
      const { id } = await endpointOn(version, 'python-worker')
      const run = (input: object) => runJob(server, id, input, START_MS)
      const done = await run({ hello: 'wörld 🌍', deep: [1.5, null] })
      assert.deepEqual([done.status, done.output.input], ['COMPLETED', { hello: 'wörld 🌍', deep: [1.5, null] }])
      assert.equal(done.output.worker, done.workerId)
      const raised = await run({ raise: 'wörld' })
      assert.equal(raised.status, 'FAILED')
      const six = JSON.parse(raised.error!)
      assert.deepEqual([six.error_message, six.runpod_version], ['wörld', version])
      for (const [what, status, output, error] of RETURNED) {
        const seen = await run({ return: what })
        assert.deepEqual([what, seen.status, seen.output, seen.error], [what, status, output, error])
      }
      const unsent = await run({ return: 'bytes' })
      assert.deepEqual([unsent.status, unsent.retries], ['FAILED', undefined])
      assert.match(unsent.error!, /could not send its result: Object of type bytes is not JSON serializable/)
      await changeEndpoint(server, id, { workersMax: 0 })
    })
  }

  for (const version of FOLDER_BORDERS) {
    test(`${version}: two workers in one folder do each job once, and neither takes the jobs of the other for its own`, async () => {
      const { id, folder } = await endpointOn(version, 'python-worker', {}, PER_JOB)
      const what = WITH_A_FILE.includes(version) ? { return: 'own list' } : {}
      const jobs: string[] = []
      for (const input of [{ waitFor: 'go' }, { number: 1 }, { number: 2 }]) {
        jobs.push(await submit(server, id, { ...input, ...what }))
        await until('the first worker to work', async () => existsSync(join(folder, `begun-${jobs[0]}`)), START_MS)
      }
      const others = WITH_A_QUEUE.includes(version)
        ? []
        : await Promise.all(jobs.slice(1).map(job => whenFinal(server, id, job, START_MS)))
      writeFileSync(join(folder, 'go'), '')
      const done = await Promise.all(jobs.map(job => whenFinal(server, id, job, START_MS)))
      for (const job of done) assert.deepEqual(pick(job), ['COMPLETED', undefined])
      if (WITH_A_FILE.includes(version))
        assert.deepEqual(
          done.map(({ output }) => output.list),
          jobs,
        )
      for (const { workerId } of others) assert.notEqual(workerId, done[0]?.workerId)
      await changeEndpoint(server, id, { workersMax: 0 })
    })
  }

  for (const version of GENERATIONS) {
    test(`${version}: chunks come in order, and the job ends without an output of its own`, async () => {
      const { id } = await endpointOn(version, 'python-stream')
      const job = await submit(server, id, { n: 5, sleep: 0.1 })
      const numbers: number[] = []
      for (let status = 'IN_QUEUE'; status === 'IN_QUEUE' || status === 'IN_PROGRESS'; ) {
        const { json } = await ask(server, `/v2/${id}/stream/${job}`)
        numbers.push(...json.stream.map(({ output }: { output: { number: number } }) => output.number))
        status = json.status
      }
      assert.deepEqual(numbers, [0, 1, 2, 3, 4])
      const { status, output } = await whenFinal(server, id, job, START_MS)
      assert.deepEqual([status, output], ['COMPLETED', []])
      await changeEndpoint(server, id, { workersMax: 0 })
    })

    test(`${version}: with several jobs at once, some of them longer than its pings, all are done, each once`, async () => {
      const { id } = await endpointOn(version, 'python-worker', { WIRE_CAPACITY: '3' })
      const inputs = [{ sleep: 26 }, ...Array.from({ length: 9 }, (_, index) => ({ sleep: index % 3 }))]
      const jobs = await Promise.all(inputs.map(input => submit(server, id, input)))
      const done = await Promise.all(jobs.map(job => whenFinal(server, id, job, 120_000)))
      assert.deepEqual(
        done.map(({ status, retries, output }) => [status, retries, output?.id]),
        jobs.map(job => ['COMPLETED', undefined, job]),
      )
      await changeEndpoint(server, id, { workersMax: 0 })
    })
  }

  test('1.9.1: a worker does not take the jobs of a killed one for its own, and two in one folder lose no job', async () => {
    const { id, folder } = await endpointOn('1.9.1', 'python-worker', {}, PER_JOB)
    const first = await submit(server, id, { sleepOnce: 60 })
    const { workerId } = await until(
      'the handler to begin',
      async () => {
        const { json } = await ask(server, `/v2/${id}/status/${first}`)
        return existsSync(join(folder, `begun-${first}`)) && json
      },
      START_MS,
    )
    process.kill(leaderOf(server.dataDir, workerId).pid, 'SIGKILL')
    assert.deepEqual(pick(await whenFinal(server, id, first, START_MS)), ['COMPLETED', 1])
    const jobs = await Promise.all([12, 0, 1, 2, 0].map(sleep => submit(server, id, { sleep })))
    for (const job of jobs) assert.deepEqual(pick(await whenFinal(server, id, job, 200_000)), ['COMPLETED', undefined])
    await changeEndpoint(server, id, { workersMax: 0 })
  })

  const pick = ({ status, retries }: { status: string; retries?: number }) => [status, retries]
})
