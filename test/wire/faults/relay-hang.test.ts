/** A relay that does not answer is woken, or else replaced, and what workers do goes on. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { atEnd, temporaryFolder } from '../support/cleanup.ts'
import { makeEndpoint, runJob, submit, whenFinal, whenStatus } from '../support/client.ts'
import { relayPid, relayProcesses } from '../support/processes.ts'
import { skip as noPython, python } from '../support/python.ts'
import { fixture, root, rootUrl, type Server, startServer } from '../support/server.ts'
import { sleep, until } from '../support/until.ts'

const START_MS = 60_000

/** Stops the relay, once. */
function stopRelay(server: Server): number {
  const pid = relayPid(server.dataDir)!
  process.kill(pid, 'SIGSTOP')
  return pid
}

/** A server that finds a relay which can be made to hang. */
async function startWithRelay(): Promise<{ server: Server; hangRelay: () => Promise<() => Promise<void>> }> {
  const dataDir = temporaryFolder()
  const mark = join(temporaryFolder(), 'hangs')
  const child = spawn(process.execPath, [`${root}/src/relay/program.ts`, dataDir, '0'], {
    env: { NODE_OPTIONS: `--import=${rootUrl}/test/wire/support/hang-on-signal.ts`, HANG_MARK: mark },
    stdio: 'ignore',
  })
  atEnd(() => child.kill('SIGKILL'))
  await until('the relay', () => relayPid(dataDir), START_MS)
  const server = await startServer({ dataDir })
  const pid = relayPid(dataDir)!
  assert.equal(pid, child.pid)
  const whenReplaced = async () => {
    await until('the end of the one that hangs', () => !relayProcesses(dataDir).includes(pid), START_MS)
    await until('another relay', () => relayPid(dataDir) !== pid && relayProcesses(dataDir).length === 1)
    assert.equal(server.events('relay.hung').length, 1)
  }
  const hangRelay = async () => {
    process.kill(pid, 'SIGUSR2')
    await until('the relay to hang', () => existsSync(mark), START_MS, 5)
    return whenReplaced
  }
  return { server, hangRelay }
}

const portOf = ({ dataDir }: Server) => JSON.parse(readFileSync(`${dataDir}/relay/relay.json`, 'utf8')).port as number

async function isServedOn(server: Server, endpoint: string, ids: readonly string[], workerId: string | undefined) {
  for (const id of ids) {
    const done = await whenFinal(server, endpoint, id, START_MS)
    assert.deepEqual(
      [done.status, done.workerId, done.retries],
      ['COMPLETED', workerId, undefined],
      JSON.stringify(done),
    )
  }
}

async function makePython(server: Server) {
  const notes = temporaryFolder()
  const endpoint = await makeEndpoint(server, {
    folder: fixture('python-worker'),
    args: `"${python}" handler.py`,
    env: { WIRE_FOLDER: notes },
    settings: { workersMax: 1, idleTimeout: 3600 },
  })
  const { workerId } = await runJob(server, endpoint, {}, START_MS)
  const begun = (id: string) => until('the handler to begin', () => existsSync(join(notes, `begun-${id}`)), START_MS)
  const runs = () => readFileSync(join(notes, 'journal'), 'utf8').trim().split('\n')
  return { endpoint, workerId, begun, runs }
}

async function makeNode(server: Server) {
  const folder = `${root}/examples/hello-node`
  const endpoint = await makeEndpoint(server, { folder, settings: { workersMax: 1, idleTimeout: 3600 } })
  const { workerId } = await runJob(server, endpoint, {}, START_MS)
  // Nothing shows that its next poll has reached the server.
  await sleep(500)
  return { endpoint, workerId }
}

describe('a relay that is stopped', { concurrency: 2 }, () => {
  test('in the middle of jobs of an official worker: it is woken, and each job runs once', {
    skip: noPython,
  }, async () => {
    const server = await startServer()
    const { endpoint, workerId, begun, runs } = await makePython(server)
    const id = await submit(server, endpoint, { sleep: 2 })
    const next = await submit(server, endpoint, {})
    await begun(id)
    const relay = stopRelay(server)
    await isServedOn(server, endpoint, [id, next], workerId)
    assert.equal(new Set(runs()).size, runs().length)
    assert.deepEqual([relayPid(server.dataDir), server.events('relay.silent').length], [relay, 1])
    assert.deepEqual(await server.stop(), { code: 0, signal: null })
  })

  test('before a server starts: earlier workers continue', async () => {
    const dataDir = temporaryFolder()
    const first = await startServer({ dataDir })
    const { endpoint, workerId } = await makeNode(first)
    await first.kill9()
    stopRelay(first)
    const second = await startServer({ dataDir })
    assert.equal((await runJob(second, endpoint, {}, START_MS)).workerId, workerId)
    assert.deepEqual(await second.stop(), { code: 0, signal: null })
  })
})

describe('a relay that hangs', { concurrency: 2 }, () => {
  test('in the middle of jobs of an official worker: it is replaced, and no job is lost', {
    skip: noPython,
  }, async () => {
    const { server, hangRelay } = await startWithRelay()
    const { endpoint, begun, runs } = await makePython(server)
    const port = portOf(server)
    const id = await submit(server, endpoint, { sleep: 2 })
    const next = await submit(server, endpoint, {})
    await begun(id)
    const whenReplaced = await hangRelay()
    await whenReplaced()
    for (const job of [id, next]) assert.equal((await whenFinal(server, endpoint, job, START_MS)).status, 'COMPLETED')
    // Its SDK throws a result away whose connection is cut.
    assert.ok(runs().filter(run => run === id).length <= 2)
    assert.equal(runs().filter(run => run === next).length, 1)
    assert.equal(portOf(server), port)
    assert.deepEqual(await server.stop(), { code: 0, signal: null })
    assert.deepEqual(relayProcesses(server.dataDir), [])
  })

  test('a job on its way to a worker is handed out again, uncounted, and its worker stays', async () => {
    const { server, hangRelay } = await startWithRelay()
    const { endpoint, workerId } = await makeNode(server)
    const whenReplaced = await hangRelay()
    const id = await submit(server, endpoint, { name: 'Ada' })
    await whenStatus(server, endpoint, id, ['IN_PROGRESS'])
    await whenReplaced()
    await isServedOn(server, endpoint, [id], workerId)
    assert.deepEqual(await server.stop(), { code: 0, signal: null })
  })

  test('a result on its way to the server comes through, where the worker sends it again', async () => {
    const { server, hangRelay } = await startWithRelay()
    const { endpoint, workerId } = await makeNode(server)
    const id = await submit(server, endpoint, { sleepMs: 1_000 })
    await whenStatus(server, endpoint, id, ['IN_PROGRESS'])
    const whenReplaced = await hangRelay()
    await whenReplaced()
    await isServedOn(server, endpoint, [id], workerId)
    assert.deepEqual(await server.stop(), { code: 0, signal: null })
  })
})
