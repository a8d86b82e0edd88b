/**
 * Stops, kills and starts of servers: accepted jobs are kept, and no process is left over. Each test has its own
 * servers, so some run beside each other.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import { before, describe, test } from 'node:test'
import { patient } from '../../support/patience.ts'
import { mountSmallDisk } from '../../support/small-disk.ts'
import { atEnd, temporaryFolder } from '../support/cleanup.ts'
import { ask, makeEndpoint, runJob, statusOf, submit, whenFinal, whenStatus } from '../support/client.ts'
import { killAll, leaderOf, processesOf, relayProcesses, workerProcesses } from '../support/processes.ts'
import { programFile, root, runCommand, type Server, startServer } from '../support/server.ts'
import { sleep, timed, until } from '../support/until.ts'

const folder = `${root}/examples/hello-node`
const program = programFile()
const JOBS = 150

describe('a server that is killed', { concurrency: 3 }, () => {
  test('every acknowledged job of many is done after a restart on the same port, and no worker is left', async () => {
    const dataDir = temporaryFolder()
    const first = await startServer({ dataDir })
    const endpoint = await makeEndpoint(first, {
      folder,
      settings: { workersMin: 4, workersMax: 4, scalerType: 'REQUEST_COUNT', scalerValue: 1 },
    })
    const acknowledged: string[] = []
    let submitted = 0
    let down = false
    const client = async () => {
      while (submitted < JOBS && !down) {
        submitted += 1
        try {
          acknowledged.push(await submit(first, endpoint, { sleepMs: submitted % 51, name: `job ${submitted}` }))
        } catch (error) {
          if (!down) throw error
        }
      }
    }
    const clients = Array.from({ length: 8 }, client)
    await until('half of the jobs', () => acknowledged.length >= JOBS / 2)
    await until('some results', () => first.events('job.moved').filter(({ to }) => to === 'COMPLETED').length > 20)
    down = true
    await first.kill9()
    await Promise.all(clients)
    const survivors = workerProcesses(dataDir)
    assert.equal(survivors.length, 4, 'the workers outlive the server')

    const second = await startServer({ dataDir, port: first.port })
    while (submitted < JOBS) {
      submitted += 1
      acknowledged.push(await submit(second, endpoint, { sleepMs: submitted % 51 }))
    }
    assert.ok(acknowledged.length > JOBS * 0.9)
    for (const id of acknowledged) {
      const done = await whenFinal(second, endpoint, id, 60_000)
      assert.equal(done.status, 'COMPLETED', JSON.stringify(done))
    }
    const adopted = second.events('worker.adopted').map(({ workerId }) => String(workerId))
    assert.deepEqual(adopted.sort(), survivors.map(({ workerId }) => workerId).sort())
    assert.deepEqual(await second.stop(), { code: 0, signal: null })
    assert.deepEqual(workerProcesses(dataDir), [])
  })

  test('the result of a job that ends while the server is away counts', async () => {
    const dataDir = temporaryFolder()
    const first = await startServer({ dataDir })
    const endpoint = await makeEndpoint(first, { folder, settings: { workersMax: 1, idleTimeout: 3600 } })
    const id = await submit(first, endpoint, { sleepMs: 1_000, name: 'Ada' })
    const { workerId } = await whenStatus(first, endpoint, id, ['IN_PROGRESS'])
    await first.kill9()
    await sleep(2_000)
    const second = await startServer({ dataDir, port: first.port })
    const done = await whenFinal(second, endpoint, id, 15_000)
    assert.deepEqual([done.status, done.output.message, done.workerId], ['COMPLETED', 'Hello, Ada!', workerId])
    assert.equal(done.retries, undefined)
    await second.stop()
  })

  test('a worker that ends while the server is away gives its job back', async () => {
    const dataDir = temporaryFolder()
    const first = await startServer({ dataDir })
    const endpoint = await makeEndpoint(first, { folder, settings: { workersMax: 1, idleTimeout: 3600 } })
    const id = await submit(first, endpoint, { sleepMs: 4_000 })
    const { workerId } = await whenStatus(first, endpoint, id, ['IN_PROGRESS'])
    await first.kill9()
    process.kill(leaderOf(dataDir, workerId!).pid, 'SIGKILL')
    const second = await startServer({ dataDir, port: first.port })
    const done = await whenFinal(second, endpoint, id)
    assert.deepEqual([done.status, done.retries], ['COMPLETED', 1])
    assert.notEqual(done.workerId, workerId)
    await second.stop()
  })

  test('a start on another port keeps the workers, and the result of a job that runs', async () => {
    const dataDir = temporaryFolder()
    const first = await startServer({ dataDir })
    const endpoint = await makeEndpoint(first, { folder, settings: { workersMax: 1, idleTimeout: 3600 } })
    const id = await submit(first, endpoint, { sleepMs: 2_000 })
    const { workerId } = await whenStatus(first, endpoint, id, ['IN_PROGRESS'])
    await first.kill9()
    const second = await startServer({ dataDir })
    assert.notEqual(second.port, first.port)
    const done = await whenFinal(second, endpoint, id)
    assert.deepEqual([done.status, done.workerId, done.retries], ['COMPLETED', workerId, undefined])
    assert.equal((await runJob(second, endpoint, {})).workerId, workerId)
    assert.deepEqual(await second.stop(), { code: 0, signal: null })
    assert.deepEqual(workerProcesses(dataDir), [])
  })

  test('without a relay a start on another port ends the workers that know the old one and leaves no orphan', async () => {
    const dataDir = temporaryFolder()
    const args = ['--direct-workers']
    const first = await startServer({ dataDir, args })
    const endpoint = await makeEndpoint(first, {
      folder,
      settings: { workersMin: 2, workersMax: 2, idleTimeout: 3600 },
    })
    const id = await submit(first, endpoint, { sleepMs: 2_000 })
    const old = (await until('both workers', () => both(dataDir))).map(({ workerId }) => workerId)
    await whenStatus(first, endpoint, id, ['IN_PROGRESS'])
    await first.kill9()
    const second = await startServer({ dataDir, args })
    assert.notEqual(second.port, first.port)
    await until(
      'the old workers to be gone',
      () => old.every(worker => processesOf(dataDir, worker).length === 0),
      15_000,
    )
    const done = await whenFinal(second, endpoint, id)
    assert.equal(done.status, 'COMPLETED')
    assert.ok(!old.includes(done.workerId!))
    assert.deepEqual(await second.stop(), { code: 0, signal: null })
    assert.deepEqual(workerProcesses(dataDir), [])
  })

  const both = (dataDir: string) => {
    const found = workerProcesses(dataDir)
    return found.length === 2 && found
  }
})

describe('a server that is asked to stop', { concurrency: 2 }, () => {
  test('it refuses new work with 503, lets the running job finish, keeps the waiting ones and exits with 0', async () => {
    const dataDir = temporaryFolder()
    const first = await startServer({ dataDir })
    const endpoint = await makeEndpoint(first, { folder, settings: { workersMax: 1, idleTimeout: 3600 } })
    const running = await submit(first, endpoint, { sleepMs: 6_000 })
    await whenStatus(first, endpoint, running, ['IN_PROGRESS'])
    const waiting = await submit(first, endpoint, {})
    const held = timed(() => ask(first, `/v2/${endpoint}/runsync?wait=60000`, { body: { input: {} } }))
    await until('the held job', () => first.events('job.accepted').length === 3)
    first.signal('SIGTERM')
    const refused = await until('a refusal', async () => {
      const answer = await ask(first, `/v2/${endpoint}/run`, { body: { input: {} } })
      return answer.status !== 200 && answer
    })
    assert.equal(refused.status, 503)
    assert.equal(refused.headers.get('retry-after'), '5')
    assert.deepEqual(refused.json, { error: 'the server is stopping' })
    assert.equal((await ask(first, '/readyz')).status, 503)
    const { value, ms } = await held
    assert.deepEqual([value.status, value.json.status], [200, 'IN_QUEUE'])
    assert.ok(ms < patient(6_000), 'a caller that waits is not kept')
    assert.equal((await statusOf(first, endpoint, running)).status, 'IN_PROGRESS')
    assert.deepEqual(await first.ended, { code: 0, signal: null })
    assert.deepEqual(workerProcesses(dataDir), [])

    const second = await startServer({ dataDir })
    const done = await statusOf(second, endpoint, running)
    assert.deepEqual([done.status, done.output.sleptMs], ['COMPLETED', 6_000])
    const later = await whenFinal(second, endpoint, waiting)
    assert.deepEqual([later.status, later.retries], ['COMPLETED', undefined])
    await second.stop()
  })

  test('a second signal ends it at once; the job goes back to the queue uncounted and is done after the next start', async () => {
    const dataDir = temporaryFolder()
    const first = await startServer({ dataDir })
    const endpoint = await makeEndpoint(first, { folder, settings: { workersMax: 1, idleTimeout: 3600 } })
    const id = await submit(first, endpoint, { sleepMs: 4_000 })
    await whenStatus(first, endpoint, id, ['IN_PROGRESS'])
    first.signal('SIGTERM')
    // Two signals that come before the first is seen are one.
    await until('it to be stopping', async () => (await ask(first, '/readyz')).status === 503)
    first.signal('SIGTERM')
    const { value, ms } = await timed(() => first.ended)
    assert.deepEqual(value, { code: 0, signal: null })
    assert.ok(ms < patient(2_000), `it took ${ms} ms`)
    assert.deepEqual(workerProcesses(dataDir), [])

    const second = await startServer({ dataDir })
    const done = await whenFinal(second, endpoint, id)
    assert.deepEqual([done.status, done.retries], ['COMPLETED', undefined])
    await second.stop()
  })

  test('after the drain timeout it stops although a job runs', async () => {
    const first = await startServer({ args: ['--drain-timeout', '1'] })
    const endpoint = await makeEndpoint(first, { folder, settings: { workersMax: 1 } })
    const id = await submit(first, endpoint, { sleepMs: 60_000 })
    await whenStatus(first, endpoint, id, ['IN_PROGRESS'])
    const { value, ms } = await timed(() => first.stop())
    assert.deepEqual(value, { code: 0, signal: null })
    assert.ok(ms >= 900 && ms < patient(10_000), `it took ${ms} ms`)
    assert.deepEqual(workerProcesses(first.dataDir), [])
  })

  test('an idle server stops at once', async () => {
    const server = await startServer()
    const endpoint = await makeEndpoint(server, { folder, settings: { workersMax: 1, idleTimeout: 3600 } })
    await runJob(server, endpoint, {})
    const { value, ms } = await timed(() => server.stop())
    assert.deepEqual(value, { code: 0, signal: null })
    // Far less than the time that a drain may take.
    assert.ok(ms < patient(8_000), `it took ${ms} ms`)
  })
})

describe('a start that cannot be', () => {
  let server: Server

  before(async () => {
    server = await startServer()
  })

  test('a second server on the same data directory is refused with the holder of its lock', async () => {
    const { code, stderr } = await runCommand(['serve', '--port', '0', '--data-dir', server.dataDir, '--json'])
    assert.equal(code, 69)
    const holder = `the server with pid ${server.pid} at ${server.url}`
    assert.equal(
      stderr,
      `runyard: the data directory ${server.dataDir} is in use by ${holder}; stop it or give another --data-dir`,
    )
    assert.equal((await ask(server, '/readyz')).status, 200)
  })

  test('a port in use is refused with its holder', async () => {
    const dataDir = temporaryFolder()
    const args = ['serve', '--port', String(server.port), '--data-dir', dataDir, '--json']
    const { code, stderr } = await runCommand(args)
    assert.equal(code, 69)
    assert.deepEqual(relayProcesses(dataDir), [])
    assert.match(
      stderr,
      new RegExp(`^runyard: port ${server.port} is in use by pid ${server.pid} \\(.+\\); give another --port$`, 'm'),
    )
    const foreign = createServer().listen(0, '127.0.0.1')
    await new Promise(resolve => foreign.once('listening', resolve))
    const { port } = foreign.address() as { port: number }
    const second = await runCommand(['serve', '--port', String(port), '--data-dir', temporaryFolder()])
    foreign.close()
    assert.equal(second.code, 69)
    assert.match(second.stderr, new RegExp(`port ${port} is in use by pid ${process.pid} `))
  })

  test('all wrong settings are reported at once, with exit code 64', async () => {
    const args = ['serve', '--port', '99999', '--drain-timeout', 'soon', '--data-dir', '']
    const env = { RUNYARD_MAX_WORKERS: '0', RUNYARD_LOG_LEVEL: 'loud', RUNYARD_API_KEY: 'short' }
    const { code, stderr } = await runCommand(args, env)
    assert.equal(code, 64)
    const [first, ...mistakes] = stderr.split('\n')
    assert.equal(first, 'runyard: 6 setting(s) are wrong:')
    assert.deepEqual(mistakes.map(line => line.trim().split(' ')[0]).sort(), [
      '--data-dir',
      '--drain-timeout',
      '--port',
      'RUNYARD_API_KEY',
      'RUNYARD_LOG_LEVEL',
      'RUNYARD_MAX_WORKERS',
    ])
  })

  test('an unknown option is reported, with exit code 64', async () => {
    const { code, stderr } = await runCommand(['serve', '--prot', '1'])
    assert.equal(code, 64)
    assert.match(stderr, /unknown option '--prot'/)
  })

  test('a folder without a handler is reported before anything listens', async () => {
    const empty = temporaryFolder()
    const args = ['serve', '--port', '0', '--data-dir', temporaryFolder(), '--worker', empty]
    const { code, stderr } = await runCommand(args)
    assert.equal(code, 69)
    assert.match(stderr, /^runyard: --worker .* has no handler\.py, .* and no command is given/)
  })
})

describe('a terminal', () => {
  test('Ctrl-C reaches the server alone, and its workers finish', async () => {
    const dataDir = temporaryFolder()
    const child: ChildProcess = spawn(
      program,
      ['serve', '--port', '0', '--data-dir', dataDir, '--sample', '--json', '--worker-sandbox', 'off'],
      {
        cwd: root,
        detached: true,
        stdio: ['ignore', 'pipe', 'ignore'],
      },
    )
    atEnd(() => child.kill('SIGKILL'))
    const ended = new Promise<number | null>(resolve => child.on('exit', resolve))
    const line = await new Promise<string>(resolve => child.stdout?.once('data', data => resolve(String(data))))
    const { url, apiKeyFile } = JSON.parse(line) as { url: string; apiKeyFile: string }
    const server = { url, apiKey: readFileSync(apiKeyFile, 'utf8').trim() }
    const waiting = ask(server, '/v2/hellonode/runsync?wait=20000', { body: { input: { sleepMs: 1_000 } } })
    await until('the worker', () => workerProcesses(dataDir).length === 1)
    const { id } = (await ask(server, '/v2/hellonode/run', { body: { input: {} } })).json
    assert.equal(typeof id, 'string')
    assert.equal((await waiting).json.status, 'COMPLETED')
    process.kill(-child.pid!, 'SIGINT')
    assert.equal(await ended, 0)
    assert.deepEqual(workerProcesses(dataDir), [])
  })
})

/** A server in a shell, whose output goes through a pipe: `tee` and `head` end before it does. */
class PipedServer {
  readonly dataDir = temporaryFolder()
  readonly #child: ChildProcess
  readonly ended: Promise<number | null>

