/** A server whose socket systemd has opened: restarts refuse no connection. A program stands in for systemd. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { describe, test } from 'node:test'
import { patient } from '../../support/patience.ts'
import { call, callsWithoutEnd } from '../support/calls.ts'
import { atEnd, atExit, temporaryFolder } from '../support/cleanup.ts'
import { killAll } from '../support/processes.ts'
import { fixture, programFile, root } from '../support/server.ts'
import { until } from '../support/until.ts'

const START_MS = 60_000

const hasPython = process.env.RUNYARD_NO_SKIP === '1' || spawnSync('python3', ['--version']).status === 0
const skip = hasPython ? false : 'install python3: a program in it stands in for systemd'

interface Unit {
  /** The pids of the servers so far that got ready. */
  pids(): number[]
  /** Standard error of the servers. */
  said(): string
}

/** The unit, with a server for each end of the one before. */
function startUnit(args: readonly string[]): { unit: Unit; port: () => Promise<number> } {
  const dataDir = temporaryFolder()
  const { PATH = '', HOME = '' } = process.env
  const words = [programFile(), 'serve', '--json', '--data-dir', dataDir, ...args]
  const child = spawn('python3', [fixture('socket-unit.py'), ...words], { env: { PATH, HOME }, cwd: root })
  let printed = ''
  let problems = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (problems += text))
  const ended = new Promise(resolve => child.on('close', resolve))
  const pids = () => [...printed.matchAll(/"event":"ready".*"pid":(\d+)/g)].map(([, pid]) => Number(pid))
  const end = () => {
    child.kill('SIGKILL')
    for (const pid of pids().slice(-1)) killed(pid)
    killAll(dataDir)
  }
  atExit(end)
  atEnd(async () => {
    end()
    await ended
  })
  const port = () => until('the socket', () => /^(\d+)\n/.exec(printed)?.[1], START_MS, 10).then(Number)
  return { unit: { pids, said: () => problems }, port }
}

function killed(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}

describe('a server with the socket of a unit', { timeout: patient(180_000), skip }, () => {
  test('three restarts in order refuse and cut off no call', async () => {
    const { unit, port } = startUnit(['--port', '0'])
    const at = await port()
    await until('the first server', () => unit.pids()[0], START_MS, 10)
    const calls = callsWithoutEnd(at)
    for (let round = 1; round <= 3; round += 1) {
      process.kill(unit.pids().at(-1)!, 'SIGTERM')
      await until('the next server', () => unit.pids()[round], START_MS, 10)
    }
    const answers = await calls.end()
    assert.equal(unit.pids().length, 4)
    assert.ok(answers.get('200')! > 20, JSON.stringify([...answers]))
    // 503 is the answer of a server that stops.
    assert.deepEqual(
      [...answers].filter(([answer]) => answer !== '200' && answer !== '503'),
      [],
    )
  })

  test('a kill refuses no connection: only calls that it was answering are cut off', async () => {
    const { unit, port } = startUnit(['--port', '0'])
    const at = await port()
    const first = await until('the first server', () => unit.pids()[0], START_MS, 10)
    const calls = callsWithoutEnd(at)
    process.kill(first, 'SIGKILL')
    await until('the next server', () => unit.pids()[1], START_MS, 10)
    const answers = await calls.end()
    assert.equal(answers.get('ECONNREFUSED'), undefined, JSON.stringify([...answers]))
    assert.ok((answers.get('ECONNRESET') ?? 0) <= 8, JSON.stringify([...answers]))
  })

  test('a restart of a server that speaks HTTPS refuses no connection', async () => {
    const { unit, port } = startUnit(['--port', '0', '--tls-self-signed'])
    const at = await port()
    const first = await until('the first server', () => unit.pids()[0], START_MS, 10)
    const calls = callsWithoutEnd(at, true)
    process.kill(first, 'SIGTERM')
    await until('the next server', () => unit.pids()[1], START_MS, 10)
    assert.equal(await call(at, true), '200')
    const answers = await calls.end()
    assert.equal(answers.get('ECONNREFUSED'), undefined, JSON.stringify([...answers]))
    assert.ok(answers.get('200')! > 8, JSON.stringify([...answers]))
  })

  test('a socket at another address than the settings say is refused, with both', async () => {
    const { unit } = startUnit(['--host', '0.0.0.0', '--port', '0'])
    const problem =
      /the socket that was passed on has 127\.0\.0\.1 port \d+; --host and --port have to name its address/
    await until('the refusal', () => problem.exec(unit.said()) ?? undefined, START_MS, 10)
    assert.deepEqual(unit.pids(), [])
  })
})
