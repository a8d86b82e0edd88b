/** Work of an official Python worker while its server is down. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { listParts, partFile } from '../../../src/disk/worker-output.ts'
import { patient } from '../../support/patience.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, makeEndpoint, runJob, statusOf, submit, whenFinal } from '../support/client.ts'
import { cpuSeconds, processesOf, relayPid, relayProcesses, workerProcesses } from '../support/processes.ts'
import { python, skip } from '../support/python.ts'
import { fixture, type Server, startServer } from '../support/server.ts'
import { sleep, timed, until } from '../support/until.ts'

const START_MS = 60_000

async function makePython(server: Server, settings: object = {}) {
  const notes = temporaryFolder()
  const endpoint = await makeEndpoint(server, {
    folder: fixture('python-worker'),
    args: `"${python}" handler.py`,
    env: { WIRE_FOLDER: notes },
    settings: { workersMax: 1, idleTimeout: 3600, ...settings },
  })
  const runs = () => readFileSync(join(notes, 'journal'), 'utf8').trim().split('\n')
  return { endpoint, notes, runs }
}

async function killedWhileRunning(seconds: number, args: readonly string[] = []) {
  const dataDir = temporaryFolder()
  const first = await startServer({ dataDir, args })
  const { endpoint, notes, runs } = await makePython(first)
  const id = await submit(first, endpoint, { sleepOnce: seconds })
  await until('the handler to begin', () => existsSync(join(notes, `begun-${id}`)), START_MS)
  const { workerId } = await statusOf(first, endpoint, id)
  const before = { log: logLines(dataDir, workerId!), cpu: cpuOf(dataDir, workerId!) }
  await first.kill9()
  await sleep(5_000)
  const spent = cpuOf(dataDir, workerId!) - before.cpu
  const restart = () => startServer({ dataDir, port: first.port, args })
  return { dataDir, restart, endpoint, id, workerId: workerId!, before, spent, runs }
}

describe('an official Python worker whose server is away for 5 s', { skip, concurrency: 2 }, () => {
  test('a result during the outage is kept, its worker stays calm, and the job runs once', async () => {
    const { dataDir, restart, endpoint, id, workerId, before, spent, runs } = await killedWhileRunning(2)
    const second = await restart()
    const done = await whenFinal(second, endpoint, id, START_MS)
    assert.deepEqual([done.status, done.workerId, done.retries], ['COMPLETED', workerId, undefined])
    assert.equal(done.output.id, id)
    assert.equal((await runJob(second, endpoint, {})).workerId, workerId, 'and the worker stays')
    assert.deepEqual(
      runs().filter(run => run === id),
      [id],
    )
    const lines = logLines(dataDir, workerId) - before.log
    assert.ok(lines < 20, `${lines} lines in its log`)
    assert.ok(spent < 1, `${spent} s of CPU time in 5 s`)
    assert.deepEqual(await second.stop(), { code: 0, signal: null })
    assert.deepEqual([workerProcesses(dataDir), relayProcesses(dataDir)], [[], []])
  })

  test('a job that is still running then is done by the worker that has it', async () => {
    const { restart, endpoint, id, workerId } = await killedWhileRunning(9)
    const second = await restart()
    const done = await whenFinal(second, endpoint, id, START_MS)
    assert.deepEqual([done.status, done.workerId, done.retries], ['COMPLETED', workerId, undefined])
    assert.equal((await runJob(second, endpoint, {})).workerId, workerId, 'and the worker stays')
    await second.stop()
  })

  test('without a relay its result is missed within seconds, and the job is done by another worker', async () => {
    const { dataDir, restart, endpoint, id, workerId } = await killedWhileRunning(2, ['--direct-workers'])
    assert.deepEqual(relayProcesses(dataDir), [])
    const second = await restart()
    const { ms } = await timed(() =>
      until('the loss to be seen', async () => (await statusOf(second, endpoint, id)).retries === 1),
    )
    assert.ok(ms < patient(10_000), `${Math.round(ms)} ms`)
    const done = await whenFinal(second, endpoint, id, START_MS)
    assert.deepEqual([done.status, done.retries], ['COMPLETED', 1])
    assert.notEqual(done.workerId, workerId)
    await second.stop()
  })
})

describe('an official Python worker whose server is killed again and again', { skip, concurrency: 2 }, () => {
  test('short jobs are done once, at whatever moment the server is killed', async t => {
    const dataDir = temporaryFolder()
    let server = await startServer({ dataDir })
    const settings = { workersMin: 3, workersMax: 3, scalerType: 'REQUEST_COUNT', scalerValue: 1 }
    const { endpoint, runs } = await makePython(server, settings)
    const ids: string[] = []
    for (let n = 0; n < 30; n += 1) ids.push(await submit(server, endpoint, { n }))
    await until(
      'the first result',
      async () => (await statusOf(server, endpoint, ids[0]!)).status === 'COMPLETED',
      START_MS,
    )
    for (let kill = 0; kill < 7; kill += 1) {
      await sleep(250 + Math.random() * 500)
      await server.kill9()
      server = await startServer({ dataDir, port: server.port })
    }
    const done = []
    for (const id of ids) done.push(await whenFinal(server, endpoint, id, START_MS))
    assert.deepEqual([...new Set(done.map(({ status }) => status))], ['COMPLETED'])
    assert.deepEqual(
      done.map(({ output }) => output.id),
      ids,
    )
    const again = runs().length - ids.length
    t.diagnostic(`${again} of ${ids.length} jobs ran a second time in 7 kills`)
    assert.ok(again <= 1, `${again} ran again`)
    assert.ok(done.filter(({ retries }) => retries !== undefined).length <= 1)
    await server.stop()
  })

  test('the chunks of a stream come once and in order, also those that are alike', async () => {
    const dataDir = temporaryFolder()
    let server = await startServer({ dataDir })
    const endpoint = await makeEndpoint(server, {
      folder: fixture('python-stream'),
      args: `"${python}" handler.py`,
      settings: { workersMax: 1, idleTimeout: 3600 },
    })
    const id = await submit(server, endpoint, { n: 600, sleep: 0.01, times: 4 })
    await until('its begin', async () => (await statusOf(server, endpoint, id)).status === 'IN_PROGRESS', START_MS)
    await sleep(500)
    for (let kill = 0; kill < 3; kill += 1) {
      await server.kill9()
      await sleep(kill === 0 ? 5_000 : 200)
      server = await startServer({ dataDir, port: server.port })
      await sleep(300 + Math.random() * 300)
    }
    assert.equal((await whenFinal(server, endpoint, id, START_MS)).status, 'COMPLETED')
    // Read at the end only: a reader that is cut off gets some of it again.
    const numbers: number[] = []
    for (;;) {
      const { json } = await ask(server, `/v2/${endpoint}/stream/${id}`)
      if (json.stream.length === 0) break
      numbers.push(...json.stream.map((item: { output: { number: number } }) => item.output.number))
    }
    assert.deepEqual(
      numbers,
      Array.from({ length: 600 }, (_, n) => Math.floor(n / 4)),
    )
    assert.equal((await statusOf(server, endpoint, id)).retries, undefined)
    await server.stop()
  })
})

describe('a relay', { skip, concurrency: 2 }, () => {
  test('one that is killed is started again at once on its address, and the workers continue', async () => {
    const dataDir = temporaryFolder()
    const server = await startServer({ dataDir })
    const { endpoint } = await makePython(server)
    const { workerId } = await runJob(server, endpoint, {}, START_MS)
    const before = relayPid(dataDir)!
    process.kill(before, 'SIGKILL')
    await until('another relay', () => relayPid(dataDir) !== before && relayProcesses(dataDir).length === 1)
    const done = await runJob(server, endpoint, {})
    assert.deepEqual([done.status, done.workerId, done.retries], ['COMPLETED', workerId, undefined])
    assert.equal(server.events('relay.lost').length, 1)
    await server.stop()
    assert.deepEqual(relayProcesses(dataDir), [])
  })

  test('one that died with its server is started again by the next', async () => {
    const dataDir = temporaryFolder()
    const first = await startServer({ dataDir })
    const { endpoint } = await makePython(first)
    const { workerId } = await runJob(first, endpoint, {}, START_MS)
    await first.kill9()
    process.kill(relayPid(dataDir)!, 'SIGKILL')
    const second = await startServer({ dataDir })
    const done = await runJob(second, endpoint, {})
    assert.deepEqual([done.status, done.workerId], ['COMPLETED', workerId])
    assert.ok(processesOf(dataDir, workerId!).length > 0)
    await second.stop()
  })
})

function logLines(dataDir: string, workerId: string): number {
  const folder = join(dataDir, 'logs', workerId)
  const texts = listParts(folder).map(begin => readFileSync(partFile(folder, begin), 'utf8'))
  return texts.join('').split('\n').length
}

function cpuOf(dataDir: string, workerId: string): number {
  return processesOf(dataDir, workerId).reduce((sum, { pid }) => sum + cpuSeconds(pid), 0)
}