  /** @param reader commands that read both streams of the server */
  constructor(reader: string) {
    const serve = `'${program}' serve --port 0 --data-dir ${this.dataDir} --sample --docker off --log-level debug`
    const command = `set -o pipefail; { ${serve}; echo $? > ${this.dataDir}/code; } 2>&1 | ${reader}`
    this.#child = spawn('bash', ['-c', command], { cwd: root, detached: true, stdio: 'ignore' })
    atEnd(() => {
      try {
        process.kill(-this.#child.pid!, 'SIGKILL')
      } catch {
        // It has ended.
      }
    })
    this.ended = new Promise<number | null>(resolve => this.#child.on('exit', resolve))
  }

  async connection(): Promise<{ url: string; apiKey: string }> {
    const info = await until('the server', () => {
      const file = `${this.dataDir}/server.json`
      return existsSync(file) && (JSON.parse(readFileSync(file, 'utf8')) as { url: string })
    })
    return { url: info.url, apiKey: readFileSync(`${this.dataDir}/api-key`, 'utf8').trim() }
  }

  /** As Ctrl-C does: all processes of the terminal get the signal, the reader too. */
  interrupt(): void {
    process.kill(-this.#child.pid!, 'SIGINT')
  }

  /** The exit code of the server itself. */
  async code(): Promise<number> {
    await until('the end of the server', () => existsSync(`${this.dataDir}/code`), 30_000)
    return Number(readFileSync(`${this.dataDir}/code`, 'utf8'))
  }
}

describe('a server whose output has no reader', { concurrency: 3 }, () => {
  for (const [when, reader] of [
    ['from the start', 'true'],
    ['after some lines', 'head -n 3'],
    ['at Ctrl-C', 'cat'],
  ] as const) {
    test(`${when}: it goes on, finishes its jobs at Ctrl-C, and leaves nothing behind`, async () => {
      const server = new PipedServer(reader)
      const connection = await server.connection()
      const first = ask(connection, '/v2/hellonode/runsync?wait=20000', { body: { input: {} } })
      assert.equal((await first).json.status, 'COMPLETED')
      const { id } = (await ask(connection, '/v2/hellonode/run', { body: { input: { sleepMs: 1_500 } } })).json
      const inProgress = async () => (await ask(connection, '/v2/hellonode/health')).json.jobs.inProgress === 1
      await until('the job to run', inProgress)
      server.interrupt()
      assert.equal(await server.code(), 0)
      using database = new DatabaseSync(`${server.dataDir}/runyard.sqlite`, { readOnly: true })
      assert.deepEqual(database.prepare('SELECT status FROM jobs WHERE id = ?').get(id)?.status, 'COMPLETED')
      assert.deepEqual([workerProcesses(server.dataDir), relayProcesses(server.dataDir)], [[], []])
      assert.equal(existsSync(`${server.dataDir}/server.json`), false)
    })
  }
})

/** A server with these streams for its output, and whatever else Node needs to start it. */
function serverWith(stdio: StdioOptions, args: readonly string[] = []): { child: ChildProcess; dataDir: string } {
  const dataDir = temporaryFolder()
  const own = ['serve', '--port', '0', '--data-dir', dataDir, '--docker', 'off', '--log-level', 'debug', '--json']
  const child = spawn(program, [...own, ...args], { cwd: root, stdio })
  atEnd(() => {
    child.kill('SIGKILL')
    killAll(dataDir)
  })
  return { child, dataDir }
}

/** Address and key of the server of a data directory. */
async function addressIn(dataDir: string): Promise<{ url: string; apiKey: string }> {
  const file = `${dataDir}/server.json`
  await until('the server', () => existsSync(file), 30_000)
  const { url } = JSON.parse(readFileSync(file, 'utf8')) as { url: string }
  return { url, apiKey: readFileSync(`${dataDir}/api-key`, 'utf8').trim() }
}

const STATUS_LINE = 'HTTP/1.1 200'

/** Lets a server answer, each of which is a line of its log, on one connection. */
async function answered(url: string, count: number): Promise<void> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  let found = 0
  let rest = ''
  socket.on('data', bytes => {
    // A status line may come in two pieces.
    const pieces = (rest + bytes.toString('latin1')).split(STATUS_LINE)
    found += pieces.length - 1
    rest = pieces.at(-1)!.slice(1 - STATUS_LINE.length)
  })
  for (let sent = 0; sent < count; sent += 500) {
    socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(Math.min(500, count - sent)))
    await until('the answers', () => found >= Math.min(sent + 500, count), 20_000, 1)
  }
  socket.destroy()
}

describe('a server whose log cannot be written', { concurrency: 2 }, () => {
  test('because its reader stays and does not read: it answers, and later says how many lines are missing', async () => {
    const { child, dataDir } = serverWith(['ignore', 'ignore', 'pipe'])
    const server = await addressIn(dataDir)
    // The pipe, what this process reads without being asked, and what the server keeps are some
    // 1.2 MB of lines of 110 bytes.
    await answered(server.url, 16_000)
    const metrics = await ask(server, '/metrics')
    const counted = Number(/^runyard_log_lines_dropped_total (\d+)$/m.exec(metrics.text)?.[1])
    assert.ok(counted > 1_000 && counted < 8_000, `${counted} lines`)
    let log = ''
    child.stderr!.setEncoding('utf8').on('data', (text: string) => (log += text))
    await until('the missing lines', () => log.includes('log.lines_dropped'))
    // Warnings of settings are sentences.
    const lines = log.split('\n').slice(0, -1)
    const records = lines.filter(line => line.startsWith('{')).map(line => JSON.parse(line) as Record<string, unknown>)
    const said = records.filter(({ msg }) => msg === 'log.lines_dropped')
    assert.deepEqual(
      said.map(({ level, problem }) => [level, problem]),
      [['error', 'its reader did not read']],
    )
    assert.ok(Number(said[0]!.lines) >= counted)
  })

  test('because its disk is full: it starts, works and stops in order, and nothing else is lost', async context => {
    // As a full disk, for each write.
    if (!existsSync('/dev/full')) return context.skip('this system has no /dev/full')
    const full = openSync('/dev/full', 'w')
    context.after(() => closeSync(full))
    const { child, dataDir } = serverWith(['ignore', full, full], ['--sample', '--worker-sandbox', 'off'])
    const server = await addressIn(dataDir)
    const job = await ask(server, '/v2/hellonode/runsync?wait=20000', { body: { input: {} } })
    assert.equal(job.json.status, 'COMPLETED')
    const ended = new Promise(resolve => child.on('exit', code => resolve(code)))
    child.kill('SIGTERM')
    assert.equal(await ended, 0)
    assert.deepEqual([workerProcesses(dataDir), relayProcesses(dataDir)], [[], []])
  })
})

test('a full disk: what is kept can be read, the rest is refused with the reason, and all goes on when there is room', async context => {
  const disk = mountSmallDisk(24)
  if (disk === null) return context.skip('this user mounts no file system')
  context.after(() => disk.close())
  const dataDir = `${disk.folder}/data`
  const server = await startServer({ dataDir, args: ['--sample'] })
  const run = (on: Server) => ask(on, '/v2/hellonode/runsync?wait=20000', { body: { input: {} } })
  const { id } = (await run(server)).json
  const held = (await ask(server, '/v2/hellonode/run', { body: { input: { sleepMs: 2_000 } } })).json.id
  await until('the job to run', async () => (await statusOf(server, 'hellonode', held)).status === 'IN_PROGRESS')
  const kept = `${temporaryFolder()}/kept.backup`
  assert.equal((await runCommand(['backup', kept, '--without-keys', '--data-dir', dataDir])).code, 0)
  disk.fill()
  const full = /its disk is full/
  const refused = await until('the disk to be full', async () => {
    const answer = await ask(server, '/v2/hellonode/run', { body: { input: { text: 'x'.repeat(300_000) } } })
    return answer.status === 503 && answer
  })
  const change = await ask(server, '/v2/templates', { body: { name: 'a', image: 'a/b', disk: 5 } })
  for (const { status, text, headers } of [refused, change]) {
    assert.equal(status, 503)
    assert.match(text, full)
    assert.ok(Number(headers.get('retry-after')) > 0)
  }
  assert.equal((await statusOf(server, 'hellonode', id)).status, 'COMPLETED')
  const [relay] = relayProcesses(dataDir)
  process.kill(relay!, 'SIGKILL')
  await until('another relay', () => server.events('relay.started').length === 2)
  const [why] = (await ask(server, '/ops/why/hellonode')).json.explanations
  assert.equal(why.cause, 'store_full')
  assert.equal(server.events('store.full').length, 1)
  const copy = await runCommand(['backup', `${disk.folder}/a.backup`, '--without-keys', '--data-dir', dataDir])
  assert.notEqual(copy.code, 0)
  assert.match(copy.stderr, /disk is full/)
  const restored = await runCommand(['restore', kept, '--data-dir', `${disk.folder}/other`])
  assert.equal(restored.code, 69)
  assert.match(restored.stderr, /^runyard: .*disk .*is full; make room there$/m)
  await server.kill9()

  const start = await runCommand(['serve', '--data-dir', dataDir, '--port', '0', '--docker', 'off'])
  assert.equal(start.code, 69)
  assert.match(start.stderr, /^runyard: the data directory \S+ cannot be used: its disk is full; make room there/m)
  disk.empty()
  const again = await startServer({ dataDir, args: ['--sample'] })
  assert.equal((await whenFinal(again, 'hellonode', held)).status, 'COMPLETED')
  assert.equal((await run(again)).json.status, 'COMPLETED')
  assert.equal((await again.stop()).code, 0)
})

test('SIGHUP ends no server that has no terminal, as under nohup, whether or not it has a certificate', async () => {
  const { child, dataDir } = serverWith(['ignore', 'ignore', 'ignore'])
  const server = await addressIn(dataDir)
  child.kill('SIGHUP')
  assert.equal((await ask(server, '/healthz')).status, 200)
  const ended = new Promise(resolve => child.on('exit', code => resolve(code)))
  child.kill('SIGTERM')
  assert.equal(await ended, 0)
})
